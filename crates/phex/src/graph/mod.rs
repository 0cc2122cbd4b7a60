//! Labels and the relations between them.
//!
//! [`GraphBuilder`] takes declarations by name and place; [`GraphBuilder::check`] returns a
//! [`Report`] of everything that is wrong; [`GraphBuilder::build`] freezes a [`RelationGraph`].
//! [`closure`] answers questions about the set of legal states.
//!
//! A state assigns on or off to every label. It is *legal* when it violates no hard relation: no
//! child is on with a parent off, no two labels that exclude each other are on, and of each one-of
//! group exactly one label is on. Soft relations cost instead (see [`Strength`]).

mod builder;
pub mod check;
pub mod closure;
pub mod document;
mod frozen;
mod label;
mod relation;
mod restrength;
mod strength;
mod topology;

pub use builder::GraphBuilder;
pub use check::{Finding, FindingKind, Report, RootCause, Severity, Step};
pub use frozen::RelationGraph;
pub use label::{Label, LabelId, Place};
pub use relation::{
    Defaults, Exclusion, ExclusionRule, Hierarchy, OneOf, RuleDeclaration, Semantics,
};
pub use restrength::RelationKind;
pub use strength::Strength;
pub use topology::Topology;
