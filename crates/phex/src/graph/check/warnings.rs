//! Warnings: things that are probably fine but worth a look.

use std::collections::HashMap;

use super::super::closure::Logic;
use super::super::{LabelId, RelationGraph};
use super::dead::Prover;
use super::finding::{Finding, FindingKind, StepRelation};
use super::resolve::quoted;

/// Larger groups are not examined pair by pair.
const MOST_MEMBERS: usize = 64;
/// Pairs of labels that are looked at before a check gives up.
const MOST_PAIRS: usize = 10_000;
/// Separators of paths in names: `/product/weapon`, `food > fruit`, `a::b`.
const SEPARATORS: [&str; 4] = ["/", ">", "::", "."];

pub(super) fn warnings(graph: &RelationGraph, hard: &Logic) -> Vec<Finding> {
    let mut findings = Vec::new();
    let all_logic;
    let all = if graph.is_hard() {
        hard
    } else {
        all_logic = Logic::all(graph);
        findings.extend(strained(graph, hard, &all_logic));
        &all_logic
    };
    findings.extend(names_say_is_a(graph, all));
    findings.extend(implied(graph, hard));
    findings.extend(no_effect(graph));
    findings.extend(isolated(graph));
    findings.extend(unrelated_roots(graph));
    findings.extend(open_parents(graph, all));
    findings
}

/// Labels that cannot be on without violating a soft relation.
fn strained(graph: &RelationGraph, hard: &Logic, all: &Logic) -> Vec<Finding> {
    let dead = hard.conflicted_labels();
    let mut prover = Prover::new(graph, all);
    let strained = all.conflicted_labels();
    let claim = "cannot be on without violating a soft relation";
    // Parents come first, as the prover requires.
    let order = all.topology().order().iter();
    let order = order.filter(|id| strained.contains(id.index()) && !dead.contains(id.index()));
    order.map(|&id| prover.finding(id, FindingKind::StrainedLabel, claim)).collect()
}

/// Exclusions between labels whose names suggest that one is the other.
fn names_say_is_a(graph: &RelationGraph, logic: &Logic) -> Vec<Finding> {
    let prover = Prover::new(graph, logic);
    let mut findings = Vec::new();
    let mut warn = |general: LabelId, special: LabelId, how: &str| {
        // The exclusion may follow from relations of ancestors.
        let chain = prover.shortest_proof(&[general, special], None).unwrap_or_default();
        let words: Vec<&str> = chain.iter().map(|step| step.text.as_str()).collect();
        let message = format!(
            "{}, but {how} suggests that {} is a {}; is the exclusion intended?",
            words.join(", "),
            graph.name(special),
            graph.name(general)
        );
        let exclusion = chain.iter().find(|step| step.relation != StepRelation::Hierarchy);
        let place = exclusion.map(|step| step.place.clone()).unwrap_or_default();
        let finding = Finding::new(FindingKind::NameSaysIsA, message);
        let labels = [graph.name(general), graph.name(special)];
        findings.push(finding.labels(labels).place(&place).chain(chain));
    };
    let mut solver = super::super::closure::Solver::new(logic);
    for label in graph.ids() {
        for prefix in path_prefixes(graph.name(label)) {
            let general = graph.id(prefix).filter(|&general| general != label);
            // The exclusion may follow from relations of ancestors or from a rule.
            if let Some(general) = general
                && solver.conflict(&[general]).is_none()
                && solver.conflict(&[label]).is_none()
                && solver.conflict(&[general, label]).is_some()
            {
                warn(general, label, "its path");
            }
        }
    }
    for set in logic.sets() {
        let words: HashMap<Vec<String>, LabelId> =
            set.labels.iter().map(|&id| (words(graph.name(id)), id)).collect();
        for (name, &special) in &words {
            for start in 1..name.len() {
                if let Some(&general) = words.get(&name[start..]) {
                    warn(general, special, "its name");
                }
            }
        }
    }
    findings.sort_by(|a, b| a.labels.cmp(&b.labels));
    findings
}

/// `/a/b/c` → `/a`, `/a/b`.
fn path_prefixes(name: &str) -> impl Iterator<Item = &str> {
    SEPARATORS.into_iter().flat_map(move |separator| {
        let ends = name.match_indices(separator).map(|(at, _)| name[..at].trim_end());
        ends.filter(|prefix| !prefix.is_empty())
    })
}

