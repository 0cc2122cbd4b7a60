//! Closure, counting and enumeration against the brute-force oracle.

use phex::graph::closure::Logic;
use phex::graph::{Exclusion, FindingKind, GraphBuilder, LabelId, RelationGraph, Strength};
use phex::testkit::{Oracle, RandomGraph, RandomStrengths};
use proptest::prelude::*;

fn graphs() -> impl Strategy<Value = RelationGraph> {
    (1usize..=10, any::<u64>()).prop_map(|(labels, seed)| RandomGraph::any(labels, seed).draw())
}

fn hard_graphs() -> impl Strategy<Value = RelationGraph> {
    (1usize..=10, any::<u64>()).prop_map(|(labels, seed)| {
        RandomGraph { strengths: RandomStrengths::Hard, ..RandomGraph::any(labels, seed) }.draw()
    })
}

fn mask(on: &[LabelId]) -> u32 {
    on.iter().fold(0, |mask, id| mask | 1 << id.0)
}

/// Builds the graph again without one hard relation.
fn without(graph: &RelationGraph, dropped: usize) -> Option<RelationGraph> {
    let mut document = phex::graph::document::Document::from(graph);
    let mut at = 0;
    for item in &mut document.hierarchy {
        let before = item.children.len();
        let keep = |offset: usize| at + offset != dropped;
        let mut offset = 0;
        item.children.retain(|_| {
            offset += 1;
            keep(offset - 1)
        });
        at += before;
    }
    let mut exclusion = Vec::new();
    for item in &document.exclusion {
        for (first, a) in item.labels.iter().enumerate() {
            for b in &item.labels[first + 1..] {
                if at != dropped {
                    let mut pair = item.clone();
                    pair.labels = vec![a.clone(), b.clone()];
                    exclusion.push(pair);
                }
                at += 1;
            }
        }
    }
    document.exclusion = exclusion;
    (dropped < at).then(|| document.builder().build().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn enumeration_and_count_agree_with_the_oracle(graph in graphs()) {
        let logic = Logic::hard(&graph);
        let mut states: Vec<u32> = logic.legal_states().map(|on| mask(&on)).collect();
        let listed = states.len();
        states.sort_unstable();
        states.dedup();
        prop_assert_eq!(listed, states.len(), "a state came twice");
        let expected = Oracle::new(&graph).legal_states();
        prop_assert_eq!(&states, &expected);
        prop_assert_eq!(logic.count_states().unwrap(), expected.len().into());
    }

    #[test]
    fn sparsify_and_densify_keep_the_legal_states(graph in graphs()) {
        let expected = Oracle::new(&graph).legal_states();
        let sparse = graph.sparsify().unwrap();
        prop_assert_eq!(&Oracle::new(&sparse).legal_states(), &expected);
        let dense = graph.densify().unwrap();
        prop_assert_eq!(&Oracle::new(&dense).legal_states(), &expected);
        prop_assert!(graph.is_equivalent(&sparse).unwrap());
        prop_assert!(dense.is_equivalent(&graph).unwrap());
    }

    #[test]
    fn sparsify_and_densify_keep_the_weights(graph in graphs(), seed in any::<u32>()) {
        let logits: Vec<f64> =
            (0..graph.len()).map(|i| f64::from((seed >> i) & 7) - 3.5).collect();
        let before = Oracle::new(&graph);
        for after in [graph.sparsify().unwrap(), graph.densify().unwrap()] {
            let after = Oracle::new(&after);
            for state in before.legal_states() {
                let (a, b) = (before.log_weight(state, &logits), after.log_weight(state, &logits));
                prop_assert!((a - b).abs() < 1e-9, "state {:b}: {} and {}", state, a, b);
            }
        }
    }

    #[test]
    fn no_relation_of_a_sparse_graph_can_be_dropped(graph in hard_graphs()) {
        let sparse = graph.sparsify().unwrap();
        let expected = Oracle::new(&sparse).legal_states();
        for dropped in 0.. {
            let Some(less) = without(&sparse, dropped) else { break };
            prop_assert_ne!(Oracle::new(&less).legal_states(), expected.clone());
        }
    }

    #[test]
    fn equivalence_agrees_with_the_oracle(a in hard_graphs(), seed in any::<u64>()) {
        let b = RandomGraph {
            strengths: RandomStrengths::Hard,
            ..RandomGraph::any(a.len(), seed)
        }.draw();
        let equal = Oracle::new(&a).legal_states() == Oracle::new(&b).legal_states();
        prop_assert_eq!(a.is_equivalent(&b).unwrap(), equal);
    }

    #[test]
    fn dead_and_forced_labels_agree_with_the_oracle(graph in graphs()) {
        let states = Oracle::new(&graph).legal_states();
        let report = graph.check();
        let of_kind = |kind| -> Vec<String> {
            let mut labels: Vec<String> =
                report.of_kind(kind).map(|finding| finding.labels[0].clone()).collect();
            labels.sort();
            labels
        };
        let expected = |holds: &dyn Fn(u32, usize) -> bool| -> Vec<String> {
            let mut labels: Vec<String> = (0..graph.len())
                .filter(|&label| states.iter().all(|&state| holds(state, label)))
                .map(|label| graph.name(LabelId::from(label)).to_owned())
                .collect();
            labels.sort();
            labels
        };
        if states.is_empty() {
            prop_assert_eq!(report.of_kind(FindingKind::UnsatisfiableOneOf).count(), 1);
            return Ok(());
        }
        prop_assert_eq!(
            of_kind(FindingKind::DeadLabel),
            expected(&|state, label| state >> label & 1 == 0)
        );
        prop_assert_eq!(
            of_kind(FindingKind::ForcedLabel),
            expected(&|state, label| state >> label & 1 == 1)
        );
    }

    #[test]
    fn proofs_of_dead_labels_hold_by_themselves(graph in hard_graphs()) {
        // A graph with the relations of the chain alone has the label dead as well.
        for finding in graph.check().of_kind(FindingKind::DeadLabel) {
            if finding.chain.is_empty() {
                continue; // Several one-of groups together: there is no chain.
            }
            let mut builder = phex::graph::GraphBuilder::new();
            builder.close_labels();
            graph.labels().iter().for_each(|label| { builder.label(&label.name); });
            use phex::graph::check::StepRelation::*;
            let mut pairs: Vec<(&str, &str)> = Vec::new();
            for step in &finding.chain {
                match step.relation {
                    Hierarchy => { builder.hierarchy(&step.a, &step.b, None); }
                    _ => pairs.push((&step.a, &step.b)),
                }
            }
            pairs.sort();
            pairs.dedup();
            for (a, b) in pairs {
                builder.exclusion(a, b, None);
            }
            // A group must be satisfied: the blamed one, where one is.
            for group in graph.one_of() {
                if finding.message.contains(&format!("`{}`", group.name)) {
                    builder.one_of(&group.name, group.labels.iter().map(|&id| graph.name(id)), None);
                }
            }
            let small = builder.build().unwrap();
            let label = small.id(&finding.labels[0]).unwrap();
            let states = Oracle::new(&small).legal_states();
            prop_assert!(states.iter().all(|state| state >> label.0 & 1 == 0), "{:?}", finding);
        }
    }
}

#[test]
fn removing_all_root_causes_revives_what_they_say() {
    let mut graphs = 0;
    for seed in 0..500 {
        let graph = RandomGraph {
            strengths: RandomStrengths::Hard,
            one_of: 0,
            ..RandomGraph::any(12, seed)
        }
        .draw();
        let report = graph.check();
        let Some(last) = report.root_causes.last() else { continue };
        let mut document = phex::graph::document::Document::from(&graph);
        for cause in &report.root_causes {
            use phex::graph::check::StepRelation::*;
            let (a, b) = (&cause.remove.a, &cause.remove.b);
            match cause.remove.relation {
                Hierarchy => document
                    .hierarchy
                    .iter_mut()
                    .filter(|item| item.parent == *a)
                    .for_each(|item| item.children.retain(|child| child != b)),
                _ => document
                    .exclusion
                    .retain(|item| !(item.labels.contains(a) && item.labels.contains(b))),
            }
        }
        let left = document.builder().check();
        let dead: Vec<&str> =
            left.of_kind(FindingKind::DeadLabel).map(|f| f.labels[0].as_str()).collect();
        for label in report.root_causes.iter().flat_map(|cause| &cause.revives) {
            assert!(!dead.contains(&label.as_str()), "seed {seed}: {label} is still dead");
        }
        assert_eq!(last.revived + dead.len(), last.dead, "seed {seed}");
        graphs += 1;
    }
    assert!(graphs > 200, "{graphs}");
}

#[test]
fn a_group_of_many_labels_stays_a_group() {
    let mut builder = phex::graph::GraphBuilder::new();
    let names: Vec<String> = (0..5000).map(|label| format!("l{label}")).collect();
    names.iter().for_each(|name| {
        builder.hierarchy("root", name, None);
    });
    builder.exclusion_rule(phex::graph::ExclusionRule::NoCommonDescendant, None);
    let sparse = builder.build().unwrap().sparsify().unwrap();
    assert_eq!(sparse.exclusions().len(), 1);
    assert_eq!(sparse.exclusions().iter().map(Exclusion::pairs).sum::<u64>(), 5000 * 4999 / 2);
    assert_eq!(Logic::hard(&sparse).count_states().unwrap(), 5002u32.into());
}

#[test]
fn free_leaves_bound_the_number_of_states_from_below() {
    use phex::infer::{Engine, Method, Options};
    use phex::model::Model;
    // Sixty free leaves below one label beside a one-of group: too many to list, and said at once.
    let mut builder = GraphBuilder::new();
    for at in 0..60 {
        builder.hierarchy("above", &format!("leaf{at}"), None);
    }
    builder.one_of("kind", ["x", "y"], None);
    let graph = builder.build().unwrap();
    let options = Options { method: Method::States, ..Options::default() };
    let refused = Engine::compile(Model::new(&graph).unwrap(), &options).unwrap_err().to_string();
    assert!(refused.contains("more than 2^60 legal states"), "{refused}");
    // Relations without a cost tie nothing.
    let mut builder = GraphBuilder::new();
    for at in 0..60 {
        builder.exclusion("x", &format!("leaf{at}"), Some(Strength::W(0.0)));
    }
    builder.one_of("kind", ["x", "y"], None);
    let graph = builder.build().unwrap();
    let refused = Engine::compile(Model::new(&graph).unwrap(), &options).unwrap_err().to_string();
    assert!(refused.contains("more than 2^60 legal states"), "{refused}");
}

/// A chain of n labels implies n (n − 1) / 2 edges. They are counted before they are written down.
#[test]
fn relations_that_do_not_fit_are_not_written_out() {
    let chain = |labels: usize| {
        let mut builder = GraphBuilder::new();
        for label in 1..labels {
            let (parent, child) = (format!("l{}", label - 1), format!("l{label}"));
            builder.hierarchy(&parent, &child, Some(Strength::Hard));
        }
        builder.build().unwrap()
    };
    assert_eq!(chain(300).densify().unwrap().hierarchy().len(), 300 * 299 / 2);
    let error = chain(9_999).densify().unwrap_err();
    let phex::Error::TooManyPairs { operation: "densify", pairs, limit, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(pairs, 9_999 * 9_998 / 2);
    assert!(limit < pairs && limit > 1_000_000, "{limit}");
    // Pairs of a group are larger.
    let mut builder = GraphBuilder::new();
    let labels: Vec<String> = (0..4_000).map(|label| format!("l{label}")).collect();
    builder.exclusion_group(None, labels.iter().map(String::as_str), Some(Strength::Hard));
    let error = builder.build().unwrap().densify().unwrap_err();
    assert!(matches!(error, phex::Error::TooManyPairs { .. }), "{error}");
}

/// Groups that overlap name each of their pairs many times.
#[test]
fn overlapping_groups_are_made_sparse() {
    let groups = |count: usize, labels: usize, shift: usize| {
        let mut builder = GraphBuilder::new();
        for group in 0..count {
            let names: Vec<String> =
                (0..labels).map(|label| format!("l{}", group * shift + label)).collect();
            let name = format!("g{group}");
            let names = names.iter().map(String::as_str);
            builder.exclusion_group(Some(&name), names, Some(Strength::Hard));
        }
        builder.build().unwrap()
    };
    // The same labels 100 times.
    let same = groups(100, 400, 0).sparsify().unwrap();
    assert_eq!(same.exclusions().len(), 1);
    // Each group has 399 labels of the next.
    let shifted = Logic::hard(&groups(100, 400, 1)).minimal_relations().unwrap();
    assert_eq!(shifted.exclusion_pairs(), 400 * 399 / 2 + 99 * 399);
}
