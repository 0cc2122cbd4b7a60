//! Multi-class accuracy, where one class of a list is true in each row.
//!
//! The true class of a row is the one label of the list that is on. Rows without such a class, with
//! several, or with a class whose probability is NaN or infinite, are left out and counted. A row
//! is right at `k` when fewer than `k` *other* classes are at least as probable as the true one.
//! Ties count against the prediction, so that equal probabilities everywhere are never right.
//!
//! The cost is O(rows × classes).

use serde::Serialize;

use super::LabelTable;
use crate::Error;
use crate::graph::LabelId;
use crate::infer::Evidence;
use crate::numeric::Scalar;

/// How often a class was predicted correctly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// The class.
    pub label: LabelId,
    /// How many rows have this class.
    pub rows: usize,
    /// How many of those are right, at each requested `k`.
    pub correct: Vec<usize>,
}

/// Accuracy at one `k`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TopAccuracy {
    /// How many of the most probable classes count as the answer.
    pub k: usize,
    /// The fraction of the rows that is right. `None` without rows.
    pub accuracy: Option<f64>,
    /// The mean, over classes with rows, of the fraction of their rows that is right.
    pub mean_per_class: Option<f64>,
}

/// Multi-class accuracy, with a table of the classes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassReport {
    /// How many rows count.
    pub rows: usize,
    /// Rows left out because no class of the list is on.
    pub without_class: usize,
    /// Rows left out because several classes of the list are on.
    pub ambiguous: usize,
    /// Rows left out because the probability of a class is NaN or infinite.
    pub unanswered: usize,
    /// Accuracy at each requested `k`.
    pub top: Vec<TopAccuracy>,
    /// One entry per class.
    pub classes: Vec<ClassCount>,
}

/// Multi-class accuracy over a list of labels at several values of `k`. Repeated labels count once.
/// Labels that the table leaves out count if they are listed.
///
/// ```
/// use phex::graph::LabelId;
/// use phex::infer::Evidence::{Off, On};
/// use phex::metrics::{LabelTable, class_report};
/// let probabilities = [0.7, 0.2, 0.1, 0.5, 0.4, 0.1];
/// let table = LabelTable::new(3, &probabilities, &[On, Off, Off, Off, On, Off])?;
/// let classes = [LabelId(0), LabelId(1), LabelId(2)];
/// let report = class_report(&table, &classes, &[1, 2])?;
/// assert_eq!(report.top[0].accuracy, Some(0.5));
/// assert_eq!(report.top[1].accuracy, Some(1.0));
/// assert_eq!((report.classes[1].rows, &report.classes[1].correct[..]), (1, &[0, 1][..]));
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// [`Error::LabelOutOfRange`]; [`Error::OutOfRange`] when a `k` is 0.
pub fn class_report<T: Scalar>(
    table: &LabelTable<'_, T>,
    classes: &[LabelId],
    top: &[usize],
) -> Result<ClassReport, Error> {
    let classes = distinct(table, classes)?;
    if top.contains(&0) {
        let (option, range) = ("k of top-k accuracy", "at least 1");
        return Err(Error::OutOfRange { option, value: 0.0, range });
    }
    let count = |&label: &LabelId| ClassCount { label, rows: 0, correct: vec![0; top.len()] };
    let mut report = ClassReport {
        rows: 0,
        without_class: 0,
        ambiguous: 0,
        unanswered: 0,
        top: Vec::new(),
        classes: classes.iter().map(count).collect(),
    };
    for row in 0..table.rows() {
        let truth = match true_class(table, &classes, row) {
            TrueClass::One(at) => at,
            TrueClass::None => {
                report.without_class += 1;
                continue;
            }
            TrueClass::Several => {
                report.ambiguous += 1;
                continue;
            }
            TrueClass::Unanswered => {
                report.unanswered += 1;
                continue;
            }
        };
        let probabilities = table.probabilities(row);
        let own = probabilities[classes[truth].index()];
        // The true class is among the classes that are at least as probable as itself.
        let rank = classes.iter().filter(|class| probabilities[class.index()] >= own).count();
        report.rows += 1;
        report.classes[truth].rows += 1;
        for (correct, &k) in report.classes[truth].correct.iter_mut().zip(top) {
            *correct += usize::from(rank <= k);
        }
    }
    let accuracy = |(at, &k): (usize, &usize)| {
        let correct: usize = report.classes.iter().map(|class| class.correct[at]).sum();
        let seen = report.classes.iter().filter(|class| class.rows > 0);
        let parts = seen.clone().map(|class| class.correct[at] as f64 / class.rows as f64);
        let any = report.rows > 0;
        TopAccuracy {
            k,
            accuracy: any.then(|| correct as f64 / report.rows as f64),
            mean_per_class: any.then(|| parts.sum::<f64>() / seen.count() as f64),
        }
    };
    report.top = top.iter().enumerate().map(accuracy).collect();
    Ok(report)
}

