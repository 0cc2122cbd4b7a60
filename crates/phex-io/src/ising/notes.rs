//! Names and offset in comments, for forms that have no other place for them.
//!
//! ```text
//! # phex offset 2.5
//! # phex name 0 "dog"
//! ```
//!
//! A name is a JSON string on one line. The offset is the constant of the polynomial of the file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What the comments of a file say.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(super) offset: f64,
    pub(crate) names: BTreeMap<usize, String>,
}

impl Notes {
    /// Takes the text of a comment; most are not for us.
    pub(crate) fn take(&mut self, comment: &str) -> Result<(), String> {
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

    /// The name of the variable with this number in the file.
    pub(super) fn name(&mut self, number: usize) -> String {
        self.names.remove(&number).unwrap_or_else(|| number.to_string())
    }
}

/// A finite number.
pub(super) fn number(word: &str) -> Result<f64, String> {
    let number = word.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("`{word}` should be a finite number"))
}

/// The lines for an offset and names that are not the numbers of their variables.
pub(super) fn write(out: &mut String, comment: &str, offset: f64, names: &[String]) {
    if offset != 0.0 {
        let _ = writeln!(out, "{comment} phex offset {offset}");
    }
    for (at, name) in names.iter().enumerate().filter(|(at, name)| **name != at.to_string()) {
        let _ = writeln!(out, "{comment} phex name {at} {}", quoted(name));
    }
}

/// A name in double quotes. dimod looks for the word `vartype` in all comments, so that it is
/// hidden in names.
pub(crate) fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string().replace("vartype", "\\u0076artype")
}
