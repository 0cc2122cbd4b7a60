//! Names and offset in comments, for formats that have no other place for them.
//!
//! ```text
//! # phex offset 2.5
//! # phex name 0 "dog"
//! ```
//!
//! A name is a JSON string on one line. The offset is the constant term of the polynomial.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The names and the offset in the comments of a file.
#[derive(Debug, Default)]
pub(super) struct FileNotes {
    pub(super) offset: f64,
    pub(super) names: BTreeMap<usize, String>,
}

impl FileNotes {
    /// Reads a comment; one without the word `phex` is skipped.
    pub(super) fn take(&mut self, comment: &str) -> Result<(), String> {
        let Some(note) = comment.trim_start().strip_prefix("phex ") else { return Ok(()) };
        if let Some(offset) = note.strip_prefix("offset ") {
            self.offset = number(offset.trim())?;
        } else if let Some(name) = note.strip_prefix("name ") {
            let (at, name) = name.trim_start().split_once(' ').unwrap_or((name, ""));
            let name = serde_json::from_str(name.trim())
                .map_err(|_| format!("`{}` should be a name in double quotes", name.trim()))?;
            let at =
                at.parse().map_err(|_| format!("`{at}` should be the number of a variable"))?;
            if self.names.insert(at, name).is_some() {
                return Err(format!("the variable {at} has two names"));
            }
        }
        Ok(())
    }

    /// The name of a variable, given its number in the file.
    pub(super) fn name(&mut self, number: usize) -> String {
        self.names.remove(&number).unwrap_or_else(|| number.to_string())
    }
}

/// A finite number.
pub(super) fn number(word: &str) -> Result<f64, String> {
    let number = word.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("`{word}` should be a finite number"))
}

/// Writes the offset, and the names that differ from the numbers of their variables.
pub(super) fn write(out: &mut String, comment: &str, offset: f64, names: &[String]) {
    if offset != 0.0 {
        let _ = writeln!(out, "{comment} phex offset {offset}");
    }
    for (at, name) in names.iter().enumerate().filter(|(at, name)| **name != at.to_string()) {
        let _ = writeln!(out, "{comment} phex name {at} {}", quoted(name));
    }
}

/// A name in double quotes. The word `vartype` is escaped in it, because dimod searches all comments
/// for it.
pub(super) fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string().replace("vartype", "\\u0076artype")
}
