//! Every engine against brute force, through the public interface.

use std::collections::HashMap;

use phex::graph::{GraphBuilder, LabelId, RelationGraph, Semantics, Strength};
use phex::infer::{Block, Engine, Evidence, Method, Options, RowStatus, Want};
use phex::model::{Model, Relation};
use phex::testkit::{HierarchyShape, Random, RandomGraph};

fn compile(model: &Model, method: Method) -> Option<Engine> {
    let options = Options { method, ..Options::default() };
    Engine::compile(model.clone(), &options).ok()
}

/// Rows of scores of several sizes, and evidence on some labels.
fn rows(random: &mut Random, n: usize, count: usize) -> (Vec<f64>, Vec<Evidence>) {
    let mut scores = Vec::new();
    let mut evidence = Vec::new();
    for row in 0..count {
        let scale = [0.5, 2.0, 6.0, 40.0, 1e4][(row / 2) % 5];
        for _ in 0..n {
            scores.push(random.normal() * scale);
            let known = [Evidence::On, Evidence::Off];
            let p = if row % 2 == 0 { 0.0 } else { 0.25 };
            evidence.push(if random.next() < p {
                known[random.below(2)]
            } else {
                Evidence::Unknown
            });
        }
    }
    (scores, evidence)
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b
        || (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()).min(1.0))
        || (a.is_nan() && b.is_nan())
}

/// Compares one engine with brute force on one model; answers whether the engine took it.
fn agrees(model: &Model, method: Method, seed: u64) -> bool {
    let Some(engine) = compile(model, method) else { return false };
    let brute = compile(model, Method::Brute).unwrap();
    let n = model.len();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (scores, evidence) = rows(&mut random, n, 10);
    let block = Block::new(n, &scores).with_evidence(&evidence);
    let want = Want { expectations: true, entropy: true, ..Want::default() };
    let (got, expected) = (engine.run(&block, want).unwrap(), brute.run(&block, want).unwrap());
    assert_eq!(got.status, expected.status, "{method} {seed} {model:?}");
    for row in 0..block.rows() {
        if expected.status[row] == RowStatus::Impossible {
            assert!(got.row(row).iter().all(|p| p.is_nan()));
            continue;
        }
        let context = || {
            format!(
                "{method}, seed {seed}, row {row}, {model:?}\n{:?}\n{:?}",
                block.row(row),
                &evidence[row * n..(row + 1) * n]
            )
        };
        let scale = block.row(row).iter().map(|s| s.abs()).fold(1.0, f64::max);
        let (z, e) = (got.log_partition[row], expected.log_partition[row]);
        assert!((z - e).abs() < 1e-9 * scale.max(10.0), "log Z {z} {e}: {}", context());
        let bound = 1e-9;
        for label in 0..n {
            let (p, e) = (got.row(row)[label], expected.row(row)[label]);
            assert!(close(p, e, bound), "label {label}: {p} {e}: {}", context());
        }
        let terms = model.terms();
        let (g, e) = (got.expectations.as_ref().unwrap(), expected.expectations.as_ref().unwrap());
        for term in 0..terms {
            let (g, e) = (g[row * terms + term], e[row * terms + term]);
            assert!(close(g, e, 1e-8 + bound * 20.0), "term {term}: {g} {e}: {}", context());
        }
        if scale < 100.0 {
            let (g, e) =
                (got.entropy.as_ref().unwrap()[row], expected.entropy.as_ref().unwrap()[row]);
            assert!((g - e).abs() < 1e-6, "entropy {g} {e}: {}", context());
        }
        // The best sets and their weights.
        let (got, expected) =
            (engine.best(&block, row, 6).unwrap(), brute.best(&block, row, 6).unwrap());
        assert_eq!(got.len(), expected.len(), "best sets: {}", context());
        for (g, e) in got.iter().zip(&expected) {
            assert!(
                (g.log_weight - e.log_weight).abs() < 1e-8 * scale,
                "best {g:?} {e:?}: {}",
                context()
            );
            let weight = model.log_weight(block.row(row), &g.on);
            assert!((weight - g.log_weight).abs() < 1e-8 * scale, "{weight} {g:?}: {}", context());
        }
        for pair in got.windows(2) {
            assert_ne!(pair[0].on, pair[1].on, "a set came twice");
        }
    }
    // Single precision, and any size of block.
    let narrow: Vec<f32> = scores.iter().map(|&s| s as f32).collect();
    let wide: Vec<f64> = narrow.iter().map(|&s| f64::from(s)).collect();
    let all =
        engine.run(&Block::new(n, &narrow).with_evidence(&evidence), Want::default()).unwrap();
    let exact = brute.run(&Block::new(n, &wide).with_evidence(&evidence), Want::default()).unwrap();
    for (at, (g, e)) in all.marginals.iter().zip(&exact.marginals).enumerate() {
        let largest = wide[at / n * n..at / n * n + n].iter().map(|s| s.abs()).fold(0.0, f64::max);
        let rounding = if largest <= 10.0 { 5e-6 } else { 2e-4 };
        assert!(
            close(f64::from(*g), *e, rounding),
            "{method} {seed}: f32 {g} {e} {model:?} {narrow:?}"
        );
    }
    for row in 0..block.rows() {
        let one = Block::new(n, &narrow).with_evidence(&evidence).slice(row..row + 1);
        let one = engine.run(&one, Want::default()).unwrap();
        let same = one.marginals.iter().zip(all.row(row)).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{method}: a row depends on the block");
    }
    true
}

