//! The argument for the device of engines.

use std::fmt;
use std::str::FromStr;

use clap::Args;

/// The flag of all commands whose engines may run on a GPU.
#[derive(Debug, Args)]
pub(crate) struct DeviceArguments {
    /// Where engines run: `cpu`, or `cuda` (`cuda:1` for the second NVIDIA GPU), which supports `family`,
    /// `states`, `star`, `forest-bp` and `lbp --schedule flooding`
    #[arg(long, value_name = "DEVICE", default_value = "cpu", env = "PHEX_DEVICE")]
    pub(crate) device: DeviceName,
}

/// A device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceName {
    /// The CPU.
    Cpu,
    /// The NVIDIA GPU of this number.
    Cuda(usize),
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceName, String> {
        match text.split_once(':') {
            None if text == "cpu" => Some(DeviceName::Cpu),
            None if text == "cuda" => Some(DeviceName::Cuda(0)),
            Some(("cuda", number)) => number.parse().ok().map(DeviceName::Cuda),
            _ => None,
        }
        .ok_or_else(|| {
            String::from("a device is `cpu`, `cuda`, or `cuda:N` with the number of a GPU")
        })
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceName::Cpu => write!(f, "cpu"),
            DeviceName::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}
