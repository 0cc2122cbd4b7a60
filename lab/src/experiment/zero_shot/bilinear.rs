//! Baseline: a bilinear map between features and graded predicates (ESZSL, Romera-Paredes and Torr 2015).
//!
//! With rows X (n × d), classes Y (n × z, 1 or −1) and signatures S (z × a, each of length 1):
//! `V = (XᵀX + γ n I)⁻¹ XᵀY S (SᵀS + λ s I)⁻¹`, where s is the mean of the diagonal of SᵀS. The class of x is the
//! one with the largest `x V sᵀ`. Missing predicates count as the threshold. O(n d² + d³ + d² a) for each γ.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, Axis};

use super::data::Predicates;
use super::solve::solve;
use crate::Error;

/// The part of the equations that does not depend on the ridges.
pub(super) struct Bilinear {
    gram: Array2<f64>,
    /// XᵀY S.
    middle: Array2<f64>,
    signatures: Array2<f64>,
    rows: f64,
}

/// Predicates of some classes, each of length 1.
pub(super) fn signatures(predicates: &Predicates, classes: &[usize]) -> Array2<f64> {
    let width = predicates.attributes.len();
    let value = |(at, attribute): (usize, usize)| {
        predicates.graded(classes[at])[attribute].unwrap_or(predicates.threshold)
    };
    let mut all = Array2::from_shape_fn((classes.len(), width), value);
    for mut row in all.axis_iter_mut(Axis(0)) {
        let length = row.dot(&row).sqrt();
        row.mapv_inplace(|value| if length > 0.0 { value / length } else { 0.0 });
    }
    all
}

impl Bilinear {
    /// From rows of features, the index of each row's class, and the signatures of these classes.
    pub(super) fn new(inputs: &Array2<f32>, places: &[usize], signatures: Array2<f64>) -> Bilinear {
        let wide = inputs.mapv(f64::from);
        let mut gram = Array2::zeros((wide.ncols(), wide.ncols()));
        general_mat_mul(1.0, &wide.t(), &wide, 0.0, &mut gram);
        let mut by_class = Array2::<f64>::zeros((wide.ncols(), signatures.nrows()));
        let sum = wide.sum_axis(Axis(0));
        for (row, &place) in wide.axis_iter(Axis(0)).zip(places) {
            by_class.column_mut(place).scaled_add(2.0, &row);
        }
        by_class -= &sum.insert_axis(Axis(1));
        Bilinear { gram, middle: by_class.dot(&signatures), signatures, rows: wide.nrows() as f64 }
    }

    /// One map for each attribute ridge.
    ///
    /// # Errors
    /// [`Error::Broken`] if rounding leaves the equations without a solution.
    pub(super) fn maps(
        &self,
        ridge: f64,
        attribute_ridges: &[f64],
    ) -> Result<Vec<Array2<f64>>, Error> {
        let broken = || Error::Broken {
            message: String::from("the bilinear baseline has no solution; try larger ridges"),
        };
        let mut gram = self.gram.clone();
        gram.diag_mut().mapv_inplace(|value| value + ridge * self.rows);
        let left = solve(gram, self.middle.clone()).ok_or_else(broken)?;
        let square = self.signatures.t().dot(&self.signatures);
        let mean = square.diag().sum() / square.nrows().max(1) as f64;
        let map = |&ridge: &f64| {
            let mut square = square.clone();
            square.diag_mut().mapv_inplace(|value| value + ridge * mean);
            let solved = solve(square, left.t().to_owned()).ok_or_else(broken)?;
            Ok(solved.reversed_axes())
        };
        attribute_ridges.iter().map(map).collect()
    }
}

/// The scores of classes with these signatures.
pub(super) fn scores(
    inputs: ArrayView2<'_, f32>,
    map: &Array2<f64>,
    signatures: &Array2<f64>,
) -> Array2<f64> {
    inputs.mapv(f64::from).dot(&map.dot(&signatures.t()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One feature and one attribute.
    #[test]
    fn one_by_one_is_as_by_hand() {
        let inputs = Array2::from_shape_vec((2, 1), vec![1.0f32, -3.0]).unwrap();
        let signatures = Array2::from_shape_vec((2, 1), vec![1.0, -1.0]).unwrap();
        let found = Bilinear::new(&inputs, &[0, 1], signatures).maps(0.5, &[1.0]).unwrap();
        // XᵀY = [1 + 3, −1 − 3], times S: 8; XᵀX = 10 + 0.5 · 2; SᵀS = 2, its mean 2.
        assert!((found[0][(0, 0)] - 8.0 / 11.0 / 4.0).abs() < 1e-12);
    }

    /// The map is the minimum of ESZSL's objective: no step away from it lowers it.
    #[test]
    fn the_map_minimises_the_objective() {
        let mut random = crate::harness::RandomStream::new(5, "test");
        let inputs = Array2::from_shape_fn((12, 3), |_| random.normal() as f32);
        let signatures = Array2::from_shape_fn((4, 2), |_| random.normal());
        let places: Vec<usize> = (0..12).map(|row| row % 4).collect();
        let (ridge, other) = (0.3, 0.7);
        let bilinear = Bilinear::new(&inputs, &places, signatures.clone());
        let best = bilinear.maps(ridge, &[other]).unwrap().remove(0);
        let wide = inputs.mapv(f64::from);
        let square = signatures.t().dot(&signatures);
        let (g, l) = (ridge * 12.0, other * square.diag().sum() / 2.0);
        let norm = |m: &Array2<f64>| m.iter().map(|x| x * x).sum::<f64>();
        let objective = |v: &Array2<f64>| {
            let target =
                |(row, class): (usize, usize)| if places[row] == class { 1.0 } else { -1.0 };
            let away = wide.dot(v).dot(&signatures.t()) - Array2::from_shape_fn((12, 4), target);
            norm(&away)
                + g * norm(&v.dot(&signatures.t()))
                + l * norm(&wide.dot(v))
                + g * l * norm(v)
        };
        let least = objective(&best);
        for row in 0..3 {
            for column in 0..2 {
                for step in [1e-3, -1e-3] {
                    let mut other = best.clone();
                    other[(row, column)] += step;
                    assert!(objective(&other) > least);
                }
            }
        }
    }
}
