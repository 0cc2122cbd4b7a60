//! The summary of a run, for people and for programs.

use std::time::Instant;

use phex::infer::{Engine, Method, Plan, Posterior, RowStatus, Trust};
use serde::Serialize;

use super::diagnosis::Diagnosed;
use crate::say::say;

/// How many rows without an answer are named; the rest are counted.
const NAMED: usize = 20;

/// What a run did.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    version: &'static str,
    method: &'static str,
    exact: bool,
    approximate: bool,
    /// The device, for commands that have a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<String>,
    pub(super) rows: u64,
    seconds: f64,
    /// The largest certified error of a marginal. It is 0 if every row is exact, and missing if rows are
    /// approximate.
    #[serde(skip_serializing_if = "Option::is_none")]
    certified_error: Option<f64>,
    /// Rows whose evidence agrees with no legal state.
    impossible_rows: u64,
    /// Rows with a score that is NaN or infinite.
    bad_rows: u64,
    /// The first rows of both kinds, as messages.
    unanswered: Vec<String>,
    /// Notes on the answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// The diagnosis, for approximate engines.
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnosis: Option<Diagnosed>,
    plan: Plan,
}

impl Summary {
    pub(super) fn of(plan: Plan) -> Summary {
        Summary {
            version: env!("CARGO_PKG_VERSION"),
            method: plan.method.name(),
            exact: plan.exact,
            approximate: plan.approximate,
            device: None,
            rows: 0,
            seconds: 0.0,
            certified_error: (!plan.approximate).then_some(0.0),
            impossible_rows: 0,
            bad_rows: 0,
            unanswered: Vec::new(),
            notes: Vec::new(),
            // Annealing has no probabilities to diagnose.
            diagnosis: (plan.approximate && plan.method != Method::Anneal).then(Diagnosed::default),
            plan,
        }
    }

    /// Adds the answers to a block of rows.
    pub(super) fn add<T>(&mut self, engine: &Engine, posterior: &Posterior<T>) {
        if let Some(diagnosed) = &mut self.diagnosis {
            let answers = posterior.status.iter().zip(&posterior.trust).enumerate();
            for (at, (status, trust)) in answers {
                if let (RowStatus::Answered, Trust::Approximate(diagnosis)) = (status, trust) {
                    diagnosed.add(self.rows + at as u64, diagnosis);
                }
            }
        }
        let error = posterior.certified_error();
        self.certified_error = self.certified_error.map(|most| most.max(error));
        self.add_status(engine, &posterior.status);
    }

    /// Adds the status of a block of rows.
    pub(super) fn add_status(&mut self, engine: &Engine, status: &[RowStatus]) {
        for (at, status) in status.iter().enumerate() {
            let row = self.rows as usize + at;
            let Err(error) = status.require_answer(row, engine.model().names()) else { continue };
            let text = match status {
                RowStatus::Impossible if engine.plan().method == Method::Anneal => {
                    format!("row {row}: no legal label set that agrees with the evidence was found")
                }
                _ => error.to_string(),
            };
            match status {
                RowStatus::BadScore { .. } => self.bad_rows += 1,
                _ => self.impossible_rows += 1,
            }
            if self.unanswered.len() < NAMED {
                self.unanswered.push(text);
            }
        }
        self.rows += status.len() as u64;
    }

    /// Adds a note on all answers.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// After the last row.
    pub(super) fn finish(&mut self, start: Instant) {
        self.seconds = start.elapsed().as_secs_f64();
        if let Some(diagnosed) = &mut self.diagnosis {
            diagnosed.finish();
        }
    }

    /// Whether no row has bounds on log Z.
    pub(super) fn is_without_bounds(&self) -> bool {
        self.diagnosis.as_ref().is_none_or(|diagnosis| !diagnosis.has_bounds())
    }

    /// Says on standard error what was done, in one line.
    pub(super) fn tell(&self) {
        let rows = if self.rows == 1 { "row" } else { "rows" };
        let Summary { rows: count, method, seconds, .. } = self;
        say(format_args!("phex: {count} {rows} by `{method}` in {seconds:.2} s"));
    }

    /// Reports on standard error which rows have no answer, which should not be trusted, and notes unless
    /// they are not wanted.
    pub(super) fn complain(&self, quiet: bool) {
        self.unanswered.iter().for_each(|text| say(format_args!("phex: {text}; it has no answer")));
        let more = self.bad_rows + self.impossible_rows - self.unanswered.len() as u64;
        if more > 0 {
            say(format_args!("phex: and {more} more rows"));
        }
        if !quiet {
            self.notes.iter().for_each(|note| say(format_args!("phex: {note}")));
        }
        if let Some(error) = self.certified_error.filter(|error| *error > 1e-3) {
            say(format_args!(
                "phex: marginals are certified only to within {error:.2}; see `graph plan`"
            ));
        }
        if let Some(text) = self.diagnosis.as_ref().and_then(Diagnosed::complaint) {
            say(format_args!("phex: {text}"));
        }
    }
}
