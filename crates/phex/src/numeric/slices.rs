//! Elementary functions of whole slices, vectorised.

use multiversion::multiversion;

use super::{Elementary, LogLane};

/// Replaces positive normal numbers by their natural logarithms.
#[multiversion(targets = "simd")]
pub(crate) fn ln_slice<T: LogLane>(values: &mut [T]) {
    for value in values {
        *value = value.ln_lane();
    }
}

/// Replaces logits by probabilities: `1 / (1 + e^{−x})`, without overflow, and with full relative
/// precision near 0.
#[multiversion(targets = "simd")]
pub(crate) fn sigmoid_slice<T: Elementary>(values: &mut [T]) {
    for value in values {
        *value = probability_lane(*value);
    }
}

/// `1 / (1 + e^{−x})` without calls or branches, for loops over lanes.
#[inline(always)]
pub(crate) fn probability_lane<T: Elementary>(x: T) -> T {
    let positive = x > T::ZERO;
    let e = (if positive { -x } else { x }).exp_downwards();
    let share = T::ONE / (T::ONE + e);
    if positive { share } else { e * share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_agree_with_single_values() {
        let x: Vec<f64> = (-100..=100).map(|step| f64::from(step) * 0.7).collect();
        let mut p = x.clone();
        sigmoid_slice(&mut p);
        for (&x, &p) in x.iter().zip(&p) {
            let exact = super::super::sigmoid(x);
            assert!((p - exact).abs() <= 1e-15 * exact, "{x}");
        }
        ln_slice(&mut p);
        assert!(x.iter().zip(&p).all(|(&x, &l)| (l + super::super::softplus(-x)).abs() < 1e-13));
    }
}
