//! Metrics against their definitions, read literally in quadratic time.

use phex::decide::{Classes, Decision, Decisions, decide};
use phex::graph::{ExclusionRule, GraphBuilder, LabelId, RelationGraph, Semantics, Strength};
use phex::infer::Evidence;
use phex::metrics::{
    Binning, EvaluationOptions, LabelTable, Ranking, Reliability, TruthClosure, areas,
    class_report, evaluate, hierarchical_scores, losses, probability_violations, reliability,
    set_scores, set_violations,
};
use phex::model::{Model, Relation};
use phex::testkit::{Random, RandomGraph};
use proptest::prelude::*;

/// Rows × labels with ties, unknown truths and entries without a probability.
fn drawn(random: &mut Random, rows: usize, labels: usize) -> (Vec<f64>, Vec<Evidence>) {
    let coarse = random.next() < 0.5;
    let probability = |random: &mut Random| match random.below(20) {
        0 => f64::NAN,
        _ if coarse => random.below(6) as f64 / 5.0,
        // Numbers that singles hold too.
        _ => random.below(1 << 20) as f64 / f64::from(1 << 20),
    };
    let truth = |random: &mut Random| match random.below(8) {
        0 => Evidence::Unknown,
        1..=3 => Evidence::On,
        _ => Evidence::Off,
    };
    let probabilities = (0..rows * labels).map(|_| probability(random)).collect();
    (probabilities, (0..rows * labels).map(|_| truth(random)).collect())
}

/// `Σ (R_n − R_{n−1}) P_n` over every distinct score as a threshold.
fn slow_average_precision(entries: &[(f64, bool)]) -> Option<f64> {
    let positives = entries.iter().filter(|entry| entry.1).count() as f64;
    let mut thresholds: Vec<f64> = entries.iter().map(|entry| entry.0).collect();
    thresholds.sort_by(|a, b| b.total_cmp(a));
    thresholds.dedup();
    let (mut recall, mut sum) = (0.0, 0.0);
    for threshold in thresholds {
        let at = entries.iter().filter(|entry| entry.0 >= threshold);
        let right = at.clone().filter(|entry| entry.1).count() as f64;
        sum += (right / positives - recall) * right / at.count() as f64;
        recall = right / positives;
    }
    (positives > 0.0).then_some(sum)
}

/// Every operating point, one point a positive between them, trapezoids.
fn slow_interpolated_area(entries: &[(f64, bool)]) -> Option<f64> {
    let positives = entries.iter().filter(|entry| entry.1).count() as f64;
    let mut thresholds: Vec<f64> = entries.iter().map(|entry| entry.0).collect();
    thresholds.sort_by(|a, b| b.total_cmp(a));
    thresholds.dedup();
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut last = (0.0, 0.0);
    for threshold in thresholds {
        let at = entries.iter().filter(|entry| entry.0 >= threshold);
        let right = at.clone().filter(|entry| entry.1).count() as f64;
        let wrong = at.count() as f64 - right;
        if points.is_empty() {
            points.push((0.0, right / (right + wrong)));
        }
        let steps = (right - last.0) as usize;
        for step in 1..=steps {
            let part = step as f64 / steps as f64;
            let (r, w) = (last.0 + step as f64, last.1 + part * (wrong - last.1));
            points.push((r / positives, r / (r + w)));
        }
        // Negatives alone: straight down at the same recall.
        points.push((right / positives, right / (right + wrong)));
        last = (right, wrong);
    }
    let area = points.windows(2).map(|two| (two[1].0 - two[0].0) * (two[0].1 + two[1].1) / 2.0);
    (positives > 0.0).then_some(area.sum())
}

