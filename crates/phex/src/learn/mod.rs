//! Learning: the loss of rows with partial labels, and its gradient.
//!
//! Labels in training data are on, off or unknown ([`Evidence`]). There are two losses:
//!
//! - [`Loss::Joint`]: `−log p(all evidence)`, one term per row. It never counts an implied label
//!   twice.
//! - [`Loss::Marginal`]: `−Σ_t log p(x_t = evidence)`, the paper's sum of single-label terms. It
//!   stays finite when the evidence contradicts itself.
//!
//! Both gradients are the difference of a clamped and a free pass:
//! `∂ log p(o)/∂ℓᵢ = E[xᵢ | o] − E[xᵢ]` and `∂ log p(o)/∂w_r = E[v_r] − E[v_r | o]`. Any engine
//! computes them, on any device ([`Backend`]). So this module alone defines what a loss is: rows in
//! which every label has evidence, improbable labels, contradictions.
//!
//! A row costs a free pass. `joint` adds one clamped pass, or none when every label has evidence.
//! `marginal` with `m` labels adds `min(m, 2)` passes with an exact engine, plus one for each label
//! whose evidence is improbable. With other engines it adds `m`.
//!
//! [`inner_scale`] and [`score_scales`] say how a head scales the scores of labels that have children.
//!
//! [`covariance_product`] gives the gradient of any other loss on the marginals.

mod covariance;
mod joint;
mod marginal;
mod rules;
mod scales;
mod strengths;

use serde::{Deserialize, Serialize};

use crate::infer::{Backend, Block, Engine, Evidence, Number, Posterior, RowStatus, Want};
use crate::{Error, Named};

pub use covariance::covariance_product;
pub use rules::{DIFFERENCE_STEP, FEW_LABELS, IMPROBABLE};
pub use scales::{INNER_SCALE, LEAF_SHARE, inner_scale, score_scales};
pub use strengths::{Strengths, Tie};

/// Which probability of the evidence a row is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// The log-probability of all evidence of a row.
    #[default]
    Joint,
    /// The sum of the log-probabilities of each label with evidence, as in the paper.
    Marginal,
}

impl Named for Loss {
    const WHAT: &'static str = "loss";
    const CHOICES: &'static [(&'static str, Loss)] =
        &[("joint", Loss::Joint), ("marginal", Loss::Marginal)];
}

/// What to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Objective {
    /// Which loss.
    pub loss: Loss,
    /// Whether the gradient with respect to the costs of relations is also wanted.
    pub costs: bool,
}

/// The losses and gradients of a block of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// The loss of each row, before weights. It is NaN for engines without a log Z (`gibbs` with
    /// [`Loss::Joint`]), and 0 for rows without evidence.
    pub losses: Vec<f64>,
    /// The derivative of the weighted sum of losses with respect to each logit: rows × labels.
    pub logits: Vec<T>,
    /// Its derivative with respect to the cost `w` of each term of the model, in the order of
    /// [`Model::relations`](crate::model::Model::relations), if requested. For a `Pair` it is with
    /// respect to the cost of both on. It is 0 for hard relations.
    pub costs: Option<Vec<f64>>,
    /// The probability of each label before the evidence is taken into account: rows × labels.
    /// Zeros in rows without evidence.
    pub marginals: Vec<T>,
    /// The outcome for each row. [`RowStatus::Impossible`] means that hard relations do not allow
    /// the evidence; the row then has an infinite loss and a gradient of zero.
    pub status: Vec<RowStatus>,
}

impl<T> Gradients<T> {
    /// The weighted sum of the losses of rows that have one.
    pub fn total(&self, weights: Option<&[f64]>) -> f64 {
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let rows = self.losses.iter().enumerate().filter(|(_, loss)| loss.is_finite());
        rows.map(|(row, loss)| weight(row) * loss).sum()
    }
}

