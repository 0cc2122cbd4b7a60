//! Reconciling, by its theorem, its identities and other solvers.

mod fit;
mod never_worse;
mod problems;
