//! Questions about the set of legal states: what relations imply, the fewest or all relations with
//! the same legal states, equivalence, counting and enumeration.
//!
//! [`Logic`] reads the relations of a graph as constraints, and everything in this module works on
//! it. Rules stay implicit: a rule becomes its minimal exclusive sets (whole families where
//! possible), never all n² pairs.
//!
//! Most questions reduce to one, which `solve` answers: is there a legal state with some labels on
//! and others off? Dead labels, forced labels, implied relations, equivalence and the last step of
//! `sparsify` are all of this form.

mod constant;
mod count;
mod densify;
mod entail;
mod enumerate;
mod logic;
mod rules;
mod solve;
mod sparsify;

pub use enumerate::LegalStates;
pub use logic::{ExclusiveSet, Logic, SetSource};
pub(in crate::graph) use solve::{Solver, Verdict};
pub use sparsify::MinimalRelations;
