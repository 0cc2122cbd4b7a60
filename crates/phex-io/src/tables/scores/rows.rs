//! Pieces of tables in memory.

use phex::infer::Evidence;

/// The precision of the numbers of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

/// Scores, row after row, each row in the order of the labels of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum ScoreValues {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl ScoreValues {
    /// The precision of the scores.
    pub fn precision(&self) -> Precision {
        match self {
            ScoreValues::F32(_) => Precision::F32,
            ScoreValues::F64(_) => Precision::F64,
        }
    }

    /// How many scores there are.
    pub fn len(&self) -> usize {
        match self {
            ScoreValues::F32(values) => values.len(),
            ScoreValues::F64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Some rows of a table of scores or probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreRows {
    /// How many rows there are.
    pub count: usize,
    /// One score per row and label.
    pub values: ScoreValues,
    /// The columns that are passed through, in the order of the request: one text per row.
    pub kept: Vec<Vec<String>>,
}

/// Some rows of a table of evidence, or of true labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceRows {
    /// How many rows there are.
    pub count: usize,
    /// One value per row and label, row after row.
    pub values: Vec<Evidence>,
    /// The columns that are passed through, in the order of the request: one text per row.
    pub kept: Vec<Vec<String>>,
}
