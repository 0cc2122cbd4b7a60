//! Runs a program on blocks of rows: rows into lanes, the passes, and marginals back into rows.
//!
//! 16 rows in single precision or 8 in double precision run side by side; the last few run one by one.
//! A row of singles whose sums along paths are so large that their rounding would show is run again
//! in doubles.

use multiversion::multiversion;

use super::pack::OneRow;
use super::pass::{OFF, Passed, PathBuffers, infer};
use super::program::PathProgram;
use super::tiles;
use crate::infer::pool::Pool;
use crate::infer::registers::registers;
use crate::infer::{Answers, Block, Diagnosis, Evidence};
use crate::model::Model;
use crate::numeric::{Lanes, LogLane, Scalar};

/// A number type of the passes, with the memory of its lanes.
pub(crate) trait PathNumber: LogLane {
    /// Rows whose sums exceed this in size are run again in doubles: beyond it, the rounding error of
    /// a sum would be more than a few units in the fifth digit of a probability.
    const LARGEST_SUM: f64;

    /// Answers a block of rows; returns those whose sums are too large.
    fn run_block(
        runner: &PathRunner,
        block: &Block<'_, Self>,
        answers: &mut Answers<'_, Self>,
    ) -> Vec<usize>;
}

impl PathNumber for f32 {
    const LARGEST_SUM: f64 = 512.0;

    fn run_block(
        runner: &PathRunner,
        block: &Block<'_, f32>,
        answers: &mut Answers<'_, f32>,
    ) -> Vec<usize> {
        runner.run_lanes::<f32, 16>(&runner.singles, block, answers)
    }
}

impl PathNumber for f64 {
    const LARGEST_SUM: f64 = f64::INFINITY;

    fn run_block(
        runner: &PathRunner,
        block: &Block<'_, f64>,
        answers: &mut Answers<'_, f64>,
    ) -> Vec<usize> {
        runner.run_lanes::<f64, 8>(&runner.doubles, block, answers)
    }
}

/// A program with the constants of its model and memory to run in.
#[derive(Debug)]
pub(crate) struct PathRunner {
    pub(super) program: PathProgram,
    /// A fixed addition to each score; empty where all are 0.
    pub(super) bias: Vec<f64>,
    /// What is added to log Z.
    pub(super) constant: f64,
    singles: Pool<PathBuffers<Lanes<f32, 16>>>,
    doubles: Pool<PathBuffers<Lanes<f64, 8>>>,
}

impl PathRunner {
    pub(crate) fn new(program: PathProgram, model: &Model) -> PathRunner {
        let has_bias = model.bias().iter().any(|&bias| bias != 0.0);
        PathRunner {
            program,
            bias: if has_bias { model.bias().to_vec() } else { Vec::new() },
            constant: model.constant(),
            singles: Pool::default(),
            doubles: Pool::default(),
        }
    }

    /// Elementary operations per row, about: two additions, two comparisons and an exponential per
    /// node, and a logarithm per tree.
    pub(crate) fn operations(&self) -> f64 {
        (16 * self.program.len() + 20 * self.program.trees.len()) as f64
    }

    /// Bytes of tables and scratch memory.
    pub(crate) fn bytes(&self) -> u64 {
        let program = &self.program;
        // Four tables of indices and flags, and two vectors of scratch memory.
        (program.len() * (16 + 2 * 64)
            + program.families.len() * 24
            + program.trees.len() * (64 + 40)
            + program.bundles.len() * 32) as u64
    }

