//! The trait that every engine implements.
//!
//! An engine is a type with `compile(model, …) → Result<Self, Unfit>`, an implementation of
//! [`Kernel`], and one entry in [`registry`](super::registry). The set of engines is closed. Each
//! engine is compiled once, for both number types. An engine that cannot handle a model says why
//! ([`Unfit`](super::Unfit)); `auto` collects these reasons, and they explain its plan.

use std::fmt::Debug;

use super::compiled::Compiled;
use super::{Answers, Block, LabelSet};
use crate::Error;
use crate::model::Model;

/// A model compiled by one engine. Kernels see finite scores only.
pub(crate) trait Kernel: Debug + Send + Sync {
    /// Predicted elementary operations per row.
    fn operations(&self) -> f64;

    /// Predicted bytes of tables and scratch memory.
    fn bytes(&self) -> u64;

    /// Runs rows in single precision.
    fn run_single(&self, block: &Block<'_, f32>, answers: &mut Answers<'_, f32>);

    /// Runs rows in double precision.
    fn run_double(&self, block: &Block<'_, f64>, answers: &mut Answers<'_, f64>);

    /// Whether a cap makes an exact engine leave something out, so that it certifies a bound only.
    fn is_capped(&self) -> bool {
        false
    }

    /// The size of the compiled form, where it can be counted.
    fn size(&self) -> Size {
        Size::default()
    }

    /// An addition to the registry's reason why `auto` chose this engine.
    fn detail(&self) -> Option<String> {
        None
    }

    /// The compiled form, for a backend that runs it on another device.
    fn view<'a>(&'a self, _model: &Model) -> Compiled<'a> {
        Compiled::Other
    }

    /// The `k` best label sets of a row, best first. Only exact engines and engines for best sets
    /// are called.
    fn best(
        &self,
        _model: &Model,
        _block: &Block<'_, f64>,
        _row: usize,
        _k: usize,
    ) -> Result<Vec<LabelSet>, Error> {
        Ok(Vec::new())
    }

    /// Draws `count` label sets from a row's distribution. Only exact engines are called.
    fn sample(
        &self,
        _model: &Model,
        _block: &Block<'_, f64>,
        _row: usize,
        _count: usize,
        _uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Vec<Vec<bool>>, Error> {
        Ok(Vec::new())
    }
}

/// The size of a compiled form.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    /// The largest bag of a junction tree, in variables.
    pub(crate) width: Option<usize>,
    /// The largest bag of a junction tree, in legal states.
    pub(crate) largest_bag: Option<u64>,
    /// The number of legal states: of the model, or in all bags of a junction tree.
    pub(crate) states: Option<u64>,
}

/// Implements the methods of [`Kernel`] that every engine forwards to its own functions of the same
/// name: `run` for both number types, `operations` and `bytes`.
macro_rules! forward_to_own {
    () => {
        fn operations(&self) -> f64 {
            self.operations()
        }
        fn bytes(&self) -> u64 {
            self.bytes()
        }
        fn run_single(
            &self,
            block: &$crate::infer::Block<'_, f32>,
            answers: &mut $crate::infer::Answers<'_, f32>,
        ) {
            self.run(block, answers);
        }
        fn run_double(
            &self,
            block: &$crate::infer::Block<'_, f64>,
            answers: &mut $crate::infer::Answers<'_, f64>,
        ) {
            self.run(block, answers);
        }
    };
}

/// Implements [`Kernel::best`] and [`Kernel::sample`] for an engine that forwards both to its own
/// functions, which do not need the model.
macro_rules! forward_sets_to_own {
    () => {
        fn best(
            &self,
            _model: &$crate::model::Model,
            block: &$crate::infer::Block<'_, f64>,
            row: usize,
            k: usize,
        ) -> Result<Vec<$crate::infer::LabelSet>, $crate::Error> {
            Ok(self.best(block, row, k))
        }
        fn sample(
            &self,
            _model: &$crate::model::Model,
            block: &$crate::infer::Block<'_, f64>,
            row: usize,
            count: usize,
            uniform: &mut dyn FnMut() -> f64,
        ) -> Result<Vec<Vec<bool>>, $crate::Error> {
            Ok(self.sample(block, row, count, uniform))
        }
    };
}
pub(crate) use {forward_sets_to_own, forward_to_own};
