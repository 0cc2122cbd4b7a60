//! Parts of the recipe of training, for heads and samplers of other frameworks.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyUntypedArrayMethods};
use phex_train::{Recipe, WorkerPart};
use pyo3::prelude::*;

use crate::arrays::{evidence_of, vector};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::head::targets;
use crate::threads::detached;

/// The factor on the score of each label; without `inner_scale`, as the recipe says.
#[pyfunction]
#[pyo3(signature = (graph, inner_scale=None))]
pub(crate) fn score_scales<'py>(
    py: Python<'py>,
    graph: &Graph,
    inner_scale: Option<f64>,
) -> Result<Bound<'py, PyArray1<f32>>, Failure> {
    let scale = inner_scale.unwrap_or_else(|| Recipe::STANDARD.inner_scale_of(&graph.0));
    if !(0.0..=f64::from(f32::MAX)).contains(&scale) {
        return Err(Failure::Input(format!("`inner_scale` is {scale}; it has to be 0 or more")));
    }
    Ok(vector(py, phex::learn::score_scales(&graph.0, scale)))
}

/// Whether each row is labelled with a leaf, or has every leaf on or off.
#[pyfunction]
pub(crate) fn rows_with_leaf<'py>(
    py: Python<'py>,
    graph: &Graph,
    evidence: &Bound<'py, PyArray2<i8>>,
) -> Result<Bound<'py, PyArray1<bool>>, Failure> {
    let names: Vec<String> = graph.0.labels().iter().map(|label| label.name.clone()).collect();
    let evidence = evidence_of(Some(evidence), evidence.shape()[0], &names)?.unwrap_or_default();
    let has_leaf =
        detached(py, || phex_train::rows_with_leaf(&targets(&evidence, graph.0.len()), &graph.0))?;
    Ok(vector(py, has_leaf))
}

/// The rows of one of `of` processes in an epoch; each part of `batch` rows is a batch.
#[pyfunction]
#[pyo3(signature = (has_leaf, share, batch, *, seed, epoch, rank=0, of=1))]
#[allow(clippy::too_many_arguments)] // They are keywords.
pub(crate) fn epoch_rows<'py>(
    py: Python<'py>,
    has_leaf: PyReadonlyArray1<'py, bool>,
    share: f64,
    batch: usize,
    seed: u64,
    epoch: u64,
    rank: usize,
    of: usize,
) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
    let has_leaf = has_leaf.as_array().to_vec();
    if batch == 0 || rank >= of || !(0.0..1.0).contains(&share) {
        let message = "a batch, a share or a rank is out of range";
        return Err(Failure::input(message));
    }
    if u32::try_from(has_leaf.len()).is_err() {
        return Err(Failure::input("there are more than 4,294,967,295 rows"));
    }
    let part = WorkerPart { rank, of };
    let rows = detached(py, || {
        let rows = phex_train::epoch_rows(&has_leaf, share, batch, seed, epoch, part);
        rows.into_iter().map(i64::from).collect()
    })?;
    Ok(vector(py, rows))
}
