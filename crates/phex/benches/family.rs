//! Microseconds a row of the `family` kernel, on the ImageNet tree where its data is found.
//!
//! The tree is the first parent of each label; siblings exclude each other. The data directory is
//! `$PHEX_DATA`, or `shared/data` beside the repository; without it a random tree of that size.
//! `$PHEX_ROWS` is the size of a block.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::{Block, Scalar};
use phex::model::Model;
use phex::testkit::FamilyKernel;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// `(parent, child)` by name, one parent a child.
fn edges() -> (String, Vec<(String, String)>) {
    let data = std::env::var_os("PHEX_DATA").map_or("../../../shared/data".into(), PathBuf::from);
    let path = data.join("imagenet").join("ilsvrc2012_hierarchy_edges.tsv");
    if let Ok(text) = std::fs::read_to_string(path) {
        let mut parent = HashMap::new();
        let mut edges = Vec::new();
        for line in text.lines().skip(1) {
            let Some((above, below)) = line.split_once('\t') else { continue };
            if parent.insert(below.to_owned(), above.to_owned()).is_none() {
                edges.push((above.to_owned(), below.to_owned()));
            }
        }
        return ("the ImageNet tree".to_owned(), edges);
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let parent = |child: usize, random: &mut Xoshiro256PlusPlus| match child {
        1..860 => random.random_range(child.saturating_sub(40)..child),
        _ => random.random_range(0..860),
    };
    let edge = |child| (format!("l{}", parent(child, &mut random)), format!("l{child}"));
    ("a random tree".to_owned(), (1..1860).map(edge).collect())
}

fn model(edges: &[(String, String)], strength: f64, leaves_one_of: bool) -> Model {
    let mut builder = GraphBuilder::new();
    for (parent, child) in edges {
        builder.hierarchy(parent, child, Some(Strength::U(strength)));
    }
    builder.exclusion_rule(ExclusionRule::Siblings, Some(Strength::U(strength)));
    if leaves_one_of {
        let parents: std::collections::HashSet<&str> =
            edges.iter().map(|edge| edge.0.as_str()).collect();
        let leaves: Vec<&str> = edges.iter().map(|edge| edge.1.as_str()).collect();
        let leaves = leaves.into_iter().filter(|leaf| !parents.contains(leaf));
        builder.one_of("class", leaves, None);
    }
    let graph = builder.build().expect("a graph");
    Model::new(&graph).expect("a model")
}

fn time<T: Scalar>(name: &str, model: &Model, rows: usize) {
    let n = model.len();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let scores: Vec<T> =
        (0..rows * n).map(|_| T::from_f64(random.random_range(-6.0..6.0))).collect();
    let mut marginals = vec![T::ZERO; rows * n];
    let mut log_partition = vec![0.0; rows];
    let kernel = FamilyKernel::new(model, None).expect("a forest");
    let block = Block::new(n, &scores);
    let mut times: Vec<f64> = (0..36_864 / rows)
        .map(|_| {
            let start = Instant::now();
            kernel.run(&block, &mut marginals, &mut log_partition);
            start.elapsed().as_secs_f64() * 1e6 / rows as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let mean = log_partition.iter().sum::<f64>() / rows as f64;
    println!(
        "{name:32} best {:7.2}  median {:7.2} µs a row   (mean log Z {mean:.6})",
        times[0],
        times[times.len() / 2]
    );
}

fn main() {
    let (name, edges) = edges();
    let rows = std::env::var("PHEX_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(4096);
    println!("{name}, {} edges, blocks of {rows} rows", edges.len());
    for strength in [0.5, f64::INFINITY] {
        for one_of in [false, true] {
            let model = model(&edges, strength, one_of);
            let what = |kind: &str| {
                format!("u = {strength}, {kind}{}", if one_of { ", one-of" } else { "" })
            };
            time::<f32>(&what("f32"), &model, rows);
            time::<f64>(&what("f64"), &model, rows);
        }
    }
}
