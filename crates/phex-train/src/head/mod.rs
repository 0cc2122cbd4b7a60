//! The head: from features to a logit for each label.
//!
//! `x → [W, b → norm → max(0, ·) → dropout]* → W, b → z → ℓ = s∘z`. Without hidden layers the head is
//! linear. The scale `s` is fixed: α for labels that have children, 1 for the others
//! ([`HeadConfig::inner_scale`]).
//! Forward and backward cost 6 operations per weight and row, nearly all in matrix products
//! ([`products`]).

mod layout;
mod norm;
mod products;

use ndarray::Axis;
use phex::graph::RelationGraph;
use phex::learn::score_scales;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::{HeadConfig, Norm, Start};
pub(crate) use layout::WeightLayout;
use layout::{Layer, matrix, matrix_mut};
use norm::Normalised;
use products::multiply;

/// A head: its shape, its weights and the running averages of its norms.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    config: HeadConfig,
    inputs: usize,
    outputs: usize,
    /// `s`, one entry per label; `None` if all are 1.
    scale: Option<Vec<f32>>,
    layout: WeightLayout,
    pub(crate) weights: Vec<f32>,
    pub(crate) averages: Vec<f32>,
}

/// What the backward pass needs from the forward pass.
#[derive(Debug)]
pub(crate) struct Tape {
    rows: usize,
    /// The input of each layer.
    inputs: Vec<Vec<f32>>,
    norms: Vec<Option<Normalised>>,
}

