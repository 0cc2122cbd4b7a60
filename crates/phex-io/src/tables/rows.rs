//! Pieces of tables in memory.

use phex::infer::Evidence;

/// The type of the numbers of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

/// Numbers, row after row, each row in the order of the model's labels.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Values {
    /// The type of the numbers.
    pub fn number(&self) -> Number {
        match self {
            Values::F32(_) => Number::F32,
            Values::F64(_) => Number::F64,
        }
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Some rows of a table of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// How many rows there are.
    pub count: usize,
    /// A number for each row and label.
    pub values: Values,
    /// The columns that are passed through, in the order in which they were asked for: a text for
    /// each row.
    pub kept: Vec<Vec<String>>,
}

/// Some rows of a table of evidence, or of true labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceRows {
    /// How many rows there are.
    pub count: usize,
    /// One value per row and label, row after row.
    pub values: Vec<Evidence>,
    /// The columns that are passed through: a text for each row.
    pub kept: Vec<Vec<String>>,
}
