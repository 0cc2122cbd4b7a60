//! `phex demo`: the main job on built-in data.

use anyhow::Context as _;
use phex::graph::closure::Logic;
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

    heading("The same with mistakes (examples/animals-broken.toml)")?;
    let broken = read(BROKEN, "animals-broken.toml")?;
    output::text(&broken.check().to_text(true))?;
    // What can be drawn of it: the graph without the lines that make it unusable.
    let repaired = BROKEN.replace("wolff", "wolf").replace("q = 1.5", "q = 0.5");
    draw(&read(&repaired, "animals-broken.toml")?.build()?, &folder.join("animals-broken.svg"))?;
    Ok(Outcome::Fine)
}

fn heading(text: &str) -> anyhow::Result<()> {
    output::text(&format!("\n== {text}\n\n"))
}

fn draw(graph: &phex::graph::RelationGraph, path: &std::path::Path) -> anyhow::Result<()> {
    phex_io::write_graph(graph, path, Some(Format::Svg))?;
    output::text(&format!("drawn: {}\n", path.display()))
}
