//! The lock of a run's folder: a file in the folder of checkpoints, locked by the system until the process ends.
//!
//! The lock of a process that was killed is free. A process that ends deletes the file and, if no checkpoint is in it, the
//! folder. So after the file is locked, it must still be the one in the folder: another process may have deleted it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::folder::not_written;
use crate::Error;

/// The name of the file.
pub(super) const LOCK: &str = "lock";
/// How often a file is opened again that another process has deleted.
const ATTEMPTS: usize = 100;

/// The lock of a run's folder, until it is dropped.
#[derive(Debug)]
pub struct RunLock {
    folder: PathBuf,
    _file: File,
}

impl RunLock {
    /// Locks `folder`, which is made if it does not exist, for a run in `run`.
    pub(super) fn take(run: &Path, folder: &Path) -> Result<RunLock, Error> {
        let path = folder.join(LOCK);
        for _ in 0..ATTEMPTS {
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(not_written(folder, error));
                }
                _ => {}
            }
            let file = match File::options().create(true).truncate(false).write(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file.map_err(|source| not_written(&path, source))?,
            };
            // Where the system has no locks, runs are not kept apart.
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                let message = String::from(
                    "another process trains a model in this folder; wait for it, or choose another folder",
                );
                return Err(Error::Folder { path: run.to_owned(), message });
            }
            if is_at(&file, &path) {
                return Ok(RunLock { folder: folder.to_owned(), _file: file });
            }
        }
        Err(not_written(&path, io::Error::other("other processes delete it again and again")))
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // The file is deleted while it is locked. What cannot be deleted is in nobody's way.
        let _ = fs::remove_file(self.folder.join(LOCK));
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Whether an open file is the one at a path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(found)) => (open.dev(), open.ino()) == (found.dev(), found.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