/// The loss and the gradient of a block of rows, given their evidence.
///
/// `weights` multiply the losses of the rows. A row of weight 0 costs nothing.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex::infer::{Block, Engine, Evidence::{On, Unknown}, Options};
/// use phex::learn::{Objective, gradients};
/// use phex::model::Model;
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
/// let engine = Engine::compile(Model::new(&builder.build()?)?, &Options::default())?;
/// // An animal, of an unknown kind.
/// let block = Block::new(3, &[0.0, 0.0, 0.0]).with_evidence(&[On, Unknown, Unknown]);
/// let found = gradients(&engine, &block, None, Objective::default())?;
/// // Of the five legal label sets four have an animal.
/// assert!((found.losses[0] - (5.0f64 / 4.0).ln()).abs() < 1e-12);
/// // The dog also gets a gradient, because a dog is one way to be an animal.
/// assert!(found.logits[1] < 0.0);
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// [`Error::Columns`] and [`Error::BestOnly`] as [`Engine::run`]. [`Error::Shape`] when there is
/// not one weight per row. [`Error::Device`] when a device fails or does not support gradients of
/// costs.
pub fn gradients<T: Number>(
    runner: &dyn Backend,
    block: &Block<'_, T>,
    weights: Option<&[f64]>,
    objective: Objective,
) -> Result<Gradients<T>, Error> {
    if let Some(found) = weights.map(<[f64]>::len).filter(|&found| found != block.rows()) {
        return Err(Error::Shape { what: "the row weights", expected: block.rows(), found });
    }
    let rows: Vec<usize> = (0..block.rows())
        .filter(|&row| weights.is_none_or(|weights| weights[row] != 0.0))
        .filter(|&row| evidence_of(block, row).is_some_and(has_evidence))
        .collect();
    // Rows without evidence need no pass.
    if rows.len() == block.rows() {
        return gradients_of_all(runner, block, weights, objective);
    }
    let picked = Picked::of(block, rows.iter().map(|&row| (row, None)));
    let few: Option<Vec<f64>> =
        weights.map(|weights| rows.iter().map(|&row| weights[row]).collect());
    let part = gradients_of_all(runner, &picked.block(), few.as_deref(), objective)?;
    Ok(part.scatter(&rows, block.rows(), block.labels()))
}

fn gradients_of_all<T: Number>(
    runner: &dyn Backend,
    block: &Block<'_, T>,
    weights: Option<&[f64]>,
    objective: Objective,
) -> Result<Gradients<T>, Error> {
    let free = Block { evidence: None, ..*block };
    let want = Want { expectations: objective.costs, ..Want::default() };
    let free = runner.run(&free, want)?;
    let mut ascent = Ascent::start(runner.engine(), &free, objective);
    match objective.loss {
        Loss::Joint => joint::add(runner, block, &free, &mut ascent)?,
        Loss::Marginal => marginal::add(runner, block, &free, &mut ascent)?,
    }
    Ok(ascent.finish(free, weights))
}

/// The gradients of the log-probability while they are accumulated.
struct Ascent {
    labels: usize,
    terms: usize,
    /// `log p(evidence)` of each row.
    log_probability: Vec<f64>,
    /// Its derivative with respect to each logit.
    logits: Vec<f64>,
    /// Its derivative with respect to each cost, if requested: rows × terms.
    costs: Option<Vec<f64>>,
    status: Vec<RowStatus>,
}

impl Ascent {
    fn start<T>(engine: &Engine, free: &Posterior<T>, objective: Objective) -> Ascent {
        let (rows, labels, terms) = (free.rows(), free.labels, engine.model().terms());
        Ascent {
            labels,
            terms,
            log_probability: vec![0.0; rows],
            logits: vec![0.0; rows * labels],
            costs: objective.costs.then(|| vec![0.0; rows * terms]),
            status: free.status.clone(),
        }
    }

    fn is_answered(&self, row: usize) -> bool {
        self.status[row] == RowStatus::Answered
    }

    /// Marks the evidence of a row as impossible.
    fn refuse(&mut self, row: usize) {
        self.status[row] = RowStatus::Impossible;
        self.log_probability[row] = f64::NEG_INFINITY;
    }

    /// Adds `factor · (to − from)` for the logits, and the opposite for the costs.
    fn add<T: Number>(
        &mut self,
        row: usize,
        factor: f64,
        to: RowLoss<'_, T>,
        from: RowLoss<'_, T>,
    ) {
        let logits = &mut self.logits[row * self.labels..(row + 1) * self.labels];
        for ((out, to), from) in logits.iter_mut().zip(to.marginals).zip(from.marginals) {
            *out += factor * (to.to_f64() - from.to_f64());
        }
        if let (Some(costs), Some(to), Some(from)) =
            (&mut self.costs, to.expectations, from.expectations)
        {
            let costs = &mut costs[row * self.terms..(row + 1) * self.terms];
            for ((out, to), from) in costs.iter_mut().zip(to).zip(from) {
                *out -= factor * (to.to_f64() - from.to_f64());
            }
        }
    }

