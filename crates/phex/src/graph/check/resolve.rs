//! Turns names into ids, and finds everything that makes a graph unusable.

use std::collections::{HashMap, HashSet};

use super::super::builder::{GraphBuilder, RuleDraft, Symbol, SymbolId};
use super::super::topology::Topology;
use super::super::{
    Exclusion, ExclusionRule, Hierarchy, Label, LabelId, OneOf, RelationGraph, RuleDeclaration,
    SourceLocation, Strength,
};
use super::cycles;
use super::finding::{Finding, FindingKind, Step};

/// Deeper hierarchies are refused, because walks from a label to its roots would take too long.
const MAX_DEPTH: usize = 10_000;
/// At most this many unknown names get a suggestion, because each suggestion scans all names.
const MAX_SUGGESTIONS: usize = 100;
/// Longer names get no suggestion, and messages shorten them.
const LONGEST_NAME: usize = 100;

/// Resolves names, drops what cannot be kept, and reports what was dropped and why.
pub(in super::super) fn resolve(builder: &GraphBuilder) -> (RelationGraph, Vec<Finding>) {
    let mut resolver =
        Resolver { builder, ids: Vec::new(), names: Vec::new(), findings: Vec::new() };
    for (place, message) in &builder.notes {
        resolver.findings.push(Finding::new(FindingKind::SourceNote, message).place(place));
    }
    let labels = resolver.labels();
    resolver.strengths_in_range();
    let hierarchy = resolver.hierarchy();
    let edges = hierarchy.iter().map(|edge| (edge.parent, edge.child));
    let topology = Topology::new(labels.len(), edges);
    resolver.depth(&labels, &topology);
    let exclusions = resolver.exclusions();
    let one_of = resolver.one_of(&topology);
    let rule = resolver.rule();
    let index =
        labels.iter().enumerate().map(|(id, label)| (label.name.clone(), LabelId::from(id)));
    let mut graph = RelationGraph {
        index: index.collect(),
        labels,
        hierarchy,
        exclusions,
        one_of,
        rule,
        semantics: builder.semantics,
        defaults: builder.defaults,
        topology,
    };
    let mut findings = resolver.findings;
    attach_cycle_steps(&mut graph, &mut findings);
    (graph, findings)
}

struct Resolver<'b> {
    builder: &'b GraphBuilder,
    /// The id of each symbol that is a label.
    ids: Vec<Option<LabelId>>,
    /// The name of each label.
    names: Vec<&'b str>,
    findings: Vec<Finding>,
}

impl<'b> Resolver<'b> {
    fn find(&mut self, kind: FindingKind, message: impl Into<String>) -> &mut Finding {
        self.findings.push(Finding::new(kind, message));
        self.findings.last_mut().expect("one was pushed")
    }

