//! Every engine on the device gives the answers of the CPU engine: on all random graph families of the testkit, hard and
//! soft, with and without evidence, in both number types, with any batch size.

use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::{
    Block, Engine, Evidence, GroupForm, MessageOrder, Method, Options, Posterior, RowStatus, Trust,
    Want,
};
use phex::model::Model;
use phex::testkit::{HierarchyShape, Random, RandomGraph, RandomStrengths};
use phex_cuda::{
    BlockRows, CudaEngine, Device, DeviceCall, DeviceMemory, DeviceNumber, DeviceRows, Error,
    Precision, Workspace,
};

use crate::devices::device;

/// How far marginals may be off: single, double.
const MARGINALS: [f64; 2] = [2e-5, 1e-9];
/// How far log Z may be off, in proportion to 1 + |log Z|.
const LOG_PARTITION: [f64; 2] = [2e-5, 1e-10];

struct ScoredRows {
    scores: Vec<f64>,
    evidence: Vec<Evidence>,
}

impl ScoredRows {
    fn new(labels: usize, rows: usize, spread: f64, seed: u64) -> ScoredRows {
        let mut random = Random::new(seed);
        let scores = random.normals(labels * rows).iter().map(|score| spread * score).collect();
        let entry = |x: f64| match x {
            _ if x < 0.1 => Evidence::On,
            _ if x < 0.25 => Evidence::Off,
            _ => Evidence::Unknown,
        };
        let evidence = (0..labels * rows).map(|_| entry(random.next())).collect();
        ScoredRows { scores, evidence }
    }
}

fn compare<T: DeviceNumber>(
    device: &Device,
    engine: &Engine,
    rows: &ScoredRows,
    (marginals, log_partition): (f64, f64),
    block_rows: BlockRows,
    context: &str,
) -> bool {
    let gpu = match CudaEngine::with_block_rows(device, engine, block_rows) {
        Ok(gpu) => gpu,
        Err(Error::Unsupported { .. }) => return false,
        Err(error) => panic!("{context}: {error}"),
    };
    let labels = engine.model().len();
    let scores: Vec<T> = rows.scores.iter().map(|&score| T::from_f64(score)).collect();
    // The CPU answers the same scores in doubles.
    let wide: Vec<f64> = scores.iter().map(|score| score.to_f64()).collect();
    for evidence in [false, true] {
        let block = Block::new(labels, &scores);
        let truth = Block::new(labels, &wide);
        let (block, truth) = match evidence {
            true => (block.with_evidence(&rows.evidence), truth.with_evidence(&rows.evidence)),
            false => (block, truth),
        };
        let ours: Posterior<T> = gpu.run(&block).expect("rows of the model");
        let theirs = engine.run(&truth, Want::default()).expect("rows of the model");
        for row in 0..block.rows() {
            let context = format!("{context}, evidence {evidence}, row {row}");
            assert_eq!(ours.status[row], theirs.status[row], "{context}");
            if ours.status[row] != RowStatus::Answered {
                continue;
            }
            for (label, (a, b)) in ours.row(row).iter().zip(theirs.row(row)).enumerate() {
                let (a, b) = (a.to_f64(), *b);
                assert!((a - b).abs() <= marginals, "{context}, label {label}: {a} for {b}");
            }
            let (a, b) = (ours.log_partition[row], theirs.log_partition[row]);
            assert!(
                (a - b).abs() <= log_partition * (1.0 + b.abs()),
                "{context}: log Z {a} for {b}"
            );
            if let (Trust::Approximate(a), Trust::Approximate(b)) =
                (&ours.trust[row], &theirs.trust[row])
                && a.iterations == b.iterations
            {
                let (a, b) = (a.residual, b.residual);
                assert!((a - b).abs() <= marginals.max(1e-5), "{context}: residual {a} for {b}");
            }
        }
    }
    true
}

fn both_types(
    device: &Device,
    engine: &Engine,
    rows: &ScoredRows,
    loose: f64,
    context: &str,
) -> bool {
    both_types_in(device, engine, rows, loose, BlockRows::Auto, context)
}