    /// Turns gradients of the log-probability into those of the weighted loss.
    fn finish<T: Number>(self, free: Posterior<T>, weights: Option<&[f64]>) -> Gradients<T> {
        let rows = self.log_probability.len();
        let weight = |row: usize| match self.status[row] {
            RowStatus::Answered => weights.map_or(1.0, |weights| weights[row]),
            _ => 0.0,
        };
        // A gradient that is NaN belongs to a row without an answer.
        let scaled = |factor: f64, value: f64| if factor == 0.0 { 0.0 } else { -factor * value };
        let mut logits = Vec::with_capacity(self.logits.len());
        let mut costs = self.costs.is_some().then(|| vec![0.0; self.terms]);
        for row in 0..rows {
            let factor = weight(row);
            let gradient = &self.logits[row * self.labels..(row + 1) * self.labels];
            logits.extend(gradient.iter().map(|&value| T::from_f64(scaled(factor, value))));
            if let (Some(costs), Some(all)) = (&mut costs, &self.costs) {
                let gradient = &all[row * self.terms..(row + 1) * self.terms];
                costs.iter_mut().zip(gradient).for_each(|(out, &v)| *out += scaled(factor, v));
            }
        }
        Gradients {
            losses: self.log_probability.iter().map(|&log| 0.0 - log).collect(),
            logits,
            costs,
            marginals: free.marginals,
            status: self.status,
        }
    }
}

/// The result for one row.
#[derive(Clone, Copy)]
struct RowLoss<'a, T> {
    marginals: &'a [T],
    expectations: Option<&'a [T]>,
}

fn answer<T>(posterior: &Posterior<T>, row: usize) -> RowLoss<'_, T> {
    let expectations = posterior.expectations.as_deref().map(|all| {
        let terms = all.len() / posterior.rows();
        &all[row * terms..(row + 1) * terms]
    });
    RowLoss { marginals: posterior.row(row), expectations }
}

/// The evidence of a row, if the block has any.
fn evidence_of<'a, T>(block: &Block<'a, T>, row: usize) -> Option<&'a [Evidence]> {
    block.evidence.map(|all| &all[row * block.labels..(row + 1) * block.labels])
}

fn has_evidence(entries: &[Evidence]) -> bool {
    entries.iter().any(|&entry| entry != Evidence::Unknown)
}

/// Selected rows of a block, each with its own evidence or with that of one label alone.
struct Picked<T> {
    labels: usize,
    scores: Vec<T>,
    evidence: Vec<Evidence>,
}

impl<T: Number> Picked<T> {
    fn of(
        block: &Block<'_, T>,
        rows: impl Iterator<Item = (usize, Option<(usize, Evidence)>)>,
    ) -> Picked<T> {
        let labels = block.labels();
        let mut picked = Picked { labels, scores: Vec::new(), evidence: Vec::new() };
        for (row, alone) in rows {
            picked.scores.extend_from_slice(block.row(row));
            let start = picked.evidence.len();
            match (alone, evidence_of(block, row)) {
                (None, Some(own)) => picked.evidence.extend_from_slice(own),
                _ => picked.evidence.resize(start + labels, Evidence::Unknown),
            }
            if let Some((label, entry)) = alone {
                picked.evidence[start + label] = entry;
            }
        }
        picked
    }

    fn block(&self) -> Block<'_, T> {
        Block { labels: self.labels, scores: &self.scores, evidence: Some(&self.evidence) }
    }
}

impl<T: Number> Gradients<T> {
    /// Spreads the results over `rows` rows. The other rows have no evidence.
    fn scatter(self, at: &[usize], rows: usize, labels: usize) -> Gradients<T> {
        let mut all = Gradients {
            losses: vec![0.0; rows],
            logits: vec![T::from_f64(0.0); rows * labels],
            costs: self.costs,
            marginals: vec![T::from_f64(0.0); rows * labels],
            status: vec![RowStatus::Answered; rows],
        };
        for (from, &to) in at.iter().enumerate() {
            let (source, target) = (from * labels..(from + 1) * labels, to * labels);
            all.losses[to] = self.losses[from];
            all.status[to] = self.status[from];
            all.logits[target..target + labels].copy_from_slice(&self.logits[source.clone()]);
            all.marginals[target..target + labels].copy_from_slice(&self.marginals[source]);
        }
        all
    }
}
