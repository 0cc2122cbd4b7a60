//! Each label on its own: `Σ_t log(1 + exp(∓ℓ_t))` over the targets.

use phex::infer::Evidence;
use phex::numeric::{sigmoid, softplus};

/// The loss of a row; its gradient is added to `by_logit`.
pub(super) fn loss(logits: &[f32], evidence: &[Evidence], by_logit: &mut [f32]) -> f64 {
    let mut total = 0.0;
    for ((&logit, &entry), slope) in logits.iter().zip(evidence).zip(by_logit) {
        match entry {
            Evidence::Unknown => {}
            Evidence::On => {
                total += f64::from(softplus(-logit));
                *slope += sigmoid(logit) - 1.0;
            }
            Evidence::Off => {
                total += f64::from(softplus(logit));
                *slope += sigmoid(logit);
            }
        }
    }
    total
}
