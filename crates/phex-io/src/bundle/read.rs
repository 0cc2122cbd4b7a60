//! Reading bundles.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use super::folder::BundlePaths;
use super::{BUNDLE_VERSION, Bundle, CARD, CONFIG, FORMAT, GRAPH, MODEL, RESERVED, read_tensors};
use crate::files::input::read_text;
use crate::{Error, Format, ReadOptions, read_graph};

/// Reads a bundle. If a process was stopped while replacing it, the old bundle is read.
///
/// The card is for people only: a bundle without `README.md` gets an empty one.
///
/// # Errors
/// When the folder is not a bundle or is of a newer version, or a part is missing or damaged.
pub fn read_bundle(folder: &Path) -> Result<Bundle, Error> {
    let paths = BundlePaths::of(folder)
        .map_err(|source| Error::Read { path: folder.display().to_string(), source })?;
    let folder =
        if !paths.target.exists() && paths.aside.exists() { paths.aside.as_path() } else { folder };
    if !folder.is_dir() {
        let message = String::from("there is no such folder; a bundle is a folder");
        return Err(Error::Bundle { path: folder.display().to_string(), message });
    }
    let config = read_config(folder)?;
    let graph = part(folder, GRAPH, |path| {
        let options = ReadOptions { format: Some(Format::Json), ..ReadOptions::default() };
        let builder = read_graph(path, &options)?;
        builder.build().map_err(|error| Error::Bundle {
            path: path.display().to_string(),
            message: error.to_string(),
        })
    })?;
    let (tensors, _) = part(folder, MODEL, read_tensors)?;
    let card = match read_text(&folder.join(CARD)) {
        Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            String::new()
        }
        card => card?,
    };
    Ok(Bundle { config, graph, tensors, card })
}

/// The configuration, without the keys of the bundle itself.
pub(super) fn read_config(folder: &Path) -> Result<Map<String, Value>, Error> {
    let path = folder.join(CONFIG);
    let wrong = |message: String| Error::Bundle { path: path.display().to_string(), message };
    let text = part(folder, CONFIG, read_text)?;
    let config = serde_json::from_str::<Map<String, Value>>(&text);
    let mut config = config.map_err(|error| wrong(format!("line {}: {error}", error.line())))?;
    if config.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(wrong(format!("this is not a bundle: `format` is not \"{FORMAT}\"")));
    }
    let writer = match config.get("phex").and_then(Value::as_str) {
        Some(version) => format!("phex {version}"),
        None => String::from("a newer phex"),
    };
    match config.get("version").and_then(Value::as_u64) {
        Some(1..=BUNDLE_VERSION) => {}
        Some(version) if version > BUNDLE_VERSION => {
            return Err(wrong(format!(
                "the bundle has version {version}, and phex {} reads version {BUNDLE_VERSION}; use \
                 {writer}, which wrote it, or a newer one",
                env!("CARGO_PKG_VERSION")
            )));
        }
        _ => return Err(wrong(String::from("`version` is not a number from 1"))),
    }
    config.retain(|key, _| !RESERVED.contains(&key.as_str()));
    Ok(config)
}

/// Reads a part; the error names a part that is missing.
fn part<T>(
    folder: &Path,
    name: &str,
    read: impl Fn(&Path) -> Result<T, Error>,
) -> Result<T, Error> {
    match read(&folder.join(name)) {
        Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let message = format!("the bundle has no `{name}`");
            Err(Error::Bundle { path: folder.display().to_string(), message })
        }
        result => result,
    }
}
