//! The label sets that were decided on.

use crate::Error;
use crate::graph::LabelId;

/// A label set for each row, and the label that was chosen where one was. Rows are asked for by number;
/// out of range they panic, as the index of a slice does.
///
/// ```
/// use phex::decide::Decisions;
/// let sets = Decisions::from_sets(2, vec![true, false, true, true])?;
/// assert_eq!((sets.rows(), sets.row(1)), (2, &[true, true][..]));
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisions {
    labels: usize,
    on: Vec<bool>,
    chosen: Vec<Option<LabelId>>,
    answered: Vec<bool>,
}

impl Decisions {
    /// Empty sets for so many rows, none of them answered.
    pub(super) fn unanswered_rows(labels: usize, rows: usize) -> Decisions {
        Decisions {
            labels,
            on: vec![false; rows * labels],
            chosen: vec![None; rows],
            answered: vec![false; rows],
        }
    }

    /// Sets that were made elsewhere: rows of `labels` entries each, one after another.
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of entries is not a multiple of `labels`.
    pub fn from_sets(labels: usize, on: Vec<bool>) -> Result<Decisions, Error> {
        let rows = rows_of("the label sets", labels, on.len())?;
        Ok(Decisions { labels, on, chosen: vec![None; rows], answered: vec![true; rows] })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.answered.len()
    }

    /// How many labels a row has.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// Whether each label of a row is on; all off where the row has no answer.
    pub fn row(&self, row: usize) -> &[bool] {
        &self.on[row * self.labels..(row + 1) * self.labels]
    }

    /// The label that was chosen, by decisions that choose one and where one was good enough.
    pub fn chosen(&self, row: usize) -> Option<LabelId> {
        self.chosen[row]
    }

    /// Whether the row could be decided: all its marginals are numbers, or it has a legal state.
    pub fn is_answered(&self, row: usize) -> bool {
        self.answered[row]
    }

    /// How many rows could not be decided.
    pub fn unanswered(&self) -> usize {
        self.answered.iter().filter(|answered| !**answered).count()
    }

    /// Marks a row as answered and gives its set to be filled.
    pub(super) fn answer(&mut self, row: usize, chosen: Option<LabelId>) -> &mut [bool] {
        self.answered[row] = true;
        self.chosen[row] = chosen;
        &mut self.on[row * self.labels..(row + 1) * self.labels]
    }
}

/// How many rows so many entries are.
pub(crate) fn rows_of(what: &'static str, labels: usize, entries: usize) -> Result<usize, Error> {
    if labels == 0 && entries == 0 {
        return Ok(0);
    }
    if labels == 0 {
        return Err(Error::Shape { what, expected: 0, found: entries });
    }
    let expected = entries.div_ceil(labels) * labels;
    if expected == entries {
        Ok(entries / labels)
    } else {
        Err(Error::Shape { what, expected, found: entries })
    }
}
