//! Baseline: direct attribute prediction (DAP, Lampert et al. 2009).
//!
//! A logistic model of each binary attribute is trained on the predicates of the seen classes. Then
//! `score(c) = Σ_a log p(x_a = b_ca | row) − log p(x_a = b_ca)`, where the second probability is the share of seen
//! classes with that predicate, or ½ for an attribute that all or none of them have.

use ndarray::{Array2, ArrayView2};

use super::data::Predicates;

/// The slope of the logistic loss of all attributes, for rows of these classes.
pub(super) fn slope(
    predicates: &Predicates,
    logits: &Array2<f32>,
    classes: &[usize],
) -> Array2<f32> {
    Array2::from_shape_fn(logits.raw_dim(), |(row, attribute)| {
        let target = f32::from(u8::from(predicates.has(classes[row], attribute)));
        1.0 / (1.0 + (-logits[(row, attribute)]).exp()) - target
    })
}

/// The share of some classes that have each attribute; ½ if it is none or all of them.
pub(super) fn priors(predicates: &Predicates, seen: &[usize]) -> Vec<f64> {
    let share = |attribute: usize| {
        let count = seen.iter().filter(|&&class| predicates.has(class, attribute)).count();
        if count == 0 || count == seen.len() { 0.5 } else { count as f64 / seen.len() as f64 }
    };
    (0..predicates.attributes.len()).map(share).collect()
}

/// The scores of some classes.
pub(super) fn scores(
    predicates: &Predicates,
    logits: ArrayView2<'_, f32>,
    priors: &[f64],
    classes: &[usize],
) -> Array2<f64> {
    // log σ(±ℓ) without overflow.
    let log = |logit: f64| -> f64 { logit.min(0.0) - (-logit.abs()).exp().ln_1p() };
    Array2::from_shape_fn((logits.nrows(), classes.len()), |(row, at)| {
        let terms = priors.iter().enumerate().map(|(attribute, prior)| {
            let logit = f64::from(logits[(row, attribute)]);
            if predicates.has(classes[at], attribute) {
                log(logit) - prior.ln()
            } else {
                log(-logit) - (1.0 - prior).ln()
            }
        });
        terms.sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_as_by_hand() {
        let names = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
        // Classes: 1 0, 1 1, 0 1.
        let graded = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0].map(Some).to_vec();
        let predicates = Predicates::from_graded(names(3), names(2), graded);
        let seen = priors(&predicates, &[0, 1]);
        assert_eq!(seen, [0.5, 0.5]);
        assert_eq!(priors(&predicates, &[0, 1, 2]), [2.0 / 3.0, 2.0 / 3.0]);
        let logits = Array2::from_shape_vec((1, 2), vec![3.0f32.ln(), 0.0]).unwrap();
        let found = scores(&predicates, logits.view(), &[2.0 / 3.0, 0.5], &[0, 2]);
        // p(a₀) = ¾, p(a₁) = ½: class 0 has ¾ · ½ over ⅔ · ½, class 2 has ¼ · ½ over ⅓ · ½.
        assert!((found[(0, 0)] - (9.0f64 / 8.0).ln()).abs() < 1e-6);
        assert!((found[(0, 1)] - 0.75f64.ln()).abs() < 1e-6);
        let slopes = slope(&predicates, &logits, &[2]);
        assert!((slopes[(0, 0)] - 0.75).abs() < 1e-6 && (slopes[(0, 1)] + 0.5).abs() < 1e-6);
    }
}
