//! `star` handles one one-of group of classes with attributes in closed form (zero-shot graphs).
//!
//! When class `c` is on, attribute `a` costs `off[c][a]` when off and `on[c][a]` when on, and the
//! attributes are independent:
//!
//! ```text
//! l(c, a) = log( exp(−off) + exp(ℓ_a − on) )
//! p(c) ∝ exp( ℓ_c − own_c + Σ_a l(c, a) ),   p(x_a = 1) = Σ_c p(c) exp(ℓ_a − on − l(c, a))
//! ```
//!
//! When the costs have few values (constant strengths give two kinds of cells), `l` depends on the
//! kind alone. Both sums are then matrix products with 0/1 matrices, for which ndarray is used. A
//! row costs O(A · kinds) functions and two products of size C × A. Otherwise every cell is
//! computed, which costs O(C · A) functions; this is vectorised for rows without evidence. Any
//! finite score is safe, because `l` is a log-sum-exp of two terms.

mod kernels;

use crate::infer::compiled::Compiled;
use crate::infer::{Kernel, forward_sets_to_own, forward_to_own};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::graph::LabelId;
use crate::infer::compiled::Classes;
use crate::infer::exact::k_best::{best_first, with_independent};
use crate::infer::{Answers, Block, Budget, Evidence, LabelSet, Number, Unfit};
use crate::model::{Model, Relation};
use crate::numeric::{Scalar, log_max};
use kernels::{add_scaled, cell, cells, class_cells, kinds, softmax, softmax_fast};

/// The log-weight of what the evidence excludes. It is finite, so that 0 times it is 0.
const NEVER: f64 = -1e30;
/// Rows with evidence and scores beyond this are computed cell by cell.
const LARGE: f64 = 1e20;

/// With more kinds of cells than this, the products cost more than the cells.
const MAX_KINDS: usize = 8;

/// Classes, attributes, and the costs between them.
#[derive(Debug)]
pub(crate) struct Star {
    classes: Vec<LabelId>,
    attributes: Vec<LabelId>,
    /// The cost of each class by itself.
    own: Vec<f64>,
    /// Costs of each kind of cell: attribute off, attribute on.
    kinds: Vec<[f64; 2]>,
    /// The kind of each cell, one class after another.
    kind_of: Vec<u32>,
    /// For each kind except the first, the 0/1 matrix of its cells, classes × attributes.
    masks: Vec<(Array2<f32>, Array2<f64>)>,
    /// The costs of an attribute off and on, classes × attributes. Empty unless cells are computed
    /// one by one.
    cells: Vec<(Array2<f32>, Array2<f64>)>,
    bias: Vec<f64>,
    constant: f64,
    relations: Vec<Relation>,
    labels: usize,
}

