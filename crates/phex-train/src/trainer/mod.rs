//! The training loop: stages of epochs of steps.
//!
//! A step is a batch of rows: standardised features, logits by the head, loss and gradient by the
//! objective, the backward pass, the optimiser. Everything random follows from the seed and the place
//! of the step, so that a resumed run has the same bits as an uninterrupted one. Besides the features,
//! memory holds one batch, the weights and the state of the optimiser. Each engine is compiled once:
//! stages with the same strength share it.

mod all_rows;
mod batches;
mod cross_fit;
mod measure;
mod observer;
mod repair;
mod state;
mod validate;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use phex::graph::RelationGraph;
use phex::infer::{Accelerator, Options};
use phex::learn::Strengths;

use crate::config::{Config, Norm, ObjectiveConfig, Stage, StrengthConfig, StrengthSetting};
use crate::examples::{Examples, mix, shuffled};
use crate::features::Standardiser;
use crate::head::Head;
use crate::model::TrainedModel;
use crate::objective::Objective;
use crate::optimiser::Optimiser;
use crate::{Error, checkpoint, prior};
use batches::LeafRows;
pub use batches::{WorkerPart, epoch_rows};
pub use measure::TrainedRun;
pub use observer::{Flow, Observer, Progress, Silent};
use repair::RepairedRun;
pub(crate) use state::{BestWeights, StrengthState, TrainerState};
pub use state::{EpochRecord, Profile};

/// A run: configuration, graph, data and current state.
#[derive(Debug)]
pub struct Trainer<'a> {
    config: Config,
    graph: RelationGraph,
    options: Options,
    /// Not part of the run's identity: the same run may resume on another device.
    accelerator: Option<Arc<dyn Accelerator>>,
    training: Examples<'a>,
    validation: Option<Examples<'a>>,
    /// Rows to train on; the other rows of the training table are held out.
    rows: Vec<u32>,
    held_out: Vec<u32>,
    /// The rows to train on that are labelled with a leaf.
    leaf_rows: LeafRows,
    weights: Option<Vec<f64>>,
    standardiser: Standardiser,
    state: TrainerState,
    objective: Objective,
    /// The objectives of stages by their strength.
    compiled: Vec<(StrengthSetting, Objective)>,
    /// Of the weights of [`Trainer::weigh`], if any.
    weights_fingerprint: Option<u64>,
    fingerprint: OnceLock<u64>,
    profile: Profile,
    /// Whether the model is compared with baselines at the end.
    compares: bool,
    /// The taxonomy that cross-fitting repaired, once the run is finished.
    repaired: Option<RepairedRun>,
    /// The head of [`Trainer::start_from`], if any.
    given_head: Option<Head>,
}