fn both_types_in(
    device: &Device,
    engine: &Engine,
    rows: &ScoredRows,
    loose: f64,
    blocks: BlockRows,
    context: &str,
) -> bool {
    let tolerance = |at: usize| (loose * MARGINALS[at], loose * LOG_PARTITION[at]);
    compare::<f64>(device, engine, rows, tolerance(1), blocks, &format!("{context} f64"))
        && compare::<f32>(device, engine, rows, tolerance(0), blocks, &format!("{context} f32"))
}

fn engine(model: &Model, options: &Options) -> Option<Engine> {
    Engine::compile(model.clone(), options).ok()
}

/// Messages that are all sent at once.
fn flooding() -> Options {
    let mut options = Options { method: Method::Lbp, ..Options::default() };
    options.messages.schedule = MessageOrder::Flooding;
    options
}

fn graphs() -> impl Iterator<Item = (RandomGraph, u64)> {
    let any = (0..60).map(|seed| (RandomGraph::any(4 + seed as usize % 9, seed), seed));
    let trees = (0..40u64).map(|seed| {
        let strengths = [RandomStrengths::Hard, RandomStrengths::Soft, RandomStrengths::Mixed]
            [seed as usize % 3];
        let rule = Some(phex::graph::ExclusionRule::Siblings);
        let one_of = seed as usize % 4;
        let base = RandomGraph::new(5 + seed as usize, 1000 + seed);
        (RandomGraph { shape: HierarchyShape::Tree, strengths, rule, one_of, ..base }, 1000 + seed)
    });
    any.chain(trees)
}

#[test]
fn exact_engines_agree() {
    let Some(device) = device() else { return };
    let mut compared = [0; 2];
    for (graph, seed) in graphs() {
        let Ok(model) = Model::new(&graph.draw()) else { continue };
        let rows = ScoredRows::new(model.len(), 37, 2.0, seed);
        for (at, method) in [Method::Family, Method::States].into_iter().enumerate() {
            // Larger trees have millions of states, which take the CPU minutes.
            if method == Method::States && model.len() > 20 {
                continue;
            }
            let Some(engine) = engine(&model, &Options { method, ..Options::default() }) else {
                continue;
            };
            let context = format!("{method} on {graph:?}");
            compared[at] += usize::from(both_types(&device, &engine, &rows, 1.0, &context));
            // Few rows have blocks of two. The other forms take turns.
            if method == Method::Family && seed % 3 == 0 {
                let blocks = [BlockRows::Global, BlockRows::Fixed(8)][seed as usize % 2];
                let context = format!("{context}, {blocks:?}");
                both_types_in(&device, &engine, &rows, 1.0, blocks, &context);
            }
        }
    }
    println!("compared: family {}, states {}", compared[0], compared[1]);
    assert!(compared[0] > 30 && compared[1] > 10, "{compared:?}");
}

#[test]
fn messages_agree() {
    let Some(device) = device() else { return };
    let mut compared = 0;
    for (graph, seed) in graphs() {
        let Ok(model) = Model::new(&graph.draw()) else { continue };
        let rows = ScoredRows::new(model.len(), 9, 1.5, seed);
        for (groups, damping, tolerance) in [
            (GroupForm::Pairs, 0.0, 0.0),
            (GroupForm::Cardinality, 0.3, 0.0),
            (GroupForm::Pairs, 0.3, 1e-6),
        ] {
            let mut options = flooding();
            options.messages.groups = groups;
            options.messages.damping = damping;
            options.messages.tolerance = tolerance;
            // Undamped messages may oscillate, and rounding with them.
            options.messages.iterations = if tolerance > 0.0 { 200 } else { 12 };
            let Some(engine) = engine(&model, &options) else { continue };
            let context = format!("lbp {groups:?} damped {damping} on {graph:?}");
            compared += usize::from(both_types(&device, &engine, &rows, 50.0, &context));
        }
    }
    println!("compared: lbp {compared}");
    assert!(compared > 100, "{compared}");
}