fn with_semantics(graph: &RelationGraph, semantics: Semantics) -> RelationGraph {
    let mut document = phex::graph::document::Document::from(graph);
    document.semantics = semantics;
    document.builder().build().unwrap()
}

#[test]
fn engines_agree_with_brute_force_on_random_graphs() {
    let mut taken: HashMap<Method, usize> = HashMap::new();
    for seed in 0..3000u64 {
        // Mostly small, some of up to 18 labels.
        let labels =
            if seed % 60 == 0 { 11 + seed as usize / 60 % 8 } else { 2 + seed as usize % 9 };
        let graph = RandomGraph::any(labels, seed).draw();
        let dense = seed % 4 == 0;
        let graph = if dense { with_semantics(&graph, Semantics::Dense) } else { graph };
        let Ok(model) = Model::new(&graph) else { continue };
        for method in Method::exact().filter(|&method| method != Method::Brute) {
            *taken.entry(method).or_default() += usize::from(agrees(&model, method, seed));
        }
    }
    // An engine that can handle none of the graphs would agree with everything.
    for method in Method::exact().filter(|&method| method != Method::Brute) {
        let least = match method {
            Method::Junction => 1000,
            Method::States => 150,
            Method::Family => 40,
            Method::Count => 20,
            _ => 1,
        };
        assert!(taken[&method] >= least, "{method}: {taken:?}");
    }
}

/// Dense semantics with one strength for the hierarchy and a weaker one for the rule.
fn dense_forest(graph: &RelationGraph, seed: u64) -> RelationGraph {
    let mut document = phex::graph::document::Document::from(graph);
    document.semantics = Semantics::Dense;
    let strengths = [Strength::Hard, Strength::W(2.0), Strength::W(0.7), Strength::W(0.0)];
    let hierarchy = strengths[seed as usize / 2 % 3];
    for item in &mut document.hierarchy {
        item.strength = Some(hierarchy);
    }
    let exclusion = strengths[(seed as usize / 2 % 3).max(seed as usize / 6 % 4)];
    if let Some(declared) = graph.rule() {
        let rule = declared.rule;
        document.exclude =
            Some(phex::graph::document::RuleItem::Strong { rule, strength: exclusion });
    }
    document.builder().build().unwrap()
}

/// Forests with whole families: the shapes of `family` and `count`.
#[test]
fn engines_agree_on_forests() {
    use phex::graph::ExclusionRule;
    let mut taken: HashMap<Method, usize> = HashMap::new();
    for seed in 0..800u64 {
        let rules = [None, Some(ExclusionRule::Siblings), Some(ExclusionRule::NoCommonDescendant)];
        let graph = RandomGraph {
            shape: HierarchyShape::Tree,
            exclusions: 0,
            groups: 0,
            one_of: (seed % 4) as usize,
            rule: rules[seed as usize % 3],
            ..RandomGraph::any(3 + (seed % 8) as usize, seed)
        }
        .draw();
        let graph = if seed % 2 == 0 { graph } else { dense_forest(&graph, seed) };
        let Ok(model) = Model::new(&graph) else { continue };
        for method in [Method::Paths, Method::Family, Method::Count, Method::Junction] {
            *taken.entry(method).or_default() += usize::from(agrees(&model, method, seed));
        }
    }
    assert!(taken[&Method::Family] > 300 && taken[&Method::Count] > 200, "{taken:?}");
}

