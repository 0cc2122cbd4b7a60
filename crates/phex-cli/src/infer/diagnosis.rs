//! How far approximate answers can be trusted, over all rows and for each row.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use phex::infer::{Diagnosis, Posterior, RowStatus, Trust};
use phex::numeric::SCORE_LIMIT;
use phex_io::Output;
use serde::Serialize;

use crate::output;

/// How many doubtful rows are named.
const NAMED: usize = 10;
/// Bins for effective samples from 0 to 1. The number of rows is unbounded, and this many bins give a
/// median of three digits.
const PARTS: usize = 1000;

/// A summary of all rows with an approximate answer.
#[derive(Debug, Default, Serialize)]
pub(super) struct Diagnosed {
    rows: u64,
    converged_rows: u64,
    doubtful_rows: u64,
    /// How many rows each reason for doubt holds for.
    doubts: BTreeMap<&'static str, u64>,
    /// The first of the doubtful rows.
    first_doubtful_rows: Vec<u64>,
    most_iterations: u32,
    largest_residual: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest_effective_sample: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_effective_sample: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_standard_error: Option<f64>,
    /// The widest interval around log Z; null if it is infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    widest_bounds: Option<f64>,
    #[serde(skip)]
    effective_samples: BTreeMap<usize, u64>,
}

impl Diagnosed {
    pub(super) fn add(&mut self, row: u64, diagnosis: &Diagnosis) {
        self.rows += 1;
        self.converged_rows += u64::from(diagnosis.converged);
        if let Some(doubt) = diagnosis.doubt() {
            self.doubtful_rows += 1;
            *self.doubts.entry(doubt).or_default() += 1;
            if self.first_doubtful_rows.len() < NAMED {
                self.first_doubtful_rows.push(row);
            }
        }
        self.most_iterations = self.most_iterations.max(diagnosis.iterations);
        self.largest_residual = self.largest_residual.max(diagnosis.residual);
        let larger = |known: &mut Option<f64>, new: Option<f64>| {
            *known = known.iter().copied().chain(new).reduce(f64::max);
        };
        larger(&mut self.largest_standard_error, diagnosis.standard_error);
        larger(&mut self.widest_bounds, diagnosis.bounds.map(|(low, high)| high - low));
        if let Some(part) = diagnosis.effective_sample {
            let smallest = self.smallest_effective_sample.map_or(part, |known| known.min(part));
            self.smallest_effective_sample = Some(smallest);
            let place = (part.clamp(0.0, 1.0) * PARTS as f64).round() as usize;
            *self.effective_samples.entry(place).or_default() += 1;
        }
    }

    /// After the last row.
    pub(super) fn finish(&mut self) {
        self.median_effective_sample = self.median();
    }

    fn median(&self) -> Option<f64> {
        let half = self.effective_samples.values().sum::<u64>().div_ceil(2);
        let mut seen = 0;
        let reaches_half = |(_, count): &(&usize, &u64)| {
            seen += **count;
            seen >= half
        };
        let (place, _) = self.effective_samples.iter().find(reaches_half)?;
        Some(*place as f64 / PARTS as f64)
    }

    pub(super) fn has_bounds(&self) -> bool {
        self.widest_bounds.is_some()
    }

    /// Which rows should not be trusted, and why.
    pub(super) fn complaint(&self) -> Option<String> {
        if self.doubtful_rows == 0 {
            return None;
        }
        let reason = |(doubt, count): (&&str, &u64)| match doubt.strip_prefix("its ") {
            Some(rest) => format!("{count} whose {rest}"),
            None => format!("{count} that {}", doubt.strip_prefix("it ").unwrap_or(doubt)),
        };
        let reasons: Vec<String> = self.doubts.iter().map(reason).collect();
        let rows: Vec<String> = self.first_doubtful_rows.iter().map(u64::to_string).collect();
        let more = if self.doubtful_rows > rows.len() as u64 { ", …" } else { "" };
        Some(format!(
            "{} of {} rows should not be trusted: {} (rows {}{more})",
            self.doubtful_rows,
            self.rows,
            reasons.join(", "),
            rows.join(", "),
        ))
    }
}

