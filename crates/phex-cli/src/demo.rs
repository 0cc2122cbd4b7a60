//! `phex demo`: the main job on built-in data.

use anyhow::Context as _;
use phex::graph::closure::Logic;
use phex::infer::{Block, Engine, Options, Want};
use phex::model::Model;
use phex_io::{Format, ReadOptions};

use crate::args::DemoCommand;
use crate::graph::outline;
use crate::{Outcome, output};

const ANIMALS: &str = include_str!("../../../examples/animals.toml");
const BROKEN: &str = include_str!("../../../examples/animals-broken.toml");

pub(crate) fn run(command: &DemoCommand) -> anyhow::Result<Outcome> {
    let folder = &command.out;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let read = |text: &str, name: &str| {
        phex_io::parse_graph(text.as_bytes(), name, Format::Toml, &ReadOptions::default())
    };

    heading("A graph of animals (examples/animals.toml)")?;
    let builder = read(ANIMALS, "animals.toml")?;
    let graph = builder.build()?;
    output::text(&outline(&graph, None))?;
    output::text(&builder.check().to_text(true))?;
    let logic = Logic::hard(&graph);
    let (count, all) = (logic.count_states()?, 2f64.powi(graph.len() as i32));
    output::text(&format!("{count} of {all} label sets are legal\n"))?;
    draw(&graph, &folder.join("animals.svg"))?;

    heading("Scores of a classifier, made consistent")?;
    infer(graph)?;

    heading("The same with mistakes (examples/animals-broken.toml)")?;
    let broken = read(BROKEN, "animals-broken.toml")?;
    output::text(&broken.check().to_text(true))?;
    // What can be drawn of it: the graph without the lines that make it unusable.
    let repaired = BROKEN.replace("wolff", "wolf").replace("q = 1.5", "q = 0.5");
    draw(&read(&repaired, "animals-broken.toml")?.build()?, &folder.join("animals-broken.svg"))?;
    Ok(Outcome::Fine)
}

/// What an undecided classifier says of one picture, before and after the relations.
fn infer(graph: phex::graph::RelationGraph) -> anyhow::Result<()> {
    let engine = Engine::compile(Model::new(&graph)?, &Options::default())?;
    let given = [
        ("dog", 2.4),
        ("cat", 1.8),
        ("husky", 1.0),
        ("mammal", 0.5),
        ("animal", -0.4),
        ("furry", 0.2),
        ("indoors", 0.9),
        ("outdoors", -0.3),
    ];
    let score = |name: &String| {
        let found = given.iter().find(|(label, _)| label == name);
        found.map_or(-2.0, |(_, score)| *score)
    };
    let scores: Vec<f64> = engine.model().names().iter().map(score).collect();
    let block = Block::new(scores.len(), &scores);
    let posterior = engine.run(&block, Want::default())?;
    let plan = engine.plan();
    output::text(&format!("engine {}: {}\n\n", plan.method, plan.why))?;
    output::text("label      score  alone  with relations\n")?;
    for ((name, score), p) in engine.model().names().iter().zip(&scores).zip(posterior.row(0)) {
        let alone = 1.0 / (1.0 + (-score).exp());
        output::text(&format!("{name:<10} {score:>5.1}  {alone:.3}  {p:.3}\n"))?;
    }
    output::text("\nmost probable label sets\n")?;
    for set in engine.best(&block, 0, 3)? {
        let labels = engine.model().names().iter().zip(&set.on).filter(|(_, on)| **on);
        let labels: Vec<&str> = labels.map(|(name, _)| name.as_str()).collect();
        let probability = (set.log_weight - posterior.log_partition[0]).exp();
        output::text(&format!("{probability:.3}  {}\n", labels.join(", ")))?;
    }
    Ok(())
}

fn heading(text: &str) -> anyhow::Result<()> {
    output::text(&format!("\n== {text}\n\n"))
}

fn draw(graph: &phex::graph::RelationGraph, path: &std::path::Path) -> anyhow::Result<()> {
    phex_io::write_graph(graph, path, Some(Format::Svg))?;
    output::text(&format!("drawn: {}\n", path.display()))
}
