//! `states` handles hard models with few legal states.
//!
//! When every relation is hard, the model is a softmax over its legal states between two products
//! with a 0/1 matrix: `s = S ℓ`, `p = softmax(s)`, `marginals = Sᵀ p`. `S` is stored as lists of
//! the labels that are on, and rows run side by side in lanes. A row costs O(labels on, summed over
//! states). Scores are only added and compared before the softmax, so any finite score is safe.

use crate::infer::compiled::Compiled;
use crate::infer::{Kernel, Size, forward_sets_to_own, forward_to_own};
use multiversion::multiversion;

use crate::graph::LabelId;
use crate::infer::compiled::StateList;
use crate::infer::{Answers, Block, Budget, Evidence, LabelSet, Unfit};
use crate::model::{Model, Relation};
use crate::numeric::Elementary;
use crate::numeric::Scalar;

/// How many rows run side by side.
const LANES: usize = 16;

type Lanes<T> = crate::numeric::Lanes<T, LANES>;

/// How many steps of a search one visit of a label takes.
const STEPS_PER_VISIT: f64 = 9.0;

/// The legal states of a model.
#[derive(Debug)]
pub(crate) struct States {
    labels: usize,
    /// The labels that are on in state `k` are `on[start[k]..start[k + 1]]`.
    start: Vec<u32>,
    on: Vec<u32>,
    /// The log-weight of every state under scores of zero.
    base: f64,
    bias: Vec<f64>,
    /// Terms without a cost, which some legal states violate: `(term, state, count)`.
    violations: Vec<(u32, u32, f32)>,
    terms: usize,
}

impl States {
    /// Lists the states. It gives up when this takes more steps than the budget allows.
    pub(crate) fn compile(model: &Model, budget: &Budget) -> Result<States, Unfit> {
        if !model.is_hard() {
            return Err(Unfit::Shape(String::from("some relations are soft")));
        }
        let logic = model.hard_logic().map_err(Unfit::Shape)?;
        let (mut start, mut on) = (vec![0u32], Vec::new());
        let most = (budget.operations / 4.0).min(budget.bytes / 8.0).min(f64::from(u32::MAX));
        // Listing states until there are too many could take long, because finding each one visits all
        // labels.
        let free = logic.free_leaves();
        if free as f64 > most.log2() {
            return Err(Unfit::Budget { needs: format!("more than 2^{free} legal states") });
        }
        let steps = (budget.search / STEPS_PER_VISIT) as u64;
        let mut legal_states = logic.legal_states().within(steps);
        for state in &mut legal_states {
            on.extend(state.iter().map(|id| id.0));
            start.push(on.len() as u32);
            if (on.len() + start.len()) as f64 > most {
                let needs = format!("more than {} legal states", start.len() - 2);
                return Err(Unfit::Budget { needs });
            }
        }
        if legal_states.is_cut_short() {
            let needs = format!(
                "the list of legal states was not complete after {:.0e} steps, which a larger limit \
                 on the search may change",
                budget.search
            );
            return Err(Unfit::Budget { needs });
        }
        let mut states = States {
            labels: model.len(),
            start,
            on,
            base: model.constant(),
            bias: model.bias().to_vec(),
            violations: Vec::new(),
            terms: model.terms(),
        };
        states.violations = states.free_violations(model);
        Ok(states)
    }

    /// Where terms without a cost are violated. No legal state violates the other terms.
    fn free_violations(&self, model: &Model) -> Vec<(u32, u32, f32)> {
        let is_free = |relation: &Relation| match relation {
            Relation::Hierarchy { cost, .. }
            | Relation::Exclusion { cost, .. }
            | Relation::Group { cost, .. } => *cost == 0.0,
            Relation::Pair { .. } => true,
        };
        let relations = (0u32..).zip(model.relations());
        let free: Vec<(u32, &Relation)> = relations.filter(|(_, r)| is_free(r)).collect();
        let mut violations = Vec::new();
        if free.is_empty() && model.dense().is_none() {
            return violations;
        }
        for state in 0..self.len() {
            let on = self.as_flags(state);
            let relations =
                free.iter().map(|(term, r)| (*term, r.violations(|id: LabelId| on[id.index()])));
            let dense = model.dense().map(|dense| dense.violations(&on)).unwrap_or_default();
            let all = relations.chain((0u32..).zip(dense)).filter(|(_, count)| *count > 0.0);
            violations.extend(all.map(|(term, count)| (term, state as u32, count as f32)));
        }
        violations
    }

