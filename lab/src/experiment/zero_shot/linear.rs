//! A linear head and its steps.
//!
//! `logits = x W + b`, starting at zero. Steps are those of Adam (β₁ = 0.9, β₂ = 0.999, no decay) or, by
//! [`StepRule::Normed`], `w ← w − η m / r` with m the mean of gradients and r² the mean of their mean squares over all
//! weights: gradient descent whose steps do not depend on the scale of the loss, so that soft and hard relations share
//! a grid of step sizes. Steps of the bias are √inputs times as large, as if it were the weight of a feature as long as
//! all others together. The order of batches follows from the seed. The caller turns logits into slopes of its loss.
//!
//! A run reports after several numbers of epochs, so that its length is tuned without training again. This, the steps
//! of the bias and outputs fixed at zero are why it is not a head of `phex-train`. O(rows · inputs · outputs) per epoch.

use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis};

use super::settings::StepRule;
use crate::Error;
use crate::harness::RandomStream;

/// A linear map from features to logits.
#[derive(Debug, Clone)]
pub(super) struct LinearHead {
    weights: Array2<f32>,
    bias: Array1<f32>,
}

/// How a head is trained.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepSettings<'a> {
    pub(super) learning_rate: f64,
    /// The numbers of epochs after which the caller sees the head, ascending.
    pub(super) lengths: &'a [usize],
    pub(super) batch: usize,
    pub(super) rule: StepRule,
    pub(super) seed: u64,
}

impl LinearHead {
    /// A head at zero.
    pub(super) fn new(inputs: usize, outputs: usize) -> LinearHead {
        LinearHead { weights: Array2::zeros((inputs, outputs)), bias: Array1::zeros(outputs) }
    }

    /// The logits of some rows.
    pub(super) fn logits(&self, inputs: ArrayView2<'_, f32>) -> Array2<f32> {
        let mut logits = Array2::zeros((inputs.nrows(), self.bias.len()));
        for mut row in logits.axis_iter_mut(Axis(0)) {
            row.assign(&self.bias);
        }
        general_mat_mul(1.0, &inputs, &self.weights, 1.0, &mut logits);
        logits
    }

    /// Trains. `slope` gives the derivative of the summed loss of rows by their logits; `look` sees the head after each
    /// length.
    ///
    /// # Errors
    /// Those of `slope` and `look`; [`Error::Interrupted`] if `stop` is set.
    pub(super) fn train(
        &mut self,
        inputs: &Array2<f32>,
        steps: &StepSettings<'_>,
        stop: &AtomicBool,
        mut slope: impl FnMut(&Array2<f32>, &[usize]) -> Result<Array2<f32>, Error>,
        mut look: impl FnMut(&LinearHead) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut by_weight = Moments::new(self.weights.len(), steps.rule);
        let mut by_bias = Moments::new(self.bias.len(), steps.rule);
        let mut gradient = Array2::zeros(self.weights.raw_dim());
        let mut random = RandomStream::new(steps.seed, "order of rows");
        let longer = (inputs.ncols() as f32).sqrt();
        let last = steps.lengths.last().copied().unwrap_or(0);
        for epoch in 1..=last {
            let order = random.shuffled(inputs.nrows());
            for batch in order.chunks(steps.batch) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let part = inputs.select(Axis(0), batch);
                let mut slopes = slope(&self.logits(part.view()), batch)?;
                slopes *= 1.0 / batch.len() as f32;
                general_mat_mul(1.0, &part.t(), &slopes, 0.0, &mut gradient);
                let rate = steps.learning_rate as f32;
                by_weight.step(self.weights.as_slice_mut(), gradient.as_slice(), rate);
                let sums = slopes.sum_axis(Axis(0));
                by_bias.step(self.bias.as_slice_mut(), sums.as_slice(), rate * longer);
            }
            if steps.lengths.contains(&epoch) {
                look(self)?;
            }
        }
        Ok(())
    }
}

/// The moments of gradients.
struct Moments {
    rule: StepRule,
    first: Vec<f32>,
    /// For each weight (Adam), or for all together.
    second: Vec<f32>,
    steps: i32,
}

impl Moments {
    fn new(count: usize, rule: StepRule) -> Moments {
        let second = match rule {
            StepRule::Adam => vec![0.0; count],
            StepRule::Normed => vec![0.0],
        };
        Moments { rule, first: vec![0.0; count], second, steps: 0 }
    }

    fn step(&mut self, values: Option<&mut [f32]>, gradient: Option<&[f32]>, rate: f32) {
        let (Some(values), Some(gradient)) = (values, gradient) else { return };
        self.steps += 1;
        let rate = rate / (1.0 - 0.9f32.powi(self.steps));
        let root = (1.0 / (1.0 - 0.999f32.powi(self.steps))).sqrt();
        let all = values.iter_mut().zip(gradient).zip(&mut self.first);
        match self.rule {
            StepRule::Adam => {
                for (((value, g), first), second) in all.zip(&mut self.second) {
                    *first = 0.9 * *first + 0.1 * g;
                    *second = 0.999 * *second + 0.001 * g * g;
                    *value -= rate * *first / (second.sqrt() * root + 1e-8);
                }
            }
            StepRule::Normed => {
                let square =
                    gradient.iter().map(|g| g * g).sum::<f32>() / gradient.len().max(1) as f32;
                self.second[0] = 0.999 * self.second[0] + 0.001 * square;
                let rate = rate / (self.second[0].sqrt() * root + 1e-12);
                for ((value, g), first) in all {
                    *first = 0.9 * *first + 0.1 * g;
                    *value -= rate * *first;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least-squares line through four points.
    #[test]
    fn a_head_finds_the_minimum_and_is_seen_on_the_way() {
        let inputs = Array2::from_shape_vec((4, 1), vec![-1.5, -0.5, 0.5, 1.5]).unwrap();
        let targets = [1.0f32, 2.0, 2.0, 5.0];
        for rule in [StepRule::Adam, StepRule::Normed] {
            let mut head = LinearHead::new(1, 1);
            let steps =
                StepSettings { learning_rate: 0.02, lengths: &[10, 2000], batch: 4, rule, seed: 1 };
            let mut looks = 0;
            let slope = |logits: &Array2<f32>, rows: &[usize]| {
                let away = |at: usize| logits[(at, 0)] - targets[rows[at]];
                Ok(Array2::from_shape_fn((rows.len(), 1), |(at, _)| away(at)))
            };
            let look = |_: &LinearHead| {
                looks += 1;
                Ok(())
            };
            head.train(&inputs, &steps, &AtomicBool::new(false), slope, look).unwrap();
            // Mean 2.5, slope Σxy / Σx² = 6 / 5.
            assert_eq!(looks, 2);
            assert!((head.bias[0] - 2.5).abs() < 1e-2 && (head.weights[(0, 0)] - 1.2).abs() < 1e-2);
            let stopped = head.train(&inputs, &steps, &AtomicBool::new(true), slope, |_| Ok(()));
            assert!(matches!(stopped, Err(Error::Interrupted)));
        }
    }
}
