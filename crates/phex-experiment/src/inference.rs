//! Exact against loopy inference: the error of its marginals, and what it costs in accuracy.
//!
//! The paper blames loopy belief propagation for what pHEX loses at u = 1.5. First part: errors on random
//! scores. Second part: on scores that were trained through classes and their attributes ([`attributes`]).
//! Third part: the same training by exact and by loopy inference, each model asked by both, so that the
//! effect on training and that on prediction come apart.

mod attributes;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use phex::graph::{RelationGraph, Strength};
use phex::infer::{Block, Engine, Options, Posterior, Trust, Want};
use phex::model::Model;
use serde::{Deserialize, Serialize};

use crate::graphs::{GraphName, classes, present};
use crate::outcome::{Figure, FigurePanel, FigureSeries, Line, Outcome, Table};
use crate::random::Random;
use crate::relabelled::{
    Curriculum, Data, DataName, Inference, Job as TrainingJob, JobSchedule, Relations, Sample,
    Trained, accuracies, train,
};
use crate::statistics::Summary;
use crate::zero_shot::LogitSettings;
use crate::{Error, Runner};

/// The settings of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct InferenceSettings {
    title: String,
    graphs: Vec<GraphName>,
    strengths: Vec<f64>,
    /// The deviations of random scores.
    deviations: Vec<f64>,
    /// Rows of random scores.
    rows: usize,
    /// Classes with attributes whose trained scores are compared.
    #[serde(default)]
    attributes: Vec<LogitSettings>,
    training: Vec<TrainingSettings>,
}

/// A way of training that is done by exact and by loopy inference.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TrainingSettings {
    data: DataName,
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
struct Errors {
    mean: f64,
    largest: f64,
    /// The part of the rows whose messages settled.
    converged: f64,
    /// The part of the rows in which both find the same most probable leaf.
    agree: f64,
}

/// One model by one way of inference, asked by both.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    by_exact: f64,
    by_lbp: f64,
    /// On the logits of test rows.
    errors: Errors,
}

/// Rows of trained logits whose marginals are compared.
const COMPARED: usize = 500;

/// Runs the experiment.
pub(crate) fn run(
    settings: &InferenceSettings,
    folder: &Path,
    quick: bool,
    runner: &Runner<'_>,
) -> Result<Outcome, Error> {
    let mut tables = vec![errors_table(settings, folder, quick, runner)?];
    tables.extend(attributes::table(settings, folder, runner)?);
    let mut panels = Vec::new();
    for training in &settings.training {
        let (table, panel) = training_table(settings, training, folder, quick, runner)?;
        tables.push(table);
        panels.push(panel);
    }
    let figure = Figure {
        file: String::from("inference"),
        title: String::from(
            "Trained by exact and by loopy inference: top-1 accuracy of the test rows",
        ),
        x: String::from("u"),
        y: String::from("top-1 accuracy"),
        panels,
    };
    let data = String::from(
        "LBP: over pairs, in place, at most 30 iterations, tolerance 0.001. Errors are absolute differences of marginals from the exact ones.",
    );
    let figures = vec![figure];
    Ok(Outcome { title: settings.title.clone(), data, tables, figures, ..Outcome::default() })
}

fn errors_table(
    settings: &InferenceSettings,
    folder: &Path,
    quick: bool,
    runner: &Runner<'_>,
) -> Result<Table, Error> {
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
        let mut random = Random::new(0, "inference");
        let scores: Vec<f64> =
            (0..job.rows * graph.len()).map(|_| job.deviation * random.normal()).collect();
        errors(&graph, &scores)
    };
    let answers = runner.run("random scores", &jobs, work)?;
    let mut table = Table::new(
        "Random scores: the error of LBP",
        &Errors::headings(&["graph", "u", "deviation of scores"], "same best leaf, %"),
    );
    for (job, errors) in jobs.iter().zip(&answers) {
        let mut row =
            vec![String::from(job.graph.title()), job.u.to_string(), job.deviation.to_string()];
        row.extend(errors.cells());
        table.rows.push(row);
    }
    Ok(table)
}

