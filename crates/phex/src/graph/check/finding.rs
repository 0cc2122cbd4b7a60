//! The findings of a check, and the report that holds them.

use std::fmt;

use serde::Serialize;

use super::super::{LabelId, RelationGraph, SourceLocation};

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The graph is unusable, or does not mean what its author intended.
    Error,
    /// Probably fine, worth a look.
    Warning,
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FindingKind {
    /// There are no labels.
    NoLabels,
    /// A name is empty or contains control characters.
    BadName,
    /// A relation names a label that is not declared.
    UnknownLabel,
    /// A label is declared twice.
    DuplicateLabel,
    /// The hierarchy has a cycle.
    HierarchyCycle,
    /// A label is related to itself.
    SelfRelation,
    /// A strength is not in its range.
    StrengthOutOfRange,
    /// A relation is declared twice with different strengths.
    ContradictoryStrengths,
    /// Two labels are parent and child, but exclude each other.
    ContradictoryRelations,
    /// Two exclusion rules are declared.
    TwoRules,
    /// A label is in two one-of groups.
    TwoOneOfGroups,
    /// Two one-of groups have the same name.
    DuplicateGroup,
    /// A one-of group has no label.
    EmptyOneOf,
    /// A one-of group has a soft strength.
    SoftOneOf,
    /// The hierarchy has more levels than supported.
    TooDeep,
    /// No legal state exists.
    UnsatisfiableOneOf,
    /// A label is off in every legal state.
    DeadLabel,
    /// It was not decided within the budget whether labels can be on.
    Undecided,
    /// A label is on in every legal state.
    ForcedLabel,
    /// A label cannot be on without violating a soft relation.
    StrainedLabel,
    /// Something in the source was left out, or understood in a way that is worth knowing.
    SourceNote,
    /// The names of two labels are nearly the same.
    SimilarNames,
    /// Labels exclude each other although their names suggest that one is the other.
    NameSaysIsA,
    /// A relation is declared twice.
    RepeatedRelation,
    /// A group names a label twice.
    RepeatedMember,
    /// Other relations imply this one.
    ImpliedRelation,
    /// A relation has no effect: a group of one label, or a strength without cost.
    NoEffect,
    /// A label has no relations.
    IsolatedLabel,
    /// Roots are connected by no relation, so that a row may be all of them at once.
    UnrelatedRoots,
    /// Exactly one leaf is on, but labels above that share no leaf may be on together.
    OpenParents,
}

impl FindingKind {
    /// How serious findings of this kind are.
    pub fn severity(self) -> Severity {
        use FindingKind::*;
        match self {
            ForcedLabel | StrainedLabel | NameSaysIsA | RepeatedRelation | RepeatedMember
            | ImpliedRelation | NoEffect | IsolatedLabel | UnrelatedRoots | OpenParents
            | Undecided | SourceNote | SimilarNames => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Whether a graph with such a finding cannot be built.
    pub fn refuses(self) -> bool {
        use FindingKind::*;
        let usable = matches!(self, ContradictoryRelations | UnsatisfiableOneOf | DeadLabel);
        self.severity() == Severity::Error && !usable
    }

    /// The name used in reports: `dead-label`.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => unreachable!("a unit variant is written as a string"),
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// The kind of relation in a [`Step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepRelation {
    /// `a` is the parent of `b`.
    Hierarchy,
    /// `a` and `b` exclude each other by an edge or a group.
    Exclusion,
    /// `a` and `b` are in the same one-of group.
    OneOf,
    /// `a` and `b` exclude each other by the exclusion rule.
    Rule,
}

/// One relation in a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The kind of the relation.
    pub relation: StepRelation,
    /// The parent, or the first label.
    pub a: String,
    /// The child, or the second label.
    pub b: String,
    /// The relation in words.
    pub text: String,
    /// Where it was declared.
    #[serde(skip_serializing_if = "SourceLocation::is_unknown")]
    pub place: SourceLocation,
}

impl Step {
    /// "husky is a dog".
    pub(super) fn is_a(graph: &RelationGraph, child: LabelId, parent: LabelId) -> Step {
        let edge = graph.topology().edge(parent, child).map(|edge| &graph.hierarchy()[edge]);
        let (below, above) = (graph.label(child), graph.label(parent));
        let words = above.to_string();
        let vowel = words.chars().next().is_some_and(|c| "aeiouAEIOU".contains(c));
        Step {
            relation: StepRelation::Hierarchy,
            a: above.name.clone(),
            b: below.name.clone(),
            text: format!("{below} is {} {words}", if vowel { "an" } else { "a" }),
            place: edge.map(|edge| edge.place.clone()).unwrap_or_default(),
        }
    }
}

/// A mistake, or something that is worth a look.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The kind of the finding.
    pub kind: FindingKind,
    /// How serious it is.
    pub severity: Severity,
    /// The labels concerned, the most important first.
    pub labels: Vec<String>,
    /// What is wrong and, if possible, what to do.
    pub message: String,
    /// The relations that prove it, in order.
    pub chain: Vec<Step>,
    /// Where it was declared.
    #[serde(skip_serializing_if = "SourceLocation::is_unknown")]
    pub place: SourceLocation,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, message: impl Into<String>) -> Finding {
        Finding {
            kind,
            severity: kind.severity(),
            labels: Vec::new(),
            message: message.into(),
            chain: Vec::new(),
            place: SourceLocation::default(),
        }
    }

    pub(super) fn labels<S: Into<String>>(
        mut self,
        labels: impl IntoIterator<Item = S>,
    ) -> Finding {
        self.labels = labels.into_iter().map(Into::into).collect();
        self
    }

    pub(super) fn chain(mut self, chain: Vec<Step>) -> Finding {
        self.chain = chain;
        self
    }

    pub(super) fn place(mut self, place: &SourceLocation) -> Finding {
        self.place = place.clone();
        self
    }
}

/// A relation whose removal revives dead labels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RootCause {
    /// The relation to remove, in addition to those of the causes before it.
    pub remove: Step,
    /// The labels that this removal revives.
    pub revives: Vec<String>,
    /// How many labels this and the removals before it revive together.
    pub revived: usize,
    /// How many labels are dead.
    pub dead: usize,
}

/// Everything that a check found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// How many labels the graph has.
    pub labels: usize,
    /// How many findings are errors.
    pub errors: usize,
    /// How many findings are warnings.
    pub warnings: usize,
    /// A few relations, in order, whose removal revives most of the dead labels.
    pub root_causes: Vec<RootCause>,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    /// Sorts the findings: errors first, then by kind, then by place.
    pub(in super::super) fn new(labels: usize, mut findings: Vec<Finding>) -> Report {
        findings.sort_by(|a, b| {
            let key = |f: &Finding| (f.severity, f.kind, f.place.line);
            key(a).cmp(&key(b))
        });
        let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
        let warnings = findings.len() - errors;
        Report { labels, errors, warnings, root_causes: Vec::new(), findings }
    }

    /// The findings: errors first, then by kind and place.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The findings of one kind.
    pub fn of_kind(&self, kind: FindingKind) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.kind == kind)
    }

    /// Whether nothing at all was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether an error was found.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }
}
