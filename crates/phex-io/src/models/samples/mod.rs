//! Samples of an external annealer, as states of a model.
//!
//! Two formats are read: CSV tables with one column per variable and one row per sample, as
//! `sampleset.to_pandas_dataframe().to_csv()` writes them, and dimod's sample sets as JSON, as
//! `json.dump(sampleset.to_serializable(), file)` writes them, packed or not. Values are 0 and 1, or
//! −1 and +1.
//!
//! Variables are found by name. Samples of a model that was exported with numbered variables
//! (`.coo`, `.qubo`) have the names `0 … n−1`, which stand for the labels in order.

mod json;
mod table;

use std::collections::HashMap;
use std::path::Path;

use crate::Error;
use crate::files::input::read_model;
use crate::files::text::SourceText;

/// One state of a model, as an annealer found it.
#[derive(Debug, Clone, PartialEq)]
pub struct SolverSample {
    /// Whether each label is on, in the order of the names.
    pub state: Vec<bool>,
    /// The energy that the annealer reports, if it does.
    pub energy: Option<f64>,
    /// How many times it was found.
    pub occurrences: u64,
}

/// Reads samples for labels of these names, from a file or from standard input for `-`.
///
/// # Errors
/// When the file cannot be read, has neither format, or lacks a variable for a label.
pub fn read_samples(path: &Path, names: &[String]) -> Result<Vec<SolverSample>, Error> {
    let (bytes, name) = read_model(path)?;
    parse_samples(&bytes, &name, names)
}

/// Reads samples from bytes; messages call the file `name`.
///
/// ```
/// let names = ["dog", "cat"].map(String::from);
/// let samples = phex_io::parse_samples(b"cat,dog,energy\n-1,1,2.5\n", "s.csv", &names)?;
/// assert_eq!(samples[0].state, [true, false]);
/// assert_eq!(samples[0].energy, Some(2.5));
/// # Ok::<(), phex_io::Error>(())
/// ```
///
/// # Errors
/// As [`read_samples`].
pub fn parse_samples(
    bytes: &[u8],
    name: &str,
    names: &[String],
) -> Result<Vec<SolverSample>, Error> {
    let source = SourceText::decode(bytes, name)?;
    if source.text.trim_start().starts_with('{') {
        json::read(&source, names)
    } else {
        table::read(&source, names)
    }
}

/// The label of each variable; `None` for a column that is one of `others` and not a variable.
fn positions(
    path: &str,
    variables: &[String],
    names: &[String],
    others: &[&str],
) -> Result<Vec<Option<usize>>, Error> {
    let fault = |message: String| Error::Model { path: path.to_owned(), message };
    let by_name: HashMap<&str, usize> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let is_other = |variable: &str| others.contains(&variable) && !by_name.contains_key(variable);
    let numbered = |variable: &str| {
        let number = variable.parse::<usize>().ok().filter(|&at| at < names.len());
        number.filter(|at| at.to_string() == variable)
    };
    let own = || variables.iter().filter(|variable| !is_other(variable));
    let by_number = !own().all(|variable| by_name.contains_key(variable.as_str()))
        && own().all(|variable| numbered(variable).is_some());
    let mut seen = vec![false; names.len()];
    let mut positions = Vec::with_capacity(variables.len());
    for variable in variables {
        if is_other(variable) {
            positions.push(None);
            continue;
        }
        let found =
            if by_number { numbered(variable) } else { by_name.get(variable.as_str()).copied() };
        let Some(position) = found else {
            return Err(fault(format!(
                "the samples have a variable `{variable}`, which is not a label of the model; do they \
                 belong to another model?"
            )));
        };
        if std::mem::replace(&mut seen[position], true) {
            return Err(fault(format!("two variables are named `{variable}`")));
        }
        positions.push(Some(position));
    }
    let mut missing = names.iter().zip(&seen).filter(|(_, seen)| !**seen).map(|(name, _)| name);
    if let Some(first) = missing.next() {
        let more = match missing.count() {
            0 => String::new(),
            more => format!(", nor {more} more labels"),
        };
        return Err(fault(format!("the samples have no variable `{first}`{more}")));
    }
    Ok(positions)
}

/// The value that means off: 0 or −1, but not both in one file.
#[derive(Debug, Default)]
struct OffValue {
    off: Option<i64>,
}

impl OffValue {
    fn is_on(&mut self, value: i64) -> Result<bool, String> {
        match value {
            1 => Ok(true),
            0 | -1 => match self.off.replace(value) {
                Some(other) if other != value => {
                    Err(String::from("values are 0 and 1, or −1 and 1; the file has both 0 and −1"))
                }
                _ => Ok(false),
            },
            _ => Err(format!("the value {value} is not 0, 1 or −1")),
        }
    }
}
