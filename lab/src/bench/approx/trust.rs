//! Do the rows that an engine doubts have larger errors?

use phex::metrics::mean;
use serde::Serialize;

use super::RowAnswer;
use crate::harness::statistics::{quantile, spearman};
use crate::harness::table::{short, whole_percent};
use crate::harness::{MarkdownTable, setups};

/// Rows of one engine with the same signal.
#[derive(Debug, Serialize)]
pub(super) struct TrustLine {
    engine: &'static str,
    problems: &'static str,
    signal: String,
    rows: usize,
    /// The median, mean, 90 % quantile and maximum of the rows' largest errors.
    max_error: [f64; 4],
    /// The same for the rows' mean errors.
    mean_error: [f64; 4],
    /// The share of rows with an error above 0.1.
    wrong: f64,
}

/// The rank correlation of a signal with the largest error of a row.
#[derive(Debug, Serialize)]
pub(super) struct SignalCorrelation {
    engine: &'static str,
    problems: &'static str,
    signal: &'static str,
    rows: usize,
    spearman: f64,
}

/// An error that is too large to act on.
const WRONG: f64 = 0.1;

/// A name, and whether a row belongs to it.
type Selection = (&'static str, fn(&RowAnswer) -> bool);
/// A name, and its value for a row.
type Signal = (&'static str, fn(&RowAnswer) -> Option<f64>);

const PROBLEMS: [Selection; 3] = [
    ("all", |_| true),
    ("trees", |sample| sample.problem == "trees"),
    ("ImageNet", |sample| sample.problem != "trees"),
];

/// Errors by signal, and rank correlations of signals with errors.
pub(super) fn signals(samples: &[RowAnswer]) -> (Vec<TrustLine>, Vec<SignalCorrelation>) {
    let (mut lines, mut correlations) = (Vec::new(), Vec::new());
    for engine in [setups::FOREST_BP, setups::DEFAULT, setups::DAMPED, "gibbs"] {
        for (problems, belongs) in PROBLEMS {
            let here = samples.iter().filter(|sample| sample.engine == engine && belongs(sample));
            let here: Vec<&RowAnswer> = here.collect();
            let mut add = |signal: String, rows: Vec<&RowAnswer>| {
                if !rows.is_empty() {
                    lines.push(TrustLine::new(engine, problems, signal, &rows));
                }
            };
            for (signal, doubtful) in [("no doubt", false), ("doubt", true)] {
                let chosen = here.iter().filter(|sample| sample.doubtful == doubtful);
                add(signal.to_owned(), chosen.copied().collect());
            }
            for (signal, converged) in [("converged", true), ("not converged", false)] {
                let chosen = here.iter().filter(|sample| sample.converged == converged);
                add(signal.to_owned(), chosen.copied().collect());
            }
            let sample_size = |sample: &RowAnswer| sample.effective_sample;
            for (low, high) in [(0.0, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.5), (0.5, 2.0)] {
                let chosen = between(&here, sample_size, low, high);
                add(format!("converged, effective sample {low} to {}", high.min(1.0)), chosen);
            }
            let width = |sample: &RowAnswer| sample.width;
            for (low, high) in quartiles(&here, width) {
                let chosen = between(&here, width, low, high);
                add(format!("converged, bounds {} to {}", short(low), short(high)), chosen);
            }
            let signals: [Signal; 4] = [
                ("not converged", |sample| Some(f64::from(u8::from(!sample.converged)))),
                ("effective sample", |sample| sample.effective_sample),
                ("width of bounds", |sample| sample.width),
                ("width per label", |sample| Some(sample.width? / sample.labels as f64)),
            ];
            for (signal, value) in signals {
                let pairs = here.iter().filter_map(|row| Some((value(row)?, row.max_error)));
                let pairs: Vec<(f64, f64)> = pairs.collect();
                let (rows, spearman) = (pairs.len(), spearman(&pairs));
                // A signal that is the same for all rows has no correlation.
                if spearman.is_finite() {
                    correlations.push(SignalCorrelation {
                        engine,
                        problems,
                        signal,
                        rows,
                        spearman,
                    });
                }
            }
        }
    }
    (lines, correlations)
}

/// Converged rows with a value in `[low, high)`: other signals matter only after convergence.
fn between<'a>(
    rows: &[&'a RowAnswer],
    value: impl Fn(&RowAnswer) -> Option<f64>,
    low: f64,
    high: f64,
) -> Vec<&'a RowAnswer> {
    let inside = |row: &&&RowAnswer| value(row).is_some_and(|value| value >= low && value < high);
    rows.iter().filter(|row| row.converged).filter(inside).copied().collect()
}

/// The quartiles of a value over the converged rows.
fn quartiles(rows: &[&RowAnswer], value: impl Fn(&RowAnswer) -> Option<f64>) -> Vec<(f64, f64)> {
    let values = rows.iter().filter(|row| row.converged).filter_map(|row| value(row));
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    if values.is_empty() {
        return Vec::new();
    }
    let mut ends: Vec<f64> = (0..4).map(|at| quantile(&values, f64::from(at) / 4.0)).collect();
    ends.push(f64::INFINITY);
    ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

impl TrustLine {
    fn new(
        engine: &'static str,
        problems: &'static str,
        signal: String,
        rows: &[&RowAnswer],
    ) -> TrustLine {
        let spread = |value: fn(&RowAnswer) -> f64| {
            let mut sorted: Vec<f64> = rows.iter().map(|row| value(row)).collect();
            sorted.sort_by(f64::total_cmp);
            let average = mean(sorted.iter().copied()).unwrap_or(f64::NAN);
            [quantile(&sorted, 0.5), average, quantile(&sorted, 0.9), quantile(&sorted, 1.0)]
        };
        let wrong = rows.iter().filter(|row| row.max_error > WRONG).count();
        TrustLine {
            engine,
            problems,
            signal,
            rows: rows.len(),
            max_error: spread(|row| row.max_error),
            mean_error: spread(|row| row.mean_error),
            wrong: wrong as f64 / rows.len() as f64,
        }
    }
}

/// The tables of lines and of correlations.
pub(super) fn tables(
    lines: &[TrustLine],
    correlations: &[SignalCorrelation],
) -> [MarkdownTable; 2] {
    let mut trust = MarkdownTable::new(
        "Errors of rows by what an engine says of them",
        "engine | problems | rows with | rows | largest error: median / mean / 90 % / max | mean error: median / mean / 90 % / max | % wrong by > 0.1",
    );
    let list = |values: [f64; 4]| values.map(short).join(" / ");
    for line in lines {
        trust.row([
            line.engine.to_owned(),
            line.problems.to_owned(),
            line.signal.clone(),
            line.rows.to_string(),
            list(line.max_error),
            list(line.mean_error),
            whole_percent(line.wrong),
        ]);
    }
    let mut correlated = MarkdownTable::new(
        "Rank correlations of signals with the largest error of a row",
        "engine | problems | signal | rows | rank correlation",
    );
    for line in correlations {
        correlated.row([
            line.engine.to_owned(),
            line.problems.to_owned(),
            line.signal.to_owned(),
            line.rows.to_string(),
            format!("{:.2}", line.spearman),
        ]);
    }
    [trust, correlated]
}
