//! Reconciling: time per row of each engine, beside a convex solver and isotonic regression.
//!
//! Rows are logits with one mean for a random path from a leaf to the roots and another for everything else. Trained
//! scores are those of a linear head on test rows. Our time is the best wall-clock time of a block of rows, or the mean
//! CPU time if that is less because others used the core. Peers get the same inequalities and rows; their time is CPU time.

mod cases;
mod peers;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use phex::infer::{Number, Trust};
use phex::reconcile::{FinishedRows, ReconcileOptions, Reconciled, Reconciler};
use serde::Serialize;
use serde_json::json;

use self::cases::{FinishedScores, ReconcileCase};
use self::peers::ReconcilePeer;
use crate::harness::timing::{time, use_one_thread};
use crate::harness::{MarkdownTable, ResultFolder, ResultPage};

#[derive(Debug, Args)]
pub(crate) struct ReconcileCommand {
    /// Where the results go [default: target/lab/reconcile]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// How many rows a block has
    #[arg(long, default_value_t = 256)]
    rows: usize,
    /// Also run cvxpy and scikit-learn from this virtual environment (`make bench-reconcile` makes it)
    #[arg(long, value_name = "FOLDER")]
    peers_venv: Option<PathBuf>,
}

/// An engine on the rows of one case.
#[derive(Debug, Serialize)]
struct ReconcileRow {
    case: String,
    scores: &'static str,
    number: &'static str,
    engines: String,
    labels: usize,
    rows: usize,
    /// Microseconds per row, undisturbed by others as far as possible.
    microseconds: f64,
    /// The median by the clock.
    median: f64,
    compile_seconds: f64,
    /// Mean and largest number of passes.
    passes: (f64, u32),
    /// The mean guaranteed gain, the largest gap to the best answer, and rows that the engine gave up.
    gain: f64,
    gap: f64,
    given_up: usize,
}

pub(crate) fn run(command: &ReconcileCommand) -> anyhow::Result<()> {
    use_one_thread()?;
    let folder = ResultFolder::create(command.out.as_deref(), "reconcile")?;
    let (mut rows, mut beside) = (Vec::new(), Vec::new());
    let mut skipped = Vec::new();
    for case in cases::all(command.rows, |name| name.contains(&command.only))? {
        let start = Instant::now();
        let reconciler = match Reconciler::compile(&case.graph, &ReconcileOptions::default()) {
            Ok(reconciler) => reconciler,
            Err(error) => {
                eprintln!("{}: skipped: {error}", case.name);
                skipped.push(format!("{}: {error}", case.name));
                continue;
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        for scores in &case.scores {
            let single: Vec<f32> = scores.values.iter().map(|&value| value as f32).collect();
            measure(&mut rows, &case, scores, &reconciler, seconds, &single, "f32")?;
            measure(&mut rows, &case, scores, &reconciler, seconds, &scores.values, "f64")?;
        }
        if let (Some(venv), Some(peer)) = (&command.peers_venv, &case.peer) {
            let found = peers::compare(venv, folder.path(), &case, *peer, &reconciler)?;
            let of_case = |row: &&ReconcileRow| {
                row.case == case.name && row.scores == found.scores && row.number == "f64"
            };
            let ours = rows.iter().find(of_case).context("the peer's rows were not measured")?;
            beside.push(found.beside(ours.microseconds));
        }
    }
    let about = format!(
        "One thread, blocks of {} rows, a tolerance of 1e-7 (1e-6 in single precision). The time covers everything from \
         logits or probabilities to consistent probabilities with their guarantee.",
        command.rows
    );
    let mut page = ResultPage::of_bench("reconcile", "Reconciling: time per row", &about);
    page.tables.push(table(&rows));
    if !beside.is_empty() {
        page.made_by = page.made_by.replace("make bench ARGS=reconcile", "make bench-reconcile");
        page.tables.push(peers::table(&beside));
    }
    if !skipped.is_empty() {
        let mut table = MarkdownTable::new("Skipped:", "case and reason");
        skipped.iter().for_each(|text| table.row([text.clone()]));
        page.tables.push(table);
    }
    Ok(folder.write_bench(&page, &json!({ "rows": rows, "peers": beside, "skipped": skipped }))?)
}

/// Rows in the form in which a case has its scores.
fn finished<'a, T: Number>(scores: &FinishedScores, values: &'a [T]) -> FinishedRows<'a, T> {
    if scores.logits { FinishedRows::Logits(values) } else { FinishedRows::Probabilities(values) }
}

fn measure<T: Number>(
    rows: &mut Vec<ReconcileRow>,
    case: &ReconcileCase,
    scores: &FinishedScores,
    reconciler: &Reconciler,
    compile_seconds: f64,
    values: &[T],
    number: &'static str,
) -> anyhow::Result<()> {
    let answer: Reconciled<T> = reconciler.run(finished(scores, values))?;
    let timing = time(0.5, || reconciler.run(finished(scores, values)))?;
    let count = answer.rows();
    let mean = |sum: f64| sum / count as f64;
    let engines: Vec<String> =
        reconciler.plan().parts.iter().map(|part| part.engine.to_string()).collect();
    let failed = |trust: &&Trust| matches!(trust, Trust::Approximate(_));
    let row = ReconcileRow {
        case: case.name.clone(),
        scores: scores.name,
        number,
        engines: engines.join(", "),
        labels: case.graph.len(),
        rows: count,
        microseconds: mean(1e6 * timing.undisturbed()),
        median: mean(1e6 * timing.median),
        compile_seconds,
        passes: (
            mean(answer.passes.iter().map(|&passes| f64::from(passes)).sum()),
            answer.passes.iter().copied().max().unwrap_or(0),
        ),
        gain: mean(answer.gain.iter().sum()),
        gap: answer.gap.iter().copied().fold(0.0, f64::max),
        given_up: answer.trust.iter().filter(failed).count(),
    };
    eprintln!("{}, {}, {number}: {:.1} µs per row", row.case, row.scores, row.microseconds);
    rows.push(row);
    Ok(())
}

fn table(rows: &[ReconcileRow]) -> MarkdownTable {
    let mut table = MarkdownTable::new(
        "",
        "case | scores | precision | engine | labels | µs per row | median | passes, mean (most) | gain, mean | gap, largest | given up | compile s",
    );
    for row in rows {
        table.row([
            row.case.clone(),
            String::from(row.scores),
            String::from(row.number),
            row.engines.clone(),
            row.labels.to_string(),
            format!("{:.1}", row.microseconds),
            format!("{:.1}", row.median),
            format!("{:.1} ({})", row.passes.0, row.passes.1),
            format!("{:.3}", row.gain),
            format!("{:.0e}", row.gap),
            row.given_up.to_string(),
            format!("{:.3}", row.compile_seconds),
        ]);
    }
    table
}

/// What a peer found, beside our time on the same rows.
#[derive(Debug, Serialize)]
struct BesideUs {
    case: String,
    scores: &'static str,
    peer: ReconcilePeer,
    rows: usize,
    /// Microseconds of CPU time per row: of the whole call, and of the solver alone if it tells.
    call: f64,
    solver: Option<f64>,
    ours: f64,
    /// The largest difference between the peer's probabilities and ours.
    difference: f64,
}
