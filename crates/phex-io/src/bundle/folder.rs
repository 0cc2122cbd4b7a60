//! Folders that are replaced as a whole.
//!
//! Files can be replaced in one step, folders cannot. A new folder is written beside the old one
//! and made safe on the disk; then the old one is moved aside to `.NAME.phex-old`, the new one is
//! moved in, and the old one is deleted. Whoever is stopped between the two moves leaves a
//! complete old folder under that name, and readers take it from there. So at every moment there
//! is a complete bundle, old or new. Two that write the same bundle at the same time are not
//! guarded against.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::PARTS;

/// Where a folder is put and where its old one is kept for a moment.
pub(super) struct Places {
    /// The folder that holds both.
    pub(super) parent: PathBuf,
    pub(super) target: PathBuf,
    pub(super) aside: PathBuf,
    name: OsString,
}

impl Places {
    pub(super) fn of(folder: &Path) -> io::Result<Places> {
        // A link keeps pointing at its target.
        let target = match fs::canonicalize(folder) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.to_owned(),
            Err(error) => return Err(error),
        };
        let Some(name) = target.file_name().map(OsString::from) else {
            return Err(io::Error::other("a bundle is a folder with a name"));
        };
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let aside = parent.join(hidden(&name, ".phex-old"));
        Ok(Places { parent, target, aside, name })
    }

    /// An empty folder beside the target.
    pub(super) fn start(&self) -> io::Result<tempfile::TempDir> {
        let prefix = hidden(&self.name, ".phex-new-");
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            // As for any new folder: what the umask leaves, and not for the owner alone.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        builder.prefix(&prefix).tempdir_in(&self.parent)
    }

    /// Puts a complete folder in the place of the target.
    pub(super) fn replace(&self, new: tempfile::TempDir) -> io::Result<()> {
        sync(new.path())?;
        if self.target.exists() {
            // What is aside now was left when someone was stopped while deleting it.
            remove(&self.aside)?;
            fs::rename(&self.target, &self.aside)?;
        }
        if let Err(error) = fs::rename(new.path(), &self.target) {
            // Back to what it was; if that fails too, readers still find the old one aside.
            if self.aside.exists() {
                let _ = fs::rename(&self.aside, &self.target);
            }
            return Err(error);
        }
        // It has another name now: there is nothing to delete.
        let _ = new.keep();
        sync(&self.parent)?;
        remove(&self.aside)
    }
}

fn hidden(name: &OsString, end: &str) -> OsString {
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(end);
    hidden
}

/// Deletes a bundle, and nothing else that might be there.
fn remove(folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for part in PARTS {
        match fs::remove_file(folder.join(part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(folder)
}

/// Makes the entries of a folder safe on the disk, where the system can.
fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