/// Labels that no pair joins: alone, or in a one-of group.
#[test]
fn messages_without_pairs_agree() {
    let Some(device) = device() else { return };
    for (alone, group) in [(5, 0), (0, 6), (3, 4)] {
        let mut builder = GraphBuilder::new();
        for label in 0..alone {
            builder.label(&format!("a{label}"));
        }
        let names: Vec<String> = (0..group).map(|label| format!("g{label}")).collect();
        if group > 0 {
            builder.one_of("group", names.iter().map(String::as_str), None);
        }
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let rows = ScoredRows::new(model.len(), 5, 2.0, 3);
        for damping in [0.0, 0.3] {
            let mut options = flooding();
            options.messages.damping = damping;
            let Some(engine) = engine(&model, &options) else { panic!("{alone}, {group}") };
            let context = format!("{alone} alone, {group} in a group, damped {damping}");
            assert!(both_types(&device, &engine, &rows, 50.0, &context));
        }
    }
}

/// Pairs of few strengths, undamped: a node answers messages in place, for any number of iterations. There are enough rows
/// that blocks have four.
#[test]
fn messages_of_few_strengths_agree() {
    let Some(device) = device() else { return };
    for strengths in [&[0.5][..], &[0.2, 0.7], &[0.1, 0.2, 0.3, 0.4, 0.5]] {
        let mut builder = GraphBuilder::new();
        builder.label("alone");
        let (mut next, mut relation) = (1, 0);
        for parent in 0..12 {
            for child in next..next + 1 + parent * 5 % 13 {
                let u = strengths[relation % strengths.len()];
                builder.hierarchy(
                    &format!("l{parent}"),
                    &format!("l{child}"),
                    Some(Strength::U(u)),
                );
                relation += 1;
            }
            next += 1 + parent * 5 % 13;
        }
        builder.exclusion_rule(ExclusionRule::Siblings, Some(Strength::U(strengths[0])));
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let rows = ScoredRows::new(model.len(), 300, 2.0, 5);
        for (iterations, tolerance) in
            [(1, 0.0), (4, 0.0), (5, 0.0), (6, 0.0), (13, 0.0), (40, 1e-6), (15, 1e-6)]
        {
            let mut options = flooding();
            options.messages.groups = GroupForm::Pairs;
            options.messages.damping = 0.0;
            options.messages.tolerance = tolerance;
            options.messages.iterations = iterations;
            let Some(engine) = engine(&model, &options) else { panic!("{strengths:?}") };
            let context = format!("{strengths:?}, {iterations} iterations, tolerance {tolerance}");
            assert!(both_types(&device, &engine, &rows, 50.0, &context));
        }
    }
}

/// Families of all sizes that are counted in different ways, weak, strong and hard.
#[test]
fn messages_of_counted_families_agree() {
    let Some(device) = device() else { return };
    for strength in [Some(Strength::U(0.2)), Some(Strength::U(1.5)), None] {
        let mut builder = GraphBuilder::new();
        for size in [3, 4, 7, 8, 15, 16, 31, 32, 45] {
            for child in 0..size {
                let (parent, child) = (format!("f{size}"), format!("f{size}c{child}"));
                builder.hierarchy(&parent, &child, Some(Strength::U(0.5)));
            }
        }
        builder.exclusion_rule(ExclusionRule::Siblings, strength);
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let rows = ScoredRows::new(model.len(), 6, 2.0, 7);
        // Large families oscillate, and rounding with them: few iterations.
        for (damping, iterations) in [(0.0, 2), (0.3, 4)] {
            let mut options = flooding();
            options.messages.groups = GroupForm::Cardinality;
            options.messages.damping = damping;
            options.messages.tolerance = 0.0;
            options.messages.iterations = iterations;
            let Some(engine) = engine(&model, &options) else { panic!("{strength:?}") };
            let context = format!("counted families, {strength:?}, damped {damping}");
            // Removing a likely member from a count leaves few digits of unlikely counts, here as on the CPU.
            let auto = BlockRows::Auto;
            assert!(compare::<f64>(&device, &engine, &rows, (5e-8, 5e-8), auto, &context));
            assert!(compare::<f32>(&device, &engine, &rows, (1e-3, 1e-3), auto, &context));
        }
    }
}

