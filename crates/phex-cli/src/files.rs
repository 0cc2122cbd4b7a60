//! The files of a command, checked before any work: an output must not replace an input or another output, and it must be
//! possible to write it.
//!
//! Files are the same if they have the same canonical path or the same inode, so other spellings, symbolic links and hard
//! links are found. Devices and pipes are not replaced, so they are not checked.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context as _, bail};
use phex_io::Output;

/// How many bytes of a summary are read to recognise it.
const MOST: u64 = 1 << 20;

/// The files that a command reads and writes.
#[derive(Debug, Default)]
pub(crate) struct CommandFiles {
    inputs: Vec<PathBuf>,
    outputs: Vec<PathBuf>,
    /// Outputs that are not made beforehand to see whether it is possible.
    claimed: Vec<PathBuf>,
    /// Summaries beside outputs. Nobody named them, so they replace summaries only.
    summaries: Vec<PathBuf>,
}

impl CommandFiles {
    /// Adds inputs.
    pub(crate) fn reads<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.inputs.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Adds the parts of a trained model as inputs.
    pub(crate) fn reads_bundle(self, folder: &Path) -> Self {
        self.reads(phex_io::bundle_files(folder))
    }

    /// Adds outputs.
    pub(crate) fn writes<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.outputs.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Adds an output and the summary beside it.
    pub(crate) fn writes_with_summary(mut self, path: &Path) -> Self {
        if !is_stream(path) {
            self.summaries.push(summary_of(path));
        }
        self.writes([path])
    }

    /// Adds outputs in a folder that does not have to exist yet.
    pub(crate) fn claims<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.claimed.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Refuses outputs that are inputs or other outputs, or that cannot be written.
    pub(crate) fn check(self) -> anyhow::Result<()> {
        let inputs = identities(&self.inputs);
        let outputs: Vec<_> = [&self.outputs, &self.claimed, &self.summaries]
            .into_iter()
            .flat_map(|paths| identities(paths))
            .collect();
        for (at, (path, identity)) in outputs.iter().enumerate() {
            if let Some((input, _)) = inputs.iter().find(|(_, input)| input.is(identity)) {
                let under =
                    if input == path { String::new() } else { format!(" as `{}`", path.display()) };
                bail!(
                    "the input {} would be replaced{under}; choose another file for the output",
                    input.display()
                );
            }
            if let Some((other, _)) = outputs[..at].iter().find(|(_, other)| other.is(identity)) {
                let under = if other == path {
                    String::new()
                } else {
                    format!(", also as `{}`", path.display())
                };
                bail!("{} would be written twice{under}", other.display());
            }
        }
        if self.outputs.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
            bail!("- would be written twice");
        }
        for path in &self.summaries {
            if path.exists() && !is_summary(path) {
                bail!(
                    "{} is where the summary of the run belongs, and phex did not write what is there; move it, or choose \
                     another output",
                    path.display()
                );
            }
        }
        for path in self.outputs.iter().chain(&self.summaries).filter(|path| !is_stream(path)) {
            Output::create(path)
                .map(drop)
                .with_context(|| format!("{}: cannot be written", path.display()))?;
        }
        Ok(())
    }
}

/// The file of the summary of a run, beside its output.
pub(crate) fn summary_of(out: &Path) -> PathBuf {
    let mut beside = out.to_owned().into_os_string();
    beside.push(".run.json");
    beside.into()
}

/// Whether phex wrote a file as the summary of a run.
fn is_summary(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut start));
    let holds = |text: &str| start.windows(text.len()).any(|part| part == text.as_bytes());
    path.is_file() && read.is_ok() && holds("\"version\"") && holds("\"rows\"")
}

/// Whether a path is standard input or output, a device or a pipe.
fn is_stream(path: &Path) -> bool {
    let stream = || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    path.as_os_str() == "-" || stream()
}

/// What tells whether two paths are of one file.
struct FileIdentity {
    path: PathBuf,
    /// Device and inode, if the file exists and the system has them.
    inode: Option<(u64, u64)>,
}

impl FileIdentity {
    fn of(path: &Path) -> FileIdentity {
        let parent = || match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let in_folder = || Some(fs::canonicalize(parent()).ok()?.join(path.file_name()?));
        let canonical = fs::canonicalize(path).ok().or_else(in_folder);
        let path = canonical.or_else(|| absolute(path).ok()).unwrap_or_else(|| path.to_owned());
        let inode = inode(&path);
        FileIdentity { path, inode }
    }

    fn is(&self, other: &FileIdentity) -> bool {
        self.path == other.path || (self.inode.is_some() && self.inode == other.inode)
    }
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<(u64, u64)> {
    None
}

fn identities(paths: &[PathBuf]) -> Vec<(&Path, FileIdentity)> {
    let files = paths.iter().filter(|path| !is_stream(path));
    files.map(|path| (path.as_path(), FileIdentity::of(path))).collect()
}
