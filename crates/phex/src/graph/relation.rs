//! The kinds of relation, and the frozen records that hold them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{LabelId, Place, Strength};

/// A parent subsumes a child: the child on with the parent off is a violation.
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchy {
    /// The more general label.
    pub parent: LabelId,
    /// The more specific label.
    pub child: LabelId,
    /// What a violation costs.
    pub strength: Strength,
    /// Where it was declared.
    pub place: Place,
}

/// Labels that exclude each other: every pair that is on together is a violation.
///
/// Two labels are an exclusion edge; more are a group, kept as one cardinality factor of
/// `C(m, 2)` violations when `m` of them are on and never expanded to pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Exclusion {
    /// The name of the group, where it has one.
    pub name: Option<String>,
    /// Two or more distinct labels in ascending order.
    pub labels: Vec<LabelId>,
    /// What each violated pair costs.
    pub strength: Strength,
    /// Where it was declared.
    pub place: Place,
}

impl Exclusion {
    /// How many pairs it stands for.
    pub fn pairs(&self) -> u64 {
        let k = self.labels.len() as u64;
        k * k.saturating_sub(1) / 2
    }
}

/// Labels of which exactly one is on (mutually exclusive and collectively exhaustive).
#[derive(Debug, Clone, PartialEq)]
pub struct OneOf {
    /// The name of the group.
    pub name: String,
    /// One or more distinct labels in ascending order.
    pub labels: Vec<LabelId>,
    /// Where it was declared.
    pub place: Place,
}

/// Which pairs of labels exclude each other although no line of the file says so.
///
/// Two labels *overlap* when they have a common descendant; a label counts as its own descendant,
/// so labels of which one subsumes the other overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusionRule {
    /// Labels exclude each other unless they have a common descendant (Deng et al. 2014). It never
    /// makes a label impossible.
    NoCommonDescendant,
    /// Labels exclude each other unless one subsumes the other (as printed by Ding et al. 2015).
    /// On a hierarchy with several parents it makes labels impossible.
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
        match self {
            ExclusionRule::NoCommonDescendant => "no-common-descendant",
            ExclusionRule::NotSubsumed => "not-subsumed",
            ExclusionRule::Siblings => "siblings",
        }
    }
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
    pub place: Place,
}

/// What a soft graph charges for. Graphs that are equivalent when hard differ when soft.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Semantics {
    /// A cost for each violated relation as declared, and for each minimal pair of a rule.
    #[default]
    Sparse,
    /// A cost for every implied pair.
    Dense,
}

/// Strengths for relations that give none: by kind, else for the whole graph, else hard.
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
    /// The strength of a hierarchy edge that gives none.
    pub fn hierarchy(&self) -> Strength {
        self.hierarchy.or(self.strength).unwrap_or(Strength::Hard)
    }

    /// The strength of an exclusion that gives none.
    pub fn exclusion(&self) -> Strength {
        self.exclusion.or(self.strength).unwrap_or(Strength::Hard)
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Defaults::default()
    }
}
