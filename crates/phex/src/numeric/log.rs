//! Sums in the log domain. Minus infinity represents a weight of 0.
//!
//! ```text
//! log_add(a, b)  = log(eᵃ + eᵇ)        = max + log1p(e^{min − max})
//! log_sum_exp(v) = log Σ e^{v_i}       = max + log Σ e^{v_i − max}
//! softplus(x)    = log(1 + eˣ)         = max(x, 0) + log1p(e^{−|x|})
//! sigmoid(x)     = 1 / (1 + e^{−x}),   logit(p) = log(p / (1 − p))
//! ```

use super::{Elementary, Scalar};

/// `log(eᵃ + eᵇ)`.
pub fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    // This also avoids (−∞) − (−∞).
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// The larger of two logs, and the smaller weight as a share of the larger, without calls or branches.
#[inline(always)]
pub(crate) fn larger_and_share(a: f64, b: f64) -> (f64, f64) {
    let high = if a > b { a } else { b };
    let low = if a > b { b } else { a };
    let gap = if low > f64::NEG_INFINITY { low - high } else { f64::NEG_INFINITY };
    (high, gap.exp_downwards())
}

/// [`log_add`] without calls or branches, for loops over lanes.
#[inline(always)]
pub(crate) fn log_add_lane(a: f64, b: f64) -> f64 {
    let (high, share) = larger_and_share(a, b);
    high + share.ln_1p_unit()
}

/// The largest of some logs, or minus infinity if there are none.
pub fn log_max(logs: impl IntoIterator<Item = f64>) -> f64 {
    logs.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

/// `log Σ e^{v_i}`, or minus infinity if there are no terms.
pub fn log_sum_exp(logs: impl IntoIterator<Item = f64, IntoIter: Clone>) -> f64 {
    let logs = logs.into_iter();
    let most = log_max(logs.clone());
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + logs.map(|log| (log - most).exp()).sum::<f64>().ln()
}

/// `log(1 + eˣ)`.
pub fn softplus<T: Scalar>(x: T) -> T {
    let magnitude = if x > T::ZERO { x } else { -x };
    x.max(T::ZERO) + (-magnitude).exp().ln_1p()
}

/// [`softplus`] without calls or branches, for loops over lanes.
#[inline(always)]
pub(crate) fn softplus_lane<T: Elementary>(x: T) -> T {
    let (low, high) = if x > T::ZERO { (-x, x) } else { (x, T::ZERO) };
    high + low.exp_downwards().ln_1p_unit()
}

/// `1 / (1 + e^{−x})`. It does not overflow for large `x` of either sign.
pub fn sigmoid<T: Scalar>(x: T) -> T {
    T::ONE / (T::ONE + (-x).exp())
}

/// `log(p / (1 − p))`.
pub fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_right_where_plain_exponentials_overflow() {
        let nothing = f64::NEG_INFINITY;
        assert_eq!(log_add(nothing, nothing), nothing);
        assert_eq!(log_add(nothing, 3.0), 3.0);
        assert_eq!(log_sum_exp([]), nothing);
        assert_eq!(log_sum_exp([nothing, nothing]), nothing);
        assert!((log_add(1000.0, 1000.0) - (1000.0 + 2f64.ln())).abs() < 1e-12);
        assert!((log_sum_exp([-1e4, -1e4, -1e4]) - (-1e4 + 3f64.ln())).abs() < 1e-11);
        for step in -80..=80 {
            let x = f64::from(step) * 0.5;
            assert!((softplus(x) - log_add(0.0, x)).abs() < 1e-14, "{x}");
            assert!((softplus_lane(x) - log_add(0.0, x)).abs() < 2e-15 * x.abs().max(1.0), "{x}");
            assert!((logit(sigmoid(x)) - x).abs() < 1e-2 || x > 30.0, "{x}");
        }
        assert_eq!(softplus(1e30), 1e30);
        assert_eq!(sigmoid(-1e30), 0.0);
        assert_eq!(sigmoid(1e30f32), 1.0);
    }
}
