//! Reconciling, by its theorem, its identities and other solvers.

mod gradient;
mod never_worse;
mod newton;
mod problems;
