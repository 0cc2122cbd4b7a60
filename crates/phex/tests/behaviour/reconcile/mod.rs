//! Reconciling, by its theorem, its identities and other solvers.

mod categorical;
mod identities;
mod never_worse;
mod oracle;
mod problems;
mod solver;
