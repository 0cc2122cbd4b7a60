//! One training run: from data and settings to a trained model, by way of checkpoints.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use phex::decide::Classes;
use phex::graph::RelationGraph;
use phex::infer::{Options, Plan};
use phex::metrics::{Evaluation, EvaluationOptions};
use phex_io::Dataset;
use phex_train::{Checkpoint, Config, Error, Examples, Metric, TrainedModel, Trainer};

use super::watch::Watch;
use crate::args::{RunArguments, TrainingSet};
use crate::data::{LabelSettings, targets};
use crate::device::Device;

/// The data of a run.
pub(crate) struct Sets {
    pub(crate) training: Dataset,
    pub(crate) validation: Option<Dataset>,
    pub(crate) labels: LabelSettings,
    /// What there is to say of them.
    pub(crate) notes: Vec<String>,
}

impl Sets {
    pub(crate) fn read(arguments: &TrainingSet, graph: &RelationGraph) -> anyhow::Result<Sets> {
        let labels = LabelSettings::of(&arguments.labels, LabelSettings::default())?;
        let files = arguments.data.files()?;
        let mut options = arguments.data.options(None)?;
        options.features = Some(arguments.features.clone()).filter(|names| !names.is_empty());
        options.targets = Some(labels.targets(files, &arguments.labels.label_file)?);
        let training = phex_io::read_dataset(files, &options, Some(graph))?;
        let mut notes = crate::data::almost_numbers(&training.schema);
        let validation = if arguments.valid.is_empty() {
            None
        } else {
            // A column that is passed through is nothing to validation, and need not be there.
            options.drop.append(&mut options.keep);
            (options.features, options.schema) = (None, Some(training.schema.clone()));
            options.targets = Some(labels.targets(&arguments.valid, &arguments.valid_labels)?);
            let validation = phex_io::read_dataset(&arguments.valid, &options, Some(graph))?;
            notes.extend(crate::data::unseen(&validation));
            Some(validation)
        };
        Ok(Sets { training, validation, labels, notes })
    }
}

/// What is trained.
pub(crate) struct Job<'a> {
    pub(crate) config: Config,
    pub(crate) graph: &'a RelationGraph,
    pub(crate) options: Options,
    pub(crate) sets: &'a Sets,
    pub(crate) device: &'a Device,
    /// What the run is called in what is said while it runs.
    pub(crate) about: String,
}

/// What came of a run.
pub(crate) struct Trained {
    pub(crate) model: TrainedModel,
    pub(crate) fingerprint: String,
    /// The engine, where relations take part.
    pub(crate) plan: Option<Plan>,
    /// On the validation rows.
    pub(crate) evaluation: Option<Evaluation>,
    pub(crate) validation_rows: usize,
}

impl Job<'_> {
    fn examples<'d>(&self, data: &'d Dataset) -> anyhow::Result<Examples<'d>> {
        Ok(Examples::new(&data.features, targets(data)?, self.graph)?)
    }

    /// The run at its start.
    pub(crate) fn trainer(&self) -> anyhow::Result<Trainer<'_>> {
        let training = self.examples(&self.sets.training)?;
        let validation =
            self.sets.validation.as_ref().map(|data| self.examples(data)).transpose()?;
        let config = self.config.clone();
        let trainer = Trainer::new(config, self.graph, &self.options, training, validation)?;
        self.device.trainer(trainer)
    }

    /// Trains to the end, from the checkpoint where there is one.
    pub(crate) fn run(
        &self,
        mut trainer: Trainer<'_>,
        checkpoint: &Path,
        arguments: &RunArguments,
    ) -> anyhow::Result<Trained> {
        if checkpoint.exists() {
            resume(&mut trainer, checkpoint, arguments)?;
        }
        crate::interrupt::check()?;
        let fingerprint = trainer.fingerprint()?;
        let plan = trainer.engine().map(|engine| engine.plan().clone());
        let held_out = trainer.held_out().to_vec();
        let metric = self.config.validation.metric;
        let mut watch = Watch::new(arguments, checkpoint.to_owned(), metric, &self.about);
        let model = trainer.run(&mut watch);
        watch.finish();
        let mut model = model?;
        model.schema = Some(self.sets.training.schema.clone());
        let (evaluation, validation_rows) = self.evaluate(&model, &held_out)?;
        Ok(Trained { model, fingerprint, plan, evaluation, validation_rows })
    }

    /// How good the model is on the rows that it was not trained on.
    pub(crate) fn evaluate(
        &self,
        model: &TrainedModel,
        held_out: &[u32],
    ) -> anyhow::Result<(Option<Evaluation>, usize)> {
        let copied;
        let examples = match &self.sets.validation {
            Some(data) => self.examples(data)?,
            None if held_out.is_empty() => return Ok((None, 0)),
            None => {
                copied = self.examples(&self.sets.training)?.copy_rows(held_out);
                Examples::new(&copied.0, &copied.1, self.graph)?
            }
        };
        let accuracy = self.config.validation.metric == Metric::Accuracy;
        let classes = accuracy.then(Classes::default);
        let options = EvaluationOptions { classes, ..EvaluationOptions::default() };
        let predictor = self.device.predictor(model.predictor(&self.options)?)?;
        Ok((Some(predictor.evaluate(&examples, &options, None)?), examples.rows()))
    }
}

/// Goes on from a checkpoint, or says what to do.
fn resume(trainer: &mut Trainer<'_>, path: &Path, arguments: &RunArguments) -> anyhow::Result<()> {
    let checkpoint = Checkpoint::read(path)
        .context("the checkpoint cannot be read; --restart starts over without it")?;
    trainer.resume(&checkpoint).map_err(|error| match error {
        Error::OtherRun { message } => anyhow!(
            "{}: this is the checkpoint of another run: {message}; give the same flags and data to \
             go on with that one, --restart to start over, or another --out",
            path.display()
        ),
        error => error.into(),
    })?;
    if !arguments.quiet {
        eprintln!("phex: going on after {} finished epochs", checkpoint.epochs());
    }
    Ok(())
}