    /// The list of states, for devices.
    pub(crate) fn view(&self) -> StateList<'_> {
        StateList { start: &self.start, on: &self.on, base: self.base, bias: &self.bias }
    }

    /// How many legal states there are.
    pub(crate) fn len(&self) -> usize {
        self.start.len() - 1
    }

    fn labels_on(&self, state: usize) -> &[u32] {
        &self.on[self.start[state] as usize..self.start[state + 1] as usize]
    }

    pub(crate) fn operations(&self) -> f64 {
        States::predicted_operations(self.len() as f64, self.on.len() as f64)
    }

    /// The operations per row for this many states and labels on, summed over states: one addition
    /// on the way in, one on the way out, and an exponential (about ten operations) per state.
    pub(crate) fn predicted_operations(states: f64, on: f64) -> f64 {
        2.0 * on + 10.0 * states
    }

    pub(crate) fn bytes(&self) -> u64 {
        (4 * (self.on.len() + self.start.len()) + 8 * LANES * self.len()) as u64
    }

    pub(crate) fn run<T: Elementary>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let mut weights = vec![Lanes::<T>::NONE; self.len()];
        let mut scores = vec![Lanes::<T>::NONE; self.labels];
        let mut marginals = vec![Lanes::<T>::NONE; self.labels];
        for first in (0..block.rows()).step_by(LANES) {
            let rows = first..(first + LANES).min(block.rows());
            self.load(block, rows.clone(), &mut scores);
            sums(&self.start, &self.on, &scores, &mut weights);
            self.mask_evidence(block, rows.clone(), &mut weights);
            let (most, total) = softmax(&mut weights);
            marginals.fill(Lanes::NONE);
            shares(&self.start, &self.on, &weights, &mut marginals);
            for (lane, row) in rows.enumerate() {
                let mass = total.0[lane].to_f64();
                answers.error[row] = 0.0;
                answers.log_partition[row] = if mass > 0.0 {
                    self.base + most.0[lane].to_f64() + mass.ln()
                } else {
                    f64::NEG_INFINITY
                };
                let out = &mut answers.marginals[row * self.labels..(row + 1) * self.labels];
                // Rounding may lift a sum of probabilities above 1.
                let clamped = marginals.iter().map(|value| value.0[lane]);
                let clamped = clamped.map(|p| if p > T::ONE { T::ONE } else { p });
                out.iter_mut().zip(clamped).for_each(|(out, p)| *out = p);
                if let Some(all) = &mut answers.expectations {
                    let out = &mut all[row * self.terms..(row + 1) * self.terms];
                    out.fill(T::ZERO);
                    for &(term, state, count) in &self.violations {
                        let probability = weights[state as usize].0[lane];
                        out[term as usize] += probability * T::from_f64(f64::from(count));
                    }
                }
            }
        }
    }

    fn load<T: Scalar>(
        &self,
        block: &Block<'_, T>,
        rows: std::ops::Range<usize>,
        scores: &mut [Lanes<T>],
    ) {
        for (lane, row) in rows.enumerate() {
            for ((out, &score), &bias) in scores.iter_mut().zip(block.row(row)).zip(&self.bias) {
                out.0[lane] = score + T::from_f64(bias);
            }
        }
    }

    /// Gives states that disagree with the evidence a weight of zero.
    fn mask_evidence<T: Scalar>(
        &self,
        block: &Block<'_, T>,
        rows: std::ops::Range<usize>,
        weights: &mut [Lanes<T>],
    ) {
        if block.evidence.is_none() {
            return;
        }
        for (lane, row) in rows.enumerate() {
            let evidence: Vec<Evidence> =
                (0..self.labels).map(|label| block.evidence(row, label)).collect();
            let needed = evidence.iter().filter(|&&evidence| evidence == Evidence::On).count();
            for (state, weight) in weights.iter_mut().enumerate() {
                let mut found = 0;
                let mut off = false;
                for &label in self.labels_on(state) {
                    match evidence[label as usize] {
                        Evidence::On => found += 1,
                        Evidence::Off => off = true,
                        Evidence::Unknown => {}
                    }
                }
                if off || found < needed {
                    weight.0[lane] = T::NEG_INFINITY;
                }
            }
        }
    }

    /// The log-weights of the states of one row.
    fn row_weights(&self, block: &Block<'_, f64>, row: usize) -> Vec<f64> {
        let block = block.slice(row..row + 1);
        let mut scores = vec![Lanes::<f64>::NONE; self.labels];
        let mut weights = vec![Lanes::<f64>::NONE; self.len()];
        self.load(&block, 0..1, &mut scores);
        sums(&self.start, &self.on, &scores, &mut weights);
        self.mask_evidence(&block, 0..1, &mut weights);
        weights.iter().map(|weight| self.base + weight.0[0]).collect()
    }

    /// The `k` best states of one row, best first.
    pub(crate) fn best(&self, block: &Block<'_, f64>, row: usize, k: usize) -> Vec<LabelSet> {
        let weights = self.row_weights(block, row);
        let mut order: Vec<usize> =
            (0..self.len()).filter(|&state| weights[state] > f64::NEG_INFINITY).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        order.truncate(k);
        let set = |state: usize| LabelSet { log_weight: weights[state], on: self.as_flags(state) };
        order.into_iter().map(set).collect()
    }

    /// Draws states from the distribution of one row.
    pub(crate) fn sample(
        &self,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Vec<Vec<bool>> {
        let weights = self.row_weights(block, row);
        let draw = |_| crate::infer::draw(&weights, uniform).map(|state| self.as_flags(state));
        (0..count).map_while(draw).collect()
    }

    fn as_flags(&self, state: usize) -> Vec<bool> {
        let mut flags = vec![false; self.labels];
        self.labels_on(state).iter().for_each(|&label| flags[label as usize] = true);
        flags
    }
}

