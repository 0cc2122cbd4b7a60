//! Converts models to and from Ising form: spins `y = 2x − 1`,
//! `E(y) = Σ J_ab y_a y_b + Σ h_a y_a + offset`, `p ∝ exp(−E)`.
//!
//! With `u = w / 4`, an exclusion adds `+u` to `J_ab`, `h_a` and `h_b`. A hierarchy edge adds `−u`
//! to `J`, **`−u` to `h` of the parent and `+u` to `h` of the child** (the paper's formula has
//! these two swapped). A score adds `−ℓ/2` to `h`. The offset makes `E(y) = −log-weight` exactly.
//! Conversion costs O(labels + pairs).

use std::collections::BTreeMap;

use super::{DenseForest, Model, Relation};
use crate::Error;
use crate::graph::LabelId;

/// Fields, couplings and offset of an Ising model.
#[derive(Debug, Clone, PartialEq)]
pub struct Ising {
    /// The names of the spins.
    pub names: Vec<String>,
    /// The field of each spin.
    pub h: Vec<f64>,
    /// Couplings `(a, b, J)` with `a < b`, each pair once, ascending.
    pub j: Vec<(usize, usize, f64)>,
    /// A constant energy.
    pub offset: f64,
}

impl Ising {
    /// The energy of a spin state; `true` means up.
    ///
    /// # Panics
    /// When there is not one spin per field.
    pub fn energy(&self, spins: &[bool]) -> f64 {
        let spin = |at: usize| if spins[at] { 1.0 } else { -1.0 };
        let fields: f64 = self.h.iter().enumerate().map(|(at, h)| h * spin(at)).sum();
        let couplings: f64 = self.j.iter().map(|&(a, b, j)| j * spin(a) * spin(b)).sum();
        fields + couplings + self.offset
    }

    /// The same distribution as a [`Model`] under scores of zero.
    pub fn to_model(&self) -> Model {
        // J y_a y_b = 4J x_a x_b − 2J x_a − 2J x_b + J, and h y = 2h x − h.
        let mut bias: Vec<f64> = self.h.iter().map(|h| -2.0 * h).collect();
        let mut constant = self.h.iter().sum::<f64>() - self.offset;
        let mut relations = Vec::with_capacity(self.j.len());
        for &(a, b, j) in &self.j {
            bias[a] += 2.0 * j;
            bias[b] += 2.0 * j;
            constant -= j;
            let costs = [[0.0, 0.0], [0.0, 4.0 * j]];
            relations.push(Relation::Pair { a: LabelId::from(a), b: LabelId::from(b), costs });
        }
        Model::from_parts(self.names.clone(), bias, constant, relations, Vec::new())
    }
}

impl Model {
    /// The Ising form under these scores.
    ///
    /// An Ising model cannot hold hard constraints, so `hard` is the finite cost that replaces
    /// infinity. A one-of group becomes `hard · (Σ x − 1)²`.
    ///
    /// # Errors
    /// [`Error::HardIsing`] when the model has hard constraints and `hard` is `None`.
    ///
    /// # Panics
    /// When there is not one score per label.
    pub fn to_ising(&self, scores: &[f64], hard: Option<f64>) -> Result<Ising, Error> {
        assert_eq!(scores.len(), self.len(), "one score per label");
        let finite = |cost: f64| match (cost == f64::INFINITY, hard) {
            (false, _) => Ok(cost),
            (true, Some(hard)) => Ok(hard),
            (true, None) => Err(Error::HardIsing),
        };
        let mut sum = Quadratic { linear: vec![0.0; self.len()], ..Quadratic::default() };
        sum.constant = -self.constant;
        for (at, (score, bias)) in scores.iter().zip(&self.bias).enumerate() {
            sum.linear[at] -= score + bias;
        }
        let dense = self.dense.iter().flat_map(DenseForest::relations);
        for relation in self.relations.iter().cloned().chain(dense) {
            match &relation {
                Relation::Hierarchy { parent, child, cost } => {
                    let cost = finite(*cost)?;
                    sum.linear[child.index()] += cost;
                    sum.pair(parent.index(), child.index(), -cost);
                }
                Relation::Exclusion { a, b, cost } => {
                    sum.pair(a.index(), b.index(), finite(*cost)?);
                }
                Relation::Group { labels, cost } => sum.all_pairs(labels, finite(*cost)?),
                Relation::Pair { a, b, costs } => {
                    let mut table = [[0.0; 2]; 2];
                    for (row, given) in table.iter_mut().zip(costs) {
                        for (cell, &cost) in row.iter_mut().zip(given) {
                            *cell = finite(cost)?;
                        }
                    }
                    let [[none, only_b], [only_a, both]] = table;
                    sum.constant += none;
                    sum.linear[a.index()] += only_a - none;
                    sum.linear[b.index()] += only_b - none;
                    sum.pair(a.index(), b.index(), both - only_a - only_b + none);
                }
            }
        }
        for group in &self.one_of {
            // (Σx − 1)² = 1 − Σx + 2 Σ_{a<b} x_a x_b.
            let hard = finite(f64::INFINITY)?;
            sum.constant += hard;
            group.labels.iter().for_each(|id| sum.linear[id.index()] -= hard);
            sum.all_pairs(&group.labels, 2.0 * hard);
        }
        Ok(sum.to_ising(self.names.clone()))
    }

