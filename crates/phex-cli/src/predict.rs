//! `phex predict`: probabilities or label sets of new data, by a trained model.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use phex::decide::Decision;
use phex::infer::{Engine, Method};
use phex::model::Model;
use phex_io::{
    Dataset, FeatureReader, Output, Precision, ScoreRows, ScoreValues, ScoreWriter, TableFormat,
};
use phex_train::{Predictor, TrainedModel};
use serde::Serialize;

use crate::args::{EngineArguments, PredictCommand};
use crate::device::Device;
use crate::files::CommandFiles;
use crate::infer::{best_engine, use_threads};
use crate::say::say;
use crate::{Outcome, data, output};

/// Rows predicted at a time on the CPU.
const PIECE: usize = 1024;

/// What a run did.
#[derive(Serialize)]
struct PredictionSummary<'a> {
    version: &'static str,
    command: &'static str,
    seed: u64,
    bundle: String,
    rows: usize,
    labels: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'a Decision>,
    /// Rows without a label set.
    undecided_rows: usize,
    seconds: f64,
    notes: Vec<String>,
}

pub(crate) fn run(command: &PredictCommand) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    use_threads(command.threads);
    let device = Device::open(command.device.device)?;
    let files = command.data.files()?;
    let checked = CommandFiles::default().reads(files).reads_bundle(&command.bundle);
    checked.writes_with_summary(&command.out).check()?;
    check_ending(command)?;
    let model = TrainedModel::read(&command.bundle)?;
    let predictor = predictor(&model, &command.engine, &device)?;
    let best = best_of(&model, &predictor, command.decide.as_ref(), &command.engine)?;
    crate::interrupt::listen();
    let mut writer = PredictionWriter::create(command, &model)?;
    let mut notes = notes(&predictor, best.as_ref());
    let predictors = Predictors { model: &model, predictor: &predictor, best: best.as_ref() };
    let options = command.data.options(Some(schema(&model)?))?;
    let piece = device.piece(PIECE, model.graph.len());
    for file in files {
        let mut reader = FeatureReader::open(file, &options)?;
        while let Some(data) = reader.next_rows(piece)? {
            crate::interrupt::check()?;
            writer.write(&predictors, command.decide.as_ref(), &data)?;
        }
        notes.extend(data::unseen(&reader.unseen()));
    }
    let summary = PredictionSummary {
        version: env!("CARGO_PKG_VERSION"),
        command: "predict",
        seed: command.engine.seed.unwrap_or(0),
        bundle: command.bundle.display().to_string(),
        rows: writer.rows,
        labels: model.graph.len(),
        method: predictor.engine().map(|engine| engine.plan().method.name()),
        device: device.name(),
        decision: command.decide.as_ref(),
        undecided_rows: writer.undecided,
        seconds: start.elapsed().as_secs_f64(),
        notes,
    };
    writer.finish()?;
    summary.notes.iter().for_each(|note| say(format_args!("phex: {note}")));
    output::write_beside(&summary, &command.out)?;
    if command.json {
        output::summary(&summary, command.out.as_os_str() == "-")?;
    }
    Ok(Outcome::Fine)
}

/// The model, compiled for prediction.
pub(crate) fn predictor<'m>(
    model: &'m TrainedModel,
    arguments: &EngineArguments,
    device: &Device,
) -> anyhow::Result<Predictor<'m>> {
    if arguments.method == Method::Anneal {
        bail!("`anneal` finds label sets, not probabilities; leave out --method anneal");
    }
    device.predictor(model.predictor(&arguments.options()?)?)
}

/// The engine that finds best label sets, if a decision needs one.
pub(crate) fn best_of(
    model: &TrainedModel,
    predictor: &Predictor<'_>,
    decision: Option<&Decision>,
    arguments: &EngineArguments,
) -> anyhow::Result<Option<Engine>> {
    if decision != Some(&Decision::Consistent) {
        return Ok(None);
    }
    match predictor.engine() {
        Some(engine) if engine.plan().exact => Ok(None),
        _ => Ok(Some(best_engine(&Arc::new(Model::new(&model.graph)?), arguments)?)),
    }
}

/// What a user should know about the engines.
pub(crate) fn notes(predictor: &Predictor<'_>, best: Option<&Engine>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(plan) = predictor.engine().map(Engine::plan).filter(|plan| plan.approximate) {
        notes.push(format!("`{}` is approximate; see `graph plan`", plan.method));
    }
    if best.is_some_and(|engine| engine.plan().method == Method::Anneal) {
        notes.push(String::from(
            "no exact engine finds the best label sets within the budget: they are the best found",
        ));
    }
    notes
}

/// The columns of a model's features.
pub(crate) fn schema(model: &TrainedModel) -> anyhow::Result<phex_io::FeatureSchema> {
    model
        .schema
        .clone()
        .context("the model does not know the columns of its features; train it with `phex train`")
}

