//! The recursion as flat arrays: which cells each step reads and writes.

use std::ops::Range;

use super::layers::Move;

/// Which loop a step takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// No layers.
    Plain,
    /// One group is open before and after, and below the child.
    Dual,
    /// By the list of moves.
    General,
}

/// A label, or the virtual root above all roots.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The virtual root has none.
    pub(super) label: Option<usize>,
    /// Where its inside messages are: off by layer, then on by layer.
    pub(super) message: usize,
    /// Where its outside messages are; leaves share a place, for theirs are used at once.
    pub(super) outside: usize,
    /// Where its own weights are, off and on, among the inside messages. Those of a leaf are its
    /// messages.
    pub(super) weight: usize,
    pub(super) layers: usize,
    pub(super) units: Range<usize>,
    /// Moves by the label itself: `b` is whether it is on.
    pub(super) own: Range<usize>,
    /// The moves change no layer: the label is in no group, and completes none.
    pub(super) same_layers: bool,
}

/// A counted set of siblings, or one uncounted child.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) steps: Range<usize>,
    /// The first cells: 1 a stream.
    pub(super) cells: usize,
    /// All edges cost the same: one stream serves both states of the parent.
    pub(super) shared: bool,
    /// Cells a layer at the end.
    pub(super) width: usize,
    /// Most layers at any step.
    pub(super) most_layers: usize,
    pub(super) layers: usize,
    /// Where its totals are: parent off by layer, then parent on by layer.
    pub(super) total: usize,
    /// Where the product of the totals up to this unit is.
    pub(super) product: usize,
    pub(super) product_layers: usize,
    pub(super) moves: Range<usize>,
    /// Log-weights: q^m for m = 0..=width.
    pub(super) turns: usize,
    /// Log-weights: the edges of m children below a parent that is off, when shared.
    pub(super) falls: usize,
    /// The first expectation of a pair of steps, when asked for pair by pair.
    pub(super) pairs: Option<usize>,
}

/// A child joins its unit.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) node: usize,
    /// Cells and layers before; those after follow.
    pub(super) input: usize,
    pub(super) input_width: usize,
    pub(super) input_layers: usize,
    pub(super) output: usize,
    pub(super) width: usize,
    pub(super) layers: usize,
    pub(super) kind: Kind,
    pub(super) moves: Range<usize>,
    /// Log-weight: the edge below a parent that is off.
    pub(super) fall: usize,
}

/// The flat arrays.
#[derive(Debug)]
pub(super) struct Plan {
    /// Children before parents, the virtual root last.
    pub(super) nodes: Vec<Node>,
    pub(super) units: Vec<Unit>,
    pub(super) steps: Vec<Step>,
    pub(super) moves: Vec<Move>,
    pub(super) log_weights: Vec<f64>,
    /// The nodes with children.
    pub(super) parents: Vec<usize>,
    /// Where the weights of each label off and on go.
    pub(super) slots: Vec<[usize; 2]>,
    /// Lengths of the arrays that the recursion fills.
    pub(super) messages: usize,
    pub(super) outside: usize,
    pub(super) cells: usize,
    pub(super) totals: usize,
    pub(super) pairs: usize,
    /// Cells of the widest unit's backward pass.
    pub(super) widest: usize,
    pub(super) longest: usize,
    /// The unit of each counted set.
    pub(super) unit_of_set: Vec<usize>,
    /// The last cell of a capped unit keeps what overflows; otherwise it is dropped.
    pub(super) saturate: bool,
    /// Whether any unit has more members than the cap.
    pub(super) capped: bool,
    pub(super) operations: f64,
    /// The step of each label within its unit.
    pub(super) place: Vec<usize>,
}

impl Plan {
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
