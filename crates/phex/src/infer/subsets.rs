//! `subsets`: classes × attributes without a one-of group, certified.
//!
//! The attributes are independent given the set `S` of classes that are on, so they are summed out:
//!
//! ```text
//! W(S) = Π_{c ∈ S} e^{ℓ_c} · Π_{i<j ∈ S} q_ij · Π_a F_a(S) / F_a(∅),
//! F_a(S) = exp(−Σ_{c ∈ S} off_ca) + exp(ℓ_a − Σ_{c ∈ S} on_ca),   Z = Π_a F_a(∅) · Σ_S W(S)
//! ```
//!
//! Sets are listed by size. One more class multiplies a weight by at most `e^{ℓ_c} q^{|S|}` (`q` the
//! weakest exclusion between classes), so with `T_m` the sum over sets of size `m`,
//! `T_{m+1} ≤ q^m Σ_c e^{ℓ_c} / (m + 1) · T_m`. Sizes grow until the bound on the rest is small or the
//! budget is spent; every marginal is then within `rest / (found + rest)` of exact. A row costs
//! O(sets · attributes); everything is kept in the log domain.

use super::{Answers, Block, Budget, Evidence, Scalar, Unfit};
use crate::graph::LabelId;
use crate::model::{Model, Relation};

/// Sizes stop growing when the rest is certified to be below this.
const GOOD: f64 = 1e-9;

/// Takes a set of classes, the probability of each attribute given it, and its log-weight.
type Visit<'v> = dyn FnMut(&[usize], &[f64], f64) + 'v;

/// Classes, attributes and their costs.
#[derive(Debug)]
pub(crate) struct Subsets {
    classes: Vec<LabelId>,
    attributes: Vec<LabelId>,
    /// What class × class pairs cost, `classes²` entries.
    between: Vec<f64>,
    /// What an attribute costs while a class is on: off, on.
    cells: Vec<[f64; 2]>,
    /// The weakest exclusion between two classes.
    weakest: f64,
    bias: Vec<f64>,
    constant: f64,
    relations: Vec<Relation>,
    labels: usize,
    /// Sets that may be listed a row.
    most_sets: f64,
}

impl Subsets {
    pub(crate) fn compile(model: &Model, budget: &Budget) -> Result<Subsets, Unfit> {
        let shape = |text: String| Err(Unfit::Shape(text));
        if model.dense().is_some() {
            return shape(String::from("the semantics are dense"));
        }
        if !model.one_of().is_empty() {
            return shape(String::from("it has one-of groups"));
        }
        let is_attribute = sides(model).map_err(Unfit::Shape)?;
        let ids = || (0..model.len()).map(LabelId::from);
        let attributes: Vec<LabelId> = ids().filter(|id| is_attribute[id.index()]).collect();
        let classes: Vec<LabelId> = ids().filter(|id| !is_attribute[id.index()]).collect();
        let mut position = vec![0; model.len()];
        for list in [&classes, &attributes] {
            list.iter().enumerate().for_each(|(at, id)| position[id.index()] = at);
        }
        let (c_count, a_count) = (classes.len(), attributes.len());
        let mut between = vec![0.0; c_count * c_count];
        let mut cells = vec![[0.0; 2]; c_count * a_count];
        for relation in model.relations() {
            let labels = relation.labels();
            let inside = labels.iter().all(|id| !is_attribute[id.index()]);
            if inside {
                for (at, x) in labels.iter().enumerate() {
                    for y in &labels[at + 1..] {
                        let cost = relation.cost(|id| id == *x || id == *y);
                        let (x, y) = (position[x.index()], position[y.index()]);
                        between[x * c_count + y] += cost;
                        between[y * c_count + x] += cost;
                    }
                }
                continue;
            }
            let (x, y) = (labels[0], labels[1]);
            let (class, attribute) = if is_attribute[x.index()] { (y, x) } else { (x, y) };
            let cost = |class_on: bool, on: bool| {
                relation.cost(|id| if id == class { class_on } else { on })
            };
            if cost(false, false) != 0.0 || cost(false, true) != 0.0 {
                let name = &model.names()[class.index()];
                return shape(format!("`{name}` costs something while it is off"));
            }
            let cell = &mut cells[position[class.index()] * a_count + position[attribute.index()]];
            cell[0] += cost(true, false);
            cell[1] += cost(true, true);
        }
        let pairs = (0..c_count).flat_map(|x| (0..x).map(move |y| (x, y)));
        let weakest = pairs.map(|(x, y)| between[x * c_count + y]).fold(f64::INFINITY, f64::min);
        let most_sets = (budget.operations / (30.0 * a_count.max(1) as f64)).max(1.0);
        Ok(Subsets {
            classes,
            attributes,
            between,
            cells,
            weakest,
            bias: model.bias().to_vec(),
            constant: model.constant(),
            relations: model.relations().to_vec(),
            labels: model.len(),
            most_sets,
        })
    }

