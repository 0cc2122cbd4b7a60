//! Files of reference answers of the UAI competitions.

use std::path::Path;

use super::words::UaiWords;
use crate::Error;
use crate::files::input::read_model;
use crate::files::text::SourceText;

/// Reads a `.MAR` file: the probability of each state of each variable.
///
/// # Errors
/// When the file cannot be read or does not have this format.
pub fn read_uai_marginals(path: &Path) -> Result<Vec<Vec<f64>>, Error> {
    let (bytes, name) = read_model(path)?;
    let source = SourceText::decode(&bytes, &name)?;
    let mut words = start(source.text, &name, "MAR")?;
    let n = words.count("the number of variables")?;
    let mut variables = Vec::new();
    for _ in 0..n {
        let states = words.count("the states of a variable")?;
        let number = |_| words.number("a probability");
        variables.push((0..states).map(number).collect::<Result<Vec<f64>, Error>>()?);
    }
    Ok(variables)
}

/// Reads a `.PR` file: the logarithm of the partition function, to base 10.
///
/// # Errors
/// When the file cannot be read or does not have this format.
pub fn read_uai_partition(path: &Path) -> Result<f64, Error> {
    let (bytes, name) = read_model(path)?;
    let source = SourceText::decode(&bytes, &name)?;
    start(source.text, &name, "PR")?.number("the logarithm of the partition function")
}

fn start<'t>(text: &'t str, name: &'t str, kind: &str) -> Result<UaiWords<'t>, Error> {
    let mut words = UaiWords::new(text, name);
    let (word, line) = words.next(&format!("the word {kind}"))?;
    if word != kind {
        return Err(words.fault(line, format!("`{word}` is not {kind}")));
    }
    Ok(words)
}
