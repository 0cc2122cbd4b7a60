//! The engines of the device against those of the processor. Where there is no GPU every test says that it was
//! skipped.

mod conformance;
mod devices;
mod training;