    /// A guess, for sets of up to two classes: how many are needed depends on the scores.
    pub(crate) fn operations(&self) -> f64 {
        let c = self.classes.len() as f64;
        30.0 * self.attributes.len() as f64 * (1.0 + c + c * (c - 1.0) / 2.0).min(self.most_sets)
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.between.len() * 8 + self.cells.len() * 16) as u64
    }

    pub(crate) fn run<T: Scalar>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let relations = self.relations.len();
        for row in 0..block.rows() {
            let row_scores = RowScores::new(self, block, row);
            let pairs = answers.expectations.is_some();
            let mut sums = Sums::new(self, pairs);
            let rest = self.list(&row_scores, &mut |set, shares, log_weight| {
                sums.add(self, set, shares, log_weight);
            });
            answers.log_partition[row] = if sums.most == f64::NEG_INFINITY {
                f64::NEG_INFINITY
            } else {
                self.constant + row_scores.base + sums.most + sums.total.ln()
            };
            if answers.log_partition[row] == f64::NEG_INFINITY {
                answers.error[row] = 0.0;
                continue;
            }
            // rest / (found + rest), written so that a huge rest gives 1.
            let found = sums.most + sums.total.ln();
            answers.error[row] = 1.0 / (1.0 + (found - rest).exp());
            let out = &mut answers.marginals[row * self.labels..(row + 1) * self.labels];
            for (c, id) in self.classes.iter().enumerate() {
                out[id.index()] = T::from_f64(sums.class[c] / sums.total);
            }
            for (a, id) in self.attributes.iter().enumerate() {
                out[id.index()] = T::from_f64(sums.attribute[a] / sums.total);
            }
            if let Some(all) = &mut answers.expectations {
                let out = &mut all[row * relations..(row + 1) * relations];
                for (out, relation) in out.iter_mut().zip(&self.relations) {
                    *out = T::from_f64(sums.violations(self, relation) / sums.total);
                }
            }
        }
    }

    /// Lists sets by size with their log-weights and the probability of each attribute; returns a
    /// bound on the log-weight of the sets that are not listed.
    fn list(&self, row: &RowScores, visit: &mut Visit<'_>) -> f64 {
        let open: Vec<usize> =
            (0..self.classes.len()).filter(|&c| row.class_known[c] == Evidence::Unknown).collect();
        let log_sum = log_sum_exp(open.iter().map(|&c| row.class[c]));
        let mut found = f64::NEG_INFINITY;
        let mut listed = 0.0;
        for size in 0..=open.len() {
            let mut here = f64::NEG_INFINITY;
            let mut walk = Walk::new(self, row);
            walk.sets(&open, size, &mut |set, shares, log_weight| {
                here = log_add(here, log_weight);
                visit(set, shares, log_weight);
            });
            found = log_add(found, here);
            listed += binomial(open.len(), size);
            // The bound on all larger sets, from this size upwards.
            let mut rest = f64::NEG_INFINITY;
            let mut term = here;
            for m in size..open.len() {
                let cost = if m == 0 { 0.0 } else { self.weakest * m as f64 };
                term += log_sum - cost - ((m + 1) as f64).ln();
                rest = log_add(rest, term);
                if term == f64::NEG_INFINITY || term < rest - 60.0 && m > size + 1 {
                    break;
                }
            }
            let good = rest - found < GOOD.ln();
            let next = listed + binomial(open.len(), size + 1);
            if good || size == open.len() || next > self.most_sets {
                return rest;
            }
        }
        f64::NEG_INFINITY
    }
}

/// What one row says.
struct RowScores {
    class: Vec<f64>,
    class_known: Vec<Evidence>,
    /// Log-weights of each attribute off and on with no class on.
    attribute: Vec<[f64; 2]>,
    /// `Σ_a log F_a(∅)`.
    base: f64,
}

