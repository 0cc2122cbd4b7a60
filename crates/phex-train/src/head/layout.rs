//! The place of each weight of a head.
//!
//! All weights are one flat array, so that optimisers, averages and checkpoints are loops over it. The
//! layout names its parts.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::config::{HeadConfig, Norm};

/// A named part of the flat array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedWeights {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) range: Range<usize>,
    /// Whether weight decay applies.
    pub(crate) decays: bool,
}

/// One fully connected layer: `x W + b`, and the scale and shift of its norm.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) weight: Range<usize>,
    pub(super) bias: Range<usize>,
    /// Scale and shift; hidden layers with a norm.
    pub(super) norm: Option<(Range<usize>, Range<usize>)>,
    /// Running mean and variance of a batch norm, in the array of averages.
    pub(super) running: Option<(Range<usize>, Range<usize>)>,
}

/// The parts of the flat arrays of weights and running averages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WeightLayout {
    pub(super) layers: Vec<Layer>,
    pub(crate) weights: Vec<NamedWeights>,
    pub(crate) averages: Vec<NamedWeights>,
}

impl WeightLayout {
    pub(crate) fn new(config: &HeadConfig, inputs: usize, outputs: usize) -> WeightLayout {
        let mut layout =
            WeightLayout { layers: Vec::new(), weights: Vec::new(), averages: Vec::new() };
        let widths: Vec<usize> =
            std::iter::once(inputs).chain(config.hidden.iter().copied()).chain([outputs]).collect();
        for (at, pair) in widths.windows(2).enumerate() {
            let (inputs, outputs) = (pair[0], pair[1]);
            let is_hidden = at + 2 < widths.len();
            let name = |part: &str| format!("layers.{at}.{part}");
            let weight = push(&mut layout.weights, name("weight"), &[inputs, outputs], true);
            let bias = push(&mut layout.weights, name("bias"), &[outputs], false);
            let norm = (is_hidden && config.norm != Norm::None).then(|| {
                let scale = push(&mut layout.weights, name("norm.scale"), &[outputs], false);
                (scale, push(&mut layout.weights, name("norm.shift"), &[outputs], false))
            });
            let running = (is_hidden && config.norm == Norm::Batch).then(|| {
                let mean = push(&mut layout.averages, name("norm.mean"), &[outputs], false);
                (mean, push(&mut layout.averages, name("norm.variance"), &[outputs], false))
            });
            layout.layers.push(Layer { inputs, outputs, weight, bias, norm, running });
        }
        layout
    }

    /// The number of weights.
    pub(crate) fn len(&self) -> usize {
        self.weights.last().map_or(0, |part| part.range.end)
    }

    /// The number of running averages.
    pub(crate) fn averages_len(&self) -> usize {
        self.averages.last().map_or(0, |part| part.range.end)
    }
}

fn push(
    parts: &mut Vec<NamedWeights>,
    name: String,
    shape: &[usize],
    decays: bool,
) -> Range<usize> {
    let start = parts.last().map_or(0, |part| part.range.end);
    let range = start..start + shape.iter().product::<usize>();
    parts.push(NamedWeights { name, shape: shape.to_vec(), range: range.clone(), decays });
    range
}

/// A slice as a matrix.
///
/// # Panics
/// When the slice has another length: the layout is wrong.
pub(super) fn matrix(values: &[f32], rows: usize, columns: usize) -> ArrayView2<'_, f32> {
    match ArrayView2::from_shape((rows, columns), values) {
        Ok(view) => view,
        Err(_) => panic!("{} values are not a {rows} × {columns} matrix", values.len()),
    }
}

/// A slice as a matrix that can be written.
///
/// # Panics
/// When the slice has another length: the layout is wrong.
pub(super) fn matrix_mut(
    values: &mut [f32],
    rows: usize,
    columns: usize,
) -> ArrayViewMut2<'_, f32> {
    let found = values.len();
    match ArrayViewMut2::from_shape((rows, columns), values) {
        Ok(view) => view,
        Err(_) => panic!("{found} values are not a {rows} × {columns} matrix"),
    }
}
