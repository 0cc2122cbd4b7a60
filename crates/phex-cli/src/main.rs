//! The phex command.
fn main() {}