impl RowScores {
    fn new<T: Scalar>(star: &Subsets, block: &Block<'_, T>, row: usize) -> RowScores {
        let score = |id: &LabelId| block.row(row)[id.index()].to_f64() + star.bias[id.index()];
        let known = |id: &LabelId| block.evidence(row, id.index());
        let attribute: Vec<[f64; 2]> = star
            .attributes
            .iter()
            .map(|id| match known(id) {
                Evidence::Unknown => [0.0, score(id)],
                Evidence::On => [f64::NEG_INFINITY, score(id)],
                Evidence::Off => [0.0, f64::NEG_INFINITY],
            })
            .collect();
        let base = attribute.iter().map(|[off, on]| log_add(*off, *on)).sum();
        RowScores {
            class: star.classes.iter().map(score).collect(),
            class_known: star.classes.iter().map(known).collect(),
            attribute,
            base,
        }
    }
}

/// A depth-first walk over sets of one size.
struct Walk<'a> {
    model: &'a Subsets,
    row: &'a RowScores,
    set: Vec<usize>,
    /// Attribute weights for each prefix of the set.
    weights: Vec<Vec<[f64; 2]>>,
    log_weight: Vec<f64>,
    shares: Vec<f64>,
}

impl<'a> Walk<'a> {
    /// Starts with the classes that are known to be on.
    fn new(model: &'a Subsets, row: &'a RowScores) -> Walk<'a> {
        let mut walk = Walk {
            model,
            row,
            set: Vec::new(),
            weights: vec![row.attribute.clone()],
            log_weight: vec![0.0],
            shares: vec![0.0; model.attributes.len()],
        };
        for c in 0..model.classes.len() {
            if row.class_known[c] == Evidence::On {
                walk.push(c);
            }
        }
        walk
    }

    fn push(&mut self, c: usize) {
        let (model, a_count) = (self.model, self.model.attributes.len());
        let c_count = model.classes.len();
        let between: f64 = self.set.iter().map(|&other| model.between[c * c_count + other]).sum();
        let top = self.log_weight[self.log_weight.len() - 1];
        self.log_weight.push(top + self.row.class[c] - between);
        let mut weights = self.weights[self.weights.len() - 1].clone();
        for (weight, cell) in weights.iter_mut().zip(&model.cells[c * a_count..(c + 1) * a_count]) {
            weight[0] -= cell[0];
            weight[1] -= cell[1];
        }
        self.weights.push(weights);
        self.set.push(c);
    }

    fn pop(&mut self) {
        self.set.pop();
        self.weights.pop();
        self.log_weight.pop();
    }

    /// Visits every way to add `more` of the open classes.
    fn sets(&mut self, open: &[usize], more: usize, visit: &mut Visit<'_>) {
        if more == 0 {
            let top = self.weights.len() - 1;
            let mut log_weight = self.log_weight[top] - self.row.base;
            for (share, [off, on]) in self.shares.iter_mut().zip(&self.weights[top]) {
                log_weight += log_add(*off, *on);
                *share =
                    if *on == f64::NEG_INFINITY { 0.0 } else { 1.0 / (1.0 + (off - on).exp()) };
            }
            if log_weight.is_nan() {
                log_weight = f64::NEG_INFINITY;
            }
            visit(&self.set, &self.shares, log_weight);
            return;
        }
        for (at, &c) in open.iter().enumerate() {
            if open.len() - at < more {
                break;
            }
            self.push(c);
            // A set that weighs nothing has no heavier superset.
            if self.log_weight[self.log_weight.len() - 1] > f64::NEG_INFINITY {
                self.sets(&open[at + 1..], more - 1, visit);
            }
            self.pop();
        }
    }
}

/// Weighted sums, relative to the largest weight so far.
struct Sums {
    most: f64,
    total: f64,
    class: Vec<f64>,
    attribute: Vec<f64>,
    /// Classes × (classes + attributes), both on; when asked for.
    pairs: Option<Vec<f64>>,
}

impl Sums {
    fn new(model: &Subsets, pairs: bool) -> Sums {
        let (c, a) = (model.classes.len(), model.attributes.len());
        Sums {
            most: f64::NEG_INFINITY,
            total: 0.0,
            class: vec![0.0; c],
            attribute: vec![0.0; a],
            pairs: pairs.then(|| vec![0.0; c * (c + a)]),
        }
    }

