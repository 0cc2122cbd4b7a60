//! The outside pass, from the root back to the leaves.
//!
//! It transposes the inside pass step by step. The message of the root is set to the inverse of the
//! root's value, so `Σ outside · inside = 1` at every label. This is the check: where it fails, a
//! number left the range of the type, and the row is computed again in the log domain.

use super::number::Semiring;
use super::plan::{ForestProgram, SiblingUnit, StepKind};
use super::scratch::{Child, Scratch, dot};
use super::weights::Weights;

impl<N: Semiring> Scratch<N> {
    /// Runs from the root to the leaves and computes marginals, and expectations if requested.
    #[inline(always)]
    pub(super) fn outside(
        &mut self,
        plan: &ForestProgram,
        weights: &Weights<N>,
        expectations: bool,
    ) {
        self.suspect = N::ZERO;
        let root = plan.root();
        for &at in plan.parents.iter().rev() {
            let node = &plan.nodes[at];
            if node.label.is_none() {
                self.outside[node.outside] = N::ZERO;
                self.outside[node.outside + 1] = self.inside[root + 1].reciprocal();
            }
            let Some(last) = node.units.clone().next_back() else { continue };
            let unit = &plan.units[last];
            let own = [self.inside[node.weight], self.inside[node.weight + 1]];
            let outside = &self.outside[node.outside..node.outside + 2 * node.layers];
            let shares = &mut self.shares[unit.product..unit.product + 2 * unit.product_layers];
            if node.same_layers {
                let (off, on) = shares.split_at_mut(node.layers);
                for (share, value) in off.iter_mut().zip(outside) {
                    *share = value.times(own[0]);
                }
                for (share, value) in on.iter_mut().zip(&outside[node.layers..]) {
                    *share = value.times(own[1]);
                }
            } else {
                shares.fill(N::ZERO);
                for step in &plan.moves[node.own.clone()] {
                    let on = usize::from(step.b);
                    let to = on * unit.product_layers + usize::from(step.a);
                    let from = outside[on * node.layers + usize::from(step.to)];
                    shares[to] = from.times_plus(own[on], shares[to]);
                }
            }
            for index in node.units.clone().rev() {
                if index > node.units.start {
                    self.divide(plan, index);
                }
                self.outside_unit(plan, weights, index, expectations);
            }
        }
    }

    /// Transposes [`Scratch::multiply`].
    #[inline(always)]
    fn divide(&mut self, plan: &ForestProgram, index: usize) {
        let (unit, before) = (&plan.units[index], &plan.units[index - 1]);
        let [scale, again] = self.unit_scale[index];
        self.shares[unit.total..unit.total + 2 * unit.layers].fill(N::ZERO);
        self.shares[before.product..before.product + 2 * before.product_layers].fill(N::ZERO);
        for y in 0..2 {
            for step in &plan.moves[unit.moves.clone()] {
                let a = before.product + y * before.product_layers + usize::from(step.a);
                let b = unit.total + y * unit.layers + usize::from(step.b);
                let to = unit.product + y * unit.product_layers + usize::from(step.to);
                let share = self.shares[to].times(again);
                let value = self.totals[a].times(scale);
                self.shares[b] = share.times_plus(value, self.shares[b]);
                let value = self.totals[b].times(scale);
                self.shares[a] = share.times_plus(value, self.shares[a]);
            }
        }
    }

    #[inline(always)]
    fn outside_unit(
        &mut self,
        plan: &ForestProgram,
        weights: &Weights<N>,
        at: usize,
        expectations: bool,
    ) {
        let unit = &plan.units[at];
        // One stream is enough unless the states of the parent must be distinguished.
        let merged = unit.shared && !expectations;
        self.outside_ends(plan, weights, at, merged, expectations);
        let keep = expectations && unit.pairs.is_some();
        for index in unit.steps.clone().rev() {
            let step = &plan.steps[index];
            if keep {
                let from = (index - unit.steps.start) * plan.widest;
                self.history[from..from + self.here.len()].copy_from_slice(&self.here);
            }
            let scale = self.step_scale[index];
            let node = &plan.nodes[step.node];
            let layers = node.layers;
            let messages = &self.inside[node.message..node.message + 2 * layers];
            let received = &mut self.outside[node.outside..node.outside + 2 * layers];
            let child = Child { plan, weights, unit, step, scale, messages };
            let first = usize::from(merged);
            for y in first..2 {
                let stream = if unit.shared { 0 } else { y };
                let size = step.input_layers * step.input_width;
                let from = step.input + stream * size;
                let before = &self.cells[from..from + size];
                let stride = unit.most_layers * unit.width;
                let here = &mut self.here[y * stride..(y + 1) * stride];
                let next = &mut self.next[y * stride..(y + 1) * stride];
                child.part(before, here, next, received, y, y > first);
                if expectations && y == 0 {
                    let both = dot(&received[layers..], &messages[layers..]);
                    if let Some(label) = node.label {
                        self.edges[label] = both;
                    }
                }
            }
            let on = dot(&received[layers..], &messages[layers..]);
            let total = dot(&received[..layers], &messages[..layers]).plus(on);
            total.check_total(&mut self.suspect);
            if let Some(label) = node.label {
                self.marginals[label] = on.share(total);
            }
            if step.kind == StepKind::General {
                std::mem::swap(&mut self.here, &mut self.next);
            }
        }
        if keep {
            self.both_on(plan, weights, unit);
        }
    }

