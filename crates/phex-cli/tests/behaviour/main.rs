//! The command line as its users see it. One binary: what is generic is compiled once for all of them.

#![allow(clippy::unwrap_used)]

mod accidents;
mod approximate;
mod attack;
mod common;
mod demo;
mod device;
mod foreign_scores;
mod front;
mod fuzz;
mod graph;
mod hostile;
mod infer;
mod interchange;
mod outputs;
mod reconcile;
mod resume;
mod taxonomy;
mod train;