    fn add(&mut self, model: &Subsets, set: &[usize], shares: &[f64], log_weight: f64) {
        if log_weight == f64::NEG_INFINITY {
            return;
        }
        if log_weight > self.most {
            let scale = (self.most - log_weight).exp();
            self.most = log_weight;
            self.total *= scale;
            let pairs = self.pairs.iter_mut().flatten();
            self.class.iter_mut().chain(&mut self.attribute).chain(pairs).for_each(|x| *x *= scale);
        }
        let weight = (log_weight - self.most).exp();
        self.total += weight;
        set.iter().for_each(|&c| self.class[c] += weight);
        self.attribute.iter_mut().zip(shares).for_each(|(sum, share)| *sum += weight * share);
        if let Some(pairs) = &mut self.pairs {
            let width = model.classes.len() + model.attributes.len();
            for &c in set {
                let row = &mut pairs[c * width..(c + 1) * width];
                set.iter().for_each(|&other| row[other] += weight);
                let attributes = row[model.classes.len()..].iter_mut().zip(shares);
                attributes.for_each(|(sum, share)| *sum += weight * share);
            }
        }
    }

    /// The sum of a relation's violations, not yet divided by the total.
    fn violations(&self, model: &Subsets, relation: &Relation) -> f64 {
        let Some(pairs) = &self.pairs else { return 0.0 };
        let c_count = model.classes.len();
        let width = c_count + model.attributes.len();
        let slot = |id: LabelId| match model.classes.binary_search(&id) {
            Ok(c) => c,
            Err(_) => c_count + model.attributes.binary_search(&id).unwrap_or(0),
        };
        let both = |x: LabelId, y: LabelId| {
            let (x, y) = (slot(x).min(slot(y)), slot(x).max(slot(y)));
            pairs[x * width + y]
        };
        match relation {
            Relation::Hierarchy { parent, child, .. } => {
                self.class[slot(*child)] - both(*parent, *child)
            }
            Relation::Exclusion { a, b, .. } | Relation::Pair { a, b, .. } => both(*a, *b),
            Relation::Group { labels, .. } => {
                let all = labels.iter().enumerate();
                all.flat_map(|(at, x)| labels[..at].iter().map(move |y| (*x, *y)))
                    .map(|(x, y)| both(x, y))
                    .sum()
            }
        }
    }
}

/// Which labels are attributes: parents in the hierarchy, and labels that only exclude classes.
fn sides(model: &Model) -> Result<Vec<bool>, String> {
    let n = model.len();
    let (mut is_parent, mut is_child) = (vec![false; n], vec![false; n]);
    let mut grouped = vec![false; n];
    for relation in model.relations() {
        match relation {
            Relation::Hierarchy { parent, child, .. } => {
                is_parent[parent.index()] = true;
                is_child[child.index()] = true;
            }
            Relation::Group { labels, .. } => {
                labels.iter().for_each(|id| grouped[id.index()] = true)
            }
            _ => {}
        }
    }
    let name = |id: usize| &model.names()[id];
    if let Some(both) = (0..n).find(|&id| is_parent[id] && (is_child[id] || grouped[id])) {
        return Err(format!("`{}` is both a class and an attribute", name(both)));
    }
    // A label with exclusions alone is an attribute when all of them are with classes.
    let mut partners: Vec<Vec<usize>> = vec![Vec::new(); n];
    for relation in model.relations() {
        if let Relation::Exclusion { a, b, .. } | Relation::Pair { a, b, .. } = relation {
            partners[a.index()].push(b.index());
            partners[b.index()].push(a.index());
        }
    }
    let class = |id: usize| is_child[id] || grouped[id];
    let is_attribute: Vec<bool> = (0..n)
        .map(|id| is_parent[id] || (!class(id) && partners[id].iter().all(|&other| class(other))))
        .collect();
    for relation in model.relations() {
        let labels = relation.labels();
        let attributes = labels.iter().filter(|id| is_attribute[id.index()]).count();
        let allowed = match relation {
            Relation::Hierarchy { .. } | Relation::Pair { .. } => attributes == 1,
            Relation::Exclusion { .. } => attributes < 2,
            Relation::Group { .. } => attributes == 0,
        };
        if !allowed {
            return Err(format!("a relation of `{}` is not bipartite", name(labels[0].index())));
        }
    }
    let joins = |relation: &Relation| {
        let labels = relation.labels();
        labels.iter().any(|id| is_attribute[id.index()])
    };
    if !model.relations().iter().any(joins) {
        return Err(String::from("no relation is of a class and an attribute"));
    }
    Ok(is_attribute)
}

fn log_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

fn log_sum_exp(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, log_add)
}

fn binomial(n: usize, k: usize) -> f64 {
    (0..k).map(|i| n.saturating_sub(i) as f64 / (i + 1) as f64).product()
}
