//! `phex demo`: a tour of phex on built-in data, in seconds.
//!
//! [`graph`] checks, draws and uses a graph of relations. Then [`world`] generates animals, and most
//! training rows are labelled only with their kind. [`learn`] trains the [`methods`] on them, and [`show`]
//! and [`page`] present the results. Nothing is written before training has finished, and all numbers are
//! measured.

mod graph;
mod learn;
mod methods;
mod page;
mod show;
mod world;

use std::path::Path;

use anyhow::{Context as _, bail};
use phex_train::{LabelSettings, RunFolder, RunInputs, RunRecord};

use crate::args::DemoCommand;
use crate::device::Device;
use crate::train::RunOutputs;
use crate::{Outcome, output};
use learn::{DemoTables, Tried, best};
use methods::DemoMethods;
use world::World;

/// What was trained and what is best.
struct DemoResults<'m> {
    world: World,
    data: DemoTables,
    baselines: Vec<Tried<'m>>,
    /// Hard, then soft, then learned.
    relations: Vec<Tried<'m>>,
    random: Vec<Tried<'m>>,
}

pub(crate) fn run(command: &DemoCommand) -> anyhow::Result<Outcome> {
    let folder = &command.out;
    check_folder(folder)?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let run_folder = RunFolder::open(&folder.join("model"))?;
    let _lock = run_folder.lock()?;
    crate::interrupt::listen();
    graph::show(folder)?;

    let methods = DemoMethods::new();
    let world = World::new()?;
    let data = DemoTables::new(&world);
    show::data(&world, &data)?;
    let baselines = learn::train(&world, &data, &methods.baselines)?;
    let relations = learn::train(&world, &data, &methods.relations)?;
    let random = learn::train(&world, &data, &methods.random)?;
    let results = DemoResults { world, data, baselines, relations, random };
    show::tables(&results)?;
    show::row(&results)?;
    write(&results, folder, &run_folder)?;
    show::files(&results, folder)?;
    Ok(Outcome::Fine)
}

/// Refuses a folder with files of the same names that no demo has written. The graph is the first that is written.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    const FILES: [&str; 5] = ["graph.toml", "train.csv", "valid.csv", "test.csv", "report.html"];
    let written = phex_io::read_text(&folder.join("graph.toml")).unwrap_or_default();
    let has_graph = written.lines().next() == Some(world::TITLE);
    let foreign =
        FILES.map(|name| folder.join(name)).into_iter().find(|path| !has_graph && path.exists());
    let foreign = foreign.or(graph::foreign_picture(folder));
    match foreign {
        Some(path) => bail!(
            "{} would be replaced, and it is not of an earlier demo; choose another folder with --out",
            path.display()
        ),
        None => Ok(()),
    }
}

impl<'m> DemoResults<'m> {
    /// Hard relations.
    fn hard(&self) -> anyhow::Result<&Tried<'m>> {
        self.relations.first().context("nothing was trained")
    }

    /// Soft relations of one strength.
    fn soft(&self) -> &[Tried<'m>] {
        match self.relations.as_slice() {
            [_, soft @ .., _] => soft,
            _ => &[],
        }
    }

    /// The strength that was chosen on the validation rows.
    fn chosen(&self) -> anyhow::Result<&Tried<'m>> {
        best(self.soft()).context("nothing was trained")
    }

    /// The methods of the table.
    fn shown(&self) -> anyhow::Result<Vec<&Tried<'m>>> {
        let Some(learned) = self.relations.last() else { bail!("nothing was trained") };
        let through = [self.hard()?, self.chosen()?, learned];
        Ok(self.baselines.iter().chain(through).collect())
    }

    /// The method of the model that is written: the best on the validation rows.
    fn winner(&self) -> anyhow::Result<&Tried<'m>> {
        best(&self.relations).context("nothing was trained")
    }
}

/// Writes the data and the model of the first seed, and the report.
fn write(results: &DemoResults<'_>, folder: &Path, run_folder: &RunFolder) -> anyhow::Result<()> {
    let DemoResults { world, data, .. } = results;
    let rows = data.seeds.first().context("there are no rows")?;
    let file = |name: &str| folder.join(name);
    phex_io::write_text(&file("graph.toml"), &world.text)?;
    for (name, rows) in
        [("train.csv", &rows.training), ("valid.csv", &rows.validation), ("test.csv", &data.test)]
    {
        phex_io::write_text(&file(name), &world.csv(rows))?;
    }
    let winner = results.winner()?;
    let run = winner.runs.first().context("nothing was trained")?;
    let inputs = RunInputs {
        graph: &file("graph.toml"),
        data: &[file("train.csv")],
        validation: &[file("valid.csv")],
    };
    let trained = &run.trained;
    let device = Device::CPU.name();
    let record = RunRecord::new(trained, "train", Some(inputs), device, Vec::new());
    let outputs = RunOutputs { report: true, report_file: None, json: false, quiet: true };
    outputs.write(run_folder, trained, &record, &LabelSettings::default())?;
    phex_io::write_text(&file("report.html"), &page::page(results)?.html())?;
    Ok(())
}

fn heading(text: &str) -> anyhow::Result<()> {
    output::text(&format!("\n== {text}\n\n"))
}