impl Star {
    pub(crate) fn compile(model: &Model, budget: &Budget) -> Result<Star, Unfit> {
        let shape = |text: String| Err(Unfit::Shape(text));
        if model.dense().is_some() {
            return shape(String::from("it cannot handle dense semantics"));
        }
        let [group] = model.one_of() else {
            let found = match model.one_of().len() {
                0 => String::from("none"),
                groups => groups.to_string(),
            };
            let needs = "it needs exactly one one-of group";
            return shape(format!("{needs}; this graph has {found}"));
        };
        let n = model.len();
        let classes = group.labels.clone();
        let mut class_of = vec![None; n];
        classes.iter().enumerate().for_each(|(at, id)| class_of[id.index()] = Some(at));
        let attributes: Vec<LabelId> =
            (0..n).filter(|&id| class_of[id].is_none()).map(LabelId::from).collect();
        let mut attribute_of = vec![None; n];
        attributes.iter().enumerate().for_each(|(at, id)| attribute_of[id.index()] = Some(at));

        let (c_count, a_count) = (classes.len(), attributes.len());
        let mut own = vec![0.0; c_count];
        // Checked before the table is allocated, because large taxonomies reach this point.
        if 16.0 * c_count as f64 * a_count as f64 > budget.bytes {
            let needs = format!("a table of {c_count} classes × {a_count} attributes");
            return Err(Unfit::Budget { needs });
        }
        let mut costs = vec![[0.0f64; 2]; c_count * a_count];
        // Costs of an attribute while a class is off. They are charged to all other classes.
        let mut while_off: Vec<(usize, usize, [f64; 2])> = Vec::new();
        for relation in model.relations() {
            let labels = relation.labels();
            let inside = labels.iter().filter(|id| class_of[id.index()].is_some()).count();
            if inside == labels.len() {
                for (class, own) in own.iter_mut().enumerate() {
                    *own += relation.cost(|id| id == classes[class]);
                }
                continue;
            }
            let pair = match *labels.as_slice() {
                [x, y] if inside == 1 && class_of[x.index()].is_some() => Some((x, y)),
                [x, y] if inside == 1 => Some((y, x)),
                _ => None,
            };
            let Some((class, attribute)) = pair else {
                let names: Vec<&str> =
                    labels.iter().take(3).map(|id| model.names()[id.index()].as_str()).collect();
                return shape(format!(
                    "a relation between `{}` does not join a class and an attribute",
                    names.join("`, `")
                ));
            };
            let (Some(c), Some(a)) = (class_of[class.index()], attribute_of[attribute.index()])
            else {
                continue;
            };
            let cost = |class_on: bool, attribute_on: bool| {
                relation.cost(|id| if id == class { class_on } else { attribute_on })
            };
            let cell = &mut costs[c * a_count + a];
            cell[0] += cost(true, false);
            cell[1] += cost(true, true);
            let off = [cost(false, false), cost(false, true)];
            if off != [0.0, 0.0] {
                while_off.push((c, a, off));
            }
        }
        for (c, a, off) in while_off {
            for other in (0..c_count).filter(|&other| other != c) {
                let cell = &mut costs[other * a_count + a];
                cell[0] += off[0];
                cell[1] += off[1];
            }
        }
        // A class with an attribute that can be neither on nor off is impossible.
        for c in 0..c_count {
            for cell in &mut costs[c * a_count..(c + 1) * a_count] {
                if *cell == [f64::INFINITY, f64::INFINITY] {
                    own[c] = f64::INFINITY;
                    *cell = [0.0, 0.0];
                }
            }
        }
        let (kinds, kind_of) = kinds(&costs);
        let masks = if kinds.len() <= MAX_KINDS {
            let mask = |kind: u32| {
                let shape = (c_count, a_count);
                let cell = |(c, a)| kind_of[c * a_count + a] == kind;
                (
                    Array2::from_shape_fn(shape, |at| f32::from(u8::from(cell(at)))),
                    Array2::from_shape_fn(shape, |at| f64::from(u8::from(cell(at)))),
                )
            };
            (1..kinds.len() as u32).map(mask).collect()
        } else {
            Vec::new()
        };
        let states = if kinds.len() > MAX_KINDS { 0..2 } else { 0..0 };
        let cells = states.map(|state| {
            let cost = |(c, a): (usize, usize)| costs[c * a_count + a][state];
            let wide = Array2::from_shape_fn((c_count, a_count), cost);
            (wide.mapv(|cost| cost as f32), wide)
        });
        let cells = cells.collect();
        Ok(Star {
            cells,
            classes,
            attributes,
            own,
            kinds,
            kind_of,
            masks,
            bias: model.bias().to_vec(),
            constant: model.constant(),
            relations: model.relations().to_vec(),
            labels: n,
        })
    }

