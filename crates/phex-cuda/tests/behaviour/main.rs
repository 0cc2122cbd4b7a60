//! The engines on the device compared with those of the CPU. Without a GPU, every test says that it was skipped.

#![allow(clippy::unwrap_used)]

mod conformance;
mod devices;
mod evidence;
mod training;