#[test]
fn forest_bp_agrees() {
    let Some(device) = device() else { return };
    let mut compared = 0;
    for (graph, seed) in graphs().step_by(2) {
        let Ok(model) = Model::new(&graph.draw()) else { continue };
        let rows = ScoredRows::new(model.len(), 9, 1.5, seed);
        for (damping, tolerance, iterations) in [(0.0, 0.0, 7), (0.3, 1e-6, 60)] {
            let mut options = Options { method: Method::ForestBp, ..Options::default() };
            options.messages.damping = damping;
            options.messages.tolerance = tolerance;
            options.messages.iterations = iterations;
            options.sampling.check = 0;
            let Some(engine) = engine(&model, &options) else { continue };
            let context = format!("forest-bp damped {damping} on {graph:?}");
            compared += usize::from(both_types(&device, &engine, &rows, 50.0, &context));
        }
    }
    println!("compared: forest-bp {compared}");
    assert!(compared > 20, "{compared}");
}

#[test]
fn batch_size_makes_no_difference() {
    let Some(device) = device() else { return };
    let graph =
        RandomGraph { strengths: RandomStrengths::Soft, one_of: 1, ..RandomGraph::new(40, 7) };
    let model = Model::new(&graph.draw()).unwrap();
    let rows = ScoredRows::new(40, 700, 2.0, 3);
    let scores: Vec<f32> = rows.scores.iter().map(|&score| score as f32).collect();
    for (method, blocks) in [
        (Method::Family, BlockRows::Global),
        (Method::Family, BlockRows::Auto),
        (Method::Lbp, BlockRows::Auto),
    ] {
        let mut options = Options { method, ..Options::default() };
        options.messages.schedule = MessageOrder::Flooding;
        let Some(engine) = engine(&model, &options) else { panic!("{method}") };
        let gpu = CudaEngine::with_block_rows(&device, &engine, blocks).unwrap();
        let all = gpu.run(&Block::new(40, &scores)).unwrap();
        for size in [1, 7, 300] {
            let part = gpu.run(&Block::new(40, &scores[..40 * size])).unwrap();
            assert_eq!(part.marginals[..], all.marginals[..40 * size], "{method}, {size} rows");
        }
    }
}

/// The device answers ordinary rows itself. Rows that it cannot answer would go to the CPU: right, but slow.
#[test]
fn ordinary_rows_stay_on_the_device() {
    let Some(device) = device() else { return };
    for one_of in [0, 1] {
        let strengths = RandomStrengths::Soft;
        let graph = RandomGraph { strengths, one_of, ..RandomGraph::new(60, 21) };
        let model = Model::new(&graph.draw()).unwrap();
        let options = Options { method: Method::Family, ..Options::default() };
        let engine = engine(&model, &options).unwrap();
        let scores: Vec<f32> =
            ScoredRows::new(60, 50, 2.0, 4).scores.iter().map(|&score| score as f32).collect();
        for blocks in [BlockRows::Global, BlockRows::Auto] {
            let gpu = CudaEngine::with_block_rows(&device, &engine, blocks).unwrap();
            let [scores, marginals] = [0, 1].map(|_| DeviceMemory::of(&device, &scores).unwrap());
            let workspace =
                DeviceMemory::new(&device, gpu.infer_bytes(50, Precision::Single)).unwrap();
            let [log_partition, status] =
                [8, 4].map(|bytes| DeviceMemory::new(&device, 50 * bytes).unwrap());
            let rows = DeviceRows {
                scores: scores.address(),
                evidence: 0,
                marginals: marginals.address(),
                log_partition: log_partition.address(),
                status: status.address(),
                rows: 50,
            };
            let (address, bytes) = (workspace.address(), workspace.bytes());
            let call = DeviceCall {
                precision: Precision::Single,
                workspace: Workspace { address, bytes },
                stream: device.stream(),
            };
            // SAFETY: the memory has the sizes of the rows, and the read below waits.
            unsafe { gpu.infer(rows, call).unwrap() };
            let mut found = vec![-1i32; 50];
            status.read(device.stream(), &mut found).unwrap();
            assert_eq!(found, vec![0; 50], "one-of {one_of}, {blocks:?}");
        }
    }
}