impl Head {
    /// A head with its initial weights. Hidden layers are uniform in ±1/√inputs; the last layer starts
    /// as the configuration says.
    pub fn new(config: &HeadConfig, inputs: usize, outputs: usize, seed: u64) -> Head {
        let layout = WeightLayout::new(config, inputs, outputs);
        let mut weights = vec![0.0; layout.len()];
        let mut averages = vec![0.0; layout.averages_len()];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x6865_6164);
        for (at, layer) in layout.layers.iter().enumerate() {
            let is_last = at + 1 == layout.layers.len();
            let range = layer.weight.start..layer.bias.end;
            let bound = 1.0 / (layer.inputs.max(1) as f64).sqrt();
            match config.start {
                Start::Zero if is_last => {}
                Start::Normal(scale) if is_last => {
                    for weight in &mut weights[layer.weight.clone()] {
                        *weight = (scale * normal(&mut random)) as f32;
                    }
                }
                _ => {
                    for weight in &mut weights[range] {
                        *weight = (bound * (2.0 * random.random::<f64>() - 1.0)) as f32;
                    }
                }
            }
            if let Some((scale, _)) = &layer.norm {
                weights[scale.clone()].fill(1.0);
            }
            if let Some((_, variance)) = &layer.running {
                averages[variance.clone()].fill(1.0);
            }
        }
        Head { config: config.clone(), inputs, outputs, scale: None, layout, weights, averages }
    }

    /// A head for the labels of a graph, with the scale of its inner labels.
    pub fn of_graph(config: &HeadConfig, inputs: usize, graph: &RelationGraph, seed: u64) -> Head {
        let mut head = Head::new(config, inputs, graph.len(), seed);
        if config.inner_scale != 1.0 {
            head.scale = Some(score_scales(graph, config.inner_scale));
        }
        head
    }

    /// Multiplies rows of scores, or of their derivatives, by `s`.
    fn scale(&self, rows: &mut [f32]) {
        let Some(scale) = &self.scale else { return };
        for row in rows.chunks_exact_mut(self.outputs) {
            row.iter_mut().zip(scale).for_each(|(value, s)| *value *= s);
        }
    }

    /// The number of features.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The number of labels.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The number of weights.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether it has no weights: then it has no input or no output.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Takes the weights of a head of the same layout, so that rows have the same scores under this
    /// head's scale.
    pub(crate) fn copy_weights(&mut self, other: &Head) {
        self.weights.clone_from(&other.weights);
        self.averages.clone_from(&other.averages);
        let (Some(layer), true) = (self.layout.layers.last(), self.scale != other.scale) else {
            return;
        };
        let of = |head: &Head, label: usize| head.scale.as_ref().map_or(1.0, |scale| scale[label]);
        let ratio = |label| match of(self, label) {
            0.0 => 0.0,
            own => of(other, label) / own,
        };
        let ratios: Vec<f32> = (0..self.outputs).map(ratio).collect();
        for range in [layer.weight.clone(), layer.bias.clone()] {
            for row in self.weights[range].chunks_exact_mut(self.outputs) {
                row.iter_mut().zip(&ratios).for_each(|(weight, ratio)| *weight *= ratio);
            }
        }
    }

    /// Sets the biases of the last layer so that these are the scores of a row without features.
    pub(crate) fn set_biases(&mut self, biases: &[f32]) {
        if let Some(layer) = self.layout.layers.last() {
            self.weights[layer.bias.clone()].copy_from_slice(biases);
            let scales = self.scale.iter().flatten();
            for (bias, s) in self.weights[layer.bias.clone()].iter_mut().zip(scales) {
                *bias = if *s > 0.0 { *bias / s } else { 0.0 };
            }
        }
    }

    pub(crate) fn layout(&self) -> &WeightLayout {
        &self.layout
    }

    /// The logits of rows of features.
    pub fn logits(&self, features: &[f32]) -> Vec<f32> {
        let mut values = features.to_vec();
        let last = self.layout.layers.len() - 1;
        for (at, layer) in self.layout.layers.iter().enumerate() {
            let mut z = self.affine(layer, &values);
            if at < last {
                match (&layer.norm, &layer.running) {
                    (Some(norm), Some((mean, variance))) => {
                        let running =
                            (&self.averages[mean.clone()], &self.averages[variance.clone()]);
                        norm::batch_frozen(&mut z, layer.outputs, self.norm(norm), running);
                    }
                    (Some(norm), None) => {
                        norm::layer(&mut z, layer.outputs, self.norm(norm));
                    }
                    (None, _) => {}
                }
                z.iter_mut().for_each(|value| *value = value.max(0.0));
            }
            values = z;
        }
        self.scale(&mut values);
        values
    }

    fn norm(
        &self,
        (scale, shift): &(std::ops::Range<usize>, std::ops::Range<usize>),
    ) -> (&[f32], &[f32]) {
        (&self.weights[scale.clone()], &self.weights[shift.clone()])
    }

    /// `x W + b`.
    fn affine(&self, layer: &Layer, values: &[f32]) -> Vec<f32> {
        let rows = values.len() / layer.inputs;
        let mut z = vec![0.0; rows * layer.outputs];
        multiply(
            matrix(values, rows, layer.inputs),
            matrix(&self.weights[layer.weight.clone()], layer.inputs, layer.outputs),
            matrix_mut(&mut z, rows, layer.outputs),
        );
        let bias = &self.weights[layer.bias.clone()];
        for row in z.chunks_exact_mut(layer.outputs) {
            row.iter_mut().zip(bias).for_each(|(z, b)| *z += b);
        }
        z
    }

    /// The logits in training, with what the backward pass needs. `noise` is the seed of dropout.
    pub(crate) fn forward(&mut self, mut features: Vec<f32>, noise: u64) -> (Vec<f32>, Tape) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(noise);
        drop_out(&mut features, self.config.input_dropout, &mut random);
        let rows = features.len() / self.inputs;
        let mut tape = Tape { rows, inputs: Vec::new(), norms: Vec::new() };
        let mut values = features;
        let layers = self.layout.layers.clone();
        for (at, layer) in layers.iter().enumerate() {
            let mut z = self.affine(layer, &values);
            tape.inputs.push(values);
            if at + 1 < layers.len() {
                tape.norms.push(self.normalise(layer, &mut z));
                z.iter_mut().for_each(|value| *value = value.max(0.0));
                drop_out(&mut z, self.config.dropout, &mut random);
            }
            values = z;
        }
        self.scale(&mut values);
        (values, tape)
    }

    fn normalise(&mut self, layer: &Layer, z: &mut [f32]) -> Option<Normalised> {
        let (scale, shift) = layer.norm.as_ref()?;
        let affine = (&self.weights[scale.clone()], &self.weights[shift.clone()]);
        Some(match (&self.config.norm, &layer.running) {
            (Norm::Batch, Some((mean, variance))) => {
                let (means, variances) = self.averages.split_at_mut(variance.start);
                let running = (&mut means[mean.clone()], &mut variances[..variance.len()]);
                norm::batch(z, layer.outputs, affine, running)
            }
            _ => norm::layer(z, layer.outputs, affine),
        })
    }

    /// The gradient by all weights from the gradient by the logits.
    pub(crate) fn backward(&self, tape: &Tape, by_logit: Vec<f32>) -> Vec<f32> {
        let mut gradient = vec![0.0; self.weights.len()];
        let mut by_output = by_logit;
        self.scale(&mut by_output);
        for (at, layer) in self.layout.layers.iter().enumerate().rev() {
            let entered = matrix(&tape.inputs[at], tape.rows, layer.inputs);
            let back = matrix(&by_output, tape.rows, layer.outputs);
            multiply(
                entered.t(),
                back,
                matrix_mut(&mut gradient[layer.weight.clone()], layer.inputs, layer.outputs),
            );
            let bias = &mut gradient[layer.bias.clone()];
            for row in back.axis_iter(Axis(0)) {
                bias.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            if at == 0 {
                break;
            }
            let mut by_input = vec![0.0; tape.rows * layer.inputs];
            let weight = matrix(&self.weights[layer.weight.clone()], layer.inputs, layer.outputs);
            multiply(back, weight.t(), matrix_mut(&mut by_input, tape.rows, layer.inputs));
            self.back_through_activation(at - 1, tape, &mut by_input, &mut gradient);
            by_output = by_input;
        }
        gradient
    }

    /// Back through dropout, the activation and the norm of a hidden layer, in place. Dropped and cut-off
    /// values are 0 in the input of the next layer, and no others are.
    fn back_through_activation(
        &self,
        at: usize,
        tape: &Tape,
        by_input: &mut [f32],
        gradient: &mut [f32],
    ) {
        let kept = (1.0 / (1.0 - self.config.dropout)) as f32;
        for (g, value) in by_input.iter_mut().zip(&tape.inputs[at + 1]) {
            *g = if *value > 0.0 { *g * kept } else { 0.0 };
        }
        let layer = &self.layout.layers[at];
        if let (Some((scale, shift)), Some(normal)) = (&layer.norm, &tape.norms[at]) {
            let (scales, shifts) = gradient.split_at_mut(shift.start);
            let by_affine = (&mut scales[scale.clone()], &mut shifts[..shift.len()]);
            normal.back(by_input, layer.outputs, &self.weights[scale.clone()], by_affine);
        }
    }
}

/// Sets a fraction of the values to 0 and scales the others up, so that the mean stays the same.
fn drop_out(values: &mut [f32], part: f64, random: &mut Xoshiro256PlusPlus) {
    if part == 0.0 {
        return;
    }
    let limit = (part * 65536.0) as u64;
    let scale = (1.0 / (1.0 - part)) as f32;
    // Sixteen bits per value are enough.
    for four in values.chunks_mut(4) {
        let mut bits = random.random::<u64>();
        for value in four {
            *value = if bits & 0xffff < limit { 0.0 } else { *value * scale };
            bits >>= 16;
        }
    }
}

/// A draw from the standard normal distribution (Box and Muller).
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let (a, b): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

#[cfg(test)]
mod tests;
