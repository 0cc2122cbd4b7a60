//! Finds labels that can never be on and labels that are always on, with proofs.
//!
//! A label is dead when its ancestors exclude each other, or when no choice of members of the
//! one-of groups is compatible with it. In the first case the proof is a shortest chain: the path
//! up to one ancestor, the exclusion, and the path up to the other.
//!
//! A label needs no check when its only parent is alive and it is in no exclusive set. Every other
//! label costs a walk over its ancestors.

use std::collections::{HashMap, VecDeque};

use fixedbitset::FixedBitSet;

use super::super::closure::{Logic, SetSource, Solver, Verdict};
use super::super::{ExclusionRule, LabelId, RelationGraph};
use super::finding::{Finding, FindingKind, Step, StepRelation};
use super::resolve::quoted;

/// A label that is off in every legal state.
pub(super) struct Dead {
    pub(super) label: LabelId,
    /// The indices of the one-of groups that cause it. Empty when the label's ancestors exclude
    /// each other.
    pub(super) guilty: Vec<usize>,
    pub(super) finding: Finding,
}

/// All dead labels, in the order of their ids.
pub(super) fn dead_labels(graph: &RelationGraph, logic: &Logic) -> Vec<Dead> {
    let conflicted = logic.conflicted_labels();
    let mut prover = Prover::new(graph, logic);
    // Parents come first, because the proof for a label may use the proof for a parent.
    let order = logic.topology().order().iter().filter(|label| conflicted.contains(label.index()));
    let mut dead: Vec<Dead> = order
        .map(|&label| {
            let finding = prover.finding(label, FindingKind::DeadLabel, "can never be on");
            Dead { label, guilty: Vec::new(), finding }
        })
        .collect();
    if !logic.groups().is_empty() {
        dead.extend(dead_by_groups(graph, logic, &conflicted));
    }
    dead.sort_by_key(|dead| dead.label);
    dead
}

/// Writes proofs that labels cannot be on.
pub(super) struct Prover<'g> {
    graph: &'g RelationGraph,
    logic: &'g Logic,
    /// Whether the rule is `not-subsumed`, the only rule that can make ancestors of one label
    /// exclude each other. Then any two ancestors are tried, so that the shortest proof is found
    /// and not only one through a minimal pair.
    not_subsumed: bool,
    /// The proofs found so far.
    proofs: HashMap<LabelId, Vec<Step>>,
}

