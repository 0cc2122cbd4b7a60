//! Read-only views of compiled engines, for backends that run them elsewhere, such as on a GPU.
//!
//! A view shows the data that the engine's CPU kernel works on. It may change with the kernel from
//! one version to the next.

use crate::graph::LabelId;
pub use crate::infer::approximate::forest_bp::Residual;
use crate::infer::approximate::network::Implied;
pub use crate::infer::approximate::network::{
    Cardinality, GroupPart, Link, Network, PairFactor, TableFactor,
};
pub use crate::infer::exact::family::layers::LayerMove;
pub use crate::infer::exact::family::plan::{
    ForestNode, ForestProgram, JoinStep, SiblingUnit, StepKind,
};
use crate::infer::{Block, Number};

/// The compiled form of an engine.
#[derive(Debug, Clone, Copy)]
pub enum Compiled<'a> {
    /// Inside–outside with counters: `family` without an effective cap.
    Family(Forest<'a>),
    /// A forest joined by messages: `forest-bp`.
    Joined(Joined<'a>),
    /// Messages on a factor graph: `lbp`.
    Messages(Messages<'a>),
    /// One one-of group of classes and their attributes: `star`.
    Classes(Classes<'a>),
    /// A list of legal states: `states`.
    States(StateList<'a>),
    /// Any other engine: there is no view.
    Other,
}

/// A forest with counted sets of siblings.
#[derive(Debug, Clone, Copy)]
pub struct Forest<'a> {
    /// The recursion as flat arrays.
    pub plan: &'a ForestProgram,
    /// A fixed addition to each score.
    pub bias: &'a [f64],
    /// One-of groups whose scores are shifted by their log-sum-exp.
    pub shifted: &'a [Vec<usize>],
    /// A constant that is added to log Z.
    pub constant: f64,
}

/// A forest, and messages on the pairs of labels that it does not cover.
#[derive(Debug, Clone, Copy)]
pub struct Joined<'a> {
    /// The forest.
    pub forest: Forest<'a>,
    /// The pairs.
    pub residual: &'a [Residual],
    pub(crate) network: &'a Network,
    pub(crate) implied: &'a Implied,
}

impl Joined<'_> {
    /// Whether arc consistency leaves the row a state that agrees with its evidence.
    pub fn is_possible<T: Number>(&self, block: &Block<'_, T>, row: usize) -> bool {
        self.implied.is_possible(self.network, block, row)
    }
}

/// A factor graph for message passing.
#[derive(Debug, Clone, Copy)]
pub struct Messages<'a> {
    /// The factors.
    pub network: &'a Network,
    pub(crate) implied: &'a Implied,
}

impl Messages<'_> {
    /// Whether arc consistency leaves the row a state that agrees with its evidence.
    pub fn is_possible<T: Number>(&self, block: &Block<'_, T>, row: usize) -> bool {
        self.implied.is_possible(self.network, block, row)
    }
}

/// Classes of which exactly one is on, and attributes that are independent given the class.
#[derive(Debug, Clone, Copy)]
pub struct Classes<'a> {
    /// The classes.
    pub classes: &'a [LabelId],
    /// The attributes.
    pub attributes: &'a [LabelId],
    /// The cost of each class by itself.
    pub own: &'a [f64],
    /// For each kind of cell, the costs of an attribute that is off and on. They are never both
    /// infinite.
    pub kinds: &'a [[f64; 2]],
    /// The kind of each cell, one class after another.
    pub kind_of: &'a [u32],
    /// A fixed addition to each score.
    pub bias: &'a [f64],
    /// A constant that is added to log Z.
    pub constant: f64,
}

/// The legal states of a hard model.
#[derive(Debug, Clone, Copy)]
pub struct StateList<'a> {
    /// The labels that are on in state `k` are `on[start[k]..start[k + 1]]`.
    pub start: &'a [u32],
    /// Labels, one state after another.
    pub on: &'a [u32],
    /// The log-weight of every state under scores of zero.
    pub base: f64,
    /// A fixed addition to each score.
    pub bias: &'a [f64],
}