/// Classes × attributes, with and without a one-of group.
#[test]
fn engines_agree_on_bipartite_graphs() {
    let mut taken: HashMap<Method, usize> = HashMap::new();
    for seed in 0..600u64 {
        let mut random = Random(seed * 7919 + 1);
        let (classes, attributes) = (2 + random.below(4), 1 + random.below(5));
        let mut builder = GraphBuilder::new();
        let class = |c: usize| format!("class {c}");
        let strengths = [Strength::Hard, Strength::U(0.3), Strength::W(0.0)];
        let vary = seed % 3 == 0;
        for c in 0..classes {
            for a in 0..attributes {
                let attribute = format!("attribute {a}");
                let strength = if vary {
                    Strength::W(3.0 * random.next())
                } else {
                    strengths[random.below(3)]
                };
                if random.next() < 0.5 {
                    builder.hierarchy(&attribute, &class(c), Some(strength));
                } else {
                    builder.exclusion(&class(c), &attribute, Some(strength));
                }
            }
        }
        let names: Vec<String> = (0..classes).map(class).collect();
        let names = names.iter().map(String::as_str);
        if seed % 2 == 0 {
            builder.one_of("class", names, None);
        } else if classes > 2 {
            builder.exclusion_group(None, names, Some(strengths[random.below(3)]));
        }
        let Ok(model) = Model::new(&builder.build().unwrap()) else { continue };
        for method in [Method::Star, Method::Junction] {
            *taken.entry(method).or_default() += usize::from(agrees(&model, method, seed));
        }
    }
    assert!(taken[&Method::Star] > 200, "{taken:?}");
}

/// Many different costs and nothing known of a row: `star` computes its cells in vectors.
#[test]
fn star_agrees_without_evidence() {
    for seed in 0..60u64 {
        let mut random = Random(seed * 15_485_863 + 1);
        let (classes, attributes) = (2 + random.below(4), 5 + random.below(6));
        let mut builder = GraphBuilder::new();
        for c in 0..classes {
            for a in 0..attributes {
                let (class, attribute) = (format!("class {c}"), format!("attribute {a}"));
                let hard = random.next() < 0.1;
                let cost = if hard { Strength::Hard } else { Strength::W(3.0 * random.next()) };
                builder.hierarchy(&attribute, &class, Some(cost));
                builder.exclusion(&class, &attribute, Some(Strength::W(2.0 * random.next())));
            }
        }
        let names: Vec<String> = (0..classes).map(|c| format!("class {c}")).collect();
        builder.one_of("class", names.iter().map(String::as_str), None);
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let compile = |method| {
            Engine::compile(model.clone(), &Options { method, ..Options::default() }).unwrap()
        };
        let (star, brute) = (compile(Method::Star), compile(Method::Brute));
        let n = model.len();
        let scores: Vec<f64> = (0..3 * n).map(|_| 8.0 * (random.next() - 0.5)).collect();
        let expected = brute.run(&Block::new(n, &scores), Want::default()).unwrap();
        let got = star.run(&Block::new(n, &scores), Want::default()).unwrap();
        let narrow: Vec<f32> = scores.iter().map(|&s| s as f32).collect();
        let in_f32 = star.run(&Block::new(n, &narrow), Want::default()).unwrap();
        for row in 0..3 {
            assert!((got.log_partition[row] - expected.log_partition[row]).abs() < 1e-9);
            for ((p, e), narrow) in got.row(row).iter().zip(expected.row(row)).zip(in_f32.row(row))
            {
                assert!(close(*p, *e, 1e-9), "{seed}: {p} {e}");
                assert!(close(f64::from(*narrow), *e, 1e-5), "{seed}: f32 {narrow} {e}");
            }
        }
    }
}

