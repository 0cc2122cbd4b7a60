//! `family` handles forests in which counted sets of siblings exclude each other.
//!
//! When m labels of a set are on, turning on one more costs q^m, because C(m+1, 2) − C(m, 2) = m.
//! So a set of k siblings is a chain with a counter, for each state y of the parent:
//!
//! ```text
//! F₀(0) = 1,   F_j(m) = F_{j−1}(m) β_c(0) + F_{j−1}(m−1) q^{m−1} f_y β_c(1)       (c the j-th child)
//! β_v(y) = ψ_v(y) Π_sets Σ_m F_k(m)
//! ```
//!
//! Here `f₀` is the weight of the edge below a parent that is off, and `f₁ = 1`. When all edges of
//! a set cost the same, `F⁰(m) = f^m F¹(m)`, and one chain serves both states of the parent. A
//! child that is in no exclusion is a set of its own. The outside pass is the transposed recursion.
//!
//! One-of groups: every quantity has a layer for each subset of the groups that are open at its
//! labels (see [`layers`]). Z is the layer in which every group has its label.
//!
//! A cap M on the counts drops F(m) for m > M. This leaves a subset A of the states with
//! `Z_A ≤ Z ≤ Z_up`, where `Z_up` keeps the overflow in a last cell that is charged too little. The
//! answers (including log Z) are those of A, and every marginal is within `1 − Z_A / Z_up` of the
//! exact one. Rows in which A has no state are answered without the cap.
//!
//! Rows run side by side in the linear domain, scaled by powers of two. At every node [`outside`]
//! checks that the mass is the partition function. A row that fails, because its numbers leave the
//! range of the type, is computed again in the log domain. Clipping scores instead would give wrong
//! answers when two labels beyond the limit exclude each other.
//!
//! A row costs O(Σ k²) over the sets, or O(Σ k M) with a cap, times 3^g for g open groups. Best
//! sets and samples come from a junction tree of the same model.

mod cells;
mod emit;
mod inside;
mod lanes;
pub(crate) mod layers;
mod number;
mod outside;
pub(crate) mod plan;
mod rows;
mod scratch;
mod structure;

#[cfg(test)]
mod tests;
mod weights;

use crate::Error;
use crate::infer::compiled::Compiled;
use crate::infer::exact::junction::Junction;
use crate::infer::{Kernel, LabelSet, Method, Refusal, forward_to_own};
use lanes::{Lanes, Real};
use number::{Log, Semiring};
use plan::ForestProgram;
use rows::{Buffers, LanePass, Scores, Weighed, infer_8, infer_16};
use scratch::Scratch;
use std::sync::OnceLock;
use structure::{SiblingReading, Structure};
use weights::Weights;

use crate::infer::compiled::Forest;
use crate::infer::pool::Pool;
use crate::infer::{Answers, Block, Budget, Evidence, Unfit};
use crate::model::Model;
use crate::numeric::Scalar;

/// A program with its constants in each number type that can hold them.
#[derive(Debug)]
struct CapVariant {
    plan: ForestProgram,
    single: Option<Weights<Lanes<f32, 16>>>,
    double: Option<Weights<Lanes<f64, 8>>>,
    log: Option<Weights<Log>>,
}

impl CapVariant {
    fn new(plan: ForestProgram) -> CapVariant {
        let (single, double, log) = (Weights::new(&plan), Weights::new(&plan), Weights::new(&plan));
        CapVariant { plan, single, double, log }
    }
}

/// Where the expected violations of a relation are read from.
#[derive(Debug, Clone, Copy)]
enum Reading {
    Edge(usize),
    Count(usize),
    Pair(usize),
}

/// A compiled forest.
#[derive(Debug)]
pub(crate) struct Family {
    main: CapVariant,
    /// With an effective cap: the program that keeps the overflow.
    upper: Option<CapVariant>,
    /// With an effective cap: the program without it, for rows in which the cap leaves no state.
    uncapped: Option<CapVariant>,
    scores: Scores,
    readings: Vec<Reading>,
    constant: f64,
    single: Pool<Buffers<f32, 16>>,
    double: Pool<Buffers<f64, 8>>,
    /// Computes best sets and samples. It is compiled on first use.
    junction: OnceLock<Result<Junction, Unfit>>,
}

