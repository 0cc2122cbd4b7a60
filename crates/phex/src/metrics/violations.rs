//! Counts the relations that predictions violate.
//!
//! A *label set* violates a hierarchy edge by a child without its parent, an exclusion by each pair
//! that is on, a one-of group when not exactly one label is on, and a table of costs
//! (`Relation::Pair`) by a state of infinite cost, which is counted with the exclusions.
//!
//! *Probabilities* are violations when no distribution over legal sets has them. Beyond a tolerance
//! `ε`, they violate a hierarchy edge by `p_child > p_parent + ε`, an exclusion by each pair with
//! `p_a + p_b > 1 + ε`, and a one-of group by `|Σ p − 1| > ε`. For dense forests only the direct
//! edges and the families of siblings are checked, because they imply the rest. Soft relations are
//! checked like hard ones. Relations of cost 0 are not.
//!
//! The cost is O(rows × members of relations), for probabilities times a logarithm of the size of
//! groups.

use rayon::prelude::*;
use serde::Serialize;

use super::LabelTable;
use crate::Error;
use crate::decide::Decisions;
use crate::graph::LabelId;
use crate::model::{DenseForest, Model, Relation};
use crate::numeric::Scalar;

/// How many relations are violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Violations {
    /// Violated hierarchy edges, over all rows.
    pub hierarchy: u64,
    /// Violated pairs of exclusions, and forbidden states of pairs.
    pub exclusion: u64,
    /// Violated one-of groups.
    pub one_of: u64,
    /// Rows that violate anything.
    pub violating_rows: u64,
    /// How many rows were checked. Rows without an answer are not.
    pub rows: u64,
}

impl Violations {
    /// The number of violations of all kinds.
    pub fn total(&self) -> u64 {
        self.hierarchy + self.exclusion + self.one_of
    }

    /// Finishes the counts of one row.
    fn row(mut self) -> Violations {
        self.rows = 1;
        self.violating_rows = u64::from(self.total() > 0);
        self
    }

    fn add(self, other: Violations) -> Violations {
        Violations {
            hierarchy: self.hierarchy + other.hierarchy,
            exclusion: self.exclusion + other.exclusion,
            one_of: self.one_of + other.one_of,
            violating_rows: self.violating_rows + other.violating_rows,
            rows: self.rows + other.rows,
        }
    }
}

/// The relations of a model that label sets violate.
///
/// ```
/// use phex::{decide::Decisions, graph::GraphBuilder, metrics::set_violations, model::Model};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).exclusion("dog", "car", None);
/// let model = Model::new(&builder.build()?)?;
/// // A dog that is not an animal, and also a car; then an animal.
/// let sets = Decisions::from_sets(3, vec![false, true, true, true, false, false])?;
/// let violations = set_violations(&model, &sets)?;
/// assert_eq!((violations.hierarchy, violations.exclusion), (1, 1));
/// assert_eq!((violations.violating_rows, violations.rows), (1, 2));
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// [`Error::Columns`] when the sets do not have as many labels as the model.
pub fn set_violations(model: &Model, sets: &Decisions) -> Result<Violations, Error> {
    let (expected, found) = (model.len(), sets.labels());
    if expected != found {
        return Err(Error::Columns { expected, found });
    }
    let row = |row: usize| {
        let state = sets.row(row);
        let on = |id: LabelId| state[id.index()];
        let mut found = Violations::default();
        for relation in model.relations() {
            match relation {
                Relation::Pair { .. } => {
                    found.exclusion += u64::from(relation.cost(on) == f64::INFINITY);
                }
                Relation::Hierarchy { cost, .. } if *cost > 0.0 => {
                    found.hierarchy += relation.violations(on) as u64;
                }
                Relation::Exclusion { cost, .. } | Relation::Group { cost, .. } if *cost > 0.0 => {
                    found.exclusion += relation.violations(on) as u64;
                }
                _ => {}
            }
        }
        if let Some(dense) = model.dense() {
            let violations = dense.violations(state);
            let (edges, families) = violations.split_at(state.len());
            found.hierarchy += costly(edges, &dense.edge_cost);
            found.exclusion += costly(families, &dense.family_cost);
        }
        for group in model.one_of() {
            found.one_of += u64::from(group.labels.iter().filter(|id| on(**id)).count() != 1);
        }
        found.row()
    };
    let rows = (0..sets.rows()).into_par_iter().filter(|&row| sets.is_answered(row));
    Ok(rows.map(row).reduce(Violations::default, Violations::add))
}

/// How many violations have a cost.
fn costly(violations: &[f64], costs: &[f64]) -> u64 {
    violations.iter().zip(costs).filter(|(_, cost)| **cost > 0.0).map(|(v, _)| *v as u64).sum()
}

