//! The arithmetic that every engine, loss and metric shares: number types, vector lanes, `exp` and
//! `log` in the log domain, random numbers, and the limit on scores.

/// The largest score in absolute value. Larger scores could overflow when they are added, in singles.
pub const SCORE_LIMIT: f64 = 1e30;

pub(crate) mod exp;
pub(crate) mod lanes;
mod scalar;

pub(crate) use exp::Elementary;
pub(crate) use lanes::{Lanes, registers};
pub use scalar::Scalar;
