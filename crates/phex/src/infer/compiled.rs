//! Read-only views of compiled plans, for engines that run them elsewhere: on a GPU.
//!
//! They are the form of a model that its kernel on the processor walks, and may change with it from
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

/// What an engine was compiled to.
#[derive(Debug, Clone, Copy)]
pub enum Compiled<'a> {
    /// Inside–outside with counters: `family` without an effective cap.
    Family(Forest<'a>),
    /// A forest joined by messages: `blocks`.
    Joined(Joined<'a>),
    /// Messages on a factor graph: `lbp`.
    Messages(Messages<'a>),
    /// One one-of group of classes and their attributes: `star`.
    Classes(Classes<'a>),
    /// A list of legal states: `states`.
    States(StateList<'a>),
    /// Anything else has no view.
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
    /// What is added to log Z.
    pub constant: f64,
}

/// A forest, and messages on the pairs of labels that it leaves out.
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
    /// Whether arc consistency leaves a row a state that agrees with its evidence.
    pub fn is_possible<T: Number>(&self, block: &Block<'_, T>, row: usize) -> bool {
        self.implied.is_possible(self.network, block, row)
    }
}

/// A factor graph on which messages pass.
#[derive(Debug, Clone, Copy)]
pub struct Messages<'a> {
    /// The factors.
    pub network: &'a Network,
    pub(crate) implied: &'a Implied,
}

impl Messages<'_> {
    /// Whether arc consistency leaves a row a state that agrees with its evidence.
    pub fn is_possible<T: Number>(&self, block: &Block<'_, T>, row: usize) -> bool {
        self.implied.is_possible(self.network, block, row)
    }
}

/// Classes, of which one is on, and attributes that are independent given the class.
#[derive(Debug, Clone, Copy)]
pub struct Classes<'a> {
    /// The classes.
    pub classes: &'a [LabelId],
    /// The attributes.
    pub attributes: &'a [LabelId],
    /// What a class costs by itself.
    pub own: &'a [f64],
    /// What an attribute costs off and on, for each kind of cell; never infinite both.
    pub kinds: &'a [[f64; 2]],
    /// The kind of each cell, class after class.
    pub kind_of: &'a [u32],
    /// A fixed addition to each score.
    pub bias: &'a [f64],
    /// What is added to log Z.
    pub constant: f64,
}

/// The legal states of a hard model.
#[derive(Debug, Clone, Copy)]
pub struct StateList<'a> {
    /// The labels that are on in state `k` are `on[start[k]..start[k + 1]]`.
    pub start: &'a [u32],
    /// Labels, state after state.
    pub on: &'a [u32],
    /// The log-weight of every state for scores of zero.
    pub base: f64,
    /// A fixed addition to each score.
    pub bias: &'a [f64],
}
