//! Times `paths` beside `states` and `family` on the 1860 labels of ILSVRC2012.
//!
//! `paths_speed EDGES.tsv [WORDS]`: a table of parents and children with a header; only cases that
//! contain all the words run. Prints, for each graph, engine and batch, the microseconds per row
//! (the best and the median of several runs; on one thread unless `RAYON_NUM_THREADS` is set) and the largest difference of a marginal from `junction` or `states` in doubles.

use std::time::Instant;

use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::{Block, Engine, Method, Number, Options, Want};
use phex::model::Model;

type Failure = Box<dyn std::error::Error>;

fn model(edges: &str, tree: bool, leaves: bool) -> Result<Model, Failure> {
    let mut builder = GraphBuilder::new();
    let mut seen = std::collections::HashSet::new();
    for (parent, child) in phex::testkit::edges_of(edges) {
        // A tree keeps the first parent of each label.
        if seen.insert(child.clone()) || !tree {
            builder.hierarchy(&parent, &child, Some(Strength::Hard));
        }
    }
    builder.exclusion_rule(ExclusionRule::NoCommonDescendant, Some(Strength::Hard));
    if leaves {
        builder.one_of_leaves("leaves");
    }
    Ok(Model::new(&builder.build()?)?)
}

fn scores(count: usize) -> Vec<f64> {
    let mut random = phex::testkit::Random::new(1);
    (0..count).map(|_| random.next() * 6.0 - 4.0).collect()
}

/// Microseconds per row: the best and the median.
fn time(rows: usize, mut work: impl FnMut()) -> (f64, f64) {
    // A run takes at least a millisecond, so that the clock does not matter.
    let repeats = (1000 / rows).max(1);
    let mut run = || {
        let start = Instant::now();
        (0..repeats).for_each(|_| work());
        start.elapsed().as_secs_f64() * 1e6 / (rows * repeats) as f64
    };
    run();
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 20 || begin.elapsed().as_secs_f64() < 1.5 {
        times.push(run());
    }
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

fn measure<T: Number>(
    case: &str,
    number: &str,
    engine: &Engine,
    exact: &[f64],
    convert: impl Fn(f64) -> T,
) -> Result<(), Failure> {
    let n = engine.model().len();
    for batch in [1, 7, 64, 4096] {
        let data: Vec<T> = scores(batch * n).into_iter().map(&convert).collect();
        let block = Block::new(n, &data);
        let found = engine.run(&block, Want::default())?;
        let pairs = found.marginals.iter().zip(exact);
        let error = pairs.map(|(p, e)| (p.to_f64() - e).abs()).fold(0.0, f64::max);
        let (best, median) = time(batch, || drop(engine.run(&block, Want::default())));
        let method = engine.plan().method;
        println!(
            "| {case} | {method} | {number} | {batch} | {best:.2} | {median:.2} | {error:.1e} |"
        );
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let path = std::env::args().nth(1).ok_or("paths_speed EDGES.tsv [WORDS]")?;
    let words: Vec<String> = std::env::args().skip(2).collect();
    let threads = std::env::var("RAYON_NUM_THREADS").map_or(Ok(1), |threads| threads.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let edges = std::fs::read_to_string(path)?;
    println!("| graph | engine | number | batch | µs per row, best | median | error |");
    println!("|---|---|---|---:|---:|---:|---:|");
    for (case, tree, leaves) in [
        ("tree", true, false),
        ("tree, one leaf", true, true),
        ("DAG", false, false),
        ("DAG, one leaf", false, true),
    ] {
        let model = model(&edges, tree, leaves)?;
        let n = model.len();
        let compile =
            |method| Engine::compile(model.clone(), &Options { method, ..Options::default() });
        let data = scores(4 * n);
        let exact = compile(Method::Junction)?.run(&Block::new(n, &data), Want::default())?;
        for method in [Method::Paths, Method::States, Method::Family] {
            let chosen = format!("{case}, {method}");
            if !words.iter().all(|word| chosen.contains(word.as_str())) {
                continue;
            }
            let Ok(engine) = compile(method) else { continue };
            measure(case, "f32", &engine, &exact.marginals, |x| x as f32)?;
            measure(case, "f64", &engine, &exact.marginals, |x| x)?;
        }
    }
    Ok(())
}
