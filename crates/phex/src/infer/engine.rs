//! The engine: a model compiled by one method, which runs on blocks of rows.
//!
//! The engine checks the scores and replaces those of bad rows with zero, so that kernels see
//! finite scores only. Exact engines see no scores that could round others away ([`extreme`]). It
//! splits the rows into chunks of 64, which run on the threads of the current rayon pool. Rows that
//! have no answer become NaN in the end.
//!
//! No reduction runs across rows, so the answer for a row does not depend on its block, to the bit.
//! Except for the matrix products of `star`, kernels use no fused multiply-add, so the answer does
//! not depend on the width of the vectors either.

use crate::numeric::GOLDEN;
use crate::numeric::is_usable_score;
use std::sync::{Arc, OnceLock};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::compiled::Compiled;
use super::extreme::{self, Conditioned};
use super::kernel::Kernel;
use super::plan::{self, Plan};
use super::{
    Answers, Block, Diagnosis, LabelSet, Method, NO_BOUND, Number, Options, Posterior, RowStatus,
    Trust, Want,
};
use crate::Error;
use crate::infer::approximate::bounds::Bounds;
use crate::model::{Model, Relation};

/// How many rows one thread processes at a time: enough to fill the lanes, and few enough to share
/// the work.
const CHUNK: usize = 64;

/// A compiled model. It is cheap to clone and can be shared between threads.
///
/// ```
/// use phex::graph::{ExclusionRule, GraphBuilder};
/// use phex::infer::{Block, Engine, Options, Want};
/// use phex::model::Model;
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
/// builder.exclusion_rule(ExclusionRule::Siblings, None);
/// let engine = Engine::compile(Model::new(&builder.build()?)?, &Options::default())?;
/// let posterior = engine.run(&Block::new(3, &[0.0, 2.0, -1.0]), Want::default())?;
/// // A dog or a cat is an animal, and not both.
/// let [animal, dog, cat] = posterior.row(0) else { unreachable!() };
/// assert!(dog + cat <= animal + 1e-12);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Engine {
    model: Arc<Model>,
    kernel: Arc<dyn Kernel>,
    plan: Arc<Plan>,
    options: Options,
    /// Created when bounds are first requested. The inner `None` means that the model is too large
    /// for them.
    bounds: Arc<OnceLock<Option<Bounds>>>,
    /// How much the relations can add to a log-weight.
    spread: f64,
}

impl Engine {
    /// Compiles a model.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when an option is out of range. [`Error::Unfit`] when the requested
    /// method cannot handle the model within the budget, or when no exact method can. It contains
    /// the reason for each method.
    pub fn compile(model: impl Into<Arc<Model>>, options: &Options) -> Result<Engine, Error> {
        options.check()?;
        let model = model.into();
        let (kernel, plan) = plan::choose(&model, options)?;
        let (kernel, plan) = (Arc::from(kernel), Arc::new(plan));
        let spread = extreme::spread(&model);
        let options = options.clone();
        Ok(Engine { model, kernel, plan, options, bounds: Arc::default(), spread })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Which method was chosen, why, and what it costs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The options it was compiled with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The compiled form, for a backend that runs it on another device.
    pub fn compiled(&self) -> Compiled<'_> {
        self.kernel.view(&self.model)
    }

    /// Runs a block of rows. The threads of the current rayon pool share the rows. The result
    /// depends neither on the number of threads nor on the other rows of the block.
    ///
    /// # Errors
    /// [`Error::Columns`] when the block does not have as many labels as the model.
    /// [`Error::BestOnly`] for `anneal`.
    pub fn run<T: Number>(&self, block: &Block<'_, T>, want: Want) -> Result<Posterior<T>, Error> {
        T::run(self, block, want)
    }

