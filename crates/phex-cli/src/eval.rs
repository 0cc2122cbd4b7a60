//! `phex eval`: measures a trained model, or a table of probabilities.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use phex::decide::{Classes, Decision, decide};
use phex::graph::RelationGraph;
use phex::infer::Evidence;
use phex::metrics::{Evaluation, EvaluationOptions, evaluate_sets};
use phex::model::Model;
use phex_io::{ReadOptions, ScoreOptions, ScoreReader, ScoreValues, Targets};
use phex_report::evaluation_page;
use phex_train::{Comparison, LabelSettings, TrainedModel};
use serde::Serialize;

use crate::args::EvalCommand;
use crate::data::{self, label_settings};
use crate::device::Device;
use crate::files::CommandFiles;
use crate::infer::use_threads;
use crate::say::say;
use crate::train::{comparison_table, examples, with_flag};
use crate::{Outcome, output, pages, predict, scores};

pub(crate) fn run(command: &EvalCommand) -> anyhow::Result<Outcome> {
    let mut files = CommandFiles::default().reads(&command.graph).reads(&command.probabilities);
    if let Some(bundle) = &command.bundle {
        files = files.reads_bundle(bundle);
    }
    files = files.reads(&command.data.data).reads(command.labels.files());
    files.writes(&command.report).check()?;
    use_threads(command.threads);
    let classes = match (&command.classes, command.top.is_empty()) {
        (None, true) => None,
        (classes, _) => Some(classes.clone().unwrap_or(Classes::Leaves)),
    };
    let mut options = EvaluationOptions {
        decision: command.decide.clone(),
        classes,
        leave_out: command.leave_out.clone(),
        ..EvaluationOptions::default()
    };
    if !command.top.is_empty() {
        options.top.clone_from(&command.top);
    }
    let Evaluated { graph, evaluation, comparison, mut notes } =
        match (&command.bundle, &command.graph, &command.probabilities) {
            (Some(bundle), ..) => of_model(command, bundle, &options)?,
            (None, Some(graph), Some(table)) => of_table(command, graph, table, &options)?,
            _ => bail!("give a BUNDLE, or --graph and --probabilities"),
        };
    if evaluation.counts.known == 0 {
        bail!("the data have no targets to compare with");
    }
    notes.extend(evaluation.lacks_negatives().map(|why| match evaluation.rows_with_leaf {
        rows if rows == evaluation.counts.rows => format!("{why} (--unlisted off)"),
        _ => String::from(why),
    }));
    let comparison = comparison.filter(|_| !command.no_baselines);
    notes.extend(comparison.iter().flat_map(|comparison| comparison.signs.iter().cloned()));
    notes.iter().for_each(|note| say(format_args!("phex: {note}")));
    let verdict = comparison.as_ref().and_then(Comparison::verdict);
    if let Some(path) = &command.report {
        let of = command.bundle.as_ref().or(command.probabilities.as_ref());
        let title = of.map_or(String::new(), |path| format!("Evaluation of {}", path.display()));
        let files: Vec<String> =
            command.data.data.iter().map(|f| f.display().to_string()).collect();
        let rows = evaluation.counts.rows;
        let subtitle = format!("{rows} rows of {}", files.join(", "));
        let notes: Vec<String> = verdict.iter().chain(&notes).cloned().collect();
        let table = comparison.as_ref().map(pages::comparison);
        let page = evaluation_page(&title, &subtitle, &graph, &evaluation, table.as_ref(), &notes);
        phex_io::write_text(path, &page.html())?;
    }
    if command.json {
        output::json(&EvaluationOutput { evaluation: &evaluation, comparison, verdict })?;
        return Ok(Outcome::Fine);
    }
    output::text(&match command.all {
        true => format!("{evaluation:#}"),
        false => evaluation.to_string(),
    })?;
    if let Some(comparison) = &comparison {
        output::text(&format!("\n{}\n", comparison_table("to beat", comparison)))?;
    }
    verdict.iter().for_each(|verdict| say(format_args!("phex: {verdict}")));
    Ok(Outcome::Fine)
}

/// What was evaluated, with notes for the user.
struct Evaluated {
    graph: RelationGraph,
    evaluation: Evaluation,
    comparison: Option<Comparison>,
    notes: Vec<String>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct EvaluationOutput<'e> {
    #[serde(flatten)]
    evaluation: &'e Evaluation,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
}

