//! Steps: gradient descent with momentum, AdamW, weight decay, and an average of weights.
//!
//! SGD: `v ← μv + g`, `w ← w − η(v + λw)`. AdamW (Loshchilov and Hutter 2019):
//! `m ← β₁m + (1−β₁)g`, `v ← β₂v + (1−β₂)g²`, `w ← w − η(m̂/(√v̂ + ε) + λw)` with `m̂`, `v̂` corrected
//! for their start at zero. Average: `a ← a + (1−ρ)(w − a)`, with a shorter memory in the first steps.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::config::{OptimiserConfig, RateSchedule, UpdateRule};
use crate::head::WeightLayout;

/// Values per task of a thread.
const PIECE: usize = 1 << 16;

/// What an optimiser remembers between steps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Optimiser {
    config: OptimiserConfig,
    /// Whether each weight decays, in pieces of the flat array.
    decays: Vec<(std::ops::Range<usize>, bool)>,
    pub(crate) first: Vec<f32>,
    /// Mean squares; empty for SGD.
    pub(crate) second: Vec<f32>,
    /// Averaged weights; empty without averaging.
    pub(crate) average: Vec<f32>,
    pub(crate) steps: u64,
}

impl Optimiser {
    pub(crate) fn new(
        config: &OptimiserConfig,
        layout: &WeightLayout,
        weights: &[f32],
    ) -> Optimiser {
        let second = match config.rule {
            UpdateRule::Sgd { .. } => Vec::new(),
            UpdateRule::AdamW { .. } => vec![0.0; weights.len()],
        };
        let cut = |range: &std::ops::Range<usize>, decays: bool| {
            let starts = range.clone().step_by(PIECE);
            let end = range.end;
            starts.map(move |start| (start..(start + PIECE).min(end), decays)).collect::<Vec<_>>()
        };
        Optimiser {
            config: config.clone(),
            decays: layout.weights.iter().flat_map(|part| cut(&part.range, part.decays)).collect(),
            first: vec![0.0; weights.len()],
            second,
            average: if config.average > 0.0 { weights.to_vec() } else { Vec::new() },
            steps: 0,
        }
    }

    /// Moves the weights against the gradient.
    pub(crate) fn step(&mut self, weights: &mut [f32], gradient: &[f32], learning_rate: f64) {
        self.steps += 1;
        let shorten = shorten(gradient, self.config.clip);
        let steps = self.steps.min(1 << 30) as i32;
        let (rule, decay) = (self.config.rule, self.config.weight_decay);
        let pieces = self.decays.iter();
        let pieces: Vec<_> = pieces
            .zip(split(weights, &self.decays))
            .zip(split(&mut self.first, &self.decays))
            .zip(split(&mut self.second, &self.decays))
            .collect();
        pieces.into_par_iter().for_each(|((((range, decays), weights), first), second)| {
            let gradient = &gradient[range.clone()];
            let decay = if *decays { learning_rate * decay } else { 0.0 } as f32;
            match rule {
                UpdateRule::Sgd { momentum } => {
                    let numbers = [momentum, learning_rate, shorten].map(|x| x as f32);
                    descend(weights, first, gradient, decay, numbers);
                }
                UpdateRule::AdamW { beta1, beta2, epsilon } => {
                    let rate = learning_rate / (1.0 - beta1.powi(steps));
                    let root = (1.0 / (1.0 - beta2.powi(steps))).sqrt();
                    let numbers = [beta1, beta2, rate, root, epsilon, shorten].map(|x| x as f32);
                    adam(weights, first, second, gradient, decay, numbers);
                }
            }
        });
        if !self.average.is_empty() {
            // With a long memory the average would stay near the start for many steps.
            let memory = self.config.average.min((self.steps as f64) / (self.steps as f64 + 9.0));
            let pieces = self.average.par_chunks_mut(PIECE).zip(weights.par_chunks(PIECE));
            pieces.for_each(|(average, weights)| follow(average, weights, (1.0 - memory) as f32));
        }
    }

    /// The weights to evaluate and keep.
    pub(crate) fn kept<'a>(&'a self, weights: &'a [f32]) -> &'a [f32] {
        if self.average.is_empty() { weights } else { &self.average }
    }
}

/// Consecutive mutable parts of an array; as many empty ones for an empty array.
fn split<'a>(
    mut values: &'a mut [f32],
    pieces: &[(std::ops::Range<usize>, bool)],
) -> Vec<&'a mut [f32]> {
    let is_empty = values.is_empty();
    let mut parts = Vec::with_capacity(pieces.len());
    for (range, _) in pieces {
        let length = if is_empty { 0 } else { range.len() };
        let (part, rest) = values.split_at_mut(length);
        parts.push(part);
        values = rest;
    }
    parts
}

/// The factor that shortens a gradient to a length; a length of 0 means never.
fn shorten(gradient: &[f32], most: f64) -> f64 {
    if most == 0.0 {
        return 1.0;
    }
    let length = gradient.iter().map(|g| f64::from(*g) * f64::from(*g)).sum::<f64>().sqrt();
    if length > most { most / length } else { 1.0 }
}

