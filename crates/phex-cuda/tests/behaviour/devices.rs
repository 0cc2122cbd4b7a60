//! The device that tests run on, and the errors without one.

use phex_cuda::{Device, Error};

/// The first GPU; without one, reports a skipped test and returns `None`.
pub(crate) fn device() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            phex::testkit::skip(&format!("there is no CUDA device: {error}"));
            None
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_named() {
    match Device::open(99) {
        Err(Error::NoDevice { ordinal: 99, count }) => assert!(count < 99),
        Err(Error::NoDriver | Error::NoCompiler | Error::DriverTooOld { .. }) => {}
        other => panic!("{other:?}"),
    }
}
