//! The inside pass, from the leaves to the root.
//!
//! Every value is divided by a power of two as it is stored, so scaling adds no rounding error and
//! needs no logarithm.

use super::number::Semiring;
use super::plan::{ForestProgram, SiblingUnit};
use super::scratch::{Child, Scratch, largest};
use super::weights::Weights;

impl<N: Semiring> Scratch<N> {
    /// Runs from the leaves to the root. The weights of the labels must have been written.
    #[inline(always)]
    pub(super) fn inside(&mut self, plan: &ForestProgram, weights: &Weights<N>) {
        self.exponents = N::Exponents::default();
        for &at in &plan.parents {
            let node = &plan.nodes[at];
            let (mut product, mut product_layers) = (0, 1);
            for index in node.units.clone() {
                let unit = &plan.units[index];
                self.inside_unit(plan, weights, unit);
                if index > node.units.start {
                    self.multiply(plan, unit, index, product, product_layers);
                }
                (product, product_layers) = (unit.product, unit.product_layers);
            }
            if node.label.is_none() {
                // The virtual root is always on.
                self.inside[node.weight] = N::ZERO;
                self.inside[node.weight + 1] = N::ONE;
            }
            let (before, own) = self.inside.split_at_mut(node.weight);
            let own = &mut own[..2];
            let message = &mut before[node.message..node.message + 2 * node.layers];
            if node.same_layers {
                let totals = &self.totals[product..product + 2 * node.layers];
                let (off, on) = message.split_at_mut(node.layers);
                for (value, total) in off.iter_mut().zip(totals) {
                    *value = total.times(own[0]);
                }
                for (value, total) in on.iter_mut().zip(&totals[node.layers..]) {
                    *value = total.times(own[1]);
                }
            } else {
                message.fill(N::ZERO);
                for step in &plan.moves[node.own.clone()] {
                    let on = usize::from(step.b);
                    let below = self.totals[product + on * product_layers + usize::from(step.a)];
                    let to = on * node.layers + usize::from(step.to);
                    message[to] = below.times_plus(own[on], message[to]);
                }
            }
            let scale = largest(message).scale(&mut self.exponents);
            for value in message.iter_mut() {
                *value = value.times(scale);
            }
            // The outside pass needs the scaled values.
            own[0] = own[0].times(scale);
            own[1] = own[1].times(scale);
        }
    }

    /// The product of totals up to a unit, from the product before it.
    #[inline(always)]
    fn multiply(
        &mut self,
        plan: &ForestProgram,
        unit: &SiblingUnit,
        index: usize,
        product: usize,
        layers: usize,
    ) {
        let totals = &self.totals[unit.total..unit.total + 2 * unit.layers];
        let scale = largest(totals).scale(&mut self.exponents);
        let range = unit.product..unit.product + 2 * unit.product_layers;
        self.totals[range.clone()].fill(N::ZERO);
        for y in 0..2 {
            for step in &plan.moves[unit.moves.clone()] {
                let before = self.totals[product + y * layers + usize::from(step.a)];
                let total = self.totals[unit.total + y * unit.layers + usize::from(step.b)];
                let to = unit.product + y * unit.product_layers + usize::from(step.to);
                self.totals[to] = before.times_plus(total.times(scale), self.totals[to]);
            }
        }
        // Two scaling steps, because a total and a product may each be far from 1.
        let again = largest(&self.totals[range.clone()]).scale(&mut self.exponents);
        for value in &mut self.totals[range] {
            *value = value.times(again);
        }
        self.unit_scale[index] = [scale, again];
    }

    #[inline(always)]
    fn inside_unit(&mut self, plan: &ForestProgram, weights: &Weights<N>, unit: &SiblingUnit) {
        let streams = if unit.shared { 1 } else { 2 };
        for cell in &mut self.cells[unit.cells..unit.cells + streams] {
            *cell = N::ONE;
        }
        let mut scale = N::ONE;
        for index in unit.steps.clone() {
            let step = &plan.steps[index];
            self.step_scale[index] = scale;
            let node = &plan.nodes[step.node];
            let messages = &self.inside[node.message..node.message + 2 * node.layers];
            let child = Child { plan, weights, unit, step, scale, messages };
            let (before, after) = self.cells.split_at_mut(step.output);
            let mut most = N::ZERO;
            for y in 0..streams {
                let size = step.input_layers * step.input_width;
                let input = &before[step.input + y * size..step.input + (y + 1) * size];
                let size = step.layers * step.width;
                let output = &mut after[y * size..(y + 1) * size];
                // The stream of a shared unit is the one for a parent that is on.
                most = most.larger(child.join(input, output, y, false));
            }
            if index + 1 < unit.steps.end {
                scale = most.scale(&mut self.exponents);
            }
        }
        let end = &plan.steps[unit.steps.end - 1];
        for layer in 0..unit.layers {
            let size = unit.layers * unit.width;
            let from = end.output + layer * unit.width;
            let (mut off, mut on) = (N::ZERO, N::ZERO);
            if unit.shared {
                let falls = &weights.values[unit.falls..unit.falls + unit.width];
                for (cell, fall) in self.cells[from..from + unit.width].iter().zip(falls) {
                    on = on.plus(*cell);
                    off = off.plus(cell.weigh(*fall));
                }
            } else {
                let lows = &self.cells[from..from + unit.width];
                let highs = &self.cells[from + size..from + size + unit.width];
                for (low, high) in lows.iter().zip(highs) {
                    off = off.plus(*low);
                    on = on.plus(*high);
                }
            }
            self.totals[unit.total + layer] = off;
            self.totals[unit.total + unit.layers + layer] = on;
        }
    }
}
