//! The lab as its users see it, and its experiments as miniatures.

#![allow(clippy::unwrap_used)]

mod commands;
mod engines;
mod miniatures;

use std::path::Path;

use assert_cmd::Command;

/// Exit status, standard output and standard error of a run in a folder.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("lab"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}
