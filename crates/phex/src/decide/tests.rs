#![allow(clippy::unwrap_used)]

use super::*;
use crate::graph::GraphBuilder;

/// animal > dog > husky, animal > cat, and a car beside them.
fn graph() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    for name in ["animal", "dog", "husky", "cat", "car"] {
        builder.label(name);
    }
    builder.hierarchy("animal", "dog", None).hierarchy("dog", "husky", None);
    builder.hierarchy("animal", "cat", None).one_of("kind", ["animal", "car"], None);
    builder.build().unwrap()
}

fn names(graph: &RelationGraph, sets: &Decisions, row: usize) -> Vec<String> {
    let on = graph.ids().filter(|id| sets.row(row)[id.index()]);
    on.map(|id| graph.name(id).to_owned()).collect()
}

#[test]
fn back_off_chooses_the_deepest_then_the_most_probable() {
    let graph = graph();
    let marginals = [0.9, 0.7, 0.2, 0.8, 0.1, 0.9, 0.8, 0.7, 0.8, 0.1, 0.3, 0.2, 0.1, 0.1, 0.6];
    let sets = decide(&Decision::BackOff { confidence: 0.7 }, &graph, &marginals).unwrap();
    assert_eq!(names(&graph, &sets, 0), ["animal", "cat"]);
    assert_eq!(sets.chosen(0), graph.id("cat"));
    assert_eq!(names(&graph, &sets, 1), ["animal", "dog", "husky"]);
    assert_eq!(sets.chosen(1), graph.id("husky"));
    assert_eq!(names(&graph, &sets, 2), [""; 0]);
    assert_eq!((sets.chosen(2), sets.is_answered(2)), (None, true));
}

#[test]
fn best_chooses_among_leaves_groups_and_lists_and_takes_the_first_of_equals() {
    let graph = graph();
    let marginals = [0.9f32, 0.5, 0.4, 0.4, 0.1];
    let chosen = |among: Classes| {
        let sets = decide(&Decision::Best { among }, &graph, &marginals).unwrap();
        (graph.name(sets.chosen(0).unwrap()).to_owned(), names(&graph, &sets, 0).len())
    };
    assert_eq!(chosen(Classes::Leaves), (String::from("husky"), 3));
    assert_eq!(chosen(Classes::Group(String::from("kind"))), (String::from("animal"), 1));
    assert_eq!(chosen(Classes::All), (String::from("animal"), 1));
    let list = vec![String::from("car"), String::from("cat"), String::from("car")];
    assert_eq!(chosen(Classes::Labels(list)), (String::from("cat"), 2));
}

#[test]
fn thresholds_compare_in_the_type_of_the_marginals() {
    let graph = graph();
    let at = Decision::Threshold { at: 0.9 };
    let sets = decide(&at, &graph, &[0.9f32, 0.1, 0.0, 0.89, 0.2]).unwrap();
    assert_eq!(sets.row(0), [true, false, false, false, false]);
}

#[test]
fn rows_without_marginals_have_no_answer() {
    let graph = graph();
    let marginals = [0.9, 0.9, f64::NAN, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    for decision in [
        Decision::default(),
        Decision::Best { among: Classes::All },
        Decision::BackOff { confidence: 0.5 },
    ] {
        let sets = decide(&decision, &graph, &marginals).unwrap();
        assert_eq!((sets.rows(), sets.unanswered()), (2, 1));
        assert_eq!((sets.row(0), sets.chosen(0)), (&[false; 5][..], None));
        assert!(sets.is_answered(1));
    }
    assert_eq!(decide::<f64>(&Decision::default(), &graph, &[]).unwrap().rows(), 0);
}

#[test]
fn invalid_requests_are_errors() {
    let graph = graph();
    let error = |decision: Decision, marginals: &[f64]| {
        decide(&decision, &graph, marginals).unwrap_err().to_string()
    };
    assert_eq!(
        error(Decision::default(), &[0.5; 7]),
        "the marginals: 7 entries, but 10 are needed"
    );
    assert!(error(Decision::Threshold { at: f64::NAN }, &[]).contains("between 0 and 1"));
    assert!(error(Decision::Consistent, &[]).contains("engine"));
    let cow = Classes::Labels(vec![String::from("cow")]);
    assert_eq!(error(Decision::Best { among: cow }, &[]), "the graph has no label `cow`");
    let group = Classes::Group(String::from("colour"));
    assert!(error(Decision::Best { among: group }, &[]).contains("one-of group `colour`"));
    assert!(Decisions::from_sets(0, vec![true]).is_err());
    assert_eq!(Decisions::from_sets(0, Vec::new()).unwrap().rows(), 0);
}

#[test]
fn decisions_are_written_in_kebab_case() {
    for (decision, text) in [
        (Decision::default(), r#"{"by":"threshold","at":0.5}"#),
        (Decision::Best { among: Classes::Leaves }, r#"{"by":"best","among":"leaves"}"#),
        (Decision::BackOff { confidence: 0.9 }, r#"{"by":"back-off","confidence":0.9}"#),
        (Decision::Consistent, r#"{"by":"consistent"}"#),
    ] {
        assert_eq!(serde_json::to_string(&decision).unwrap(), text);
        assert_eq!(serde_json::from_str::<Decision>(text).unwrap(), decision);
    }
    let short = serde_json::from_str::<Decision>(r#"{"by":"threshold"}"#).unwrap();
    assert_eq!(short, Decision::default());
    assert!(serde_json::from_str::<Decision>(r#"{"by":"threshold","above":1}"#).is_err());
}
