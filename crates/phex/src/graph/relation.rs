//! The kinds of relations, and the frozen records that hold them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{LabelId, SourceLocation, Strength};
use crate::Named;

/// A parent subsumes a child: it is a violation when the child is on and the parent is off.
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchy {
    /// The more general label.
    pub parent: LabelId,
    /// The more specific label.
    pub child: LabelId,
    /// What a violation costs.
    pub strength: Strength,
    /// Where it was declared.
    pub place: SourceLocation,
}

/// Labels that exclude each other: each pair that is on together is a violation.
///
/// Two labels are an exclusion edge. More labels are a group. A group stays one cardinality factor
/// with `C(m, 2)` violations when `m` of its labels are on, and is never expanded to pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Exclusion {
    /// The name of the group, if it has one.
    pub name: Option<String>,
    /// Two or more distinct labels in ascending order.
    pub labels: Vec<LabelId>,
    /// What each violated pair costs.
    pub strength: Strength,
    /// Where it was declared.
    pub place: SourceLocation,
}

impl Exclusion {
    /// How many pairs it stands for.
    pub fn pairs(&self) -> u64 {
        let k = self.labels.len() as u64;
        k * k.saturating_sub(1) / 2
    }
}

/// Labels of which exactly one is on (mutually exclusive and collectively exhaustive). The group is
/// always hard.
#[derive(Debug, Clone, PartialEq)]
pub struct OneOf {
    /// The name of the group.
    pub name: String,
    /// One or more distinct labels in ascending order.
    pub labels: Vec<LabelId>,
    /// Where it was declared.
    pub place: SourceLocation,
}

impl OneOf {
    /// The name of the group that a single-label graph has over its leaves.
    pub const SINGLE_LABEL: &'static str = "leaf";
}

/// A rule by which pairs of labels exclude each other, in addition to the declared exclusions.
///
/// Two labels *overlap* when they have a common descendant. A label counts as its own descendant,
/// so two labels overlap when one subsumes the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusionRule {
    /// Labels exclude each other unless they have a common descendant (Deng et al. 2014). This rule
    /// never makes a label impossible.
    NoCommonDescendant,
    /// Labels exclude each other unless one subsumes the other (as printed by Ding et al. 2015). On
    /// a hierarchy in which labels have several parents, this rule makes labels impossible.
    NotSubsumed,
    /// Labels with a common parent exclude each other unless they have a common descendant.
    Siblings,
}

impl ExclusionRule {
    /// Every rule, in the order of the documentation.
    pub const ALL: [ExclusionRule; 3] =
        [ExclusionRule::NoCommonDescendant, ExclusionRule::NotSubsumed, ExclusionRule::Siblings];

    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        Named::name(self)
    }
}

impl Named for ExclusionRule {
    const WHAT: &'static str = "exclusion rule";
    const CHOICES: &'static [(&'static str, ExclusionRule)] = &[
        ("no-common-descendant", ExclusionRule::NoCommonDescendant),
        ("not-subsumed", ExclusionRule::NotSubsumed),
        ("siblings", ExclusionRule::Siblings),
    ];
}

impl fmt::Display for ExclusionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An exclusion rule with its strength and place.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleDeclaration {
    /// Which pairs exclude each other.
    pub rule: ExclusionRule,
    /// What each violated pair costs.
    pub strength: Strength,
    /// Where it was declared.
    pub place: SourceLocation,
}

/// Which violations a soft graph charges for. Graphs that are equivalent when hard may differ when
/// soft.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Semantics {
    /// Each violated relation as declared has a cost, and so does each minimal pair of a rule.
    #[default]
    Sparse,
    /// Every implied pair has a cost.
    Dense,
}

/// Strengths of relations that are declared without one: the strength for their kind, else the
/// strength for the whole graph, else hard.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// For every relation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
    /// For hierarchy edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hierarchy: Option<Strength>,
    /// For exclusion edges, exclusion groups and the exclusion rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusion: Option<Strength>,
}

impl Defaults {
    /// The strength of hierarchy edges that are declared without one.
    pub fn hierarchy(&self) -> Strength {
        self.hierarchy.or(self.strength).unwrap_or(Strength::Hard)
    }

    /// The strength of exclusions that are declared without one.
    pub fn exclusion(&self) -> Strength {
        self.exclusion.or(self.strength).unwrap_or(Strength::Hard)
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Defaults::default()
    }
}
