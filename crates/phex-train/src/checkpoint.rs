//! Checkpoints: a run between two steps, in one safetensors file.
//!
//! Weights and the state of optimisers are tensors. So is the text of the history, which may outgrow a
//! header. Where the run stands is metadata. A fingerprint of configuration, graph and data makes sure
//! that a run is never resumed from the weights of another one.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use phex_io::{Tensor, TensorData, read_tensors, write_tensors};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::examples::mix;
use crate::head::Head;
use crate::trainer::{BestWeights, EpochRecord, Trainer, TrainerState};

const KEY: &str = "phex-checkpoint";
const HISTORY: &str = "history";
const VERSION: u32 = 1;

/// A run between two steps.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    header: CheckpointHeader,
    history: Vec<EpochRecord>,
    tensors: BTreeMap<String, Tensor>,
}

/// Where a run stands, besides its tensors.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CheckpointHeader {
    version: u32,
    fingerprint: String,
    stage: usize,
    epoch: usize,
    step: usize,
    loss_sum: f64,
    row_sum: f64,
    optimiser_steps: u64,
    strength_steps: u64,
    strength_rows: f64,
    best: Option<(f64, usize)>,
    stale: usize,
}

impl Checkpoint {
    pub(crate) fn of(trainer: &Trainer<'_>) -> Result<Checkpoint, Error> {
        let state = trainer.state();
        let mut tensors = BTreeMap::new();
        let mut narrow = |name: &str, values: &[f32]| {
            let data = TensorData::F32(values.to_vec());
            tensors.insert(String::from(name), Tensor { shape: vec![values.len()], data });
        };
        narrow("weights", &state.head.weights);
        narrow("averages", &state.head.averages);
        narrow("optimiser.first", &state.optimiser.first);
        narrow("optimiser.second", &state.optimiser.second);
        narrow("optimiser.average", &state.optimiser.average);
        if let Some(best) = &state.best {
            narrow("best.weights", &best.weights);
            narrow("best.averages", &best.averages);
        }
        let mut wide = |name: &str, values: &[f64]| {
            let data = TensorData::F64(values.to_vec());
            tensors.insert(String::from(name), Tensor { shape: vec![values.len()], data });
        };
        if let Some(learned) = &state.strengths {
            wide("strengths.values", learned.strengths.values());
            wide("strengths.gradient", &learned.gradient);
            wide("strengths.first", &learned.first);
            wide("strengths.second", &learned.second);
        }
        if let Some(best) = &state.best {
            wide("best.strengths", &best.strengths);
        }
        let header = CheckpointHeader {
            version: VERSION,
            fingerprint: fingerprint(trainer)?,
            stage: state.stage,
            epoch: state.epoch,
            step: state.step,
            loss_sum: state.loss_sum,
            row_sum: state.row_sum,
            optimiser_steps: state.optimiser.steps,
            strength_steps: state.strengths.as_ref().map_or(0, |learned| learned.steps),
            strength_rows: state.strengths.as_ref().map_or(0.0, |learned| learned.rows),
            best: state.best.as_ref().map(|best| (best.metric, best.epoch)),
            stale: state.stale,
        };
        Ok(Checkpoint { header, history: state.history.clone(), tensors })
    }

    /// The run that it belongs to: [`Trainer::fingerprint`].
    pub fn fingerprint(&self) -> &str {
        &self.header.fingerprint
    }

    /// The number of finished epochs.
    pub fn epochs(&self) -> usize {
        self.history.len()
    }

    /// The finished epochs.
    pub fn history(&self) -> &[EpochRecord] {
        &self.history
    }

