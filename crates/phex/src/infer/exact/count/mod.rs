//! `count` handles dense semantics on forests, where every implied pair has a cost.
//!
//! A label that is on pays for each ancestor that is off. Any two incomparable labels that are on
//! pay at their lowest common ancestor. So all that the rest of the forest needs from a subtree is
//! how many of its labels are on; in the other direction, a subtree needs to know how many of its
//! ancestors are on. [`tables`] has the recursion.
//!
//! A row costs O(n² · depth). With a cap M on the counts it costs O(n · M² · depth) and comes with
//! a certificate: the overflow cell is charged too little, so `Z_low ≤ Z ≤ Z_up`, and every
//! marginal is within `1 − Z_low / Z_up` of the exact one.
//!
//! Rows run in scaled linear arithmetic. A row with large scores, or one in which something
//! underflowed, is computed again in the log domain. One-of groups add a layer for each subset of
//! the groups.

mod semiring;
mod tables;
mod trace;

use crate::infer::{Answers, Block, Budget, Evidence, LabelSet, Unfit};
use crate::infer::{Kernel, forward_sets_to_own, forward_to_own};
use crate::model::Model;
use crate::numeric::Scalar;
use semiring::{Linear, Log, Max, Weight};
use tables::{Expected, Inside, Unary, outside};

/// Rows with scores beyond this go straight to the log domain.
const LIMIT: f64 = 300.0;
/// At most this many one-of groups, because each doubles the number of layers.
const MAX_GROUPS: usize = 4;

/// A forest in the form that the recursions use.
#[derive(Debug, Clone)]
pub(crate) struct CountForest {
    parent: Vec<Option<usize>>,
    /// The children of each label; the last entry holds the roots.
    children: Vec<Vec<usize>>,
    depth: Vec<usize>,
    /// Children before parents. The virtual root, `n`, is last.
    bottom_up: Vec<usize>,
    edge_cost: Vec<f64>,
    family_cost: Vec<f64>,
    group: Vec<Option<usize>>,
    layers: usize,
    /// All `(t, t', t ∪ t')` with `t ∩ t' = ∅`.
    disjoint: Vec<(usize, usize, usize)>,
    cap: Option<usize>,
}

impl CountForest {
    /// The cell of a count, which may be the overflow cell.
    #[inline(always)]
    fn capped(&self, count: usize) -> usize {
        self.cap.map_or(count, |cap| count.min(cap + 1))
    }

    fn is_overflow(&self, count: usize) -> bool {
        self.cap.is_some_and(|cap| count > cap)
    }

    /// How many different numbers of ancestors on the children of a node can see.
    fn seen_by_children(&self, node: usize) -> usize {
        if node == self.parent.len() { 1 } else { self.depth[node] + 2 }
    }

    /// The weight of a label by itself when `above` of its ancestors are on.
    fn own_weight<W: Weight>(&self, node: usize, above: usize, on: usize, unary: Unary) -> W {
        let off_above = self.depth[node] - above;
        let cost = if on == 0 || off_above == 0 || self.edge_cost[node] == 0.0 {
            0.0
        } else {
            self.edge_cost[node] * off_above as f64
        };
        W::from_log(unary[on] - cost)
    }

    /// The layer after this label is added, or `None` if its group was already satisfied.
    fn layer_with(&self, node: usize, on: usize, layer: usize) -> Option<usize> {
        match (on, self.group[node]) {
            (1, Some(group)) if layer >> group & 1 == 1 => None,
            (1, Some(group)) => Some(layer | 1 << group),
            _ => Some(layer),
        }
    }
}

/// A compiled dense forest.
#[derive(Debug)]
pub(crate) struct Count {
    forest: CountForest,
    /// With a cap: the forest without it, for rows in which the cap leaves no state.
    uncapped: Option<CountForest>,
    bias: Vec<f64>,
    constant: f64,
    operations: f64,
    cells: f64,
}

impl Count {
    pub(crate) fn compile(
        model: &Model,
        cap: Option<usize>,
        budget: &Budget,
    ) -> Result<Count, Unfit> {
        let Some(dense) = model.dense() else {
            return Err(Unfit::Shape(String::from("it needs dense semantics on a forest")));
        };
        if model.one_of().len() > MAX_GROUPS {
            let groups = model.one_of().len();
            return Err(Unfit::Shape(format!(
                "it can handle at most {MAX_GROUPS} one-of groups; this graph has {groups}"
            )));
        }
        let n = model.len();
        let parent: Vec<Option<usize>> =
            dense.parent.iter().map(|parent| parent.map(|id| id.index())).collect();
        let mut children = vec![Vec::new(); n + 1];
        for (label, parent) in parent.iter().enumerate() {
            children[parent.unwrap_or(n)].push(label);
        }
        // Breadth first from the virtual root, then reversed.
        let mut bottom_up = vec![n];
        let mut depth = vec![0; n];
        let mut at = 0;
        while at < bottom_up.len() {
            let node = bottom_up[at];
            at += 1;
            for &child in &children[node] {
                depth[child] = if node == n { 0 } else { depth[node] + 1 };
                bottom_up.push(child);
            }
        }
        bottom_up.reverse();
        let mut group = vec![None; n];
        for (at, one_of) in model.one_of().iter().enumerate() {
            one_of.labels.iter().for_each(|id| group[id.index()] = Some(at));
        }
        let layers = 1usize << model.one_of().len();
        let all = (0..layers).flat_map(|a| (0..layers).map(move |b| (a, b)));
        let disjoint = all.filter(|(a, b)| a & b == 0).map(|(a, b)| (a, b, a | b)).collect();
        let forest = CountForest {
            parent,
            children,
            depth,
            bottom_up,
            edge_cost: dense.edge_cost.clone(),
            family_cost: dense.family_cost.clone(),
            group,
            layers,
            disjoint,
            cap,
        };
        let (operations, cells) = forest.cost();
        if operations > budget.operations || cells * 8.0 > budget.bytes {
            let needs =
                format!("{operations:.1e} operations per row; a cap on the counts lowers this");
            return Err(Unfit::Budget { needs });
        }
        let (bias, constant) = (model.bias().to_vec(), model.constant());
        let uncapped = cap.map(|_| CountForest { cap: None, ..forest.clone() });
        Ok(Count { forest, uncapped, bias, constant, operations, cells })
    }

