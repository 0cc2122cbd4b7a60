//! Noise that imitates detectors of attributes.
//!
//! A detector's score is `d·x + ε` with ε standard normal and x the annotation, 0 or 1. The area under its
//! ROC curve is `Φ(d / √2)`, so an area A needs `d = √2 Φ⁻¹(A)`.

use phex_io::Features;
use statrs::distribution::{ContinuousCDF as _, Normal};

use crate::harness::RandomStream;

/// The separation of scores, in standard deviations of the noise, for an area under the ROC curve.
pub(super) fn separation(area: f64) -> f64 {
    std::f64::consts::SQRT_2 * Normal::standard().inverse_cdf(area)
}

/// Detector scores for all annotations.
pub(super) fn noisy(annotations: &Features, separation: f64, seed: u64) -> Features {
    let mut random = RandomStream::new(seed, "noise of detectors");
    let score = |&x: &f32| (separation * f64::from(x) + random.normal()) as f32;
    Features { values: annotations.values.iter().map(score).collect(), ..annotations.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detectors_have_the_requested_area() {
        let values: Vec<f32> = (0..4000).map(|at| f32::from(u8::from(at % 2 > 0))).collect();
        let features = Features { names: Vec::new(), rows: 4000, columns: 1, values };
        let found = noisy(&features, separation(0.8), 1).values;
        let (off, on): (Vec<_>, Vec<_>) = (0..4000).partition(|at| at % 2 == 0);
        let above = |&on: &usize| off.iter().filter(|&&off| found[on] > found[off]).count();
        let area = on.iter().map(above).sum::<usize>() as f64 / (2000.0 * 2000.0);
        assert!((area - 0.8).abs() < 0.02, "{area}");
    }
}