#[test]
fn extreme_rows_are_answered_all_the_same() {
    let Some(device) = device() else { return };
    let graph =
        RandomGraph { strengths: RandomStrengths::Mixed, one_of: 1, ..RandomGraph::new(12, 11) };
    let model = Model::new(&graph.draw()).unwrap();
    let options = Options { method: Method::Family, ..Options::default() };
    let engine = engine(&model, &options).unwrap();
    for spread in [60.0, 300.0, 2000.0] {
        let rows = ScoredRows::new(12, 50, spread, 5);
        for blocks in [BlockRows::Global, BlockRows::Fixed(2)] {
            let context = format!("scores of ±{spread}, {blocks:?}");
            assert!(both_types_in(&device, &engine, &rows, 10.0, blocks, &context));
        }
    }
    let gpu = CudaEngine::new(&device, &engine).unwrap();
    let mut scores = vec![0.5f32; 36];
    (scores[13], scores[30]) = (f32::NAN, f32::INFINITY);
    let posterior = gpu.run(&Block::new(12, &scores)).unwrap();
    assert_eq!(posterior.status[0], RowStatus::Answered);
    assert_eq!(posterior.status[1], RowStatus::BadScore { label: 1 });
    assert_eq!(posterior.status[2], RowStatus::BadScore { label: 6 });
    assert!(
        posterior.row(1).iter().all(|p| p.is_nan()) && posterior.row(0).iter().all(|p| *p >= 0.0)
    );
}

/// Families of all sizes up to those that do not fit shared memory, so that blocks of few rows have rounds of every kind.
#[test]
fn narrow_blocks_take_families_of_any_size() {
    let Some(device) = device() else { return };
    for one_of in [false, true] {
        let mut builder = GraphBuilder::new();
        for family in 0..14usize {
            let parent = format!("f{family}");
            builder.hierarchy("root", &parent, Some(Strength::U(0.5)));
            for child in 0..[1, 2, 3, 5, 6, 7, 8, 9, 12, 17, 24, 30, 41, 60][family] {
                let child_name = format!("{parent}c{child}");
                builder.hierarchy(&parent, &child_name, Some(Strength::U(0.5)));
                // Leaves of the group are folded; children with a child are not.
                if child % 5 < 4 {
                    builder.hierarchy(
                        &child_name,
                        &format!("{child_name}g"),
                        Some(Strength::U(0.5)),
                    );
                }
            }
        }
        builder.exclusion_rule(ExclusionRule::Siblings, Some(Strength::U(0.3)));
        if one_of {
            builder.one_of_leaves("leaves");
        }
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let rows = ScoredRows::new(model.len(), 21, 2.0, 17);
        let options = Options { method: Method::Family, ..Options::default() };
        let engine = engine(&model, &options).unwrap();
        for blocks in
            [BlockRows::Global, BlockRows::Fixed(2), BlockRows::Fixed(8), BlockRows::Fixed(32)]
        {
            let context = format!("one-of {one_of}, {blocks:?}");
            assert!(both_types_in(&device, &engine, &rows, 1.0, blocks, &context));
        }
    }
}

