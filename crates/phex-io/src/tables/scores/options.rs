//! How to read a table of scores.

use phex::infer::ScoreForm;

use crate::Limits;
use crate::tables::TableFormat;

/// How to read a table of scores.
#[derive(Debug, Clone, Default)]
pub struct ScoreOptions {
    /// The format. Without it, the name of the file decides, then its first bytes.
    pub format: Option<TableFormat>,
    /// The columns that are passed through as text.
    pub keep: Vec<String>,
    /// The labels that the columns stand for, in the order of the columns, if the columns are not named after them.
    pub names: Option<Vec<String>>,
    /// For each label, the score that it gets if it has no column. Labels without an entry need a column.
    pub missing: Vec<Option<f64>>,
    /// What the numbers are. Cells of probabilities must be numbers from 0 to 1.
    pub form: ScoreForm,
    /// The limits.
    pub limits: Limits,
}
