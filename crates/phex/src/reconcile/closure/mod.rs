//! `closure`: hierarchies of any shape, and exclusions between two labels, exactly.
//!
//! `q_c ≤ q_p` and `q_i + q_j ≤ 1` are linear in logits: `z_c ≤ z_p` and `z_i ≤ −z_j`. So the
//! projection is the weighted least-squares projection of the logits (or of the probabilities, for
//! the Brier score of hierarchies) onto the values of a partial order ([`order`]): isotonic
//! regression ([`isotonic`]) by maximum closures ([`flow`]). Both sides of every step are exact, so
//! the answer is, up to rounding.
//!
//! The multipliers `λ` are the flows within blocks. With `x` as in `account`, the gain is at least
//! `Σ w [log(1 − q) − log(1 − p)] − Σ max(0, x − Aᵀλ)`, where `x` has the sign of each node and the
//! `x` of negative nodes is added, because a truth that turns its label off turns the node on.

mod flow;
mod isotonic;
mod order;

use self::isotonic::Isotonic;
use self::order::{Limit, SignedOrder, limits};
use super::ReconcileLoss;
use super::compile::{Component, NONE};
use super::newton::{Inequality, RowSystem};
use super::rows::account::Ledger;
use super::rows::{Chunk, RunSettings, round};
use crate::infer::Number;
use crate::numeric::Grid;

/// A part of a graph that is an order.
#[derive(Debug)]
pub(super) struct ClosurePart {
    /// The column of each label.
    labels: Vec<u32>,
    weights: Vec<f64>,
    order: SignedOrder,
    /// The relations in an order in which labels can be limited one after the other.
    limits: Vec<Limit>,
}

/// Scratch memory for one row at a time.
struct OrderDesk<T> {
    input: Vec<T>,
    values: Vec<f64>,
    nodes: Vec<f64>,
    z: Vec<f64>,
    output: Vec<T>,
    ledger: Ledger,
    isotonic: Isotonic,
}

impl ClosurePart {
    /// The part, if it has nothing but hard hierarchy and exclusions between two labels.
    pub(super) fn of(part: &Component, weights: &[f64]) -> Option<ClosurePart> {
        let order = SignedOrder::of(part, weights)?;
        let weights = part.labels.iter().map(|&label| weights[label as usize]).collect();
        Some(ClosurePart { labels: part.labels.clone(), weights, order, limits: limits(part) })
    }

    /// Whether the inequalities describe the hull of the legal states.
    pub(super) fn is_hull(&self) -> bool {
        self.order.is_simple()
    }

    /// Whether labels exclude each other.
    pub(super) fn has_pairs(&self) -> bool {
        self.limits.iter().any(|limit| limit.exclusive)
    }

    /// The inequalities.
    pub(super) fn system(&self) -> RowSystem {
        let row = |limit: &Limit| {
            let (members, upper) = if limit.exclusive {
                (vec![limit.label.min(limit.other), limit.label.max(limit.other)], NONE)
            } else {
                (vec![limit.label], limit.other)
            };
            Inequality { members, upper, equal: false, cap: f64::INFINITY }
        };
        let rows = self.limits.iter().map(row).collect();
        let place: Vec<u32> = (0..self.labels.len() as u32).collect();
        RowSystem::new(self.labels.clone(), self.weights.clone(), rows, &place)
    }

    /// How many inequalities there are.
    pub(super) fn rows(&self) -> usize {
        self.limits.len()
    }

    /// Reconciles the rows of a chunk.
    pub(super) fn run<T: Number>(&self, chunk: &mut Chunk<'_, T>, settings: &RunSettings) {
        let n = self.labels.len();
        let mut desk = OrderDesk {
            input: vec![T::ZERO; n],
            values: vec![0.0; n],
            nodes: vec![0.0; self.order.nodes()],
            z: vec![0.0; n],
            output: vec![T::ZERO; n],
            ledger: Ledger::default(),
            isotonic: Isotonic::default(),
        };
        for row in 0..chunk.rows() {
            chunk.gather(row, &self.labels, &mut desk.input);
            let off = self.violation(&desk.input);
            if off > 0.0 {
                chunk.outcomes[row].see_violation(off);
                self.run_row(chunk, &mut desk, row, settings);
            }
        }
    }

    fn run_row<T: Number>(
        &self,
        chunk: &mut Chunk<'_, T>,
        desk: &mut OrderDesk<T>,
        row: usize,
        settings: &RunSettings,
    ) {
        let OrderDesk { input, values, nodes, z, output, ledger, isotonic } = desk;
        let order = &self.order;
        chunk.values(row, &self.labels, settings.loss, values);
        let labels = || order.label.iter().map(|&label| label as usize).zip(&order.sign);
        nodes.iter_mut().zip(labels()).for_each(|(x, (label, sign))| *x = sign * values[label]);
        isotonic.solve(order, nodes);
        z.fill(0.0);
        for ((label, sign), node) in labels().zip(&isotonic.z) {
            z[label] += order.share * sign * node;
        }
        round(settings.loss, values, z, input, output);
        self.repair(output);
        let base = ledger.compare(settings.loss, values, input, output, &self.weights);
        let shift = &ledger.shift;
        let turned: f64 =
            labels().filter(|(_, sign)| **sign < 0.0).map(|(label, _)| shift[label]).sum();
        let node_shift =
            |v: u32| order.share * order.sign[v as usize] * shift[order.label[v as usize] as usize];
        let scale = if settings.loss == ReconcileLoss::Brier { 2.0 } else { 1.0 };
        let mean = ledger.mean(output);
        let fixed = order.share * turned;
        let enough = mean - fixed + 1e-6 * (1.0 + (base - mean).abs());
        let most = fixed + isotonic.most(order, node_shift, scale, enough);
        let account = ledger.settle(base, most, output);
        chunk.scatter(row, &self.labels, output);
        let violation = self.violation(output);
        chunk.outcomes[row].add(account, violation, 1, true, 1.0);
    }