/// A binary matrix, hard or soft: `star` goes by matrix products, but for rows whose attributes are known.
#[test]
fn star_agrees_where_classes_or_attributes_are_known() {
    for seed in 0..60u64 {
        let mut random = Random(seed * 32_452_843 + 1);
        let (classes, attributes) = (2 + random.below(4), 3 + random.below(6));
        let cost = if seed % 3 == 0 { Strength::U(0.3) } else { Strength::Hard };
        let names: Vec<String> = (0..classes).map(|c| format!("class {c}")).collect();
        let mut builder = GraphBuilder::new();
        builder.one_of("class", names.iter().map(String::as_str), None);
        for class in &names {
            for a in 0..attributes {
                let attribute = format!("attribute {a}");
                if random.next() < 0.5 {
                    builder.hierarchy(&attribute, class, Some(cost));
                } else {
                    builder.exclusion(class, &attribute, Some(cost));
                }
            }
        }
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let [star, brute] = [Method::Star, Method::Brute].map(|m| compile(&model, m).unwrap());
        let (n, count) = (model.len(), 6);
        let scores: Vec<f64> = (0..count * n).map(|_| 8.0 * (random.next() - 0.5)).collect();
        let mut evidence = vec![Evidence::Unknown; count * n];
        // Row by row: nothing, a class on, a class off, an attribute, both, nothing.
        evidence[n + random.below(classes)] = Evidence::On;
        evidence[2 * n + random.below(classes)] = Evidence::Off;
        evidence[3 * n + classes + random.below(attributes)] = Evidence::On;
        evidence[4 * n + random.below(classes)] = Evidence::On;
        evidence[4 * n + classes + random.below(attributes)] = Evidence::Off;
        let wide = Block::new(n, &scores).with_evidence(&evidence);
        let expected = brute.run(&wide, Want::default()).unwrap();
        let got = star.run(&wide, Want::default()).unwrap();
        let narrow: Vec<f32> = scores.iter().map(|&s| s as f32).collect();
        let narrow = Block::new(n, &narrow).with_evidence(&evidence);
        let in_f32 = star.run(&narrow, Want::default()).unwrap();
        assert_eq!((&got.status, &in_f32.status), (&expected.status, &expected.status), "{seed}");
        for row in 0..count {
            let (found, right) = (got.log_partition[row], expected.log_partition[row]);
            assert!(close(found, right, 1e-9), "{seed}, row {row}: {found} {right}");
            let rows = got.row(row).iter().zip(expected.row(row)).zip(in_f32.row(row));
            for ((p, e), narrow) in rows {
                assert!(close(*p, *e, 1e-9), "{seed}, row {row}: {p} {e}");
                assert!(close(f64::from(*narrow), *e, 1e-5), "{seed}, row {row}: f32 {narrow} {e}");
            }
        }
    }
}

/// Models that are not label graphs.
#[test]
fn junction_agrees_on_any_pairwise_model() {
    for seed in 0..300u64 {
        let mut random = Random(seed * 104_729 + 1);
        let n = 2 + random.below(8);
        let mut relations = Vec::new();
        for _ in 0..random.below(2 * n) {
            let (a, b) = (random.below(n), random.below(n));
            if a != b {
                let mut cost = || if random.next() < 0.1 { f64::INFINITY } else { random.normal() };
                let costs = [[cost(), cost()], [cost(), cost()]];
                relations.push(Relation::Pair { a: LabelId::from(a), b: LabelId::from(b), costs });
            }
        }
        let names = (0..n).map(|at| format!("x{at}")).collect();
        let bias = (0..n).map(|_| random.normal()).collect();
        let model = Model::from_parts(names, bias, random.normal(), relations, Vec::new());
        assert!(agrees(&model, Method::Junction, seed));
    }
}

#[test]
fn bad_scores_are_named_and_leave_other_rows_alone() {
    let graph =
        RandomGraph { rule: Some(phex::graph::ExclusionRule::Siblings), ..RandomGraph::new(9, 5) }
            .draw();
    let model = Model::new(&graph).unwrap();
    let mut engines = 0;
    for method in Method::exact() {
        let Some(engine) = compile(&model, method) else { continue };
        engines += 1;
        let mut random = Random(11);
        let good: Vec<f64> = (0..9 * 40).map(|_| random.normal()).collect();
        let mut bad = good.clone();
        bad[9 * 7 + 3] = f64::NAN;
        bad[9 * 21 + 8] = f64::INFINITY;
        let run = |scores: &[f64]| engine.run(&Block::new(9, scores), Want::default()).unwrap();
        let (clean, dirty) = (run(&good), run(&bad));
        assert_eq!(dirty.status[7], RowStatus::BadScore { label: 3 });
        assert_eq!(dirty.status[21], RowStatus::BadScore { label: 8 });
        for row in 0..40 {
            if row == 7 || row == 21 {
                assert!(dirty.row(row).iter().all(|p| p.is_nan()));
            } else {
                assert_eq!(clean.row(row), dirty.row(row), "{method}");
            }
        }
    }
    assert!(engines > 3, "{engines}");
}

