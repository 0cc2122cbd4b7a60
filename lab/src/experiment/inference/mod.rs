//! Loopy against exact inference: the error of its marginals, and what it costs in accuracy.
//!
//! The paper blames loopy belief propagation (LBP) for what pHEX loses at u = 1.5. The first part measures errors on
//! random scores. The second part measures them on scores that were trained through classes and their attributes
//! ([`attributes`]). The third part trains the same models by exact and by loopy inference and asks each model by both,
//! which separates the effect on training from that on prediction.

mod attributes;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use phex::graph::{RelationGraph, Strength};
use phex::infer::{Block, Engine, Options, Posterior, Trust, Want};
use phex::model::Model;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::experiment::Findings;
use crate::experiment::graphs::{GraphName, classes, present};
use crate::experiment::relabelled::{
    Curriculum, HierarchyData, Inference, JobSchedule, RelabelledData, Relations, RowSample,
    StageModel, TrainingJob, accuracies, train,
};
use crate::experiment::zero_shot::LogitSettings;
use crate::harness::JobQueue;
use crate::harness::MarkdownTable;
use crate::harness::RandomStream;
use crate::harness::statistics::percent as percent_spread;
use phex::metrics::Spread;
use phex_report::{Figure, FigurePanel, FigureSeries, LineStyle};

/// The settings of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct InferenceSettings {
    title: String,
    graphs: Vec<GraphName>,
    strengths: Vec<f64>,
    /// The standard deviations of random scores.
    deviations: Vec<f64>,
    /// Rows of random scores.
    rows: usize,
    /// Classes with attributes whose trained scores are compared.
    #[serde(default)]
    attributes: Vec<LogitSettings>,
    training: Vec<TrainingSettings>,
}

/// A training that is done by exact and by loopy inference.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TrainingSettings {
    data: HierarchyData,
    #[serde(default)]
    rows_a_class: usize,
    relabelled: f64,
    start: f64,
    curriculum: Curriculum,
    epochs: usize,
    batch: usize,
    learning_rate: f64,
    seeds: u64,
}

#[derive(Debug, Clone, Serialize)]
struct ErrorJob {
    graph: GraphName,
    u: f64,
    deviation: f64,
    rows: usize,
}

/// How far loopy marginals are from the exact ones.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct MarginalErrors {
    mean: f64,
    largest: f64,
    /// The share of rows whose messages converged.
    converged: f64,
    /// The share of rows for which both find the same most probable leaf.
    agree: f64,
}

/// The accuracy of one model, asked by exact and by loopy inference.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct BothAccuracies {
    by_exact: f64,
    by_lbp: f64,
    /// Errors on the logits of test rows.
    errors: MarginalErrors,
}

/// How many rows of trained logits are compared.
const COMPARED: usize = 500;

/// Runs the experiment.
pub(crate) fn run(
    settings: &InferenceSettings,
    folder: &Path,
    quick: bool,
    queue: &JobQueue<'_>,
) -> Result<Findings, Error> {
    let mut tables = vec![errors_table(settings, folder, quick, queue)?];
    tables.extend(attributes::table(settings, folder, queue)?);
    let mut panels = Vec::new();
    for training in &settings.training {
        let (table, panel) = training_table(settings, training, folder, quick, queue)?;
        tables.push(table);
        panels.push(panel);
    }
    let figure = Figure {
        file: String::from("inference"),
        title: String::from(
            "StageModel by exact and by loopy inference: top-1 accuracy of the test rows",
        ),
        x: String::from("u"),
        y: String::from("top-1 accuracy"),
        panels,
    };
    let data = String::from(
        "LBP: over pairs, in place, at most 30 iterations, tolerance 0.001. Errors are absolute differences from the exact marginals.",
    );
    let figures = vec![figure];
    Ok(Findings { title: settings.title.clone(), data, tables, figures, ..Findings::default() })
}

