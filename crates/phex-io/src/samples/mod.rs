//! Samples of an external annealer, back to states of a model.
//!
//! Two forms: tables as CSV, a column a variable and a row a sample, as
//! `sampleset.to_pandas_dataframe().to_csv()` writes them; and dimod's sample sets as JSON, as
//! `json.dump(sampleset.to_serializable(), file)` writes them, packed or not. Values are 0 and 1 or
//! −1 and +1.
//!
//! Variables are found by name. Where a model went out by numbers (`.coo`, `.qubo`), the samples
//! have the numbers `0 … n−1` for names; they are then the labels in order.

mod json;
mod table;

use std::collections::HashMap;
use std::path::Path;

use crate::input::{display_name, read_path};
use crate::text::Source;
use crate::{Error, Format, ReadOptions};

/// One state of a model, as an annealer found it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Whether each label is on, in the order of the names.
    pub state: Vec<bool>,
    /// The energy by the annealer, where it says one.
    pub energy: Option<f64>,
    /// How often it was found.
    pub occurrences: u64,
}

/// Reads samples for labels of these names, or from standard input for `-`.
///
/// # Errors
/// When the file cannot be read, is of neither form, or has not one variable for each label.
pub fn read_samples(path: &Path, names: &[String]) -> Result<Vec<Sample>, Error> {
    // As for JSON, lines may have any length: there may be many variables.
    let bytes = read_path(path, Some(Format::Json), &ReadOptions::default())?;
    parse_samples(&bytes, &display_name(path), names)
}

/// Reads samples from bytes; `name` is for messages.
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
pub fn parse_samples(bytes: &[u8], name: &str, names: &[String]) -> Result<Vec<Sample>, Error> {
    let source = Source::decode(bytes, name)?;
    if source.text.trim_start().starts_with('{') {
        json::read(&source, names)
    } else {
        table::read(&source, names)
    }
}

/// Which label each variable is. `None`: not a variable but one of `others`.
fn places(
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
    let mut places = Vec::with_capacity(variables.len());
    for variable in variables {
        if is_other(variable) {
            places.push(None);
            continue;
        }
        let found =
            if by_number { numbered(variable) } else { by_name.get(variable.as_str()).copied() };
        let Some(place) = found else {
            return Err(fault(format!(
                "the samples have a variable `{variable}`, which is no label of the model; are they \
                 of another model?"
            )));
        };
        if std::mem::replace(&mut seen[place], true) {
            return Err(fault(format!("two variables are named `{variable}`")));
        }
        places.push(Some(place));
    }
    let mut missing = names.iter().zip(&seen).filter(|(_, seen)| !**seen).map(|(name, _)| name);
    if let Some(first) = missing.next() {
        let more = match missing.count() {
            0 => String::new(),
            more => format!(", nor {more} more labels"),
        };
        return Err(fault(format!("the samples have no variable `{first}`{more}")));
    }
    Ok(places)
}

/// What −1, 0 and 1 mean: −1 and 0 are off, and one file has not both.
#[derive(Debug, Default)]
struct Values {
    off: Option<i64>,
}

impl Values {
    fn is_on(&mut self, value: i64) -> Result<bool, String> {
        match value {
            1 => Ok(true),
            0 | -1 => match self.off.replace(value) {
                Some(other) if other != value => {
                    Err(String::from("values are 0 and 1 or −1 and 1, and not both 0 and −1"))
                }
                _ => Ok(false),
            },
            _ => Err(format!("the value {value} is not 0, 1 or −1")),
        }
    }
}
