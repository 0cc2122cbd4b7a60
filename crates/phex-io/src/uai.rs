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
//! Binary variables and factors of one or two of them are read; a [`Model`] holds no more. A table
//! entry `t` costs `−ln t`, and 0 forbids its state. Evidence files (`k var value var value …`) are
//! read by [`read_uai_evidence`].

use std::path::Path;

use phex::graph::LabelId;
use phex::infer::Evidence;
use phex::model::{Model, Relation};

use crate::input::{display_name, read_path};
use crate::text::Source;
use crate::{Error, Format, ReadOptions};

/// More variables or factors than this are refused before anything is allocated for them.
const MAX_COUNT: usize = 10_000_000;

/// Reads a model; its labels are `x0`, `x1`, …
///
/// # Errors
/// When the file cannot be read, is not of this form, or has variables of more than two states or
/// factors of more than two variables.
pub fn read_uai(path: &Path) -> Result<Model, Error> {
    let (bytes, name) = read(path)?;
    parse_uai(&bytes, &name)
}

/// Reads a model from bytes; `name` is for messages.
///
/// # Errors
/// As [`read_uai`].
pub fn parse_uai(bytes: &[u8], name: &str) -> Result<Model, Error> {
    let source = Source::decode(bytes, name)?;
    let mut words = Words::new(source.text, name);
    let (kind, line) = words.next("the word MARKOV")?;
    if !kind.eq_ignore_ascii_case("MARKOV") && !kind.eq_ignore_ascii_case("BAYES") {
        return Err(words.fault(line, format!("`{kind}` is not MARKOV or BAYES")));
    }
    let line = words.line();
    let n = words.count("the number of variables")?;
    if n == 0 {
        return Err(words.fault(line, String::from("the model has no variables")));
    }
    for variable in 0..n {
        let line = words.line();
        let states = words.count("the states of a variable")?;
        if states != 2 {
            let message = format!("variable {variable} has {states} states; only 2 are supported");
            return Err(words.fault(line, message));
        }
    }
    let factors = words.count("the number of factors")?;
    let mut scopes: Vec<Vec<usize>> = Vec::new();
    for factor in 0..factors {
        let line = words.line();
        let size = words.count("the size of a factor")?;
        if size > 2 {
            let message = format!("factor {factor} has {size} variables; only pairs are supported");
            return Err(words.fault(line, message));
        }
        let mut scope = Vec::with_capacity(size);
        for _ in 0..size {
            let line = words.line();
            let variable = words.count("a variable of a factor")?;
            if variable >= n || scope.contains(&variable) {
                let message =
                    format!("factor {factor}: variable {variable} is out of range or twice");
                return Err(words.fault(line, message));
            }
            scope.push(variable);
        }
        scopes.push(scope);
    }
    let mut parts = Parts { bias: vec![0.0; n], constant: 0.0, relations: Vec::new() };
    for (factor, scope) in scopes.iter().enumerate() {
        let line = words.line();
        let size = words.count("the size of a table")?;
        if size != 1 << scope.len() {
            let message = format!(
                "the table of factor {factor} has {size} entries, not {}",
                1 << scope.len()
            );
            return Err(words.fault(line, message));
        }
        let costs: Vec<f64> = (0..size).map(|_| words.cost()).collect::<Result<_, _>>()?;
        parts.add(scope, &costs);
    }
    let names = (0..n).map(|variable| format!("x{variable}")).collect();
    Ok(Model::from_parts(names, parts.bias, parts.constant, parts.relations, Vec::new()))
}