    /// A cost for hard constraints that is larger than the sum of everything soft. If any state is
    /// legal, no state of lowest energy then breaks a hard constraint.
    ///
    /// # Panics
    /// When there is not one score per label.
    pub fn hard_cost(&self, scores: &[f64]) -> f64 {
        assert_eq!(scores.len(), self.len(), "one score per label");
        let fields: f64 =
            scores.iter().zip(&self.bias).map(|(score, bias)| (score + bias).abs()).sum();
        let spread = |relation: &Relation| {
            let (costs, times) = match relation {
                Relation::Hierarchy { cost, .. } | Relation::Exclusion { cost, .. } => {
                    ([*cost; 4], 1.0)
                }
                Relation::Group { labels, cost } => {
                    let m = labels.len() as f64;
                    ([*cost; 4], m * (m - 1.0) / 2.0)
                }
                Relation::Pair { costs: [[none, b], [a, both]], .. } => {
                    ([*none, *b, *a, *both], 1.0)
                }
            };
            let soft = costs.into_iter().filter(|cost| cost.is_finite());
            let (low, high) =
                soft.fold((0.0f64, 0.0f64), |(low, high), cost| (low.min(cost), high.max(cost)));
            times * (high - low)
        };
        let relations: f64 = self.relations.iter().map(spread).sum();
        let dense = self.dense.iter().flat_map(DenseForest::relations);
        1.0 + fields + relations + dense.map(|relation| spread(&relation)).sum::<f64>()
    }
}

/// A polynomial of degree two in 0/1 variables.
#[derive(Default)]
struct Quadratic {
    constant: f64,
    linear: Vec<f64>,
    pairs: BTreeMap<(usize, usize), f64>,
}

impl Quadratic {
    fn pair(&mut self, a: usize, b: usize, value: f64) {
        *self.pairs.entry((a.min(b), a.max(b))).or_insert(0.0) += value;
    }

    fn all_pairs(&mut self, labels: &[LabelId], value: f64) {
        for (at, a) in labels.iter().enumerate() {
            labels[at + 1..].iter().for_each(|b| self.pair(a.index(), b.index(), value));
        }
    }

    fn to_ising(&self, names: Vec<String>) -> Ising {
        let mut h: Vec<f64> = self.linear.iter().map(|value| value / 2.0).collect();
        let mut offset = self.constant + h.iter().sum::<f64>();
        let mut j = Vec::with_capacity(self.pairs.len());
        for (&(a, b), value) in &self.pairs {
            let quarter = value / 4.0;
            h[a] += quarter;
            h[b] += quarter;
            offset += quarter;
            j.push((a, b, quarter));
        }
        Ising { names, h, j, offset }
    }
}