fn slow_roc_area(entries: &[(f64, bool)]) -> Option<f64> {
    let (mut pairs, mut right) = (0.0, 0.0);
    for positive in entries.iter().filter(|entry| entry.1) {
        for negative in entries.iter().filter(|entry| !entry.1) {
            pairs += 1.0;
            right += match positive.0.total_cmp(&negative.0) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    (pairs > 0.0).then_some(right / pairs)
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-12,
        (a, b) => a == b,
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The entries of some labels that count.
fn entries_of(
    labels: usize,
    p: &[f64],
    truths: &[Evidence],
    counts: impl Fn(usize) -> bool,
) -> Vec<(f64, bool)> {
    let all = p.iter().zip(truths).enumerate();
    all.filter(|(at, (p, t))| counts(at % labels) && p.is_finite() && **t != Evidence::Unknown)
        .map(|(_, (p, t))| (*p, *t == Evidence::On))
        .collect()
}

/// What a label set has above it, itself included.
fn extended(graph: &RelationGraph, on: impl Fn(LabelId) -> bool) -> Vec<bool> {
    let below = |id: LabelId| graph.ids().filter(move |&b| graph.topology().subsumes(id, b));
    graph.ids().map(|id| below(id).any(&on)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn areas_are_those_of_the_definitions(
        rows in 0usize..12, labels in 1usize..6, out in 0usize..8, seed in any::<u64>()
    ) {
        let (p, truths) = drawn(&mut Random::new(seed), rows, labels);
        let left_out: Vec<LabelId> = (out < labels).then(|| LabelId::from(out)).into_iter().collect();
        let table = LabelTable::new(labels, &p, &truths).unwrap().leave_out(&left_out).unwrap();
        let found = areas(&table);
        let pooled = entries_of(labels, &p, &truths, |label| label != out);
        prop_assert!(close(found.average_precision.micro, slow_average_precision(&pooled)));
        prop_assert!(close(found.interpolated.micro, slow_interpolated_area(&pooled)));
        prop_assert!(close(found.roc.micro, slow_roc_area(&pooled)));
        let (mut plain, mut weighted, mut weight) = (Vec::new(), 0.0, 0.0);
        for label in 0..labels {
            let column = entries_of(labels, &p, &truths, |other| other == label && label != out);
            let expected = slow_average_precision(&column);
            prop_assert!(close(found.labels[label].average_precision, expected));
            prop_assert!(close(found.labels[label].interpolated, slow_interpolated_area(&column)));
            let positives = column.iter().filter(|entry| entry.1).count() as f64;
            if let Some(expected) = expected {
                plain.push(expected);
                weighted += positives * expected;
                weight += positives;
            }
        }
        prop_assert!(close(found.average_precision.macro_mean, mean(&plain)));
        let weighted = (weight > 0.0).then(|| weighted / weight);
        prop_assert!(close(found.average_precision.weighted_mean, weighted));
        // Singles rank as doubles do where they keep the order.
        let single: Vec<f32> = p.iter().map(|p| *p as f32).collect();
        let single = areas(&LabelTable::new(labels, &single, &truths).unwrap());
        let doubles = areas(&LabelTable::new(labels, &p, &truths).unwrap());
        prop_assert!(close(single.average_precision.micro, doubles.average_precision.micro));
    }

    #[test]
    fn set_scores_are_those_of_the_definitions(
        rows in 0usize..10, labels in 1usize..7, seed in any::<u64>()
    ) {
        let mut random = Random::new(seed);
        let (p, truths) = drawn(&mut random, rows, labels);
        let graph = RandomGraph::any(labels, seed).draw();
        let sets = decide(&Decision::default(), &graph, &p).unwrap();
        let table = LabelTable::new(labels, &p, &truths).unwrap();
        let found = set_scores(&table, &sets).unwrap();
        let entry = |row: usize, label: usize| (truths[row * labels + label], sets.row(row)[label]);
        let answered: Vec<usize> = (0..rows).filter(|&row| sets.is_answered(row)).collect();
        for &row in &answered {
            prop_assert!(p[row * labels..][..labels].iter().all(|p| p.is_finite()));
        }
        let count = |label: usize, truth: Evidence, on: bool| {
            answered.iter().filter(|&&row| entry(row, label) == (truth, on)).count() as f64
        };
        let mut f1 = Vec::new();
        for label in 0..labels {
            let right = count(label, Evidence::On, true);
            let support = right + count(label, Evidence::On, false);
            let predicted = right + count(label, Evidence::Off, true);
            let counts = found.labels[label];
            prop_assert!(close(counts.recall(), (support > 0.0).then(|| right / support)));
            prop_assert!(close(counts.precision(), (predicted > 0.0).then(|| right / predicted)));
            if support > 0.0 {
                f1.push(2.0 * right / (support + predicted));
            }
        }
        prop_assert!(close(found.f1.macro_mean, mean(&f1)));
        let known = |row: usize| (0..labels).filter(move |&l| entry(row, l).0 != Evidence::Unknown);
        let agrees = |row: usize, l: usize| (entry(row, l).0 == Evidence::On) == entry(row, l).1;
        let some: Vec<usize> =
            answered.iter().copied().filter(|&row| known(row).count() > 0).collect();
        let exact = some.iter().filter(|&&row| known(row).all(|l| agrees(row, l))).count();
        prop_assert_eq!((found.rows, found.exact_rows), (some.len(), exact));
        let entries = some.iter().map(|&row| known(row).count()).sum::<usize>();
        let right: usize = some.iter().map(|&r| known(r).filter(|&l| agrees(r, l)).count()).sum();
        prop_assert!(close(found.accuracy, (entries > 0).then(|| right as f64 / entries as f64)));

        // Hierarchical: sets of ancestors by reachability.
        let hierarchical = hierarchical_scores(&graph, &table, &sets).unwrap();
        let (mut predicted, mut actual, mut shared) = (0, 0, 0);
        for &row in &some {
            let mine = extended(&graph, |id| sets.row(row)[id.index()]);
            let truth = extended(&graph, |id| table.truths(row)[id.index()] == Evidence::On);
            for label in 0..labels {
                if truth[label] || table.truths(row)[label] == Evidence::Off {
                    predicted += u64::from(mine[label]);
                    actual += u64::from(truth[label]);
                    shared += u64::from(mine[label] && truth[label]);
                }
            }
        }
        let counts = (hierarchical.predicted, hierarchical.actual, hierarchical.shared);
        prop_assert_eq!(counts, (predicted, actual, shared));
    }

    #[test]
    fn violations_are_those_of_the_written_out_relations(
        labels in 1usize..9, seed in any::<u64>(), dense in any::<bool>()
    ) {
        let mut random = Random::new(seed);
        let mut builder = RandomGraph::any(labels, seed).builder();
        if dense {
            builder.semantics(Semantics::Dense);
        }
        let Ok(model) = Model::new(&builder.build().unwrap()) else { return Ok(()) };
        let on: Vec<bool> = (0..4 * labels).map(|_| random.next() < 0.5).collect();
        let sets = Decisions::from_sets(labels, on.clone()).unwrap();
        let found = set_violations(&model, &sets).unwrap();
        let dense: Vec<Relation> = model.dense().into_iter().flat_map(|d| d.relations()).collect();
        let (mut hierarchy, mut exclusion, mut one_of, mut rows) = (0, 0, 0, 0);
        for row in on.chunks(labels) {
            let state = |id: LabelId| row[id.index()];
            let costs = |r: &&Relation| r.cost(|_| true) > 0.0 || r.cost(state) > 0.0;
            let all = model.relations().iter().chain(&dense).filter(costs);
            let before = hierarchy + exclusion + one_of;
            for relation in all {
                let count = relation.violations(state) as u64;
                match relation {
                    Relation::Hierarchy { .. } => hierarchy += count,
                    _ => exclusion += count,
                }
            }
            let groups = model.one_of().iter();
            one_of += groups.filter(|g| g.labels.iter().filter(|l| state(**l)).count() != 1).count()
                as u64;
            rows += u64::from(hierarchy + exclusion + one_of > before);
        }
        prop_assert_eq!((found.hierarchy, found.exclusion, found.one_of), (hierarchy, exclusion, one_of));
        prop_assert_eq!((found.violating_rows, found.rows), (rows, 4));
        // As probabilities 0 and 1, the direct relations of a sparse model are violated alike.
        if model.dense().is_none() {
            let p: Vec<f32> = on.iter().map(|on| f32::from(u8::from(*on))).collect();
            let truths = vec![Evidence::Unknown; p.len()];
            let table = LabelTable::new(labels, &p, &truths).unwrap();
            prop_assert_eq!(probability_violations(&model, &table, 1e-6).unwrap(), found);
        }
    }

    #[test]
    fn bins_hold_every_entry_once(
        p in prop::collection::vec((0u8..=20, any::<bool>()), 0..60), bins in 1usize..8
    ) {
        let entries: Vec<(f64, bool)> =
            p.iter().map(|&(p, on)| (f64::from(p) / 20.0, on)).collect();
        for binning in [Binning::EqualWidth, Binning::EqualMass] {
            let table = Reliability::new(entries.iter().copied(), binning, bins).unwrap();
            prop_assert!(table.bins.len() <= bins);
            let mut error = 0.0;
            for (at, bin) in table.bins.iter().enumerate() {
                let inside = |p: f64| match binning {
                    Binning::EqualWidth => {
                        bin.low <= p && (p < bin.high || (at + 1 == bins && p == 1.0))
                    }
                    Binning::EqualMass => (at == 0 || bin.low < p) && p <= bin.high,
                };
                let mine: Vec<&(f64, bool)> = entries.iter().filter(|e| inside(e.0)).collect();
                prop_assert_eq!(bin.count, mine.len() as u64);
                let sum: f64 = mine.iter().map(|e| e.0 - f64::from(u8::from(e.1))).sum();
                error += sum.abs();
                // Mass is equal but for ties: no bin lacks entries.
                prop_assert!(binning == Binning::EqualWidth || bin.count > 0);
            }
            prop_assert_eq!(table.bins.iter().map(|bin| bin.count).sum::<u64>(), p.len() as u64);
            let expected = (!p.is_empty()).then(|| error / p.len() as f64);
            prop_assert!(close(table.expected_error(), expected));
        }
    }

    #[test]
    fn one_call_gathers_the_single_metrics(
        rows in 0usize..10, labels in 1usize..8, seed in any::<u64>()
    ) {
        let (p, truths) = drawn(&mut Random::new(seed), rows, labels);
        let graph = RandomGraph::any(labels, seed).draw();
        let Ok(model) = Model::new(&graph) else { return Ok(()) };
        let leave_out: Vec<String> = graph.roots().take(1).map(|id| graph.name(id).into()).collect();
        let options = EvaluationOptions {
            classes: Some(Classes::Leaves), leave_out, ..EvaluationOptions::default()
        };
        let found = evaluate(&options, &graph, &model, &p, &truths).unwrap();
        let root: Vec<LabelId> = graph.roots().take(1).collect();
        let mut closed = truths.clone();
        TruthClosure::new(&graph).close(&mut closed);
        prop_assert!(truths.iter().zip(&closed).all(|(t, c)| *t == Evidence::Unknown || t == c));
        let truths = closed;
        let table = LabelTable::new(labels, &p, &truths).unwrap().leave_out(&root).unwrap();
        let table = table.leave_out_unjudged();
        let sets = decide(&Decision::default(), &graph, &p).unwrap();
        let scores = set_scores(&table, &sets).unwrap();
        prop_assert_eq!(&found.average_precision, &areas(&table).average_precision);
        prop_assert_eq!(&found.f1, &scores.f1);
        prop_assert_eq!(found.log_loss, losses(&table).log_loss);
        let leaves: Vec<LabelId> = graph.leaves().collect();
        let report = class_report(&table, &leaves, &[1, 5]).unwrap();
        prop_assert_eq!(found.classes.as_ref(), Some(&report));
        let bins = reliability(&table, Binning::EqualWidth, 15).unwrap();
        prop_assert_eq!(found.calibration_error, bins.expected_error());
        prop_assert_eq!(found.labels.len(), labels - 1);
        let counts = found.counts;
        let all = counts.known + counts.unknown + counts.unanswered;
        prop_assert_eq!(all, rows * (labels - 1));
        prop_assert_eq!(counts.known, entries_of(labels, &p, &truths, |l| l != root[0].index()).len());
        let json = serde_json::to_value(&found).unwrap();
        prop_assert!(json["average_precision"].get("macro").is_some());
        let printed = format!("{found:#}");
        prop_assert!(printed.lines().count() > 20 + labels);
    }
}

#[test]
fn log_loss_and_brier_by_hand() {
    use Evidence::{Off, On, Unknown};
    let p = [0.8, 0.3, 1.0, 0.5, 0.9, f64::NAN];
    let table = LabelTable::new(2, &p, &[On, Off, Off, Unknown, On, On]).unwrap();
    let found = losses(&table);
    let first = (-(0.8f64.ln()) - 1e-15f64.ln() - 0.9f64.ln()) / 3.0;
    assert!(close(found.labels[0].log_loss, Some(first)));
    assert!(close(found.labels[0].brier, Some((0.04 + 1.0 + 0.01) / 3.0)));
    assert!(close(found.labels[1].log_loss, Some(-(0.7f64.ln()))));
    assert!(close(found.brier, Some((0.04 + 1.0 + 0.01 + 0.09) / 4.0)));
    let (_, brier) = found.macro_means();
    assert!(close(brier, Some((1.05 / 3.0 + 0.09) / 2.0)));
}

#[test]
fn probabilities_beyond_their_relations() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("animal", "dog", Some(Strength::U(1.0)));
    builder.exclusion_group(None, ["dog", "car", "tree"], None);
    builder.one_of("size", ["small", "large"], None);
    let graph = builder.build().unwrap();
    let model = Model::new(&graph).unwrap();
    // animal, dog, car, tree, small, large
    let p = [
        0.5,
        0.6,
        0.7,
        0.35,
        0.5,
        0.5, //  dog above animal; dog + car and car + tree above 1
        0.6,
        0.6,
        0.4,
        0.4,
        0.5,
        0.4, // small + large below 1
        0.6,
        0.6,
        0.4,
        0.4,
        0.6,
        0.4, // nothing
        0.6,
        f64::NAN,
        0.9,
        0.9,
        0.6,
        0.4, // not looked at
    ];
    let truths = [Evidence::Unknown; 24];
    let table = LabelTable::new(6, &p, &truths).unwrap();
    let found = probability_violations(&model, &table, 1e-6).unwrap();
    assert_eq!((found.hierarchy, found.exclusion, found.one_of), (1, 2, 1));
    assert_eq!((found.violating_rows, found.rows), (2, 3));
    assert!(probability_violations(&model, &table, -1.0).is_err());
}

#[test]
fn dense_forests_are_held_to_edges_and_families() {
    let mut builder = GraphBuilder::new();
    let soft = Some(Strength::W(2.0));
    builder.hierarchy("animal", "dog", soft).hierarchy("animal", "cat", soft);
    builder.hierarchy("dog", "husky", soft).exclusion_rule(ExclusionRule::NotSubsumed, soft);
    builder.semantics(Semantics::Dense);
    let model = Model::new(&builder.build().unwrap()).unwrap();
    assert!(model.dense().is_some());
    // animal, dog, cat, husky: the husky exceeds the dog, dog and cat together exceed 1.
    let p = [1.0f32, 0.6, 0.5, 0.7];
    let table = LabelTable::new(4, &p, &[Evidence::Unknown; 4]).unwrap();
    let found = probability_violations(&model, &table, 1e-4).unwrap();
    assert_eq!((found.hierarchy, found.exclusion), (1, 1));
}

#[test]
fn wrong_shapes_are_errors_and_empty_tables_are_not() {
    use Evidence::{Off, On};
    let text = |error: phex::Error| error.to_string();
    let shape = LabelTable::new(2, &[0.5; 3], &[On; 3]).unwrap_err();
    assert_eq!(text(shape), "the probabilities: 3 entries, but 4 are needed");
    let truths = LabelTable::new(2, &[0.5; 4], &[On; 3]).unwrap_err();
    assert_eq!(text(truths), "the truths: 3 entries, but 4 are needed");
    let logit = LabelTable::new(2, &[0.5, 0.5, 3.5, 0.5], &[On; 4]).unwrap_err();
    assert!(text(logit).starts_with("row 1, column 0: 3.5 is not a probability"));
    assert!(LabelTable::new(0, &[0.5], &[On]).is_err());
    let table = LabelTable::new(2, &[0.5; 4], &[Off; 4]).unwrap();
    assert!(table.clone().leave_out(&[LabelId(2)]).is_err());
    let other = Decisions::from_sets(2, vec![true; 2]).unwrap();
    assert!(set_scores(&table, &other).is_err());
    let wider = Decisions::from_sets(4, vec![true; 4]).unwrap();
    assert!(set_scores(&table, &wider).is_err());

    let mut builder = GraphBuilder::new();
    builder.hierarchy("animal", "dog", None);
    let graph = builder.build().unwrap();
    let model = Model::new(&graph).unwrap();
    let options = EvaluationOptions { classes: Some(Classes::All), ..Default::default() };
    for (p, truths) in [
        (vec![], vec![]),
        (vec![0.5; 4], vec![Evidence::Unknown; 4]),
        (vec![f64::NAN; 4], vec![On; 4]),
        (vec![0.5; 4], vec![Off; 4]),
    ] {
        let found = evaluate(&options, &graph, &model, &p, &truths).unwrap();
        assert_eq!(found.average_precision.micro, None);
        assert!(found.to_string().contains('–'));
    }
    let root = EvaluationOptions { leave_out: vec!["plant".into()], ..Default::default() };
    let unknown = evaluate::<f64>(&root, &graph, &model, &[], &[]).unwrap_err();
    assert_eq!(text(unknown), "the graph has no label `plant`");
    assert_eq!(areas(&LabelTable::<f64>::new(0, &[], &[]).unwrap()).labels.len(), 0);
}

#[test]
fn options_are_written_and_read() {
    let text = r#"{"decision": {"by": "best"}, "classes": "leaves", "leave-out": ["root"]}"#;
    let options: EvaluationOptions = serde_json::from_str(text).unwrap();
    assert_eq!(options.decision, Decision::Best { among: Classes::Leaves });
    assert_eq!((options.top.as_slice(), options.bins), (&[1, 5][..], 15));
    let again = serde_json::to_string(&options).unwrap();
    assert_eq!(serde_json::from_str::<EvaluationOptions>(&again).unwrap(), options);
}

/// Large enough that many thresholds, shares of threads and columns meet; against the sorted list.
#[test]
fn a_large_pooled_ranking() {
    let (rows, labels) = (700, 300);
    let mut random = Random::new(11);
    let p: Vec<f32> = (0..rows * labels).map(|_| random.next() as f32).collect();
    let truth =
        |p: &f32| if random.next() < f64::from(*p) * 0.1 { Evidence::On } else { Evidence::Off };
    let truths: Vec<Evidence> = p.iter().map(truth).collect();
    let table = LabelTable::new(labels, &p, &truths).unwrap();
    let mut sorted: Vec<(f32, bool)> = table.entries().collect();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut right, mut sum, mut seen) = (0.0, 0.0, 0.0);
    for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
        let on = equal.iter().filter(|entry| entry.1).count() as f64;
        right += on;
        seen += equal.len() as f64;
        sum += on * right / seen;
    }
    assert!(close(Ranking::pooled(&table).average_precision(), Some(sum / right)));
}
