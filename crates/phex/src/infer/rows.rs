//! Rows of scores with evidence, and the number types that engines run on.

use ndarray::{Array2, ArrayView2, LinalgScalar};

use super::kernel::Kernel;
use super::{Answers, Backend, Evidence, Posterior, Want};
use crate::Error;
use crate::numeric::{Grid, LogLane, Scalar};

/// A number type that engines run on: `f32` or `f64`.
#[allow(private_bounds)] // Sealed, because the elementary functions are private.
pub trait Number: LogLane + Grid + LinalgScalar {
    /// Exact engines answer rows with scores beyond this one by one, in double precision (see
    /// `extreme`). Sums of such scores would lose digits that matter.
    #[doc(hidden)]
    const LARGE: f64;

    /// The one of two matrices with the same entries that has this type.
    fn pick<'a>(narrow: &'a Array2<f32>, wide: &'a Array2<f64>) -> ArrayView2<'a, Self>;

    /// Calls a backend with rows of this type.
    #[doc(hidden)]
    fn run(
        backend: &dyn Backend,
        block: &Block<'_, Self>,
        want: Want,
    ) -> Result<Posterior<Self>, Error>;

    /// Runs a kernel on rows of this type.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn run_kernel(kernel: &dyn Kernel, block: &Block<'_, Self>, answers: &mut Answers<'_, Self>);
}

impl Number for f32 {
    const LARGE: f64 = 256.0;

    fn pick<'a>(narrow: &'a Array2<f32>, _: &'a Array2<f64>) -> ArrayView2<'a, f32> {
        narrow.view()
    }

    fn run(
        backend: &dyn Backend,
        block: &Block<'_, f32>,
        want: Want,
    ) -> Result<Posterior<f32>, Error> {
        backend.run_single(block, want)
    }

    #[allow(private_interfaces)]
    fn run_kernel(kernel: &dyn Kernel, block: &Block<'_, f32>, answers: &mut Answers<'_, f32>) {
        kernel.run_single(block, answers);
    }
}

impl Number for f64 {
    const LARGE: f64 = super::extreme::LARGE;

    fn pick<'a>(_: &'a Array2<f32>, wide: &'a Array2<f64>) -> ArrayView2<'a, f64> {
        wide.view()
    }

    fn run(
        backend: &dyn Backend,
        block: &Block<'_, f64>,
        want: Want,
    ) -> Result<Posterior<f64>, Error> {
        backend.run_double(block, want)
    }

    #[allow(private_interfaces)]
    fn run_kernel(kernel: &dyn Kernel, block: &Block<'_, f64>, answers: &mut Answers<'_, f64>) {
        kernel.run_double(block, answers);
    }
}

/// A block of rows, each with one score per label and optional evidence.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a, T> {
    pub(crate) labels: usize,
    pub(crate) scores: &'a [T],
    pub(crate) evidence: Option<&'a [Evidence]>,
}

impl<'a, T: Scalar> Block<'a, T> {
    /// Rows of `labels` scores each, one after another.
    ///
    /// # Panics
    /// When the number of scores is not a multiple of `labels`.
    pub fn new(labels: usize, scores: &'a [T]) -> Block<'a, T> {
        assert!(labels > 0 && scores.len().is_multiple_of(labels), "rows of {labels} scores");
        Block { labels, scores, evidence: None }
    }

    /// Adds evidence, with one entry per score.
    ///
    /// # Panics
    /// When there is not one entry per score.
    pub fn with_evidence(self, evidence: &'a [Evidence]) -> Block<'a, T> {
        assert_eq!(evidence.len(), self.scores.len(), "one entry of evidence per score");
        Block { evidence: Some(evidence), ..self }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.scores.len() / self.labels
    }

    /// How many labels each row has.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// The scores of a row.
    pub fn row(&self, row: usize) -> &'a [T] {
        &self.scores[row * self.labels..(row + 1) * self.labels]
    }

    /// The evidence for a label in a row.
    pub fn evidence(&self, row: usize, label: usize) -> Evidence {
        self.evidence.map_or(Evidence::Unknown, |evidence| evidence[row * self.labels + label])
    }

    /// Some of the rows.
    pub fn slice(&self, rows: std::ops::Range<usize>) -> Block<'a, T> {
        let range = rows.start * self.labels..rows.end * self.labels;
        let evidence = self.evidence.map(|evidence| &evidence[range.clone()]);
        Block { labels: self.labels, scores: &self.scores[range], evidence }
    }
}
