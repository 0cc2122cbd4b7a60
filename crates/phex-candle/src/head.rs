//! The last layer of a network under relations: `x → ℓ = s ∘ (W x + b)`.
//!
//! `W` and `b` start at zero: with random weights, a coarse label trains whichever of its leaves is ahead. The
//! factor `s` is 1 for leaves and smaller for labels that have children in a single-label graph
//! ([`phex::learn::inner_scale`]), whose scores would otherwise move first and most. Cost: a matrix product.

use candle_core::{DType, Device, Module, Tensor, Var};
use phex::graph::RelationGraph;
use phex::learn::{INNER_SCALE, inner_scale, score_scales};

use crate::Error;

/// A linear layer from features to logits that follows the recipe of `phex train`. Clones share their weights.
///
/// ```
/// use candle_core::{Device, Module, Tensor};
/// use phex::graph::GraphBuilder;
/// use phex_candle::RelationHead;
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None).single_label();
/// let head = RelationHead::new(4, &builder.build()?, &Device::Cpu)?;
/// assert_eq!(head.scale().to_vec1::<f32>()?, [0.1, 1.0, 1.0]);
/// let logits = head.forward(&Tensor::ones((2, 4), candle_core::DType::F32, &Device::Cpu)?)?;
/// assert_eq!(logits.to_vec2::<f32>()?, [[0.0; 3]; 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RelationHead {
    weight: Var,
    bias: Var,
    scale: Tensor,
}

impl RelationHead {
    /// A head for the labels of a graph, with the recipe's scale, in single precision.
    ///
    /// # Errors
    /// [`Error::Candle`] when the device has no room.
    pub fn new(
        features: usize,
        graph: &RelationGraph,
        device: &Device,
    ) -> Result<RelationHead, Error> {
        RelationHead::scaled(features, graph, inner_scale(graph, INNER_SCALE), device)
    }

    /// The same with another factor on the scores of labels that have children; 1 leaves them as they are.
    ///
    /// # Errors
    /// As [`RelationHead::new`].
    pub fn scaled(
        features: usize,
        graph: &RelationGraph,
        inner_scale: f64,
        device: &Device,
    ) -> Result<RelationHead, Error> {
        Ok(RelationHead {
            weight: Var::zeros((graph.len(), features), DType::F32, device)?,
            bias: Var::zeros(graph.len(), DType::F32, device)?,
            scale: Tensor::new(score_scales(graph, inner_scale), device)?,
        })
    }

    /// What an optimiser trains: `W`, of labels × features, and `b`.
    pub fn variables(&self) -> Vec<Var> {
        vec![self.weight.clone(), self.bias.clone()]
    }

    /// The factor `s` on the logit of each label, which is not trained. Weights that are saved need it.
    pub fn scale(&self) -> &Tensor {
        &self.scale
    }
}

impl Module for RelationHead {
    /// The logits, rows × labels, of rows × features.
    fn forward(&self, features: &Tensor) -> candle_core::Result<Tensor> {
        let logits = features.matmul(&self.weight.t()?)?.broadcast_add(&self.bias)?;
        logits.broadcast_mul(&self.scale)
    }
}