impl Family {
    /// Compiles a forest with disjoint counted sets of siblings and any one-of groups. With a cap,
    /// states with more labels of one set on are left out, and the resulting error is bounded.
    pub(crate) fn compile(
        model: &Model,
        cap: Option<usize>,
        budget: &Budget,
    ) -> Result<Family, Unfit> {
        let structure = Structure::recognise(model)?;
        let most = cap.map_or(usize::MAX - 1, |cap| cap.max(1));
        let plan = ForestProgram::new(model, &structure, most, false, budget)?;
        let (upper, uncapped) = if plan.capped {
            let upper = ForestProgram::new(model, &structure, most + 1, true, budget)?;
            let uncapped =
                ForestProgram::new(model, &structure, usize::MAX - 1, false, budget).ok();
            (Some(CapVariant::new(upper)), uncapped.map(CapVariant::new))
        } else {
            (None, None)
        };
        let readings = structure.sources.iter().map(|source| match *source {
            SiblingReading::Edge(label) => Reading::Edge(label),
            SiblingReading::Count(set) => Reading::Count(plan.unit_of_set[set]),
            SiblingReading::Pair(set, i, j) => {
                let labels = &structure.sets[set].labels;
                let [i, j] = [i, j].map(|at| plan.place[labels[at]]);
                let base = plan.units[plan.unit_of_set[set]].pairs.unwrap_or(0);
                Reading::Pair(base + i * labels.len() + j)
            }
        });
        Ok(Family {
            readings: readings.collect(),
            main: CapVariant::new(plan),
            upper,
            uncapped,
            scores: Scores::new(model),
            constant: model.constant(),
            single: Pool::default(),
            double: Pool::default(),
            junction: OnceLock::new(),
        })
    }

    /// The junction tree of the same model.
    fn junction(&self, model: &Model) -> Result<&Junction, Error> {
        let compile = || Junction::compile(model, &Budget::default(), 1, 0);
        self.junction.get_or_init(compile).as_ref().map_err(|unfit| {
            let why = unfit.to_string();
            Error::Unfit { refused: vec![Refusal { method: Method::Junction, why }] }
        })
    }

    /// Whether nothing is left out: there is no cap, or no set reaches it.
    pub(crate) fn is_exact(&self) -> bool {
        self.upper.is_none()
    }

