//! Draws exact samples: one upward pass, and then for each sample one state per bag from the roots
//! downwards.
//!
//! A bag's state is drawn given its separator entry, in proportion to its weight and the messages
//! of its inputs. A super-leaf that is on draws its label. The messages are [`Wide`], so no state
//! is lost. A sample costs the states of one segment per bag, and all states of the roots.

use super::Junction;
use super::kernel::{self, Scratch};
use super::number::{TableNumber, Wide};
use super::rows::RowWeights;
use crate::infer::Block;

/// One row, prepared for any number of samples.
pub(crate) struct Sampler<'a> {
    junction: &'a Junction,
    row: RowWeights,
    up: Vec<Wide>,
}

impl Junction {
    /// Draws `count` label sets from the distribution of a row, or none when no legal state agrees
    /// with the evidence.
    pub(crate) fn sample(
        &self,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Vec<Vec<bool>> {
        match self.sampler(block, row) {
            Some(sampler) => (0..count).map(|_| sampler.draw(uniform)).collect(),
            None => Vec::new(),
        }
    }

    /// Prepares a row for sampling. `None` when no legal state agrees with the evidence.
    pub(crate) fn sampler(&self, block: &Block<'_, f64>, row: usize) -> Option<Sampler<'_>> {
        if !self.possible {
            return None;
        }
        let mut filled = RowWeights::default();
        filled.fill(&self.network, block, row);
        let mut scratch = Scratch::<Wide>::new(&self.tables, false);
        let variables = self.network.classes.len();
        kernel::weigh(std::slice::from_ref(&filled), variables, &mut scratch);
        kernel::up(&self.tables, &mut scratch, &[]);
        let possible = scratch.log_partition(&self.tables, 0) > f64::NEG_INFINITY;
        possible.then_some(Sampler { junction: self, row: filled, up: scratch.up })
    }
}

impl Sampler<'_> {
    /// Draws a label set from the distribution of the row.
    pub(crate) fn draw(&self, uniform: &mut dyn FnMut() -> f64) -> Vec<bool> {
        let tables = &self.junction.tables;
        let mut on = vec![false; self.junction.network.variable.len()];
        let mut open: Vec<(usize, usize)> = (0..tables.bags.len())
            .filter(|&b| tables.bags[b].parent.is_none())
            .map(|b| (b, 0))
            .collect();
        while let Some((b, segment)) = open.pop() {
            let bag = &tables.bags[b];
            let whole = self.up[bag.out + segment];
            let mut left = uniform();
            let mut chosen = None;
            for state in bag.segments[segment] as usize..bag.segments[segment + 1] as usize {
                let index = &bag.index[state * bag.inputs..(state + 1) * bag.inputs];
                let mut weight = match bag.weight.is_empty() {
                    true => Wide::ONE,
                    false => Wide::weight(&tables.weights, bag.weight[state]),
                };
                index.iter().for_each(|&at| weight = weight.times(self.up[at as usize]));
                let share = weight.share(whole);
                if share > 0.0 {
                    // The last possible state absorbs the rounding error.
                    chosen = Some(index);
                    left -= share;
                    if left < 0.0 {
                        break;
                    }
                }
            }
            let Some(index) = chosen else { continue };
            for &(variable, input) in &bag.labels {
                if index[input] % 2 == 1 {
                    on[self.member(variable as usize, uniform) as usize] = true;
                }
            }
            for &(child, input) in &bag.children {
                let segment = index[input] as usize - tables.bags[child as usize].out;
                open.push((child as usize, segment));
            }
        }
        on
    }

    /// Chooses the label that is on in a variable that is on.
    fn member(&self, variable: usize, uniform: &mut dyn FnMut() -> f64) -> u32 {
        let labels = &self.junction.network.classes[variable];
        if let [label] = labels[..] {
            return label;
        }
        let share = |label: u32| self.row.share[label as usize].exp();
        let mut left = uniform();
        let mut chosen = labels[0];
        for &label in labels.iter().filter(|&&label| share(label) > 0.0) {
            chosen = label;
            left -= share(label);
            if left < 0.0 {
                break;
            }
        }
        chosen
    }
}
