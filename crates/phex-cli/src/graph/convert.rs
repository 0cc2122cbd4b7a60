//! `phex graph convert`: converts label graphs, UAI files and Ising models into one another.

use anyhow::bail;
use phex_io::IsingFormat;
use serde::Serialize;

use super::Counts;
use crate::args::ConvertCommand;
use crate::files::CommandFiles;
use crate::model::{ModelFile, is_uai};
use crate::output;

/// The contents of an Ising model or a UAI file.
#[derive(Serialize)]
struct Written {
    labels: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    couplings: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<f64>,
}

pub(super) fn run(command: &ConvertCommand) -> anyhow::Result<()> {
    let files = CommandFiles::default().reads(command.input.files()).reads(&command.scores.scores);
    files.writes([&command.out]).check()?;
    let to = match (command.to.as_deref(), IsingFormat::from_path(&command.out)) {
        // By its name alone, because an existing file will be replaced.
        (None, Some(format)) => ModelFile::Ising(format),
        (None, None) if !is_uai(&command.out) => ModelFile::Graph,
        (to, _) => ModelFile::of(to, &command.out),
    };
    let written = match (command.input.kind(), to) {
        (ModelFile::Graph, ModelFile::Graph) => return graph(command),
        (_, ModelFile::Graph) => bail!(
            "{} is a model and cannot be converted to a label graph; write coo, bqm, qubo or uai",
            command.input.path.display()
        ),
        (ModelFile::Ising(from), ModelFile::Ising(to)) if command.scores.scores.is_none() => {
            let ising = phex_io::read_ising(&command.input.path, Some(from))?;
            phex_io::write_ising(&ising, &command.out, Some(to))?;
            Written::of(&ising)
        }
        (_, ModelFile::Ising(to)) => {
            let model = command.input.model()?;
            let scores = command.scores.row(model.names())?;
            let ising = command.scores.ising(&model, &scores)?;
            phex_io::write_ising(&ising, &command.out, Some(to))?;
            Written::of(&ising)
        }
        (_, ModelFile::Uai) => {
            let model = command.input.model()?;
            let scores = command.scores.row(model.names())?;
            phex_io::write_uai(&model, &scores, &command.out)?;
            Written { labels: model.len(), couplings: None, offset: None }
        }
    };
    if command.json {
        output::summary(&written, command.out.as_os_str() == "-")?;
    }
    Ok(())
}

impl Written {
    fn of(ising: &phex::model::Ising) -> Written {
        Written {
            labels: ising.names.len(),
            couplings: Some(ising.j.len()),
            offset: Some(ising.offset),
        }
    }
}

fn graph(command: &ConvertCommand) -> anyhow::Result<()> {
    if command.scores.scores.is_some() || command.scores.hard.is_some() {
        bail!("--scores and --hard apply only to Ising models and UAI files; choose one with --to");
    }
    let graph = command.input.graph()?;
    super::write(&graph, &command.out, command.to.as_deref())?;
    if command.json {
        output::json(&Counts::of(&graph))?;
    }
    Ok(())
}
