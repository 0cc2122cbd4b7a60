//! The folder of a run: the model, and a folder beside it for the checkpoint.
//!
//! ```text
//! FOLDER/              the parts of a bundle, and
//!   run.json           what the run did
//!   report.html        written by the command line
//!   sklearn.json       written by the scikit-learn estimator
//! FOLDER.checkpoint/   until all of these are written
//! ```
//!
//! All files of FOLDER but `sklearn.json` are written to a new folder, which takes its place in one step. So at every
//! moment there is a finished model, a checkpoint to resume from, or nothing. [`RunFolder::lock`] keeps other processes
//! out; its file is in FOLDER.checkpoint.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use phex_io::{BundleExtra, FeatureSchema, bundle_files, prepare_bundle, write_bundle_with};

use super::lock::{LOCK, RunLock};
use super::{CheckpointKeeper, RunRecord};
use crate::labels::LabelSettings;
use crate::trainer::{Observer, TrainedRun, Trainer};
use crate::{Checkpoint, Error, Recipe, TrainedModel};

const CHECKPOINT: &str = "checkpoint.safetensors";
const CONFIG: &str = "config.json";
const RUN: &str = "run.json";
const REPORT: &str = "report.html";
const SKLEARN: &str = "sklearn.json";
/// What may be beside the bundle, and a text that each holds if phex wrote it.
const EXTRA: [(&str, &str); 3] =
    [(RUN, "\"fingerprint\""), (REPORT, "Made by phex"), (SKLEARN, "\"parameters\"")];

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
        let Some(name) = path.file_name() else {
            return Err(wrong(path, String::from("a model is a folder with a name")));
        };
        let mut beside = name.to_owned();
        beside.push(".checkpoint");
        let folder = RunFolder { path: path.to_owned(), checkpoints: path.with_file_name(beside) };
        if path.exists() && !path.is_dir() {
            return Err(wrong(path, String::from("this is a file; a model is a folder")));
        }
        folder.check_entries()?;
        check_checkpoints(&folder.checkpoints)?;
        Ok(folder)
    }

    /// Refuses a folder with files that are not those of a model.
    fn check_entries(&self) -> Result<(), Error> {
        let path = &self.path;
        let files = bundle_files(path);
        let mut empty = true;
        for name in entries(path)? {
            if phex_io::is_unfinished(&name) {
                continue;
            }
            empty = false;
            let part = files.iter().any(|part| part.file_name() == Some(&*name));
            let extra = EXTRA.iter().find(|(extra, _)| *name == **extra);
            let ours = match extra {
                Some((_, text)) => holds(&path.join(&name), text)?,
                None => part,
            };
            if !ours {
                return Err(wrong(
                    path,
                    format!(
                        "the folder holds `{}`, which is not part of a model; choose another folder",
                        name.display()
                    ),
                ));
            }
        }
        if !empty && !path.join(CONFIG).exists() {
            return Err(wrong(
                path,
                format!(
                    "the folder is not empty and has no `{CONFIG}`, so it is not a model; choose another folder"
                ),
            ));
        }
        Ok(())
    }

    /// All files that a run writes, whether they exist or not.
    pub fn files(&self) -> Vec<PathBuf> {
        let extra = EXTRA.map(|(name, _)| self.path.join(name));
        bundle_files(&self.path).into_iter().chain(extra).chain([self.checkpoint_file()]).collect()
    }

    /// Keeps other processes out of the folder until the lock is dropped. Deletes what killed processes left, and checks
    /// that a model can be written.
    ///
    /// # Errors
    /// [`Error::Folder`] when another process has the lock or the folder above is missing; when nothing can be written.
    pub fn lock(&self) -> Result<RunLock, Error> {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            return Err(wrong(&self.path, format!("there is no folder `{}`", parent.display())));
        }
        let lock = RunLock::take(&self.path, &self.checkpoints)?;
        prepare_bundle(&self.path, &EXTRA.map(|(name, _)| name))?;
        Ok(lock)
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
        let text = phex_io::read_text(&self.path.join(RUN)).ok()?;
        let run: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(run.get("fingerprint")?.as_str()?.to_owned())
    }

    /// Whether the folder has the model of the run with this fingerprint. A checkpoint that was not deleted is deleted.
    ///
    /// # Errors
    /// [`Error::OtherModel`] when it has the model of another run and no checkpoint; when the checkpoint cannot be
    /// deleted.
    pub fn is_finished(&self, fingerprint: &str) -> Result<bool, Error> {
        if self.finished().as_deref() == Some(fingerprint) {
            self.forget_checkpoint()?;
            return Ok(true);
        }
        if !self.path.join(CONFIG).exists() || self.checkpoint_file().exists() {
            return Ok(false);
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
            // The lock stays in the folder until it is dropped.
            match fs::remove_dir(&self.checkpoints) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                removed => removed,
            }
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
        let _lock = self.lock()?;
        if self.is_finished(&trainer.fingerprint()?)? {
            return TrainedModel::read(&self.path);
        }
        self.resume(&mut trainer)?;
        let every = Duration::from_secs_f64(Recipe::STANDARD.checkpoint_seconds);
        let mut run = trainer.run_measured(&mut self.keep_checkpoints(every, observer))?;
        run.model.schema = Some(schema);
        let record = RunRecord::new(&run, command, None, String::from("cpu"), Vec::new());
        self.write(&run, &record, None, None)?;
        Ok(run.model)
    }

    /// Writes the bundle of a finished run with its model card, `run.json` and the report, in the place of an older one,
    /// and deletes the checkpoint.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(
        &self,
        run: &TrainedRun,
        record: &RunRecord<'_>,
        labels: Option<&LabelSettings>,
        report: Option<&str>,
    ) -> Result<(), Error> {
        let card = record.card(&run.model, self.title());
        let mut bundle = run.model.to_bundle(card.markdown(&run.model.graph))?;
        if let Some(labels) = labels {
            labels.remember(&mut bundle.config)?;
        }
        let record = record.to_json()?;
        let extras = EXTRA.map(|(name, _)| {
            let text = match name {
                RUN => Some(record.as_str()),
                REPORT => report,
                _ => None,
            };
            BundleExtra { name, text }
        });
        write_bundle_with(&self.path, &bundle, &extras)?;
        self.forget_checkpoint()
    }
}

