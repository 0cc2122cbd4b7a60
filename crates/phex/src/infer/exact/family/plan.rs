//! The recursion as flat arrays: which cells each step reads and writes.

use std::ops::Range;

use super::layers::LayerMove;

/// Which loop a step takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepKind {
    /// No layers.
    Plain,
    /// One group is open before and after, and below the child.
    Dual,
    /// By the list of moves.
    General,
}

/// A label, or the virtual root above all roots.
#[derive(Debug, Clone)]
pub struct ForestNode {
    /// The virtual root has none.
    pub label: Option<usize>,
    /// Where its inside messages are: off by layer, then on by layer.
    pub message: usize,
    /// Where its outside messages are; leaves share a place, for theirs are used at once.
    pub outside: usize,
    /// Where its own weights are, off and on, among the inside messages. Those of a leaf are its
    /// messages.
    pub weight: usize,
    /// How many layers its messages have.
    pub layers: usize,
    /// Its units.
    pub units: Range<usize>,
    /// Moves by the label itself: `b` is whether it is on.
    pub own: Range<usize>,
    /// The moves change no layer: the label is in no group, and completes none.
    pub same_layers: bool,
}

/// A counted set of siblings, or one uncounted child.
#[derive(Debug, Clone)]
pub struct SiblingUnit {
    /// Its steps: a child each.
    pub steps: Range<usize>,
    /// The first cells: 1 a stream.
    pub cells: usize,
    /// All edges cost the same: one stream serves both states of the parent.
    pub shared: bool,
    /// Cells a layer at the end.
    pub width: usize,
    /// Most layers at any step.
    pub most_layers: usize,
    /// Layers at the end.
    pub layers: usize,
    /// Where its totals are: parent off by layer, then parent on by layer.
    pub total: usize,
    /// Where the product of the totals up to this unit is.
    pub product: usize,
    /// How many layers that product has.
    pub product_layers: usize,
    /// How its layers join the product of the units before it.
    pub moves: Range<usize>,
    /// Log-weights: q^m for m = 0..=width.
    pub turns: usize,
    /// Log-weights: the edges of m children below a parent that is off, when shared.
    pub falls: usize,
    /// The first expectation of a pair of steps, when asked for pair by pair.
    pub pairs: Option<usize>,
}

/// A child joins its unit.
#[derive(Debug, Clone)]
pub struct JoinStep {
    /// The child.
    pub node: usize,
    /// The cells before.
    pub input: usize,
    /// Cells a layer before.
    pub input_width: usize,
    /// Layers before.
    pub input_layers: usize,
    /// The cells after.
    pub output: usize,
    /// Cells a layer after.
    pub width: usize,
    /// Layers after.
    pub layers: usize,
    /// Which loop it takes.
    pub kind: StepKind,
    /// How the child's layers join those before.
    pub moves: Range<usize>,
    /// Log-weight: the edge below a parent that is off.
    pub fall: usize,
}

/// The flat arrays.
#[derive(Debug, Clone)]
pub struct ForestProgram {
    /// Children before parents, the virtual root last.
    pub nodes: Vec<ForestNode>,
    /// The counted sets of all nodes.
    pub units: Vec<SiblingUnit>,
    /// The children of all units.
    pub steps: Vec<JoinStep>,
    /// Moves between layers, by ranges.
    pub moves: Vec<LayerMove>,
    /// Constants of the model, by index.
    pub log_weights: Vec<f64>,
    /// The nodes with children.
    pub parents: Vec<usize>,
    /// Where the weights of each label off and on go.
    pub slots: Vec<[usize; 2]>,
    /// How many inside messages and weights there are.
    pub messages: usize,
    /// How many outside messages.
    pub outside: usize,
    /// How many cells.
    pub cells: usize,
    /// How many totals and products of totals.
    pub totals: usize,
    /// How many expectations of pairs.
    pub pairs: usize,
    /// Cells of the widest unit's backward pass.
    pub widest: usize,
    /// Children of the longest unit whose pairs are asked for one by one.
    pub longest: usize,
    /// The unit of each counted set.
    pub unit_of_set: Vec<usize>,
    /// The last cell of a capped unit keeps what overflows; otherwise it is dropped.
    pub saturate: bool,
    /// Whether any unit has more members than the cap.
    pub capped: bool,
    /// Elementary operations a row, about.
    pub operations: f64,
    /// The step of each label within its unit.
    pub place: Vec<usize>,
}

impl ForestProgram {
    /// Where the messages of the virtual root are.
    pub(super) fn root(&self) -> usize {
        self.nodes.last().map_or(0, |node| node.message)
    }

    /// Tables, and scratch memory for a register of rows.
    pub(super) fn bytes(&self) -> u64 {
        let numbers = self.cells + self.messages + self.outside + 2 * self.totals + 2 * self.widest;
        let tables = self.log_weights.len() * 20 + self.steps.len() * 240 + self.units.len() * 200;
        (numbers * 64 + tables) as u64
    }
}