    /// Writes it. The file is either complete or unchanged.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |error| Error::Model {
            message: format!("the checkpoint cannot be written as JSON: {error}"),
        };
        let header = serde_json::to_string(&self.header).map_err(failed)?;
        let history = serde_json::to_vec(&self.history).map_err(failed)?;
        let history = Tensor { shape: vec![history.len()], data: TensorData::U8(history) };
        let mut tensors = self.tensors.clone();
        tensors.insert(String::from(HISTORY), history);
        let metadata = BTreeMap::from([(String::from(KEY), header)]);
        Ok(write_tensors(path, &tensors, &metadata)?)
    }

    /// Reads one.
    ///
    /// # Errors
    /// When the file is damaged or not a checkpoint of this version.
    pub fn read(path: &Path) -> Result<Checkpoint, Error> {
        let (mut tensors, metadata) = read_tensors(path)?;
        let wrong =
            |message: String| Error::Model { message: format!("{}: {message}", path.display()) };
        let header =
            metadata.get(KEY).ok_or_else(|| wrong(String::from("this is not a checkpoint")))?;
        let header: CheckpointHeader =
            serde_json::from_str(header).map_err(|error| wrong(error.to_string()))?;
        if header.version != VERSION {
            return Err(wrong(format!("version {} is not {VERSION}", header.version)));
        }
        let history = match tensors.remove(HISTORY).map(|tensor| tensor.data) {
            Some(TensorData::U8(text)) => serde_json::from_slice(&text),
            _ => return Err(wrong(String::from("its history is missing"))),
        };
        let history = history.map_err(|error| wrong(error.to_string()))?;
        Ok(Checkpoint { header, history, tensors })
    }

    pub(crate) fn restore(&self, trainer: &Trainer<'_>) -> Result<TrainerState, Error> {
        if self.header.fingerprint != fingerprint(trainer)? {
            let message = "its settings, graph or data are different";
            return Err(Error::OtherRun { message: String::from(message) });
        }
        self.check_place(trainer)?;
        let mut state = trainer.fresh_state(self.header.stage)?;
        self.copy("weights", &mut state.head.weights)?;
        self.copy("averages", &mut state.head.averages)?;
        self.copy("optimiser.first", &mut state.optimiser.first)?;
        self.copy("optimiser.second", &mut state.optimiser.second)?;
        self.copy("optimiser.average", &mut state.optimiser.average)?;
        state.optimiser.steps = self.header.optimiser_steps;
        // Mean squares and variances stand under a root.
        not_negative("optimiser.second", &state.optimiser.second)?;
        variances("averages", &state.head)?;
        if let Some(learned) = &mut state.strengths {
            learned.strengths.set(&self.wide("strengths.values", learned.gradient.len())?);
            learned.gradient = self.wide("strengths.gradient", learned.gradient.len())?;
            learned.first = self.wide("strengths.first", learned.first.len())?;
            learned.second = self.wide("strengths.second", learned.second.len())?;
            not_negative("strengths.second", &learned.second)?;
            learned.steps = self.header.strength_steps;
            learned.rows = self.header.strength_rows;
        }
        if let Some((metric, epoch)) = self.header.best {
            let strengths = state.strengths.as_ref().map_or(0, |learned| learned.gradient.len());
            let mut best = state.head.clone();
            self.copy("best.weights", &mut best.weights)?;
            self.copy("best.averages", &mut best.averages)?;
            variances("best.averages", &best)?;
            let strengths = self.wide("best.strengths", strengths)?;
            let Head { weights, averages, .. } = best;
            state.best = Some(BestWeights { metric, epoch, weights, averages, strengths });
        }
        let header = &self.header;
        (state.stage, state.epoch, state.step) = (header.stage, header.epoch, header.step);
        (state.loss_sum, state.row_sum, state.stale) =
            (header.loss_sum, header.row_sum, header.stale);
        state.history.clone_from(&self.history);
        Ok(state)
    }

    /// Checks that the place where the run stands is one of its places.
    fn check_place(&self, trainer: &Trainer<'_>) -> Result<(), Error> {
        let CheckpointHeader { stage, epoch, step, best, stale, .. } = self.header;
        let stages = &trainer.config().stages;
        let done = self.history.len();
        let before = stages.iter().take(stage).map(|stage| stage.epochs).sum::<usize>();
        let numbered = self.history.iter().zip(1..).all(|(record, epoch)| record.epoch == epoch);
        let place = stages.get(stage).is_some_and(|stage| epoch <= stage.epochs)
            && (epoch..=before.saturating_add(epoch)).contains(&done)
            && best.is_none_or(|(_, best)| (1..=done).contains(&best))
            && stale <= epoch
            && numbered;
        if !place {
            return Err(elsewhere("it stands at an epoch that the run does not have"));
        }
        let steps = trainer.steps_of_stage(stage)?;
        let most = if epoch < stages[stage].epochs { steps } else { 0 };
        let all = (epoch as u64).checked_mul(steps as u64);
        let all = all.and_then(|all| all.checked_add(step as u64));
        let CheckpointHeader { optimiser_steps, strength_steps, .. } = self.header;
        if step > most || all != Some(optimiser_steps) || strength_steps > optimiser_steps {
            return Err(elsewhere("it stands at a step that the run does not have"));
        }
        let CheckpointHeader { loss_sum, row_sum, strength_rows, .. } = self.header;
        let sums = loss_sum.is_finite()
            && [row_sum, strength_rows].iter().all(|sum| (0.0..f64::INFINITY).contains(sum))
            && best.is_none_or(|(metric, _)| !metric.is_nan());
        if sums { Ok(()) } else { Err(elsewhere("its sums are not usable numbers")) }
    }

    fn copy(&self, name: &str, into: &mut [f32]) -> Result<(), Error> {
        match self.tensors.get(name).map(|tensor| &tensor.data) {
            Some(TensorData::F32(values)) if values.len() == into.len() => {
                every(name, values, |value| value.is_finite())?;
                into.copy_from_slice(values);
                Ok(())
            }
            _ => Err(damaged(name)),
        }
    }

    fn wide(&self, name: &str, length: usize) -> Result<Vec<f64>, Error> {
        match self.tensors.get(name).map(|tensor| &tensor.data) {
            Some(TensorData::F64(values)) if values.len() == length => {
                every(name, values, |value| value.is_finite())?;
                Ok(values.clone())
            }
            _ => Err(damaged(name)),
        }
    }
}

