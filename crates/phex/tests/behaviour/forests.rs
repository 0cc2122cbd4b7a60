//! The mixture of forests: exact on forests, a bound on log Z elsewhere.

use phex::graph::{GraphBuilder, Strength};
use phex::infer::{Block, Engine, Evidence, Method, Options, RowStatus, Trust, Want};
use phex::model::Model;

use phex::testkit::Random;

/// A random hierarchy with up to `parents` parents a label, hard and soft.
fn hierarchy(random: &mut Random, labels: usize, parents: usize) -> Model {
    let mut builder = GraphBuilder::new();
    let name = |at: usize| format!("l{at}");
    (0..labels).for_each(|at| {
        builder.label(&name(at));
    });
    for child in 1..labels {
        let mut chosen: Vec<usize> =
            (0..1 + random.below(parents)).map(|_| random.below(child)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        for parent in chosen {
            let soft = Strength::W(3.0 * random.next());
            let strength = if random.next() < 0.5 { soft } else { Strength::Hard };
            builder.hierarchy(&name(parent), &name(child), Some(strength));
        }
    }
    Model::new(&builder.build().unwrap()).unwrap()
}

fn rows(random: &mut Random, labels: usize, rows: usize) -> (Vec<f64>, Vec<Evidence>) {
    let scores = (0..rows * labels).map(|_| 2.0 * random.normal()).collect();
    let evidence = (0..rows * labels).map(|at| {
        let known = (at / labels) % 2 == 1 && random.next() < 0.3;
        match (known, random.next() < 0.5) {
            (false, _) => Evidence::Unknown,
            (true, true) => Evidence::On,
            (true, false) => Evidence::Off,
        }
    });
    (scores, evidence.collect())
}

fn compile(model: &Model, method: Method) -> Engine {
    Engine::compile(model.clone(), &Options { method, ..Options::default() }).unwrap()
}

#[test]
fn forests_are_exact() {
    let mut random = Random::new(1);
    for _ in 0..100 {
        let labels = 2 + random.below(10);
        let model = hierarchy(&mut random, labels, 1);
        let (scores, evidence) = rows(&mut random, labels, 20);
        let block = Block::new(labels, &scores).with_evidence(&evidence);
        let want = Want { expectations: true, ..Want::default() };
        let exact = compile(&model, Method::Brute).run(&block, want).unwrap();
        let found = compile(&model, Method::Forests).run(&block, want).unwrap();
        assert_eq!(found.status, exact.status);
        for row in (0..20).filter(|&row| exact.status[row] == RowStatus::Answered) {
            assert!((found.log_partition[row] - exact.log_partition[row]).abs() < 1e-9);
            for (a, b) in found.row(row).iter().zip(exact.row(row)) {
                assert!((a - b).abs() < 1e-9, "{a} {b}");
            }
            let terms = model.terms();
            let part = |all: &Option<Vec<f64>>| {
                all.as_ref().unwrap()[row * terms..(row + 1) * terms].to_vec()
            };
            for (a, b) in part(&found.expectations).iter().zip(part(&exact.expectations)) {
                assert!((a - b).abs() < 1e-9, "{a} {b}");
            }
        }
    }
}

#[test]
fn it_bounds_log_z_from_above_where_labels_have_several_parents() {
    let mut random = Random::new(2);
    let (mut compared, mut sum) = (0, 0.0);
    for _ in 0..100 {
        let labels = 3 + random.below(9);
        let model = hierarchy(&mut random, labels, 3);
        let (scores, evidence) = rows(&mut random, labels, 20);
        let block = Block::new(labels, &scores).with_evidence(&evidence);
        let exact = compile(&model, Method::Brute).run(&block, Want::default()).unwrap();
        let found = compile(&model, Method::Forests).run(&block, Want::default()).unwrap();
        assert_eq!(found.status, exact.status);
        for row in (0..20).filter(|&row| exact.status[row] == RowStatus::Answered) {
            let Trust::Approximate(diagnosis) = found.trust[row] else {
                panic!("it is approximate")
            };
            if diagnosis.converged {
                let gain = found.log_partition[row] - exact.log_partition[row];
                assert!(gain > -1e-4, "{gain}");
                (compared, sum) = (compared + 1, sum + gain);
            }
            let certain =
                block.row(row).iter().enumerate().map(|(label, _)| block.evidence(row, label));
            for (p, known) in found.row(row).iter().zip(certain) {
                match known {
                    Evidence::On => assert_eq!(*p, 1.0),
                    Evidence::Off => assert_eq!(*p, 0.0),
                    Evidence::Unknown => assert!((0.0..=1.0).contains(p)),
                }
            }
        }
    }
    assert!(
        compared > 1000,
        "{compared} rows converged, bound above by {}",
        sum / f64::from(compared)
    );
}

/// Parents that want to be off, each of all of many children that want to be on: when all children were
/// told before they answered, messages swung between two states for ever.
#[test]
fn messages_settle_where_parents_share_many_children() {
    for (parents, children) in [(2, 20), (2, 100), (4, 50), (3, 200)] {
        let mut builder = GraphBuilder::new();
        for (child, parent) in (0..children).flat_map(|c| (0..parents).map(move |p| (c, p))) {
            builder.hierarchy(&format!("p{parent}"), &format!("c{child}"), None);
        }
        let graph = builder.build().unwrap();
        let engine = compile(&Model::new(&graph).unwrap(), Method::Forests);
        for (above, below) in [(-20.0, 1.0), (-20.0, -1.0), (-20.0, -3.0), (-5.0, -3.0)] {
            let mut random = Random::new(4);
            let mean = |name: &str| if name.starts_with('p') { above } else { below };
            let row = |_| graph.labels().iter().map(|label| mean(&label.name));
            let scores: Vec<f64> =
                (0..16).flat_map(row).map(|mean| mean + random.normal()).collect();
            let block = Block::new(graph.len(), &scores);
            for trust in engine.run(&block, Want::default()).unwrap().trust {
                let Trust::Approximate(how) = trust else { panic!("it is approximate") };
                assert!(how.residual < 1e-3, "{parents} {children} {above} {below}: {how:?}");
            }
        }
    }
}

#[test]
fn a_row_alone_has_the_bits_that_it_has_among_others() {
    let mut random = Random::new(3);
    let model = hierarchy(&mut random, 30, 3);
    let engine = compile(&model, Method::Forests);
    let (scores, evidence) = rows(&mut random, 30, 37);
    let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
    let block = Block::new(30, &narrow).with_evidence(&evidence);
    let all = engine.run(&block, Want::default()).unwrap();
    for row in 0..37 {
        let alone = engine.run(&block.slice(row..row + 1), Want::default()).unwrap();
        assert!(
            alone.row(0).iter().zip(all.row(row)).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
        );
    }
}

#[test]
fn other_relations_are_refused_with_a_reason() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "b", None).exclusion("b", "c", None);
    let model = Model::new(&builder.build().unwrap()).unwrap();
    let options = Options { method: Method::Forests, ..Options::default() };
    let error = Engine::compile(model, &options).unwrap_err().to_string();
    assert!(error.contains("b, c exclude each other"), "{error}");
}