impl Errors {
    /// The headings of a table whose rows end in [`Errors::cells`]; `best` is that of the last.
    fn headings<'a>(own: &[&'a str], best: &'a str) -> Vec<&'a str> {
        [own, &["mean error", "largest error", "rows that settled, %", best]].concat()
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

/// The answers of both engines to the same rows, exact and loopy.
fn answers(graph: &RelationGraph, scores: &[f64]) -> Result<[Posterior<f64>; 2], Error> {
    let block = Block::new(graph.len(), scores);
    let answer = |options: &Options| -> Result<Posterior<f64>, phex::Error> {
        Engine::compile(Model::new(graph)?, options)?.run(&block, Want::default())
    };
    Ok([answer(&Inference::Exact.options(0))?, answer(&Inference::Lbp.options(0))?])
}

/// Runs both engines on the same rows.
fn errors(graph: &RelationGraph, scores: &[f64]) -> Result<Errors, Error> {
    let [exact, loopy] = answers(graph, scores)?;
    Ok(compare(graph, &exact, &loopy))
}

fn compare(graph: &RelationGraph, exact: &Posterior<f64>, loopy: &Posterior<f64>) -> Errors {
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
    let part = |count: usize| count as f64 / rows as f64;
    Errors {
        mean: sum / (rows * n) as f64,
        largest,
        converged: part(converged),
        agree: part(agree),
    }
}

fn training_table(
    settings: &InferenceSettings,
    training: &TrainingSettings,
    folder: &Path,
    quick: bool,
    runner: &Runner<'_>,
) -> Result<(Table, FigurePanel), Error> {
    let (name, data) = Data::load(training.data, folder, quick)?;
    let ways = [Inference::Exact, Inference::Lbp];
    let mut jobs = Vec::new();
    for inference in ways {
        for &u in &settings.strengths {
            jobs.extend((0..training.seeds).map(|seed| training.job(name, u, inference, seed)));
        }
    }
    let work = |job: &TrainingJob, stop: &AtomicBool| ask(job, &data, stop);
    let title = training.title();
    let answers = runner.run(title.as_str(), &jobs, work)?;
    let mut table = Table::new(
        &format!("{title}: test top-1, %, and the error of LBP on the logits of test rows"),
        &Errors::headings(
            &["trained by", "u", "predicted by exact", "predicted by LBP"],
            "same best leaf, %",
        ),
    );
    let mut series: Vec<FigureSeries> = Vec::new();
    let mut chunks = answers.chunks(training.seeds.max(1) as usize);
    for inference in ways {
        let by = if inference == Inference::Exact { "exact" } else { "LBP" };
        let mut lines = [Vec::new(), Vec::new()];
        for (&u, runs) in settings.strengths.iter().zip(chunks.by_ref()) {
            let of = |value: fn(&Asked) -> f64| {
                Summary::of(&runs.iter().map(value).collect::<Vec<f64>>())
            };
            let (exact, lbp) = (of(|run| run.by_exact), of(|run| run.by_lbp));
            lines[0].extend(exact.map(|summary| (Some(u), summary)));
            lines[1].extend(lbp.map(|summary| (Some(u), summary)));
            let text = |summary: Option<Summary>| {
                summary.map_or(String::from("–"), |summary| summary.percent())
            };
            let mut row = vec![String::from(by), u.to_string(), text(exact), text(lbp)];
            row.extend(runs.first().map(|run| run.errors.cells()).into_iter().flatten());
            table.rows.push(row);
        }
        let [exact, lbp] = lines;
        if inference == Inference::Exact {
            series.push(line("trained and predicted by exact inference", Line::Solid, exact));
            series.push(line("trained by exact, predicted by LBP", Line::Dotted, lbp));
        } else {
            series.push(line("trained and predicted by LBP", Line::Dashed, lbp));
        }
    }
    Ok((table, FigurePanel { title, series }))
}

fn line(name: &str, line: Line, points: Vec<(Option<f64>, Summary)>) -> FigureSeries {
    FigureSeries { name: String::from(name), line, points }
}

impl TrainingSettings {
    fn title(&self) -> String {
        let data = match self.data {
            DataName::Cifar100 => "CIFAR-100",
            DataName::TinyImagenet => "Tiny-ImageNet",
            DataName::Generated => "generated",
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

    fn job(&self, data: DataName, u: f64, inference: Inference, seed: u64) -> TrainingJob {
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
            epochs: self.epochs,
            batch: self.batch,
            learning_rate: self.learning_rate,
            seed,
        }
    }
}

fn ask(job: &TrainingJob, data: &Data, stop: &AtomicBool) -> Result<Asked, Error> {
    let [validation, test] = data.evaluation(job.seed);
    let Trained { model, .. } = train(job, data, &validation, stop)?;
    let by = |inference: Inference, sample: &Sample| {
        accuracies(&model, &inference.options(job.seed), sample, data).map(|[top_1, _]| top_1)
    };
    let rows = 0..COMPARED.min(test.features.rows);
    let logits: Vec<f64> = model.logits(&test.features, rows)?.into_iter().map(f64::from).collect();
    Ok(Asked {
        by_exact: by(Inference::Exact, &test)?,
        by_lbp: by(Inference::Lbp, &test)?,
        errors: errors(&model.graph, &logits)?,
    })
}
