//! The data of an ARFF file.

use super::super::{ColumnType, NumberType, RecordCell};
use super::header::{ArffHeader, AttributeType};
use super::words::{ArffWord, ArffWords};
use crate::Error;
use crate::error::RecordNumber;
use crate::files::lines::LineReader;
use crate::files::text::shown;

/// An ARFF file that is being read.
pub(in crate::tables) struct ArffCursor {
    lines: LineReader,
    header: ArffHeader,
    names: Vec<String>,
    words: ArffWords,
    /// For each attribute, the value that a sparse row gives it.
    sparse: Vec<Option<ArffWord>>,
    is_sparse: bool,
}

impl ArffCursor {
    /// Reads the header.
    pub(in super::super) fn open(mut lines: LineReader) -> Result<ArffCursor, Error> {
        let header = ArffHeader::read(&mut lines)?;
        let names = header.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        let (words, sparse) = (ArffWords::default(), Vec::new());
        Ok(ArffCursor { lines, header, names, words, sparse, is_sparse: false })
    }

    pub(in super::super) fn path(&self) -> &str {
        self.lines.path()
    }

    pub(in super::super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(in super::super) fn column_type(&self, column: usize) -> ColumnType<'_> {
        match &self.header.attributes[column].kind {
            AttributeType::Numeric => ColumnType::Number(NumberType::Double),
            AttributeType::Nominal(values) => ColumnType::Nominal(values),
            AttributeType::Hierarchical(hierarchy) => ColumnType::Hierarchical(hierarchy),
            AttributeType::Text | AttributeType::Date => ColumnType::Other,
        }
    }

    pub(in super::super) fn type_name(&self, column: usize) -> &'static str {
        match &self.header.attributes[column].kind {
            AttributeType::Numeric => "numeric",
            AttributeType::Nominal(_) => "nominal",
            AttributeType::Hierarchical(_) => "hierarchical",
            AttributeType::Text => "string",
            AttributeType::Date => "date",
        }
    }

    /// Reads the next row; false at the end.
    pub(in super::super) fn next(&mut self) -> Result<bool, Error> {
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

    /// The value of an attribute. A sparse row leaves out zeros and first values.
    pub(in super::super) fn cell(&self, attribute: usize) -> RecordCell<'_> {
        let word = if self.is_sparse {
            self.sparse[attribute].as_ref()
        } else {
            self.words.words.get(attribute)
        };
        match (word, &self.header.attributes[attribute].kind) {
            (Some(word), _) => match self.words.text(word) {
                "?" if !word.quoted => RecordCell::Missing,
                text => RecordCell::Text(text),
            },
            (None, AttributeType::Numeric) => RecordCell::Number(0.0),
            (None, AttributeType::Nominal(values)) => {
                values.first().map_or(RecordCell::Missing, |value| RecordCell::Text(value))
            }
            (None, _) => RecordCell::Missing,
        }
    }

    pub(in super::super) fn record(&self) -> RecordNumber {
        RecordNumber::Line(self.lines.line())
    }
}

/// Reads `{index value, …}`.
fn sparse(
    text: &str,
    count: usize,
    words: &mut ArffWords,
    values: &mut Vec<Option<ArffWord>>,
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
                "{} is not a `number value` with the number of an attribute, from 0 to {}",
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
        let lines = LineReader::new("x.arff".into(), Box::new(Cursor::new(text)), 1000);
        let mut rows = ArffCursor::open(lines)?;
        let mut all = Vec::new();
        while rows.next()? {
            let count = rows.header.attributes.len();
            all.push((0..count).map(|a| format!("{:?}", rows.cell(a))).collect());
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
            ["Number(0.0)", "Text(\"a\")", "Missing"],
            ["Text(\"1\")", "Text(\"a\")", "Text(\"?\")"],
        ];
        assert_eq!(rows(text).unwrap(), expected);
    }

    #[test]
    fn mistakes_have_lines() {
        let cases = [
            ("@attribute x real\n@data\n1\n1,2\n", "x.arff:4: the row has 2 values"),
            ("@attribute x real\n@data\n{1 2}\n", "x.arff:3: `1 2` is not a `number value`"),
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
