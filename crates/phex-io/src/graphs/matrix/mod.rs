//! Files of class × attribute matrices: which class has which attribute, or how certainly.
//!
//! ```csv
//! class,furry,swims
//! dolphin,0,1
//! otter,1,1
//! ```
//!
//! A table with commas or tabs has the attributes in its header and the class in its first column. A
//! matrix of bare numbers, separated by spaces, takes its names from two other files, which hold one
//! name per line after an optional number.
//!
//! *Binary* matrices contain 0 and 1 only: 1 makes the attribute a parent of the class, 0 makes them
//! exclude each other. Both relations are hard unless a scale is given. *Graded* matrices contain
//! values from 0 to 1, or from 0 to 100 if any value is above 1; their default scale is `u = 1`.
//! [`relations`] says how a value becomes relations. Negative values and empty cells mean that
//! nothing is known.

use std::collections::HashMap;

use phex::graph::Strength;

mod relations;

use super::sink::GraphSink;
use crate::Error;
use crate::files::csv::CsvRecords;
use crate::files::text::{SourceText, shown};

use relations::declare_class;
pub use relations::{ClassMatrix, cell_strengths};

/// How the entries of a file become relations.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatrixOptions {
    pub(super) scale: Option<Strength>,
    pub(super) one_of_classes: bool,
}

/// A class: its line, its name and its values.
struct ClassRow {
    line: usize,
    name: String,
    values: Vec<Option<f64>>,
}

/// The names in a file: the last word of each line, after an optional number.
pub(super) fn names(source: &SourceText<'_>) -> Vec<String> {
    source
        .lines()
        .filter_map(|(_, text)| text.split_whitespace().last())
        .map(str::to_owned)
        .collect()
}

pub(super) fn read(
    source: &SourceText<'_>,
    rows: Option<Vec<String>>,
    columns: Option<Vec<String>>,
    options: MatrixOptions,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let (attributes, rows) = match (rows, columns) {
        (Some(rows), Some(columns)) => read_numbers(source, rows, columns)?,
        (None, None) => read_table(source)?,
        _ => {
            let message = "a matrix of bare numbers needs the names of both its rows (classes) and \
                           its columns (attributes)";
            return Err(source.error(1, message));
        }
    };
    let top = rows.iter().flat_map(|row| &row.values).flatten().fold(0.0f64, |a, &b| a.max(b));
    let binary = rows.iter().flat_map(|row| &row.values).flatten().all(|&c| c == 0.0 || c == 1.0);
    let range = if top > 1.0 { 100.0 } else { 1.0 };
    let scale = options.scale.unwrap_or(if binary { Strength::Hard } else { Strength::U(1.0) });
    if scale.is_hard() && !binary {
        let message = "a graded matrix needs a soft scale such as u=1, because its values say how \
                       certain each entry is";
        return Err(source.error(1, message));
    }
    declare(source, &attributes, &rows, sink)?;
    for row in &rows {
        if let Some(value) = row.values.iter().flatten().find(|&&value| value > range) {
            let message = format!("{value} is above 100; values are 0 to 1 or 0 to 100");
            return Err(source.error(row.line, message));
        }
        let certainties: Vec<Option<f64>> =
            row.values.iter().map(|value| value.map(|value| value / range)).collect();
        declare_class(sink.at(row.line)?, &row.name, &attributes, &certainties, scale);
    }
    if options.one_of_classes {
        let classes = rows.iter().map(|row| row.name.as_str());
        sink.at(1)?.one_of("class", classes, None);
    }
    Ok(())
}

/// Declares the classes, then the attributes.
fn declare(
    source: &SourceText<'_>,
    attributes: &[String],
    rows: &[ClassRow],
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let classes: HashMap<&str, usize> =
        rows.iter().map(|row| (row.name.as_str(), row.line)).collect();
    if let Some(name) = attributes.iter().find(|name| classes.contains_key(name.as_str())) {
        let line = classes[name.as_str()];
        let message = format!("{} is a class and an attribute; rename one of them", shown(name));
        return Err(source.error(line, message));
    }
    for row in rows {
        sink.label(row.line, &row.name, None)?;
    }
    for attribute in attributes {
        sink.label(1, attribute, None)?;
    }
    Ok(())
}

fn read_table(source: &SourceText<'_>) -> Result<(Vec<String>, Vec<ClassRow>), Error> {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let delimiter = if first.contains('\t') { b'\t' } else { b',' };
    let mut records = CsvRecords::of_text(source, delimiter)?;
    if !records.next()? {
        return Err(source.error(1, "the matrix is empty"));
    }
    let header = records.cells();
    let attributes: Vec<String> =
        header.iter().skip(1).map(|cell| cell.trim().to_owned()).collect();
    let numbers = header.iter().flat_map(str::split_whitespace).all(|f| f.parse::<f64>().is_ok());
    if attributes.is_empty() || numbers {
        let message = "a matrix starts with a header, which names the attributes after the first \
                       cell; for bare numbers give the names in files, as `rows` and `columns`";
        return Err(records.error(message));
    }
    let mut rows = Vec::new();
    while records.next()? {
        let (line, cells) = (records.line(), records.cells());
        let name = cells.get(0).unwrap_or_default().trim().to_owned();
        if name.is_empty() {
            return Err(source.error(line, "the cell for the class is empty"));
        }
        let values = values(source, line, cells.iter().skip(1), attributes.len())?;
        rows.push(ClassRow { line, name, values });
    }
    Ok((attributes, rows))
}