#[test]
fn samples_follow_the_marginals() {
    let mut engines = 0;
    for seed in 0..12u64 {
        let graph = RandomGraph { one_of: (seed % 3) as usize, ..RandomGraph::any(7, seed) }.draw();
        let dense = with_semantics(&graph, Semantics::Dense);
        for graph in [graph, dense] {
            let Ok(model) = Model::new(&graph) else { continue };
            let mut random = Random(seed + 3);
            let scores: Vec<f64> = (0..7).map(|_| random.normal()).collect();
            let block = Block::new(7, &scores);
            for method in Method::exact() {
                let Some(engine) = compile(&model, method) else { continue };
                if !engine.plan().exact {
                    continue;
                }
                let marginals = engine.run(&block, Want::default()).unwrap().marginals;
                let draws = 4000;
                let samples = engine.sample(&block, 0, draws, 42).unwrap();
                assert_eq!(samples.len(), draws, "{method}");
                assert_eq!(samples, engine.sample(&block, 0, draws, 42).unwrap());
                for (label, &p) in marginals.iter().enumerate() {
                    let share = samples.iter().filter(|on| on[label]).count() as f64 / draws as f64;
                    assert!((share - p).abs() < 0.05, "{method} {seed}: {share} {p}");
                }
                assert!(samples.iter().all(|on| model.log_weight(&scores, on) > f64::NEG_INFINITY));
                engines += 1;
            }
        }
    }
    assert!(engines > 30, "{engines}");
}

#[test]
fn a_graph_and_its_dense_model_have_the_same_legal_states() {
    let mut models = 0;
    for seed in 0..300u64 {
        let graph = with_semantics(&RandomGraph::any(7, seed).draw(), Semantics::Dense);
        let Ok(model) = Model::new(&graph) else { continue };
        models += 1;
        let legal: std::collections::HashSet<Vec<bool>> = phex::graph::closure::Logic::hard(&graph)
            .legal_states()
            .map(|on| (0..7).map(|label| on.contains(&LabelId(label))).collect())
            .collect();
        for bits in 0..1u32 << 7 {
            let state: Vec<bool> = (0..7).map(|label| bits >> label & 1 == 1).collect();
            let possible = model.log_weight(&[0.0; 7], &state) > f64::NEG_INFINITY;
            assert_eq!(possible, legal.contains(&state), "seed {seed}: {state:?} {graph:?}");
        }
    }
    assert!(models > 200, "{models}");
}

#[test]
fn caps_are_certified() {
    let mut capped = 0;
    for seed in 0..200u64 {
        let mut builder = GraphBuilder::new();
        for label in 0..10 {
            builder.hierarchy("root", &format!("l{label}"), Some(Strength::U(0.6)));
        }
        builder.exclusion_rule(
            phex::graph::ExclusionRule::Siblings,
            Some(Strength::U(0.05 + 0.05 * (seed % 10) as f64)),
        );
        builder.semantics(if seed % 2 == 0 { Semantics::Sparse } else { Semantics::Dense });
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let exact = compile(&model, Method::Brute).unwrap();
        let method = if seed % 2 == 0 { Method::Family } else { Method::Count };
        let options = Options { method, cap: Some(1 + (seed % 5) as usize), ..Options::default() };
        let engine = Engine::compile(model, &options).unwrap();
        let mut random = Random(seed + 17);
        let scores: Vec<f64> = (0..11 * 5).map(|_| random.normal()).collect();
        let block = Block::new(11, &scores);
        let (got, exact) = (
            engine.run(&block, Want::default()).unwrap(),
            exact.run(&block, Want::default()).unwrap(),
        );
        for row in 0..5 {
            let bound = match got.trust[row] {
                phex::infer::Trust::Exact => 0.0,
                phex::infer::Trust::Certified(bound) => bound,
                phex::infer::Trust::Approximate(_) => 1.0,
            };
            capped += usize::from(bound > 0.0);
            for (g, e) in got.row(row).iter().zip(exact.row(row)) {
                assert!((g - e).abs() <= bound + 1e-9, "{method} {seed}: {g} {e} {bound}");
            }
        }
    }
    assert!(capped > 500, "{capped} rows were capped");
}
