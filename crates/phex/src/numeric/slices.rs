//! Elementary functions of whole slices, vectorised.

use multiversion::multiversion;

use super::LogLane;

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
pub(crate) fn sigmoid_slice<T: LogLane>(values: &mut [T]) {
    for value in values {
        let x = *value;
        let positive = x > T::ZERO;
        let e = (if positive { -x } else { x }).exp_downwards();
        let share = T::ONE / (T::ONE + e);
        *value = if positive { share } else { e * share };
    }
}

/// Replaces numbers by their softplus: `log(1 + eˣ)`.
#[multiversion(targets = "simd")]
pub(crate) fn softplus_slice<T: LogLane>(values: &mut [T]) {
    for value in values {
        *value = super::softplus_lane(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_agree_with_single_values() {
        let x: Vec<f64> = (-100..=100).map(|step| f64::from(step) * 0.7).collect();
        let (mut p, mut s) = (x.clone(), x.clone());
        sigmoid_slice(&mut p);
        softplus_slice(&mut s);
        for ((&x, &p), &s) in x.iter().zip(&p).zip(&s) {
            let exact = super::super::sigmoid(x);
            assert!((p - exact).abs() <= 1e-15 * exact, "{x}");
            assert!((s - super::super::softplus(x)).abs() <= 1e-14 * s.max(1.0), "{x}");
        }
        ln_slice(&mut p);
        assert!(x.iter().zip(&p).all(|(&x, &l)| (l + super::super::softplus(-x)).abs() < 1e-13));
    }
}