    /// The matrix of cells, for backends on other devices.
    pub(crate) fn view(&self) -> Classes<'_> {
        let Star { classes, attributes, own, kinds, kind_of, bias, constant, .. } = self;
        Classes { classes, attributes, own, kinds, kind_of, bias, constant: *constant }
    }

    pub(crate) fn operations(&self) -> f64 {
        let (c, a) = (self.classes.len() as f64, self.attributes.len() as f64);
        let (kinds, products) = (self.kinds.len() as f64, self.masks.len() as f64);
        if self.by_cells() { 25.0 * c * a } else { 25.0 * a * kinds + 4.0 * products * c * a }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let matrices = self.masks.len() + if self.by_cells() { 2 } else { 0 };
        (self.kind_of.len() * (4 + matrices * 12)) as u64
    }

    fn by_cells(&self) -> bool {
        self.kinds.len() > MAX_KINDS
    }

    pub(crate) fn run<T: Number>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        answers.error.fill(0.0);
        if let [off, on] = &self.cells[..]
            && block.evidence.is_none()
            && answers.expectations.is_none()
        {
            let costs = [T::pick(&off.0, &off.1), T::pick(&on.0, &on.1)];
            self.run_cells(block, costs, answers);
            return;
        }
        let alone: Vec<usize> = if self.by_cells() || answers.expectations.is_some() {
            (0..block.rows()).collect()
        } else if block.evidence.is_some() {
            (0..block.rows()).filter(|&row| self.is_beyond_products(block, row)).collect()
        } else {
            Vec::new()
        };
        if alone.len() < block.rows() {
            self.run_products(block, answers);
        }
        alone.into_iter().for_each(|row| self.run_row(block, row, answers));
    }

    /// Whether matrix products would lose precision. What the evidence excludes is a large number
    /// in products. It cancels with scores of a similar size, and in sums over attributes when the
    /// first kind of cell can be excluded.
    fn is_beyond_products<T: Number>(&self, block: &Block<'_, T>, row: usize) -> bool {
        let has_evidence = |id: &LabelId| block.evidence(row, id.index()) != Evidence::Unknown;
        self.kinds[0].contains(&f64::INFINITY) && self.attributes.iter().any(has_evidence)
            || block.row(row).iter().any(|score| score.to_f64().abs() > LARGE)
    }

    /// Runs all rows with matrix products.
    fn run_products<T: Number>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let (rows, a_count, c_count) = (block.rows(), self.attributes.len(), self.classes.len());
        let kinds = self.kinds.len();
        // Per kind: l(kind, a), then p(x_a = 1 | kind).
        let mut level = vec![Array2::<T>::zeros((rows, a_count)); kinds];
        let mut given = vec![Array2::<T>::zeros((rows, a_count)); kinds];
        let mut base = vec![0.0f64; rows];
        let mut own = vec![T::ZERO; a_count];
        for (row, base) in base.iter_mut().enumerate() {
            let scores = block.row(row);
            for (own, id) in own.iter_mut().zip(&self.attributes) {
                *own = scores[id.index()] + T::from_f64(self.bias[id.index()]);
            }
            for (kind, &[off, on]) in self.kinds.iter().enumerate() {
                let (level, given) = (row_of(&mut level[kind], row), row_of(&mut given[kind], row));
                cells(&own, T::from_f64(off), T::from_f64(on), level, given);
                for (at, id) in self.attributes.iter().enumerate() {
                    let (weight, share) = match block.evidence(row, id.index()) {
                        Evidence::Unknown => continue,
                        Evidence::On => (own[at] - T::from_f64(on.min(-NEVER)), T::ONE),
                        Evidence::Off => (T::from_f64((-off).max(NEVER)), T::ZERO),
                    };
                    (level[at], given[at]) = (weight, share);
                }
            }
            *base = row_of(&mut level[0], row).iter().map(|l| l.to_f64()).sum();
        }
        let (first, rest) = level.split_at_mut(1);
        let mut logits = Array2::<T>::zeros((rows, c_count));
        for (difference, masks) in rest.iter_mut().zip(&self.masks) {
            *difference -= &first[0];
            general_mat_mul(
                T::one(),
                difference,
                &T::pick(&masks.0, &masks.1).t(),
                T::one(),
                &mut logits,
            );
        }
        for row in 0..rows {
            let scores = block.row(row);
            let mut most = T::NEG_INFINITY;
            let class = |id: &LabelId| block.evidence(row, id.index());
            let on = self.classes.iter().filter(|id| class(id) == Evidence::On).count();
            for (at, id) in self.classes.iter().enumerate() {
                let own = T::from_f64(self.bias[id.index()] - self.own[at]);
                let logit = &mut logits[(row, at)];
                *logit += scores[id.index()] + own;
                let excluded = match class(id) {
                    Evidence::Off => true,
                    Evidence::On => on > 1,
                    Evidence::Unknown => on > 0,
                };
                if excluded {
                    *logit += T::from_f64(NEVER);
                }
                most = Scalar::max(most, *logit);
            }
            let total = softmax_fast(row_of(&mut logits, row), most);
            let possible = total > 0.0 && most.to_f64() > 0.5 * NEVER;
            answers.log_partition[row] = if possible {
                self.constant + base[row] + most.to_f64() + total.ln()
            } else {
                f64::NEG_INFINITY
            };
        }
        self.finish_products(&logits, &mut given, answers);
    }

    /// Computes marginals from class probabilities and conditional attribute probabilities.
    fn finish_products<T: Number>(
        &self,
        classes: &Array2<T>,
        given: &mut [Array2<T>],
        answers: &mut Answers<'_, T>,
    ) {
        let shape = given[0].raw_dim();
        let mut sum = Array2::<T>::zeros(shape);
        let mut share = Array2::<T>::zeros(shape);
        let (first, rest) = given.split_at_mut(1);
        for (conditional, masks) in rest.iter_mut().zip(&self.masks) {
            general_mat_mul(T::one(), classes, &T::pick(&masks.0, &masks.1), T::zero(), &mut share);
            // Each kind takes its share of the classes. What is not of this kind stays with the
            // first.
            *conditional -= &first[0];
            *conditional *= &share;
            sum += &*conditional;
        }
        sum += &first[0];
        let rows = classes.nrows();
        let out = ArrayViewMut2::from_shape((rows, self.labels), &mut *answers.marginals);
        let Ok(mut out) = out else { return };
        for row in 0..rows {
            for (at, id) in self.classes.iter().enumerate() {
                out[(row, id.index())] = classes[(row, at)];
            }
            for (at, id) in self.attributes.iter().enumerate() {
                out[(row, id.index())] = sum[(row, at)];
            }
        }
    }

    /// Runs all rows cell by cell, vectorised along the attributes.
    fn run_cells<T: Number>(
        &self,
        block: &Block<'_, T>,
        costs: [ArrayView2<'_, T>; 2],
        answers: &mut Answers<'_, T>,
    ) {
        let (a_count, c_count) = (self.attributes.len(), self.classes.len());
        let mut own = vec![T::ZERO; a_count];
        let mut given = Array2::<T>::zeros((c_count, a_count));
        let mut classes = vec![T::ZERO; c_count];
        let mut sums = vec![T::ZERO; a_count];
        for row in 0..block.rows() {
            let scores = block.row(row);
            for (own, id) in own.iter_mut().zip(&self.attributes) {
                *own = scores[id.index()] + T::from_f64(self.bias[id.index()]);
            }
            let mut most = T::NEG_INFINITY;
            for (c, id) in self.classes.iter().enumerate() {
                let [off, on] = costs.each_ref().map(|all| all.row(c).to_slice().unwrap_or(&[]));
                let level = class_cells(&own, off, on, row_of(&mut given, c));
                let own = T::from_f64(self.bias[id.index()] - self.own[c]);
                classes[c] = scores[id.index()] + own + level;
                most = Scalar::max(most, classes[c]);
            }
            let total = softmax_fast(&mut classes, most);
            if total == 0.0 || most == T::NEG_INFINITY {
                answers.log_partition[row] = f64::NEG_INFINITY;
                continue;
            }
            answers.log_partition[row] = self.constant + most.to_f64() + total.ln();
            sums.fill(T::ZERO);
            for (c, &probability) in classes.iter().enumerate().filter(|(_, p)| **p > T::ZERO) {
                add_scaled(&mut sums, row_of(&mut given, c), probability);
            }
            let out = &mut answers.marginals[row * self.labels..(row + 1) * self.labels];
            for (id, &probability) in self.classes.iter().zip(&classes) {
                out[id.index()] = probability;
            }
            for (id, &sum) in self.attributes.iter().zip(&sums) {
                out[id.index()] = sum;
            }
        }
    }

    /// Runs one row cell by cell in double precision, with evidence and expectations.
    fn run_row<T: Scalar>(&self, block: &Block<'_, T>, row: usize, answers: &mut Answers<'_, T>) {
        let scores: Vec<f64> =
            block.row(row).iter().zip(&self.bias).map(|(s, b)| s.to_f64() + b).collect();
        let evidence: Vec<Evidence> = (0..self.labels).map(|at| block.evidence(row, at)).collect();
        let mut weights = self.class_weights(&scores, &evidence);
        let most = log_max(weights.iter().copied());
        if most == f64::NEG_INFINITY {
            answers.log_partition[row] = most;
            return;
        }
        let total = softmax(&mut weights, most);
        answers.log_partition[row] = self.constant + most + total.ln();
        let out = &mut answers.marginals[row * self.labels..(row + 1) * self.labels];
        let mut attribute = vec![0.0; self.attributes.len()];
        for (c, &probability) in weights.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            for (a, sum) in attribute.iter_mut().enumerate() {
                *sum += probability * self.given(c, a, &scores, &evidence).1;
            }
        }
        for (c, id) in self.classes.iter().enumerate() {
            out[id.index()] = T::from_f64(weights[c]);
        }
        for (a, id) in self.attributes.iter().enumerate() {
            out[id.index()] = T::from_f64(attribute[a]);
        }
        if let Some(all) = &mut answers.expectations {
            let out = &mut all[row * self.relations.len()..(row + 1) * self.relations.len()];
            for (out, relation) in out.iter_mut().zip(&self.relations) {
                *out = T::from_f64(self.expectation(relation, &weights, &scores, &evidence));
            }
        }
    }

    /// The log-weight of each class.
    fn class_weights(&self, scores: &[f64], evidence: &[Evidence]) -> Vec<f64> {
        let is_on = |id: &&LabelId| evidence[id.index()] == Evidence::On;
        let needs = self.classes.iter().position(|id| is_on(&id));
        let two = self.classes.iter().filter(is_on).count() > 1;
        let weight = |(c, id): (usize, &LabelId)| {
            let out = needs.is_some_and(|needed| needed != c) || two;
            if out || evidence[id.index()] == Evidence::Off {
                return f64::NEG_INFINITY;
            }
            let attributes = 0..self.attributes.len();
            let sum: f64 = attributes.map(|a| self.given(c, a, scores, evidence).0).sum();
            scores[id.index()] - self.own[c] + sum
        };
        self.classes.iter().enumerate().map(weight).collect()
    }

    /// `l` and the probability of an attribute given a class.
    fn given(&self, c: usize, a: usize, scores: &[f64], evidence: &[Evidence]) -> (f64, f64) {
        let [off, on] = self.kinds[self.kind_of[c * self.attributes.len() + a] as usize];
        let id = self.attributes[a].index();
        match evidence[id] {
            Evidence::On => (scores[id] - on, 1.0),
            Evidence::Off => (-off, 0.0),
            Evidence::Unknown => cell(scores[id], off, on),
        }
    }

    fn expectation(
        &self,
        relation: &Relation,
        classes: &[f64],
        scores: &[f64],
        evidence: &[Evidence],
    ) -> f64 {
        let labels = relation.labels();
        let attribute = labels.iter().find_map(|id| self.attributes.binary_search(id).ok());
        // A relation that only its own class can violate needs no sum over the others.
        if let (Some(a), [x, y]) = (attribute, labels.as_slice()) {
            let id = self.attributes[a];
            let class = if *x == id { *y } else { *x };
            let count = |class_on, state| {
                relation.violations(|label| if label == id { state } else { class_on })
            };
            if count(false, false) == 0.0
                && count(false, true) == 0.0
                && let Some(c) = self.classes.iter().position(|label| *label == class)
            {
                let on = self.given(c, a, scores, evidence).1;
                return classes[c] * (on * count(true, true) + (1.0 - on) * count(true, false));
            }
        }
        let sum = |(c, &p): (usize, &f64)| {
            if p == 0.0 {
                return 0.0;
            }
            let class = self.classes[c];
            let Some(a) = attribute else {
                return p * relation.violations(|id| id == class);
            };
            let on = self.given(c, a, scores, evidence).1;
            let id = self.attributes[a];
            let count = |state| relation.violations(|x| if x == id { state } else { x == class });
            p * (on * count(true) + (1.0 - on) * count(false))
        };
        classes.iter().enumerate().map(sum).sum()
    }

    /// The `k` best label sets of one row.
    pub(crate) fn best(&self, block: &Block<'_, f64>, row: usize, k: usize) -> Vec<LabelSet> {
        let scores: Vec<f64> = block.row(row).iter().zip(&self.bias).map(|(s, b)| s + b).collect();
        let evidence: Vec<Evidence> = (0..self.labels).map(|at| block.evidence(row, at)).collect();
        let alive = self.class_weights(&scores, &evidence);
        let mut all: Vec<LabelSet> = Vec::new();
        for (c, id) in self.classes.iter().enumerate() {
            if alive[c] == f64::NEG_INFINITY {
                continue;
            }
            let mut on = vec![false; self.labels];
            on[id.index()] = true;
            let log_weight = self.constant + scores[id.index()] - self.own[c];
            let attributes = self.attributes.iter().enumerate().map(|(a, attribute)| {
                let kind = self.kind_of[c * self.attributes.len() + a] as usize;
                let [off, on] = self.kinds[kind];
                let weights = match evidence[attribute.index()] {
                    Evidence::On => [f64::NEG_INFINITY, scores[attribute.index()] - on],
                    Evidence::Off => [-off, f64::NEG_INFINITY],
                    Evidence::Unknown => [-off, scores[attribute.index()] - on],
                };
                (*attribute, weights)
            });
            all.extend(with_independent(LabelSet { log_weight, on }, attributes, k));
        }
        best_first(&mut all, k);
        all
    }

    /// Draws label sets from the distribution of one row.
    pub(crate) fn sample(
        &self,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Vec<Vec<bool>> {
        let scores: Vec<f64> = block.row(row).iter().zip(&self.bias).map(|(s, b)| s + b).collect();
        let evidence: Vec<Evidence> = (0..self.labels).map(|at| block.evidence(row, at)).collect();
        let weights = self.class_weights(&scores, &evidence);
        let draw = |_| {
            let c = crate::infer::draw(&weights, uniform)?;
            let mut on = vec![false; self.labels];
            on[self.classes[c].index()] = true;
            for (a, id) in self.attributes.iter().enumerate() {
                on[id.index()] = uniform() < self.given(c, a, &scores, &evidence).1;
            }
            Some(on)
        };
        (0..count).map_while(draw).collect()
    }
}

/// A row of a matrix in standard layout.
fn row_of<T>(matrix: &mut Array2<T>, row: usize) -> &mut [T] {
    let width = matrix.ncols();
    let all = matrix.as_slice_mut().unwrap_or(&mut []);
    &mut all[row * width..(row + 1) * width]
}

impl Kernel for Star {
    forward_to_own!();

    fn view<'a>(&'a self, _model: &Model) -> Compiled<'a> {
        Compiled::Classes(self.view())
    }

    forward_sets_to_own!();
}