#[multiversion(targets = "simd")]
fn descend(
    weights: &mut [f32],
    momentum: &mut [f32],
    gradient: &[f32],
    decay: f32,
    [keep, rate, shorten]: [f32; 3],
) {
    for ((w, v), g) in weights.iter_mut().zip(momentum).zip(gradient) {
        *v = keep * *v + shorten * g;
        *w -= rate * *v + decay * *w;
    }
}

#[multiversion(targets = "simd")]
fn adam(
    weights: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
    gradient: &[f32],
    decay: f32,
    [beta1, beta2, rate, root, epsilon, shorten]: [f32; 6],
) {
    for (((w, m), v), g) in weights.iter_mut().zip(first).zip(second).zip(gradient) {
        let g = shorten * g;
        *m = beta1 * *m + (1.0 - beta1) * g;
        *v = beta2 * *v + (1.0 - beta2) * g * g;
        *w -= rate * *m / (v.sqrt() * root + epsilon) + decay * *w;
    }
}

#[multiversion(targets = "simd")]
fn follow(average: &mut [f32], weights: &[f32], part: f32) {
    for (a, w) in average.iter_mut().zip(weights) {
        *a += part * (w - *a);
    }
}

impl RateSchedule {
    /// The factor on the learning rate at a step of a stage.
    pub(crate) fn factor(self, step: u64, steps: u64, steps_per_epoch: u64) -> f64 {
        let done = step as f64 / steps.max(1) as f64;
        let up = |warm_up: f64| {
            if done < warm_up { (step + 1) as f64 / (warm_up * steps as f64).max(1.0) } else { 1.0 }
        };
        let after = |warm_up: f64| ((done - warm_up) / (1.0 - warm_up)).clamp(0.0, 1.0);
        match self {
            RateSchedule::Constant => 1.0,
            RateSchedule::Cosine { warm_up } => {
                up(warm_up).min(1.0) * 0.5 * (1.0 + (std::f64::consts::PI * after(warm_up)).cos())
            }
            RateSchedule::Linear { warm_up } => up(warm_up).min(1.0) * (1.0 - after(warm_up)),
            RateSchedule::Step { every, factor } => {
                let epochs = step / steps_per_epoch.max(1);
                factor.powi((epochs / every.max(1) as u64).min(1 << 20) as i32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HeadConfig;

    /// The textbook version, one value at a time in doubles.
    #[test]
    fn adam_is_the_textbooks() {
        let layout = WeightLayout::new(&HeadConfig::default(), 1, 1);
        let config = OptimiserConfig { weight_decay: 0.1, ..OptimiserConfig::default() };
        let mut weights = vec![0.5f32, -0.25];
        let mut optimiser = Optimiser::new(&config, &layout, &weights);
        let (mut m, mut v, mut w) = ([0.0f64; 2], [0.0f64; 2], [0.5f64, -0.25]);
        for step in 1..=20 {
            let gradient = [0.3 * step as f32, -1.0 / step as f32];
            optimiser.step(&mut weights, &gradient, 0.01);
            for at in 0..2 {
                let g = f64::from(gradient[at]);
                m[at] = 0.9 * m[at] + 0.1 * g;
                v[at] = 0.999 * v[at] + 0.001 * g * g;
                let (m_hat, v_hat) =
                    (m[at] / (1.0 - 0.9f64.powi(step)), v[at] / (1.0 - 0.999f64.powi(step)));
                // The bias, second, does not decay.
                let decay = if at == 0 { 0.1 } else { 0.0 };
                w[at] -= 0.01 * (m_hat / (v_hat.sqrt() + 1e-8) + decay * w[at]);
                assert!((f64::from(weights[at]) - w[at]).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn schedules_start_and_end_where_they_say() {
        assert_eq!(RateSchedule::Constant.factor(7, 10, 5), 1.0);
        let cosine = RateSchedule::Cosine { warm_up: 0.1 };
        assert!(cosine.factor(0, 100, 10) <= 0.1 + 1e-12);
        assert!((cosine.factor(10, 100, 10) - 1.0).abs() < 1e-12);
        assert!(cosine.factor(99, 100, 10) < 1e-3);
        assert!((RateSchedule::Linear { warm_up: 0.0 }.factor(50, 100, 10) - 0.5).abs() < 1e-12);
        let step = RateSchedule::Step { every: 2, factor: 0.5 };
        assert_eq!([0, 19, 20, 40].map(|at| step.factor(at, 100, 10)), [1.0, 1.0, 0.5, 0.25]);
    }

    #[test]
    fn long_gradients_are_shortened() {
        assert_eq!(shorten(&[3.0, 4.0], 1.0), 0.2);
        assert_eq!(shorten(&[3.0, 4.0], 0.0), 1.0);
        assert_eq!(shorten(&[0.3, 0.4], 1.0), 1.0);
    }
}