    fn symbol(&self, id: SymbolId) -> &'b Symbol {
        &self.builder.symbols[id as usize]
    }

    fn name(&self, id: LabelId) -> &'b str {
        self.names[id.index()]
    }

    fn labels(&mut self) -> Vec<Label> {
        let symbols = &self.builder.symbols;
        let known = |symbol: &Symbol| !self.builder.closed || !symbol.declared.is_empty();
        let names: Vec<&str> = symbols.iter().filter(|s| known(s)).map(|s| &*s.name).collect();
        let mut labels = Vec::with_capacity(names.len());
        let mut suggestions = 0;
        for symbol in symbols {
            let name = &*symbol.name;
            let place = symbol.declared.first().unwrap_or(&symbol.first_use);
            if !known(symbol) {
                suggestions += 1;
                let nearest = (suggestions <= MAX_SUGGESTIONS).then(|| nearest(name, &names));
                let help = match nearest.flatten() {
                    Some(near) => format!("; did you mean `{near}`?"),
                    None => String::from("; declare it among the labels or correct the name"),
                };
                let message = format!("`{}` is not a declared label{help}", shortened(name));
                self.findings.push(
                    Finding::new(FindingKind::UnknownLabel, message).labels([name]).place(place),
                );
                self.ids.push(None);
                continue;
            }
            if name.trim().is_empty() || name.chars().any(char::is_control) {
                let message = format!(
                    "{name:?} is not a valid name: a name must have visible characters only"
                );
                self.findings
                    .push(Finding::new(FindingKind::BadName, message).labels([name]).place(place));
            }
            if let Some(again) = symbol.declared.get(1) {
                let message = format!("`{name}` is declared again (first at {place})");
                self.findings.push(
                    Finding::new(FindingKind::DuplicateLabel, message).labels([name]).place(again),
                );
            }
            self.ids.push(Some(LabelId::from(labels.len())));
            let (name, title) = (name.to_owned(), symbol.title.clone());
            labels.push(Label { name, title, place: place.clone() });
        }
        if labels.is_empty() {
            self.find(FindingKind::NoLabels, "the graph has no labels");
        }
        self.names = names;
        labels
    }

    /// Checks the default strengths. The strengths of relations are checked where they are read.
    fn strengths_in_range(&mut self) {
        let defaults = &self.builder.defaults;
        let named = [
            ("graph", defaults.strength),
            ("hierarchy", defaults.hierarchy),
            ("exclusion", defaults.exclusion),
        ];
        for (kind, strength) in named {
            if let Some(fault) = strength.and_then(Strength::fault) {
                let place = &self.builder.defaults_place;
                let message = format!("the default strength for the {kind}: {fault}");
                let finding = Finding::new(FindingKind::StrengthOutOfRange, message).place(place);
                self.findings.push(finding);
            }
        }
    }

    /// The strength to keep, or `None` when it is out of range, which is reported.
    fn strength(
        &mut self,
        given: Option<Strength>,
        default: Strength,
        labels: &[LabelId],
        place: &SourceLocation,
    ) -> Option<Strength> {
        if let Some(fault) = given.and_then(Strength::fault) {
            let names: Vec<&str> = labels.iter().map(|&id| self.name(id)).collect();
            let message = format!("{}: {fault}", quoted(&names));
            let finding = Finding::new(FindingKind::StrengthOutOfRange, message);
            self.findings.push(finding.labels(names).place(place));
            return None;
        }
        Some(given.unwrap_or(default)).filter(|strength| strength.fault().is_none())
    }

    fn hierarchy(&mut self) -> Vec<Hierarchy> {
        let mut edges: Vec<Hierarchy> = Vec::with_capacity(self.builder.hierarchy.len());
        let mut seen: HashMap<(LabelId, LabelId), usize> = HashMap::new();
        for draft in &self.builder.hierarchy {
            let place = &draft.place;
            if draft.parent == draft.child {
                let name = &*self.symbol(draft.parent).name;
                let message = format!("`{name}` is its own parent; remove the relation");
                let finding = Finding::new(FindingKind::SelfRelation, message);
                self.findings.push(finding.labels([name]).place(place));
                continue;
            }
            let (Some(parent), Some(child)) =
                (self.ids[draft.parent as usize], self.ids[draft.child as usize])
            else {
                continue;
            };
            let default = self.builder.defaults.hierarchy();
            let Some(strength) = self.strength(draft.strength, default, &[parent, child], place)
            else {
                continue;
            };
            if let Some(&first) = seen.get(&(parent, child)) {
                let what =
                    format!("the hierarchy edge {} → {}", self.name(parent), self.name(child));
                let first = (edges[first].strength, edges[first].place.clone());
                self.repeated(&what, &[parent, child], first, strength, place);
                continue;
            }
            seen.insert((parent, child), edges.len());
            edges.push(Hierarchy { parent, child, strength, place: place.clone() });
        }
        let pairs: Vec<(u32, u32)> = edges.iter().map(|e| (e.parent.0, e.child.0)).collect();
        let cycles = cycles::closing_edges(self.names.len(), &pairs);
        for cycle in &cycles {
            let names: Vec<&str> =
                cycle.labels.iter().map(|&label| self.name(LabelId(label))).collect();
            let circle = format!("{} is {}", names.join(" is "), names[0]);
            let message = format!(
                "the hierarchy has a cycle: {circle}; remove or reverse one of these relations"
            );
            let finding = Finding::new(FindingKind::HierarchyCycle, message);
            self.findings.push(finding.labels(names).place(&edges[cycle.edge].place));
        }
        cycles::without(&edges, &cycles)
    }

    fn exclusions(&mut self) -> Vec<Exclusion> {
        let mut exclusions: Vec<Exclusion> = Vec::with_capacity(self.builder.exclusions.len());
        let mut seen: HashMap<Vec<LabelId>, usize> = HashMap::new();
        for draft in &self.builder.exclusions {
            let place = &draft.place;
            let edge = draft.labels.len() == 2;
            if edge && draft.labels[0] == draft.labels[1] {
                let name = &*self.symbol(draft.labels[0]).name;
                let message = format!("`{name}` excludes itself; remove the relation");
                let finding = Finding::new(FindingKind::SelfRelation, message);
                self.findings.push(finding.labels([name]).place(place));
                continue;
            }
            let what = match &draft.name {
                Some(name) => format!("the exclusion group `{name}`"),
                None => String::from("an exclusion group"),
            };
            let labels = self.members(&draft.labels, &what, place);
            if labels.len() < 2 {
                if !edge {
                    let message = format!("{what} has fewer than two labels, so it has no effect");
                    let names = labels.iter().map(|&id| self.names[id.index()]);
                    let finding = Finding::new(FindingKind::NoEffect, message).labels(names);
                    self.findings.push(finding.place(place));
                }
                continue;
            }
            let default = self.builder.defaults.exclusion();
            let Some(strength) = self.strength(draft.strength, default, &labels, place) else {
                continue;
            };
            if let Some(&first) = seen.get(&labels) {
                let names: Vec<&str> = labels.iter().map(|&id| self.name(id)).collect();
                let what = format!("the exclusion of {}", quoted(&names));
                let first = (exclusions[first].strength, exclusions[first].place.clone());
                self.repeated(&what, &labels, first, strength, place);
                continue;
            }
            seen.insert(labels.clone(), exclusions.len());
            let (name, place) = (draft.name.clone(), place.clone());
            exclusions.push(Exclusion { name, labels, strength, place });
        }
        exclusions
    }

    fn one_of(&mut self, topology: &Topology) -> Vec<OneOf> {
        let mut groups: Vec<OneOf> = Vec::new();
        let mut group_of: HashMap<LabelId, usize> = HashMap::new();
        let mut names: HashSet<&str> = HashSet::new();
        for draft in &self.builder.one_of {
            let (what, place) = (format!("the one-of group `{}`", draft.name), &draft.place);
            if !names.insert(&draft.name) {
                self.find(FindingKind::DuplicateGroup, format!("{what} is declared twice")).place =
                    place.clone();
            }
            if draft.strength.is_some_and(|strength| !strength.is_hard()) {
                let message = format!(
                    "{what} has a soft strength, but one-of groups are always hard; leave the \
                     strength out, or use an exclusion group for labels that softly exclude each other"
                );
                self.find(FindingKind::SoftOneOf, message).place = place.clone();
            }
            let mut labels = match &draft.labels {
                Some(labels) => self.members(labels, &what, place),
                None => (0..topology.len())
                    .map(LabelId::from)
                    .filter(|&id| topology.children(id).is_empty())
                    .filter(|&id| !topology.parents(id).is_empty())
                    .collect(),
            };
            labels.retain(|&id| {
                let Some(&other) = group_of.get(&id) else {
                    group_of.insert(id, groups.len());
                    return true;
                };
                let name = self.names[id.index()];
                let message = format!(
                    "`{name}` is in two one-of groups, `{}` and `{}`; a label can be in at most one",
                    groups[other].name, draft.name
                );
                let finding = Finding::new(FindingKind::TwoOneOfGroups, message);
                self.findings.push(finding.labels([name]).place(place));
                false
            });
            if labels.is_empty() {
                // Labels that are unknown or already in another group have been reported.
                if draft.labels.as_ref().is_none_or(Vec::is_empty) {
                    let message = format!("{what} has no labels, so no state satisfies it");
                    self.find(FindingKind::EmptyOneOf, message).place = place.clone();
                }
                continue;
            }
            groups.push(OneOf { name: draft.name.clone(), labels, place: place.clone() });
        }
        if let Some(place) = &self.builder.single_label {
            let labels: Vec<LabelId> = (0..topology.len())
                .map(LabelId::from)
                .filter(|&id| topology.children(id).is_empty())
                .collect();
            let is_declared = groups.iter().any(|group| group.labels == labels);
            if let Some(group) = labels.iter().find_map(|id| group_of.get(id))
                && !is_declared
            {
                let message = format!(
                    "the graph is single-label, so exactly one leaf is on, but the one-of group `{}` \
                     has only some of the leaves; remove the group",
                    groups[*group].name
                );
                self.find(FindingKind::TwoOneOfGroups, message).place = place.clone();
            } else if !is_declared && !labels.is_empty() {
                let name = String::from(OneOf::SINGLE_LABEL);
                groups.push(OneOf { name, labels, place: place.clone() });
            }
        }
        groups
    }

    fn rule(&mut self) -> Option<RuleDeclaration> {
        let implied;
        let first = match (&self.builder.single_label, self.builder.rules.first()) {
            (None, first) => first?,
            (Some(_), Some(first)) if first.rule == ExclusionRule::NotSubsumed => {
                let message = format!(
                    "the graph is single-label, which means the exclusion rule `{}`; remove the rule \
                     `{}`",
                    ExclusionRule::NoCommonDescendant,
                    first.rule
                );
                self.find(FindingKind::TwoRules, message).place = first.place.clone();
                first
            }
            (Some(place), first) => {
                let rule = ExclusionRule::NoCommonDescendant;
                let (strength, place) = match first {
                    Some(first) => (first.strength, &first.place),
                    None => (None, place),
                };
                implied = RuleDraft { rule, strength, place: place.clone() };
                &implied
            }
        };
        for rule in self.builder.rules.iter().skip(1) {
            let message = format!(
                "the exclusion rule `{}` is declared in addition to `{}`; keep one of them",
                rule.rule, first.rule
            );
            self.find(FindingKind::TwoRules, message).place = rule.place.clone();
        }
        let default = self.builder.defaults.exclusion();
        if let Some(fault) = first.strength.and_then(Strength::fault) {
            let message = format!("the exclusion rule `{}`: {fault}", first.rule);
            self.find(FindingKind::StrengthOutOfRange, message).place = first.place.clone();
            return None;
        }
        let strength = first.strength.unwrap_or(default);
        if strength.fault().is_some() {
            return None;
        }
        Some(RuleDeclaration { rule: first.rule, strength, place: first.place.clone() })
    }

    fn depth(&mut self, labels: &[Label], topology: &Topology) {
        let deepest = topology.order().last().copied();
        if let Some(label) = deepest.filter(|&label| topology.depth(label) > MAX_DEPTH) {
            let depth = topology.depth(label);
            let name = &labels[label.index()].name;
            let message = format!(
                "`{name}` is {depth} levels below a root; at most {MAX_DEPTH} are supported"
            );
            let finding = Finding::new(FindingKind::TooDeep, message);
            self.findings.push(finding.labels([name]).place(&labels[label.index()].place));
        }
    }

    /// The valid members in ascending order, each once.
    fn members(
        &mut self,
        symbols: &[SymbolId],
        what: &str,
        place: &SourceLocation,
    ) -> Vec<LabelId> {
        let mut labels: Vec<LabelId> =
            symbols.iter().filter_map(|&symbol| self.ids[symbol as usize]).collect();
        labels.sort_unstable();
        let twice: Vec<LabelId> =
            labels.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        labels.dedup();
        for id in twice {
            let name = self.name(id);
            let finding =
                Finding::new(FindingKind::RepeatedMember, format!("{what} names `{name}` twice"));
            self.findings.push(finding.labels([name]).place(place));
        }
        labels
    }

    /// A relation that was declared before: either a repetition or a contradiction.
    fn repeated(
        &mut self,
        what: &str,
        labels: &[LabelId],
        (strength, place): (Strength, SourceLocation),
        again: Strength,
        here: &SourceLocation,
    ) {
        let (kind, message) = if strength.same_cost(again) {
            (FindingKind::RepeatedRelation, format!("{what} is declared again (first at {place})"))
        } else {
            let message = format!(
                "{what} has two strengths, {strength} (at {place}) and {again}; keep one of them"
            );
            (FindingKind::ContradictoryStrengths, message)
        };
        let names = labels.iter().map(|&id| self.names[id.index()]);
        self.findings.push(Finding::new(kind, message).labels(names).place(here));
    }
}

