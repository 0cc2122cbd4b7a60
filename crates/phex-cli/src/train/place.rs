//! Where a run is kept: a folder for the model, and one beside it for the checkpoint.
//!
//! `FOLDER` has the parts of a bundle, `run.json` and mostly `report.html`. Until they are there,
//! `FOLDER.checkpoint` has the checkpoint; it goes when all is written. So at every moment there
//! is a finished model, or something to go on from, or nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

const CHECKPOINT: &str = "checkpoint.safetensors";
const RUN: &str = "run.json";
const REPORT: &str = "report.html";
/// What may be in the folder of a model.
const KNOWN: [&str; 6] =
    ["config.json", "graph.json", "model.safetensors", "README.md", RUN, REPORT];

/// Where a run is kept.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    checkpoints: PathBuf,
}

impl Place {
    /// The place, once it is sure that a model can be written there.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Place> {
        let shown = folder.display();
        let Some(name) = folder.file_name() else {
            bail!("{shown}: a model is a folder with a name");
        };
        let mut beside = name.to_owned();
        beside.push(".checkpoint");
        if folder.exists() && !folder.is_dir() {
            bail!("{shown}: this is a file; a model is a folder");
        }
        if folder.is_dir() {
            let entries = fs::read_dir(folder).with_context(|| shown.to_string())?;
            for entry in entries {
                let name = entry?.file_name();
                if !KNOWN.iter().any(|known| name.as_os_str() == *known) {
                    bail!(
                        "{shown}: the folder holds `{}`, which is no part of a model; choose \
                         another folder",
                        name.display()
                    );
                }
            }
        }
        Ok(Place { folder: folder.to_owned(), checkpoints: folder.with_file_name(beside) })
    }

    /// Sure that a report can be written, before hours of training and not after.
    pub(crate) fn check_report(&self, report: Option<&Path>) -> anyhow::Result<()> {
        let Some(report) = report else { return Ok(()) };
        let folder = report.parent().unwrap_or(Path::new(""));
        if folder == self.folder && *report != self.report_file() {
            bail!(
                "{}: in the folder of the model the report is `{REPORT}`; leave out --report",
                report.display()
            );
        }
        if !folder.as_os_str().is_empty() && folder != self.folder && !folder.is_dir() {
            bail!("{}: there is no folder {}", report.display(), folder.display());
        }
        Ok(())
    }

    /// The file of the checkpoint.
    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.checkpoints.join(CHECKPOINT)
    }

    /// Deletes the checkpoint, and whatever interrupted writing left of others.
    pub(crate) fn forget(&self) -> anyhow::Result<()> {
        let remove = || -> io::Result<()> {
            let entries = match fs::read_dir(&self.checkpoints) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name();
                if name == CHECKPOINT || name.to_string_lossy().starts_with(".phex-") {
                    fs::remove_file(entry.path())?;
                }
            }
            fs::remove_dir(&self.checkpoints)
        };
        remove().with_context(|| format!("{}: cannot be deleted", self.checkpoints.display()))
    }

    /// Whether a model is there.
    pub(crate) fn has_model(&self) -> bool {
        self.folder.join("config.json").exists()
    }

    /// The fingerprint of the run whose model is there, where it is known.
    pub(crate) fn finished(&self) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(RUN)).ok()?;
        let run: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(run.get("fingerprint")?.as_str()?.to_owned())
    }

    pub(crate) fn run_file(&self) -> PathBuf {
        self.folder.join(RUN)
    }

    pub(crate) fn report_file(&self) -> PathBuf {
        self.folder.join(REPORT)
    }

    /// Deletes what is beside the bundle in its folder, so that the bundle can be replaced.
    pub(crate) fn clear(&self) -> anyhow::Result<()> {
        for file in [self.run_file(), self.report_file()] {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| file.display().to_string());
                }
                _ => {}
            }
        }
        Ok(())
    }
}