impl<'a> Trainer<'a> {
    /// A new run.
    ///
    /// # Errors
    /// When a setting is out of range, no engine can handle the graph, or the rows cannot be used.
    pub fn new(
        config: Config,
        graph: &RelationGraph,
        options: &Options,
        training: Examples<'a>,
        validation: Option<Examples<'a>>,
    ) -> Result<Trainer<'a>, Error> {
        config.check()?;
        config.head.size(training.features.columns, graph.len())?;
        if training.rows() < 2 {
            return Err(Error::Examples { message: String::from("two rows or more are needed") });
        }
        let all: Vec<u32> = (0..training.rows() as u32).collect();
        let held_out = match validation {
            Some(_) => 0,
            None => ((training.rows() as f64 * config.validation.fraction) as usize)
                .min(training.rows() - 1),
        };
        let mut held_out = shuffled(&all, mix(&[config.seed, 0x7661_6c69]))[..held_out].to_vec();
        held_out.sort_unstable();
        let rows: Vec<u32> =
            all.into_iter().filter(|row| held_out.binary_search(row).is_err()).collect();
        let standardiser = Standardiser::new(
            training.features,
            rows.iter().map(|&row| row as usize),
            config.head.feature_clip,
        );
        if let Some(validation) = validation {
            standardiser.check(validation.features)?;
        }
        let leaf_rows = LeafRows::new(&training, &rows, graph);
        let weights = training.weights(&config.class_weights, graph)?;
        let mut head = Head::of_graph(&config.head, training.features.columns, graph, config.seed);
        let mut state = start_stage(&config, graph, 0, head.clone())?;
        let strength = config.stages[0].strength;
        let objective = Objective::new(config.objective, &strength.apply(graph)?, options)?;
        if config.head.prior {
            head.set_biases(&prior::biases(&objective, &training, &rows, config.seed)?);
            state.optimiser = Optimiser::new(&config.optimiser, head.layout(), &head.weights);
            state.head = head;
        }
        let graph = graph.clone();
        let options = options.clone();
        Ok(Trainer {
            config,
            graph,
            options,
            accelerator: None,
            training,
            validation,
            rows,
            held_out,
            leaf_rows,
            weights,
            standardiser,
            state,
            compiled: vec![(strength, objective.clone())],
            objective,
            weights_fingerprint: None,
            fingerprint: OnceLock::new(),
            profile: Profile::default(),
            compares: true,
            repaired: None,
            given_head: None,
        })
    }

    /// The same run with the losses and probabilities of batches computed on a device. Its fingerprint
    /// is the same, so a checkpoint of one device can be resumed on another. The head stays on the CPU.
    ///
    /// # Errors
    /// As [`Config::check_on`], for all stages, so that a later stage cannot fail after hours of
    /// training.
    pub fn on(mut self, accelerator: Arc<dyn Accelerator>) -> Result<Trainer<'a>, Error> {
        if !matches!(self.config.objective, ObjectiveConfig::Relations { .. }) {
            return Err(Error::NothingToAccelerate);
        }
        self.accelerator = Some(accelerator);
        for (strength, objective) in std::mem::take(&mut self.compiled) {
            let moved = self.moved(objective)?;
            self.compiled.push((strength, moved));
        }
        for stage in 0..self.config.stages.len() {
            self.stage_objective(stage)?;
        }
        self.objective = self.current_objective()?;
        Ok(self)
    }

    /// An objective on the device of this run.
    fn moved(&self, objective: Objective) -> Result<Objective, Error> {
        match &self.accelerator {
            Some(accelerator) => objective.on(&**accelerator, self.config.wanted()),
            None => Ok(objective),
        }
    }

    /// The objective at the start of a stage, compiled unless an earlier stage had the same strength.
    fn stage_objective(&mut self, stage: usize) -> Result<Objective, Error> {
        let strength = self.config.stages[stage].strength;
        if let Some((_, objective)) = self.compiled.iter().find(|(made, _)| *made == strength) {
            return Ok(objective.clone());
        }
        let objective = self.compile(&strength.apply(&self.graph)?)?;
        self.compiled.push((strength, objective.clone()));
        Ok(objective)
    }

    fn compile(&self, graph: &RelationGraph) -> Result<Objective, Error> {
        self.moved(Objective::new(self.config.objective, graph, &self.options)?)
    }

    /// Multiplies the loss of each row of the training table by a weight.
    ///
    /// # Errors
    /// [`Error::Examples`] when there is not a finite weight of 0 or more for each row.
    pub fn weigh(&mut self, weights: &[f64]) -> Result<(), Error> {
        let (rows, found) = (self.training.rows(), weights.len());
        let message = match weights.iter().position(|weight| !(0.0..f64::INFINITY).contains(weight))
        {
            _ if found != rows => format!("there are {rows} rows and {found} weights"),
            Some(row) => format!("the weight {} of row {row} is not 0 or more", weights[row]),
            None => {
                let bits = weights.iter().map(|weight| weight.to_bits());
                self.weights_fingerprint = Some(checkpoint::hash(bits));
                self.fingerprint = OnceLock::new();
                let mut old = self.weights.take().unwrap_or_else(|| vec![1.0; rows]);
                old.iter_mut().zip(weights).for_each(|(old, weight)| *old *= weight);
                self.weights = Some(old);
                return Ok(());
            }
        };
        Err(Error::Examples { message })
    }

    /// Starts from the weights of a trained head instead of fresh ones: fine-tuning.
    ///
    /// # Errors
    /// [`Error::Model`] when the head has another shape.
    pub fn start_from(&mut self, head: &Head) -> Result<(), Error> {
        let own = &mut self.state.head;
        if head.layout() != own.layout() {
            let size = |head: &Head| {
                let (features, labels) = (head.inputs(), head.outputs());
                format!("{features} features, {labels} labels and {} weights", head.len())
            };
            return Err(Error::Model {
                message: format!(
                    "the start model has {}; this run needs {}",
                    size(head),
                    size(own)
                ),
            });
        }
        own.copy_weights(head);
        self.given_head = Some(head.clone());
        self.state.optimiser = Optimiser::new(&self.config.optimiser, own.layout(), &own.weights);
        Ok(())
    }

    /// Continues from a checkpoint of the same run.
    ///
    /// # Errors
    /// [`Error::OtherRun`] when the checkpoint belongs to another configuration, graph or table.
    pub fn resume(&mut self, checkpoint: &checkpoint::Checkpoint) -> Result<(), Error> {
        self.state = checkpoint.restore(self)?;
        self.objective = self.current_objective()?;
        Ok(())
    }

    /// The engine, if the objective has relations.
    pub fn engine(&self) -> Option<&phex::infer::Engine> {
        self.objective.engine()
    }

    /// The rows of the training table that validation holds out, in order.
    pub fn held_out(&self) -> &[u32] {
        &self.held_out
    }

    /// A text that differs when settings, graph, engine, data or row weights differ.
    ///
    /// # Errors
    /// When the settings cannot be written as JSON.
    pub fn fingerprint(&self) -> Result<String, Error> {
        checkpoint::fingerprint(self)
    }

    /// Trains to the end.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the observer stops it, [`phex::Error::Contradiction`] for a row that
    /// contradicts hard relations, [`Error::Diverged`] when the loss is not finite.
    pub fn run(mut self, observer: &mut dyn Observer) -> Result<TrainedModel, Error> {
        self.run_stages(observer)?;
        let again = self.train_on_all_rows(observer)?;
        Ok(self.into_model()?.with_head_of(again))
    }

    fn run_stages(&mut self, observer: &mut dyn Observer) -> Result<(), Error> {
        loop {
            let stage = self.config.stages[self.state.stage].clone();
            self.cross_fit(observer)?;
            if self.repaired.is_some() {
                return Ok(());
            }
            let rows = self.training.choose(&self.rows, stage.rows, &self.graph)?;
            while self.state.epoch < stage.epochs && !self.is_stale() {
                self.run_epoch(&stage, &rows, observer)?;
            }
            self.end_stage();
            let next = self.state.stage + 1;
            if next == self.config.stages.len() {
                return Ok(());
            }
            let head = self.state.head.clone();
            let history = std::mem::take(&mut self.state.history);
            self.objective = self.stage_objective(next)?;
            self.state = start_stage(&self.config, &self.graph, next, head)?;
            self.state.history = history;
        }
    }

    fn is_stale(&self) -> bool {
        let patience = self.config.validation.patience;
        patience > 0 && self.state.stale >= patience
    }

    fn run_epoch(
        &mut self,
        stage: &Stage,
        rows: &[u32],
        observer: &mut dyn Observer,
    ) -> Result<(), Error> {
        let started = Instant::now();
        self.profile = Profile::default();
        let (at_stage, at_epoch) = (self.state.stage as u64, self.state.epoch as u64);
        let batch = self.config.optimiser.batch;
        let order = self.epoch_order(stage, rows, [self.config.seed, at_stage, at_epoch]);
        let steps = self.steps(order.len());
        let epochs = self.config.stages.iter().map(|stage| stage.epochs);
        let epochs = epochs.fold(0, usize::saturating_add);
        let epoch = self.state.history.len() + 1;
        // From the place alone, so that an epoch resumed at its end has a last step as well.
        let base = stage.learning_rate.unwrap_or(self.config.optimiser.learning_rate);
        let schedule = self.config.optimiser.schedule;
        let learning_rate = |step: usize| {
            let (at, all) = (
                at_epoch * steps as u64 + step as u64,
                (stage.epochs as u64).saturating_mul(steps as u64),
            );
            base * schedule.factor(at, all, steps as u64)
        };
        while self.state.step < steps {
            let step = self.state.step;
            let noise = mix(&[self.config.seed, at_stage, at_epoch, step as u64]);
            let part = &order[step * batch..((step + 1) * batch).min(order.len())];
            self.run_step(part, learning_rate(step), noise, epoch)?;
            self.state.step += 1;
            let progress = Progress {
                stage: &stage.name,
                epoch: (epoch, epochs),
                step: (self.state.step, steps),
                loss: self.state.loss_sum / self.state.row_sum.max(1.0),
            };
            match observer.progress(&progress) {
                Flow::Continue => {}
                Flow::Save => observer.save(&checkpoint::Checkpoint::of(self)?)?,
                Flow::Stop => {
                    observer.save(&checkpoint::Checkpoint::of(self)?)?;
                    return Err(Error::Interrupted);
                }
            }
        }
        let last = learning_rate(steps.saturating_sub(1));
        let record = self.end_epoch(stage, epoch, last, started)?;
        observer.epoch(&record);
        observer.save(&checkpoint::Checkpoint::of(self)?)
    }

    /// The rows of an epoch in their order.
    fn epoch_order(&self, stage: &Stage, rows: &[u32], place: [u64; 3]) -> Vec<u32> {
        let order = shuffled(rows, mix(&place));
        let batch = self.config.optimiser.batch;
        self.leaf_rows.mixed(order, stage.leaf_share, batch, place, WorkerPart::WHOLE)
    }

    /// How many steps an epoch of so many rows takes.
    fn steps(&self, rows: usize) -> usize {
        let batch = self.config.optimiser.batch;
        let steps = rows.div_ceil(batch);
        // A norm over a batch of one row is meaningless.
        let alone = self.config.head.norm == Norm::Batch && rows % batch == 1;
        if alone && steps > 1 { steps - 1 } else { steps }
    }

    /// How many steps each epoch of a stage takes.
    pub(crate) fn steps_of_stage(&self, at: usize) -> Result<usize, Error> {
        let stage = &self.config.stages[at];
        let rows = self.training.choose(&self.rows, stage.rows, &self.graph)?;
        Ok(self.steps(self.epoch_order(stage, &rows, [self.config.seed, at as u64, 0]).len()))
    }

    fn run_step(
        &mut self,
        rows: &[u32],
        learning_rate: f64,
        noise: u64,
        epoch: usize,
    ) -> Result<(), Error> {
        let mut clock = Clock::start();
        let (features, evidence) = self.training.gather(&self.standardiser, rows);
        let weight = |&row: &u32| self.weights.as_ref().map_or(1.0, |all| all[row as usize]);
        let weights: Vec<f64> = rows.iter().map(weight).collect();
        let learns_by_step = matches!(self.config.strengths, StrengthConfig::Learned { .. })
            && self.state.strengths.is_some();
        let state = &mut self.state;
        clock.add(&mut self.profile.rows);
        let (logits, tape) = state.head.forward(features, noise);
        clock.add(&mut self.profile.head);
        let mut found = self.objective.loss(&logits, &evidence, &weights, learns_by_step)?;
        clock.add(&mut self.profile.inference);
        if let Some(at) = found.impossible {
            return Err(self.training.contradiction(rows[at] as usize, &self.graph));
        }
        if !found.total.is_finite() {
            return Err(Error::Diverged { loss: found.total, epoch, learning_rate });
        }
        let scale = 1.0 / rows.len() as f32;
        found.by_logit.iter_mut().for_each(|slope| *slope *= scale);
        let gradient = state.head.backward(&tape, found.by_logit);
        clock.add(&mut self.profile.head);
        state.optimiser.step(&mut state.head.weights, &gradient, learning_rate);
        clock.add(&mut self.profile.optimiser);
        state.loss_sum += found.total;
        state.row_sum += weights.iter().sum::<f64>();
        if let (Some(strengths), Some(by_cost)) = (&mut state.strengths, &found.by_cost) {
            let gradient = strengths.strengths.gradient(by_cost);
            strengths.gradient.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
            strengths.rows += rows.len() as f64;
            self.step_strengths()?;
        }
        Ok(())
    }

    /// A step of the strengths, when one is due.
    fn step_strengths(&mut self) -> Result<(), Error> {
        let StrengthConfig::Learned { prior, learning_rate, every, .. } = self.config.strengths
        else {
            return Ok(());
        };
        if !self.state.optimiser.steps.is_multiple_of(every as u64) {
            return Ok(());
        }
        if let Some(strengths) = &mut self.state.strengths {
            strengths.step(learning_rate, prior);
            self.objective = self.current_objective()?;
        }
        Ok(())
    }

    /// The objective of the current stage, with the strengths that are learned so far.
    fn current_objective(&mut self) -> Result<Objective, Error> {
        match self.state.strengths {
            Some(_) => self.compile(&self.current_graph()?),
            None => self.stage_objective(self.state.stage),
        }
    }

    fn current_graph(&self) -> Result<RelationGraph, Error> {
        if let Some(repaired) = &self.repaired {
            return Ok(repaired.graph.clone());
        }
        Ok(match &self.state.strengths {
            Some(learned) => learned.strengths.graph()?,
            None => self.config.stages[self.state.stage].strength.apply(&self.graph)?,
        })
    }

    fn end_epoch(
        &mut self,
        stage: &Stage,
        epoch: usize,
        learning_rate: f64,
        started: Instant,
    ) -> Result<EpochRecord, Error> {
        let mut clock = Clock::start();
        let done = self.state.epoch + 1;
        let is_due = done == stage.epochs || done.is_multiple_of(stage.validate_every);
        let measured = if is_due { self.validate()? } else { None };
        clock.add(&mut self.profile.validation);
        let state = &mut self.state;
        let strengths = state
            .strengths
            .as_ref()
            .map_or(Vec::new(), |learned| learned.strengths.values().to_vec());
        let record = EpochRecord {
            stage: stage.name.clone(),
            epoch,
            training_loss: state.loss_sum / state.row_sum.max(f64::MIN_POSITIVE),
            validation_loss: measured.map(|(loss, _)| loss),
            validation_metric: measured.map(|(_, metric)| metric),
            learning_rate,
            strengths: strengths.clone(),
            seconds: started.elapsed().as_secs_f64(),
            profile: self.profile,
        };
        if let Some((_, metric)) = measured {
            let improves =
                |best: &BestWeights| self.config.validation.metric.improves(metric, best.metric);
            state.stale += 1;
            if state.best.as_ref().is_none_or(improves) {
                let (weights, averages) = (
                    state.optimiser.kept(&state.head.weights).to_vec(),
                    state.head.averages.clone(),
                );
                state.best = Some(BestWeights { metric, epoch, weights, averages, strengths });
                state.stale = 0;
            }
        }
        state.history.push(record.clone());
        (state.epoch, state.step, state.loss_sum, state.row_sum) = (state.epoch + 1, 0, 0.0, 0.0);
        Ok(record)
    }

    /// The weights that are kept become the head's.
    fn end_stage(&mut self) {
        let state = &mut self.state;
        match &state.best {
            Some(best) => {
                state.head.weights.clone_from(&best.weights);
                state.head.averages.clone_from(&best.averages);
                if let Some(learned) = &mut state.strengths {
                    learned.strengths.set(&best.strengths);
                }
            }
            None => {
                let kept = state.optimiser.kept(&state.head.weights).to_vec();
                state.head.weights = kept;
            }
        }
    }

    fn into_model(self) -> Result<TrainedModel, Error> {
        let graph = self.current_graph()?;
        Ok(TrainedModel {
            config: self.config,
            graph,
            head: self.state.head,
            standardiser: self.standardiser,
            best_epoch: self.state.best.map(|best| best.epoch),
            history: self.state.history,
            schema: None,
            baselines: None,
        })
    }

    pub(crate) fn state(&self) -> &TrainerState {
        &self.state
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn graph(&self) -> &RelationGraph {
        &self.graph
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// A number that differs when the features, the targets or the weights of rows differ.
    pub(crate) fn data_fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| {
            let of = |examples: &Examples<'_>| {
                let values =
                    examples.features.values.iter().map(|value| u64::from(value.to_bits()));
                let rows = 0..examples.rows();
                let targets = rows.flat_map(|row| {
                    let target = examples.targets.row(row);
                    let listed = target.listed.iter();
                    let listed =
                        listed.map(|entry| u64::from(entry.label) << 1 | u64::from(entry.on));
                    std::iter::once(u64::MAX - u64::from(target.others_off)).chain(listed)
                });
                checkpoint::hash(values.chain(targets))
            };
            let data = mix(&[of(&self.training), self.validation.as_ref().map_or(0, of)]);
            self.weights_fingerprint.map_or(data, |weights| mix(&[data, weights]))
        })
    }

    /// The state at the start of a stage.
    pub(crate) fn fresh_state(&self, stage: usize) -> Result<TrainerState, Error> {
        let columns = self.training.features.columns;
        let head = Head::of_graph(&self.config.head, columns, &self.graph, self.config.seed);
        start_stage(&self.config, &self.graph, stage, head)
    }
}

