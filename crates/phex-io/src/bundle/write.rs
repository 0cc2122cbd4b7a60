//! Writing bundles.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use super::folder::Places;
use super::{
    BUNDLE_VERSION, Bundle, CARD, CONFIG, FORMAT, GRAPH, MODEL, PARTS, RESERVED, read,
    write_tensors,
};
use crate::output::Output;
use crate::{Error, Format, write_graph};

/// Writes a bundle to a folder, which is made, or replaced if it is a bundle already.
///
/// The parts are written to a new folder beside it, which is moved into place once it is
/// complete: whoever is stopped on the way leaves the old bundle or the new one, and
/// [`read_bundle`](super::read_bundle) finds it. A folder `.NAME.phex-new-…` that was left so can
/// be deleted.
///
/// # Errors
/// When the folder is there and is no bundle or holds other files too, a tensor has another shape
/// than it says, or the system cannot write it.
pub fn write_bundle(folder: &Path, bundle: &Bundle) -> Result<(), Error> {
    let shown = folder.display().to_string();
    let failed = |source| Error::Write { path: shown.clone(), source };
    let config = config(folder, bundle)?;
    let places = Places::of(folder).map_err(failed)?;
    may_replace(&places.target)?;
    let new = places.start().map_err(failed)?;
    let part = |name: &str| new.path().join(name);
    write_graph(&bundle.graph, &part(GRAPH), Some(Format::Json))?;
    write_tensors(&part(MODEL), &bundle.tensors, &BTreeMap::new())?;
    write_text(&part(CARD), &bundle.card)?;
    // Last: a folder without it is no bundle.
    write_text(&part(CONFIG), &config)?;
    places.replace(new).map_err(failed)
}

/// The text of the configuration.
fn config(folder: &Path, bundle: &Bundle) -> Result<String, Error> {
    let wrong = |message| Error::Bundle { path: folder.display().to_string(), message };
    if let Some(key) = RESERVED.iter().find(|key| bundle.config.contains_key(**key)) {
        let message =
            format!("the configuration has a key `{key}`, which bundles keep for themselves");
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

fn write_text(path: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        let mut output = Output::create(path)?;
        output.write_all(text.as_bytes())?;
        output.finish()
    };
    write().map_err(|source| Error::Write { path: path.display().to_string(), source })
}

/// Refuses to replace what is no bundle, or more than one.
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
        empty = false;
        if !PARTS.iter().any(|part| name.as_os_str() == *part) {
            return wrong(format!(
                "the folder holds `{}`, which is no part of a bundle, and is not replaced; choose \
                 another folder",
                name.display()
            ));
        }
    }
    if !empty && let Err(Error::Bundle { message, .. }) = read::read_config(target) {
        return wrong(format!(
            "the folder is no bundle and is not replaced ({message}); choose another folder"
        ));
    }
    Ok(())
}
