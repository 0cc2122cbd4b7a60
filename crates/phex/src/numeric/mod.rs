//! The arithmetic that engines, losses and metrics share: number types, vector lanes, `exp`, sums
//! in the log domain, random numbers, and the limit on scores.

mod exp;
mod grid;
mod lanes;
mod ln;
mod log;
mod random;
mod scalar;
mod slices;

pub(crate) use exp::{Elementary, exp_six_digits, sigmoid_lane, sigmoid_of_power};
pub(crate) use grid::Grid;
pub(crate) use lanes::Lanes;
pub(crate) use ln::LogLane;
pub(crate) use log::{larger_and_share, log_add_lane, softplus_lane};
pub use log::{log_add, log_max, log_sum_exp, logit, sigmoid, softplus};
pub(crate) use random::LaneRandom;
pub use random::{GOLDEN, mix, splitmix};
pub use scalar::Scalar;
pub(crate) use slices::{ln_slice, probability_lane, sigmoid_slice};

/// Scores beyond this limit are rejected, because sums of them could overflow single precision.
pub const SCORE_LIMIT: f64 = 1e30;

/// Whether a score is finite and within [`SCORE_LIMIT`].
pub fn is_usable_score<T: Scalar>(score: T) -> bool {
    (-SCORE_LIMIT..=SCORE_LIMIT).contains(&score.to_f64())
}