    pub(crate) fn operations(&self) -> f64 {
        self.operations
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.cells * 8.0) as u64
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.forest.cap.is_none_or(|cap| cap >= self.forest.parent.len())
    }

    /// The log-weights of off and on for each label.
    fn unary<T: Scalar>(&self, block: &Block<'_, T>, row: usize) -> Vec<Unary> {
        let scores = block.row(row).iter().zip(&self.bias).enumerate();
        scores
            .map(|(label, (score, bias))| {
                let on = score.to_f64() + bias;
                match block.evidence(row, label) {
                    Evidence::Unknown => [0.0, on],
                    Evidence::On => [f64::NEG_INFINITY, on],
                    Evidence::Off => [0.0, f64::NEG_INFINITY],
                }
            })
            .collect()
    }

    pub(crate) fn run<T: Scalar>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let n = self.forest.parent.len();
        for row in 0..block.rows() {
            let unary = self.unary(block, row);
            let tame = unary.iter().all(|u| u[1].abs() <= LIMIT || u[1] == f64::NEG_INFINITY);
            let answer = |forest: &CountForest| {
                let fast = if tame { answer::<Linear>(forest, &unary) } else { None };
                fast.or_else(|| answer::<Log>(forest, &unary))
            };
            let found = answer(&self.forest).or_else(|| answer(self.uncapped.as_ref()?));
            let Some((low, high, expected)) = found else {
                answers.log_partition[row] = f64::NEG_INFINITY;
                answers.error[row] = 0.0;
                continue;
            };
            answers.log_partition[row] = self.constant + low;
            answers.error[row] = if self.is_exact() { 0.0 } else { -(low - high).exp_m1() };
            let out = &mut answers.marginals[row * n..(row + 1) * n];
            out.iter_mut().zip(&expected.marginals).for_each(|(o, &p)| *o = T::from_f64(p));
            if let Some(all) = &mut answers.expectations {
                let terms = expected.violations.len();
                let out = &mut all[row * terms..(row + 1) * terms];
                out.iter_mut().zip(&expected.violations).for_each(|(o, &v)| *o = T::from_f64(v));
            }
        }
    }

    /// The `k` best label sets of one row.
    pub(crate) fn best(&self, block: &Block<'_, f64>, row: usize, k: usize) -> Vec<LabelSet> {
        let unary = self.unary(block, row);
        crate::infer::exact::k_best::k_best(unary, k, |unary| {
            let inside = Inside::<Max>::new(&self.forest, unary)?;
            let (_, best) = inside.log_partition(&self.forest);
            let on = trace::trace(&self.forest, &inside, unary, &mut trace::largest)?;
            Some(LabelSet { log_weight: self.constant + best, on })
        })
    }

    /// Draws label sets from the distribution of one row.
    pub(crate) fn sample(
        &self,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Vec<Vec<bool>> {
        let unary = self.unary(block, row);
        let Some(inside) = Inside::<Log>::new(&self.forest, &unary) else {
            return Vec::new();
        };
        let mut draw = |weights: &[f64]| crate::infer::draw(weights, uniform);
        (0..count).map_while(|_| trace::trace(&self.forest, &inside, &unary, &mut draw)).collect()
    }
}

impl CountForest {
    /// Operations per row, and cells of all tables.
    fn cost(&self) -> (f64, f64) {
        let n = self.parent.len();
        let mut size = vec![0usize; n + 1];
        let (mut operations, mut cells) = (0.0, 0.0);
        let layers = self.layers as f64;
        for &node in &self.bottom_up {
            let above = self.seen_by_children(node) as f64;
            let mut so_far = 0;
            for &child in &self.children[node] {
                let steps = ((so_far + 1) * (size[child] + 1)) as f64;
                operations += 6.0 * above * steps * self.disjoint.len() as f64;
                so_far = self.capped(so_far + size[child]);
                cells += 4.0 * above * (so_far + 1) as f64 * layers;
            }
            size[node] = self.capped(so_far + usize::from(node < n));
            cells += 2.0 * above * (size[node] + 1) as f64 * layers;
        }
        (operations, cells)
    }
}

/// Log Z without and with the overflow, and the expectations. `None` when no state is possible, or
/// when something underflowed in linear weights.
fn answer<W: Weight>(forest: &CountForest, unary: &[Unary]) -> Option<(f64, f64, Expected)> {
    let inside = Inside::<W>::new(forest, unary)?;
    let (high, low) = inside.log_partition(forest);
    if low == f64::NEG_INFINITY {
        return None;
    }
    let expected = outside(forest, &inside, unary, low)?;
    Some((low, high, expected))
}

impl Kernel for Count {
    forward_to_own!();
    forward_sets_to_own!();

    fn is_capped(&self) -> bool {
        !self.is_exact()
    }
}
