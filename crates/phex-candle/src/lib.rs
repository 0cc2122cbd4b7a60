//! Label relations as a loss and a layer of any candle network.
//!
//! [`RelationLoss`] is the loss of the targets of each row under the relations of a compiled
//! [`Engine`](phex::infer::Engine). Targets may be on, off or unknown, and what the relations imply about
//! the unknown ones trains the network as well. [`LearnedRelationLoss`] learns the strengths of the
//! relations at the same time. [`RelationLayer`] turns logits into the marginals of the labels, for a
//! loss of your own. [`RelationHead`] is the last layer of a network that is trained in this way. All are differentiable operations: `backward` and candle's optimisers work as usual.
//!
//! Logits are in single or double precision and may have any strides; half precision is computed in
//! single precision. Inference runs on the CPU: tensors on another device are copied to it, and results
//! and gradients are copied back. Second derivatives are not available: gradients are constants for
//! candle.
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use candle_nn::{Module, Optimizer, SGD};
//! use phex::graph::GraphBuilder;
//! use phex::infer::{Engine, Options};
//! use phex::learn::Loss;
//! use phex::model::Model;
//! use phex_candle::{RelationHead, RelationLoss};
//!
//! let mut builder = GraphBuilder::new();
//! builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None).single_label();
//! let graph = builder.build()?;
//! let engine = Engine::compile(Model::new(&graph)?, &Options::default())?;
//! let loss = RelationLoss::new(engine, Loss::Joint);
//!
//! // Also the last layer of any network.
//! let network = RelationHead::new(2, &graph, &Device::Cpu)?;
//! let inputs = Tensor::new(&[[1f32, 0.0], [0.0, 1.0], [1.0, 1.0]], &Device::Cpu)?;
//! // A dog, a cat, and an animal of unknown kind.
//! let targets = Tensor::new(&[[-1i64, 1, -1], [-1, -1, 1], [1, -1, -1]], &Device::Cpu)?;
//! let mut optimiser = SGD::new(network.variables(), 0.5)?;
//! for _ in 0..50 {
//!     optimiser.backward_step(&loss.forward(&network.forward(&inputs)?, &targets, None)?)?;
//! }
//! let value = loss.forward(&network.forward(&inputs)?, &targets, None)?.to_scalar::<f32>()?;
//! assert!(value < 0.3, "{value}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod head;
mod layer;
mod learned;
mod loss;
mod tape;
mod tensors;

pub use error::Error;
pub use head::RelationHead;
pub use layer::RelationLayer;
pub use learned::LearnedRelationLoss;
pub use loss::RelationLoss;
