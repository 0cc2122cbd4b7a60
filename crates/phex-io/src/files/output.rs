//! Files that appear only once they are complete.
//!
//! A file is written beside its target under a temporary name, holds a lock, and is moved in the end. A process that is
//! killed leaves the temporary file without a lock, and whoever writes to the same folder next deletes it.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Stdout, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::input::is_standard;
use crate::Error;

/// How the names of files that are being written begin. Six random letters and digits follow.
const UNFINISHED: &str = ".phex-";

/// How often a temporary file is made again that another process has deleted before it was locked.
const ATTEMPTS: usize = 8;

/// Whether a file of this name is one that is being written, or what a killed process left of it.
pub fn is_unfinished(name: &OsStr) -> bool {
    is_temporary(name, UNFINISHED)
}

/// Whether a name is this prefix and six random letters and digits.
pub(crate) fn is_temporary(name: &OsStr, prefix: impl AsRef<OsStr>) -> bool {
    let name = name.as_encoded_bytes();
    let random = name.strip_prefix(prefix.as_ref().as_encoded_bytes());
    random.is_some_and(|random| random.len() == 6 && random.iter().all(u8::is_ascii_alphanumeric))
}

/// Whether the lock of a file is free. It is taken until the file is dropped. False where the system has no locks.
pub(crate) fn is_left_behind(file: &File) -> bool {
    file.try_lock().is_ok()
}

/// Deletes what killed processes left in a folder. A file that is still being written is locked.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_unfinished(&entry.file_name()) && is_file() {
            let file = File::options().write(true).open(entry.path());
            if file.is_ok_and(|file| is_left_behind(&file)) {
                // If it cannot be deleted, it is in nobody's way.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
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
        let old = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // A name that is too long, for example: nothing could be moved there in the end.
            found => Some(found?),
        };
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
        sweep(folder);
        let file = temporary(folder)?;
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

/// A new file in a folder, with the lock that keeps others from deleting it.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        // Temporary files belong to their owner alone; this one gets the usual permissions.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(Permissions::from_mode(0o666));
    }
    for _ in 0..ATTEMPTS {
        let file = builder.prefix(UNFINISHED).tempfile_in(folder)?;
        // Where the system has no locks, nobody deletes the file either.
        let _ = file.as_file().try_lock();
        if file.path().exists() {
            return Ok(file);
        }
    }
    Err(io::Error::other("other processes delete the temporary file"))
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
