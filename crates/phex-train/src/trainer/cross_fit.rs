//! Cross-fitting: strengths that are learned on rows which the weights have not seen.
//!
//! Scores that were trained under a relation agree with it on the rows that they were trained on, also where
//! the relation is wrong. So the likelihood of these rows cannot tell a wrong relation from a right one. Here
//! the rows are cut into `K` folds. A head is trained on all rows outside of each fold, and the strengths `φ`
//! minimise the loss of every row under the scores `z` of the head that has not seen it:
//!
//! `(1/N) Σᵢ −log p(evidence of i | z₋ᵢ(xᵢ) + b, φ) + λ/(2N) Σ (φ − given)²`, by Adam over `φ` and `b`.
//!
//! The scores `z` are fixed. The offsets `b`, one for each label, are thrown away: without them a strength
//! also has to make up for a label that is too probable, and wrong relations look strong. `φ` starts at a
//! quarter of the given strengths, so that rows have to earn a relation its strength. With one strength for
//! each relation, those that end below half of the median are dropped: only the comparison with the others
//! shows what the rows say about a relation, and a relation that is mostly wrong does harm at any strength.
//!
//! The heads are trained *apart*: soft hierarchy relations whose parent occurs in the evidence are left out,
//! so that both ends of a relation learn from rows of their own. Their agreement is then evidence for the
//! relation. Parents that never occur would learn nothing; their relations stay as given.
//!
//! In a taxonomy, the learned strengths say which relations are wrong, and [`repair`](super::repair) puts
//! them right. Elsewhere, the last stage trains with the learned strengths. If it is also the first, it starts from a head that was
//! trained apart on all rows: a label whose relation is weak must find its own way to the labels above it,
//! and from zero weights it finds none. This start is trained for a third of the stage's epochs only. A
//! longer one has fitted the rows labelled with a leaf too closely for the last stage to improve it.
//!
//! This costs `K` trainings of as many epochs as the stage, on `1 − 1/K` of the rows, a third of a training
//! on all rows, and [`STEPS`] steps, each with one compilation of the engine.

use std::sync::Arc;

use phex::graph::{RelationGraph, Strength};
use phex::learn::{Strengths, Tie};

use super::measure::Stoppable;
use super::state::adam;
use super::{LeafRows, Observer, StrengthState, Trainer, start_stage};
use crate::Error;
use crate::config::{RowChoice, StrengthConfig, StrengthSetting};
use crate::examples::{mix, shuffled};
use crate::head::Head;
use crate::objective::Objective;

/// The name in progress reports.
const APART: &str = "cross-fit";

/// Steps of the strengths.
const STEPS: usize = 400;

/// Rows per step.
const ROWS: usize = 512;

/// The head from which the last stage starts is trained for one in this many of its epochs.
const START_EPOCHS: usize = 3;

/// Where strengths start, in parts of the given ones.
const START: f64 = 0.25;

/// Relations with less than this share of the median strength are dropped.
const KEPT: f64 = 0.5;

/// A median of so few strengths says nothing.
const FEW: usize = 10;

/// The first step of offsets.
const OFFSET_RATE: f64 = 0.1;

/// The seed of folds and batches differs from those of the other orders of rows.
const FOLDS: u64 = 0x666f_6c64;

