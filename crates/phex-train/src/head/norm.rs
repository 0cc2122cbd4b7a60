//! Batch and layer norm: `y = scale · (z − mean)/√(variance + ε) + shift`, with the mean over the rows of
//! a batch (one per column) or over a row.
//!
//! Backward, with `ẑ` the normalised value, `g = ∂L/∂y · scale` and means over the same axis:
//! `∂L/∂z = (g − mean(g) − ẑ mean(g ẑ)) / √(variance + ε)`.

const EPSILON: f32 = 1e-5;
/// How much of the running averages a batch replaces.
const MOMENTUM: f32 = 0.1;

/// What the backward pass needs.
#[derive(Debug, Clone)]
pub(super) struct Normalised {
    /// Whether the mean is over a row rather than a column.
    by_row: bool,
    /// `ẑ`, rows × columns.
    values: Vec<f32>,
    /// `1/√(variance + ε)`, one per column or one per row.
    inverse: Vec<f32>,
}

/// Over the rows of a batch; updates the `running` mean and variance.
pub(super) fn batch(
    z: &mut [f32],
    columns: usize,
    (scale, shift): (&[f32], &[f32]),
    (mean, variance): (&mut [f32], &mut [f32]),
) -> Normalised {
    let rows = (z.len() / columns) as f32;
    let (mut sums, mut squares) = (vec![0.0f32; columns], vec![0.0f32; columns]);
    for row in z.chunks_exact(columns) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    sums.iter_mut().for_each(|sum| *sum /= rows);
    for row in z.chunks_exact(columns) {
        for ((square, value), mean) in squares.iter_mut().zip(row).zip(&sums) {
            *square += (value - mean) * (value - mean);
        }
    }
    let unbiased = if rows > 1.0 { rows / (rows - 1.0) } else { 1.0 };
    for at in 0..columns {
        squares[at] /= rows;
        mean[at] += MOMENTUM * (sums[at] - mean[at]);
        variance[at] += MOMENTUM * (unbiased * squares[at] - variance[at]);
    }
    let inverse: Vec<f32> = squares.iter().map(|square| 1.0 / (square + EPSILON).sqrt()).collect();
    let mut values = z.to_vec();
    for (row, out) in values.chunks_exact_mut(columns).zip(z.chunks_exact_mut(columns)) {
        for at in 0..columns {
            row[at] = (row[at] - sums[at]) * inverse[at];
            out[at] = scale[at] * row[at] + shift[at];
        }
    }
    Normalised { by_row: false, values, inverse }
}

/// By the running averages, in prediction.
pub(super) fn batch_frozen(
    z: &mut [f32],
    columns: usize,
    (scale, shift): (&[f32], &[f32]),
    (mean, variance): (&[f32], &[f32]),
) {
    for row in z.chunks_exact_mut(columns) {
        for (at, value) in row.iter_mut().enumerate() {
            let normal = (*value - mean[at]) / (variance[at] + EPSILON).sqrt();
            *value = scale[at] * normal + shift[at];
        }
    }
}

/// Over each row.
pub(super) fn layer(z: &mut [f32], columns: usize, (scale, shift): (&[f32], &[f32])) -> Normalised {
    let mut values = z.to_vec();
    let mut inverse = Vec::with_capacity(z.len() / columns);
    for (row, out) in values.chunks_exact_mut(columns).zip(z.chunks_exact_mut(columns)) {
        let mean = row.iter().sum::<f32>() / columns as f32;
        let square = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / columns as f32;
        let factor = 1.0 / (square + EPSILON).sqrt();
        for at in 0..columns {
            row[at] = (row[at] - mean) * factor;
            out[at] = scale[at] * row[at] + shift[at];
        }
        inverse.push(factor);
    }
    Normalised { by_row: true, values, inverse }
}

impl Normalised {
    /// Turns the gradient after the norm into the one before it, in place, and adds those of scale and shift.
    pub(super) fn back(
        &self,
        gradient: &mut [f32],
        columns: usize,
        scale: &[f32],
        (by_scale, by_shift): (&mut [f32], &mut [f32]),
    ) {
        for (g, normal) in gradient.chunks_exact_mut(columns).zip(self.values.chunks_exact(columns))
        {
            for at in 0..columns {
                by_scale[at] += g[at] * normal[at];
                by_shift[at] += g[at];
                g[at] *= scale[at];
            }
        }
        if self.by_row {
            self.back_by_row(gradient, columns);
        } else {
            self.back_by_column(gradient, columns);
        }
    }

    fn back_by_row(&self, gradient: &mut [f32], columns: usize) {
        let rows = gradient.chunks_exact_mut(columns).zip(self.values.chunks_exact(columns));
        for ((g, normal), inverse) in rows.zip(&self.inverse) {
            let mean = g.iter().sum::<f32>() / columns as f32;
            let along = g.iter().zip(normal).map(|(g, n)| g * n).sum::<f32>() / columns as f32;
            for (g, normal) in g.iter_mut().zip(normal) {
                *g = (*g - mean - normal * along) * inverse;
            }
        }
    }

    fn back_by_column(&self, gradient: &mut [f32], columns: usize) {
        let rows = (gradient.len() / columns) as f32;
        let (mut mean, mut along) = (vec![0.0f32; columns], vec![0.0f32; columns]);
        for (g, normal) in gradient.chunks_exact(columns).zip(self.values.chunks_exact(columns)) {
            for at in 0..columns {
                mean[at] += g[at] / rows;
                along[at] += g[at] * normal[at] / rows;
            }
        }
        for (g, normal) in gradient.chunks_exact_mut(columns).zip(self.values.chunks_exact(columns))
        {
            for at in 0..columns {
                g[at] = (g[at] - mean[at] - normal[at] * along[at]) * self.inverse[at];
            }
        }
    }
}
