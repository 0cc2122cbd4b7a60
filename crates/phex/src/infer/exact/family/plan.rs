//! The recursion as flat arrays: which cells each step reads and writes.

use std::ops::Range;

use super::layers::LayerMove;

/// Which loop a step runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepKind {
    /// No layers.
    Plain,
    /// One group is open before and after the step, and below the child.
    Dual,
    /// Layers move according to the list of moves.
    General,
}

/// A label, or the virtual root above all roots.
#[derive(Debug, Clone)]
pub struct ForestNode {
    /// The label. The virtual root has none.
    pub label: Option<usize>,
    /// The position of its inside messages: off by layer, then on by layer.
    pub message: usize,
    /// The position of its outside messages. Leaves share one position, because theirs are used at
    /// once.
    pub outside: usize,
    /// The position of its own weights, off and on, among the inside messages. The weights of a
    /// leaf are its messages.
    pub weight: usize,
    /// How many layers its messages have.
    pub layers: usize,
    /// Its units.
    pub units: Range<usize>,
    /// The moves by the label itself. `b` is 1 when it is on.
    pub own: Range<usize>,
    /// Whether the moves change no layer: the label is in no group and completes none.
    pub same_layers: bool,
}

/// A counted set of siblings, or one uncounted child.
#[derive(Debug, Clone)]
pub struct SiblingUnit {
    /// Its steps, one per child.
    pub steps: Range<usize>,
    /// The first cells: one per stream.
    pub cells: usize,
    /// Whether all edges cost the same, so that one stream serves both states of the parent.
    pub shared: bool,
    /// Cells per layer at the end.
    pub width: usize,
    /// The largest number of layers at any step.
    pub most_layers: usize,
    /// Layers at the end.
    pub layers: usize,
    /// The position of its totals: parent off by layer, then parent on by layer.
    pub total: usize,
    /// The position of the product of the totals up to this unit.
    pub product: usize,
    /// How many layers that product has.
    pub product_layers: usize,
    /// How its layers join the product of the units before it.
    pub moves: Range<usize>,
    /// Log-weights: q^m for m = 0..=width.
    pub turns: usize,
    /// Log-weights: the edges of m children below a parent that is off, when shared.
    pub falls: usize,
    /// The first expectation of a pair of steps, if pairs are requested one by one.
    pub pairs: Option<usize>,
}

/// A step in which a child joins its unit.
#[derive(Debug, Clone)]
pub struct JoinStep {
    /// The child.
    pub node: usize,
    /// The position of the cells before the step.
    pub input: usize,
    /// Cells per layer before the step.
    pub input_width: usize,
    /// Layers before the step.
    pub input_layers: usize,
    /// The position of the cells after the step.
    pub output: usize,
    /// Cells per layer after the step.
    pub width: usize,
    /// Layers after the step.
    pub layers: usize,
    /// The loop that the step runs.
    pub kind: StepKind,
    /// How the child's layers join those before it.
    pub moves: Range<usize>,
    /// The log-weight of the edge below a parent that is off.
    pub fall: usize,
}

/// The flat arrays.
#[derive(Debug, Clone)]
pub struct ForestProgram {
    /// Children before parents, with the virtual root last.
    pub nodes: Vec<ForestNode>,
    /// The counted sets of all nodes.
    pub units: Vec<SiblingUnit>,
    /// The children of all units.
    pub steps: Vec<JoinStep>,
    /// Moves between layers, indexed by ranges.
    pub moves: Vec<LayerMove>,
    /// Constants of the model.
    pub log_weights: Vec<f64>,
    /// The nodes with children.
    pub parents: Vec<usize>,
    /// The positions for the weights of each label, off and on.
    pub slots: Vec<[usize; 2]>,
    /// How many inside messages and weights there are.
    pub messages: usize,
    /// How many outside messages there are.
    pub outside: usize,
    /// How many cells there are.
    pub cells: usize,
    /// How many totals and products of totals there are.
    pub totals: usize,
    /// How many expectations of pairs there are.
    pub pairs: usize,
    /// The number of cells in the backward pass of the widest unit.
    pub widest: usize,
    /// The number of children of the longest unit whose pairs are requested one by one.
    pub longest: usize,
    /// The unit of each counted set.
    pub unit_of_set: Vec<usize>,
    /// Whether the last cell of a capped unit keeps the overflow. Otherwise the overflow is
    /// dropped.
    pub saturate: bool,
    /// Whether any unit has more members than the cap.
    pub capped: bool,
    /// The approximate number of elementary operations per row.
    pub operations: f64,
    /// The step of each label within its unit.
    pub place: Vec<usize>,
}

impl ForestProgram {
    /// The position of the messages of the virtual root.
    pub(super) fn root(&self) -> usize {
        self.nodes.last().map_or(0, |node| node.message)
    }

    /// Bytes of the tables, and of the scratch memory for a register of rows.
    pub(super) fn bytes(&self) -> u64 {
        let numbers = self.cells + self.messages + self.outside + 2 * self.totals + 2 * self.widest;
        let tables = self.log_weights.len() * 20 + self.steps.len() * 240 + self.units.len() * 200;
        (numbers * 64 + tables) as u64
    }
}