    /// The program, for devices, unless a cap leaves something out.
    pub(crate) fn view(&self) -> Option<Forest<'_>> {
        let Scores { bias, shifted, .. } = &self.scores;
        let plan = &self.main.plan;
        self.is_exact().then_some(Forest { plan, bias, shifted, constant: self.constant })
    }

    /// The approximate number of elementary operations per row.
    pub(crate) fn operations(&self) -> f64 {
        self.main.plan.operations + self.upper.as_ref().map_or(0.0, |up| up.plan.operations / 3.0)
    }

    /// Bytes of tables and scratch memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.main.plan.bytes() + self.upper.as_ref().map_or(0, |up| up.plan.bytes())
    }

    /// Runs a block of rows. The answer for a row does not depend on the other rows.
    pub(crate) fn run<T: Scalar>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let single = self.main.single.as_ref().filter(|_| size_of::<T>() == 4);
        let upper = |up: &CapVariant| up.single.is_some() && up.double.is_some();
        if !self.upper.as_ref().is_none_or(upper) {
            return self.run_log(block, answers, 0..block.rows());
        }
        let up = self.upper.as_ref();
        if let Some(weights) = single {
            let up = up.and_then(|up| Some((&up.plan, up.single.as_ref()?)));
            let main = (&self.main.plan, weights);
            self.run_lanes(main, up, &self.single, infer_16, block, answers);
        } else if let Some(weights) = &self.main.double {
            let up = up.and_then(|up| Some((&up.plan, up.double.as_ref()?)));
            let main = (&self.main.plan, weights);
            self.run_lanes(main, up, &self.double, infer_8, block, answers);
        } else {
            self.run_log(block, answers, 0..block.rows());
        }
    }

    fn run_lanes<T: Scalar, C: Real, const L: usize>(
        &self,
        main: Weighed<'_, Lanes<C, L>>,
        upper: Option<Weighed<'_, Lanes<C, L>>>,
        pool: &Pool<Buffers<C, L>>,
        infer: fn(&mut LanePass<'_, C, L>),
        block: &Block<'_, T>,
        answers: &mut Answers<'_, T>,
    ) {
        let n = block.labels();
        let wanted = answers.expectations.is_some();
        let mut kernel = LanePass::new(&self.scores, main, upper, wanted, pool);
        let mut again = Vec::new();
        for from in (0..block.rows()).step_by(L) {
            let rows = from..block.rows().min(from + L);
            kernel.load(&block.slice(rows.clone()));
            infer(&mut kernel);
            kernel.store(&mut answers.marginals[rows.start * n..rows.end * n]);
            for row in rows.clone() {
                let lane = row - from;
                let Some((log_partition, error)) = kernel.log_partition(lane) else {
                    again.push(row);
                    continue;
                };
                answers.log_partition[row] = log_partition + self.constant;
                answers.error[row] = error;
                if let Some(all) = &mut answers.expectations {
                    let read = |value: &Lanes<C, L>| value.0[lane].to_f64();
                    self.read(&kernel.buffers.scratch, read, row, all);
                }
            }
        }
        pool.give_back(kernel.buffers);
        self.run_log(block, answers, again);
    }

    fn read<N: Semiring, T: Scalar>(
        &self,
        scratch: &Scratch<N>,
        value: impl Fn(&N) -> f64,
        row: usize,
        all: &mut [T],
    ) {
        let out = &mut all[row * self.readings.len()..(row + 1) * self.readings.len()];
        for (out, reading) in out.iter_mut().zip(&self.readings) {
            *out = T::from_f64(match *reading {
                Reading::Edge(label) => value(&scratch.edges[label]),
                Reading::Count(unit) => value(&scratch.counts[unit]),
                Reading::Pair(at) => value(&scratch.pairs[at]),
            });
        }
    }

    /// Runs one row at a time in the log domain, which is slow but has any range.
    fn run_log<T: Scalar>(
        &self,
        block: &Block<'_, T>,
        answers: &mut Answers<'_, T>,
        rows: impl IntoIterator<Item = usize>,
    ) {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return;
        }
        let wanted = answers.expectations.is_some();
        let new = |compiled: &CapVariant| {
            let mut scratch = Scratch::<Log>::new(&compiled.plan);
            if wanted {
                scratch.expect_pairs(&compiled.plan);
            }
            scratch
        };
        let mut main = new(&self.main);
        let mut upper = self.upper.as_ref().map(|up| (up, new(up)));
        let mut uncapped = None;
        for row in rows {
            self.weigh(block, row, &mut main);
            let mut low = inside(&self.main, &mut main);
            let mut high = low;
            if let Some((up, scratch)) = &mut upper {
                self.weigh(block, row, scratch);
                high = inside(up, scratch);
            }
            let mut used = (&self.main, &mut main);
            if low < high && low == f64::NEG_INFINITY {
                // The cap leaves no state, although there are some.
                if let Some(compiled) = &self.uncapped {
                    let scratch = uncapped.get_or_insert_with(|| new(compiled));
                    self.weigh(block, row, scratch);
                    low = inside(compiled, scratch);
                    high = low;
                    used = (compiled, scratch);
                }
            }
            answers.log_partition[row] = low + self.constant;
            let n = block.labels();
            let marginals = &mut answers.marginals[row * n..(row + 1) * n];
            if low == f64::NEG_INFINITY {
                answers.error[row] = if high > low { 1.0 } else { 0.0 };
                marginals.fill(T::ZERO);
                let relations = self.readings.len();
                if let Some(all) = &mut answers.expectations {
                    all[row * relations..(row + 1) * relations].fill(T::ZERO);
                }
                continue;
            }
            answers.error[row] = -(-(high - low).max(0.0)).exp_m1();
            let (compiled, scratch) = used;
            if let Some(weights) = &compiled.log {
                scratch.outside(&compiled.plan, weights, wanted);
            }
            for (out, value) in marginals.iter_mut().zip(&scratch.marginals) {
                *out = T::from_f64(*value);
            }
            if let Some(all) = &mut answers.expectations {
                self.read(scratch, |value: &Log| value.0.exp(), row, all);
            }
        }
    }

    /// Writes the log-weights of the labels of a row. They go to the same slots in every program.
    fn weigh<T: Scalar>(&self, block: &Block<'_, T>, row: usize, scratch: &mut Scratch<Log>) {
        let scores = block.row(row).iter().zip(&self.scores.bias).enumerate();
        for (label, (score, bias)) in scores {
            let on = Log(score.to_f64() + bias);
            let weights = match block.evidence(row, label) {
                Evidence::Unknown => [Log::ONE, on],
                Evidence::On => [Log::ZERO, on],
                Evidence::Off => [Log::ONE, Log::ZERO],
            };
            for (slot, weight) in self.main.plan.slots[label].into_iter().zip(weights) {
                scratch.inside[slot] = weight;
            }
        }
    }
}

/// log Z in the log domain.
fn inside(compiled: &CapVariant, scratch: &mut Scratch<Log>) -> f64 {
    if let Some(weights) = &compiled.log {
        scratch.inside(&compiled.plan, weights);
    }
    scratch.value(&compiled.plan).0
}

impl Scores {
    fn new(model: &Model) -> Scores {
        let mut single = vec![true; model.len()];
        let mut shifted = Vec::new();
        for group in model.one_of() {
            if group.labels.iter().all(|label| single[label.index()]) {
                group.labels.iter().for_each(|label| single[label.index()] = false);
                shifted.push(group.labels.iter().map(|label| label.index()).collect());
            }
        }
        let single = (0..model.len()).filter(|&label| single[label]).collect();
        Scores { bias: model.bias().to_vec(), shifted, single }
    }
}

impl Kernel for Family {
    forward_to_own!();

    fn is_capped(&self) -> bool {
        !self.is_exact()
    }

    fn view<'a>(&'a self, _model: &Model) -> Compiled<'a> {
        self.view().map_or(Compiled::Other, Compiled::Family)
    }

    fn best(
        &self,
        model: &Model,
        block: &Block<'_, f64>,
        row: usize,
        k: usize,
    ) -> Result<Vec<LabelSet>, Error> {
        Ok(self.junction(model)?.best(block, row, k))
    }

    fn sample(
        &self,
        model: &Model,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Vec<Vec<bool>>, Error> {
        Ok(self.junction(model)?.sample(block, row, count, uniform))
    }
}
