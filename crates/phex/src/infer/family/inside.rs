//! The inside pass: from the leaves to the root.
//!
//! Every value is divided by a power of two as it is stored, so scales add no rounding error and
//! need no logarithm.

use super::number::Number;
use super::plan::{Plan, Unit};
use super::scratch::{Child, Scratch};
use super::weights::Weights;

impl<N: Number> Scratch<N> {
    /// From the leaves to the root.
    #[inline(always)]
    pub(super) fn inside(&mut self, plan: &Plan, weights: &Weights<N>) {
        self.exponents = N::Exponents::default();
        for (at, node) in plan.nodes.iter().enumerate() {
            let (mut product, mut product_layers) = (0, 1);
            for index in node.units.clone() {
                let unit = &plan.units[index];
                self.inside_unit(plan, weights, unit);
                if index > node.units.start {
                    self.multiply(plan, unit, index, product, product_layers);
                }
                (product, product_layers) = (unit.product, unit.product_layers);
            }
            let own = match node.label {
                Some(label) => self.own[label],
                // The virtual root is always on.
                None => [N::ZERO, N::ONE],
            };
            let message = &mut self.inside[node.message..node.message + 2 * node.layers];
            message.fill(N::ZERO);
            for step in &plan.moves[node.own.clone()] {
                let on = usize::from(step.b);
                let below = self.totals[product + on * product_layers + usize::from(step.a)];
                let to = on * node.layers + usize::from(step.to);
                message[to] = below.times_plus(own[on], message[to]);
            }
            let most = message.iter().fold(N::ZERO, |most, value| most.larger(*value));
            let scale = most.scale(&mut self.exponents);
            message.iter_mut().for_each(|value| *value = value.times(scale));
            self.node_scale[at] = scale;
        }
    }

    /// The product of totals up to a unit, from the product before it.
    #[inline(always)]
    fn multiply(&mut self, plan: &Plan, unit: &Unit, index: usize, product: usize, layers: usize) {
        let totals = &self.totals[unit.total..unit.total + 2 * unit.layers];
        let most = totals.iter().fold(N::ZERO, |most, value| most.larger(*value));
        let scale = most.scale(&mut self.exponents);
        self.unit_scale[index] = scale;
        self.totals[unit.product..unit.product + 2 * unit.product_layers].fill(N::ZERO);
        for y in 0..2 {
            for step in &plan.moves[unit.moves.clone()] {
                let before = self.totals[product + y * layers + usize::from(step.a)];
                let total = self.totals[unit.total + y * unit.layers + usize::from(step.b)];
                let to = unit.product + y * unit.product_layers + usize::from(step.to);
                self.totals[to] = before.times(total).times_plus(scale, self.totals[to]);
            }
        }
        let range = unit.product..unit.product + 2 * unit.product_layers;
        let most = self.totals[range.clone()].iter().fold(N::ZERO, |most, v| most.larger(*v));
        let again = most.scale(&mut self.exponents);
        self.totals[range].iter_mut().for_each(|value| *value = value.times(again));
        self.unit_scale[index] = scale.times(again);
    }

    #[inline(always)]
    fn inside_unit(&mut self, plan: &Plan, weights: &Weights<N>, unit: &Unit) {
        let streams = if unit.shared { 1 } else { 2 };
        self.cells[unit.cells..unit.cells + streams].fill(N::ONE);
        let mut scale = N::ONE;
        for index in unit.steps.clone() {
            let step = &plan.steps[index];
            self.step_scale[index] = scale;
            let (before, after) = self.cells.split_at_mut(step.output);
            let mut most = N::ZERO;
            for y in 0..streams {
                let size = step.input_layers * step.input_width;
                let input = &before[step.input + y * size..step.input + (y + 1) * size];
                let size = step.layers * step.width;
                let output = &mut after[y * size..(y + 1) * size];
                let node = &plan.nodes[step.node];
                let messages = &self.inside[node.message..node.message + 2 * node.layers];
                let child = Child { plan, weights, unit, step, scale, messages };
                most = most.larger(child.join(input, output, y, false));
            }
            if index + 1 < unit.steps.end {
                scale = most.scale(&mut self.exponents);
            }
        }
        let end = &plan.steps[unit.steps.end - 1];
        for y in 0..2 {
            for layer in 0..unit.layers {
                let stream = if unit.shared { 0 } else { y };
                let from = end.output + (stream * unit.layers + layer) * unit.width;
                let cells = &self.cells[from..from + unit.width];
                let total = if unit.shared && y == 0 {
                    let falls = &weights.values[unit.falls..unit.falls + unit.width];
                    let weighed = cells.iter().zip(falls).map(|(cell, fall)| cell.weigh(*fall));
                    weighed.fold(N::ZERO, N::plus)
                } else {
                    cells.iter().fold(N::ZERO, |sum, cell| sum.plus(*cell))
                };
                self.totals[unit.total + y * unit.layers + layer] = total;
            }
        }
    }
}
