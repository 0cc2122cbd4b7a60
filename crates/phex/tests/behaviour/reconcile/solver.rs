//! The projection by a conic solver that shares nothing with the engines.
//!
//! Minimises `Σ w KL(q ‖ p)`, or the Euclidean distance. Each half of a divergence is an exponential
//! cone: `t ≥ q log q` is `q exp(−t/q) ≤ 1`. [`project`] does not even share the inequalities: its
//! `q = Σ θ_y y` are the mixtures of legal states, which are the hull itself.

use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{ExponentialConeT, NonnegativeConeT, ZeroConeT};
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

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

/// Coefficients of unknowns.
type Terms = Vec<(usize, f64)>;

/// Where the probabilities may be. The unknowns are the probabilities of the labels, and then others
/// that have a cost and are not negative.
#[derive(Debug, Default)]
pub(super) struct Polytope {
    pub(super) equations: Vec<(Terms, f64)>,
    /// `Σ a x ≤ b`.
    pub(super) inequalities: Vec<(Terms, f64)>,
    pub(super) costs: Vec<f64>,
}

/// What is projected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    /// Logits, logarithms of the probabilities of heads, or probabilities for the Euclidean
    /// distance.
    pub(super) input: &'a [f64],
    pub(super) weights: &'a [f64],
    pub(super) distance: Distance,
}

/// The best mixture of states, or `None` if the solver does not vouch for its answer.
pub(super) fn project(states: &[Vec<bool>], target: Target<'_>) -> Option<Vec<f64>> {
    let n = target.input.len();
    let mut polytope = Polytope { costs: vec![0.0; states.len()], ..Polytope::default() };
    for label in 0..n {
        let on = states.iter().enumerate().filter(|(_, state)| state[label]);
        let members = on.map(|(y, _)| (n + y, -1.0));
        polytope.equations.push(([(label, 1.0)].into_iter().chain(members).collect(), 0.0));
    }
    polytope.equations.push(((0..states.len()).map(|y| (n + y, 1.0)).collect(), 1.0));
    project_into(&polytope, &constants(states), target)
}

/// The value of each label that never changes.
pub(super) fn constants(states: &[Vec<bool>]) -> Vec<Option<bool>> {
    let constant = |label: usize| states.iter().all(|state| state[label] == states[0][label]);
    (0..states[0].len()).map(|label| constant(label).then_some(states[0][label])).collect()
}

/// The nearest point of a polytope. Labels with a constant value have no divergence: their cones
/// would have no interior.
pub(super) fn project_into(
    polytope: &Polytope,
    constant: &[Option<bool>],
    target: Target<'_>,
) -> Option<Vec<f64>> {
    let Target { input, weights, distance } = target;
    let (n, others) = (input.len(), polytope.costs.len());
    let (on, off) = (n + others, 2 * n + others);
    let columns = match distance {
        Distance::Bernoulli => 3 * n + others,
        Distance::Categorical => 2 * n + others,
        Distance::Euclidean => n + others,
    };
    let mut rows = Rows::default();
    polytope.equations.iter().for_each(|(terms, b)| rows.add(terms, *b));
    let equations = rows.b.len();
    polytope.inequalities.iter().for_each(|(terms, b)| rows.add(terms, *b));
    (n..n + others).for_each(|column| rows.add(&[(column, -1.0)], 0.0));
    let mut cones: Vec<SupportedConeT<f64>> =
        vec![ZeroConeT(equations), NonnegativeConeT(rows.b.len() - equations)];
    let mut linear = vec![0.0; columns];
    linear[n..n + others].copy_from_slice(&polytope.costs);
    let mut quadratic = Vec::new();
    for label in 0..n {
        let w = weights[label];
        if distance == Distance::Euclidean {
            linear[label] = -2.0 * w * input[label];
            quadratic.push(2.0 * w);
            continue;
        }
        if constant[label].is_some() {
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

/// Rows `Σ a x + s = b`.
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
