//! `phex demo`: a tour of phex on generated data, in seconds.
//!
//! [`photos`] have labels that overlap; classifiers of them are compared with and without relations. Most
//! animals of [`coarse`] are labelled only with their kind; methods that use such rows in different ways are
//! compared. At last, a mistake in a graph is explained. [`measure`] trains with the recipe of `phex train` and
//! measures, [`show`] prints one screen, and [`page`] has the details. Nothing is written before training has
//! finished, and all numbers are measured.

mod coarse;
mod measure;
mod page;
mod photos;
mod show;
mod world;

use std::path::Path;

use anyhow::{Context as _, bail};
use phex::graph::Report;
use phex_io::{Format, ReadOptions};
use phex_train::{LabelSettings, RunFolder, RunInputs, RunRecord};

use crate::Outcome;
use crate::args::DemoCommand;
use crate::device::Device;
use crate::train::RunOutputs;
use coarse::CoarseTour;
use photos::PhotoTour;

/// The line that makes a mistake of the graph of photos.
const MISTAKE: &str = "\n[[exclusion]]\nlabels = [\"bird\", \"outdoors\"]\n";

/// All that the demo found.
struct DemoResults {
    photos: PhotoTour,
    coarse: CoarseTour,
    /// The graph of photos with a mistake, as a file.
    broken: String,
    /// What `phex graph check` says about it.
    report: Report,
}

pub(crate) fn run(command: &DemoCommand) -> anyhow::Result<Outcome> {
    let folder = &command.out;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    check_folder(folder)?;
    let run_folder = RunFolder::open(&folder.join("model"))?;
    let _lock = run_folder.lock()?;
    crate::interrupt::listen();
    let photos = PhotoTour::take()?;
    show::photos(&photos)?;
    let coarse = CoarseTour::take()?;
    show::coarse(&coarse)?;
    let broken = format!("{}{MISTAKE}", photos::GRAPH);
    let report = read(&broken, "broken.toml")?.check();
    show::mistake(&report)?;
    let results = DemoResults { photos, coarse, broken, report };
    write(&results, folder, &run_folder)?;
    show::files(folder)?;
    Ok(Outcome::Fine)
}

/// Refuses a folder with files of the same names that no demo has written. The graph of the animals is the first
/// that is written.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    const FILES: [&str; 7] = [
        "animals.toml",
        "photos.toml",
        "photos.svg",
        "broken.toml",
        "train.csv",
        "test.csv",
        "report.html",
    ];
    let written = phex_io::read_text(&folder.join("animals.toml")).unwrap_or_default();
    if written.lines().next() == Some(coarse::TITLE) {
        return Ok(());
    }
    match FILES.map(|name| folder.join(name)).into_iter().find(|path| path.exists()) {
        Some(path) => bail!(
            "{} would be replaced, but `phex demo` did not write it; choose another folder with --out",
            path.display()
        ),
        None => Ok(()),
    }
}

fn read(text: &str, name: &str) -> anyhow::Result<phex::graph::GraphBuilder> {
    Ok(phex_io::parse_graph(text.as_bytes(), name, Format::Toml, &ReadOptions::default())?)
}

/// Writes graphs and pictures, the coarse data and the model of their first draw, and the report.
fn write(results: &DemoResults, folder: &Path, run_folder: &RunFolder) -> anyhow::Result<()> {
    let DemoResults { photos, coarse, broken, .. } = results;
    let file = |name: &str| folder.join(name);
    for (name, text) in [
        ("animals.toml", coarse.world.text.clone()),
        ("photos.toml", photos::GRAPH.to_owned()),
        ("photos.svg", phex_report::graph_picture(&photos.world.graph, None)),
        ("broken.toml", broken.clone()),
        ("train.csv", coarse.world.csv(&coarse.training)),
        ("test.csv", coarse.world.csv(&coarse.test)),
    ] {
        phex_io::write_text(&file(name), &text)?;
    }
    let data = [file("train.csv")];
    let inputs = RunInputs { graph: &file("animals.toml"), data: &data, validation: &[] };
    let trained = &coarse.model;
    let device = Device::CPU.name();
    let record = RunRecord::new(trained, "train", Some(inputs), device, Vec::new());
    let outputs = RunOutputs { report: true, report_file: None, json: false, quiet: true };
    let labels =
        LabelSettings { column: Some(String::from(coarse::COLUMN)), ..LabelSettings::default() };
    outputs.write(run_folder, trained, &record, &labels)?;
    phex_io::write_text(&file("report.html"), &page::page(results)?.html())?;
    Ok(())
}
