//! Finds the best label sets of a model by annealing.
//!
//! The search treats hard relations as a finite penalty and moves one-of groups natively. But only
//! legal sets are returned, and [`Model::log_weight`] decides what is legal, never the penalty. An
//! illegal state is repaired by a descent under a penalty a thousand times larger. When the best
//! state was illegal, the search runs again with a penalty eight times larger. For more than one
//! set, the neighbours of the best sets found are added until none of them is better, which costs
//! O(k · n) evaluations.

use crate::numeric::is_usable_score;
use std::collections::HashSet;

use super::problem::Problem;
use super::search::Search;
use super::{AnnealOptions, anneal};
use crate::Error;
use crate::infer::{Answers, Block, Evidence, Kernel, LabelSet};
use crate::model::{Model, Relation};

/// At most this many searches, each with a larger penalty.
const ATTEMPTS: usize = 5;
const REPAIR: f64 = 1e3;
const RAISE: f64 = 8.0;

/// The `k` best label sets found, best first. Empty when no legal set was found; the evidence may
/// leave none.
///
/// # Errors
/// As [`Problem::from_model`], except for [`Error::NoLegalState`]. [`Error::BadScore`] on a score
/// that is NaN, infinite or beyond ±[`SCORE_LIMIT`](crate::numeric::SCORE_LIMIT).
pub fn best(
    model: &Model,
    scores: &[f64],
    evidence: &[Evidence],
    k: usize,
    options: &AnnealOptions,
    seed: u64,
) -> Result<Vec<LabelSet>, Error> {
    if let Some(at) = scores.iter().position(|score| !is_usable_score(*score)) {
        let label = model.names().get(at).cloned().unwrap_or_default();
        return Err(Error::BadScore { row: 0, label });
    }
    let options = AnnealOptions { seed, keep: options.keep.max(4 * k), ..options.clone() };
    let mut penalty = options.penalty.unwrap_or_else(|| penalty(model, scores));
    let mut sets = Sets { model, scores, k, seen: HashSet::new(), best: Vec::new() };
    for _ in 0..ATTEMPTS {
        let problem = match Problem::from_model(model, scores, evidence, penalty) {
            Err(Error::NoLegalState) => return Ok(Vec::new()),
            problem => problem?,
        };
        let outcome = anneal(&problem, &options);
        let legal: Vec<bool> =
            outcome.solutions.iter().map(|solution| sets.add(&solution.state)).collect();
        let best_is_legal = legal.first() == Some(&true);
        if best_is_legal || outcome.interrupted {
            sets.spread(&problem);
            break;
        }
        let strict = Problem::from_model(model, scores, evidence, penalty * REPAIR)?;
        for (solution, _) in outcome.solutions.iter().zip(legal).filter(|(_, legal)| !legal) {
            let mut search = Search::new(&strict, &strict.restrict(&solution.state));
            search.descend();
            sets.add(&strict.expand(&search.state()));
        }
        sets.spread(&problem);
        if options.penalty.is_some() {
            break;
        }
        penalty *= RAISE;
    }
    Ok(sets.best)
}

/// A penalty that no single label can outweigh: twice the most that one label's score and soft
/// relations can contribute.
fn penalty(model: &Model, scores: &[f64]) -> f64 {
    let mut worth: Vec<f64> =
        scores.iter().zip(model.bias()).map(|(score, bias)| (score + bias).abs()).collect();
    let mut pay =
        |at: usize, cost: f64| worth[at] += if cost.is_finite() { cost.abs() } else { 0.0 };
    for relation in model.relations() {
        match relation {
            Relation::Hierarchy { parent, child, cost } => {
                pay(parent.index(), *cost);
                pay(child.index(), *cost);
            }
            Relation::Exclusion { a, b, cost } => {
                pay(a.index(), *cost);
                pay(b.index(), *cost);
            }
            // Counted once, because few members of a group are ever on.
            Relation::Group { labels, cost } => labels.iter().for_each(|id| pay(id.index(), *cost)),
            Relation::Pair { a, b, costs } => costs.as_flattened().iter().for_each(|&cost| {
                pay(a.index(), cost);
                pay(b.index(), cost);
            }),
        }
    }
    if let Some(dense) = model.dense() {
        let costs = dense.edge_cost.iter().chain(&dense.family_cost).filter(|c| c.is_finite());
        let most = costs.fold(0.0, |most: f64, cost| most.max(*cost));
        (0..worth.len()).for_each(|at| worth[at] += most);
    }
    2.0 * worth.iter().copied().fold(0.5, f64::max)
}

/// The best legal sets so far.
struct Sets<'a> {
    model: &'a Model,
    scores: &'a [f64],
    k: usize,
    seen: HashSet<Vec<bool>>,
    best: Vec<LabelSet>,
}

impl Sets<'_> {
    /// Adds a set if it is new. Returns whether it is legal.
    fn add(&mut self, state: &[bool]) -> bool {
        let log_weight = self.model.log_weight(self.scores, state);
        if log_weight == f64::NEG_INFINITY || log_weight.is_nan() {
            return false;
        }
        if self.seen.insert(state.to_vec()) {
            let at = self.best.partition_point(|set| set.log_weight >= log_weight);
            self.best.insert(at, LabelSet { log_weight, on: state.to_vec() });
            self.best.truncate(self.k);
        }
        true
    }

    /// Adds the neighbours of the best sets until they yield nothing better.
    fn spread(&mut self, problem: &Problem) {
        let mut spread: HashSet<Vec<bool>> = HashSet::new();
        while self.k > 1
            && let Some(next) = self.best.iter().find(|set| !spread.contains(&set.on))
        {
            let state = next.on.clone();
            let search = Search::new(problem, &problem.restrict(&state));
            for (energy, neighbour) in search.neighbours() {
                // The energy of a legal set is minus its log-weight, so sets that would not be kept
                // need no evaluation.
                let last = self.best.get(self.k - 1).map_or(f64::INFINITY, |set| -set.log_weight);
                if energy <= last + last.abs() * 1e-9 {
                    self.add(&problem.expand(&neighbour));
                }
            }
            spread.insert(state);
        }
    }
}

/// The engine `anneal`, which finds the best label sets and computes no probabilities.
#[derive(Debug)]
pub(crate) struct BestSets(AnnealOptions);

impl BestSets {
    pub(crate) fn new(options: &AnnealOptions, seed: u64) -> BestSets {
        BestSets(AnnealOptions { seed, ..options.clone() })
    }
}

impl Kernel for BestSets {
    fn operations(&self) -> f64 {
        100.0 * self.0.restarts as f64 * self.0.sweeps as f64
    }

    fn bytes(&self) -> u64 {
        0
    }

    // Engines for best sets are never called for probabilities.
    fn run_single(&self, _: &Block<'_, f32>, _: &mut Answers<'_, f32>) {}

    fn run_double(&self, _: &Block<'_, f64>, _: &mut Answers<'_, f64>) {}

    fn best(
        &self,
        model: &Model,
        block: &Block<'_, f64>,
        row: usize,
        k: usize,
    ) -> Result<Vec<LabelSet>, Error> {
        let evidence: Vec<_> = (0..model.len()).map(|label| block.evidence(row, label)).collect();
        best(model, block.row(row), &evidence, k, &self.0, self.0.seed)
    }
}
