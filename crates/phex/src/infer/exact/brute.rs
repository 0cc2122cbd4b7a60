//! `brute` sums over all 2ⁿ states of up to 20 labels. It is the oracle for the other engines.
//!
//! The costs of the states are computed once. A row costs O(2ⁿ · n).

use crate::infer::{Answers, Block, Evidence, LabelSet, Unfit};
use crate::infer::{Kernel, forward_sets_to_own, forward_to_own};
use crate::model::Model;
use crate::numeric::{Scalar, log_max};

/// Models with more labels are refused.
pub(crate) const MAX_LABELS: usize = 20;

/// The legal states and their log-weights under scores of zero.
#[derive(Debug)]
pub(crate) struct Brute {
    states: Vec<(u32, f64)>,
    /// `violations[state · terms + term]`.
    violations: Vec<f64>,
    terms: usize,
    labels: usize,
}

impl Brute {
    pub(crate) fn compile(model: &Model) -> Result<Brute, Unfit> {
        let n = model.len();
        if n > MAX_LABELS {
            return Err(Unfit::Shape(format!(
                "it can handle at most {MAX_LABELS} labels; this graph has {n}"
            )));
        }
        let zeros = vec![0.0; n];
        let mut states = Vec::new();
        let mut violations = Vec::new();
        for bits in 0..1u32 << n {
            let state: Vec<bool> = (0..n).map(|label| bits >> label & 1 == 1).collect();
            let weight = model.log_weight(&zeros, &state);
            if weight > f64::NEG_INFINITY {
                states.push((bits, weight));
                match model.dense() {
                    Some(dense) => violations.extend(dense.violations(&state)),
                    None => violations.extend(
                        model.relations().iter().map(|r| r.violations(|id| state[id.index()])),
                    ),
                }
            }
        }
        Ok(Brute { states, violations, terms: model.terms(), labels: n })
    }

    pub(crate) fn operations(&self) -> f64 {
        (self.states.len() * self.labels) as f64
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.states.len() * 16 + self.violations.len() * 8) as u64
    }

    /// The log-weights of the states that agree with the evidence, with their positions.
    fn weights<T: Scalar>(&self, block: &Block<'_, T>, row: usize) -> Vec<(usize, f64)> {
        let (mut on, mut off) = (0u32, 0u32);
        for label in 0..self.labels {
            match block.evidence(row, label) {
                Evidence::On => on |= 1 << label,
                Evidence::Off => off |= 1 << label,
                Evidence::Unknown => {}
            }
        }
        let scores = block.row(row);
        let states = self.states.iter().enumerate();
        states
            .filter(|(_, (bits, _))| bits & on == on && bits & off == 0)
            .map(|(at, &(bits, weight))| {
                let labels = (0..self.labels).filter(|label| bits >> label & 1 == 1);
                (at, weight + labels.map(|label| scores[label].to_f64()).sum::<f64>())
            })
            .collect()
    }

    pub(crate) fn run<T: Scalar>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        for row in 0..block.rows() {
            answers.error[row] = 0.0;
            let weights = self.weights(block, row);
            let most = log_max(weights.iter().map(|w| w.1));
            let total: f64 = weights.iter().map(|w| (w.1 - most).exp()).sum();
            answers.log_partition[row] =
                if weights.is_empty() { f64::NEG_INFINITY } else { most + total.ln() };
            let mut marginals = vec![0.0; self.labels];
            let mut expectations = vec![0.0; self.terms];
            for (at, weight) in weights {
                let probability = (weight - most).exp() / total;
                for (label, marginal) in marginals.iter_mut().enumerate() {
                    if self.states[at].0 >> label & 1 == 1 {
                        *marginal += probability;
                    }
                }
                let violations = &self.violations[at * self.terms..(at + 1) * self.terms];
                for (expectation, &count) in expectations.iter_mut().zip(violations) {
                    *expectation += probability * count;
                }
            }
            let out = &mut answers.marginals[row * self.labels..(row + 1) * self.labels];
            out.iter_mut().zip(marginals).for_each(|(out, value)| *out = T::from_f64(value));
            if let Some(all) = &mut answers.expectations {
                let out = &mut all[row * self.terms..(row + 1) * self.terms];
                out.iter_mut().zip(expectations).for_each(|(out, value)| *out = T::from_f64(value));
            }
        }
    }

    /// The `k` best states of one row, best first. Ties are broken by state.
    pub(crate) fn best(&self, block: &Block<'_, f64>, row: usize, k: usize) -> Vec<LabelSet> {
        let mut weights = self.weights(block, row);
        weights.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        weights.truncate(k);
        let set = |(at, log_weight): (usize, f64)| {
            let bits = self.states[at].0;
            LabelSet { log_weight, on: (0..self.labels).map(|l| bits >> l & 1 == 1).collect() }
        };
        weights.into_iter().map(set).collect()
    }

    /// Draws states from the distribution of one row. `uniform` returns numbers in `[0, 1)`.
    pub(crate) fn sample(
        &self,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Vec<Vec<bool>> {
        let weights = self.weights(block, row);
        let log_weights: Vec<f64> = weights.iter().map(|w| w.1).collect();
        let flags = |at: usize| {
            let bits = self.states[weights[at].0].0;
            (0..self.labels).map(|label| bits >> label & 1 == 1).collect()
        };
        (0..count).map_while(|_| crate::infer::draw(&log_weights, uniform).map(flags)).collect()
    }
}

impl Kernel for Brute {
    forward_to_own!();
    forward_sets_to_own!();
}
