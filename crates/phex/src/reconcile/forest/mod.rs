//! Rows of a forest, from the input to a repaired and accounted output.

pub(super) mod abreast;

use super::compile::Families;
use super::family::{self, Stopping};
use super::plan::ReconcileEngine;
use super::pool::abreast::{Preorder, PreorderScratch, pool_abreast};
use super::pool::{PoolScratch, pool};
use super::rows::account::Ledger;
use super::rows::repair;
use super::rows::{Chunk, RowOutcome, RunSettings, accepted};
use crate::infer::Number;
use crate::numeric::sigmoid_slice;
use abreast::{ABREAST, RowsAbreast, Settled};

/// A forest and the engine for it.
#[derive(Debug)]
pub(super) struct ForestPart {
    pub(super) forest: Families,
    pub(super) engine: ReconcileEngine,
    lightest: f64,
    /// For `pool` on a forest that is not deep.
    preorder: Option<Preorder>,
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
        let pools = engine == ReconcileEngine::Pool;
        let preorder = if pools { Preorder::of(&forest) } else { None };
        ForestPart { forest, engine, lightest, preorder }
    }

    /// Reconciles the rows of a chunk.
    pub(super) fn run<T: Number>(&self, chunk: &mut Chunk<'_, T>, settings: &RunSettings) {
        let forest = &self.forest;
        let mut abreast = RowsAbreast::new(forest);
        let mut todo = Vec::new();
        let all: Vec<usize> = (0..chunk.rows()).collect();
        for rows in all.chunks(ABREAST) {
            let off = abreast.violations(chunk, forest, rows);
            for (&row, &off) in rows.iter().zip(&off).filter(|(_, off)| **off > 0.0) {
                chunk.outcomes[row].see_violation(off);
                todo.push(row);
            }
        }
        match (&self.preorder, self.engine) {
            (Some(preorder), _) => {
                let mut scratch = PreorderScratch::default();
                for rows in todo.chunks(ABREAST) {
                    abreast.open(chunk, forest, rows, settings);
                    abreast.z.copy_from_slice(&abreast.values);
                    pool_abreast(preorder, &mut abreast.z, &mut scratch);
                    abreast.finish(chunk, forest, rows, settings, true, |chunk, settled| {
                        self.note(chunk, settled, 1);
                    });
                }
            }
            (None, ReconcileEngine::Pool) => self.run_deep(chunk, &todo, settings),
            _ => self.run_family(chunk, todo, settings, &mut abreast),
        }
    }

    /// `pool` on a deep forest, row by row.
    fn run_deep<T: Number>(
        &self,
        chunk: &mut Chunk<'_, T>,
        todo: &[usize],
        settings: &RunSettings,
    ) {
        let mut scratch = PoolScratch::default();
        let mut desk = Desk::new(self.forest.nodes());
        for &row in todo {
            desk.open(chunk, &self.forest.labels, row, settings);
            desk.z.copy_from_slice(&desk.values);
            pool(&self.forest, &mut desk.z, &mut scratch);
            self.finish(chunk, &mut desk, row, settings);
        }
    }

    fn run_family<T: Number>(
        &self,
        chunk: &mut Chunk<'_, T>,
        mut todo: Vec<usize>,
        settings: &RunSettings,
        abreast: &mut RowsAbreast<T>,
    ) {
        let forest = &self.forest;
        let mut stopping = Stopping { tolerance: settings.tolerance, passes: settings.passes };
        for attempt in 0..4 {
            let mut again = Vec::new();
            let last = attempt > 0;
            let cell = std::cell::RefCell::new(&mut *chunk);
            // Rows that the solver is done with wait until they fill all lanes.
            let (mut ready, mut passes) = (Vec::new(), Vec::new());
            let mut finish = |abreast: &mut RowsAbreast<T>, rows: &[usize], passes: &[u32]| {
                let chunk = &mut cell.borrow_mut();
                abreast.open(chunk, forest, rows, settings);
                let z = abreast.z.as_flattened_mut().iter_mut();
                z.zip(abreast.values.as_flattened()).for_each(|(z, value)| *z += value);
                let mut taken = passes.iter();
                abreast.finish(chunk, forest, rows, settings, last, |chunk, settled| {
                    let passes = taken.next().copied().unwrap_or(1);
                    if !self.note(chunk, settled, passes) {
                        again.push(settled.row);
                    }
                });
            };
            let load = |row: usize, out: &mut [f64]| {
                cell.borrow().values(row, &forest.labels, settings.loss, out);
            };
            let done = |row: usize, changes: &[f64], taken: u32| {
                let lane = ready.len();
                abreast.z.iter_mut().zip(changes).for_each(|(z, &change)| z[lane] = change);
                ready.push(row);
                passes.push(taken);
                if ready.len() == ABREAST {
                    finish(abreast, &ready, &passes);
                    ready.clear();
                    passes.clear();
                }
            };
            if attempt > 0 {
                family::solve::<f64, 1>(forest, &todo, stopping, load, done);
            } else if T::STEP > 1e-10 {
                family::solve::<T, 16>(forest, &todo, stopping, load, done);
            } else {
                family::solve::<T, 8>(forest, &todo, stopping, load, done);
            }
            if !ready.is_empty() {
                finish(abreast, &ready, &passes);
            }
            if again.is_empty() {
                return;
            }
            todo = again;
            stopping = stopping.harder();
        }
        todo.into_iter().for_each(|row| chunk.outcomes[row].give_up());
    }

    /// Adds an accepted answer to the outcome of its row.
    fn note<T>(&self, chunk: &mut Chunk<'_, T>, settled: Settled, passes: u32) -> bool {
        let Settled { row, account, violation, accepted } = settled;
        if accepted {
            let exact = self.engine == ReconcileEngine::Pool;
            chunk.outcomes[row].add(account, violation, passes, exact, self.lightest);
        }
        accepted
    }

    /// Rounds, repairs and accounts for the answer in `z` of one row, and writes it if it is accepted.
    fn finish<T: Number>(
        &self,
        chunk: &mut Chunk<'_, T>,
        desk: &mut Desk<T>,
        row: usize,
        settings: &RunSettings,
    ) {
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
        let accepted = accepted::<T>(account.gain, true);
        if accepted {
            chunk.scatter(row, &forest.labels, &desk.output);
        }
        let violation = repair::violation(forest, &desk.output);
        self.note(chunk, Settled { row, account, violation, accepted }, 1);
    }
}

impl<T: Number> Desk<T> {
    pub(super) fn new(labels: usize) -> Desk<T> {
        Desk {
            input: vec![T::ZERO; labels],
            values: vec![0.0; labels],
            z: vec![0.0; labels],
            output: vec![T::ZERO; labels],
            ledger: Ledger::default(),
        }
    }

    /// Reads a row.
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
        super::rows::round(settings.loss, &self.values, &self.z, &self.input, &mut self.output);
    }
}

impl RowOutcome {
    /// Adds what a part of the row gained.
    pub(super) fn add(
        &mut self,
        account: super::rows::account::Account,
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