impl<'g> Prover<'g> {
    pub(super) fn new(graph: &'g RelationGraph, logic: &'g Logic) -> Prover<'g> {
        let rule_in_use = logic.sets().iter().any(|set| set.source == SetSource::Rule);
        let not_subsumed =
            graph.rule().is_some_and(|declared| declared.rule == ExclusionRule::NotSubsumed);
        let not_subsumed = rule_in_use && not_subsumed;
        Prover { graph, logic, not_subsumed, proofs: HashMap::new() }
    }

    /// "husky can never be on: husky is a dog, ..."
    pub(super) fn finding(&mut self, label: LabelId, kind: FindingKind, claim: &str) -> Finding {
        let chain = self.proof(label);
        let words: Vec<&str> = chain.iter().map(|step| step.text.as_str()).collect();
        let message = format!("{} {claim}: {}", self.graph.label(label), words.join(", "));
        let place = chain.first().map_or(&self.graph.label(label).place, |step| &step.place);
        let place = place.clone();
        Finding::new(kind, message)
            .labels([&self.graph.label(label).name])
            .chain(chain)
            .place(&place)
    }

    /// The shortest proof that a label is dead: either through a dead parent (parents are proved
    /// first), or by two paths up from the label itself.
    fn proof(&mut self, label: LabelId) -> Vec<Step> {
        let parents = self.logic.topology().parents(label).iter();
        let dead = parents.filter_map(|parent| Some((self.proofs.get(parent)?.len() + 1, *parent)));
        let through = dead.min();
        let direct = self.shortest_proof(&[label], through.map(|(length, _)| length));
        let chain = match (direct, through) {
            (Some(chain), _) => chain,
            (None, Some((_, parent))) => {
                let step = Step::is_a(self.graph, label, parent);
                std::iter::once(step).chain(self.proofs[&parent].iter().cloned()).collect()
            }
            (None, None) => Vec::new(),
        };
        self.proofs.insert(label, chain.clone());
        chain
    }

    /// The shortest chain of relations which shows that these labels cannot be on together: the
    /// path up to one label, an exclusion, and the path up to the other. `None` when there is no
    /// chain shorter than the limit.
    pub(super) fn shortest_proof(
        &self,
        labels: &[LabelId],
        than: Option<usize>,
    ) -> Option<Vec<Step>> {
        let topology = self.logic.topology();
        // Breadth first. Each label is stored with its distance and the label below it.
        let mut reached: HashMap<LabelId, (usize, Option<LabelId>)> = HashMap::new();
        let mut queue: VecDeque<LabelId> = VecDeque::new();
        for &label in labels {
            reached.insert(label, (0, None));
            queue.push_back(label);
        }
        let mut order = Vec::new();
        while let Some(label) = queue.pop_front() {
            order.push(label);
            let distance = reached[&label].0 + 1;
            for &parent in topology.parents(label) {
                reached.entry(parent).or_insert_with(|| {
                    queue.push_back(parent);
                    (distance, Some(label))
                });
            }
        }
        let mut best: Option<(LabelId, LabelId)> = None;
        let mut shortest = than.unwrap_or(usize::MAX);
        for (at, &a) in order.iter().enumerate() {
            if reached[&a].0 + 1 >= shortest {
                break;
            }
            for &b in &order[..at] {
                let length = reached[&a].0 + reached[&b].0 + 1;
                if length < shortest && self.exclusive(a, b) {
                    (shortest, best) = (length, Some((a, b)));
                }
            }
        }
        let (first, second) = best?;
        let way_up = |mut label: LabelId| {
            let mut steps = Vec::new();
            while let Some(below) = reached[&label].1 {
                steps.push(Step::is_a(self.graph, below, label));
                label = below;
            }
            steps.reverse();
            steps
        };
        let mut chain = way_up(first);
        chain.push(self.exclusion(first, second));
        chain.extend(way_up(second));
        Some(chain)
    }

    fn exclusive(&self, a: LabelId, b: LabelId) -> bool {
        self.logic.shared_set(a, b).is_some()
            || (self.not_subsumed && !self.graph.topology().comparable(a, b))
    }

    /// "pet excludes wild animal".
    pub(super) fn exclusion(&self, a: LabelId, b: LabelId) -> Step {
        let graph = self.graph;
        let (first, second) = (graph.label(a), graph.label(b));
        let source = self.logic.shared_set(a, b).map(|set| self.logic.sets()[set as usize].source);
        let (relation, text, place) = match source {
            Some(SetSource::Exclusion(at)) => {
                let exclusion = &graph.exclusions()[at];
                let group = match &exclusion.name {
                    Some(name) => format!(" (exclusion group `{name}`)"),
                    None => String::new(),
                };
                let text = format!("{first} excludes {second}{group}");
                (StepRelation::Exclusion, text, exclusion.place.clone())
            }
            Some(SetSource::OneOf(at)) => {
                let group = &graph.one_of()[at];
                let text = format!("{first} excludes {second} (one-of group `{}`)", group.name);
                (StepRelation::OneOf, text, group.place.clone())
            }
            // Only `not-subsumed` makes labels exclude each other that share no explicit set.
            Some(SetSource::Rule) | None => {
                let rule = graph.rule().map(|declared| (declared.rule, declared.place.clone()));
                let (rule, place) = match rule {
                    Some((rule, place)) => (rule.name(), place),
                    None => ("", Default::default()),
                };
                let text = format!("{first} excludes {second} (rule `{rule}`)");
                (StepRelation::Rule, text, place)
            }
        };
        Step { relation, a: first.name.clone(), b: second.name.clone(), text, place }
    }
}

/// Labels that are compatible with no choice of members of the one-of groups.
fn dead_by_groups(graph: &RelationGraph, logic: &Logic, conflicted: &FixedBitSet) -> Vec<Dead> {
    let mut solver = Solver::new(logic);
    if !matches!(solver.ask(&[], &[]), Verdict::Possible(_)) {
        // There is no legal state, or the question is undecided. This is reported once for the
        // groups, not for every label.
        return Vec::new();
    }
    let mut alive = FixedBitSet::with_capacity(logic.len());
    let mut dead = Vec::new();
    // Leaves come first: a state with a leaf on also has its ancestors on, so they need no
    // question.
    for &label in logic.topology().order().iter().rev() {
        if alive.contains(label.index()) || conflicted.contains(label.index()) {
            continue;
        }
        match solver.ask(&[label], &[]) {
            Verdict::Possible(on) => alive.extend(on.iter().map(|id| id.index())),
            // `groups` reports once how many labels this concerns.
            Verdict::Undecided => {}
            Verdict::Impossible => dead.push(group_proof(graph, logic, &mut solver, label)),
        }
    }
    dead
}

