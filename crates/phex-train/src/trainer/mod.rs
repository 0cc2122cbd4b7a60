//! The training loop: stages of epochs of steps.
//!
//! A step is a batch of rows: features standardised, logits by the head, loss and gradient by the
//! objective, the way back, the optimiser. All that is random follows from the seed and the place
//! of the step, so a run that was interrupted and resumed has the bits of one that was not; memory
//! beyond the features is a batch, the weights and their optimiser.

mod state;
mod validate;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use phex::graph::RelationGraph;
use phex::infer::{Accelerator, Options};
use phex::learn::Strengths;

use crate::config::{Config, Norm, Stage, StrengthConfig};
use crate::examples::{Examples, mix, shuffled};
use crate::features::Standardiser;
use crate::head::Head;
use crate::model::TrainedModel;
use crate::objective::Objective;
use crate::optimiser::Optimiser;
use crate::{Error, checkpoint, prior};
pub(crate) use state::{Best, State, StrengthState};
pub use state::{EpochRecord, Profile};

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The name of the stage.
    pub stage: &'a str,
    /// The epoch, counted from 1 over all stages, and how many there may be.
    pub epoch: (usize, usize),
    /// The step in the epoch, and how many it has.
    pub step: (usize, usize),
    /// The mean loss of the epoch so far.
    pub loss: f64,
}

/// What to do after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Save a checkpoint and go on.
    Save,
    /// Save a checkpoint and stop.
    Stop,
}

/// Watches a run.
pub trait Observer {
    /// After each step.
    fn progress(&mut self, _: &Progress<'_>) -> Flow {
        Flow::Continue
    }

    /// After each epoch.
    fn epoch(&mut self, _: &EpochRecord) {}

    /// Keeps a checkpoint: after each epoch and when [`Observer::progress`] asks for it.
    ///
    /// # Errors
    /// Whatever keeps it from being written; the run ends with it.
    fn save(&mut self, _: &checkpoint::Checkpoint) -> Result<(), Error> {
        Ok(())
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}

/// A run: configuration, graph and data, and where it stands.
#[derive(Debug)]
pub struct Trainer<'a> {
    config: Config,
    graph: RelationGraph,
    options: Options,
    /// No part of what the run is: another one may go on with it.
    accelerator: Option<Arc<dyn Accelerator>>,
    training: Examples<'a>,
    validation: Option<Examples<'a>>,
    /// Rows that are trained on; the others of the training table are held out.
    rows: Vec<u32>,
    held_out: Vec<u32>,
    weights: Option<Vec<f64>>,
    standardiser: Standardiser,
    state: State,
    objective: Objective,
    fingerprint: OnceLock<u64>,
    profile: Profile,
}