    /// Answers a block of rows: marginals and log Z. Expectations are left alone.
    pub(crate) fn run<T: PathNumber>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let again = T::run_block(self, block, answers);
        answers.error[..block.rows()].fill(0.0);
        if !again.is_empty() {
            self.run_again(block, &again, answers);
        }
    }

    /// Answers some of the rows in doubles.
    fn run_again<T: PathNumber>(
        &self,
        block: &Block<'_, T>,
        rows: &[usize],
        answers: &mut Answers<'_, T>,
    ) {
        let n = block.labels();
        let scores: Vec<f64> =
            rows.iter().flat_map(|&row| block.row(row)).map(|score| score.to_f64()).collect();
        let evidence: Option<Vec<Evidence>> = block.evidence.map(|evidence| {
            rows.iter().flat_map(|&row| &evidence[row * n..(row + 1) * n]).copied().collect()
        });
        let wide = Block { labels: n, scores: &scores, evidence: evidence.as_deref() };
        let mut marginals = vec![0.0; scores.len()];
        let mut log_partition = vec![0.0; rows.len()];
        let mut wide_answers = Answers {
            marginals: &mut marginals,
            log_partition: &mut log_partition,
            expectations: None,
            error: &mut vec![0.0; rows.len()],
            diagnosis: &mut vec![Diagnosis::default(); rows.len()],
            standard_errors: None,
        };
        self.run(&wide, &mut wide_answers);
        for ((&row, marginals), log) in rows.iter().zip(marginals.chunks(n)).zip(log_partition) {
            answers.log_partition[row] = log;
            let out = &mut answers.marginals[row * n..(row + 1) * n];
            out.iter_mut().zip(marginals).for_each(|(out, &p)| *out = T::from_f64(p));
        }
    }

    fn run_lanes<T: PathNumber, const L: usize>(
        &self,
        pool: &Pool<PathBuffers<Lanes<T, L>>>,
        block: &Block<'_, T>,
        answers: &mut Answers<'_, T>,
    ) -> Vec<usize> {
        let n = block.labels();
        let mut again = Vec::new();
        let (mut wide, mut single) = (None, None);
        for rows in registers(block.rows(), L) {
            let part = block.slice(rows.clone());
            let marginals = &mut answers.marginals[rows.start * n..rows.end * n];
            let (log_partition, largest) = if rows.len() == 1 {
                let buffers = single.get_or_insert_with(|| PathBuffers::new(&self.program));
                let largest = one_row(self, &part, buffers, marginals);
                (&buffers.log_partition, [largest; L])
            } else {
                let new = || pool.take().unwrap_or_else(|| PathBuffers::new(&self.program));
                let buffers = wide.get_or_insert_with(new);
                let largest = side_by_side(self, &part, buffers, marginals);
                (&buffers.log_partition, largest.0)
            };
            for (lane, row) in rows.enumerate() {
                answers.log_partition[row] = self.constant + log_partition[lane];
                if largest[lane].to_f64() > T::LARGEST_SUM {
                    again.push(row);
                }
            }
        }
        if let Some(buffers) = wide {
            pool.give_back(buffers);
        }
        again
    }
}

/// Evidence as the passes sum it.
#[inline(always)]
fn known<T: Scalar>(evidence: Evidence) -> T {
    match evidence {
        Evidence::On => T::ONE,
        Evidence::Off => T::from_f64(OFF),
        Evidence::Unknown => T::ZERO,
    }
}

/// Answers up to `L` rows; returns the largest sums.
#[multiversion(targets = "simd")]
fn side_by_side<T: PathNumber, const L: usize>(
    runner: &PathRunner,
    block: &Block<'_, T>,
    buffers: &mut PathBuffers<Lanes<T, L>>,
    marginals: &mut [T],
) -> Lanes<T, L> {
    let program = &runner.program;
    tiles::load(block.scores, &program.node_of, &mut buffers.values, |score| score);
    for (&node, &bias) in program.node_of.iter().zip(&runner.bias) {
        let value = &mut buffers.values[node as usize];
        *value = value.map(|score| score + T::from_f64(bias));
    }
    let Passed { factor, largest } = match block.evidence {
        None => infer::<_, false>(program, buffers),
        Some(evidence) => {
            buffers.known.clear();
            buffers.known.resize(program.len(), Lanes::NONE);
            tiles::load(evidence, &program.node_of, &mut buffers.known, known);
            infer::<_, true>(program, buffers)
        }
    };
    tiles::store(&buffers.values, factor, &program.node_of, marginals);
    largest
}

/// Answers one row; returns its largest sum.
#[multiversion(targets = "simd")]
fn one_row<T: PathNumber>(
    runner: &PathRunner,
    block: &Block<'_, T>,
    buffers: &mut PathBuffers<OneRow<T>>,
    marginals: &mut [T],
) -> T {
    let program = &runner.program;
    for (&node, &score) in program.node_of.iter().zip(block.scores) {
        buffers.values[node as usize] = OneRow(score);
    }
    for (&node, &bias) in program.node_of.iter().zip(&runner.bias) {
        buffers.values[node as usize].0 += T::from_f64(bias);
    }
    let Passed { factor, largest } = match block.evidence {
        None => infer::<_, false>(program, buffers),
        Some(evidence) => {
            buffers.known.clear();
            buffers.known.resize(program.len(), OneRow(T::ZERO));
            for (&node, &evidence) in program.node_of.iter().zip(evidence) {
                buffers.known[node as usize] = OneRow(known(evidence));
            }
            infer::<_, true>(program, buffers)
        }
    };
    for (out, &node) in marginals.iter_mut().zip(&program.node_of) {
        *out = buffers.values[node as usize].0 * factor.0;
    }
    largest.0
}
