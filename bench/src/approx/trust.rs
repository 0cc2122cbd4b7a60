//! Do the rows that an engine doubts have the larger errors?

use serde::Serialize;

use super::Sample;
use crate::engines;
use crate::table::{Table, mean, percent, quantile, short};

/// Rows of one engine that have something in common.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    engine: &'static str,
    problems: &'static str,
    signal: String,
    rows: usize,
    /// Median, mean, 90 % quantile and largest of the rows' largest errors.
    max_error: [f64; 4],
    /// The same of the rows' mean errors.
    mean_error: [f64; 4],
    /// The part of rows with an error above 0.1.
    wrong: f64,
}

/// The rank correlation of a signal with the largest error of a row.
#[derive(Debug, Serialize)]
pub(super) struct Correlation {
    engine: &'static str,
    problems: &'static str,
    signal: &'static str,
    rows: usize,
    spearman: f64,
}

/// An error that one would not want to act on.
const WRONG: f64 = 0.1;

/// A name, and which rows belong to it.
type Selection = (&'static str, fn(&Sample) -> bool);
/// A name, and what it is of a row.
type Signal = (&'static str, fn(&Sample) -> Option<f64>);

const PROBLEMS: [Selection; 3] = [
    ("all", |_| true),
    ("trees", |sample| sample.problem == "trees"),
    ("ImageNet", |sample| sample.problem != "trees"),
];

pub(super) fn tables(samples: &[Sample]) -> (Vec<Line>, Vec<Correlation>) {
    let (mut lines, mut correlations) = (Vec::new(), Vec::new());
    for engine in [engines::BLOCKS, engines::DEFAULT, engines::DAMPED, "gibbs"] {
        for (problems, belongs) in PROBLEMS {
            let here = samples.iter().filter(|sample| sample.engine == engine && belongs(sample));
            let here: Vec<&Sample> = here.collect();
            let mut add = |signal: String, rows: Vec<&Sample>| {
                if !rows.is_empty() {
                    lines.push(Line::new(engine, problems, signal, &rows));
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
            let sample_size = |sample: &Sample| sample.effective_sample;
            for (low, high) in [(0.0, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.5), (0.5, 2.0)] {
                let chosen = between(&here, sample_size, low, high);
                add(format!("converged, effective sample {low} to {}", high.min(1.0)), chosen);
            }
            let width = |sample: &Sample| sample.width;
            for (low, high) in quartiles(&here, width) {
                let chosen = between(&here, width, low, high);
                add(format!("converged, bounds {} to {}", short(low), short(high)), chosen);
            }
            let signals: [Signal; 4] = [
                ("not converged", |sample| Some(f64::from(u8::from(!sample.converged)))),
                ("effective sample", |sample| sample.effective_sample),
                ("width of bounds", |sample| sample.width),
                ("width a label", |sample| Some(sample.width? / sample.labels as f64)),
            ];
            for (signal, value) in signals {
                let pairs = here.iter().filter_map(|row| Some((value(row)?, row.max_error)));
                let pairs: Vec<(f64, f64)> = pairs.collect();
                let (rows, spearman) = (pairs.len(), spearman(&pairs));
                // A signal that is the same for all rows correlates with nothing.
                if spearman.is_finite() {
                    correlations.push(Correlation { engine, problems, signal, rows, spearman });
                }
            }
        }
    }
    print(&lines, &correlations);
    (lines, correlations)
}

/// Rows that converged, with a value in `[low, high)`: the other signals are asked after that one.
fn between<'a>(
    rows: &[&'a Sample],
    value: impl Fn(&Sample) -> Option<f64>,
    low: f64,
    high: f64,
) -> Vec<&'a Sample> {
    let inside = |row: &&&Sample| value(row).is_some_and(|value| value >= low && value < high);
    rows.iter().filter(|row| row.converged).filter(inside).copied().collect()
}

/// The quarters of the converged rows by a value.
fn quartiles(rows: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
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

impl Line {
    fn new(engine: &'static str, problems: &'static str, signal: String, rows: &[&Sample]) -> Line {
        let spread = |value: fn(&Sample) -> f64| {
            let mut sorted: Vec<f64> = rows.iter().map(|row| value(row)).collect();
            sorted.sort_by(f64::total_cmp);
            let average = mean(sorted.iter().copied());
            [quantile(&sorted, 0.5), average, quantile(&sorted, 0.9), quantile(&sorted, 1.0)]
        };
        let wrong = rows.iter().filter(|row| row.max_error > WRONG).count();
        Line {
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

fn spearman(pairs: &[(f64, f64)]) -> f64 {
    let first = ranks(pairs.iter().map(|pair| pair.0).collect());
    let second = ranks(pairs.iter().map(|pair| pair.1).collect());
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    product(&first, &second) / (product(&first, &first) * product(&second, &second)).sqrt()
}

/// The rank of each value; equal values share theirs.
fn ranks(values: Vec<f64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let same = order[first..].iter().take_while(|&&at| values[at] == values[order[first]]);
        let count = same.count().max(1);
        for &at in &order[first..first + count] {
            ranks[at] = first as f64 + (count as f64 - 1.0) / 2.0;
        }
        first += count;
    }
    ranks
}

fn print(lines: &[Line], correlations: &[Correlation]) {
    let mut table = Table::new(&[
        "engine",
        "problems",
        "rows with",
        "rows",
        "largest error: median / mean / 90 % / max",
        "mean error: median / mean / 90 % / max",
        "% wrong by > 0.1",
    ]);
    let list = |values: [f64; 4]| values.map(short).join(" / ");
    for line in lines {
        table.row(&[
            line.engine.to_owned(),
            line.problems.to_owned(),
            line.signal.clone(),
            line.rows.to_string(),
            list(line.max_error),
            list(line.mean_error),
            percent(line.wrong),
        ]);
    }
    println!("{}", table.text());
    let mut table = Table::new(&["engine", "problems", "signal", "rows", "rank correlation"]);
    for line in correlations {
        table.row(&[
            line.engine.to_owned(),
            line.problems.to_owned(),
            line.signal.to_owned(),
            line.rows.to_string(),
            format!("{:.2}", line.spearman),
        ]);
    }
    println!("{}", table.text());
}
