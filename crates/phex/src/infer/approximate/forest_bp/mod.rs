//! `forest-bp` solves a forest within the model exactly, and joins the remaining relations by
//! messages.
//!
//! The model is split into a forest with counted sets ([`split`]), which `family` solves exactly,
//! and residual pairs R. Every residual pair (i, j) sends each of its labels a message. A message
//! is odds whose logarithm `λ` is added to the label's score:
//!
//! ```text
//! θ' = θ + Σ λ_{j→i}          b = marginals of the forest under θ'
//! λ_{j→i} = ln (ψ₁₀ + ψ₁₁ C) / (ψ₀₀ + ψ₀₁ C),   C = odds(b_j) e^−λ_{i→j}
//! ```
//!
//! This is repeated until b no longer changes. It is belief propagation with the forest as one
//! factor. The loops inside the forest, which plain messages get wrong, are exact. An iteration
//! costs one pass of `family` and O(R).
//!
//! log Z is the Bethe estimate,
//! `log Z_F(θ') + Σ_R (log Σ ψ C_i^x C_j^y − log(1+B_i) − log(1+B_j))`. The same quantities also
//! bound it rigorously, without samples. The upper bound holds because each pair's factor without
//! its messages is at most its largest entry. The lower bound is Jensen's inequality with the
//! forest under θ' as the proposal, where the probability that both labels of a pair are on takes
//! the worst value that Fréchet's bounds allow.
//!
//! Samples show how good the forest under θ' is as a proposal ([`check`]). A low effective sample
//! size proves failure. A high one is evidence of success, but not a certificate.

mod check;
mod messages;
mod split;
#[cfg(all(test, feature = "testkit"))]
mod tests;

use crate::infer::compiled::Compiled;
use crate::infer::{Kernel, forward_to_own};
use std::sync::OnceLock;

use messages::ForestBpRows;
pub use split::Residual;
use split::{Split, ViolationSource};

use crate::infer::approximate::network::{Implied, Network};
use crate::infer::compiled::Joined;
use crate::infer::exact::family::Family;
use crate::infer::exact::junction::Junction;
use crate::infer::{
    Answers, Block, Diagnosis, GroupForm, MessageOptions, Number, Options, SamplingOptions, Unfit,
};
use crate::model::Model;

/// A compiled split.
#[derive(Debug)]
pub(crate) struct ForestBp {
    split: Split,
    /// `exp(−cost)` of the residual pairs.
    weights: Vec<[[f64; 2]; 2]>,
    family: Family,
    /// The whole model. It finds evidence that contradicts relations outside the forest.
    network: Network,
    implied: Implied,
    /// The junction tree of the forest, which draws the samples of the check. Created on first use.
    sampler: OnceLock<Option<Junction>>,
    options: MessageOptions,
    sampling: SamplingOptions,
    seed: u64,
}

/// When residual pairs converge, they typically take this many passes.
const TYPICAL: f64 = 20.0;

impl ForestBp {
    /// Splits a model and compiles its forest.
    pub(crate) fn compile(model: &Model, options: &Options) -> Result<ForestBp, Unfit> {
        let split = Split::new(model)?;
        let family = Family::compile(&split.forest, None, &options.budget)?;
        let network = Network::new(model, GroupForm::Cardinality)?;
        let residual = split.residual.iter();
        let weights = residual.map(|pair| pair.costs.map(|row| row.map(|cost| (-cost).exp())));
        Ok(ForestBp {
            weights: weights.collect(),
            implied: Implied::new(&network),
            network,
            split,
            family,
            sampler: OnceLock::new(),
            options: options.messages,
            sampling: options.sampling,
            seed: options.seed,
        })
    }

    /// Operations per row, for a typical number of passes.
    pub(crate) fn operations(&self) -> f64 {
        TYPICAL * (self.family.operations() + 20.0 * self.split.residual.len() as f64)
    }

    /// Bytes of tables and scratch memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.family.bytes() + (self.split.residual.len() * 16 * 64) as u64
    }

    /// The forest and the pairs outside it, for backends on other devices.
    pub(crate) fn view(&self) -> Option<Joined<'_>> {
        Some(Joined {
            forest: self.family.view()?,
            residual: &self.split.residual,
            network: &self.network,
            implied: &self.implied,
        })
    }

    pub(crate) fn run<T: Number>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let rows = ForestBpRows::iterate(self, block);
        let n = block.labels();
        for row in 0..block.rows() {
            let marginals = answers.marginals[row * n..(row + 1) * n].iter_mut();
            marginals.zip(rows.beliefs(row)).for_each(|(out, &p)| *out = T::from_f64(p));
            answers.log_partition[row] = rows.log_partition(row);
            let possible = answers.log_partition[row] > f64::NEG_INFINITY;
            answers.diagnosis[row] = Diagnosis {
                iterations: rows.iterations[row],
                converged: rows.residual[row] <= self.options.tolerance.max(1e-6),
                residual: rows.residual[row],
                bounds: possible.then(|| rows.bounds(row)),
                effective_sample: (possible && self.sampling.check > 0)
                    .then(|| check::effective_sample(self, &rows, row))
                    .flatten(),
                standard_error: None,
            };
        }
        self.implied.mark(&self.network, block, answers);
        let Some(expectations) = &mut answers.expectations else { return };
        let terms = self.split.sources.len();
        let forest = rows.forest_expectations();
        let width = self.split.forest.relations().len();
        for row in 0..block.rows() {
            let out = &mut expectations[row * terms..(row + 1) * terms];
            for (out, sources) in out.iter_mut().zip(&self.split.sources) {
                let read = |source: &ViolationSource| match *source {
                    ViolationSource::Forest(relation) => forest[row * width + relation],
                    ViolationSource::Label(label) => rows.beliefs(row)[label],
                    ViolationSource::Residual { pair, child: None } => rows.both(row, pair),
                    ViolationSource::Residual { pair, child: Some(child) } => {
                        (rows.beliefs(row)[child] - rows.both(row, pair)).max(0.0)
                    }
                };
                *out = T::from_f64(sources.iter().map(read).sum());
            }
        }
    }
}

impl Kernel for ForestBp {
    forward_to_own!();

    fn detail(&self) -> Option<String> {
        Some(format!("{} pairs are left to messages", self.split.residual.len()))
    }

    fn view<'a>(&'a self, _model: &Model) -> Compiled<'a> {
        self.view().map_or(Compiled::Other, Compiled::Joined)
    }
}