/// Reads an evidence file for a model of `labels` variables.
///
/// # Errors
/// When the file cannot be read, or names a variable or state that does not exist.
pub fn read_uai_evidence(path: &Path, labels: usize) -> Result<Vec<Evidence>, Error> {
    let (bytes, name) = read(path)?;
    let source = Source::decode(&bytes, &name)?;
    let mut words = Words::new(source.text, &name);
    let mut evidence = vec![Evidence::Unknown; labels];
    for _ in 0..words.count("the number of observed variables")? {
        let line = words.line();
        let (variable, value) = (words.count("a variable")?, words.count("its value")?);
        let Some(slot) = evidence.get_mut(variable).filter(|_| value < 2) else {
            let message = format!("variable {variable} with value {value} does not exist");
            return Err(words.fault(line, message));
        };
        *slot = if value == 1 { Evidence::On } else { Evidence::Off };
    }
    Ok(evidence)
}

/// The bytes and the name of a file. Tables may stand on one long line.
fn read(path: &Path) -> Result<(Vec<u8>, String), Error> {
    Ok((read_path(path, Some(Format::Json), &ReadOptions::default())?, display_name(path)))
}

struct Parts {
    bias: Vec<f64>,
    constant: f64,
    relations: Vec<Relation>,
}

impl Parts {
    fn add(&mut self, scope: &[usize], costs: &[f64]) {
        let finite = costs.iter().all(|cost| cost.is_finite());
        match (scope, costs) {
            (&[], &[cost]) => self.constant -= cost,
            (&[a], &[off, on]) if finite => {
                self.constant -= off;
                self.bias[a] += off - on;
            }
            // A forbidden state of one variable: a bias cannot be infinite, a pair's cost can.
            (&[a], &[off, on]) => {
                let b = if a == 0 { self.bias.len() - 1 } else { a - 1 };
                let costs = [[off, off], [on, on]];
                let (a, b) = (LabelId::from(a), LabelId::from(b));
                self.relations.push(Relation::Pair { a, b, costs });
            }
            (&[a, b], &[c00, c01, c10, c11]) => {
                let (a, b) = (LabelId::from(a), LabelId::from(b));
                self.relations.push(Relation::Pair { a, b, costs: [[c00, c01], [c10, c11]] });
            }
            _ => {}
        }
    }
}

/// Words with their lines.
struct Words<'t> {
    rest: std::iter::Peekable<Box<dyn Iterator<Item = (usize, &'t str)> + 't>>,
    name: &'t str,
    last: usize,
}

impl<'t> Words<'t> {
    fn new(text: &'t str, name: &'t str) -> Words<'t> {
        let lines = text.lines().enumerate();
        let words: Box<dyn Iterator<Item = (usize, &'t str)>> = Box::new(
            lines.flat_map(|(at, line)| line.split_whitespace().map(move |word| (at + 1, word))),
        );
        Words { rest: words.peekable(), name, last: 1 }
    }

    fn fault(&self, line: usize, message: String) -> Error {
        Error::Syntax { path: self.name.to_owned(), line, message }
    }

    /// The line of the next word.
    fn line(&mut self) -> usize {
        self.rest.peek().map_or(self.last, |(line, _)| *line)
    }

    fn next(&mut self, what: &str) -> Result<(&'t str, usize), Error> {
        let Some((line, word)) = self.rest.next() else {
            return Err(self.fault(self.last, format!("the file ends where {what} should be")));
        };
        self.last = line;
        Ok((word, line))
    }

    fn count(&mut self, what: &str) -> Result<usize, Error> {
        let (word, line) = self.next(what)?;
        let count = word.parse().ok().filter(|&count: &usize| count <= MAX_COUNT);
        count.ok_or_else(|| {
            self.fault(line, format!("`{word}` should be {what}, a number up to {MAX_COUNT}"))
        })
    }

    fn cost(&mut self) -> Result<f64, Error> {
        let (word, line) = self.next("a table entry")?;
        match word.parse::<f64>() {
            Ok(entry) if entry >= 0.0 && entry.is_finite() => Ok(0.0 - entry.ln()),
            _ => {
                Err(self
                    .fault(line, format!("`{word}` is not a table entry: a number of 0 or more")))
            }
        }
    }
}
