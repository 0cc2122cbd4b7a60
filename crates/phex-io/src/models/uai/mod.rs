//! Models of the UAI inference competitions.
//!
//! ```text
//! MARKOV
//! 2            variables
//! 2 2          states of each
//! 2            factors
//! 1 0          their variables
//! 2 0 1
//! 2  0.4 0.6   their tables, last variable fastest
//! 4  1 2 3 4
//! ```
//!
//! A variable of two states becomes a label; one of more states becomes a one-of group with one label
//! per state. A factor of three or more variables becomes a group of its own (`build` explains why
//! that is exact). A table entry `t` costs `−ln t`, and 0 forbids its state.
//!
//! The format has no names. After the tables, where other readers stop, phex writes lines such as
//! `c phex name 0 "dog"`.

mod answers;
mod build;
mod words;
mod write;

use std::path::Path;

use phex::graph::LabelId;
use phex::infer::Evidence;
use phex::model::Model;

use crate::Error;
use crate::files::input::read_model;
use crate::files::text::SourceText;
use crate::models::notes::FileNotes;

pub use answers::{read_uai_marginals, read_uai_partition};
use build::{UaiFactor, UaiNetwork};
use words::UaiWords;
pub use write::{uai_to_string, write_uai};

/// The most entries in the table of a factor of three or more variables.
const MAX_TABLE: usize = 4096;

/// A model, and the labels that stand for the variables of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct UaiModel {
    /// The model: first the labels of the variables, in order, then those of large factors.
    pub model: Model,
    /// For each variable, the meaning of each of its states.
    pub variables: Vec<Vec<UaiState>>,
}

/// The meaning of a state of a variable in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UaiState {
    /// The label is on.
    On(LabelId),
    /// The label is off.
    Off(LabelId),
    /// The only state of its variable.
    Always,
    /// A state that a table forbids.
    Never,
}

impl UaiModel {
    /// The probability of each state of each variable, from the marginals of the labels.
    ///
    /// # Panics
    /// When there is not one marginal per label.
    pub fn marginals(&self, labels: &[f64]) -> Vec<Vec<f64>> {
        assert_eq!(labels.len(), self.model.len(), "one marginal per label");
        let probability = |state: &UaiState| match state {
            UaiState::On(label) => labels[label.index()],
            UaiState::Off(label) => 1.0 - labels[label.index()],
            UaiState::Always => 1.0,
            UaiState::Never => 0.0,
        };
        self.variables.iter().map(|states| states.iter().map(probability).collect()).collect()
    }

    /// Reads an evidence file as evidence of each label.
    ///
    /// # Errors
    /// When the file cannot be read, or names a variable or state that does not exist.
    pub fn read_evidence(&self, path: &Path) -> Result<Vec<Evidence>, Error> {
        let mut evidence = vec![Evidence::Unknown; self.model.len()];
        let states = |variable: usize| self.variables.get(variable).map_or(0, Vec::len);
        for (variable, value) in observations(path, states)? {
            // The other states of a group are off; if the observed state is forbidden, all are.
            for (at, state) in self.variables[variable].iter().enumerate() {
                match *state {
                    UaiState::On(label) => evidence[label.index()] = Evidence::known(at == value),
                    UaiState::Off(_) | UaiState::Always | UaiState::Never => {}
                }
            }
        }
        Ok(evidence)
    }
}

/// Reads a model; [`UaiModel`] says what its labels stand for.
///
/// # Errors
/// When the file cannot be read or does not have this format, when no state is possible, or when a
/// factor of three or more variables has more than 4096 entries.
pub fn read_uai(path: &Path) -> Result<Model, Error> {
    Ok(read_uai_model(path)?.model)
}

/// Reads a model from bytes; messages call the file `name`.
///
/// # Errors
/// As [`read_uai`].
pub fn parse_uai(bytes: &[u8], name: &str) -> Result<Model, Error> {
    Ok(parse_uai_model(bytes, name)?.model)
}

/// Reads a model with the meaning of its variables. Labels are named `x0`, `x1`, …, those of a
/// variable of more than two states `x2=0`, `x2=1`, …, and those of a large factor by the states
/// of its variables: `f7=0.1.1`.
///
/// # Errors
/// As [`read_uai`].
pub fn read_uai_model(path: &Path) -> Result<UaiModel, Error> {
    let (bytes, name) = read_model(path)?;
    parse_uai_model(&bytes, &name)
}

