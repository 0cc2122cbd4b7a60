//! Training and prediction through the relations, by the engine `star` (exact).
//!
//! The loss of a row is −log p(its class is on). All other labels are summed out, which trains the logits of attributes.
//! Without class logits those of the classes are 0, and the attributes alone decide. Unseen classes are part of the
//! one-of group during training: the loss distinguishes them from the class of the row.

use ndarray::{Array2, ArrayView2, s};
use phex::graph::RelationGraph;
use phex::infer::{Block, Engine, Evidence, Method, Options, Want};
use phex::learn::{self, Loss, Objective, Tie};
use phex::model::Model;

use super::data::Predicates;
use super::folds::Split;
use super::relations::{self, PredicateStrengths};
use crate::Error;

/// Rows per gradient by the strengths.
const STRENGTH_ROWS: usize = 16;
/// Steps of the head between steps of the strengths.
const STRENGTH_EVERY: usize = 10;
/// The step size of the strengths, which are factors on the given costs.
const STRENGTH_RATE: f64 = 0.05;

/// The relations of all classes of a split, to train through, and of its unseen classes, to predict with.
pub(super) struct RelationTraining {
    seen_and_unseen: Engine,
    unseen: UnseenGraph,
    classes: usize,
    unseen_from: usize,
    attributes: usize,
    class_logits: bool,
    learned: Option<LearnedFactors>,
}

/// The graph of the unseen classes.
struct UnseenGraph {
    graph: RelationGraph,
    count: usize,
}

/// Learned strengths, tied by kind: Adam on two factors.
struct LearnedFactors {
    strengths: learn::Strengths,
    first: Vec<f64>,
    second: Vec<f64>,
    steps: usize,
    updates: i32,
}

fn compile(graph: &RelationGraph) -> Result<Engine, phex::Error> {
    let options = Options { method: Method::Star, ..Options::default() };
    Engine::compile(Model::new(graph)?, &options)
}

impl RelationTraining {
    pub(super) fn new(
        predicates: &Predicates,
        split: &Split,
        strengths: PredicateStrengths,
        class_logits: bool,
        learns: bool,
    ) -> Result<RelationTraining, Error> {
        let costs = relations::costs(predicates, strengths);
        let whole = relations::graph(predicates, &costs, &split.classes())?;
        let part = relations::graph(predicates, &costs, &split.unseen)?;
        let seen_and_unseen = compile(&whole)?;
        let learned = if learns {
            let strengths = learn::Strengths::new(whole, Tie::Kind)?;
            let zero = vec![0.0; strengths.values().len()];
            let (first, second) = (zero.clone(), zero);
            Some(LearnedFactors { strengths, first, second, steps: 0, updates: 0 })
        } else {
            None
        };
        Ok(RelationTraining {
            seen_and_unseen,
            unseen: UnseenGraph { graph: part, count: split.unseen.len() },
            classes: split.classes().len(),
            unseen_from: split.seen.len(),
            attributes: predicates.attributes.len(),
            class_logits,
            learned,
        })
    }

    /// How many outputs the head has: class logits first, if there are any.
    pub(super) fn outputs(&self) -> usize {
        self.attributes + if self.class_logits { self.classes } else { 0 }
    }

    /// The learned factors on the costs of hierarchy and exclusion.
    pub(super) fn learned(&self) -> Vec<f64> {
        self.learned.as_ref().map_or(Vec::new(), |learned| learned.strengths.values().to_vec())
    }

