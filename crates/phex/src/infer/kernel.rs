//! What every engine implements: a model in the form that one engine walks.
//!
//! An engine is a type with `compile(model, …) → Result<Self, Unfit>`, an implementation of
//! [`Kernel`], and one row in [`registry`](super::registry).

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

    /// Answers rows of singles.
    fn run_single(&self, block: &Block<'_, f32>, answers: &mut Answers<'_, f32>);

    /// Answers rows of doubles.
    fn run_double(&self, block: &Block<'_, f64>, answers: &mut Answers<'_, f64>);

    /// Whether a cap makes an exact engine leave something out, so that it only certifies a bound.
    fn is_capped(&self) -> bool {
        false
    }

    /// How wide the compiled form is, where that can be counted.
    fn size(&self) -> Size {
        Size::default()
    }

    /// More about why `auto` chose this engine than the registry says.
    fn detail(&self) -> Option<String> {
        None
    }

    /// The compiled form, for an engine that runs it on another device.
    fn view<'a>(&'a self, _model: &Model) -> Compiled<'a> {
        Compiled::Other
    }

    /// The `k` best label sets of a row, best first. Asked of exact and best-set engines only.
    fn best(
        &self,
        _model: &Model,
        _block: &Block<'_, f64>,
        _row: usize,
        _k: usize,
    ) -> Result<Vec<LabelSet>, Error> {
        Ok(Vec::new())
    }

    /// `count` label sets drawn from a row's distribution. Asked of exact engines only.
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

/// How wide a compiled form is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    /// The largest bag of a junction tree, in variables.
    pub(crate) width: Option<usize>,
    /// The largest bag of a junction tree, in legal states.
    pub(crate) largest_bag: Option<u64>,
    /// Legal states: of the model, or of all bags of a junction tree.
    pub(crate) states: Option<u64>,
}

/// The methods of [`Kernel`] that every engine forwards to its own functions of the same name: `run`
/// for both number types, `operations` and `bytes`.
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
pub(crate) use forward_to_own;
