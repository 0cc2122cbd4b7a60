//! `paths`: exact inference on hard forests, with one exponential per label.
//!
//! With hard hierarchy, and hard exclusion or one-of in every family, the labels that are on form one
//! path from a root. So the states of a tree are its labels (the path to each), and nothing:
//!
//! ```text
//! s_v = s_parent + ℓ_v,    w_v = e^{s_v − max s},    Z = [nothing] + Σ w_v,
//! p_v = (Σ of w over the subtree of v) / Z
//! ```
//!
//! A one-of group over all leaves leaves the paths that end at a leaf. Where some children of a label
//! do not exclude each other, and for roots that do not, each exclusive set is a tree of its own: its
//! log Z adds to the score of the label that it is below, and its marginals are multiplied by that
//! label's (see [`pass`]).
//!
//! Cost per row: O(n), with one exponential per label and one logarithm per tree.

mod forest;
mod pack;
mod pass;
mod program;
mod runner;
mod sets;
mod tiles;

use std::sync::OnceLock;

use runner::{PathNumber, PathRunner};

use super::family::Family;
use crate::Error;
use crate::infer::compiled::{Compiled, StateList};
use crate::infer::{Answers, Block, Budget, Kernel, LabelSet, Unfit, forward_to_own};
use crate::model::Model;

/// A compiled hard forest.
#[derive(Debug)]
pub(crate) struct Paths {
    runner: PathRunner,
    terms: usize,
    /// Compiled when first requested.
    device_form: OnceLock<DeviceForm>,
}

/// The same model in a form that devices have kernels for.
#[derive(Debug)]
enum DeviceForm {
    /// One tree: its paths as a list of states.
    Listed { start: Vec<u32>, on: Vec<u32>, bias: Vec<f64> },
    /// Several trees.
    Family(Box<Family>),
    /// Too large for either.
    None,
}

impl DeviceForm {
    /// More labels on, summed over states, are not listed.
    const MOST_ON: usize = 50_000_000;

    fn new(runner: &PathRunner, model: &Model) -> DeviceForm {
        if let Some((start, on)) = runner.list_states(DeviceForm::MOST_ON) {
            return DeviceForm::Listed { start, on, bias: model.bias().to_vec() };
        }
        let family = Family::compile(model, None, &Budget::default());
        family.map_or(DeviceForm::None, |family| DeviceForm::Family(Box::new(family)))
    }
}

impl Paths {
    /// Compiles a hard forest whose exclusive sets are sets of siblings.
    pub(crate) fn compile(model: &Model) -> Result<Paths, Unfit> {
        let program = forest::recognise(model)?;
        let runner = PathRunner::new(program, model);
        Ok(Paths { runner, terms: model.terms(), device_form: OnceLock::new() })
    }

    fn operations(&self) -> f64 {
        self.runner.operations()
    }

    fn bytes(&self) -> u64 {
        self.runner.bytes()
    }

    fn run<T: PathNumber>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        self.runner.run(block, answers);
        // Hard relations are never violated.
        if let Some(all) = &mut answers.expectations {
            all[..block.rows() * self.terms].fill(T::ZERO);
        }
    }
}

impl Kernel for Paths {
    forward_to_own!();

    fn view<'a>(&'a self, model: &Model) -> Compiled<'a> {
        match self.device_form.get_or_init(|| DeviceForm::new(&self.runner, model)) {
            DeviceForm::Listed { start, on, bias } => {
                Compiled::States(StateList { start, on, base: model.constant(), bias })
            }
            DeviceForm::Family(family) => family.view().map_or(Compiled::Other, Compiled::Family),
            DeviceForm::None => Compiled::Other,
        }
    }

    fn best(
        &self,
        _model: &Model,
        block: &Block<'_, f64>,
        row: usize,
        k: usize,
    ) -> Result<Vec<LabelSet>, Error> {
        Ok(self.runner.best(block, row, k))
    }

    fn sample(
        &self,
        _model: &Model,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Vec<Vec<bool>>, Error> {
        Ok(self.runner.sample(block, row, count, uniform))
    }
}
