//! The exact engines. Their answers are exact up to rounding, and best sets and samples are exact
//! or refused.

pub(crate) mod brute;
pub(crate) mod count;
pub(crate) mod family;
pub(crate) mod junction;
mod k_best;
pub(crate) mod paths;
pub(crate) mod star;
pub(crate) mod states;