fn elsewhere(message: &str) -> Error {
    Error::OtherRun { message: String::from(message) }
}

fn damaged(name: &str) -> Error {
    Error::OtherRun { message: format!("its tensor `{name}` is missing or of another size") }
}

/// Refuses a tensor with a value that no run has.
fn every<T: Copy + Display>(
    name: &str,
    values: &[T],
    good: impl Fn(T) -> bool,
) -> Result<(), Error> {
    match values.iter().position(|value| !good(*value)) {
        None => Ok(()),
        Some(at) => {
            let value = values[at];
            let message = format!("its tensor `{name}` has the value {value} at {at}");
            Err(Error::OtherRun { message })
        }
    }
}

fn not_negative<T: Copy + Display + PartialOrd + Default>(
    name: &str,
    values: &[T],
) -> Result<(), Error> {
    every(name, values, |value| value >= T::default())
}

/// Refuses negative running variances.
fn variances(name: &str, head: &Head) -> Result<(), Error> {
    let parts = &head.layout().averages;
    let mut variances = parts.iter().filter(|part| part.name.ends_with("variance"));
    variances.try_for_each(|part| not_negative(name, &head.averages[part.range.clone()]))
}

/// A text that differs when configuration, graph, engine or data differ.
pub(crate) fn fingerprint(trainer: &Trainer<'_>) -> Result<String, Error> {
    let text = |value: Result<String, serde_json::Error>| {
        value.map_err(|error| Error::Model { message: error.to_string() })
    };
    let config = text(serde_json::to_string(trainer.config()))?;
    let graph = text(serde_json::to_string(trainer.graph()))?;
    let engine = format!("{:?}", trainer.options());
    let of = |text: &str| hash(text.bytes().map(u64::from));
    Ok(format!(
        "{:016x}-{:016x}-{:016x}-{:016x}",
        of(&config),
        of(&graph),
        of(&engine),
        trainer.data_fingerprint()
    ))
}

/// FNV-1a over numbers, mixed at the end.
pub(crate) fn hash(numbers: impl Iterator<Item = u64>) -> u64 {
    let sum = numbers.fold(0xcbf2_9ce4_8422_2325u64, |state, number| {
        (state ^ number).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(&[sum])
}
