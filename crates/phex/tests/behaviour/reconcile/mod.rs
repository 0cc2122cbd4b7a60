//! Reconciling, by its theorem, its identities and other solvers.

mod categorical;
mod fit;
mod identities;
mod large;
mod never_worse;
mod oracle;
mod problems;
mod solver;