    /// The slope of the loss of rows by the outputs of the head; `places` are the indices of their classes.
    pub(super) fn slope(
        &mut self,
        outputs: &Array2<f32>,
        places: &[usize],
    ) -> Result<Array2<f32>, Error> {
        let labels = self.classes + self.attributes;
        let from = labels - self.outputs();
        let mut scores = Array2::<f32>::zeros((places.len(), labels));
        scores.slice_mut(s![.., from..]).assign(outputs);
        let mut evidence = vec![Evidence::Unknown; places.len() * labels];
        for (row, &place) in places.iter().enumerate() {
            evidence[row * labels + place] = Evidence::On;
        }
        let scores = scores.as_slice().unwrap_or(&[]);
        let block = Block::new(labels, scores).with_evidence(&evidence);
        let objective = Objective { loss: Loss::Joint, costs: false };
        let found = learn::gradients(&self.seen_and_unseen, &block, None, objective)?;
        let total = found.total(None);
        if !total.is_finite() {
            let message =
                String::from("the loss is not a number any more; try smaller learning rates");
            return Err(Error::Broken { message });
        }
        let few = places.len().min(STRENGTH_ROWS) * labels;
        self.learn(&Block::new(labels, &scores[..few]).with_evidence(&evidence[..few]))?;
        let broken = |error: ndarray::ShapeError| Error::Broken { message: error.to_string() };
        let slopes =
            Array2::from_shape_vec((places.len(), labels), found.logits).map_err(broken)?;
        Ok(slopes.slice(s![.., from..]).to_owned())
    }

    /// A step of the strengths, if they are learned and one is due.
    fn learn(&mut self, block: &Block<'_, f32>) -> Result<(), Error> {
        let Some(learned) = &mut self.learned else { return Ok(()) };
        learned.steps += 1;
        if !learned.steps.is_multiple_of(STRENGTH_EVERY) {
            return Ok(());
        }
        let objective = Objective { loss: Loss::Joint, costs: true };
        let found = learn::gradients(&self.seen_and_unseen, block, None, objective)?;
        let by_factor = learned.strengths.gradient(&found.costs.unwrap_or_default());
        learned.step(&by_factor, block.rows() as f64);
        self.seen_and_unseen = compile(&learned.strengths.graph()?)?;
        Ok(())
    }

    /// The scores of the unseen classes and the attributes.
    pub(super) fn scores(&self, outputs: ArrayView2<'_, f32>) -> Array2<f32> {
        let labels = self.unseen.count + self.attributes;
        let mut scores = Array2::<f32>::zeros((outputs.nrows(), labels));
        let attributes = outputs.slice(s![.., outputs.ncols() - self.attributes..]);
        scores.slice_mut(s![.., self.unseen.count..]).assign(&attributes);
        if self.class_logits {
            let classes = outputs.slice(s![.., self.unseen_from..self.classes]);
            scores.slice_mut(s![.., ..self.unseen.count]).assign(&classes);
        }
        scores
    }

    /// The given relations of the unseen classes.
    pub(super) fn unseen(&self) -> &RelationGraph {
        &self.unseen.graph
    }

    /// The probability of each unseen class, given that the class is one of them.
    pub(super) fn answer(&self, outputs: ArrayView2<'_, f32>) -> Result<Array2<f64>, Error> {
        let graph = match &self.learned {
            None => self.unseen.graph.clone(),
            Some(learned) => {
                let mut part = learn::Strengths::new(self.unseen.graph.clone(), Tie::Kind)?;
                part.set(learned.strengths.values());
                part.graph()?
            }
        };
        let engine = compile(&graph)?;
        let scores = self.scores(outputs);
        let block = Block::new(scores.ncols(), scores.as_slice().unwrap_or(&[]));
        let found = engine.run(&block, Want::default())?;
        let probability = |(row, class): (usize, usize)| f64::from(found.row(row)[class]);
        Ok(Array2::from_shape_fn((outputs.nrows(), self.unseen.count), probability))
    }
}

impl LearnedFactors {
    fn step(&mut self, gradient: &[f64], rows: f64) {
        self.updates += 1;
        let mut step = Vec::with_capacity(gradient.len());
        for (at, g) in gradient.iter().map(|g| g / rows).enumerate() {
            self.first[at] = 0.9 * self.first[at] + 0.1 * g;
            self.second[at] = 0.99 * self.second[at] + 0.01 * g * g;
            let first = self.first[at] / (1.0 - 0.9f64.powi(self.updates));
            let second = self.second[at] / (1.0 - 0.99f64.powi(self.updates));
            step.push(-STRENGTH_RATE * first / (second.sqrt() + 1e-8));
        }
        self.strengths.step(&step);
    }
}
