//! Hierarchical precision, recall and F (Kiritchenko et al. 2005).
//!
//! Predicted and true sets are extended by all ancestors, to `P̂` and `T̂`, and summed over rows:
//! `hP = Σ|P̂ ∩ T̂| / Σ|P̂|`, `hR = Σ|P̂ ∩ T̂| / Σ|T̂|`, `hF = 2 hP hR / (hP + hR)`.
//!
//! A label above one that is on counts as on, whatever its truth in the table. A label whose truth
//! is still unknown, or that the table leaves out (usually the root), counts in neither set. Rows
//! without a decision, or without any known truth, are left out. The cost is O(rows × (labels +
//! edges)).

use rayon::prelude::*;
use serde::Serialize;

use super::LabelTable;
use super::sets::ratio;
use crate::Error;
use crate::decide::Decisions;
use crate::graph::{RelationGraph, Topology};
use crate::infer::Evidence;
use crate::numeric::Scalar;

/// Hierarchical precision, recall and F.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct HierarchicalScores {
    /// The fraction of the predicted labels that is true.
    pub precision: Option<f64>,
    /// The fraction of the true labels that is predicted.
    pub recall: Option<f64>,
    /// Their harmonic mean.
    pub f: Option<f64>,
    /// Predicted labels with their ancestors, over all rows.
    pub predicted: u64,
    /// True labels with their ancestors.
    pub actual: u64,
    /// Labels in both.
    pub shared: u64,
    /// How many rows count.
    pub rows: usize,
}

/// Hierarchical scores of label sets.
///
/// ```
/// use phex::decide::Decisions;
/// use phex::graph::GraphBuilder;
/// use phex::infer::Evidence::{Off, On};
/// use phex::metrics::{LabelTable, hierarchical_scores};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
/// let graph = builder.build()?;
/// // A cat predicted as a dog is half right, because both are animals.
/// let table = LabelTable::new(3, &[0.9, 0.6, 0.3], &[On, Off, On])?;
/// let sets = Decisions::from_sets(3, vec![false, true, false])?;
/// let scores = hierarchical_scores(&graph, &table, &sets)?;
/// assert_eq!((scores.precision, scores.recall, scores.f), (Some(0.5), Some(0.5), Some(0.5)));
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// [`Error::Columns`] or [`Error::Shape`] when graph, table and sets do not have the same shape.
pub fn hierarchical_scores<T: Scalar>(
    graph: &RelationGraph,
    table: &LabelTable<'_, T>,
    sets: &Decisions,
) -> Result<HierarchicalScores, Error> {
    table.check_width(graph.len())?;
    table.check_sets(sets)?;
    let topology = graph.topology();
    let row = |row: usize| {
        let truths = table.truths(row);
        let any = truths.iter().any(|truth| *truth != Evidence::Unknown);
        if !sets.is_answered(row) || !any {
            return [0; 4];
        }
        let mut predicted = sets.row(row).to_vec();
        let mut actual: Vec<bool> = truths.iter().map(|truth| *truth == Evidence::On).collect();
        close_upwards(topology, &mut predicted);
        close_upwards(topology, &mut actual);
        let counts = |label: &usize| {
            let known = actual[*label] || truths[*label] == Evidence::Off;
            known && !table.is_left_out(*label)
        };
        let mut sums = [0, 0, 0, 1];
        for label in (0..truths.len()).filter(counts) {
            sums[0] += u64::from(predicted[label]);
            sums[1] += u64::from(actual[label]);
            sums[2] += u64::from(predicted[label] && actual[label]);
        }
        sums
    };
    let add = |a: [u64; 4], b: [u64; 4]| std::array::from_fn(|at| a[at] + b[at]);
    let sums = (0..table.rows()).into_par_iter().map(row).reduce(|| [0; 4], add);
    let [predicted, actual, shared, rows] = sums;
    Ok(HierarchicalScores {
        precision: ratio(shared, predicted),
        recall: ratio(shared, actual),
        // 2PR / (P + R) in counts.
        f: ratio(2 * shared, predicted + actual),
        predicted,
        actual,
        shared,
        rows: rows as usize,
    })
}

/// Turns on every label above one that is on.
fn close_upwards(topology: &Topology, on: &mut [bool]) {
    // Children before parents.
    for &label in topology.order().iter().rev() {
        if on[label.index()] {
            for parent in topology.parents(label) {
                on[parent.index()] = true;
            }
        }
    }
}
