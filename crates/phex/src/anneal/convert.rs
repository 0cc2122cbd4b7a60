//! Converts Ising forms and label models to problems.
//!
//! The energy of a label model is minus its log-weight, so the best label set has the lowest
//! energy. Hard relations become a finite penalty `P`. What the evidence decides through them is
//! fixed first, by unit propagation, which costs O(relations · depth). One-of groups and exclusion
//! groups are kept as they are. Dense semantics on a forest are written out as pairs, which costs
//! O(n² · depth).

use super::builder::Builder;
use super::problem::Problem;
use crate::Error;
use crate::infer::Evidence;
use crate::model::{Ising, Model, Relation};

/// Dense semantics with more pairs are refused.
const MAX_PAIRS: u64 = 4_000_000;

impl Problem {
    /// The energy of spins `y = 2x − 1`, as in [`Ising::energy`].
    ///
    /// # Errors
    /// [`Error::Quadratic`] when a term is not finite or names a spin that does not exist.
    pub fn from_ising(ising: &Ising) -> Result<Problem, Error> {
        let mut builder = Builder::new(ising.h.len());
        add_ising(&mut builder, ising)?;
        builder.build()
    }

    /// Minus the log-weight of a label set, with `penalty` in place of an infinite cost.
    ///
    /// # Errors
    /// [`Error::Columns`] when there is not one score and one entry of evidence per label.
    /// [`Error::NoLegalState`] when the evidence leaves no legal state. [`Error::TooManyPairs`] for
    /// dense semantics on a large forest. [`Error::Quadratic`] when a term is not finite.
    pub fn from_model(
        model: &Model,
        scores: &[f64],
        evidence: &[Evidence],
        penalty: f64,
    ) -> Result<Problem, Error> {
        let n = model.len();
        for found in [scores.len(), evidence.len()] {
            if found != n {
                return Err(Error::Columns { expected: n, found });
            }
        }
        let mut builder = Builder::new(n);
        for (at, decided) in propagate(model, evidence)?.into_iter().enumerate() {
            decided.into_iter().for_each(|on| {
                builder.fix(at, on);
            });
        }
        for group in model.one_of() {
            builder.one_of(&group.labels.iter().map(|id| id.index()).collect::<Vec<_>>());
        }
        if model.dense().is_some() {
            let pairs = (n as u64) * (n as u64) / 2;
            if pairs > MAX_PAIRS {
                return Err(Error::TooManyPairs {
                    operation: "annealing with dense semantics",
                    pairs,
                    limit: MAX_PAIRS,
                    help: "use `count`, which keeps the pairs implicit, or sparse semantics",
                });
            }
            // The groups stay groups in the problem and do not become penalties.
            let without_groups = Model { one_of: Vec::new(), ..model.clone() };
            add_ising(&mut builder, &without_groups.to_ising(scores, Some(penalty))?)?;
            return builder.build();
        }
        builder.constant(-model.constant());
        for (at, (score, bias)) in scores.iter().zip(model.bias()).enumerate() {
            builder.linear(at, -(score + bias));
        }
        model.relations().iter().for_each(|relation| add(&mut builder, relation, penalty));
        builder.build()
    }
}

fn add_ising(builder: &mut Builder, ising: &Ising) -> Result<(), Error> {
    // J y_a y_b = 4J x_a x_b − 2J x_a − 2J x_b + J, and h y = 2h x − h.
    let n = ising.h.len();
    builder.constant(ising.offset - ising.h.iter().sum::<f64>());
    ising.h.iter().enumerate().for_each(|(at, h)| {
        builder.linear(at, 2.0 * h);
    });
    for &(a, b, j) in &ising.j {
        if a >= n || b >= n || a == b {
            let reason = format!("there is a coupling of spins {a} and {b}, but only {n} spins");
            return Err(Error::Quadratic { reason });
        }
        builder.constant(j).linear(a, -2.0 * j).linear(b, -2.0 * j).pair(a, b, 4.0 * j);
    }
    Ok(())
}