fn of_model(
    command: &EvalCommand,
    bundle: &Path,
    options: &EvaluationOptions,
) -> anyhow::Result<Evaluated> {
    let device = Device::open(command.device.device)?;
    let bundle = phex_io::read_bundle(bundle)?;
    let model = TrainedModel::from_bundle(&bundle)?;
    let labels = label_settings(&command.labels)?.or(LabelSettings::of_model(&bundle.config));
    let files = command.data.files()?;
    let mut reading = command.data.options(Some(predict::schema(&model)?))?;
    let targets = labels.target_options(files, &command.labels.label_file);
    reading.targets = Some(targets.map_err(with_flag)?);
    let data = phex_io::read_dataset(files, &reading, Some(&model.graph))?;
    let predictor = predict::predictor(&model, &command.engine, &device)?;
    let best = predict::best_of(&model, &predictor, Some(&command.decide), &command.engine)?;
    let examples = examples(&data, &model.graph)?;
    let (evaluation, comparison) =
        predictor.evaluate_beside_baselines(&examples, options, best.as_ref())?;
    let mut notes = predict::notes(&predictor, best.as_ref());
    notes.extend(data::unseen(&data.unseen));
    Ok(Evaluated { graph: bundle.graph, evaluation, comparison: Some(comparison), notes })
}

fn of_table(
    command: &EvalCommand,
    graph: &Path,
    table: &PathBuf,
    options: &EvaluationOptions,
) -> anyhow::Result<Evaluated> {
    if command.decide == Decision::Consistent {
        bail!("--decide consistent needs scores and not probabilities; give a BUNDLE");
    }
    let graph = crate::input::read(graph, &ReadOptions::default())?;
    let names: Vec<String> = graph.labels().iter().map(|label| label.name.clone()).collect();
    let reading = ScoreOptions {
        keep: command.data.keep.clone(),
        names: scores::column_names(&command.labels, graph.len())?,
        ..ScoreOptions::default()
    };
    let mut reader = ScoreReader::open_with(table, &names, &reading)?;
    let notes = scores::notes_on_columns(&reader);
    let mut probabilities: Vec<f64> = Vec::new();
    while let Some(rows) = reader.next_rows(1024)? {
        match rows.values {
            ScoreValues::F32(values) => probabilities.extend(values.into_iter().map(f64::from)),
            ScoreValues::F64(values) => probabilities.extend(values),
        }
    }
    let targets = targets(command, &graph, table)?;
    let found = probabilities.len() / graph.len().max(1);
    if targets.rows() != found {
        bail!(
            "{} has {found} rows of probabilities, and the labels have {}",
            table.display(),
            targets.rows()
        );
    }
    let evidence: Vec<Evidence> = (0..found).flat_map(|row| targets.evidence(row)).collect();
    let model = Arc::new(Model::new(&graph)?);
    let sets = decide(&command.decide, &graph, &probabilities)?;
    let evaluation = evaluate_sets(options, &graph, &model, &probabilities, &evidence, &sets)?;
    let single: Vec<f32> = probabilities.iter().map(|p| *p as f32).collect();
    let comparison = Some(Comparison::with_own_frequencies(&graph, &single, &evidence)?);
    Ok(Evaluated { graph, evaluation, comparison, notes })
}

/// The targets for a table of probabilities.
fn targets(
    command: &EvalCommand,
    graph: &RelationGraph,
    table: &PathBuf,
) -> anyhow::Result<Targets> {
    let labels = label_settings(&command.labels)?;
    let files = &command.labels.label_file;
    // Labels in separate files need rows to go with: those of the probabilities.
    let data = match (command.data.data.as_slice(), files.is_empty()) {
        ([], true) => bail!("--data FILE or --label-file FILE is missing: the targets"),
        ([], false) => std::slice::from_ref(table),
        (data, _) => data,
    };
    let mut options = command.data.options(None)?;
    (options.keep, options.features) = (Vec::new(), Some(Vec::new()));
    options.targets = Some(labels.target_options(data, files).map_err(with_flag)?);
    let data = phex_io::read_dataset(data, &options, Some(graph))?;
    Ok(data::targets(&data)?.clone())
}