/// The fraction of the rows whose true class is among the `k` most probable. `None` without rows.
///
/// # Errors
/// As [`class_report`].
pub fn top_k_accuracy<T: Scalar>(
    table: &LabelTable<'_, T>,
    classes: &[LabelId],
    k: usize,
) -> Result<Option<f64>, Error> {
    Ok(class_report(table, classes, &[k])?.top[0].accuracy)
}

/// The mean, over classes, of the fraction of their rows for which they are the most probable
/// class.
///
/// # Errors
/// As [`class_report`].
pub fn mean_accuracy_per_class<T: Scalar>(
    table: &LabelTable<'_, T>,
    classes: &[LabelId],
) -> Result<Option<f64>, Error> {
    Ok(class_report(table, classes, &[1])?.top[0].mean_per_class)
}

/// The true class of a row, as an index into the classes.
pub(super) enum TrueClass {
    One(usize),
    None,
    Several,
    Unanswered,
}

pub(super) fn true_class<T: Scalar>(
    table: &LabelTable<'_, T>,
    classes: &[LabelId],
    row: usize,
) -> TrueClass {
    let truths = table.truths(row);
    let on = |class: &&LabelId| truths[class.index()] == Evidence::On;
    match classes.iter().filter(on).count() {
        0 => return TrueClass::None,
        1 => {}
        _ => return TrueClass::Several,
    }
    let probabilities = table.probabilities(row);
    if !classes.iter().all(|class| probabilities[class.index()].is_finite()) {
        return TrueClass::Unanswered;
    }
    classes.iter().position(|class| on(&class)).map_or(TrueClass::None, TrueClass::One)
}

/// The labels in ascending order, each once.
pub(super) fn distinct<T: Scalar>(
    table: &LabelTable<'_, T>,
    classes: &[LabelId],
) -> Result<Vec<LabelId>, Error> {
    table.check_labels(classes)?;
    let mut classes = classes.to_vec();
    classes.sort_unstable();
    classes.dedup();
    Ok(classes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::infer::Evidence::{Off, On, Unknown};

    const ALL: [LabelId; 3] = [LabelId(0), LabelId(1), LabelId(2)];

    #[test]
    fn classes_have_equal_weight_whatever_their_number_of_rows() {
        // Three rows of class 0, two of which are right. One row of class 2, wrong at 1 and right
        // at 2.
        let probabilities = [0.8f32, 0.1, 0.1, 0.6, 0.3, 0.1, 0.2, 0.5, 0.3, 0.5, 0.1, 0.4];
        let truths = [On, Off, Off, On, Off, Off, On, Unknown, Off, Off, Off, On];
        let table = LabelTable::new(3, &probabilities, &truths).unwrap();
        assert_eq!(top_k_accuracy(&table, &ALL, 1).unwrap(), Some(0.5));
        assert_eq!(top_k_accuracy(&table, &ALL, 2).unwrap(), Some(0.75));
        assert_eq!(top_k_accuracy(&table, &ALL, 9).unwrap(), Some(1.0));
        let mean = mean_accuracy_per_class(&table, &ALL).unwrap().unwrap();
        assert!((mean - (2.0 / 3.0 + 0.0) / 2.0).abs() < 1e-15);
    }

    #[test]
    fn ties_count_against_the_prediction() {
        let table = LabelTable::new(3, &[0.5, 0.5, 0.0], &[On, Off, Off]).unwrap();
        let twice = [LabelId(1), LabelId(0), LabelId(0)];
        assert_eq!(top_k_accuracy(&table, &twice, 1).unwrap(), Some(0.0));
        assert_eq!(top_k_accuracy(&table, &twice, 2).unwrap(), Some(1.0));
    }

    #[test]
    fn rows_that_do_not_count_are_counted() {
        let nan = f64::NAN;
        let probabilities = [0.5, 0.2, 0.1, 0.5, 0.2, 0.1, nan, nan, nan, 0.5, 0.2, 0.1];
        let truths = [Off, Unknown, Off, On, On, Off, On, Off, Off, Off, Off, On];
        let table = LabelTable::new(3, &probabilities, &truths).unwrap();
        let report = class_report(&table, &ALL, &[1, 3]).unwrap();
        let left_out = (report.without_class, report.ambiguous, report.unanswered);
        assert_eq!((report.rows, left_out), (1, (1, 1, 1)));
        assert_eq!(class_report(&table, &[], &[1]).unwrap().top[0].accuracy, None);
        assert!(class_report(&table, &ALL, &[0]).is_err());
        assert!(class_report(&table, &[LabelId(3)], &[1]).is_err());
    }
}