fn add(builder: &mut Builder, relation: &Relation, penalty: f64) {
    let finite = |cost: f64| if cost == f64::INFINITY { penalty } else { cost };
    match relation {
        Relation::Hierarchy { parent, child, cost } => {
            let cost = finite(*cost);
            builder.linear(child.index(), cost).pair(parent.index(), child.index(), -cost);
        }
        Relation::Exclusion { a, b, cost } => {
            builder.pair(a.index(), b.index(), finite(*cost));
        }
        Relation::Group { labels, cost } => {
            let labels: Vec<usize> = labels.iter().map(|id| id.index()).collect();
            builder.counter(&labels, finite(*cost));
        }
        Relation::Pair { a, b, costs } => {
            let (a, b) = (a.index(), b.index());
            let [[none, only_b], [only_a, both]] = costs.map(|row| row.map(finite));
            builder.constant(none).linear(a, only_a - none).linear(b, only_b - none);
            builder.pair(a, b, both - only_a - only_b + none);
        }
    }
}

/// What the evidence decides through hard relations and one-of groups.
fn propagate(model: &Model, evidence: &[Evidence]) -> Result<Vec<Option<bool>>, Error> {
    let mut decided: Vec<Option<bool>> = evidence.iter().map(|label| label.is_on()).collect();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        let mut set = |at: usize, on: bool, decided: &mut [Option<bool>]| match decided[at] {
            Some(value) if value != on => Err(Error::NoLegalState),
            Some(_) => Ok(()),
            None => {
                changed = true;
                decided[at] = Some(on);
                Ok(())
            }
        };
        let groups = model.one_of().iter().map(|group| (&group.labels, true));
        let excluding = model.relations().iter().filter_map(|relation| match relation {
            Relation::Group { labels, cost } if *cost == f64::INFINITY => Some((labels, false)),
            _ => None,
        });
        for (labels, one_is_on) in groups.chain(excluding) {
            if let Some(&on) = labels.iter().find(|id| decided[id.index()] == Some(true)) {
                for id in labels.iter().filter(|id| **id != on) {
                    set(id.index(), false, &mut decided)?;
                }
            } else if one_is_on {
                let mut open = labels.iter().filter(|id| decided[id.index()].is_none());
                match (open.next(), open.next()) {
                    (None, _) => return Err(Error::NoLegalState),
                    (Some(last), None) => set(last.index(), true, &mut decided)?,
                    _ => {}
                }
            }
        }
        for (a, b, illegal) in model.relations().iter().filter_map(hard_table) {
            // A value is impossible when every open state of the other label is illegal.
            for value in [false, true] {
                let open =
                    |decided: Option<bool>, at: bool| decided.is_none_or(|decided| decided == at);
                let out = |illegal: &dyn Fn(bool) -> bool, other: Option<bool>| {
                    [false, true].into_iter().all(|at| illegal(at) || !open(other, at))
                };
                if out(&|at| illegal[usize::from(value)][usize::from(at)], decided[b]) {
                    set(a, !value, &mut decided)?;
                }
                if out(&|at| illegal[usize::from(at)][usize::from(value)], decided[a]) {
                    set(b, !value, &mut decided)?;
                }
            }
        }
    }
    Ok(decided)
}

/// The states `[a][b]` that a relation between two labels forbids, if any.
fn hard_table(relation: &Relation) -> Option<(usize, usize, [[bool; 2]; 2])> {
    let hard = f64::INFINITY;
    match relation {
        Relation::Hierarchy { parent, child, cost } if *cost == hard => {
            Some((parent.index(), child.index(), [[false, true], [false, false]]))
        }
        Relation::Exclusion { a, b, cost } if *cost == hard => {
            Some((a.index(), b.index(), [[false, false], [false, true]]))
        }
        Relation::Pair { a, b, costs } if costs.as_flattened().contains(&hard) => {
            Some((a.index(), b.index(), costs.map(|row| row.map(|cost| cost == hard))))
        }
        _ => None,
    }
}
