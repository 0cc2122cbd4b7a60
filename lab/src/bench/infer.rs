//! Exact engines: time per row, beside the paper's loopy belief propagation on the same rows, and for hard trees beside
//! a softmax over the same columns.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::{Block, Budget, Engine, Method, Number, Options, Want};
use phex::model::Model;
use serde::Serialize;
use serde_json::json;

use crate::harness::data::{graph, imagenet_edges};
use crate::harness::timing::{Timing, time, use_one_thread};
use crate::harness::{MarkdownTable, ResultFolder, ResultPage, normal_scores, setups};

use super::softmax::softmax;

#[derive(Debug, Args)]
pub(crate) struct InferCommand {
    /// Where the results go [default: target/lab/infer]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Leave out slow cases
    #[arg(long)]
    quick: bool,
    /// Only cases whose names contain this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

#[derive(Debug, Serialize)]
struct InferRow {
    case: String,
    method: String,
    number: &'static str,
    labels: usize,
    batch: usize,
    /// Microseconds per row: the best of the repetitions, or their mean CPU time if that is less.
    microseconds: f64,
    /// The median of the repetitions.
    median: f64,
    compile_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<u64>,
    /// The mean error over rows and labels, against the exact marginals, and the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<(f64, f64)>,
    /// How much faster than 20 iterations of loopy belief propagation on the same rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    times_lbp: Option<f64>,
    /// How many times as long as a softmax over as many columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    softmaxes: Option<f64>,
}

impl InferRow {
    /// A row in single precision of something that is not compiled. `time` is microseconds per row and their median.
    fn of(case: String, method: &str, labels: usize, batch: usize, time: (f64, f64)) -> InferRow {
        InferRow {
            case,
            method: method.to_owned(),
            number: "f32",
            labels,
            batch,
            microseconds: time.0,
            median: time.1,
            compile_seconds: 0.0,
            states: None,
            error: None,
            times_lbp: None,
            softmaxes: None,
        }
    }
}

/// The measurements so far.
struct InferBench {
    rows: Vec<InferRow>,
    /// Cases without this text are left out.
    only: String,
}

impl InferBench {
    fn case<T: Number>(
        &mut self,
        case: &str,
        number: &'static str,
        model: &Model,
        method: Method,
        batches: &[usize],
        lbp: Option<f64>,
    ) -> anyhow::Result<()> {
        if !self.wants(case) {
            return Ok(());
        }
        let start = Instant::now();
        let budget = Budget { operations: 1e10, bytes: 8e9, search: 1e11 };
        let options = Options { method, budget, ..Options::default() };
        let engine = Engine::compile(model.clone(), &options).with_context(|| case.to_owned())?;
        let compile_seconds = start.elapsed().as_secs_f64();
        for &batch in batches {
            let data = normal_scores::<T>(batch * model.len(), 1.0, 0);
            let block = Block::new(model.len(), &data);
            let timing = time(0.1, || engine.run(&block, Want::default()))?;
            let (microseconds, median) = per_row(timing, batch);
            let row = InferRow {
                case: case.to_owned(),
                method: engine.plan().method.to_string(),
                number,
                labels: model.len(),
                batch,
                microseconds,
                median,
                compile_seconds,
                states: engine.plan().states,
                error: None,
                times_lbp: lbp.map(|lbp| lbp / microseconds),
                softmaxes: None,
            };
            self.push(row);
        }
        Ok(())
    }

    fn wants(&self, case: &str) -> bool {
        case.contains(&self.only)
    }

    /// A hard tree, after a softmax over its columns.
    fn beside_softmax(
        &mut self,
        case: &str,
        model: &Model,
        batches: &[usize],
    ) -> anyhow::Result<()> {
        if !self.wants(case) {
            return Ok(());
        }
        for &batch in batches {
            let scores = normal_scores::<f32>(batch * model.len(), 1.0, 0);
            let mut out = vec![0.0; scores.len()];
            // Enough calls for the clock.
            let calls = (4096 / batch).max(1);
            let timing = time(0.1, || {
                (0..calls).for_each(|_| softmax(model.len(), &scores, &mut out));
                anyhow::Ok(())
            })?;
            let time = per_row(timing, calls * batch);
            let name = format!("{case}: softmax over the columns");
            let row = InferRow::of(name, "softmax", model.len(), batch, time);
            self.push(InferRow { softmaxes: Some(1.0), ..row });
            let first = self.rows.len();
            self.case::<f32>(case, "f32", model, Method::Paths, &[batch], None)?;
            self.case::<f64>(case, "f64", model, Method::Paths, &[batch], None)?;
            for row in &mut self.rows[first..] {
                row.softmaxes = Some(row.microseconds / time.0);
            }
        }
        Ok(())
    }