    /// B_k: the share of each count of a unit, with the checks and the expectations of counts.
    #[inline(always)]
    fn outside_ends(
        &mut self,
        plan: &ForestProgram,
        weights: &Weights<N>,
        at: usize,
        merged: bool,
        expectations: bool,
    ) {
        let unit = &plan.units[at];
        let end = &plan.steps[unit.steps.end - 1];
        let falls = &weights.values[unit.falls..unit.falls + unit.width];
        let (turned, fallen) = weights.clamped[at];
        let (mut clamped, mut count) = (N::ZERO, N::ZERO);
        for layer in 0..unit.layers {
            let share = |y: usize| self.shares[unit.total + y * unit.layers + layer];
            let (off, on) = (share(0), share(1));
            let stride = unit.most_layers * unit.width;
            for (m, fall) in falls.iter().enumerate() {
                let low = if unit.shared { off.weigh(*fall) } else { off };
                let to = layer * unit.width + m;
                self.here[stride + to] = if merged { on.plus(low) } else { on };
                if !merged {
                    self.here[to] = low;
                }
                if expectations || m >= turned || m >= fallen {
                    let cell = |stream: usize| {
                        let stream = if unit.shared { 0 } else { stream };
                        self.cells[end.output + (stream * unit.layers + layer) * unit.width + m]
                    };
                    let low = low.times(cell(0));
                    let both = on.times_plus(cell(1), low);
                    count = both.weigh(weights.choose[m]).plus(count);
                    if m >= turned {
                        clamped = clamped.plus(both);
                    } else if unit.shared && m >= fallen {
                        clamped = clamped.plus(low);
                    }
                }
            }
        }
        if turned != usize::MAX || fallen != usize::MAX {
            clamped.check_clamped(&mut self.suspect);
        }
        if expectations {
            self.counts[at] = count;
        }
    }

    /// The probability that two children are both on, for every pair of a unit. For each child, a
    /// forward pass in which it is on meets the backward pass at every later child. Costs O(k³).
    fn both_on(&mut self, plan: &ForestProgram, weights: &Weights<N>, unit: &SiblingUnit) {
        let Some(base) = unit.pairs else { return };
        let (start, k) = (unit.steps.start, unit.steps.len());
        let stride = unit.most_layers * unit.width;
        let mut discard = vec![N::ZERO; stride];
        self.pairs[base..base + k * k].fill(N::ZERO);
        for (y, i) in (0..2).flat_map(|y| (0..k).map(move |i| (y, i))) {
            let stream = if unit.shared { 0 } else { y };
            let first = &plan.steps[start + i];
            let size = first.input_layers * first.input_width;
            let from = first.input + stream * size;
            let mut before = self.cells[from..from + size].to_vec();
            for j in i..k {
                let step = &plan.steps[start + j];
                let scale = self.step_scale[start + j];
                let node = &plan.nodes[step.node];
                let messages = &self.inside[node.message..node.message + 2 * node.layers];
                let child = Child { plan, weights, unit, step, scale, messages };
                if j > i {
                    let from = j * plan.widest + y * stride;
                    let mut here = self.history[from..from + stride].to_vec();
                    let mut received = vec![N::ZERO; 2 * node.layers];
                    child.part(&before, &mut here, &mut discard, &mut received, y, false);
                    let both = dot(&received[node.layers..], &messages[node.layers..]);
                    for pair in [base + i * k + j, base + j * k + i] {
                        self.pairs[pair] = self.pairs[pair].plus(both);
                    }
                }
                let mut after = vec![N::ZERO; step.layers * step.width];
                child.join(&before, &mut after, y, j == i);
                before = after;
            }
        }
    }
}
