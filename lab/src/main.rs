//! The `lab` command: see the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    match lab::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::from(2)
        }
    }
}