    fn push(&mut self, row: InferRow) {
        eprintln!("{}, {}, batch {}: {:.2} µs", row.case, row.method, row.batch, row.microseconds);
        self.rows.push(row);
    }

    fn table(&self) -> MarkdownTable {
        let mut table = MarkdownTable::new(
            "",
            "case | method | precision | labels | batch | µs per row | median | compile s | × LBP | softmaxes | error of marginals, mean / largest",
        );
        for row in &self.rows {
            let error = row.error.map(|(mean, most)| format!("{mean:.3} / {most:.2}"));
            table.row([
                row.case.clone(),
                row.method.clone(),
                String::from(row.number),
                row.labels.to_string(),
                row.batch.to_string(),
                format!("{:.2}", row.microseconds),
                format!("{:.2}", row.median),
                format!("{:.2}", row.compile_seconds),
                row.times_lbp.map(|ratio| format!("{ratio:.1}")).unwrap_or_default(),
                row.softmaxes.map(|ratio| format!("{ratio:.1}")).unwrap_or_default(),
                error.unwrap_or_default(),
            ]);
        }
        table
    }
}

/// The undisturbed and the median time in microseconds per row.
fn per_row(timing: Timing, rows: usize) -> (f64, f64) {
    (1e6 * timing.undisturbed() / rows as f64, 1e6 * timing.median / rows as f64)
}

pub(crate) fn run(command: &InferCommand) -> anyhow::Result<()> {
    use_one_thread()?;
    let folder = ResultFolder::create(command.out.as_deref(), "infer")?;
    let only = command.only.clone().unwrap_or_default();
    let mut bench = InferBench { rows: Vec::new(), only };
    match imagenet_edges() {
        Ok(edges) => {
            hard_trees(&mut bench, &edges)?;
            imagenet(&mut bench, &edges, command.quick)?;
        }
        Err(error) => eprintln!("skipped: the ImageNet hierarchy ({error})"),
    }
    stars(&mut bench)?;
    growth(&mut bench, command.quick)?;
    let about = "One thread; the best of five repetitions or more, or their mean CPU time if that is less, and the \
                 median. `softmaxes`: how many times as long as a softmax over as many columns, which is plain Rust in \
                 vectors as wide as the CPU has (`lab/src/bench/softmax.rs`).";
    let mut page = ResultPage::of_bench("infer", "Exact engines: time per row", about);
    page.tables.push(bench.table());
    Ok(folder.write_bench(&page, &json!({ "rows": bench.rows }))?)
}

/// The tree that keeps the first parent of each label.
fn first_parents(edges: &[(String, String)]) -> Vec<(String, String)> {
    let mut seen = std::collections::HashSet::new();
    edges.iter().filter(|(_, child)| seen.insert(child.clone())).cloned().collect()
}

/// The commonest graph: a taxonomy whose relations are all hard.
fn hard_trees(bench: &mut InferBench, edges: &[(String, String)]) -> anyhow::Result<()> {
    let tree = first_parents(edges);
    let (rule, hard) = (ExclusionRule::NoCommonDescendant, Strength::Hard);
    for leaves in [false, true] {
        let model = Model::new(&graph(&tree, rule, hard, hard, leaves)?)?;
        let case = if leaves { "hard tree, one of 1000 leaves" } else { "hard tree" };
        bench.beside_softmax(case, &model, &[1, 64, 4096])?;
    }
    Ok(())
}

fn imagenet(bench: &mut InferBench, edges: &[(String, String)], quick: bool) -> anyhow::Result<()> {
    let tree = first_parents(edges);
    let soft = Strength::U(0.5);
    let of = |edges: &[(String, String)], rule, hierarchy, exclusion, leaves| {
        let graph = graph(edges, rule, hierarchy, exclusion, leaves)?;
        anyhow::Ok(Model::new(&graph)?)
    };
    use ExclusionRule::{NoCommonDescendant, Siblings};
    // The tree, and loopy belief propagation on it.
    let model = of(&tree, Siblings, soft, soft, false)?;
    let lbp = if bench.wants("tree, loopy BP") { Some(loopy(bench, &model)?) } else { None };
    let batches = [1, 64, 4096];
    bench.case::<f32>("tree", "f32", &model, Method::Family, &batches, lbp)?;
    bench.case::<f64>("tree", "f64", &model, Method::Family, &[4096], lbp)?;
    let with = of(&tree, Siblings, soft, soft, true)?;
    let case = "tree, one of 1000 leaves";
    bench.case::<f32>(case, "f32", &with, Method::Family, &batches, lbp)?;
    bench.case::<f64>(case, "f64", &with, Method::Family, &[4096], lbp)?;
    bench.case::<f64>("tree, by junction", "f64", &model, Method::Junction, &[256], None)?;
    // The DAG.
    let full = |h, x, leaves| of(edges, NoCommonDescendant, h, x, leaves);
    let hard = Strength::Hard;
    let junction = Method::Junction;
    for leaves in [false, true] {
        let name =
            |what: &str| format!("DAG, {what}{}", if leaves { ", one of 1000 leaves" } else { "" });
        let model = full(hard, hard, leaves)?;
        bench.case::<f32>(&name("all hard"), "f32", &model, Method::States, &[4096], None)?;
        bench.case::<f32>(&name("all hard"), "f32", &model, junction, &[256], None)?;
        let model = full(soft, hard, leaves)?;
        bench.case::<f32>(
            &name("soft hierarchy, hard exclusion"),
            "f32",
            &model,
            junction,
            &[256],
            None,
        )?;
        if !quick {
            let model = full(soft, soft, leaves)?;
            bench.case::<f32>(&name("all soft"), "f32", &model, junction, &[16], None)?;
        }
    }
    let model = of(edges, Siblings, soft, soft, false)?;
    bench.case::<f32>("DAG, all soft, siblings only", "f32", &model, junction, &[64], None)?;
    Ok(())
}

/// Loopy belief propagation on the tree, and its error: microseconds per row.
fn loopy(bench: &mut InferBench, model: &Model) -> anyhow::Result<f64> {
    let data = normal_scores::<f32>(4096 * model.len(), 1.0, 0);
    let block = Block::new(model.len(), &data);
    let lbp = Engine::compile(model.clone(), &setups::paper().options)?;
    let timing = time(0.0, || lbp.run(&block, Want::default()))?;
    let (microseconds, median) = per_row(timing, 4096);
    let exact = Engine::compile(model.clone(), &Options::default())?
        .run(&block, Want::default())?
        .marginals;
    let beliefs = lbp.run(&block, Want::default())?.marginals;
    let pairs = model.to_ising(&vec![0.0; model.len()], None)?.j.len();
    let errors = exact.iter().zip(&beliefs).map(|(a, b)| f64::from((a - b).abs()));
    let mean = errors.clone().sum::<f64>() / exact.len() as f64;
    let error = Some((mean, errors.fold(0.0, f64::max)));
    let case = format!("tree, loopy BP 20 iterations, {pairs} edges");
    let row = InferRow::of(case, "lbp", model.len(), 4096, (microseconds, median));
    bench.push(InferRow { error, times_lbp: Some(1.0), ..row });
    Ok(microseconds)
}

/// Zero-shot graphs, and the two matrix products that bound their time from below.
fn stars(bench: &mut InferBench) -> anyhow::Result<()> {
    for (classes, attributes, batch) in [(50, 85, 4096), (1000, 1000, 1024)] {
        let mut builder = GraphBuilder::new();
        let names: Vec<String> = (0..classes).map(|c| format!("class {c}")).collect();
        for (c, name) in names.iter().enumerate() {
            for a in 0..attributes {
                let attribute = format!("attribute {a}");
                if (c * 31 + a * 17) % 7 < 3 {
                    builder.hierarchy(&attribute, name, Some(Strength::U(0.3)));
                } else {
                    builder.exclusion(name, &attribute, Some(Strength::U(0.3)));
                }
            }
        }
        builder.one_of("class", names.iter().map(String::as_str), None);
        let model = Model::new(&builder.build()?)?;
        let case = format!("star {classes} × {attributes}");
        bench.case::<f32>(&case, "f32", &model, Method::Star, &[batch], None)?;
        if !bench.wants(&case) {
            continue;
        }
        let (x, m) = (
            ndarray::Array2::<f32>::ones((batch, attributes)),
            ndarray::Array2::<f32>::ones((attributes, classes)),
        );
        let timing = time(0.0, || {
            let y = x.dot(&m);
            anyhow::Ok(y.dot(&m.t()))
        })?;
        let case = format!("two products {classes} × {attributes}");
        let time = per_row(timing, batch);
        bench.push(InferRow::of(case, "matrix product", classes + attributes, batch, time));
    }
    Ok(())
}

/// Trees with ten children each.
fn growth(bench: &mut InferBench, quick: bool) -> anyhow::Result<()> {
    let sizes: &[usize] = if quick { &[100, 1000] } else { &[100, 1000, 10_000, 100_000] };
    for &labels in sizes {
        let mut builder = GraphBuilder::new();
        for label in 1..labels {
            builder.hierarchy(&format!("l{}", (label - 1) / 10), &format!("l{label}"), None);
        }
        builder.exclusion_rule(ExclusionRule::Siblings, None);
        builder.defaults(phex::graph::Defaults {
            strength: Some(Strength::U(0.5)),
            ..Default::default()
        });
        let model = Model::new(&builder.build()?)?;
        let most = (40_000_000 / labels).min(4096);
        let batches: Vec<usize> = [1, 64, most].into_iter().collect();
        bench.case::<f32>("ten-fold tree", "f32", &model, Method::Family, &batches, None)?;
    }
    Ok(())
}
