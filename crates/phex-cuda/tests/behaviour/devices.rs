//! The device that tests run on, and the errors where there is none.

use phex_cuda::{Device, Error};

/// The first GPU; where there is none, says so and returns `None`.
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
