//! Files that appear only once they are complete.

use std::fs::{self, File, Permissions};
use std::io::{self, Stdout, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::input::is_standard;
use crate::Error;

/// How the names of files that are being written begin. A process that is killed leaves them behind.
const UNFINISHED: &str = ".phex-";

/// Whether a file of this name is what a killed process left of an output.
pub fn is_unfinished(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with(UNFINISHED)
}

/// Writes a text to a file that appears once it is complete, or to standard output for `-`.
pub fn write_text(path: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        let mut output = Output::create(path)?;
        output.write_all(text.as_bytes())?;
        output.finish()
    };
    write().map_err(|source| Error::Write { path: display_name(path), source })
}

/// The name of an output path in messages.
pub(crate) fn display_name(path: &Path) -> String {
    if is_standard(path) { String::from("<stdout>") } else { path.display().to_string() }
}

/// The destination of bytes: a temporary file beside the target, which [`Output::finish`] moves
/// there, or a stream. An output that is dropped unfinished leaves no file behind.
#[derive(Debug)]
pub enum Output {
    /// Standard output.
    Standard(Stdout),
    /// A device or a pipe, which is written to and not replaced.
    Stream(File),
    /// A file that is not complete yet.
    File {
        /// The temporary file.
        file: NamedTempFile,
        /// The path that it is moved to.
        target: PathBuf,
        /// The permissions of the file that it replaces.
        old: Option<Permissions>,
    },
}

impl Output {
    /// Starts a file, or standard output for `-`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path) -> io::Result<Output> {
        if is_standard(path) {
            return Ok(Output::Standard(io::stdout()));
        }
        // A link keeps pointing at its target, and a device is not replaced by a file.
        let old = fs::metadata(path).ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Ok(Output::Stream(File::options().write(true).open(path)?));
        }
        let target = match old {
            Some(_) => fs::canonicalize(path)?,
            None => path.to_owned(),
        };
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            // Temporary files belong to their owner alone; this one gets the usual permissions.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(Permissions::from_mode(0o666));
        }
        let file = builder.prefix(UNFINISHED).tempfile_in(folder)?;
        Ok(Output::File { file, target, old: old.map(|old| old.permissions()) })
    }

    /// The file, where its start can be written again.
    pub(crate) fn seekable(&mut self) -> Option<&mut File> {
        match self {
            Output::File { file, .. } => Some(file.as_file_mut()),
            Output::Standard(_) | Output::Stream(_) => None,
        }
    }

    /// Moves the complete file to its path.
    ///
    /// # Errors
    /// When the rest cannot be written or the file cannot be moved.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        if let Output::File { file, target, old } = self {
            if let Some(old) = old {
                file.as_file().set_permissions(old)?;
            }
            file.as_file().sync_all()?;
            file.persist(&target)?;
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Standard(out) => out.write(bytes),
            Output::Stream(out) => out.write(bytes),
            Output::File { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Standard(out) => out.flush(),
            Output::Stream(out) => out.flush(),
            Output::File { file, .. } => file.flush(),
        }
    }
}