fn errors_table(
    settings: &InferenceSettings,
    folder: &Path,
    quick: bool,
    queue: &JobQueue<'_>,
) -> Result<MarkdownTable, Error> {
    let mut jobs = Vec::new();
    for graph in present(&settings.graphs, folder, quick)? {
        for &u in &settings.strengths {
            for &deviation in &settings.deviations {
                jobs.push(ErrorJob { graph, u, deviation, rows: settings.rows });
            }
        }
    }
    let work = |job: &ErrorJob, _: &AtomicBool| {
        let graph = job.graph.load(folder)?.map_strengths(|_, _| Strength::U(job.u))?;
        let mut random = RandomStream::new(0, "inference");
        let scores: Vec<f64> =
            (0..job.rows * graph.len()).map(|_| job.deviation * random.normal()).collect();
        errors(&graph, &scores)
    };
    let answers = queue.run("random scores", &jobs, work)?;
    let mut table = MarkdownTable::new(
        "Random scores: the error of LBP",
        &MarginalErrors::headings("graph | u | deviation of scores", "same best leaf, %"),
    );
    for (job, errors) in jobs.iter().zip(&answers) {
        let mut row =
            vec![String::from(job.graph.title()), job.u.to_string(), job.deviation.to_string()];
        row.extend(errors.cells());
        table.rows.push(row);
    }
    Ok(table)
}

impl MarginalErrors {
    /// The headings of a table whose rows end in [`MarginalErrors::cells`]; `best` is the last one.
    fn headings(own: &str, best: &str) -> String {
        format!("{own} | mean error | largest error | rows converged, % | {best}")
    }

    fn cells(&self) -> [String; 4] {
        [
            format!("{:.1e}", self.mean),
            format!("{:.2}", self.largest),
            format!("{:.0}", 100.0 * self.converged),
            format!("{:.1}", 100.0 * self.agree),
        ]
    }
}

/// The exact and the loopy answers to the same rows.
fn answers(graph: &RelationGraph, scores: &[f64]) -> Result<[Posterior<f64>; 2], Error> {
    let block = Block::new(graph.len(), scores);
    let answer = |options: &Options| -> Result<Posterior<f64>, phex::Error> {
        Engine::compile(Model::new(graph)?, options)?.run(&block, Want::default())
    };
    Ok([answer(&Inference::Exact.options(0))?, answer(&Inference::Lbp.options(0))?])
}

/// The errors of loopy inference on some rows.
fn errors(graph: &RelationGraph, scores: &[f64]) -> Result<MarginalErrors, Error> {
    let [exact, loopy] = answers(graph, scores)?;
    Ok(compare(graph, &exact, &loopy))
}

fn compare(
    graph: &RelationGraph,
    exact: &Posterior<f64>,
    loopy: &Posterior<f64>,
) -> MarginalErrors {
    let n = graph.len();
    let leaves: Vec<usize> = classes(graph).iter().map(|leaf| leaf.index()).collect();
    let best = |marginals: &[f64]| {
        leaves.iter().copied().max_by(|&a, &b| marginals[a].total_cmp(&marginals[b]))
    };
    let rows = exact.rows();
    let (mut sum, mut largest, mut converged, mut agree) = (0.0, 0.0f64, 0, 0);
    for row in 0..rows {
        for (a, b) in exact.row(row).iter().zip(loopy.row(row)) {
            sum += (a - b).abs();
            largest = largest.max((a - b).abs());
        }
        converged +=
            usize::from(matches!(&loopy.trust[row], Trust::Approximate(how) if how.converged));
        agree += usize::from(best(exact.row(row)) == best(loopy.row(row)));
    }
    let share = |count: usize| count as f64 / rows as f64;
    MarginalErrors {
        mean: sum / (rows * n) as f64,
        largest,
        converged: share(converged),
        agree: share(agree),
    }
}

