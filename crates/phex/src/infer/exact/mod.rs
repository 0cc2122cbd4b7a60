//! Engines whose answers are exact, up to rounding.

pub(crate) mod brute;
pub(crate) mod count;
pub(crate) mod family;
pub(crate) mod junction;
mod k_best;
pub(crate) mod paths;
pub(crate) mod star;
pub(crate) mod states;