fn read_numbers(
    source: &SourceText<'_>,
    names: Vec<String>,
    attributes: Vec<String>,
) -> Result<(Vec<String>, Vec<ClassRow>), Error> {
    let mut rows = Vec::new();
    let (count, mut names, mut last) = (names.len(), names.into_iter(), 1);
    for (line, text) in source.lines().filter(|(_, text)| !text.trim().is_empty()) {
        let Some(name) = names.next() else {
            let message = format!("the matrix has more rows than the {count} names given for them");
            return Err(source.error(line, message));
        };
        let values = values(source, line, text.split_whitespace(), attributes.len())?;
        rows.push(ClassRow { line, name, values });
        last = line;
    }
    if rows.len() < count {
        let message = format!("the matrix ends after {} rows; {count} names are given", rows.len());
        return Err(source.error(last, message));
    }
    Ok((attributes, rows))
}

fn values<'a>(
    source: &SourceText<'_>,
    line: usize,
    cells: impl Iterator<Item = &'a str>,
    count: usize,
) -> Result<Vec<Option<f64>>, Error> {
    let value = |cell: &str| {
        if cell.trim().is_empty() {
            return Ok(None);
        }
        match cell.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => Ok((value >= 0.0).then_some(value)),
            _ => Err(source.error(line, format!("{} is not a number", shown(cell)))),
        }
    };
    let values: Vec<Option<f64>> = cells.map(value).collect::<Result<_, Error>>()?;
    if values.len() != count {
        let message = format!("the row has {} values for {count} attributes", values.len());
        return Err(source.error(line, message));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use phex::graph::RelationGraph;

    fn read_with(text: &str, scale: Option<Strength>) -> Result<RelationGraph, Error> {
        let mut sink = GraphSink::new(&Limits::default());
        let source = SourceText { name: "m.csv", text };
        sink.source("m.csv");
        let options = MatrixOptions { scale, one_of_classes: true };
        let names = |text: &str| Some(names(&SourceText { name: "names.txt", text }));
        let bare = !text.contains(',');
        let rows = bare.then(|| names("  1\tdolphin\n  2\totter\n")).flatten();
        let columns = bare.then(|| names("furry\nswims\n")).flatten();
        read(&source, rows, columns, options, &mut sink)?;
        Ok(sink.finish(1)?.build().unwrap())
    }

    #[test]
    fn binary_matrices_are_hard() {
        for text in ["class,furry,swims\ndolphin,0,1\notter,1,1\n", "0 1\n1 1\n"] {
            let graph = read_with(text, None).unwrap();
            let names: Vec<_> = graph.labels().iter().map(|label| label.name.as_str()).collect();
            assert_eq!(names, ["dolphin", "otter", "furry", "swims"]);
            assert_eq!((graph.hierarchy().len(), graph.exclusions().len()), (3, 1));
            assert!(graph.is_hard());
            assert_eq!(graph.name(graph.hierarchy()[0].parent), "swims");
            assert_eq!(graph.one_of()[0].labels.len(), 2);
        }
        assert!(!read_with("0 1\n1 1\n", Some(Strength::W(3.0))).unwrap().is_hard());
    }

    #[test]
    fn graded_matrices_share_out_the_scale() {
        let graph = read_with("25 100\n-1 0\n", Some(Strength::W(4.0))).unwrap();
        let costs: Vec<f64> = graph.strengths().map(Strength::cost).collect();
        assert_eq!(costs, [1.0, 4.0, 3.0, 4.0]);
        let graph = read_with("0.25 1\n0 0\n", None).unwrap();
        assert_eq!(graph.hierarchy()[0].strength, Strength::U(0.25));
    }

    #[test]
    fn mistakes_have_their_line() {
        let cases = [
            ("class,a\nx,1\ny\n", 3, "0 values for 1"),
            ("class,a\nx,yes\n", 2, "`yes` is not a number"),
            ("class,a\na,1\n", 2, "is a class and an attribute"),
            ("class,a\nx,101\n", 2, "above 100"),
            ("1,0\n0,1\n", 1, "starts with a header"),
            ("0 1\n", 1, "ends after 1 rows"),
            ("0 1\n0 1\n0 1\n", 3, "more rows than"),
        ];
        for (text, line, part) in cases {
            let error = read_with(text, None).unwrap_err();
            assert_eq!(error.line(), Some(line), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        assert!(read_with("50 1\n1 1\n", Some(Strength::Hard)).is_err());
    }
}
