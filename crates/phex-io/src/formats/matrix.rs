//! Class by attribute matrices: which class has which attribute, or how surely.
//!
//! ```csv
//! class,furry,swims
//! dolphin,0,1
//! otter,1,1
//! ```
//!
//! A table with commas or tabs has the attributes in its header and the class in its first column. A
//! matrix of numbers alone, separated by spaces, takes the names from two other files, one name a
//! line after an optional number.
//!
//! *Binary* matrices have 0 and 1 only. 1 makes the attribute a parent of the class (the class on
//! with the attribute off is a violation), 0 makes them exclude each other. Both are hard unless a
//! scale is given.
//!
//! *Graded* matrices have values from 0 to 1, or from 0 to 100 where any is above 1. A value `c`,
//! in 0 to 1, gives with the scale `w` (default `u = 1`)
//!
//! ```text
//! hierarchy(attribute, class)  of cost  w · c
//! exclusion(class, attribute)  of cost  w · (1 − c)
//! ```
//!
//! and a relation of cost 0 is left out: what is surely so costs `w` to deny. For a binary matrix
//! the two rules are one.
//!
//! Negative values and empty cells are missing: no relation.

use std::collections::HashMap;

use phex::graph::Strength;

use super::table::Table;
use crate::Error;
use crate::sink::Sink;
use crate::text::{Source, shown};

/// How entries become relations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) scale: Option<Strength>,
    pub(crate) one_of_classes: bool,
}

/// A class: its line, its name and its values, where they are known.
struct Row {
    line: usize,
    name: String,
    values: Vec<Option<f64>>,
}

/// The names in a file: the last field of each line, so that a number may come first.
pub(crate) fn names(source: &Source<'_>) -> Vec<String> {
    source
        .lines()
        .filter_map(|(_, text)| text.split_whitespace().last())
        .map(str::to_owned)
        .collect()
}

pub(crate) fn read(
    source: &Source<'_>,
    rows: Option<Vec<String>>,
    columns: Option<Vec<String>>,
    settings: Settings,
    sink: &mut Sink,
) -> Result<(), Error> {
    let (attributes, rows) = match (rows, columns) {
        (Some(rows), Some(columns)) => read_numbers(source, rows, columns)?,
        (None, None) => read_table(source)?,
        _ => {
            let message = "a matrix without names needs both, those of the rows (classes) and those \
                           of the columns (attributes)";
            return Err(source.error(1, message));
        }
    };
    let top = rows.iter().flat_map(|row| &row.values).flatten().fold(0.0f64, |a, &b| a.max(b));
    let binary = rows.iter().flat_map(|row| &row.values).flatten().all(|&c| c == 0.0 || c == 1.0);
    let range = if top > 1.0 { 100.0 } else { 1.0 };
    let scale = settings.scale.unwrap_or(if binary { Strength::Hard } else { Strength::U(1.0) });
    if scale.is_hard() && !binary {
        let message = "a graded matrix needs a soft scale such as u=1: its values say how sure \
                       each entry is";
        return Err(source.error(1, message));
    }
    declare(source, &attributes, &rows, sink)?;
    for row in &rows {
        for (attribute, value) in attributes.iter().zip(&row.values) {
            let Some(value) = value else { continue };
            let sure = value / range;
            if sure > 1.0 {
                let message = format!("{value} is above 100; values are 0 to 1 or 0 to 100");
                return Err(source.error(row.line, message));
            }
            let builder = sink.at(row.line)?;
            if let Some(strength) = scaled(scale, sure) {
                builder.hierarchy(attribute, &row.name, Some(strength));
            }
            if let Some(strength) = scaled(scale, 1.0 - sure) {
                builder.exclusion(&row.name, attribute, Some(strength));
            }
        }
    }
    if settings.one_of_classes {
        let classes = rows.iter().map(|row| row.name.as_str());
        sink.at(1)?.one_of("class", classes, None);
    }
    Ok(())
}

/// A strength of a part of the cost, in the same unit; none for no cost.
fn scaled(scale: Strength, part: f64) -> Option<Strength> {
    let strength = match scale {
        _ if part == 0.0 => return None,
        Strength::Hard => Strength::Hard,
        Strength::Q(q) => Strength::Q(q.powf(part)),
        Strength::U(u) => Strength::U(u * part),
        Strength::W(w) => Strength::W(w * part),
    };
    (strength.cost() != 0.0).then_some(strength)
}

/// Declares classes, then attributes: the order of the columns of a score table.
fn declare(
    source: &Source<'_>,
    attributes: &[String],
    rows: &[Row],
    sink: &mut Sink,
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

fn read_table(source: &Source<'_>) -> Result<(Vec<String>, Vec<Row>), Error> {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let delimiter = if first.contains('\t') { b'\t' } else { b',' };
    let mut table = Table::new(source, delimiter);
    let Some((line, header)) = table.next_row()? else {
        return Err(source.error(1, "the matrix is empty"));
    };
    let attributes: Vec<String> =
        header.iter().skip(1).map(|cell| cell.trim().to_owned()).collect();
    let numbers = header.iter().flat_map(str::split_whitespace).all(|f| f.parse::<f64>().is_ok());
    if attributes.is_empty() || numbers {
        let message = "a matrix starts with a header, the attributes after the first cell; for \
                       numbers alone give the names in files, as `rows` and `columns`";
        return Err(source.error(line, message));
    }
    let mut rows = Vec::new();
    while let Some((line, cells)) = table.next_row()? {
        let name = cells.get(0).unwrap_or_default().trim().to_owned();
        if name.is_empty() {
            return Err(source.error(line, "the cell for the class is empty"));
        }
        let values = values(source, line, cells.iter().skip(1), attributes.len())?;
        rows.push(Row { line, name, values });
    }
    Ok((attributes, rows))
}

fn read_numbers(
    source: &Source<'_>,
    names: Vec<String>,
    attributes: Vec<String>,
) -> Result<(Vec<String>, Vec<Row>), Error> {
    let mut rows = Vec::new();
    let (count, mut names, mut last) = (names.len(), names.into_iter(), 1);
    for (line, text) in source.lines().filter(|(_, text)| !text.trim().is_empty()) {
        let Some(name) = names.next() else {
            let message = format!("the matrix has more rows than the {count} names given for them");
            return Err(source.error(line, message));
        };
        let values = values(source, line, text.split_whitespace(), attributes.len())?;
        rows.push(Row { line, name, values });
        last = line;
    }
    if rows.len() < count {
        let message = format!("the matrix ends after {} rows; {count} names are given", rows.len());
        return Err(source.error(last, message));
    }
    Ok((attributes, rows))
}

fn values<'a>(
    source: &Source<'_>,
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
    use crate::ReadOptions;
    use phex::graph::RelationGraph;

    fn read_with(text: &str, scale: Option<Strength>) -> Result<RelationGraph, Error> {
        let mut sink = Sink::new(&ReadOptions::default());
        let source = Source { name: "m.csv", text };
        sink.source("m.csv");
        let settings = Settings { scale, one_of_classes: true };
        let names = |text: &str| Some(names(&Source { name: "names.txt", text }));
        let bare = !text.contains(',');
        let rows = bare.then(|| names("  1\tdolphin\n  2\totter\n")).flatten();
        let columns = bare.then(|| names("furry\nswims\n")).flatten();
        read(&source, rows, columns, settings, &mut sink)?;
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
        assert_eq!(scaled(Strength::Q(0.25), 0.5), Some(Strength::Q(0.5)));
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