impl<'a> Trainer<'a> {
    /// A run at its start.
    ///
    /// # Errors
    /// When a setting is out of range, no engine takes the graph, or the rows do not do.
    pub fn new(
        config: Config,
        graph: &RelationGraph,
        options: &Options,
        training: Examples<'a>,
        validation: Option<Examples<'a>>,
    ) -> Result<Trainer<'a>, Error> {
        config.check()?;
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
        let weights = training.weights(&config.class_weights, graph)?;
        let mut head = Head::new(&config.head, training.features.columns, graph.len(), config.seed);
        let (mut state, objective) = start_stage(&config, graph, options, 0, head.clone())?;
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
            weights,
            standardiser,
            state,
            objective,
            fingerprint: OnceLock::new(),
            profile: Profile::default(),
        })
    }

    /// The same run with losses and probabilities of batches from a device. It is the same run by its
    /// fingerprint too: a checkpoint of one device serves on another. The head stays on the processor.
    ///
    /// # Errors
    /// As [`Config::check_on`], of all stages, so that none fails after hours of others.
    pub fn on(mut self, accelerator: Arc<dyn Accelerator>) -> Result<Trainer<'a>, Error> {
        self.config.check_on(&*accelerator, &self.graph, &self.options)?;
        self.accelerator = Some(accelerator);
        self.objective = self.brought(self.objective.clone())?;
        Ok(self)
    }

    /// An objective where it runs.
    fn brought(&self, objective: Objective) -> Result<Objective, Error> {
        match &self.accelerator {
            Some(accelerator) => objective.on(&**accelerator, self.config.wanted()),
            None => Ok(objective),
        }
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
            return Err(Error::Model {
                message: format!(
                    "a head of {} features, {} labels and {} weights cannot start one of {}, {} and {}",
                    head.inputs(),
                    head.outputs(),
                    head.len(),
                    own.inputs(),
                    own.outputs(),
                    own.len()
                ),
            });
        }
        own.weights.clone_from(&head.weights);
        own.averages.clone_from(&head.averages);
        self.state.optimiser = Optimiser::new(&self.config.optimiser, own.layout(), &own.weights);
        Ok(())
    }

    /// Goes on from a checkpoint of the same run.
    ///
    /// # Errors
    /// [`Error::OtherRun`] when the checkpoint is of another configuration, graph or table.
    pub fn resume(&mut self, checkpoint: &checkpoint::Checkpoint) -> Result<(), Error> {
        self.state = checkpoint.restore(self)?;
        self.objective = self.objective_now()?;
        Ok(())
    }

    /// Which engine answers, where relations take part.
    pub fn engine(&self) -> Option<&phex::infer::Engine> {
        self.objective.engine()
    }

    /// The rows of the training table that validation holds out, in order.
    pub fn held_out(&self) -> &[u32] {
        &self.held_out
    }

    /// A text that differs when settings, graph, engine or data differ.
    ///
    /// # Errors
    /// When the settings cannot be written as JSON.
    pub fn fingerprint(&self) -> Result<String, Error> {
        checkpoint::fingerprint(self)
    }

    /// Trains to the end.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the observer stops it, [`Error::Impossible`] on a row that hard
    /// relations forbid, [`Error::Diverged`] when the loss is no number any more.
    pub fn run(mut self, observer: &mut dyn Observer) -> Result<TrainedModel, Error> {
        loop {
            let stage = self.config.stages[self.state.stage].clone();
            let rows = self.training.choose(&self.rows, stage.rows, &self.graph)?;
            while self.state.epoch < stage.epochs && !self.is_stale() {
                self.run_epoch(&stage, &rows, observer)?;
            }
            self.end_stage();
            if self.state.stage + 1 == self.config.stages.len() {
                return self.finish();
            }
            let head = self.state.head.clone();
            let history = std::mem::take(&mut self.state.history);
            let next = self.state.stage + 1;
            let (state, objective) =
                start_stage(&self.config, &self.graph, &self.options, next, head)?;
            (self.state, self.objective) = (state, self.brought(objective)?);
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
        let order = shuffled(rows, mix(&[self.config.seed, at_stage, at_epoch]));
        let batch = self.config.optimiser.batch;
        let mut steps = order.len().div_ceil(batch);
        // A norm over a batch of one row is nothing.
        if self.config.head.norm == Norm::Batch && order.len() % batch == 1 && steps > 1 {
            steps -= 1;
        }
        let epochs = self.config.stages.iter().map(|stage| stage.epochs).sum();
        let epoch = self.state.history.len() + 1;
        // By the place alone: an epoch that is resumed at its end has a last step too.
        let base = stage.learning_rate.unwrap_or(self.config.optimiser.learning_rate);
        let schedule = self.config.optimiser.schedule;
        let learning_rate = |step: usize| {
            let (at, all) = (at_epoch * steps as u64 + step as u64, (stage.epochs * steps) as u64);
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

    fn run_step(
        &mut self,
        rows: &[u32],
        learning_rate: f64,
        noise: u64,
        epoch: usize,
    ) -> Result<(), Error> {
        let mut clock = Clock::start();
        let (features, observed) = self.training.gather(&self.standardiser, rows);
        let weight = |&row: &u32| self.weights.as_ref().map_or(1.0, |all| all[row as usize]);
        let weights: Vec<f64> = rows.iter().map(weight).collect();
        let state = &mut self.state;
        clock.add(&mut self.profile.rows);
        let (logits, tape) = state.head.forward(features, noise);
        clock.add(&mut self.profile.head);
        let mut found =
            self.objective.loss(&logits, &observed, &weights, state.strengths.is_some())?;
        clock.add(&mut self.profile.inference);
        if let Some(at) = found.impossible {
            let row = rows[at] as usize;
            return Err(Error::Impossible {
                row,
                observed: self.training.describe(row, &self.graph),
            });
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
            self.objective = self.objective_now()?;
        }
        Ok(())
    }

    /// The objective of the stage with the strengths as they are.
    fn objective_now(&self) -> Result<Objective, Error> {
        let graph = self.graph_now()?;
        self.brought(Objective::new(self.config.objective, &graph, &self.options)?)
    }

    fn graph_now(&self) -> Result<RelationGraph, Error> {
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
                |best: &Best| self.config.validation.metric.improves(metric, best.metric);
            state.stale += 1;
            if state.best.as_ref().is_none_or(improves) {
                let (weights, averages) = (
                    state.optimiser.kept(&state.head.weights).to_vec(),
                    state.head.averages.clone(),
                );
                state.best = Some(Best { metric, epoch, weights, averages, strengths });
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

    fn finish(self) -> Result<TrainedModel, Error> {
        let graph = self.graph_now()?;
        Ok(TrainedModel {
            config: self.config,
            graph,
            head: self.state.head,
            standardiser: self.standardiser,
            best_epoch: self.state.best.map(|best| best.epoch),
            history: self.state.history,
            schema: None,
        })
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn graph(&self) -> &RelationGraph {
        &self.graph
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// A number that differs when the rows, the features or their labels differ.
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
            mix(&[of(&self.training), self.validation.as_ref().map_or(0, of)])
        })
    }

    /// The state at the start of a stage.
    pub(crate) fn fresh_state(&self, stage: usize) -> Result<State, Error> {
        let columns = self.training.features.columns;
        let head = Head::new(&self.config.head, columns, self.graph.len(), self.config.seed);
        Ok(start_stage(&self.config, &self.graph, &self.options, stage, head)?.0)
    }
}

/// A watch that shares time out.
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

fn start_stage(
    config: &Config,
    graph: &RelationGraph,
    options: &Options,
    at: usize,
    head: Head,
) -> Result<(State, Objective), Error> {
    let graph = config.stages[at].strength.apply(graph)?;
    let strengths = match config.strengths {
        StrengthConfig::Fixed => None,
        StrengthConfig::Learned { tie, .. } => match Strengths::new(graph.clone(), tie) {
            Ok(strengths) => Some(StrengthState::new(strengths)),
            // A hard stage of a curriculum has nothing to learn; the last one must.
            Err(phex::Error::NothingToLearn { .. }) if at + 1 < config.stages.len() => None,
            Err(error) => return Err(error.into()),
        },
    };
    let objective = Objective::new(config.objective, &graph, options)?;
    let state = State {
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
    };
    Ok((state, objective))
}