/// Names as few groups as possible, and shows why none of their members is compatible.
fn group_proof(
    graph: &RelationGraph,
    logic: &Logic,
    solver: &mut Solver<'_>,
    label: LabelId,
) -> Dead {
    let guilty = guilty_groups(logic, solver, &[label]);
    let names: Vec<&str> = guilty.iter().map(|&at| graph.one_of()[at].name.as_str()).collect();
    let prover = Prover::new(graph, logic);
    let subject = graph.label(label);
    // Every conflict of the label with a member, and between members of different groups.
    let mut chain: Vec<Step> = Vec::new();
    let members = |group: usize| logic.groups()[group].iter().copied();
    for (at, &group) in guilty.iter().enumerate() {
        let others = guilty[..at].iter().flat_map(|&other| members(other)).chain([label]);
        for other in others {
            for member in members(group) {
                let proof = prover.shortest_proof(&[other, member], None).unwrap_or_default();
                let fresh: Vec<Step> = proof.into_iter().filter(|s| !chain.contains(s)).collect();
                chain.extend(fresh);
            }
        }
    }
    let conflicts = chain.iter().filter(|step| step.relation != StepRelation::Hierarchy);
    let conflicts: Vec<&str> = conflicts.take(3).map(|step| step.text.as_str()).collect();
    let because = format!("{}{}", conflicts.join(", "), if chain.len() > 3 { ", …" } else { "" });
    let message = match guilty.as_slice() {
        &[group] => format!(
            "{subject} can never be on: it is compatible with none of the {} labels of the one-of group `{}`, \
             of which one must be on ({because})",
            logic.groups()[group].len(),
            graph.one_of()[group].name
        ),
        _ => format!(
            "{subject} can never be on: no choice of one label from each of the one-of groups {} \
             is compatible with it ({because})",
            quoted(&names)
        ),
    };
    let place = guilty.first().map(|&at| &graph.one_of()[at].place).unwrap_or(&subject.place);
    let finding = Finding::new(FindingKind::DeadLabel, message)
        .labels([&subject.name])
        .chain(chain)
        .place(place);
    Dead { label, guilty, finding }
}

/// A minimal set of one-of groups that leaves no legal state with these labels on.
fn guilty_groups(logic: &Logic, solver: &mut Solver<'_>, on: &[LabelId]) -> Vec<usize> {
    let mut guilty: Vec<usize> = (0..logic.groups().len()).collect();
    for group in 0..logic.groups().len() {
        solver.ignore_group(group, true);
        if solver.ask(on, &[]) == Verdict::Impossible {
            guilty.retain(|&other| other != group);
        } else {
            solver.ignore_group(group, false);
        }
    }
    (0..logic.groups().len()).for_each(|group| solver.ignore_group(group, false));
    guilty
}

/// Finds groups that cannot be satisfied, labels that are always on, and relations that contradict
/// each other.
pub(super) fn groups(graph: &RelationGraph, logic: &Logic) -> Vec<Finding> {
    let mut findings = contradictions(graph, logic);
    if logic.groups().is_empty() {
        return findings;
    }
    let mut solver = Solver::new(logic);
    let state = match solver.ask(&[], &[]) {
        Verdict::Possible(on) => on,
        Verdict::Impossible => {
            findings.push(unsatisfiable(graph, logic, &mut solver));
            return findings;
        }
        Verdict::Undecided => {
            let message = "it was not decided whether any state is legal: the one-of groups interlock \
                           too much; counting the legal states may still succeed";
            findings.push(Finding::new(FindingKind::Undecided, message));
            return findings;
        }
    };
    for label in state {
        if solver.ask(&[], &[label]) == Verdict::Impossible {
            let subject = graph.label(label);
            let message = format!(
                "{subject} is on in every legal state: the one-of groups leave no state without it"
            );
            let finding = Finding::new(FindingKind::ForcedLabel, message);
            findings.push(finding.labels([&subject.name]).place(&subject.place));
        }
    }
    findings
}

/// Reports that there is no legal state, and names as few groups as possible.
fn unsatisfiable(graph: &RelationGraph, logic: &Logic, solver: &mut Solver<'_>) -> Finding {
    let guilty = guilty_groups(logic, solver, &[]);
    let names: Vec<&str> = guilty.iter().map(|&at| graph.one_of()[at].name.as_str()).collect();
    let message = match names.as_slice() {
        [one] => {
            format!("no state is legal: every label of the one-of group `{one}` can never be on")
        }
        _ => {
            format!("no state is legal: the one-of groups {} contradict each other", quoted(&names))
        }
    };
    let members = guilty.iter().flat_map(|&at| &graph.one_of()[at].labels);
    let finding = Finding::new(FindingKind::UnsatisfiableOneOf, message);
    let place = guilty.first().map(|&at| graph.one_of()[at].place.clone()).unwrap_or_default();
    finding.labels(members.map(|&id| graph.name(id))).place(&place)
}

/// Hierarchy edges between labels that exclude each other directly.
fn contradictions(graph: &RelationGraph, logic: &Logic) -> Vec<Finding> {
    let hard = graph.hierarchy().iter().filter(|edge| edge.strength.is_hard());
    let clash = hard.filter(|edge| {
        let set = logic.shared_set(edge.parent, edge.child);
        set.is_some_and(|set| logic.sets()[set as usize].source != SetSource::Rule)
    });
    let prover = Prover::new(graph, logic);
    clash
        .map(|edge| {
            let is_a = Step::is_a(graph, edge.child, edge.parent);
            let excludes = prover.exclusion(edge.parent, edge.child);
            let message =
                format!("{} contradicts {}; remove one of them", is_a.text, excludes.text);
            let labels = [graph.name(edge.parent), graph.name(edge.child)];
            Finding::new(FindingKind::ContradictoryRelations, message)
                .labels(labels)
                .place(&edge.place)
                .chain(vec![is_a, excludes])
        })
        .collect()
}
