//! Running the command as a user does.

pub mod animals;

use std::collections::HashMap;
use std::path::Path;

use assert_cmd::Command;

/// Exit status, standard output and standard error of a run in a folder.
pub fn run(folder: &Path, arguments: &[&str], input: &str) -> (i32, String, String) {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("phex"))
        .current_dir(folder)
        .args(arguments)
        .write_stdin(input)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The cells of a CSV file by row and column name.
#[allow(dead_code)] // Not every test file reads tables.
pub fn table(text: &str) -> Vec<HashMap<String, String>> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines
        .map(|line| {
            let cells = line.split(',').map(str::to_owned);
            header.iter().map(|name| (*name).to_owned()).zip(cells).collect()
        })
        .collect()
}