fn training_table(
    settings: &InferenceSettings,
    training: &TrainingSettings,
    folder: &Path,
    quick: bool,
    queue: &JobQueue<'_>,
) -> Result<(MarkdownTable, FigurePanel), Error> {
    let (name, data) = RelabelledData::load(training.data, folder, quick)?;
    let kinds = [Inference::Exact, Inference::Lbp];
    let mut jobs = Vec::new();
    for inference in kinds {
        for &u in &settings.strengths {
            jobs.extend((0..training.seeds).map(|seed| training.job(name, u, inference, seed)));
        }
    }
    let work = |job: &TrainingJob, stop: &AtomicBool| ask(job, &data, stop);
    let title = training.title();
    let answers = queue.run(title.as_str(), &jobs, work)?;
    let mut table = MarkdownTable::new(
        &format!("{title}: test top-1, %, and the error of LBP on the logits of test rows"),
        &MarginalErrors::headings(
            "trained by | u | predicted by exact | predicted by LBP",
            "same best leaf, %",
        ),
    );
    let mut series: Vec<FigureSeries> = Vec::new();
    let mut chunks = answers.chunks(training.seeds.max(1) as usize);
    for inference in kinds {
        let by = if inference == Inference::Exact { "exact" } else { "LBP" };
        let mut lines = [Vec::new(), Vec::new()];
        for (&u, runs) in settings.strengths.iter().zip(chunks.by_ref()) {
            let of = |value: fn(&BothAccuracies) -> f64| {
                Spread::of(&runs.iter().map(value).collect::<Vec<f64>>())
            };
            let (exact, lbp) = (of(|run| run.by_exact), of(|run| run.by_lbp));
            lines[0].extend(exact.map(|summary| (Some(u), summary)));
            lines[1].extend(lbp.map(|summary| (Some(u), summary)));
            let text = |summary: Option<Spread>| {
                summary.map_or(String::from("–"), |summary| percent_spread(&summary))
            };
            let mut row = vec![String::from(by), u.to_string(), text(exact), text(lbp)];
            row.extend(runs.first().map(|run| run.errors.cells()).into_iter().flatten());
            table.rows.push(row);
        }
        let [exact, lbp] = lines;
        if inference == Inference::Exact {
            series.push(line("trained and predicted by exact inference", LineStyle::Solid, exact));
            series.push(line("trained by exact, predicted by LBP", LineStyle::Dotted, lbp));
        } else {
            series.push(line("trained and predicted by LBP", LineStyle::Dashed, lbp));
        }
    }
    Ok((table, FigurePanel { title, series }))
}

fn line(name: &str, line: LineStyle, points: Vec<(Option<f64>, Spread)>) -> FigureSeries {
    FigureSeries { name: String::from(name), line, points }
}

impl TrainingSettings {
    fn title(&self) -> String {
        let data = match self.data {
            HierarchyData::Cifar100 => "CIFAR-100",
            HierarchyData::TinyImagenet => "Tiny-ImageNet",
            HierarchyData::Generated => "generated",
        };
        let start = if self.start > 0.0 { "random" } else { "zero" };
        let staged = match self.curriculum {
            Curriculum::HardFirst => ", HEX first",
            Curriculum::WarmUp => ", warm-up",
            Curriculum::HardLast => ", HEX last",
            Curriculum::Plain => "",
        };
        format!("{data}, {} %, {start} start{staged}", (1000.0 * self.relabelled).round() / 10.0)
    }

    fn job(&self, data: HierarchyData, u: f64, inference: Inference, seed: u64) -> TrainingJob {
        TrainingJob {
            data,
            rows_a_class: self.rows_a_class,
            relabelled: self.relabelled,
            relations: Relations::Soft,
            u: Some(u),
            inference,
            start: self.start,
            hidden: Vec::new(),
            curriculum: self.curriculum,
            schedule: JobSchedule::default(),
            inner_scale: 1.0,
            leaf_share: 0.0,
            epochs: self.epochs,
            batch: self.batch,
            learning_rate: self.learning_rate,
            seed,
        }
    }
}

fn ask(
    job: &TrainingJob,
    data: &RelabelledData,
    stop: &AtomicBool,
) -> Result<BothAccuracies, Error> {
    let [validation, test] = data.evaluation(job.seed);
    let StageModel { model, .. } = train(job, data, &validation, stop)?;
    let by = |inference: Inference, sample: &RowSample| {
        accuracies(&model, &inference.options(job.seed), sample, data).map(|[top_1, _]| top_1)
    };
    let rows = 0..COMPARED.min(test.features.rows);
    let logits: Vec<f64> = model.logits(&test.features, rows)?.into_iter().map(f64::from).collect();
    Ok(BothAccuracies {
        by_exact: by(Inference::Exact, &test)?,
        by_lbp: by(Inference::Lbp, &test)?,
        errors: errors(&model.graph, &logits)?,
    })
}
