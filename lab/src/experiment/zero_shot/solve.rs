//! Linear equations with a symmetric positive definite matrix, by Cholesky's factors.
//!
//! `A = L Lᵀ`, then `L Y = B` and `Lᵀ X = Y`: n³/3 + 2 n² columns operations.

use ndarray::{Array2, ArrayViewMut2, s};

/// `X` of `A X = B`; `None` if the matrix is not positive definite.
pub(super) fn solve(mut matrix: Array2<f64>, mut right: Array2<f64>) -> Option<Array2<f64>> {
    let n = matrix.nrows();
    factor(&mut matrix)?;
    for row in 0..n {
        let (above, mut below) = right.view_mut().split_at(ndarray::Axis(0), row);
        eliminate(&mut below, &above.view(), (0..row).map(|at| matrix[(row, at)]));
        below.row_mut(0).mapv_inplace(|value| value / matrix[(row, row)]);
    }
    for row in (0..n).rev() {
        let (mut above, below) = right.view_mut().split_at(ndarray::Axis(0), row + 1);
        let mut own = above.slice_mut(s![row.., ..]);
        eliminate(&mut own, &below.view(), (row + 1..n).map(|at| matrix[(at, row)]));
        own.row_mut(0).mapv_inplace(|value| value / matrix[(row, row)]);
    }
    Some(right)
}

/// Subtracts from the first row the others, each times its factor.
fn eliminate(
    own: &mut ArrayViewMut2<'_, f64>,
    others: &ndarray::ArrayView2<'_, f64>,
    factors: impl Iterator<Item = f64>,
) {
    let mut own = own.row_mut(0);
    for (other, factor) in others.outer_iter().zip(factors) {
        own.scaled_add(-factor, &other);
    }
}

/// The lower factor in place of the lower triangle.
fn factor(matrix: &mut Array2<f64>) -> Option<()> {
    for row in 0..matrix.nrows() {
        for column in 0..=row {
            let known = matrix.slice(s![row, ..column]).dot(&matrix.slice(s![column, ..column]));
            let left = matrix[(row, column)] - known;
            if row == column {
                if left <= 0.0 || !left.is_finite() {
                    return None;
                }
                matrix[(row, row)] = left.sqrt();
            } else {
                matrix[(row, column)] = left / matrix[(column, column)];
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::RandomStream;

    #[test]
    fn the_solution_solves() {
        let mut random = RandomStream::new(1, "test");
        for n in [1, 2, 7, 30] {
            let mut draw = |columns| Array2::from_shape_fn((n, columns), |_| random.normal());
            let (root, right) = (draw(n), draw(3));
            let matrix = root.dot(&root.t()) + Array2::<f64>::eye(n);
            let found = solve(matrix.clone(), right.clone()).unwrap();
            let away = matrix.dot(&found) - right;
            assert!(away.iter().all(|x| x.abs() < 1e-9), "{n}");
        }
        // By hand: 4x + 2y = 2, 2x + 3y = 5.
        let matrix = Array2::from_shape_vec((2, 2), vec![4.0, 2.0, 2.0, 3.0]).unwrap();
        let right = Array2::from_shape_vec((2, 1), vec![2.0, 5.0]).unwrap();
        let found = solve(matrix, right).unwrap();
        assert!((found[(0, 0)] + 0.5).abs() < 1e-12 && (found[(1, 0)] - 2.0).abs() < 1e-12);
        let not = Array2::from_shape_vec((2, 2), vec![1.0, 2.0, 2.0, 1.0]).unwrap();
        assert!(solve(not, Array2::zeros((2, 1))).is_none());
    }
}