/// The relations of a model that probabilities violate by more than a tolerance. Rows with a NaN or
/// infinite probability are left out, and truths are ignored.
///
/// ```
/// use phex::infer::Evidence::Unknown;
/// use phex::{graph::GraphBuilder, metrics::{LabelTable, probability_violations}, model::Model};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).exclusion("dog", "car", None);
/// let model = Model::new(&builder.build()?)?;
/// let table = LabelTable::new(3, &[0.5, 0.7, 0.4, 0.5, 0.5, 0.5], &[Unknown; 6])?;
/// let violations = probability_violations(&model, &table, 1e-6)?;
/// assert_eq!((violations.hierarchy, violations.exclusion), (1, 1));
/// assert_eq!((violations.violating_rows, violations.rows), (1, 2));
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// [`Error::Columns`] when the table does not have as many labels as the model.
/// [`Error::OutOfRange`] for a tolerance that is negative or NaN.
pub fn probability_violations<T: Scalar>(
    model: &Model,
    table: &LabelTable<'_, T>,
    tolerance: f64,
) -> Result<Violations, Error> {
    table.check_width(model.len())?;
    if tolerance.is_nan() || tolerance < 0.0 {
        let (option, range) = ("the tolerance of violations", "0 or more");
        return Err(Error::OutOfRange { option, value: tolerance, range });
    }
    let families = model.dense().map(families).unwrap_or_default();
    let row = |row: usize| {
        let probabilities = table.probabilities(row);
        let p = |id: LabelId| probabilities[id.index()].to_f64();
        let above = |child: LabelId, parent: LabelId| u64::from(p(child) > p(parent) + tolerance);
        let mut found = Violations::default();
        for relation in model.relations() {
            match relation {
                Relation::Hierarchy { parent, child, cost } if *cost > 0.0 => {
                    found.hierarchy += above(*child, *parent);
                }
                Relation::Exclusion { a, b, cost } if *cost > 0.0 => {
                    found.exclusion += u64::from(p(*a) + p(*b) > 1.0 + tolerance);
                }
                Relation::Group { labels, cost } if *cost > 0.0 => {
                    found.exclusion += heavy_pairs(labels.iter().map(|&id| p(id)), tolerance);
                }
                _ => {}
            }
        }
        if let Some(dense) = model.dense() {
            for (child, parent) in dense.parent.iter().enumerate() {
                if let Some(parent) = parent.filter(|_| dense.edge_cost[child] > 0.0) {
                    found.hierarchy += above(LabelId::from(child), parent);
                }
            }
            for family in &families {
                found.exclusion += heavy_pairs(family.iter().map(|&id| p(id)), tolerance);
            }
        }
        for group in model.one_of() {
            let sum: f64 = group.labels.iter().map(|&id| p(id)).sum();
            found.one_of += u64::from((sum - 1.0).abs() > tolerance);
        }
        found.row()
    };
    let answered = |row: &usize| table.probabilities(*row).iter().all(|p| p.is_finite());
    let rows = (0..table.rows()).into_par_iter().filter(answered);
    Ok(rows.map(row).reduce(Violations::default, Violations::add))
}

/// The exclusive families of siblings of a dense forest, the roots last.
fn families(dense: &DenseForest) -> Vec<Vec<LabelId>> {
    let mut families: Vec<Vec<LabelId>> = vec![Vec::new(); dense.family_cost.len()];
    for (label, parent) in dense.parent.iter().enumerate() {
        families[parent.map_or(dense.parent.len(), LabelId::index)].push(LabelId::from(label));
    }
    let exclusive = families.into_iter().zip(&dense.family_cost).filter(|(_, cost)| **cost > 0.0);
    exclusive.map(|(family, _)| family).collect()
}

/// How many pairs add up to more than 1.
fn heavy_pairs(probabilities: impl Iterator<Item = f64>, tolerance: f64) -> u64 {
    let mut all: Vec<f64> = probabilities.collect();
    let most = all.iter().copied().fold(0.0, f64::max);
    // Usually one label is likely and the others are not, so few are left to sort.
    all.retain(|p| p + most > 1.0 + tolerance);
    all.sort_unstable_by(f64::total_cmp);
    let (mut low, mut pairs) = (0, 0);
    for high in (0..all.len()).rev() {
        while low < all.len() && all[low] + all[high] <= 1.0 + tolerance {
            low += 1;
        }
        // Partners from `low` up, below `high` in the list, so that each pair counts once.
        if low >= high {
            break;
        }
        pairs += (high - low) as u64;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_pairs_match_a_count_pair_by_pair() {
        let mut seed = 7u64;
        for case in 0..500 {
            let draw = |_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 60) as f64 / 15.0
            };
            let all: Vec<f64> = (0..case % 9).map(draw).collect();
            let pairs = (0..all.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
            let heavy = pairs.filter(|&(a, b)| all[a] + all[b] > 1.0 + 1e-6).count();
            assert_eq!(heavy_pairs(all.iter().copied(), 1e-6), heavy as u64, "{all:?}");
        }
    }
}
