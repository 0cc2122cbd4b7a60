//! Writing bundles.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::folder::BundlePaths;
use super::{
    BUNDLE_VERSION, Bundle, CARD, CONFIG, FORMAT, GRAPH, MODEL, PARTS, RESERVED, read,
    write_tensors,
};
use crate::files::output::{is_unfinished, write_text};
use crate::{Error, Format, write_graph};

/// A file that belongs to a bundle's folder besides its parts.
#[derive(Debug, Clone, Copy)]
pub struct BundleExtra<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its text, if it is written. An old file of this name is deleted in any case.
    pub text: Option<&'a str>,
}

/// Writes a bundle to a new folder, or replaces an existing bundle.
///
/// The parts are written to a new folder beside it, which takes its place once it is complete. A
/// process that is stopped on the way leaves the old bundle or the new one, and
/// [`read_bundle`](super::read_bundle) finds it. The next one who writes the bundle deletes a folder
/// `.NAME.phex-new-…` that it left.
///
/// # Errors
/// When the folder exists and is not a bundle or contains other files, the number of values of a
/// tensor does not match its shape, or the system cannot write the folder.
pub fn write_bundle(folder: &Path, bundle: &Bundle) -> Result<(), Error> {
    write_bundle_with(folder, bundle, &[])
}

/// Writes a bundle as [`write_bundle`] does, together with other files.
///
/// # Errors
/// As [`write_bundle`].
pub fn write_bundle_with(
    folder: &Path,
    bundle: &Bundle,
    extras: &[BundleExtra<'_>],
) -> Result<(), Error> {
    let failed = |source| Error::Write { path: folder.display().to_string(), source };
    let config = config(folder, bundle)?;
    let names: Vec<&str> = extras.iter().map(|extra| extra.name).collect();
    let paths = BundlePaths::of(folder).map_err(failed)?;
    may_replace(&paths.target, &names)?;
    paths.sweep(&names).map_err(failed)?;
    let new = paths.start().map_err(failed)?;
    let part = |name: &str| new.path().join(name);
    write_graph(&bundle.graph, &part(GRAPH), Some(Format::Json))?;
    write_tensors(&part(MODEL), &bundle.tensors, &BTreeMap::new())?;
    write_text(&part(CARD), &bundle.card)?;
    for BundleExtra { name, text } in extras {
        if let Some(text) = text {
            write_text(&part(name), text)?;
        }
    }
    // The configuration comes last: a folder without it is not a bundle.
    write_text(&part(CONFIG), &config)?;
    paths.replace(new, &names).map_err(failed)
}

/// Checks that [`write_bundle_with`] can write a bundle to a folder, and deletes what killed processes left beside it.
/// `names` are the files that may be there besides the parts of a bundle.
///
/// # Errors
/// When the folder exists and is not a bundle or contains other files, or nothing can be written beside it.
pub fn prepare_bundle(folder: &Path, names: &[&str]) -> Result<(), Error> {
    let failed = |source| Error::Write { path: folder.display().to_string(), source };
    let paths = BundlePaths::of(folder).map_err(failed)?;
    may_replace(&paths.target, names)?;
    paths.sweep(names).map_err(failed)?;
    paths.start().map(drop).map_err(failed)
}

/// The paths of a bundle's parts, whether they exist or not.
pub fn bundle_files(folder: &Path) -> [PathBuf; 4] {
    PARTS.map(|part| folder.join(part))
}

/// The text of the configuration.
fn config(folder: &Path, bundle: &Bundle) -> Result<String, Error> {
    let wrong = |message| Error::Bundle { path: folder.display().to_string(), message };
    if let Some(key) = RESERVED.iter().find(|key| bundle.config.contains_key(**key)) {
        let message = format!(
            "the configuration has the key `{key}`, which is reserved for the bundle itself"
        );
        return Err(wrong(message));
    }
    let mut config = serde_json::Map::new();
    let own = [
        ("format", Value::from(FORMAT)),
        ("version", Value::from(BUNDLE_VERSION)),
        ("phex", Value::from(env!("CARGO_PKG_VERSION"))),
    ];
    own.into_iter().for_each(|(key, value)| drop(config.insert(key.to_owned(), value)));
    config.extend(bundle.config.clone());
    let text = serde_json::to_string_pretty(&Value::Object(config));
    text.map(|text| text + "\n").map_err(|error| wrong(error.to_string()))
}

/// Refuses to replace a folder that is not a bundle or contains other files.
fn may_replace(target: &Path, names: &[&str]) -> Result<(), Error> {
    let shown = || target.display().to_string();
    let wrong = |message: String| Err(Error::Bundle { path: shown(), message });
    let failed = |source| Error::Read { path: shown(), source };
    if !target.exists() {
        return Ok(());
    }
    if !target.is_dir() {
        return wrong(String::from("this is a file; a bundle is a folder"));
    }
    let mut empty = true;
    for entry in fs::read_dir(target).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if is_unfinished(&name) {
            continue;
        }
        empty = false;
        if !PARTS.iter().chain(names).any(|part| name.as_os_str() == *part) {
            return wrong(format!(
                "the folder is not replaced, because it contains `{}`, which is not part of a \
                 bundle; choose another folder",
                name.display()
            ));
        }
    }
    if !empty && let Err(Error::Bundle { message, .. }) = read::read_config(target) {
        return wrong(format!(
            "the folder is not replaced, because it is not a bundle ({message}); choose another \
             folder"
        ));
    }
    Ok(())
}