/// Adds the chain of relations to cycle findings, once the labels have their titles.
fn attach_cycle_steps(graph: &mut RelationGraph, findings: &mut [Finding]) {
    for finding in findings.iter_mut().filter(|f| f.kind == FindingKind::HierarchyCycle) {
        let ids: Vec<LabelId> = finding.labels.iter().filter_map(|name| graph.id(name)).collect();
        let around = ids.iter().zip(ids.iter().cycle().skip(1));
        finding.chain = around
            .map(|(&child, &parent)| {
                let mut step = Step::is_a(graph, child, parent);
                if step.place.is_unknown() {
                    // The closing edge is no longer in the graph.
                    step.place = finding.place.clone();
                }
                step
            })
            .collect();
    }
}

/// The declared name that is nearest to an unknown one, if any is near.
fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    // Computing the distance takes time in proportion to the product of the lengths.
    if name.len() > LONGEST_NAME {
        return None;
    }
    let allowed = (name.chars().count() / 3).max(1);
    let lower = name.to_lowercase();
    known
        .iter()
        .filter(|other| other.len() <= LONGEST_NAME)
        .filter(|other| other.len().abs_diff(name.len()) <= 4 * allowed)
        .map(|other| (strsim::damerau_levenshtein(&lower, &other.to_lowercase()), *other))
        .filter(|&(distance, _)| distance <= allowed)
        .min()
        .map(|(_, other)| other)
}

/// The name, shortened to fit a message.
fn shortened(name: &str) -> String {
    if name.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    let start: String = name.chars().take(LONGEST_NAME - 1).collect();
    format!("{start}…")
}

/// "`a`, `b` and `c`", cut after a few.
pub(super) fn quoted(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    let tick = |name: &&str| format!("`{}`", shortened(name));
    match names {
        [] => String::from("nothing"),
        [one] => tick(one),
        [rest @ .., last] if names.len() <= SHOWN => {
            format!("{} and {}", rest.iter().map(tick).collect::<Vec<_>>().join(", "), tick(last))
        }
        _ => {
            let shown = names[..SHOWN - 1].iter().map(tick).collect::<Vec<_>>().join(", ");
            format!("{shown} and {} more", names.len() - (SHOWN - 1))
        }
    }
}
