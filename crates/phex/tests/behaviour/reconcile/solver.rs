//! The projection by a conic solver that shares nothing with the engines, not even the inequalities.
//!
//! Minimises `Σ w KL(q ‖ p)` over the mixtures `q = Σ θ_y y` of legal states, which is the hull
//! itself. Each half of a divergence is an exponential cone: `t ≥ q log q` is `q exp(−t/q) ≤ 1`.

use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{ExponentialConeT, NonnegativeConeT, ZeroConeT};
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

/// A linear expression of the unknowns, and what it may be: `Σ a x + s = b`.
#[derive(Debug, Default)]
struct Rows {
    entries: Vec<(usize, usize, f64)>,
    b: Vec<f64>,
}

impl Rows {
    fn add(&mut self, terms: &[(usize, f64)], b: f64) {
        let row = self.b.len();
        self.entries.extend(terms.iter().map(|&(column, value)| (column, row, value)));
        self.b.push(b);
    }

    fn matrix(mut self, columns: usize) -> (CscMatrix<f64>, Vec<f64>) {
        self.entries.sort_by_key(|&(column, row, _)| (column, row));
        let mut starts = vec![0; columns + 1];
        self.entries.iter().for_each(|&(column, ..)| starts[column + 1] += 1);
        (0..columns).for_each(|column| starts[column + 1] += starts[column]);
        let rows = self.entries.iter().map(|&(_, row, _)| row).collect();
        let values = self.entries.iter().map(|&(.., value)| value).collect();
        (CscMatrix::new(self.b.len(), columns, starts, rows, values), self.b)
    }
}

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distance {
    /// The divergence of independent labels.
    Bernoulli,
    /// The divergence of softmax heads: the labels of a head share one distribution.
    Categorical,
    /// The Euclidean distance of probabilities.
    Euclidean,
}

/// The best mixture of states, or `None` if the solver does not vouch for its answer. `input` are
/// logits, logarithms of the probabilities of heads, or probabilities for the Euclidean distance.
pub(super) fn project(
    states: &[Vec<bool>],
    input: &[f64],
    weights: &[f64],
    distance: Distance,
) -> Option<Vec<f64>> {
    let (n, k) = (input.len(), states.len());
    // The unknowns: q, the weights of states, and two bounds for each label.
    let (theta, on, off) = (n, n + k, 2 * n + k);
    let columns = match distance {
        Distance::Bernoulli => 3 * n + k,
        Distance::Categorical => 2 * n + k,
        Distance::Euclidean => n + k,
    };
    let mut rows = Rows::default();
    for label in 0..n {
        let on = states.iter().enumerate().filter(|(_, state)| state[label]);
        let members = on.map(|(y, _)| (theta + y, -1.0));
        rows.add(&[(label, 1.0)].into_iter().chain(members).collect::<Vec<_>>(), 0.0);
    }
    rows.add(&(0..k).map(|y| (theta + y, 1.0)).collect::<Vec<_>>(), 1.0);
    (0..k).for_each(|y| rows.add(&[(theta + y, -1.0)], 0.0));
    let mut cones: Vec<SupportedConeT<f64>> = vec![ZeroConeT(n + 1), NonnegativeConeT(k)];
    let mut linear = vec![0.0; columns];
    let mut quadratic = Vec::new();
    // A constant label has a fixed divergence, and a cone without an interior.
    let varies = |label: usize| states.iter().any(|state| state[label] != states[0][label]);
    for label in 0..n {
        let w = weights[label];
        if distance == Distance::Euclidean {
            linear[label] = -2.0 * w * input[label];
            quadratic.push(2.0 * w);
            continue;
        }
        if !varies(label) {
            continue;
        }
        (linear[label], linear[on + label]) = (-w * input[label], w);
        rows.add(&[(on + label, 1.0)], 0.0);
        rows.add(&[(label, -1.0)], 0.0);
        rows.add(&[], 1.0);
        cones.push(ExponentialConeT());
        if distance == Distance::Bernoulli {
            linear[off + label] = w;
            rows.add(&[(off + label, 1.0)], 0.0);
            rows.add(&[(label, 1.0)], 1.0);
            rows.add(&[], 1.0);
            cones.push(ExponentialConeT());
        }
    }
    let starts = (0..=columns).map(|column| column.min(quadratic.len())).collect();
    let places = (0..quadratic.len()).collect();
    let objective = CscMatrix::new(columns, columns, starts, places, quadratic);
    let (matrix, b) = rows.matrix(columns);
    // The error of a quadratic problem is the square root of its gap.
    let gap = if distance == Distance::Euclidean { 1e-15 } else { 1e-12 };
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: gap,
        tol_gap_rel: gap,
        tol_feas: 1e-12,
        tol_ktratio: 1e-10,
        ..DefaultSettings::default()
    };
    let mut solver = DefaultSolver::new(&objective, &linear, &matrix, &b, &cones, settings).ok()?;
    solver.solve();
    (solver.solution.status == SolverStatus::Solved).then(|| solver.solution.x[..n].to_vec())
}
