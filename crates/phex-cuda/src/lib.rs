//! CUDA engines of phex: inference and training on rows that live on the GPU.
//!
//! [`Device`] opens a GPU, loading the driver and NVRTC only then: a program with this crate builds and runs
//! where there is neither. [`CudaEngine`] brings a compiled [`phex::infer::Engine`] (`family`, `blocks`,
//! `star`, `lbp` or `states`) to it. [`CudaEngine::run`] answers rows of the processor; [`CudaEngine::infer`] and its
//! siblings take addresses and a stream, for rows that are on the device already. A [`Device`] is an
//! [`Accelerator`](phex::infer::Accelerator): training and prediction run there as on the processor.
//!
//! ```
//! use phex::graph::GraphBuilder;
//! use phex::infer::{Block, Engine, Options};
//! use phex::model::Model;
//! use phex_cuda::{CudaEngine, Device};
//!
//! let mut builder = GraphBuilder::new();
//! builder.hierarchy("animal", "dog", None);
//! let engine = Engine::compile(Model::new(&builder.build()?)?, &Options::default())?;
//! match Device::open(0) {
//!     Ok(device) => {
//!         let posterior = CudaEngine::new(&device, &engine)?.run(&Block::new(2, &[0.0f32, 0.0]))?;
//!         assert!((posterior.row(0)[0] - 2.0 / 3.0).abs() < 1e-6);
//!     }
//!     // Says what is missing.
//!     Err(error) => eprintln!("skipped: {error}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
mod blocks;
mod buffer;
mod cache;
mod device;
mod engine;
mod error;
mod family;
mod gradients;
mod host;
mod host_gradients;
mod lbp;
mod program;
mod rows;
mod star;
mod states;

pub use buffer::Buffer as Memory;
pub use device::{Device, Stream};
pub use engine::CudaEngine;
pub use error::Error;
pub use family::BlockRows;
pub use gradients::{Covariance, Training};
pub use host_gradients::Gradients;
pub use rows::{DeviceNumber, DeviceRows, Precision, Status};
