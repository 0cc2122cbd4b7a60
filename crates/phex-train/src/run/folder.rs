//! The folder of a run: the model, and a folder beside it for the checkpoint.
//!
//! ```text
//! FOLDER/              the parts of a bundle, and
//!   run.json           what the run did; written last
//!   report.html        written by the command line
//!   sklearn.json       written by the scikit-learn estimator
//! FOLDER.checkpoint/   until all of these are written
//! ```
//!
//! So at every moment there is a finished model, a checkpoint to resume from, or nothing. Nothing guards
//! against two processes that use the same folder at the same time.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use phex_io::{FeatureSchema, Output, write_bundle};

use super::{CheckpointKeeper, RunRecord};
use crate::labels::LabelSettings;
use crate::trainer::{Observer, TrainedRun, Trainer};
use crate::{Checkpoint, Error, Recipe, TrainedModel};

const CHECKPOINT: &str = "checkpoint.safetensors";
const CONFIG: &str = "config.json";
const RUN: &str = "run.json";
const REPORT: &str = "report.html";
const SKLEARN: &str = "sklearn.json";
const BUNDLE: [&str; 4] = [CONFIG, "graph.json", "model.safetensors", "README.md"];
/// What may be beside the bundle.
const EXTRA: [&str; 3] = [RUN, REPORT, SKLEARN];

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    checkpoints: PathBuf,
}