/// `wild animal`, `wild_animal` → `wild`, `animal`.
fn words(name: &str) -> Vec<String> {
    let parts = name.split([' ', '_', '-', '+']).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

/// Relations that follow from others by chains.
fn implied(graph: &RelationGraph, hard: &Logic) -> Vec<Finding> {
    let topology = hard.topology();
    let mut findings = Vec::new();
    for edge in graph.hierarchy() {
        let mut others = topology.parents(edge.child).iter();
        let between =
            others.find(|&&other| other != edge.parent && topology.subsumes(edge.parent, other));
        if let Some(&between) = between {
            let (parent, child) = (graph.label(edge.parent), graph.label(edge.child));
            let message = format!(
                "{parent} → {child} follows from the hierarchy through {}",
                graph.label(between)
            );
            let finding = Finding::new(FindingKind::ImpliedRelation, message);
            findings.push(finding.labels([&parent.name, &child.name]).place(&edge.place));
        }
    }
    let mut solver = super::super::closure::Solver::new(hard);
    for (at, exclusion) in graph.exclusions().iter().enumerate() {
        if exclusion.labels.len() > MOST_MEMBERS {
            continue;
        }
        let own = hard.sets_of(exclusion.labels[0]).iter().copied().find(|&set| {
            hard.sets()[set as usize].source == super::super::closure::SetSource::Exclusion(at)
        });
        if let Some(set) = own {
            solver.without_set(set as usize, true);
        }
        let labels = &exclusion.labels;
        let alive = labels.iter().all(|&a| solver.conflict(&[a]).is_none());
        let mut pairs = labels
            .iter()
            .enumerate()
            .flat_map(|(at, &a)| labels[..at].iter().map(move |&b| [a, b]));
        if alive && pairs.all(|pair| solver.conflict(&pair).is_some()) {
            let names: Vec<&str> = labels.iter().map(|&id| graph.name(id)).collect();
            let message =
                format!("the exclusion of {} follows from other relations", quoted(&names));
            let finding = Finding::new(FindingKind::ImpliedRelation, message);
            findings.push(finding.labels(names).place(&exclusion.place));
        }
        if let Some(set) = own {
            solver.without_set(set as usize, false);
        }
    }
    findings
}

/// Relations without cost.
fn no_effect(graph: &RelationGraph) -> Vec<Finding> {
    let edges = graph
        .hierarchy()
        .iter()
        .map(|edge| (vec![edge.parent, edge.child], edge.strength, &edge.place));
    let exclusions = graph
        .exclusions()
        .iter()
        .map(|exclusion| (exclusion.labels.clone(), exclusion.strength, &exclusion.place));
    let idle = edges.chain(exclusions).filter(|(_, strength, _)| strength.cost() == 0.0);
    idle.map(|(labels, strength, place)| {
        let names: Vec<&str> = labels.iter().map(|&id| graph.name(id)).collect();
        let message = format!(
            "the relation of {} has the strength {strength}, so it has no effect",
            quoted(&names)
        );
        Finding::new(FindingKind::NoEffect, message).labels(names).place(place)
    })
    .collect()
}

/// Labels without any relation.
fn isolated(graph: &RelationGraph) -> Vec<Finding> {
    let covers_all =
        graph.rule().is_some_and(|declared| declared.rule != super::super::ExclusionRule::Siblings);
    let mut related = vec![covers_all; graph.len()];
    let in_edges = graph.hierarchy().iter().flat_map(|edge| [edge.parent, edge.child]);
    let in_sets = graph.exclusions().iter().flat_map(|exclusion| exclusion.labels.iter().copied());
    let in_groups = graph.one_of().iter().flat_map(|group| group.labels.iter().copied());
    in_edges.chain(in_sets).chain(in_groups).for_each(|id| related[id.index()] = true);
    let alone = graph.ids().filter(|id| !related[id.index()]);
    alone
        .map(|id| {
            let label = graph.label(id);
            let finding =
                Finding::new(FindingKind::IsolatedLabel, format!("{label} has no relations"));
            finding.labels([&label.name]).place(&label.place)
        })
        .collect()
}

/// Roots that no relation connects.
fn unrelated_roots(graph: &RelationGraph) -> Option<Finding> {
    let roots = graph.unrelated_roots();
    let names: Vec<&str> = roots.iter().map(|&id| graph.name(id)).collect();
    let message = format!(
        "{} roots are unrelated: {}; nothing says that a row is not all of them at once: write \
         `single_label = true` if a row can only be one of them",
        names.len(),
        quoted(&names)
    );
    let place = &graph.label(*roots.first()?).place;
    Some(Finding::new(FindingKind::UnrelatedRoots, message).labels(names).place(place))
}

/// A one-of group over the leaves, above which labels without a common descendant may be on together.
///
/// With `dog` and `cat` under `animal`, `car` and `bus` under `vehicle` and one of the four on, nothing turns
/// `vehicle` off when `dog` is on. Only labels with a common parent, and roots, are compared: below those that
/// exclude each other all do.
fn open_parents(graph: &RelationGraph, all: &Logic) -> Option<Finding> {
    if graph.rule().is_some_and(|declared| declared.rule != super::super::ExclusionRule::Siblings) {
        return None;
    }
    let covers = |labels: &[LabelId]| {
        let mut inside = vec![false; graph.len()];
        labels.iter().for_each(|id| inside[id.index()] = true);
        graph.leaves().all(|leaf| inside[leaf.index()])
    };
    let group = graph.one_of().iter().find(|group| covers(&group.labels))?;
    let topology = graph.topology();
    let inner = |id: &LabelId| !graph.is_leaf(*id);
    let roots: Vec<LabelId> = graph.roots().filter(inner).collect();
    let families = graph.ids().map(|parent| topology.children(parent).to_vec());
    let mut solver = super::super::closure::Solver::new(all);
    let mut left = MOST_PAIRS;
    for family in std::iter::once(roots).chain(families) {
        let family: Vec<LabelId> = family.into_iter().filter(inner).collect();
        for (at, &b) in family.iter().enumerate().take(MOST_MEMBERS) {
            for &a in &family[..at] {
                left = left.checked_sub(1)?;
                let alive = [a, b].iter().all(|&id| solver.conflict(&[id]).is_none());
                if !alive
                    || solver.conflict(&[a, b]).is_some()
                    || topology.comparable(a, b)
                    || graph.leaves().any(|id| topology.subsumes(a, id) && topology.subsumes(b, id))
                {
                    continue;
                }
                let (first, second) = (graph.label(a), graph.label(b));
                let message = format!(
                    "exactly one label of `{}` is on, but {first} and {second} may be on together, one of \
                     them with none of its own: write `single_label = true` if a row can only be one of the \
                     leaves",
                    group.name
                );
                let finding = Finding::new(FindingKind::OpenParents, message);
                return Some(finding.labels([&first.name, &second.name]).place(&group.place));
            }
        }
    }
    None
}
