//! Times the planner: `plan_speed EDGES.tsv ... [--random LABELS]`.
//!
//! Each file is a table of parents and children with a header. `--random` adds a tree and a DAG
//! (one label in 25 has a second parent) of that many labels. For every graph, exclusion rule and
//! set of strengths, it prints the seconds of CPU to build the model and to choose the engine.

use std::time::Instant;

use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::{Engine, Options};
use phex::model::Model;
use phex::testkit::Random;

type Failure = Box<dyn std::error::Error>;

struct EdgeList {
    name: String,
    edges: Vec<(String, String)>,
}

fn random_edges(labels: usize, is_tree: bool) -> EdgeList {
    let mut random = Random::new(7);
    let mut edges = Vec::new();
    for label in 1..labels {
        let parents = if is_tree || random.below(25) > 0 { 1 } else { 2 };
        for _ in 0..parents {
            // Small numbers are parents more often, as near the top of a taxonomy.
            let highest = 1 + random.below(label);
            let parent = random.below(highest);
            edges.push((format!("l{parent}"), format!("l{label}")));
        }
    }
    edges.sort();
    edges.dedup();
    EdgeList { name: format!("random {} of {labels}", if is_tree { "tree" } else { "DAG" }), edges }
}

fn model(
    list: &EdgeList,
    rule: Option<ExclusionRule>,
    [hierarchy, exclusion]: [Strength; 2],
    one_leaf: bool,
) -> Result<Model, Failure> {
    let mut builder = GraphBuilder::new();
    for (parent, child) in &list.edges {
        builder.hierarchy(parent, child, Some(hierarchy));
    }
    if let Some(rule) = rule {
        builder.exclusion_rule(rule, Some(exclusion));
    }
    if one_leaf {
        builder.one_of_leaves("leaves");
    }
    Ok(Model::new(&builder.build()?)?)
}

fn main() -> Result<(), Failure> {
    let mut lists = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--random" {
            let labels = arguments.next().ok_or("--random LABELS")?.parse()?;
            lists.extend([true, false].map(|is_tree| random_edges(labels, is_tree)));
            continue;
        }
        let text = std::fs::read_to_string(&argument)?;
        lists.push(EdgeList { name: argument, edges: phex::testkit::edges_of(&text) });
    }
    println!(
        "| graph | rule | hierarchy, exclusion | one leaf | model s | plan s | engine | why |"
    );
    println!("|---|---|---|---|---:|---:|---|---|");
    let soft = Strength::W(2.0);
    for list in &lists {
        for rule in [None, Some(ExclusionRule::Siblings), Some(ExclusionRule::NoCommonDescendant)] {
            for strengths in [[Strength::Hard; 2], [soft, Strength::Hard], [soft; 2]] {
                for one_leaf in [false, true] {
                    let start = Instant::now();
                    let model = model(list, rule, strengths, one_leaf)?;
                    let built = start.elapsed().as_secs_f64();
                    let start = Instant::now();
                    let engine = Engine::compile(model, &Options::default());
                    let chosen = start.elapsed().as_secs_f64();
                    let (engine, why) = match &engine {
                        Ok(engine) => (engine.plan().method.name(), engine.plan().why.clone()),
                        Err(error) => ("none", error.to_string()),
                    };
                    let name = list.name.rsplit('/').next().unwrap_or_default();
                    println!(
                        "| {name} | {} | {}, {} | {one_leaf} | {built:.2} | {chosen:.2} | {engine} | {why} |",
                        rule.map_or("none".to_owned(), |rule| format!("{rule:?}")),
                        strengths[0],
                        strengths[1],
                    );
                }
            }
        }
    }
    Ok(())
}