/// The names of the entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<OsString>, Error> {
    let failed = |source| phex_io::Error::Read { path: folder.display().to_string(), source };
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => {
            let names = entries.map_err(failed)?.map(|entry| Ok(entry?.file_name()));
            Ok(names.collect::<io::Result<_>>().map_err(failed)?)
        }
    }
}

/// Refuses a folder of checkpoints with other files, because it is deleted in the end.
fn check_checkpoints(folder: &Path) -> Result<(), Error> {
    if folder.exists() && !folder.is_dir() {
        return Err(wrong(
            folder,
            String::from("this is a file; checkpoints need a folder of this name"),
        ));
    }
    let ours =
        |name: &OsString| *name == *CHECKPOINT || *name == *LOCK || phex_io::is_unfinished(name);
    match entries(folder)?.into_iter().find(|name| !ours(name)) {
        None => Ok(()),
        Some(name) => Err(wrong(
            folder,
            format!(
                "the folder holds `{}`, which is not a checkpoint; choose another folder",
                name.display()
            ),
        )),
    }
}

/// Whether a file is text that holds another one.
fn holds(path: &Path, text: &str) -> Result<bool, Error> {
    if !path.is_file() {
        return Ok(false);
    }
    match phex_io::read_text(path) {
        Ok(found) => Ok(found.contains(text)),
        Err(error @ phex_io::Error::Read { .. }) => Err(error.into()),
        Err(_) => Ok(false),
    }
}

fn wrong(path: &Path, message: String) -> Error {
    Error::Folder { path: path.to_owned(), message }
}

pub(super) fn not_written(path: &Path, source: io::Error) -> Error {
    phex_io::Error::Write { path: path.display().to_string(), source }.into()
}
