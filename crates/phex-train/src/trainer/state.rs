//! The state of a run: everything needed to resume it as if it had not been interrupted.

use phex::learn::Strengths;
use serde::{Deserialize, Serialize};

use crate::head::Head;
use crate::optimiser::Optimiser;

/// The record of an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The name of the stage.
    pub stage: String,
    /// Counted from 1 over all stages.
    pub epoch: usize,
    /// The mean loss of the rows during training.
    pub training_loss: f64,
    /// The mean loss of the validation rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_loss: Option<f64>,
    /// The metric that chooses the epoch, on the validation rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_metric: Option<f64>,
    /// The learning rate of the last step.
    pub learning_rate: f64,
    /// The learned parameters of strengths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strengths: Vec<f64>,
    /// Seconds that the epoch took in the process that finished it.
    pub seconds: f64,
    /// What they were spent on.
    #[serde(default)]
    pub profile: Profile,
}

/// Seconds of an epoch, by what they were spent on.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Profile {
    /// Gathering and standardising rows.
    pub rows: f64,
    /// The head, forward and backward: matrix products.
    pub head: f64,
    /// Loss and gradient by inference.
    pub inference: f64,
    /// Steps of the optimiser.
    pub optimiser: f64,
    /// Validation at the end of the epoch.
    pub validation: f64,
}

/// The best weights of a stage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BestWeights {
    pub(crate) metric: f64,
    pub(crate) epoch: usize,
    pub(crate) weights: Vec<f32>,
    pub(crate) averages: Vec<f32>,
    pub(crate) strengths: Vec<f64>,
}

/// Learned strengths and the memory of their optimiser.
#[derive(Debug, Clone)]
pub(crate) struct StrengthState {
    pub(crate) strengths: Strengths,
    /// The gradient since the last step, and its rows.
    pub(crate) gradient: Vec<f64>,
    pub(crate) rows: f64,
    pub(crate) first: Vec<f64>,
    pub(crate) second: Vec<f64>,
    pub(crate) steps: u64,
}

impl StrengthState {
    pub(crate) fn new(strengths: Strengths) -> StrengthState {
        let nothing = vec![0.0; strengths.values().len()];
        StrengthState {
            strengths,
            gradient: nothing.clone(),
            rows: 0.0,
            first: nothing.clone(),
            second: nothing,
            steps: 0,
        }
    }

    /// One step of Adam on the mean loss with its prior; costs stay at 0 or above.
    pub(crate) fn step(&mut self, learning_rate: f64, prior: f64) {
        self.steps += 1;
        let (_, mut slope) = self.strengths.prior(prior);
        let rows = self.rows.max(1.0);
        slope.iter_mut().zip(&self.gradient).for_each(|(slope, sum)| *slope += sum / rows);
        let (first, second) = (&mut self.first, &mut self.second);
        self.strengths.step(&adam(&slope, first, second, self.steps, learning_rate));
        self.gradient.fill(0.0);
        self.rows = 0.0;
    }
}

/// A step of Adam for the few parameters beside the head.
pub(super) fn adam(
    slope: &[f64],
    first: &mut [f64],
    second: &mut [f64],
    steps: u64,
    learning_rate: f64,
) -> Vec<f64> {
    let (beta1, beta2) = (0.9, 0.99);
    let steps = steps.min(1 << 30) as i32;
    let step = |((g, first), second): ((&f64, &mut f64), &mut f64)| {
        *first = beta1 * *first + (1.0 - beta1) * g;
        *second = beta2 * *second + (1.0 - beta2) * g * g;
        let first = *first / (1.0 - beta1.powi(steps));
        let second = *second / (1.0 - beta2.powi(steps));
        -learning_rate * first / (second.sqrt() + 1e-8)
    };
    slope.iter().zip(first).zip(second).map(step).collect()
}

/// A run between two steps.
#[derive(Debug, Clone)]
pub(crate) struct TrainerState {
    pub(crate) stage: usize,
    /// Epochs done in this stage.
    pub(crate) epoch: usize,
    /// Steps done in this epoch.
    pub(crate) step: usize,
    pub(crate) loss_sum: f64,
    pub(crate) row_sum: f64,
    pub(crate) head: Head,
    pub(crate) optimiser: Optimiser,
    pub(crate) strengths: Option<StrengthState>,
    pub(crate) best: Option<BestWeights>,
    /// Validations since the best.
    pub(crate) stale: usize,
    pub(crate) history: Vec<EpochRecord>,
}