/// The score of each state: the sum over the labels that are on.
#[multiversion(targets = "simd")]
fn sums<T: Scalar>(start: &[u32], on: &[u32], scores: &[Lanes<T>], weights: &mut [Lanes<T>]) {
    for (weight, range) in weights.iter_mut().zip(start.windows(2)) {
        let mut sum = Lanes::NONE;
        for &label in &on[range[0] as usize..range[1] as usize] {
            sum += scores[label as usize];
        }
        *weight = sum;
    }
}

/// Turns scores into probabilities. Returns the largest score, and the sum relative to it.
#[multiversion(targets = "simd")]
fn softmax<T: Elementary>(weights: &mut [Lanes<T>]) -> (Lanes<T>, Lanes<T>) {
    let mut most = Lanes::NONE.map(|_| T::NEG_INFINITY);
    for weight in weights.iter() {
        most = most.zip(*weight, |a, b| if a > b { a } else { b });
    }
    // A row without a legal state keeps scores of minus infinity, so it is shifted by zero.
    let shift = most.map(|m| if m > T::NEG_INFINITY { m } else { T::ZERO });
    let mut total = Lanes::NONE;
    for weight in weights.iter_mut() {
        *weight = (*weight - shift).map(T::exp_downwards);
        total += *weight;
    }
    let scale = total.map(|t| if t > T::ZERO { T::ONE / t } else { T::ZERO });
    for weight in weights.iter_mut() {
        *weight = *weight * scale;
    }
    (most, total)
}

/// Adds the probability of each state to the labels that are on in it.
#[multiversion(targets = "simd")]
fn shares<T: Scalar>(start: &[u32], on: &[u32], weights: &[Lanes<T>], marginals: &mut [Lanes<T>]) {
    for (weight, range) in weights.iter().zip(start.windows(2)) {
        for &label in &on[range[0] as usize..range[1] as usize] {
            marginals[label as usize] += *weight;
        }
    }
}

impl Kernel for States {
    forward_to_own!();

    fn size(&self) -> Size {
        Size { states: Some(self.len() as u64), ..Size::default() }
    }

    fn view<'a>(&'a self, _model: &Model) -> Compiled<'a> {
        Compiled::States(self.view())
    }

    forward_sets_to_own!();
}