impl RunFolder {
    /// A folder, after a check that a model can be written there. Nothing is created.
    ///
    /// # Errors
    /// [`Error::Folder`] when the path is a file, or a folder that holds other files.
    pub fn open(path: &Path) -> Result<RunFolder, Error> {
        let wrong = |message: String| Err(Error::Folder { path: path.to_owned(), message });
        let Some(name) = path.file_name() else {
            return wrong(String::from("a model is a folder with a name"));
        };
        let mut beside = name.to_owned();
        beside.push(".checkpoint");
        if path.exists() && !path.is_dir() {
            return wrong(String::from("this is a file; a model is a folder"));
        }
        if path.is_dir() {
            let failed = |source| phex_io::Error::Read { path: path.display().to_string(), source };
            for entry in fs::read_dir(path).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                let ours = BUNDLE.iter().chain(&EXTRA).any(|part| name.as_os_str() == *part);
                if !ours && !phex_io::is_unfinished(&name) {
                    return wrong(format!(
                        "the folder holds `{}`, which is not part of a model; choose another folder",
                        name.display()
                    ));
                }
            }
        }
        Ok(RunFolder { path: path.to_owned(), checkpoints: path.with_file_name(beside) })
    }

    /// The folder of the model.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the model.
    pub fn title(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The file of the report.
    pub fn report_file(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    /// The file of the checkpoint.
    pub fn checkpoint_file(&self) -> PathBuf {
        self.checkpoints.join(CHECKPOINT)
    }

    /// The fingerprint of the run whose model is in the folder, if known.
    pub fn finished(&self) -> Option<String> {
        let text = fs::read_to_string(self.path.join(RUN)).ok()?;
        let run: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(run.get("fingerprint")?.as_str()?.to_owned())
    }

    /// Whether the folder has the model of the run with this fingerprint, and no checkpoint.
    ///
    /// # Errors
    /// [`Error::OtherModel`] when it has the model of another run.
    pub fn is_finished(&self, fingerprint: &str) -> Result<bool, Error> {
        if !self.path.join(CONFIG).exists() || self.checkpoint_file().exists() {
            return Ok(false);
        }
        if self.finished().as_deref() == Some(fingerprint) {
            return Ok(true);
        }
        Err(Error::OtherModel { path: self.path.clone() })
    }

    /// Resumes a run from the checkpoint, if there is one. Returns the number of finished epochs.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] when it cannot be read, [`Error::OtherRun`] when it belongs to another run.
    pub fn resume(&self, trainer: &mut Trainer<'_>) -> Result<Option<usize>, Error> {
        let path = self.checkpoint_file();
        if !path.exists() {
            return Ok(None);
        }
        let checkpoint = Checkpoint::read(&path)
            .map_err(|source| Error::Checkpoint { path, source: Box::new(source) })?;
        trainer.resume(&checkpoint)?;
        Ok(Some(checkpoint.epochs()))
    }

    /// An observer that keeps checkpoints in the folder and passes everything on to another one.
    pub fn keep_checkpoints<'o>(
        &self,
        every: Duration,
        observer: &'o mut dyn Observer,
    ) -> CheckpointKeeper<'o> {
        CheckpointKeeper::new(self.checkpoint_file(), every, observer)
    }

    /// Deletes the checkpoint, and whatever interrupted writing left of others.
    ///
    /// # Errors
    /// When it cannot be deleted.
    pub fn forget_checkpoint(&self) -> Result<(), Error> {
        let remove = || -> io::Result<()> {
            let entries = match fs::read_dir(&self.checkpoints) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name();
                if name == CHECKPOINT || phex_io::is_unfinished(&name) {
                    fs::remove_file(entry.path())?;
                }
            }
            fs::remove_dir(&self.checkpoints)
        };
        remove().map_err(|source| not_written(&self.checkpoints, source))
    }

    /// Deletes the checkpoint unless it belongs to the run with this fingerprint.
    ///
    /// # Errors
    /// When it cannot be deleted.
    pub fn forget_other_checkpoint(&self, fingerprint: &str) -> Result<(), Error> {
        let same = |checkpoint: Checkpoint| checkpoint.fingerprint() == fingerprint;
        if Checkpoint::read(&self.checkpoint_file()).is_ok_and(same) {
            return Ok(());
        }
        self.forget_checkpoint()
    }

    /// Runs a trainer to its end in this folder: resumes it, keeps checkpoints, and writes the model. The
    /// model of a finished run is read.
    ///
    /// `command` is what started the run, and `schema` the columns of its features.
    ///
    /// # Errors
    /// As [`RunFolder::is_finished`], [`RunFolder::resume`], [`Trainer::run_measured`], and when a file
    /// cannot be written.
    pub fn run(
        &self,
        mut trainer: Trainer<'_>,
        command: &str,
        schema: FeatureSchema,
        observer: &mut dyn Observer,
    ) -> Result<TrainedModel, Error> {
        if self.is_finished(&trainer.fingerprint()?)? {
            return TrainedModel::read(&self.path);
        }
        self.resume(&mut trainer)?;
        let every = Duration::from_secs_f64(Recipe::STANDARD.checkpoint_seconds);
        let mut run = trainer.run_measured(&mut self.keep_checkpoints(every, observer))?;
        run.model.schema = Some(schema);
        let record = RunRecord::new(&run, command, None, String::from("cpu"), Vec::new());
        self.write_model(&run, &record, None)?;
        self.complete(&record)?;
        Ok(run.model)
    }

    /// Writes the bundle of a finished run with its model card, in the place of an older one.
    /// [`RunFolder::complete`] has to follow.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_model(
        &self,
        run: &TrainedRun,
        record: &RunRecord<'_>,
        labels: Option<&LabelSettings>,
    ) -> Result<(), Error> {
        let card = record.card(&run.model, self.title());
        let mut bundle = run.model.to_bundle(card.markdown(&run.model.graph))?;
        if let Some(labels) = labels {
            labels.remember(&mut bundle.config)?;
        }
        // A bundle is replaced as a whole, so nothing else may be in its folder.
        for name in EXTRA {
            let file = self.path.join(name);
            match fs::remove_file(&file) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(not_written(&file, source));
                }
                _ => {}
            }
        }
        Ok(write_bundle(&self.path, &bundle)?)
    }

    /// Writes `run.json` and deletes the checkpoint: the run is finished.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn complete(&self, record: &RunRecord<'_>) -> Result<(), Error> {
        let (path, text) = (self.path.join(RUN), record.to_json()?);
        let write = || {
            let mut output = Output::create(&path)?;
            output.write_all(text.as_bytes())?;
            output.finish()
        };
        write().map_err(|source| not_written(&path, source))?;
        self.forget_checkpoint()
    }
}

fn not_written(path: &Path, source: io::Error) -> Error {
    phex_io::Error::Write { path: path.display().to_string(), source }.into()
}
