//! CUDA engines of phex: inference and training on rows that live on the GPU.
//!
//! [`Device`] opens a GPU. Only that loads the driver and NVRTC, so a program with this crate builds and runs on machines
//! that have neither. [`CudaEngine`] is a compiled [`phex::infer::Engine`] (`family`, `forest-bp`, `star`, `lbp` or
//! `states`) on a device. [`CudaEngine::run`] answers rows of the host. [`CudaEngine::infer`],
//! [`CudaEngine::joint_loss`], [`CudaEngine::marginal_loss`] and [`CudaEngine::covariance`] work on rows that are already on
//! the device: they take addresses ([`DeviceRows`], [`LossBatch`], [`CovarianceBatch`]) and a stream ([`DeviceCall`]). A
//! [`Device`] is an [`Accelerator`](phex::infer::Accelerator), so training and prediction can run on it.
//!
//! Sources: `src/` has one module per engine behind the trait of `kernels.rs`; `kernels/` has their CUDA code in folders and
//! files of the same names.
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
mod cache;
mod device;
mod engine;
mod error;
mod family;
mod forest_bp;
mod gradients;
mod host_losses;
mod host_rows;
mod kernels;
mod lbp;
mod memory;
mod program;
mod row_blocks;
mod rows;
mod star;
mod states;

pub use device::{Device, Stream};
pub use engine::CudaEngine;
pub use error::Error;
pub use family::BlockRows;
pub use gradients::{CovarianceBatch, LossBatch};
pub use host_losses::DeviceGradients;
pub use memory::DeviceMemory;
pub use rows::{DeviceCall, DeviceNumber, DeviceRows, DeviceStatus, Precision, Workspace};
