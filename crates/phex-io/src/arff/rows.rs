//! The rows of an ARFF file.

use super::header::{Header, Kind};
use super::words::{Word, Words};
use crate::Error;
use crate::lines::Lines;
use crate::text::shown;

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    /// `?`.
    Missing,
    /// Zero, which a sparse row does not name.
    Zero,
    Text(&'a str),
}

/// The rows of a file that is being read.
pub(crate) struct ArffRows {
    lines: Lines,
    pub(crate) header: Header,
    words: Words,
    /// For each attribute of a sparse row the value that it names.
    sparse: Vec<Option<Word>>,
    is_sparse: bool,
}

impl ArffRows {
    /// Reads the header.
    pub(crate) fn open(mut lines: Lines) -> Result<ArffRows, Error> {
        let header = Header::read(&mut lines)?;
        let (words, sparse) = (Words::default(), Vec::new());
        Ok(ArffRows { lines, header, words, sparse, is_sparse: false })
    }

    /// The name of the file.
    pub(crate) fn path(&self) -> &str {
        self.lines.path()
    }

    /// Reads the next row; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool, Error> {
        loop {
            if !self.lines.next()? {
                return Ok(false);
            }
            let text = self.lines.text()?.trim();
            if text.is_empty() || text.starts_with('%') {
                continue;
            }
            let count = self.header.attributes.len();
            self.is_sparse = text.starts_with('{');
            let split = if self.is_sparse {
                sparse(text, count, &mut self.words, &mut self.sparse)
            } else {
                self.words.split(text).and_then(|()| match self.words.words.len() {
                    found if found == count => Ok(()),
                    found => {
                        Err(format!("the row has {found} values and there are {count} attributes"))
                    }
                })
            };
            return match split {
                Ok(()) => Ok(true),
                Err(message) => Err(self.lines.error(message)),
            };
        }
    }

    /// The value of an attribute in the row.
    pub(crate) fn value(&self, attribute: usize) -> Value<'_> {
        let word = if self.is_sparse {
            self.sparse[attribute].as_ref()
        } else {
            self.words.words.get(attribute)
        };
        match (word, &self.header.attributes[attribute].kind) {
            (Some(word), _) => match self.words.text(word) {
                "?" if !word.quoted => Value::Missing,
                text => Value::Text(text),
            },
            (None, Kind::Numeric) => Value::Zero,
            (None, Kind::Nominal(values)) => {
                values.first().map_or(Value::Missing, |value| Value::Text(value))
            }
            (None, _) => Value::Missing,
        }
    }

    /// An error in the row.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        self.lines.error(message)
    }
}

/// Reads `{index value, …}`.
fn sparse(
    text: &str,
    count: usize,
    words: &mut Words,
    values: &mut Vec<Option<Word>>,
) -> Result<(), String> {
    words.clear();
    values.clear();
    values.resize(count, None);
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let Some(inside) = inside else {
        return Err(String::from("a sparse row starts with `{` and ends with `}`"));
    };
    let mut rest = Some(inside).filter(|inside| !inside.trim().is_empty());
    while let Some(item) = rest {
        let item = item.trim_start();
        let end = item.find(|c: char| !c.is_ascii_digit()).unwrap_or(item.len());
        let index = item[..end].parse::<usize>().ok().filter(|&index| index < count);
        let Some(index) = index else {
            let item = item.split(',').next().unwrap_or_default();
            return Err(format!(
                "{} is no `number value` with the number of an attribute, from 0 to {}",
                shown(item),
                count - 1
            ));
        };
        rest = words.take(&item[end..])?;
        if values[index].is_some() {
            return Err(format!("the attribute {index} has two values"));
        }
        values[index] = words.words.last().cloned();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn rows(text: &'static str) -> Result<Vec<Vec<String>>, Error> {
        let lines = Lines::new("x.arff".into(), Box::new(Cursor::new(text)), 1000);
        let mut rows = ArffRows::open(lines)?;
        let mut all = Vec::new();
        while rows.next()? {
            let count = rows.header.attributes.len();
            all.push((0..count).map(|a| format!("{:?}", rows.value(a))).collect());
        }
        Ok(all)
    }

    #[test]
    fn rows_are_dense_or_sparse() {
        let text = "@attribute x numeric\n@attribute n {a,'b c'}\n@attribute s string\n@data\n\
                    1,'b c',?\n% c\n\n{2 'x, y', 0 ?}\n{ }\n1,a,'?'\n";
        let expected = [
            ["Text(\"1\")", "Text(\"b c\")", "Missing"],
            ["Missing", "Text(\"a\")", "Text(\"x, y\")"],
            ["Zero", "Text(\"a\")", "Missing"],
            ["Text(\"1\")", "Text(\"a\")", "Text(\"?\")"],
        ];
        assert_eq!(rows(text).unwrap(), expected);
    }

    #[test]
    fn mistakes_have_lines() {
        let cases = [
            ("@attribute x real\n@data\n1\n1,2\n", "x.arff:4: the row has 2 values"),
            ("@attribute x real\n@data\n{1 2}\n", "x.arff:3: `1 2` is no `number value`"),
            ("@attribute x real\n@data\n{0 2, 0 3}\n", "has two values"),
            ("@attribute x real\n@data\n{0 2\n", "ends with `}`"),
            ("@attribute x real\n", "ends before `@data`"),
        ];
        for (text, expected) in cases {
            let error = rows(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
