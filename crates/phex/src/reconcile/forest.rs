//! Rows of a forest, from the input to a repaired and accounted output.

use super::account::Ledger;
use super::compile::Families;
use super::family::{self, Stopping};
use super::plan::ReconcileEngine;
use super::pool::{PoolScratch, pool};
use super::repair;
use super::rows::{Chunk, RowOutcome, RunSettings, accepted};
use crate::infer::Number;
use crate::numeric::sigmoid_slice;

/// A forest and the engine for it.
#[derive(Debug)]
pub(super) struct ForestPart {
    pub(super) forest: Families,
    pub(super) engine: ReconcileEngine,
    lightest: f64,
}

/// Scratch memory for one row at a time.
pub(super) struct Desk<T> {
    /// The input of the row: its probabilities, and the values that are projected.
    pub(super) input: Vec<T>,
    pub(super) values: Vec<f64>,
    pub(super) z: Vec<f64>,
    pub(super) output: Vec<T>,
    pub(super) ledger: Ledger,
}

impl ForestPart {
    pub(super) fn new(forest: Families, engine: ReconcileEngine) -> ForestPart {
        let lightest = forest.weights.iter().copied().fold(f64::INFINITY, f64::min);
        ForestPart { forest, engine, lightest }
    }

    /// Reconciles the rows of a chunk.
    pub(super) fn run<T: Number>(&self, chunk: &mut Chunk<'_, T>, settings: &RunSettings) {
        let forest = &self.forest;
        let mut desk = Desk::new(forest.nodes());
        let mut todo = Vec::new();
        for row in 0..chunk.rows() {
            chunk.gather(row, &forest.labels, &mut desk.input);
            let off = repair::violation(forest, &desk.input);
            if off > 0.0 {
                chunk.outcomes[row].see_violation(off);
                todo.push(row);
            }
        }
        if self.engine == ReconcileEngine::Pool {
            let mut scratch = PoolScratch::default();
            for row in todo {
                desk.open(chunk, &forest.labels, row, settings);
                desk.z.copy_from_slice(&desk.values);
                pool(forest, &mut desk.z, &mut scratch);
                self.finish(chunk, &mut desk, row, 1, settings, true);
            }
            return;
        }
        let mut stopping = Stopping { tolerance: settings.tolerance, passes: settings.passes };
        for attempt in 0..4 {
            let mut again = Vec::new();
            let mut changes = |row: usize, passes: u32, chunk: &mut Chunk<'_, T>, z: &[f64]| {
                desk.open(chunk, &forest.labels, row, settings);
                for ((z, &value), &change) in desk.z.iter_mut().zip(&desk.values).zip(z) {
                    *z = value + change;
                }
                if !self.finish(chunk, &mut desk, row, passes, settings, attempt > 0) {
                    again.push(row);
                }
            };
            let cell = std::cell::RefCell::new(&mut *chunk);
            let load = |row: usize, out: &mut [f64]| {
                cell.borrow().values(row, &forest.labels, settings.loss, out);
            };
            let done = |row: usize, z: &[f64], passes: u32| {
                changes(row, passes, &mut cell.borrow_mut(), z);
            };
            if attempt > 0 {
                family::solve::<f64, 1>(forest, &todo, stopping, load, done);
            } else if T::STEP > 1e-10 {
                family::solve::<T, 16>(forest, &todo, stopping, load, done);
            } else {
                family::solve::<T, 8>(forest, &todo, stopping, load, done);
            }
            if again.is_empty() {
                return;
            }
            todo = again;
            stopping.passes = stopping.passes.saturating_mul(8).max(64);
            stopping.tolerance *= 1e-3;
        }
        todo.into_iter().for_each(|row| chunk.outcomes[row].give_up());
    }

    /// Rounds, repairs and accounts for the answer in `z`, and writes it if it is accepted.
    fn finish<T: Number>(
        &self,
        chunk: &mut Chunk<'_, T>,
        desk: &mut Desk<T>,
        row: usize,
        passes: u32,
        settings: &RunSettings,
        last: bool,
    ) -> bool {
        let forest = &self.forest;
        desk.round(settings);
        repair::fit(forest, &mut desk.output);
        let base = desk.ledger.compare(
            settings.loss,
            &desk.values,
            &desk.input,
            &desk.output,
            &forest.weights,
        );
        let account = desk.ledger.close(forest, base, &desk.output);
        if !accepted::<T>(account.gain, last) {
            return false;
        }
        chunk.scatter(row, &forest.labels, &desk.output);
        let exact = self.engine == ReconcileEngine::Pool;
        let violation = repair::violation(forest, &desk.output);
        chunk.outcomes[row].add(account, violation, passes, exact, self.lightest);
        true
    }
}

impl<T: Number> Desk<T> {
    pub(super) fn new(n: usize) -> Desk<T> {
        Desk {
            input: vec![T::ZERO; n],
            values: vec![0.0; n],
            z: vec![0.0; n],
            output: vec![T::ZERO; n],
            ledger: Ledger::default(),
        }
    }

    /// Reads these labels of a row.
    pub(super) fn open(
        &mut self,
        chunk: &Chunk<'_, T>,
        labels: &[u32],
        row: usize,
        settings: &RunSettings,
    ) {
        chunk.gather(row, labels, &mut self.input);
        chunk.values(row, labels, settings.loss, &mut self.values);
    }

    /// Turns `z` into probabilities of the output. Labels that did not move keep their bits.
    pub(super) fn round(&mut self, settings: &RunSettings) {
        super::rows::round(settings.loss, &self.values, &mut self.z, &self.input, &mut self.output);
    }
}

impl RowOutcome {
    /// Adds what a part of the row gained.
    pub(super) fn add(
        &mut self,
        account: super::account::Account,
        violation: f64,
        passes: u32,
        exact: bool,
        lightest: f64,
    ) {
        self.gain += account.gain;
        self.gap += account.gap;
        self.violation = self.violation.max(violation);
        self.passes = self.passes.max(passes);
        if !exact {
            self.distance = self.distance.max((account.gap / (2.0 * lightest)).sqrt());
        }
    }
}

/// Replaces logits by probabilities, for rows that arrive as logits.
pub(super) fn probabilities_of<T: Number>(logits: &mut [T]) {
    let most = T::from_f64(T::CLIP * 4.0);
    for logit in logits.iter_mut() {
        *logit = if *logit > most { most } else { *logit };
        *logit = if *logit < -most { -most } else { *logit };
    }
    sigmoid_slice(logits);
}