    pub(super) fn run_block<T: Number>(
        &self,
        block: &Block<'_, T>,
        want: Want,
    ) -> Result<Posterior<T>, Error> {
        self.columns(block.labels())?;
        if self.plan.method == Method::Anneal {
            return Err(Error::BestOnly);
        }
        let (n, rows) = (self.model.len(), block.rows());
        let relations = self.model.terms();
        let mut posterior = Posterior {
            labels: n,
            marginals: vec![T::ZERO; rows * n],
            log_partition: vec![0.0; rows],
            expectations: (want.expectations || want.entropy)
                .then(|| vec![T::ZERO; rows * relations]),
            entropy: None,
            standard_errors: (want.standard_errors && self.plan.method == Method::Gibbs)
                .then(|| vec![T::ZERO; rows * n]),
            status: block_status(block),
            trust: Vec::new(),
        };
        let mut error = vec![0.0; rows];
        let mut diagnosis = vec![Diagnosis::default(); rows];
        let bounds = if want.bounds { self.bounds() } else { None };
        // Chunks of all buffers are zipped. A buffer that is not wanted yields empty chunks.
        let chunks = rows.div_ceil(CHUNK);
        let expectations = chunks_of(&mut posterior.expectations, relations, chunks);
        let standard_errors = chunks_of(&mut posterior.standard_errors, n, chunks);
        posterior
            .marginals
            .par_chunks_mut(CHUNK * n)
            .zip(posterior.log_partition.par_chunks_mut(CHUNK))
            .zip(error.par_chunks_mut(CHUNK))
            .zip(diagnosis.par_chunks_mut(CHUNK))
            .zip(expectations.into_par_iter())
            .zip(standard_errors.into_par_iter())
            .enumerate()
            .for_each(|(chunk, parts)| {
                let (parts, standard_errors) = parts;
                let ((((marginals, log_partition), error), diagnosis), expectations) = parts;
                let first = chunk * CHUNK;
                let part = block.slice(first..(first + CHUNK).min(rows));
                let status = &posterior.status[first..first + part.rows()];
                let mut answers = Answers {
                    marginals,
                    log_partition,
                    expectations,
                    error,
                    diagnosis,
                    standard_errors,
                };
                self.run_chunk(&part, status, bounds, &mut answers);
            });
        for row in 0..rows {
            self.finish_row(&mut posterior, row);
        }
        let approximate = self.plan.approximate;
        let trust = |(error, diagnosis): (f64, Diagnosis)| match (approximate, error) {
            (true, _) => Trust::Approximate(diagnosis),
            (false, 0.0) => Trust::Exact,
            (false, error) => Trust::Certified(error),
        };
        posterior.trust = error.into_iter().zip(diagnosis).map(trust).collect();
        if want.entropy {
            posterior.entropy = Some(self.entropy(block, &posterior));
        }
        Ok(posterior)
    }

