//! What is guaranteed about each row.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use phex::infer::Trust;
use phex::reconcile::Reconciled;
use phex_io::Output;
use serde::Serialize;

use crate::output;

/// The guarantee of one row.
#[derive(Debug, Serialize)]
struct GuaranteeLine {
    row: u64,
    /// The loss falls by at least this.
    gain: f64,
    /// No consistent answer gains more than this beyond the gain.
    gap: f64,
    /// By how much the output violates a relation.
    violation: f64,
    /// By how much the input did.
    input_violation: f64,
    passes: u32,
    trust: &'static str,
    /// No probability is further from the best one; missing if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<f64>,
}

impl GuaranteeLine {
    const HEADER: &str = "row,gain,gap,violation,input_violation,passes,trust,error";

    fn new<T>(row: u64, answer: &Reconciled<T>, at: usize) -> GuaranteeLine {
        let (trust, error) = match &answer.trust[at] {
            Trust::Exact => ("exact", Some(0.0)),
            Trust::Certified(error) => ("certified", Some(*error)),
            Trust::Approximate(_) => ("approximate", None),
        };
        GuaranteeLine {
            row,
            gain: answer.gain[at],
            gap: answer.gap[at],
            violation: answer.violation[at],
            input_violation: answer.input_violation[at],
            passes: answer.passes[at],
            trust,
            error,
        }
    }

    fn cells(&self) -> String {
        let GuaranteeLine { row, gain, gap, violation, input_violation, passes, trust, error } =
            self;
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        format!("{row},{gain},{gap},{violation},{input_violation},{passes},{trust},{error}")
    }
}

/// A table with one line per row: CSV, or JSON lines if the file name says so.
pub(super) struct ReconcileDiagnosis {
    out: BufWriter<Output>,
    json_lines: bool,
    rows: u64,
}

impl ReconcileDiagnosis {
    pub(super) fn create(path: &Path) -> anyhow::Result<ReconcileDiagnosis> {
        let json_lines = output::is_json_lines(path);
        let mut out = output::create(path)?;
        if !json_lines {
            writeln!(out, "{}", GuaranteeLine::HEADER)?;
        }
        Ok(ReconcileDiagnosis { out, json_lines, rows: 0 })
    }

    pub(super) fn write<T>(&mut self, answer: &Reconciled<T>) -> anyhow::Result<()> {
        for at in 0..answer.gain.len() {
            let line = GuaranteeLine::new(self.rows, answer, at);
            if self.json_lines {
                writeln!(self.out, "{}", serde_json::to_string(&line)?)?;
            } else {
                writeln!(self.out, "{}", line.cells())?;
            }
            self.rows += 1;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        output::finish(self.out)
    }
}
