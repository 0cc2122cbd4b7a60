//! The words of a UAI file with their lines.

use crate::Error;

/// The largest count of variables, states or factors: memory is allocated for no more.
const MAX_COUNT: usize = 10_000_000;

/// Reads the words of a file one after another.
pub(super) struct UaiWords<'t> {
    rest: std::iter::Peekable<Box<dyn Iterator<Item = (usize, &'t str)> + 't>>,
    name: &'t str,
    last: usize,
}

impl<'t> UaiWords<'t> {
    pub(super) fn new(text: &'t str, name: &'t str) -> UaiWords<'t> {
        let lines = text.lines().enumerate();
        let words: Box<dyn Iterator<Item = (usize, &'t str)>> = Box::new(
            lines.flat_map(|(at, line)| line.split_whitespace().map(move |word| (at + 1, word))),
        );
        UaiWords { rest: words.peekable(), name, last: 1 }
    }

    pub(super) fn fault(&self, line: usize, message: String) -> Error {
        Error::Syntax { path: self.name.to_owned(), line, message }
    }

    /// The line of the last word that was read.
    pub(super) fn last_line(&self) -> usize {
        self.last
    }

    /// The line of the next word.
    pub(super) fn line(&mut self) -> usize {
        self.rest.peek().map_or(self.last, |(line, _)| *line)
    }

    pub(super) fn next(&mut self, what: &str) -> Result<(&'t str, usize), Error> {
        let Some((line, word)) = self.rest.next() else {
            return Err(self.fault(self.last, format!("the file ends where {what} should be")));
        };
        self.last = line;
        Ok((word, line))
    }

    pub(super) fn count(&mut self, what: &str) -> Result<usize, Error> {
        let (word, line) = self.next(what)?;
        let count = word.parse().ok().filter(|&count: &usize| count <= MAX_COUNT);
        count.ok_or_else(|| {
            self.fault(line, format!("`{word}` should be {what}, a number up to {MAX_COUNT}"))
        })
    }

    pub(super) fn number(&mut self, what: &str) -> Result<f64, Error> {
        let (word, line) = self.next(what)?;
        let number = word.parse().ok().filter(|number: &f64| !number.is_nan());
        number.ok_or_else(|| self.fault(line, format!("`{word}` should be {what}")))
    }

    /// Minus the logarithm of a table entry.
    pub(super) fn cost(&mut self) -> Result<f64, Error> {
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
