//! Folders that are replaced as a whole.
//!
//! A file can be replaced in one step, a folder cannot. The new folder is written beside the old one
//! and flushed to the disk. Then the old one is renamed to `.NAME.phex-old`, the new one takes its
//! place, and the old one is deleted. A process that is stopped between the two moves leaves a
//! complete old folder under that name, where readers find it. So a complete bundle, old or new,
//! exists at every moment. Whoever writes the bundle next deletes what a killed process left. Two processes must not
//! write the same bundle at the same time.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::PARTS;
use crate::files::output::{is_left_behind, is_temporary, is_unfinished};

/// The path of a bundle, and the path of the old one while it is replaced.
pub(super) struct BundlePaths {
    /// The folder that contains both.
    pub(super) parent: PathBuf,
    pub(super) target: PathBuf,
    pub(super) aside: PathBuf,
    /// How the names of new folders begin.
    new: OsString,
}

/// A folder that is being written, with the lock that keeps others from deleting it.
pub(super) struct StagingFolder {
    folder: tempfile::TempDir,
    _lock: Option<File>,
}

impl StagingFolder {
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl BundlePaths {
    pub(super) fn of(folder: &Path) -> io::Result<BundlePaths> {
        // A link keeps pointing at its target.
        let target = match fs::canonicalize(folder) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.to_owned(),
            Err(error) => return Err(error),
        };
        let Some(name) = target.file_name().map(OsString::from) else {
            return Err(io::Error::other("a bundle needs a folder with a name"));
        };
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let aside = parent.join(hidden(&name, ".phex-old"));
        let new = hidden(&name, ".phex-new-");
        Ok(BundlePaths { parent, target, aside, new })
    }

    /// Deletes what killed processes left beside the target: new folders that nobody writes any more, and an old folder
    /// whose successor is in place. `names` are the files that may be in them.
    pub(super) fn sweep(&self, names: &[&str]) -> io::Result<()> {
        for entry in fs::read_dir(&self.parent)?.flatten() {
            let is_folder = || entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_temporary(&entry.file_name(), &self.new) && is_folder() {
                let lock = File::open(entry.path());
                if lock.is_ok_and(|lock| is_left_behind(&lock)) {
                    remove(&entry.path(), names)?;
                }
            }
        }
        if self.target.exists() { remove(&self.aside, names) } else { Ok(()) }
    }

    /// An empty folder beside the target.
    pub(super) fn start(&self) -> io::Result<StagingFolder> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            // Temporary folders belong to their owner alone; this one gets the usual permissions.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        let folder = builder.prefix(&self.new).tempdir_in(&self.parent)?;
        // Where the system has no locks on folders, nobody deletes the folder either.
        let lock = File::open(folder.path()).ok().filter(|lock| lock.try_lock().is_ok());
        Ok(StagingFolder { folder, _lock: lock })
    }

    /// Replaces the target by a complete folder. `names` are the files that may be in the old one.
    pub(super) fn replace(&self, new: StagingFolder, names: &[&str]) -> io::Result<()> {
        sync(new.path())?;
        if self.target.exists() {
            // A process that was stopped while deleting an old folder has left it here.
            remove(&self.aside, names)?;
            fs::rename(&self.target, &self.aside)?;
        }
        if let Err(error) = fs::rename(new.path(), &self.target) {
            // The old folder is moved back. If that fails too, readers find it aside.
            if self.aside.exists() {
                let _ = fs::rename(&self.aside, &self.target);
            }
            return Err(error);
        }
        // The temporary folder has been moved, so there is nothing to delete.
        let _ = new.folder.keep();
        sync(&self.parent)?;
        remove(&self.aside, names)
    }
}

fn hidden(name: &OsStr, end: &str) -> OsString {
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(end);
    hidden
}

/// Deletes the parts of a bundle, files of these names, what killed processes left of them, and the folder; nothing
/// else.
fn remove(folder: &Path, names: &[&str]) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for part in PARTS.iter().chain(names) {
        match fs::remove_file(folder.join(part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_unfinished(&entry.file_name()) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

/// Flushes the entries of a folder to the disk, where the system can.
fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
