//! Rows whose scores are so large that rounding them could change the answer.
//!
//! Engines add scores, so an answer is as precise as the largest score allows: next to 10¹⁶, a score
//! of 1 is lost. Rows with scores beyond [`Number::LARGE`] are therefore taken out of their block and
//! answered one by one, in double precision.
//!
//! Beyond [`LARGE`], labels whose score outweighs everything else are *decided* first, and the row is
//! conditioned on them. Sort the unknown labels by |score|, and cut the list where
//!
//! ```text
//! |s_k| > 2 Σ_{j > k} |s_j| + costs + n ln 2 + MARGIN
//! ```
//!
//! If some legal state has all labels before a cut on their preferred side (on for a positive score),
//! then all other states together weigh less than e^−MARGIN of those. If there is none, the best state
//! under the scores before the cut is compared with the best one for each of these labels turned
//! over. What is left undecided nearly cancels. It is summed as it is, and the row's error is bounded
//! by the rounding of these sums.
//!
//! A row costs a few passes more. Such rows are rare: scores are logits, and those of classifiers
//! stay below a hundred.

use super::kernel::Kernel;
use super::{Answers, Block, Evidence};
use crate::model::{Model, Relation};

/// Above this, labels are decided before the others are computed.
pub(crate) const LARGE: f64 = 1e6;

/// How much more a decided label weighs, in nats. e⁻⁶⁰ is far below the precision of doubles.
const MARGIN: f64 = 60.0;

/// At most this many labels are turned over one by one.
const MOST_TURNED: usize = 64;

/// Rounding errors of marginals below this count as exact.
const NEGLIGIBLE: f64 = 1e-6;

/// The answer for one row.
#[derive(Debug)]
pub(super) struct ExtremeAnswer {
    pub(super) marginals: Vec<f64>,
    pub(super) expectations: Option<Vec<f64>>,
    pub(super) log_partition: f64,
    pub(super) error: f64,
}

/// A row conditioned on its decided labels.
#[derive(Debug)]
pub(super) struct Conditioned {
    pub(super) scores: Vec<f64>,
    pub(super) evidence: Vec<Evidence>,
    /// The scores of the decided labels that are on.
    pub(super) offset: f64,
    /// A bound on the error of marginals from rounding the other scores.
    rounding: f64,
}

/// How much the relations can add to the log-weight of one state and not of another, at most.
pub(super) fn spread(model: &Model) -> f64 {
    let finite = |cost: f64| if cost.is_finite() { cost.abs() } else { 0.0 };
    let relation = |relation: &Relation| match relation {
        Relation::Hierarchy { cost, .. } | Relation::Exclusion { cost, .. } => finite(*cost),
        Relation::Group { labels, cost } => finite(*cost) * (labels.len() * labels.len()) as f64,
        Relation::Pair { costs, .. } => {
            costs.iter().flatten().map(|&cost| 2.0 * finite(cost)).sum()
        }
    };
    let sparse: f64 = model.relations().iter().map(relation).sum();
    let n = model.len() as f64;
    let dense = model.dense().map_or(0.0, |dense| {
        let costs = dense.edge_cost.iter().chain(&dense.family_cost);
        costs.map(|&cost| finite(cost)).sum::<f64>() * n * n
    });
    sparse + dense
}

/// Answers one row. `spread` is that of the model.
pub(super) fn answer(
    kernel: &dyn Kernel,
    model: &Model,
    spread: f64,
    scores: Vec<f64>,
    evidence: Vec<Evidence>,
    expectations: bool,
) -> ExtremeAnswer {
    let row = condition(kernel, model, spread, scores, evidence);
    let mut answer = run(kernel, model, &row.scores, &row.evidence, expectations);
    answer.log_partition += row.offset;
    answer.error = answer.error.max(row.rounding);
    answer
}

