//! The command line as its users see it. One binary: what is generic is compiled once for all of them.

#![allow(clippy::unwrap_used)]

mod approximate;
mod common;
mod demo;
mod device;
mod graph;
mod infer;
mod interchange;
mod reconcile;
mod resume;
mod taxonomy;
mod train;