impl Trainer<'_> {
    /// Learns the strengths of the last stage, if they are cross-fitted and it is about to begin.
    pub(super) fn cross_fit(&mut self, observer: &mut dyn Observer) -> Result<(), Error> {
        let StrengthConfig::CrossFitted { prior, learning_rate, folds, .. } = self.config.strengths
        else {
            return Ok(());
        };
        let state = &self.state;
        let is_last = state.stage + 1 == self.config.stages.len();
        let Some(learned) = &state.strengths else { return Ok(()) };
        if !is_last || state.epoch > 0 || state.step > 0 {
            return Ok(());
        }
        let mut strengths = learned.strengths.clone();
        let stage = &self.config.stages[state.stage];
        let epochs = stage.epochs;
        let apart = self.apart(&stage.strength.apply(&self.graph)?)?;
        let order = shuffled(&self.rows, mix(&[self.config.seed, FOLDS]));
        let folds = folds.min(order.len());
        let fold_of = |at: usize| at * folds / order.len();
        let mut parts: Vec<(Head, Vec<u32>)> = Vec::with_capacity(folds);
        for fold in 0..folds {
            let of = |inside: bool| -> Vec<u32> {
                let rows =
                    order.iter().enumerate().filter(|(at, _)| (fold_of(*at) == fold) == inside);
                rows.map(|(_, &row)| row).collect()
            };
            let mut others = of(false);
            others.sort_unstable();
            parts.push((self.head_apart(&apart, others, epochs, observer)?, of(true)));
        }
        self.fit_strengths(&parts, &mut strengths, prior, learning_rate)?;
        if self.train_repaired(&parts, &strengths, observer)? {
            return Ok(());
        }
        if self.state.stage == 0 {
            let epochs = epochs.div_ceil(START_EPOCHS);
            let head = self.head_apart(&apart, self.rows.clone(), epochs, observer)?;
            self.state = start_stage(&self.config, &self.graph, 0, head)?;
        }
        self.state.strengths = Some(StrengthState::new(strengths));
        self.objective = self.current_objective()?;
        Ok(())
    }

    /// The graph without the soft hierarchy relations whose parent occurs in the evidence.
    fn apart(&self, graph: &RelationGraph) -> Result<RelationGraph, Error> {
        let mut occurs = vec![false; graph.len()];
        for &row in &self.rows {
            let target = self.training.targets.row(row as usize);
            let on = target.listed.iter().filter(|entry| entry.on);
            on.for_each(|entry| occurs[entry.label as usize] = true);
        }
        Ok(graph.map_hierarchy(|edge| {
            match edge.strength.is_hard() || !occurs[edge.parent.index()] {
                true => edge.strength,
                false => Strength::W(0.0),
            }
        })?)
    }

    /// A head trained on these rows under another graph, with the settings of the stage.
    fn head_apart(
        &self,
        graph: &RelationGraph,
        rows: Vec<u32>,
        epochs: usize,
        observer: &mut dyn Observer,
    ) -> Result<Head, Error> {
        let mut config = self.config.clone();
        let mut stage = config.stages[self.state.stage].clone();
        stage.strength = StrengthSetting::Given;
        stage.rows = RowChoice::All;
        stage.epochs = epochs;
        config.stages = vec![stage];
        config.strengths = StrengthConfig::Fixed;
        config.validation.fraction = 0.0;
        let mut trainer = Trainer::new(config, graph, &self.options, self.training, None)?;
        if let Some(accelerator) = &self.accelerator {
            trainer = trainer.on(Arc::clone(accelerator))?;
        }
        trainer.leaf_rows = LeafRows::new(&self.training, &rows, graph);
        trainer.rows = rows;
        trainer.standardiser = self.standardiser.clone();
        trainer.weights.clone_from(&self.weights);
        Ok(trainer.run(&mut Stoppable { observer, stage: APART })?.head)
    }

    /// Adam on the loss of each row under the scores of the head that has not seen it, beside an offset of
    /// each label's scores. Steps shrink to zero, so that the noise of batches averages out.
    fn fit_strengths(
        &self,
        parts: &[(Head, Vec<u32>)],
        strengths: &mut Strengths,
        prior: f64,
        learning_rate: f64,
    ) -> Result<(), Error> {
        let rows: Vec<(usize, u32)> = parts
            .iter()
            .enumerate()
            .flat_map(|(part, (_, rows))| rows.iter().map(move |&row| (part, row)))
            .collect();
        let places: Vec<u32> = (0..rows.len() as u32).collect();
        let pass = rows.len().div_ceil(ROWS);
        let given = strengths.values().to_vec();
        // Parameters are factors near 1 or costs: a step is a share of their mean size.
        let size = given.iter().sum::<f64>() / given.len().max(1) as f64;
        let mut state = StrengthState::new(strengths.clone());
        let weak: Vec<f64> = given.iter().map(|given| START * given).collect();
        state.strengths.set(&weak);
        let mut offsets = Offsets::new(self.graph.len());
        let mut order = Vec::new();
        for step in 0..STEPS {
            let within = step % pass;
            if within == 0 {
                let seed = mix(&[self.config.seed, FOLDS, (step / pass) as u64 + 1]);
                order = shuffled(&places, seed);
            }
            let batch = &order[within * ROWS..((within + 1) * ROWS).min(order.len())];
            let graph = state.strengths.graph()?;
            let objective = Objective::new(self.config.objective, &graph, &self.options)?;
            for (part, (head, _)) in parts.iter().enumerate() {
                let inside = batch.iter().map(|&at| rows[at as usize]);
                let own: Vec<u32> =
                    inside.filter(|(of, _)| *of == part).map(|(_, row)| row).collect();
                if own.is_empty() {
                    continue;
                }
                let (features, evidence) = self.training.gather(&self.standardiser, &own);
                let weight =
                    |&row: &u32| self.weights.as_ref().map_or(1.0, |all| all[row as usize]);
                let weights: Vec<f64> = own.iter().map(weight).collect();
                let mut logits = head.logits(&features);
                offsets.add_to(&mut logits);
                let found = objective.loss(&logits, &evidence, &weights, true)?;
                if let Some(at) = found.impossible {
                    return Err(self.training.contradiction(own[at] as usize, &self.graph));
                }
                if let Some(by_cost) = found.by_cost {
                    let gradient = state.strengths.gradient(&by_cost);
                    state.gradient.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
                }
                state.rows += own.len() as f64;
                offsets.collect(&found.by_logit);
            }
            let left = 1.0 - step as f64 / STEPS as f64;
            offsets.step(OFFSET_RATE * left, state.rows, state.steps + 1);
            state.step(learning_rate * size * left, prior / rows.len() as f64);
        }
        let mut values = state.strengths.values().to_vec();
        if values.len() > FEW {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let weakest = KEPT * sorted[sorted.len() / 2];
            values.iter_mut().filter(|value| **value < weakest).for_each(|value| *value = 0.0);
        }
        strengths.set(&values);
        Ok(())
    }
}