/// A label set as one line of JSON.
#[derive(Serialize)]
struct LabelSetLine<'a> {
    row: usize,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kept: BTreeMap<&'a str, &'a str>,
    /// None if the row has no answer.
    labels: Option<Vec<&'a str>>,
}

enum PredictionTable {
    Probabilities(Box<ScoreWriter>),
    Sets { out: BufWriter<Output>, json_lines: bool },
}

/// Compiled models.
struct Predictors<'a> {
    model: &'a TrainedModel,
    predictor: &'a Predictor<'a>,
    /// For best label sets, if another engine finds them.
    best: Option<&'a Engine>,
}

/// Writes predictions.
struct PredictionWriter {
    table: PredictionTable,
    rows: usize,
    undecided: usize,
}

/// Refuses a file name whose ending does not fit what is written.
fn check_ending(command: &PredictCommand) -> anyhow::Result<()> {
    let (shown, format) = (command.out.display(), TableFormat::from_path(&command.out));
    match command.decide {
        Some(_) if matches!(format, Some(TableFormat::Npy | TableFormat::Parquet)) => {
            bail!("{shown}: label sets are written as CSV or `.jsonl`")
        }
        Some(_) => output::check_lines(&command.out),
        None if output::is_json_lines(&command.out) => {
            bail!(
                "{shown}: probabilities are written as CSV, npy or Parquet; --decide gives label sets"
            )
        }
        None => output::check_table(&command.out),
    }
}

impl PredictionWriter {
    fn create(command: &PredictCommand, model: &TrainedModel) -> anyhow::Result<PredictionWriter> {
        let keep = &command.data.keep;
        let format = TableFormat::from_path(&command.out);
        let table = if command.decide.is_some() {
            let json_lines = output::is_json_lines(&command.out);
            let mut out = output::create(&command.out)?;
            if !json_lines {
                let kept: String =
                    keep.iter().map(|name| format!(",{}", output::cell(name))).collect();
                writeln!(out, "row{kept},labels")?;
            }
            PredictionTable::Sets { out, json_lines }
        } else {
            let format = format.unwrap_or(TableFormat::Csv);
            let names: Vec<String> =
                model.graph.labels().iter().map(|label| label.name.clone()).collect();
            let writer = ScoreWriter::create(&command.out, format, &names, keep, Precision::F32)?;
            PredictionTable::Probabilities(Box::new(writer))
        };
        Ok(PredictionWriter { table, rows: 0, undecided: 0 })
    }

    fn write(
        &mut self,
        predictors: &Predictors<'_>,
        decision: Option<&Decision>,
        data: &Dataset,
    ) -> anyhow::Result<()> {
        let (predictor, features) = (predictors.predictor, &data.features);
        let rows = 0..data.rows();
        let probabilities = predictor.probabilities(features, rows.clone())?;
        match (&mut self.table, decision) {
            (PredictionTable::Sets { out, json_lines }, Some(decision)) => {
                let sets = predictor.decide(
                    decision,
                    predictors.best,
                    features,
                    rows.clone(),
                    &probabilities,
                )?;
                for (at, row) in rows.clone().enumerate() {
                    let labels = predictors.model.graph.labels().iter().zip(sets.row(at));
                    let on = labels.filter(|(_, on)| **on).map(|(label, _)| label.name.as_str());
                    let kept = data.kept.iter().map(|(name, cells)| (name, &cells[row]));
                    let answered = sets.is_answered(at);
                    self.undecided += usize::from(!answered);
                    let line = LabelSetLine {
                        row: self.rows + at,
                        kept: kept
                            .clone()
                            .map(|(name, cell)| (name.as_str(), cell.as_str()))
                            .collect(),
                        labels: answered.then(|| on.collect()),
                    };
                    if *json_lines {
                        writeln!(out, "{}", serde_json::to_string(&line)?)?;
                        continue;
                    }
                    let kept: String =
                        kept.map(|(_, cell)| format!(",{}", output::cell(cell))).collect();
                    let labels = output::label_list(&line.labels.unwrap_or_default());
                    writeln!(out, "{}{kept},{labels}", line.row)?;
                }
            }
            (PredictionTable::Probabilities(writer), _) => {
                let kept = data.kept.iter().map(|(_, cells)| cells.clone()).collect();
                let values = ScoreValues::F32(probabilities);
                writer.write_rows(&ScoreRows { count: rows.len(), values, kept })?;
            }
            (PredictionTable::Sets { .. }, None) => {}
        }
        self.rows += rows.len();
        Ok(())
    }

    fn finish(self) -> anyhow::Result<()> {
        match self.table {
            PredictionTable::Probabilities(writer) => Ok(writer.finish()?),
            PredictionTable::Sets { out, .. } => output::finish(out),
        }
    }
}