/// Attributes elapsed time to what it was spent on.
struct Clock(Instant);

impl Clock {
    fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Adds the time since the last call.
    fn add(&mut self, to: &mut f64) {
        let now = Instant::now();
        *to += (now - self.0).as_secs_f64();
        self.0 = now;
    }
}

/// The state at the start of a stage that continues with this head.
fn start_stage(
    config: &Config,
    graph: &RelationGraph,
    at: usize,
    head: Head,
) -> Result<TrainerState, Error> {
    let strengths = match config.strengths {
        StrengthConfig::Fixed => None,
        StrengthConfig::CrossFitted { tie, .. } => {
            let graph = config.stages[at].strength.apply(graph)?;
            cross_fit::at_stage(graph, tie, at + 1 == config.stages.len())?
        }
        StrengthConfig::Learned { tie, .. } => {
            let graph = config.stages[at].strength.apply(graph)?;
            match Strengths::new(graph, tie) {
                Ok(strengths) => Some(StrengthState::new(strengths)),
                // A hard stage of a curriculum has nothing to learn; the last one must.
                Err(phex::Error::NothingToLearn { .. }) if at + 1 < config.stages.len() => None,
                Err(error) => return Err(error.into()),
            }
        }
    };
    Ok(TrainerState {
        stage: at,
        epoch: 0,
        step: 0,
        loss_sum: 0.0,
        row_sum: 0.0,
        optimiser: Optimiser::new(&config.optimiser, head.layout(), &head.weights),
        head,
        strengths,
        best: None,
        stale: 0,
        history: Vec::new(),
    })
}