/// Decides what can be decided.
pub(super) fn condition(
    kernel: &dyn Kernel,
    model: &Model,
    spread: f64,
    scores: Vec<f64>,
    evidence: Vec<Evidence>,
) -> Conditioned {
    let mut row = Conditioned { scores, evidence, offset: 0.0, rounding: 0.0 };
    for label in 0..model.len() {
        let known = row.evidence[label];
        if known != Evidence::Unknown {
            row.fix(model, label, known);
        }
    }
    let total = |row: &Conditioned, label: usize| row.scores[label] + model.bias()[label];
    let unknown = (0..model.len()).filter(|&label| row.evidence[label] == Evidence::Unknown);
    let mut order: Vec<usize> = unknown.collect();
    order.sort_by(|&a, &b| total(&row, b).abs().total_cmp(&total(&row, a).abs()));
    let fixed = spread + model.len() as f64 * std::f64::consts::LN_2 + MARGIN;
    let mut rest: f64 = order.iter().map(|&label| total(&row, label).abs()).sum();
    let mut level = Vec::new();
    for &label in &order {
        let size = total(&row, label).abs();
        if size <= LARGE {
            break;
        }
        rest -= size;
        level.push(label);
        // `rest` was computed by subtraction, which leaves rounding errors of the larger scores.
        let below = order.iter().rev().take_while(|&&l| l != label).map(|&l| total(&row, l).abs());
        let below = if rest < size { below.sum() } else { rest };
        if size > 2.0 * below + fixed
            && !row.decide(kernel, model, std::mem::take(&mut level), 2.0 * below + fixed)
        {
            break;
        }
    }
    let undecided = order.iter().filter(|&&label| row.evidence[label] == Evidence::Unknown);
    let left: f64 = undecided.map(|&label| total(&row, label).abs()).sum();
    let rounding = (8.0 * f64::EPSILON * left).min(1.0);
    row.rounding = if rounding > NEGLIGIBLE { rounding } else { 0.0 };
    row
}

impl Conditioned {
    /// Takes a label out of the sums.
    fn fix(&mut self, model: &Model, label: usize, known: Evidence) {
        self.evidence[label] = known;
        let bias = model.bias()[label];
        if known == Evidence::On {
            self.offset += self.scores[label] + bias;
        }
        self.scores[label] = -bias;
    }

    /// Decides the labels of a level, whose scores outweigh all smaller ones by `gap` or more.
    /// Answers whether it could.
    fn decide(&mut self, kernel: &dyn Kernel, model: &Model, level: Vec<usize>, gap: f64) -> bool {
        let on = |row: &Conditioned, label: usize| row.scores[label] + model.bias()[label] > 0.0;
        let neutral: Vec<f64> = model.bias().iter().map(|bias| -bias).collect();
        let possible = |evidence: &[Evidence]| {
            run(kernel, model, &neutral, evidence, false).log_partition > f64::NEG_INFINITY
        };
        let mut preferred = self.evidence.clone();
        level.iter().for_each(|&label| preferred[label] = Evidence::known(on(self, label)));
        if !possible(&preferred) {
            let turned = match level[..] {
                [label] => {
                    preferred[label] = Evidence::known(!on(self, label));
                    possible(&preferred)
                }
                _ => self.turn_over(kernel, model, &neutral, &level, gap, &mut preferred),
            };
            if !turned {
                return false;
            }
        }
        for label in level {
            self.fix(model, label, preferred[label]);
        }
        true
    }

    /// Whether the best state under the scores of the level alone outweighs all that differ from it
    /// there. If so, `best` gets its labels.
    fn turn_over(
        &self,
        kernel: &dyn Kernel,
        model: &Model,
        neutral: &[f64],
        level: &[usize],
        gap: f64,
        best: &mut [Evidence],
    ) -> bool {
        if level.len() > MOST_TURNED {
            return false;
        }
        let mut scores = neutral.to_vec();
        level.iter().for_each(|&label| scores[label] = self.scores[label]);
        let top = |evidence: &[Evidence]| {
            let block = Block::new(scores.len(), &scores).with_evidence(evidence);
            kernel.best(model, &block, 0, 1).map(|mut sets| sets.pop())
        };
        let Ok(Some(first)) = top(&self.evidence) else { return false };
        for &label in level {
            let mut turned = self.evidence.clone();
            turned[label] = Evidence::known(!first.on[label]);
            match top(&turned) {
                Ok(None) => {}
                Ok(Some(second)) if first.log_weight - second.log_weight > gap => {}
                _ => return false,
            }
        }
        level.iter().for_each(|&label| best[label] = Evidence::known(first.on[label]));
        true
    }
}

/// Runs a kernel on one row.
fn run(
    kernel: &dyn Kernel,
    model: &Model,
    scores: &[f64],
    evidence: &[Evidence],
    expectations: bool,
) -> ExtremeAnswer {
    let mut answer = ExtremeAnswer {
        marginals: vec![0.0; model.len()],
        expectations: expectations.then(|| vec![0.0; model.terms()]),
        log_partition: 0.0,
        error: 0.0,
    };
    let block = Block::new(model.len(), scores).with_evidence(evidence);
    let mut answers = Answers {
        marginals: &mut answer.marginals,
        log_partition: std::slice::from_mut(&mut answer.log_partition),
        expectations: answer.expectations.as_deref_mut(),
        error: std::slice::from_mut(&mut answer.error),
        diagnosis: &mut [],
        standard_errors: None,
    };
    kernel.run_double(&block, &mut answers);
    answer
}