/// Leaves of a one-of group, alone below their parents and beside other children, with evidence: one is on, none can be off,
/// some are off, a parent is off.
#[test]
fn leaves_of_a_group_take_evidence() {
    let Some(device) = device() else { return };
    // Scores of the larger spread make evidence improbable, near the limits of single precision.
    let cases = [Some(Strength::U(0.4)), None].map(|strength| [(strength, 2.0), (strength, 25.0)]);
    for (seed, (strength, spread)) in cases.into_iter().flatten().enumerate() {
        let mut builder = GraphBuilder::new();
        for (parent, child) in [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 6), (3, 7), (3, 8)] {
            builder.hierarchy(&format!("n{parent}"), &format!("n{child}"), strength);
        }
        for (parent, leaves) in [(0, 1), (1, 3), (4, 4), (5, 1), (6, 2), (7, 1), (8, 7)] {
            for leaf in 0..leaves {
                builder.hierarchy(&format!("n{parent}"), &format!("n{parent}l{leaf}"), strength);
            }
        }
        builder.exclusion_rule(ExclusionRule::Siblings, strength);
        builder.one_of_leaves("leaves");
        let model = Model::new(&builder.build().unwrap()).unwrap();
        // More rows than all blocks of a large GPU take at once: what one row leaves behind must not reach the next.
        let mut rows = ScoredRows::new(model.len(), 1200, spread, seed as u64);
        let mut random = Random::new(9);
        for (row, evidence) in rows.evidence.chunks_mut(model.len()).enumerate() {
            evidence.fill(Evidence::Unknown);
            let mut any =
                |from: usize| from + (random.next() * (model.len() - from) as f64) as usize;
            evidence[any(0)] = [Evidence::On, Evidence::Off][row % 2];
            evidence[any(9)] = if row % 3 == 0 { Evidence::On } else { Evidence::Off };
            evidence[any(9)] = if row % 9 == 0 { Evidence::On } else { Evidence::Off };
        }
        let options = Options { method: Method::Family, ..Options::default() };
        let engine = engine(&model, &options).unwrap();
        for blocks in [BlockRows::Global, BlockRows::Fixed(4), BlockRows::Fixed(8)] {
            let context = format!("{strength:?}, spread {spread}, {blocks:?}");
            assert!(both_types_in(&device, &engine, &rows, 1.0, blocks, &context));
        }
    }
}

/// Classes with attributes: few kinds of cells and many, hard and soft, and more cells than shared memory holds.
#[test]
fn star_agrees() {
    let Some(device) = device() else { return };
    for (seed, classes, attributes, kinds) in
        [(1, 5, 7, 1.0), (2, 40, 33, 3.0), (3, 20, 50, 1000.0), (4, 7, 9000, 2.0)]
    {
        let mut random = Random::new(seed);
        let mut builder = GraphBuilder::new();
        let names: Vec<String> = (0..classes).map(|class| format!("c{class}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for attribute in 0..attributes {
            let attribute = format!("a{attribute}");
            builder.label(&attribute);
            for class in &names {
                let kind = (random.next() * kinds).floor() / kinds;
                let soft = random.next() >= 0.1;
                let strength = soft.then_some(Strength::U(0.1 + 0.8 * kind));
                match random.next() {
                    x if x < 0.3 => {
                        builder.hierarchy(&attribute, class, strength);
                    }
                    x if x < 0.6 => {
                        builder.exclusion(class, &attribute, strength);
                    }
                    _ => {}
                }
            }
        }
        builder.one_of("class", names.iter().copied(), None);
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let mut rows = ScoredRows::new(model.len(), 7, 2.0, seed);
        // Most rows are possible: only some classes have evidence.
        let evidence = rows.evidence.iter_mut().enumerate();
        evidence
            .filter(|(at, _)| at % 3 > 0 || attributes > 100)
            .for_each(|(_, entry)| *entry = Evidence::Unknown);
        rows.evidence[0] = Evidence::Off;
        let options = Options { method: Method::Star, ..Options::default() };
        let engine = engine(&model, &options).unwrap();
        let context = format!("star of {classes} x {attributes}");
        assert!(both_types(&device, &engine, &rows, 1.0, &context));
    }
}
