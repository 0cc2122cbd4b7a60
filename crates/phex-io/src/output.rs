//! Files that appear only once they are complete.

use std::fs::{self, File, Permissions};
use std::io::{self, Stdout, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::input::is_standard;

/// Where bytes go: a temporary file beside the target that is moved there by [`Output::finish`],
/// or a stream. A file that is dropped before that leaves nothing behind.
#[derive(Debug)]
pub enum Output {
    /// Standard output.
    Standard(Stdout),
    /// A device or a pipe: written and not replaced.
    Stream(File),
    /// A file in the making.
    File {
        /// What is written so far.
        file: NamedTempFile,
        /// What it becomes.
        target: PathBuf,
        /// The permissions of the file that it replaces.
        old: Option<Permissions>,
    },
}

impl Output {
    /// Starts a file, or standard output for `-`.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Output> {
        if is_standard(path) {
            return Ok(Output::Standard(io::stdout()));
        }
        // A link keeps pointing at its target, and a device is written and not replaced.
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
            // As for any new file: what the umask leaves, and not for the owner alone.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(Permissions::from_mode(0o666));
        }
        let file = builder.prefix(".phex-").tempfile_in(folder)?;
        Ok(Output::File { file, target, old: old.map(|old| old.permissions()) })
    }

    /// The file, where one can go back in it.
    pub(crate) fn seekable(&mut self) -> Option<&mut File> {
        match self {
            Output::File { file, .. } => Some(file.as_file_mut()),
            Output::Standard(_) | Output::Stream(_) => None,
        }
    }

    /// Puts the complete file in its place.
    ///
    /// # Errors
    /// When the rest cannot be written or the file not be moved.
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
