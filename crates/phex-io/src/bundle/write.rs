//! Writing bundles.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::folder::BundlePaths;
use super::{
    BUNDLE_VERSION, Bundle, CARD, CONFIG, FORMAT, GRAPH, MODEL, PARTS, RESERVED, read,
    write_tensors,
};
use crate::files::output::{is_unfinished, write_text};
use crate::{Error, Format, write_graph};

/// Writes a bundle to a new folder, or replaces an existing bundle.
///
/// The parts are written to a new folder beside it, which takes its place once it is complete. A
/// process that is stopped on the way leaves the old bundle or the new one, and
/// [`read_bundle`](super::read_bundle) finds it. A folder `.NAME.phex-new-…` that it left can be
/// deleted.
///
/// # Errors
/// When the folder exists and is not a bundle or contains other files, the number of values of a
/// tensor does not match its shape, or the system cannot write the folder.
pub fn write_bundle(folder: &Path, bundle: &Bundle) -> Result<(), Error> {
    let shown = folder.display().to_string();
    let failed = |source| Error::Write { path: shown.clone(), source };
    let config = config(folder, bundle)?;
    let paths = BundlePaths::of(folder).map_err(failed)?;
    may_replace(&paths.target)?;
    let new = paths.start().map_err(failed)?;
    let part = |name: &str| new.path().join(name);
    write_graph(&bundle.graph, &part(GRAPH), Some(Format::Json))?;
    write_tensors(&part(MODEL), &bundle.tensors, &BTreeMap::new())?;
    write_text(&part(CARD), &bundle.card)?;
    // The configuration comes last: a folder without it is not a bundle.
    write_text(&part(CONFIG), &config)?;
    paths.replace(new).map_err(failed)
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
fn may_replace(target: &Path) -> Result<(), Error> {
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
        if !PARTS.iter().any(|part| name.as_os_str() == *part) {
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
