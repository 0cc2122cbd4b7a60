//! The `junction` engine on variants of the ImageNet graph: compile seconds, legal states, largest
//! bag, width, and milliseconds a row (f32, one thread).
//!
//! The graph is `imagenet/ilsvrc2012_hierarchy_edges.tsv` under `PHEX_DATA`, or under `shared/data`
//! next to the workspace. An argument keeps the variants whose name contains it.

use std::path::PathBuf;
use std::time::Instant;

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Strength};
use phex::infer::{Block, Budget};
use phex::model::Model;
use phex::testkit::JunctionProbe;

const U: Strength = Strength::U(0.5);
const VARIANTS: [(&str, Strength, ExclusionRule, Strength); 5] = [
    ("all hard", Strength::Hard, ExclusionRule::NoCommonDescendant, Strength::Hard),
    ("soft hierarchy, hard exclusion", U, ExclusionRule::NoCommonDescendant, Strength::Hard),
    ("soft, siblings only", U, ExclusionRule::Siblings, U),
    ("hard hierarchy, soft exclusion", Strength::Hard, ExclusionRule::NoCommonDescendant, U),
    ("all soft", U, ExclusionRule::NoCommonDescendant, U),
];

fn edges() -> Option<String> {
    let data = std::env::var_os("PHEX_DATA").map(PathBuf::from);
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = data.unwrap_or_else(beside).join("imagenet/ilsvrc2012_hierarchy_edges.tsv");
    std::fs::read_to_string(path).ok()
}

fn graph(
    edges: &str,
    hierarchy: Strength,
    rule: ExclusionRule,
    exclusion: Strength,
    one_of: bool,
) -> RelationGraph {
    let mut builder = GraphBuilder::new();
    for line in edges.lines().skip(1) {
        let (parent, child) = line.split_once('\t').expect("two columns");
        builder.hierarchy(parent, child.trim(), Some(hierarchy));
    }
    builder.exclusion_rule(rule, Some(exclusion));
    if one_of {
        builder.one_of_leaves("leaves");
    }
    builder.build().expect("a graph")
}

fn main() {
    let Some(edges) = edges() else {
        println!("skipped: no ImageNet hierarchy under PHEX_DATA or shared/data");
        return;
    };
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    println!(
        "| variant | compile s | states | largest bag | width | ms/row, 16 | ms/row, 64 | ms, 1 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, hierarchy, rule, exclusion) in VARIANTS {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        for one_of in [false, true] {
            let model = Model::new(&graph(&edges, hierarchy, rule, exclusion, one_of));
            let model = model.expect("a model");
            let start = Instant::now();
            let budget = Budget { bytes: 6e9, ..Budget::default() };
            let probe = match JunctionProbe::compile(&model, &budget) {
                Ok(probe) => probe,
                Err(why) => {
                    println!("| {name}, one-of {one_of} | {why} |");
                    continue;
                }
            };
            let compile = start.elapsed().as_secs_f64();
            let (states, largest, width) = probe.size();
            let time = |rows: usize| {
                let n = model.len();
                let score = |at: usize| ((at as f32 * 0.754_877).fract() - 0.5) * 4.0;
                let scores: Vec<f32> = (0..rows * n).map(score).collect();
                let block = Block::new(n, &scores);
                let once = || {
                    let start = Instant::now();
                    assert!(probe.run(&block).0.iter().all(|value| value.is_finite()));
                    start.elapsed().as_secs_f64() * 1e3 / rows as f64
                };
                let first = once();
                let repeats = if first * (rows as f64) < 100.0 { 20 } else { 2 };
                (0..repeats).map(|_| once()).fold(first, f64::min)
            };
            println!(
                "| {name}{} | {compile:.2} | {states} | {largest} | {width} | {:.3} | {:.3} | {:.3} |",
                if one_of { ", one-of leaves" } else { "" },
                time(16),
                time(64),
                time(1),
            );
        }
    }
}
