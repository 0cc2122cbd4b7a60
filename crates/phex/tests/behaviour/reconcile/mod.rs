//! Reconciling, by its theorem, its identities and other solvers.

mod never_worse;
mod problems;
