//! Real data for tests, and what happens where it is missing.
//!
//! A test that cannot run does not pass in silence. It calls [`skip`], which prints the reason and
//! appends it to the file that `PHEX_SKIPPED` names, if any; `make test` counts its lines at the end.

use std::io::Write;
use std::path::{Path, PathBuf};

/// A file or folder of the data sets, below the folder that `PHEX_DATA` names, or below
/// `shared/data` beside the repository. Where there is none, the running test is noted as skipped.
pub fn data(name: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("PHEX_DATA") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    skip(&format!(
        "there is no {name} in the folder of the data sets; PHEX_DATA names that folder"
    ));
    None
}

/// The edges (parent, child) of the ImageNet hierarchy of 1860 labels, if the data is there.
pub fn imagenet_edges() -> Option<Vec<(String, String)>> {
    let path = data("imagenet/ilsvrc2012_hierarchy_edges.tsv")?;
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(edges_of(&text)),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// The edges (parent, child) of a table with tabs and a header.
pub fn edges_of(table: &str) -> Vec<(String, String)> {
    let pairs = table.lines().skip(1).filter_map(|line| line.split_once('\t'));
    pairs.map(|(parent, child)| (parent.to_owned(), child.trim().to_owned())).collect()
}

/// Notes that the running test, or a part of it, was skipped, and why.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
    eprint!("skipped: {line}");
    let Some(path) = std::env::var_os("PHEX_SKIPPED") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    // One call writes the whole line, so that tests in parallel do not mix theirs.
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        panic!("{}: {error}", Path::new(&path).display());
    }
}