    /// Runs the kernel. Bad rows get scores of zero. Rows with extreme scores are answered one by
    /// one.
    fn run_chunk<T: Number>(
        &self,
        part: &Block<'_, T>,
        status: &[RowStatus],
        bounds: Option<&Bounds>,
        answers: &mut Answers<'_, T>,
    ) {
        let mut run = |part: &Block<'_, T>| {
            T::run_kernel(&*self.kernel, part, answers);
            // Rounding may put the probability of a certain label above 1 in its last digit, and 1
            // - p below 0.
            for p in answers.marginals.iter_mut() {
                *p = if *p > T::ONE { T::ONE } else { *p };
            }
            if let Some(bounds) = bounds {
                bounds.fill(part, answers);
            }
        };
        let extreme = |row: usize| {
            status[row] == RowStatus::Answered
                && !self.plan.approximate
                && part.row(row).iter().any(|score| score.to_f64().abs() > T::LARGE)
        };
        let special: Vec<usize> = (0..part.rows())
            .filter(|&row| status[row] != RowStatus::Answered || extreme(row))
            .collect();
        if special.is_empty() {
            return run(part);
        }
        let n = part.labels();
        let mut scores = part.scores.to_vec();
        special.iter().for_each(|&row| scores[row * n..(row + 1) * n].fill(T::ZERO));
        run(&Block { scores: &scores, ..*part });
        for row in special.into_iter().filter(|&row| extreme(row)) {
            self.run_extreme(part, row, answers);
        }
    }

    /// Answers one row with extreme scores.
    fn run_extreme<T: Number>(
        &self,
        part: &Block<'_, T>,
        row: usize,
        answers: &mut Answers<'_, T>,
    ) {
        let (n, terms) = (self.model.len(), self.model.terms());
        let scores = part.row(row).iter().map(|score| score.to_f64()).collect();
        let evidence = (0..n).map(|label| part.evidence(row, label)).collect();
        let wanted = answers.expectations.is_some();
        let (kernel, model) = (&*self.kernel, &*self.model);
        let answer = extreme::answer(kernel, model, self.spread, scores, evidence, wanted);
        let narrow = |out: &mut [T], values: &[f64]| {
            out.iter_mut().zip(values).for_each(|(out, value)| *out = T::from_f64(value.min(1.0)));
        };
        narrow(&mut answers.marginals[row * n..(row + 1) * n], &answer.marginals);
        if let (Some(all), Some(values)) = (&mut answers.expectations, &answer.expectations) {
            let out = &mut all[row * terms..(row + 1) * terms];
            out.iter_mut().zip(values).for_each(|(out, value)| *out = T::from_f64(*value));
        }
        answers.log_partition[row] = answer.log_partition;
        answers.error[row] = answer.error;
    }

    /// The engines that bound log Z, for approximate engines.
    fn bounds(&self) -> Option<&Bounds> {
        let compile = || Bounds::compile(&self.model, &self.options, self.plan.method);
        if !self.plan.approximate {
            return None;
        }
        self.bounds.get_or_init(compile).as_ref()
    }

    /// Fills rows without an answer with NaN.
    fn finish_row<T: Number>(&self, posterior: &mut Posterior<T>, row: usize) {
        let impossible = posterior.log_partition[row] == f64::NEG_INFINITY;
        if posterior.status[row] == RowStatus::Answered && !impossible {
            if posterior.log_partition[row] == NO_BOUND {
                posterior.log_partition[row] = f64::NEG_INFINITY;
            }
            return;
        }
        if posterior.status[row] == RowStatus::Answered {
            posterior.status[row] = RowStatus::Impossible;
        } else {
            posterior.log_partition[row] = f64::NAN;
        }
        let (n, relations) = (self.model.len(), self.model.terms());
        posterior.marginals[row * n..(row + 1) * n].fill(<T as crate::numeric::Scalar>::NAN);
        if let Some(all) = &mut posterior.expectations {
            all[row * relations..(row + 1) * relations].fill(<T as crate::numeric::Scalar>::NAN);
        }
        if let Some(all) = &mut posterior.standard_errors {
            all[row * n..(row + 1) * n].fill(<T as crate::numeric::Scalar>::NAN);
        }
    }

    /// `H = log Z − Σ θ E[x] + Σ w E[v]`. With evidence, it is over the states that agree with the
    /// evidence.
    fn entropy<T: Number>(&self, block: &Block<'_, T>, posterior: &Posterior<T>) -> Vec<f64> {
        let terms = self.model.terms();
        let expectations = posterior.expectations.as_deref().unwrap_or(&[]);
        let row_entropy = |row: usize| {
            let marginals = posterior.row(row);
            let scores = block.row(row).iter().zip(self.model.bias()).zip(marginals);
            let score: f64 = scores.map(|((s, b), p)| (s.to_f64() + b) * p.to_f64()).sum();
            let violations = &expectations[row * terms..(row + 1) * terms];
            let cost = self.mean_cost(marginals, violations);
            posterior.log_partition[row] - self.model.constant() - score + cost
        };
        (0..posterior.rows()).map(row_entropy).collect()
    }

    /// The expected cost of all terms. Hard terms cost nothing, because they are never violated.
    fn mean_cost<T: Number>(&self, marginals: &[T], violations: &[T]) -> f64 {
        let term = |cost: f64, violations: f64| {
            if violations == 0.0 || cost == f64::INFINITY { 0.0 } else { cost * violations }
        };
        if let Some(dense) = self.model.dense() {
            let costs = dense.edge_cost.iter().chain(&dense.family_cost);
            return costs.zip(violations).map(|(cost, v)| term(*cost, v.to_f64())).sum();
        }
        let relation = |(relation, violations): (&Relation, &T)| match relation {
            Relation::Hierarchy { cost, .. }
            | Relation::Exclusion { cost, .. }
            | Relation::Group { cost, .. } => term(*cost, violations.to_f64()),
            Relation::Pair { a, b, costs } => {
                let (a, b) = (marginals[a.index()].to_f64(), marginals[b.index()].to_f64());
                let both = violations.to_f64();
                let cells = [[1.0 - a - b + both, b - both], [a - both, both]];
                let cells = cells.iter().flatten().zip(costs.iter().flatten());
                cells.map(|(p, cost)| term(*cost, *p)).sum()
            }
        };
        self.model.relations().iter().zip(violations).map(relation).sum()
    }

    /// The `k` most probable label sets of a row, best first. The first is the MAP state. `anneal`
    /// returns the best sets that it finds. Empty when no state agrees with the evidence.
    ///
    /// # Errors
    /// [`Error::Columns`] when the number of labels differs. [`Error::BadScore`] on a NaN or
    /// infinite score. [`Error::NotExact`] when the engine is capped or approximate.
    /// [`Error::Unfit`] when neither this engine nor another exact one can answer.
    pub fn best(
        &self,
        block: &Block<'_, f64>,
        row: usize,
        k: usize,
    ) -> Result<Vec<LabelSet>, Error> {
        self.columns(block.labels())?;
        self.finite(block, row)?;
        if self.plan.method != Method::Anneal {
            self.exact()?;
        }
        let Some(part) = self.conditioned(block, row) else {
            return self.kernel.best(&self.model, block, row, k);
        };
        let small = Block::new(block.labels(), &part.scores).with_evidence(&part.evidence);
        let mut sets = self.kernel.best(&self.model, &small, 0, k)?;
        if sets.len() < k {
            // Sets beyond those that agree with the decided labels are wanted as well.
            return self.kernel.best(&self.model, block, row, k);
        }
        sets.iter_mut().for_each(|set| set.log_weight += part.offset);
        Ok(sets)
    }

    /// A row conditioned on the labels that large scores decide, or `None` for other rows.
    fn conditioned(&self, block: &Block<'_, f64>, row: usize) -> Option<Conditioned> {
        let large = block.row(row).iter().any(|score| score.abs() > extreme::LARGE);
        (large && self.plan.exact).then(|| {
            let evidence = (0..block.labels()).map(|label| block.evidence(row, label)).collect();
            let (kernel, scores) = (&*self.kernel, block.row(row).to_vec());
            extreme::condition(kernel, &self.model, self.spread, scores, evidence)
        })
    }

    /// Draws label sets exactly from the distribution of a row. Empty when no state agrees with the
    /// evidence. The same seed and row give the same sets.
    ///
    /// # Errors
    /// As [`Engine::best`].
    pub fn sample(
        &self,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        seed: u64,
    ) -> Result<Vec<Vec<bool>>, Error> {
        self.columns(block.labels())?;
        self.finite(block, row)?;
        self.exact()?;
        let mut random =
            Xoshiro256PlusPlus::seed_from_u64(seed ^ (row as u64).wrapping_mul(GOLDEN));
        let mut uniform = move || random.random::<f64>();
        match self.conditioned(block, row) {
            None => self.kernel.sample(&self.model, block, row, count, &mut uniform),
            Some(part) => {
                let small = Block::new(block.labels(), &part.scores).with_evidence(&part.evidence);
                self.kernel.sample(&self.model, &small, 0, count, &mut uniform)
            }
        }
    }

    /// Best sets and samples are computed exactly or refused.
    fn exact(&self) -> Result<(), Error> {
        let method = self.plan.method;
        if self.plan.exact { Ok(()) } else { Err(Error::NotExact { method }) }
    }

    fn columns(&self, found: usize) -> Result<(), Error> {
        let expected = self.model.len();
        if found == expected { Ok(()) } else { Err(Error::Columns { expected, found }) }
    }

    fn finite(&self, block: &Block<'_, f64>, row: usize) -> Result<(), Error> {
        match block.row(row).iter().position(|&score| !is_usable_score(score)) {
            None => Ok(()),
            Some(at) => Err(Error::BadScore { row, label: self.model.names()[at].clone() }),
        }
    }
}

/// The slice of a buffer for each chunk of rows, or `None` for each chunk.
fn chunks_of<T>(all: &mut Option<Vec<T>>, width: usize, chunks: usize) -> Vec<Option<&mut [T]>> {
    match all {
        Some(all) if width > 0 => all.chunks_mut(CHUNK * width).map(Some).collect(),
        // Requested, but there is nothing to fill.
        Some(_) => (0..chunks).map(|_| Some(Default::default())).collect(),
        None => (0..chunks).map(|_| None).collect(),
    }
}

fn block_status<T: Number>(block: &Block<'_, T>) -> Vec<RowStatus> {
    let bad = |row: usize| {
        let scores = block.row(row).iter();
        scores.enumerate().find(|(_, score)| !is_usable_score(**score)).map(|(at, _)| at)
    };
    (0..block.rows())
        .map(|row| bad(row).map_or(RowStatus::Answered, |label| RowStatus::BadScore { label }))
        .collect()
}
