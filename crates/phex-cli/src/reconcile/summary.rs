//! The summary of a run, for people and for programs.

use std::time::Instant;

use phex::infer::{Number, Trust};
use phex::reconcile::{
    FinishedRows, FinishedWatch, FitReport, FittedParameters, ReconcileEngine, ReconcileLoss,
    ReconcilePlan, Reconciled, clipped_rows,
};
use serde::Serialize;

use super::fit::Compiled;
use crate::say::say;

/// How many rows that an engine gave up are named.
const NAMED: usize = 10;

/// What a run did.
#[derive(Debug, Serialize)]
pub(super) struct ReconcileSummary {
    version: &'static str,
    command: &'static str,
    loss: &'static str,
    engines: Vec<ReconcileEngine>,
    /// Whether the inequalities describe the consistent probabilities exactly.
    hull: bool,
    pub(super) rows: u64,
    /// Rows that were consistent and came back as they were.
    unchanged_rows: u64,
    /// By how much the loss of a row falls at least, on average.
    mean_gain: f64,
    largest_gain: f64,
    /// The largest violation of a relation by the input.
    largest_input_violation: f64,
    largest_gap: f64,
    most_passes: u32,
    /// Rows that an engine gave up: they came back as they were, and are not consistent.
    inconsistent_rows: u64,
    first_inconsistent_rows: Vec<u64>,
    /// Changed rows with a value whose logit is clipped.
    clipped_rows: u64,
    seconds: f64,
    plan: ReconcilePlan,
    /// What the fit saw and chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<FitReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<FittedParameters>,
    /// What engines other than the requested one handle, and why.
    #[serde(skip)]
    others: Vec<String>,
    /// Whether logits look like finished probabilities.
    #[serde(skip)]
    watch: FinishedWatch,
    #[serde(skip)]
    total_gain: f64,
}

impl ReconcileSummary {
    pub(super) fn of(compiled: &Compiled) -> ReconcileSummary {
        let reconciler = compiled.reconciler();
        let (fit, parameters) = match compiled {
            Compiled::Plain(_) => (None, None),
            Compiled::Fitted(fitted) => {
                (fitted.report().cloned(), Some(fitted.parameters().clone()))
            }
        };
        let plan = reconciler.plan().clone();
        let mut engines: Vec<ReconcileEngine> = plan.parts.iter().map(|part| part.engine).collect();
        engines.dedup();
        let options = reconciler.options();
        let loss = match (options.loss, options.weights.is_some()) {
            (ReconcileLoss::Brier, false) => "Brier score",
            (ReconcileLoss::Brier, true) => "weighted Brier score",
            (_, false) => "log loss",
            (_, true) => "weighted log loss",
        };
        let wanted = options.engine;
        let others = plan.parts.iter().filter(|part| wanted.is_some_and(|it| it != part.engine));
        let others = others.map(|part| {
            format!("{} labels are reconciled by `{}`: {}", part.labels, part.engine, part.why)
        });
        let others = others.collect();
        ReconcileSummary {
            version: env!("CARGO_PKG_VERSION"),
            command: "reconcile",
            loss,
            engines,
            hull: plan.is_hull(),
            rows: 0,
            unchanged_rows: 0,
            mean_gain: 0.0,
            largest_gain: 0.0,
            largest_input_violation: 0.0,
            largest_gap: 0.0,
            most_passes: 0,
            inconsistent_rows: 0,
            first_inconsistent_rows: Vec::new(),
            clipped_rows: 0,
            seconds: 0.0,
            plan,
            fit,
            parameters,
            others,
            watch: FinishedWatch::default(),
            total_gain: 0.0,
        }
    }

    /// Adds a block of rows.
    pub(super) fn add<T: Number>(&mut self, rows: FinishedRows<'_, T>, answer: &Reconciled<T>) {
        if let FinishedRows::Logits(values) = rows {
            self.watch.see(values);
        }
        let clipped = clipped_rows(rows, answer.labels);
        for (at, clipped) in clipped.into_iter().enumerate() {
            self.unchanged_rows += u64::from(answer.is_unchanged(at));
            self.clipped_rows += u64::from(clipped && !answer.is_unchanged(at));
            if matches!(answer.trust[at], Trust::Approximate(_)) {
                self.inconsistent_rows += 1;
                if self.first_inconsistent_rows.len() < NAMED {
                    self.first_inconsistent_rows.push(self.rows + at as u64);
                }
            }
        }
        let most = |known: f64, new: &[f64]| new.iter().copied().fold(known, f64::max);
        self.total_gain += answer.gain.iter().sum::<f64>();
        self.largest_gain = most(self.largest_gain, &answer.gain);
        self.largest_gap = most(self.largest_gap, &answer.gap);
        self.largest_input_violation = most(self.largest_input_violation, &answer.input_violation);
        self.most_passes = answer.passes.iter().copied().fold(self.most_passes, u32::max);
        self.rows += answer.rows() as u64;
    }

    /// After the last row.
    pub(super) fn finish(&mut self, start: Instant) {
        self.seconds = start.elapsed().as_secs_f64();
        self.mean_gain = self.total_gain / self.rows.max(1) as f64;
    }

    /// Says on standard error what was done.
    pub(super) fn tell(&self) {
        self.others.iter().for_each(|line| say(format_args!("phex: {line}")));
        if let Some(report) = &self.fit {
            report.to_string().lines().for_each(|line| say(format_args!("phex: {line}")));
        }
        if self.inconsistent_rows > 0 {
            let rows: Vec<String> =
                self.first_inconsistent_rows.iter().map(u64::to_string).collect();
            let more = if self.inconsistent_rows > rows.len() as u64 { ", …" } else { "" };
            say(format_args!(
                "phex: {} rows did not converge and were left as they were, so they are not \
                 consistent (rows {}{more})",
                self.inconsistent_rows,
                rows.join(", ")
            ));
        }
        if self.watch.looks_finished() {
            say(format_args!(
                "phex: all scores are between 0 and 1, as finished probabilities are, but scores are \
                 logits; --probabilities takes finished probabilities"
            ));
        }
        if self.clipped_rows > 0 {
            say(format_args!(
                "phex: {} of the rows that changed have probabilities of 0 or 1, or very close to \
                 them; their gain counts from probabilities clipped to logits of ±30 (±15 in \
                 single precision)",
                self.clipped_rows
            ));
        }
        say(format_args!("phex: {}", self.line()));
    }

    /// Everything in one line.
    fn line(&self) -> String {
        if self.rows == 0 {
            return String::from("0 rows: the table has nothing but a header");
        }
        let engines: Vec<String> =
            self.engines.iter().map(|engine| format!("`{engine}`")).collect();
        let engines = match engines.is_empty() {
            true => String::from("no engine"),
            false => engines.join(" and "),
        };
        let nats = if self.loss.ends_with("log loss") { " nats" } else { "" };
        let truth = match self.plan.soft {
            0 => "whatever its legal truth",
            _ => "whatever its truth, less what violating soft relations costs that truth",
        };
        let than = match self.fit {
            None => "",
            Some(_) => "below that of the calibrated probabilities ",
        };
        let hull = match self.hull {
            true => "the inequalities describe the consistent probabilities exactly",
            false => "the inequalities are a relaxation, so more could be gained",
        };
        format!(
            "{} rows by {engines}, of which {} were consistent; the {} of a row falls by at least \
             {:.4}{nats} {than}on average, {truth}; {hull}",
            self.rows, self.unchanged_rows, self.loss, self.mean_gain
        )
    }
}
