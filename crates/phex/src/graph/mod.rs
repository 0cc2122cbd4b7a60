//! Labels and the relations between them.
//!
//! [`GraphBuilder`] collects declarations by name and place. [`GraphBuilder::check`] returns a
//! [`Report`] of everything that is wrong with them. [`GraphBuilder::build`] freezes them into a
//! [`RelationGraph`]. [`closure`] answers questions about the set of legal states.
//!
//! A state assigns on or off to every label. It is *legal* when it violates no hard relation: no
//! child is on while a parent is off, no two labels that exclude each other are both on, and
//! exactly one label of each one-of group is on. Soft relations have a finite cost instead (see
//! [`Strength`]).

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
pub use label::{Label, LabelId, SourceLocation};
pub use relation::{
    Defaults, Exclusion, ExclusionRule, Hierarchy, OneOf, RuleDeclaration, Semantics,
};
pub use restrength::RelationKind;
pub use strength::Strength;
pub use topology::Topology;
