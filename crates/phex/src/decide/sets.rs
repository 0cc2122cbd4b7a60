//! The label sets that were decided.

use crate::Error;
use crate::graph::LabelId;

/// One label set per row, and the chosen label if there is one. Rows are accessed by number. A
/// number that is out of range panics, as a slice index does.
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
    /// Empty sets for this many rows, none of them answered.
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

    /// How many labels each row has.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// Whether each label of a row is on. All are off when the row has no answer.
    pub fn row(&self, row: usize) -> &[bool] {
        &self.on[row * self.labels..(row + 1) * self.labels]
    }

    /// The label that was chosen, for decisions that choose one. `None` when no label was good
    /// enough.
    pub fn chosen(&self, row: usize) -> Option<LabelId> {
        self.chosen[row]
    }

    /// Whether the row could be decided: all its marginals are finite, or it has a legal state.
    pub fn is_answered(&self, row: usize) -> bool {
        self.answered[row]
    }

    /// How many rows could not be decided.
    pub fn unanswered(&self) -> usize {
        self.answered.iter().filter(|answered| !**answered).count()
    }

    /// Marks a row as answered, and returns its set to be filled.
    pub(super) fn answer(&mut self, row: usize, chosen: Option<LabelId>) -> &mut [bool] {
        self.answered[row] = true;
        self.chosen[row] = chosen;
        &mut self.on[row * self.labels..(row + 1) * self.labels]
    }
}

/// How many rows this number of entries makes.
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