/// The diagnosis of one row.
#[derive(Debug, Serialize)]
struct Line {
    row: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_partition: Option<f64>,
    /// No marginal is further from the exact one.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    converged: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    residual: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effective_sample: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<Cow<'static, str>>,
}

impl Line {
    const HEADER: &str = "row,trust,log_partition,error,iterations,converged,residual,lower,upper,\
                          effective_sample,standard_error,doubt";

    fn new<T>(row: u64, posterior: &Posterior<T>, at: usize) -> Line {
        let mut line = Line {
            row,
            trust: None,
            log_partition: Some(posterior.log_partition[at]).filter(|log| !log.is_nan()),
            error: None,
            iterations: None,
            converged: None,
            residual: None,
            lower: None,
            upper: None,
            effective_sample: None,
            standard_error: None,
            doubt: None,
        };
        match posterior.status[at] {
            RowStatus::Answered => {}
            RowStatus::BadScore { .. } => {
                let why = format!("a score is NaN, infinite or beyond ±{SCORE_LIMIT:e}");
                line.doubt = Some(format!("it has no answer: {why}").into());
                return line;
            }
            RowStatus::Impossible => {
                line.doubt =
                    Some("it has no answer: no legal label set agrees with the evidence".into());
                return line;
            }
        }
        let trust = &posterior.trust[at];
        line.doubt = trust.doubt().map(Cow::Borrowed);
        match trust {
            Trust::Exact => (line.trust, line.error) = (Some("exact"), Some(0.0)),
            Trust::Certified(error) => {
                (line.trust, line.error) = (Some("certified"), Some(*error));
            }
            Trust::Approximate(diagnosis) => {
                line.trust = Some("approximate");
                line.iterations = Some(diagnosis.iterations);
                line.converged = Some(diagnosis.converged);
                line.residual = Some(diagnosis.residual);
                (line.lower, line.upper) = diagnosis.bounds.unzip();
                line.effective_sample = diagnosis.effective_sample;
                line.standard_error = diagnosis.standard_error;
            }
        }
        line
    }

    fn cells(&self) -> [String; 12] {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        [
            self.row.to_string(),
            self.trust.unwrap_or_default().to_owned(),
            number(self.log_partition),
            number(self.error),
            self.iterations.map(|count| count.to_string()).unwrap_or_default(),
            self.converged.map(|converged| converged.to_string()).unwrap_or_default(),
            number(self.residual),
            number(self.lower),
            number(self.upper),
            number(self.effective_sample),
            number(self.standard_error),
            output::cell(self.doubt.as_deref().unwrap_or_default()),
        ]
    }
}

/// A table with one line per row: CSV, or JSON lines if the file name says so.
pub(super) struct DiagnosisWriter {
    out: BufWriter<Output>,
    json_lines: bool,
    rows: u64,
}

impl DiagnosisWriter {
    pub(super) fn create(path: &Path) -> anyhow::Result<DiagnosisWriter> {
        let json_lines = output::is_json_lines(path);
        let mut out = output::create(path)?;
        if !json_lines {
            writeln!(out, "{}", Line::HEADER)?;
        }
        Ok(DiagnosisWriter { out, json_lines, rows: 0 })
    }

    pub(super) fn write<T>(&mut self, posterior: &Posterior<T>) -> anyhow::Result<()> {
        for at in 0..posterior.rows() {
            let line = Line::new(self.rows, posterior, at);
            if self.json_lines {
                writeln!(self.out, "{}", serde_json::to_string(&line)?)?;
            } else {
                writeln!(self.out, "{}", line.cells().join(","))?;
            }
            self.rows += 1;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        output::finish(self.out)
    }
}