/// An offset for the scores of each label, with the memory of Adam.
struct Offsets {
    values: Vec<f64>,
    gradient: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Offsets {
    fn new(labels: usize) -> Offsets {
        let zeros = || vec![0.0; labels];
        Offsets { values: zeros(), gradient: zeros(), first: zeros(), second: zeros() }
    }

    fn add_to(&self, logits: &mut [f32]) {
        for row in logits.chunks_exact_mut(self.values.len()) {
            row.iter_mut().zip(&self.values).for_each(|(logit, offset)| *logit += *offset as f32);
        }
    }

    fn collect(&mut self, by_logit: &[f32]) {
        for row in by_logit.chunks_exact(self.values.len()) {
            self.gradient.iter_mut().zip(row).for_each(|(sum, g)| *sum += f64::from(*g));
        }
    }

    fn step(&mut self, learning_rate: f64, rows: f64, steps: u64) {
        let slope: Vec<f64> = self.gradient.iter().map(|sum| sum / rows.max(1.0)).collect();
        let step = adam(&slope, &mut self.first, &mut self.second, steps, learning_rate);
        self.values.iter_mut().zip(step).for_each(|(value, by)| *value += by);
        self.gradient.fill(0.0);
    }
}

/// The strengths of a stage under cross-fitting: those of the last stage, as given until they are learned.
pub(super) fn at_stage(
    graph: RelationGraph,
    tie: Tie,
    is_last: bool,
) -> Result<Option<StrengthState>, Error> {
    match is_last {
        true => Ok(Some(StrengthState::new(Strengths::new(graph, tie)?))),
        false => Ok(None),
    }
}