    /// The largest violation of a row.
    fn violation<T: Grid>(&self, q: &[T]) -> f64 {
        let mut worst = 0.0;
        for limit in &self.limits {
            let (label, other) = (q[limit.label as usize], q[limit.other as usize]);
            let off = if limit.exclusive {
                label.to_f64() + other.to_f64() - 1.0
            } else {
                label.to_f64() - other.to_f64()
            };
            worst = if off > worst { off } else { worst };
        }
        worst
    }

    /// Lowers what rounding left too high.
    fn repair<T: Grid>(&self, q: &mut [T]) {
        for limit in &self.limits {
            let other = q[limit.other as usize];
            let mut most = other;
            if limit.exclusive {
                most = T::round_down(1.0 - other.to_f64());
                while other.to_f64() + most.to_f64() > 1.0 {
                    most = most.below();
                }
            }
            if q[limit.label as usize] > most {
                q[limit.label as usize] = most;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::{Component, component_of};
    use super::*;
    use crate::graph::GraphBuilder;
    use crate::testkit::{HierarchyShape, Random, RandomGraph};

    /// Dykstra-like cyclic projections onto the edges, until nothing moves: slow and simple.
    fn slow(order: &SignedOrder, x: &[f64]) -> Vec<f64> {
        let (mut z, mut lambda) = (x.to_vec(), vec![0.0; order.edges()]);
        for _ in 0..200_000 {
            let mut most: f64 = 0.0;
            for (edge, lambda) in lambda.iter_mut().enumerate() {
                let (low, high) = (order.lower[edge] as usize, order.upper[edge] as usize);
                let (a, b) = (1.0 / order.weight[low], 1.0 / order.weight[high]);
                let step = ((z[low] - z[high]) / (a + b)).max(-*lambda);
                *lambda += step;
                z[low] -= step * a;
                z[high] += step * b;
                most = most.max(step.abs());
            }
            if most < 1e-14 {
                break;
            }
        }
        z
    }

    fn orders() -> impl Iterator<Item = (u64, SignedOrder, Random)> {
        (0..400).filter_map(|seed| {
            let mut random = Random::new(seed);
            let n = 2 + random.below(14);
            let exclusions = if seed % 2 == 0 { 0 } else { random.below(4) };
            let shape = HierarchyShape::Dag;
            let graph = RandomGraph { shape, exclusions, ..RandomGraph::new(n, seed) }.draw();
            let part: Component = component_of(&graph)?;
            let weights: Vec<f64> = (0..n).map(|_| 0.2 + random.next()).collect();
            Some((seed, SignedOrder::of(&part, &weights)?, random))
        })
    }

    #[test]
    fn splitting_agrees_with_cyclic_projections() {
        let mut isotonic = Isotonic::default();
        let (mut simple, mut doubled) = (0, 0);
        for (seed, order, mut random) in orders() {
            let x: Vec<f64> = random.normals(order.nodes());
            // Both nodes of a label have its value.
            let of = |v: usize| order.sign[v] * x[order.label[v] as usize];
            let x: Vec<f64> = (0..order.nodes()).map(of).collect();
            isotonic.solve(&order, &x);
            for (a, b) in isotonic.z.iter().zip(slow(&order, &x)) {
                assert!((a - b).abs() < 1e-9, "seed {seed}: {a} {b}");
            }
            // The multipliers explain all of the change.
            let shift =
                |v: u32| order.weight[v as usize] * (x[v as usize] - isotonic.z[v as usize]);
            let shifts: Vec<f64> = (0..order.nodes() as u32).map(shift).collect();
            let most = isotonic.most(&order, |v| shifts[v as usize], 1.0, 1.0);
            assert!(most < 1e-11, "seed {seed}: {most}");
            simple += usize::from(order.is_simple());
            doubled += usize::from(!order.is_simple());
        }
        assert!(simple > 100 && doubled > 30, "{simple} {doubled}");
    }

    #[test]
    fn exclusive_labels_at_the_ends_of_an_even_path_need_one_node_each() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("a", "b", None).hierarchy("c", "d", None);
        builder.exclusion("b", "d", None);
        let part = component_of(&builder.build().unwrap()).unwrap();
        let order = SignedOrder::of(&part, &[1.0; 4]).unwrap();
        assert!(order.is_simple());
        assert_eq!((order.nodes(), order.edges()), (4, 3));
        // Siblings that exclude each other are below the same label, so their limit is not a pair.
        builder.hierarchy("a", "d", None);
        let part = component_of(&builder.build().unwrap()).unwrap();
        let order = SignedOrder::of(&part, &[1.0; 4]).unwrap();
        assert!(!order.is_simple());
    }
}
