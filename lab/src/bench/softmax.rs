//! A softmax over the columns of a table: the least work that a classifier does anyway.
//!
//! `out = exp(x − max) / Σ exp(x − max)`, in single precision, a row at a time in vectors of 16. Its exponential has a
//! relative error of about 1e-7. It is plain Rust: the libraries of deep learning are up to a few times faster.

use multiversion::multiversion;

const LANES: usize = 16;

/// The probabilities of each row of a table with so many columns.
#[multiversion(targets = "simd")]
pub(super) fn softmax(columns: usize, scores: &[f32], out: &mut [f32]) {
    for (row, out) in scores.chunks_exact(columns).zip(out.chunks_exact_mut(columns)) {
        let (blocks, tail) = row.as_chunks::<LANES>();
        let mut most = [f32::NEG_INFINITY; LANES];
        for block in blocks {
            for (most, &x) in most.iter_mut().zip(block) {
                *most = if x > *most { x } else { *most };
            }
        }
        let most = most.iter().chain(tail).copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0f32; LANES];
        let (out_blocks, out_tail) = out.as_chunks_mut::<LANES>();
        for (block, out) in blocks.iter().zip(out_blocks) {
            for ((out, &x), sum) in out.iter_mut().zip(block).zip(&mut sums) {
                *out = exp(x - most);
                *sum += *out;
            }
        }
        let mut sum: f32 = sums.iter().sum();
        for (out, &x) in out_tail.iter_mut().zip(tail) {
            *out = exp(x - most);
            sum += *out;
        }
        let scale = 1.0 / sum;
        out.iter_mut().for_each(|p| *p *= scale);
    }
}

/// `exp` of numbers up to 0, by a polynomial between −ln 2 / 2 and ln 2 / 2.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding and subtracting it rounds to a whole number.
    const ROUND: f32 = 12_582_912.0;
    let x = if x > -87.0 { x } else { -87.0 };
    let n = x * std::f32::consts::LOG2_E + ROUND - ROUND;
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let p = 1.987_569_1e-4 * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let value = p * r * r + r + 1.0;
    value * f32::from_bits(((n as i32 + 127) << 23) as u32)
}

#[cfg(test)]
mod tests {
    use super::softmax;

    #[test]
    fn rows_are_softmaxes() {
        let columns = 37;
        let scores: Vec<f32> =
            (0..3 * columns).map(|at| (at * 7919 % 101) as f32 * 0.4 - 20.0).collect();
        let mut out = vec![0.0; scores.len()];
        softmax(columns, &scores, &mut out);
        for (row, out) in scores.chunks(columns).zip(out.chunks(columns)) {
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weights: Vec<f64> = row.iter().map(|&x| f64::from(x - most).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for (weight, &p) in weights.iter().zip(out) {
                assert!((weight / sum - f64::from(p)).abs() < 1e-6);
            }
        }
    }
}
