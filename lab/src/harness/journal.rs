//! The runs that are done: a file of JSON lines, one per run, so that interrupted work can be resumed.
//!
//! A run is identified by its whole description, so a changed specification repeats only the runs that it changes. A
//! line that a crash cut off is ignored and written again. The file is locked while it is open, and lines are appended.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::timing::RunSeconds;
use crate::Error;

/// How every line starts: the description of a run is an object.
const START: &str = "{\"job\":{";

/// A file of runs.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The answer and the seconds of each run, by its description.
    runs: HashMap<String, (Value, RunSeconds)>,
}

/// A line of the file.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct JournalLine {
    job: Value,
    answer: Value,
    #[serde(flatten)]
    seconds: RunSeconds,
    version: String,
}

impl Journal {
    /// Opens a journal. One that has runs is refused unless it is to be resumed.
    ///
    /// # Errors
    /// [`Error::HasRuns`], [`Error::Journal`] for a line that is not a run, [`Error::Busy`] if another process has it open,
    /// [`Error::File`].
    pub fn open(path: &Path, resume: bool) -> Result<Journal, Error> {
        let wrong = |source| Error::File { path: path.to_owned(), source };
        let mut file =
            OpenOptions::new().create(true).read(true).append(true).open(path).map_err(wrong)?;
        // Where the system has no locks, nothing keeps two processes apart.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::Busy { path: path.to_owned() });
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(wrong)?;
        // Text after the last line break was cut off, if it is the start of a run.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let tail = text.split_off(whole);
        let foreign = |line, message| Error::Journal { path: path.to_owned(), line, message };
        let text = String::from_utf8(text)
            .map_err(|_| foreign(1, String::from("this is not a journal of runs")))?;
        let mut runs = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let line: JournalLine = serde_json::from_str(line)
                .map_err(|error| foreign(number + 1, error.to_string()))?;
            runs.insert(line.job.to_string(), (line.answer, line.seconds));
        }
        let length = tail.len().min(START.len());
        if tail[..length] != START.as_bytes()[..length] {
            let message = String::from("this is not a line of a journal of runs");
            return Err(foreign(text.lines().count() + 1, message));
        }
        if !runs.is_empty() && !resume {
            return Err(Error::HasRuns { path: path.to_owned() });
        }
        if !tail.is_empty() {
            file.set_len(whole as u64).map_err(wrong)?;
        }
        Ok(Journal { path: path.to_owned(), file, runs })
    }

    /// How many runs it has.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The answer of a run and its seconds, if it is done.
    pub(crate) fn answer<A: DeserializeOwned>(&self, job: &Value) -> Option<(A, RunSeconds)> {
        let (answer, seconds) = self.runs.get(&job.to_string())?;
        // An answer of another form is from another version, so the run is repeated.
        Some((serde_json::from_value(answer.clone()).ok()?, *seconds))
    }

    /// Keeps a run.
    pub(crate) fn keep<A: Serialize>(
        &mut self,
        job: Value,
        answer: &A,
        seconds: RunSeconds,
    ) -> Result<(), Error> {
        let wrong = |source| Error::File { path: self.path.clone(), source };
        let broken = |error: serde_json::Error| Error::Broken { message: error.to_string() };
        let answer = serde_json::to_value(answer).map_err(broken)?;
        let key = job.to_string();
        let version = String::from(env!("CARGO_PKG_VERSION"));
        let line = JournalLine { job, answer: answer.clone(), seconds, version };
        let mut text = serde_json::to_string(&line).map_err(broken)?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(wrong)?;
        self.file.flush().map_err(wrong)?;
        self.runs.insert(key, (answer, seconds));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_remembers_whole_lines_only() {
        let folder = tempfile::tempdir().unwrap();
        let seconds = |wall| RunSeconds { wall, cpu: Some(wall / 2.0) };
        let path = folder.path().join("runs.jsonl");
        let mut journal = Journal::open(&path, false).unwrap();
        journal.keep(json!({"seed": 1, "rate": 0.1}), &0.25, seconds(2.0)).unwrap();
        journal.keep(json!({"seed": 2, "rate": 0.1}), &0.5, seconds(3.0)).unwrap();
        drop(journal);
        let error = Journal::open(&path, false).unwrap_err().to_string();
        assert!(error.contains("--resume"), "{error}");
        // A crash in the middle of a line.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 10]).unwrap();
        let mut journal = Journal::open(&path, true).unwrap();
        assert_eq!(journal.len(), 1);
        // The order of fields does not matter.
        assert_eq!(journal.answer(&json!({"rate": 0.1, "seed": 1})), Some((0.25, seconds(2.0))));
        assert_eq!(journal.answer::<f64>(&json!({"seed": 2, "rate": 0.1})), None);
        journal.keep(json!({"seed": 2, "rate": 0.1}), &0.5, seconds(3.0)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let error = Journal::open(&path, true).unwrap_err().to_string();
        assert!(error.contains("another process"), "{error}");
        drop(journal);
        // Nothing but a journal is changed.
        for foreign in ["{}\n", "my notes", "{\"job\": 1, mine", "\u{fffd}\nb\n", "\n"] {
            std::fs::write(&path, foreign).unwrap();
            for resume in [false, true] {
                let error = Journal::open(&path, resume).unwrap_err().to_string();
                assert!(error.contains("runs.jsonl:1"), "{foreign:?}: {error}");
                assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
            }
        }
    }

    /// A file of another program whose lines also start with a field `job`.
    #[cfg(unix)]
    #[test]
    fn a_foreign_file_behind_a_link_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, link) = (folder.path().join("mine.jsonl"), folder.path().join("runs.jsonl"));
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        let line = "{\"job\": \"thesis\", \"mine\": 1}";
        let near = "{\"job\":\"thesis\",\"mine\":1}";
        for foreign in [String::from(line), format!("{line}\n"), near.into(), format!("{near}\n")] {
            std::fs::write(&mine, &foreign).unwrap();
            for resume in [false, true] {
                let error = Journal::open(&link, resume).unwrap_err().to_string();
                assert!(error.contains("runs.jsonl:1"), "{foreign:?}: {error}");
                assert_eq!(std::fs::read_to_string(&mine).unwrap(), foreign);
            }
        }
        assert!(link.is_symlink());
    }
}
