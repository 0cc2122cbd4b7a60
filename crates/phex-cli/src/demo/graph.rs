//! A graph: checked, drawn, used for inference; and one with mistakes, explained.

use std::path::{Path, PathBuf};

use phex::graph::closure::Logic;
use phex::infer::{Block, Engine, Options, Want};
use phex::model::Model;
use phex_io::{Format, ReadOptions};

use super::heading;
use crate::graph::outline;
use crate::output;

const PICTURES: [&str; 2] = ["animals.svg", "animals-broken.svg"];
const ANIMALS: &str = include_str!("../../examples/animals.toml");
const BROKEN: &str = include_str!("../../examples/animals-broken.toml");

pub(super) fn show(folder: &Path) -> anyhow::Result<()> {
    let read = |text: &str, name: &str| {
        phex_io::parse_graph(text.as_bytes(), name, Format::Toml, &ReadOptions::default())
    };
    heading("1. A graph of label relations (animals.toml)")?;
    let builder = read(ANIMALS, "animals.toml")?;
    let graph = builder.build()?;
    let counts = outline(&graph, None);
    output::text(&format!("{}\n", counts.lines().next().unwrap_or_default()))?;
    let logic = Logic::hard(&graph);
    let (count, all) = (logic.count_states()?, 2f64.powi(graph.len() as i32));
    output::text(&format!("{count} of {all} label sets are legal; "))?;
    draw(&graph, &folder.join(PICTURES[0]))?;
    infer(graph)?;

    heading("2. The same with mistakes (animals-broken.toml)")?;
    let broken = read(BROKEN, "animals-broken.toml")?;
    output::text(&broken.check().to_text(false))?;
    // What can be drawn of it: the graph without the lines that make it unusable.
    let repaired = BROKEN.replace("wolff", "wolf").replace("q = 1.5", "q = 0.5");
    draw(&read(&repaired, "animals-broken.toml")?.build()?, &folder.join(PICTURES[1]))
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
    let find = |name: &String| given.iter().find(|(label, _)| label == name);
    let names = engine.model().names();
    let scores: Vec<f64> =
        names.iter().map(|name| find(name).map_or(-2.0, |(_, score)| *score)).collect();
    let block = Block::new(scores.len(), &scores);
    let posterior = engine.run(&block, Want::default())?;
    output::text("\nlabel     score of a classifier   alone   with relations\n")?;
    for ((name, score), p) in names.iter().zip(&scores).zip(posterior.row(0)) {
        if find(name).is_some() {
            let alone = 1.0 / (1.0 + (-score).exp());
            output::text(&format!("{name:<10}{score:>21.1}{alone:>8.3}{p:>17.3}\n"))?;
        }
    }
    for set in engine.best(&block, 0, 1)? {
        let labels = names.iter().zip(&set.on).filter(|(_, on)| **on);
        let labels: Vec<&str> = labels.map(|(name, _)| name.as_str()).collect();
        output::text(&format!("most probable set of labels: {}\n", labels.join(", ")))?;
    }
    Ok(())
}

/// A picture in the folder that phex did not draw.
pub(super) fn foreign_picture(folder: &Path) -> Option<PathBuf> {
    let foreign = |path: &PathBuf| {
        let drawn =
            phex_io::read_text(path).is_ok_and(|text| text.contains("class=\"phex-graph\""));
        path.exists() && !drawn
    };
    PICTURES.map(|name| folder.join(name)).into_iter().find(foreign)
}

fn draw(graph: &phex::graph::RelationGraph, path: &Path) -> anyhow::Result<()> {
    phex_io::write_text(path, &phex_report::graph_picture(graph, None))?;
    output::text(&format!("drawn: {}\n", path.display()))
}