/// As [`read_uai_model`], from bytes; `name` is for messages.
///
/// # Errors
/// As [`read_uai`].
pub fn parse_uai_model(bytes: &[u8], name: &str) -> Result<UaiModel, Error> {
    let source = SourceText::decode(bytes, name)?;
    let mut words = UaiWords::new(source.text, name);
    let (kind, line) = words.next("the word MARKOV")?;
    if !kind.eq_ignore_ascii_case("MARKOV") && !kind.eq_ignore_ascii_case("BAYES") {
        return Err(words.fault(line, format!("`{kind}` is not MARKOV or BAYES")));
    }
    let line = words.line();
    let n = words.count("the number of variables")?;
    if n == 0 {
        return Err(words.fault(line, String::from("the model has no variables")));
    }
    let mut network = UaiNetwork::default();
    for variable in 0..n {
        let line = words.line();
        let states = words.count("the states of a variable")?;
        network.variable(states).map_err(|message| {
            words.fault(line, format!("variable {variable} has {states} states: {message}"))
        })?;
    }
    read_factors(&mut words, &mut network)?;
    let mut notes = FileNotes::default();
    for (line, text) in source.lines().skip(words.last_line()) {
        if let Some(comment) = text.strip_prefix("c ") {
            notes.take(comment).map_err(|message| source.error(line, message))?;
        }
    }
    network.build(notes).map_err(|(line, message)| source.error(line, message))
}

fn read_factors(words: &mut UaiWords<'_>, network: &mut UaiNetwork) -> Result<(), Error> {
    let n = network.states.len();
    let mut scopes: Vec<Vec<usize>> = Vec::new();
    for factor in 0..words.count("the number of factors")? {
        let size = words.count("the size of a factor")?;
        let mut scope: Vec<usize> = Vec::new();
        for _ in 0..size {
            let line = words.line();
            let variable = words.count("a variable of a factor")?;
            // A scope longer than the largest table is refused here: searching it would be slow.
            if variable >= n || scope.len() >= MAX_TABLE || scope.contains(&variable) {
                let message =
                    format!("factor {factor}: variable {variable} is out of range or twice");
                return Err(words.fault(line, message));
            }
            scope.push(variable);
        }
        scopes.push(scope);
    }
    for (factor, scope) in scopes.into_iter().enumerate() {
        let line = words.line();
        let size = words.count("the size of a table")?;
        let product = |sum: usize, &variable: &usize| sum.checked_mul(network.states[variable]);
        let expected = scope.iter().try_fold(1, product);
        if expected != Some(size) {
            let expected = expected.map_or(String::from("more"), |count| count.to_string());
            let message =
                format!("the table of factor {factor} has {size} entries, not {expected}");
            return Err(words.fault(line, message));
        }
        let several = scope.iter().filter(|&&variable| network.states[variable] > 1).count();
        if several > 2 && size > MAX_TABLE {
            let message = format!(
                "the table of factor {factor} has {size} entries; of three or more variables at \
                 most {MAX_TABLE} are supported"
            );
            return Err(words.fault(line, message));
        }
        let costs: Vec<f64> = (0..size).map(|_| words.cost()).collect::<Result<_, _>>()?;
        if costs.iter().all(|&cost| cost == f64::INFINITY) {
            let message =
                format!("the table of factor {factor} is all zeros: no state is possible");
            return Err(words.fault(line, message));
        }
        network.factors.push(UaiFactor { number: factor, line, scope, costs });
    }
    Ok(())
}

/// Reads an evidence file for a model of `labels` binary variables; [`UaiModel::read_evidence`]
/// handles all models.
///
/// # Errors
/// When the file cannot be read, or names a variable or state that does not exist.
pub fn read_uai_evidence(path: &Path, labels: usize) -> Result<Vec<Evidence>, Error> {
    let mut evidence = vec![Evidence::Unknown; labels];
    for (variable, value) in observations(path, |variable| if variable < labels { 2 } else { 0 })? {
        evidence[variable] = Evidence::known(value == 1);
    }
    Ok(evidence)
}

/// The observed variables and their values; `states` gives the number of states of a variable.
fn observations(
    path: &Path,
    states: impl Fn(usize) -> usize,
) -> Result<Vec<(usize, usize)>, Error> {
    let (bytes, name) = read_model(path)?;
    let source = SourceText::decode(&bytes, &name)?;
    let mut words = UaiWords::new(source.text, &name);
    let mut found = Vec::new();
    for _ in 0..words.count("the number of observed variables")? {
        let line = words.line();
        let (variable, value) = (words.count("a variable")?, words.count("its value")?);
        if value >= states(variable) {
            let message = format!("variable {variable} with value {value} does not exist");
            return Err(words.fault(line, message));
        }
        found.push((variable, value));
    }
    Ok(found)
}
