//! Matches the columns of a table to labels.
//!
//! Columns are found by their names. If the names are not those of labels, a list of names may say which label
//! each column stands for. npy files and columns of lists have no names, so their values come by position.

use std::collections::{HashMap, HashSet};

use super::{Precision, ScoreOptions};
use crate::Error;
use crate::files::text::did_you_mean;
use crate::tables::cursor::{
    BlockColumn, BlockColumns, ColumnType, NpyCursor, NumberType, RecordCursor,
};
use crate::tables::index_column::is_index;

/// What a reader needs from a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedColumns<'a> {
    /// The labels of the model, in order.
    pub(super) labels: &'a [String],
    /// The columns that are passed through as text.
    pub(super) keep: &'a [String],
    /// Whether the table holds evidence, in which labels may be missing; otherwise it holds scores.
    pub(super) evidence: bool,
    /// The labels that the columns stand for, in order.
    pub(super) names: Option<&'a [String]>,
    /// The score of each label that has no column; labels without one need a column.
    pub(super) missing: &'a [Option<f64>],
}

/// The columns of a table, and how their values become rows of the model.
#[derive(Debug)]
pub(super) struct FoundColumns {
    pub(super) block: BlockColumns,
    pub(super) precision: Precision,
    /// The label of each value of a row, if they are not the labels of the model in order.
    pub(super) order: Option<Vec<usize>>,
    /// The labels without a column, and their scores.
    pub(super) missing: Vec<(usize, f64)>,
    /// Columns that are left out because they number the rows.
    pub(super) ignored: Vec<String>,
    /// Whether values are those of the labels in order, because nothing names them.
    pub(super) by_position: bool,
}

/// The roles of the columns of a header.
#[derive(Debug, Default, PartialEq)]
struct Roles {
    columns: Vec<BlockColumn>,
    missing: Vec<(usize, f64)>,
    ignored: Vec<String>,
}

impl<'a> WantedColumns<'a> {
    /// What a reader of scores needs.
    pub(super) fn of_scores(labels: &'a [String], options: &'a ScoreOptions) -> WantedColumns<'a> {
        WantedColumns {
            labels,
            keep: &options.keep,
            evidence: false,
            names: options.names.as_deref(),
            missing: &options.missing,
        }
    }

    /// What a reader of evidence needs.
    pub(super) fn of_evidence(labels: &'a [String], keep: &'a [String]) -> WantedColumns<'a> {
        WantedColumns { labels, keep, evidence: true, names: None, missing: &[] }
    }

    /// Finds the columns in a table.
    pub(super) fn find(&self, cursor: &RecordCursor) -> Result<FoundColumns, Error> {
        match cursor {
            RecordCursor::Npy(npy) => self.of_npy(npy, cursor.path()),
            _ => self.by_name(cursor),
        }
    }

    /// An npy file has one column per label, or per name, in order.
    fn of_npy(&self, npy: &NpyCursor, path: &str) -> Result<FoundColumns, Error> {
        let wrong = |message| Err(Error::Table { path: path.to_owned(), message });
        if let Some(name) = self.keep.first() {
            return wrong(format!("npy files have no names, so no column `{name}` can be kept"));
        }
        match self.names {
            None => npy.check_shape(self.labels.len())?,
            Some(names) => match npy.check_shape(names.len()) {
                Err(Error::ColumnCount { found, .. }) => {
                    return Err(name_count(path, found, names.len()));
                }
                checked => checked?,
            },
        }
        if !self.evidence && npy.number() == NumberType::Whole {
            return wrong(String::from(
                "scores are floating-point numbers; save array.astype('float32')",
            ));
        }
        let mut found = self.by_position(path)?;
        let width = found.block.labels.len();
        found.block.columns = (0..width).map(BlockColumn::Label).collect();
        found.precision = precision([ColumnType::Number(npy.number())]);
        Ok(found)
    }

    /// Values that come by position: those of the names, or of the labels of the model.
    fn by_position(&self, path: &str) -> Result<FoundColumns, Error> {
        let order = self.names.map(|names| self.labels_of(path, names)).transpose()?;
        let missing = match &order {
            None => Vec::new(),
            Some(order) => {
                let mut has = vec![false; self.labels.len()];
                order.iter().for_each(|&label| has[label] = true);
                self.fill(path, &has)?
            }
        };
        let labels = self.names.unwrap_or(self.labels).to_vec();
        Ok(FoundColumns {
            block: BlockColumns { labels, columns: Vec::new() },
            precision: Precision::F64,
            by_position: order.is_none() && self.labels.len() > 1,
            order,
            missing,
            ignored: Vec::new(),
        })
    }

    /// The label of each name.
    fn labels_of(&self, path: &str, names: &[String]) -> Result<Vec<usize>, Error> {
        let labels = self.labels.iter().enumerate().map(|(label, name)| (name.as_str(), label));
        let known: HashMap<&str, usize> = labels.collect();
        let mut seen = HashSet::new();
        let label = |name: &String| match known.get(name.as_str()) {
            None => Err(self.unknown(path, name)),
            Some(label) if !seen.insert(*label) => {
                Err(Error::DuplicateColumn { path: path.to_owned(), column: name.clone() })
            }
            Some(&label) => Ok(label),
        };
        names.iter().map(label).collect()
    }

    fn by_name(&self, cursor: &RecordCursor) -> Result<FoundColumns, Error> {
        let (path, names) = (cursor.path(), cursor.names());
        let list_name = if self.evidence { "evidence" } else { "scores" };
        let is_list = |column: usize| {
            names[column] == list_name && matches!(cursor.column_type(column), ColumnType::Lists(_))
        };
        let lists = (0..names.len()).filter(|&column| is_list(column)).count();
        let plain: Vec<(usize, &str)> = (0..names.len())
            .filter(|&column| !is_list(column))
            .map(|column| (column, names[column].as_str()))
            .collect();
        let (mut found, roles) = match lists {
            0 => {
                let block = BlockColumns { labels: self.labels.to_vec(), columns: Vec::new() };
                let (order, precision) = (None, Precision::F64);
                let (missing, ignored) = (Vec::new(), Vec::new());
                let by_position = false;
                let found = FoundColumns { block, precision, order, missing, ignored, by_position };
                (found, self.roles(path, &plain)?)
            }
            1 => {
                let others = WantedColumns { labels: &[], evidence: true, names: None, ..*self };
                (self.by_position(path)?, others.roles(path, &plain)?)
            }
            _ => {
                let column = list_name.to_owned();
                return Err(Error::DuplicateColumn { path: path.to_owned(), column });
            }
        };
        found.missing.extend(roles.missing);
        found.ignored = roles.ignored;
        let mut roles = roles.columns.into_iter();
        let mut columns = Vec::with_capacity(names.len());
        for (column, name) in names.iter().enumerate() {
            let role = if is_list(column) { Some(BlockColumn::AllLabels) } else { roles.next() };
            let Some(role) = role else { continue };
            if let Err(expected) = self.check_type(role, cursor.column_type(column)) {
                let kind = cursor.type_name(column);
                let message = format!("the column `{name}` is of type {kind}; {expected}");
                return Err(Error::Table { path: path.to_owned(), message });
            }
            columns.push(role);
        }
        let scores = columns
            .iter()
            .enumerate()
            .filter(|(_, role)| matches!(role, BlockColumn::Label(_) | BlockColumn::AllLabels));
        found.precision = precision(scores.map(|(column, _)| cursor.column_type(column)));
        found.block.columns = columns;
        Ok(found)
    }

    /// Whether a column has a type that can be read; the error says what is expected.
    fn check_type(&self, role: BlockColumn, kind: ColumnType<'_>) -> Result<(), &'static str> {
        let number = match (role, kind) {
            (_, ColumnType::Untyped) | (BlockColumn::Ignored, _) => return Ok(()),
            (BlockColumn::Kept(_), ColumnType::Number(_) | ColumnType::Text) => return Ok(()),
            (BlockColumn::Kept(_), _) => return Err("text, numbers and booleans can be kept"),
            (BlockColumn::Label(_), ColumnType::Number(number)) => Some(number),
            (BlockColumn::AllLabels, ColumnType::Lists(number)) => number,
            _ => None,
        };
        match number {
            Some(NumberType::Single | NumberType::Double) => Ok(()),
            Some(NumberType::Whole) if self.evidence => Ok(()),
            _ if self.evidence => Err("evidence consists of booleans or numbers"),
            _ => Err("scores are floating-point numbers"),
        }
    }

    /// The role of each column of a header, given with its place in the table.
    fn roles(&self, path: &str, header: &[(usize, &str)]) -> Result<Roles, Error> {
        let labels =
            self.labels.iter().enumerate().map(|(i, name)| (name.as_str(), BlockColumn::Label(i)));
        let mut known: HashMap<&str, BlockColumn> = labels.collect();
        for (i, name) in self.keep.iter().enumerate() {
            let message = match known.insert(name, BlockColumn::Kept(i)) {
                None => continue,
                Some(BlockColumn::Kept(_)) => format!("the column `{name}` is kept twice"),
                Some(_) => {
                    format!("`{name}` is a label of the model and cannot be kept unchanged")
                }
            };
            return Err(Error::Table { path: path.to_owned(), message });
        }
        let renamed = self.renamed(path, header, &known)?;
        let mut renamed = renamed.into_iter().flatten();
        let mut has_label = vec![false; self.labels.len()];
        let mut has_kept = vec![false; self.keep.len()];
        let mut roles = Roles::default();
        for &(place, column) in header {
            let role = match known.get(column) {
                Some(&role @ BlockColumn::Kept(_)) => role,
                None if is_index(column, place) => {
                    roles.ignored.push(column.to_owned());
                    BlockColumn::Ignored
                }
                named => match (renamed.next(), named) {
                    (Some(label), _) => BlockColumn::Label(label),
                    (None, Some(&role)) => role,
                    (None, None) => return Err(self.unknown(path, column)),
                },
            };
            let seen = match role {
                BlockColumn::Label(label) => Some(&mut has_label[label]),
                BlockColumn::Kept(kept) => Some(&mut has_kept[kept]),
                BlockColumn::AllLabels | BlockColumn::Ignored => None,
            };
            if seen.is_some_and(|seen| std::mem::replace(seen, true)) {
                let (path, column) = (path.to_owned(), column.to_owned());
                return Err(Error::DuplicateColumn { path, column });
            }
            roles.columns.push(role);
        }
        let mut missing = self.keep.iter().zip(&has_kept).filter(|&(_, &has)| !has);
        if let Some((column, _)) = missing.next() {
            let (path, column) = (path.to_owned(), column.clone());
            return Err(Error::MissingColumn { path, column, count: 1 + missing.count() });
        }
        if !self.evidence {
            roles.missing = self.fill(path, &has_label)?;
        }
        Ok(roles)
    }

    /// The label of each column that is neither kept nor an index, if the names say so: not all of these columns have
    /// the name of a label.
    fn renamed(
        &self,
        path: &str,
        header: &[(usize, &str)],
        known: &HashMap<&str, BlockColumn>,
    ) -> Result<Option<Vec<usize>>, Error> {
        let Some(names) = self.names else { return Ok(None) };
        let is_score = |&&(place, column): &&(usize, &str)| match known.get(column) {
            Some(role) => !matches!(role, BlockColumn::Kept(_)),
            None => !is_index(column, place),
        };
        let columns: Vec<&str> =
            header.iter().filter(is_score).map(|&(_, column)| column).collect();
        if columns.iter().all(|column| known.contains_key(column)) {
            return Ok(None);
        }
        if columns.len() != names.len() {
            return Err(name_count(path, columns.len() as u64, names.len()));
        }
        let labels = self.labels_of(path, names)?;
        // Numbers from 0 on are the lines of the list, in whatever order the columns are.
        let numbers: Option<Vec<usize>> =
            columns.iter().map(|column| column.trim().parse().ok()).collect();
        let numbers = numbers.filter(|numbers| {
            let distinct: HashSet<_> = numbers.iter().collect();
            distinct.len() == names.len() && numbers.iter().all(|&number| number < names.len())
        });
        if let Some(numbers) = numbers {
            return Ok(Some(numbers.into_iter().map(|number| labels[number]).collect()));
        }
        for (column, &label) in columns.iter().zip(&labels) {
            if known.contains_key(column) && self.labels[label] != *column {
                let message = format!(
                    "the column `{column}` is a label, but in the list of names it is `{}`; some of the other columns \
                     are not labels",
                    self.labels[label]
                );
                return Err(Error::Table { path: path.to_owned(), message });
            }
        }
        Ok(Some(labels))
    }

    /// The scores of the labels that have no column.
    fn fill(&self, path: &str, has: &[bool]) -> Result<Vec<(usize, f64)>, Error> {
        let score = |label: usize| self.missing.get(label).copied().flatten();
        let without: Vec<usize> = (0..has.len()).filter(|&label| !has[label]).collect();
        let all = without.len() == has.len();
        let mut needed = without.iter().filter(|&&label| all || score(label).is_none());
        if let Some(&first) = needed.next() {
            let (path, column) = (path.to_owned(), self.labels[first].clone());
            return Err(Error::MissingColumn { path, column, count: 1 + needed.count() });
        }
        Ok(without.into_iter().filter_map(|label| Some((label, score(label)?))).collect())
    }

    fn unknown(&self, path: &str, column: &str) -> Error {
        let hint = did_you_mean(column, self.labels.iter().map(String::as_str));
        Error::UnknownColumn { path: path.to_owned(), column: column.to_owned(), hint }
    }
}

/// The error of a list of names that does not fit the columns.
fn name_count(path: &str, columns: u64, names: usize) -> Error {
    let message =
        format!("the table has {columns} columns of scores and the list has {names} names");
    Error::Table { path: path.to_owned(), message }
}

/// Single precision if every column has it; text is read in double precision.
fn precision<'t>(types: impl IntoIterator<Item = ColumnType<'t>>) -> Precision {
    let is_double = |kind| {
        use NumberType::Double;
        matches!(
            kind,
            ColumnType::Untyped | ColumnType::Number(Double) | ColumnType::Lists(Some(Double))
        )
    };
    if types.into_iter().any(is_double) { Precision::F64 } else { Precision::F32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn roles(labels: &[&str], options: &ScoreOptions, header: &[&str]) -> Result<Roles, String> {
        let labels = names(labels);
        let wanted = WantedColumns::of_scores(&labels, options);
        let header: Vec<(usize, &str)> = header.iter().copied().enumerate().collect();
        wanted.roles("s.csv", &header).map_err(|error| error.to_string())
    }

    fn message(labels: &[&str], keep: &[&str], header: &[&str]) -> String {
        let options = ScoreOptions { keep: names(keep), ..ScoreOptions::default() };
        roles(labels, &options, header).unwrap_err()
    }

    #[test]
    fn columns_come_in_any_order() {
        let options = ScoreOptions { keep: names(&["id"]), ..ScoreOptions::default() };
        let found = roles(&["a", "b"], &options, &["b", "id", "a"]).unwrap();
        let expected = [BlockColumn::Label(1), BlockColumn::Kept(0), BlockColumn::Label(0)];
        assert_eq!(found.columns, expected);
        let labels = names(&["a", "b"]);
        let wanted = WantedColumns::of_evidence(&labels, &[]);
        let found = wanted.roles("s.csv", &[(0, "b")]).unwrap();
        assert_eq!(found.columns, [BlockColumn::Label(1)]);
    }

    #[test]
    fn messages_name_columns() {
        assert_eq!(
            message(&["animal", "dog"], &[], &["Animal", "dog"]),
            "s.csv: the column `Animal` is not a label of the model; did you mean `animal`?"
        );
        let missing = message(&["a", "b", "c"], &[], &["b"]);
        assert_eq!(missing, "s.csv: no column is named `a`, nor another one that is needed");
        assert_eq!(message(&["a", "b"], &["x"], &["a"]), "s.csv: no column is named `x`");
        assert_eq!(message(&["a", "b"], &[], &["b"]), "s.csv: no column is named `a`");
        assert_eq!(message(&["a"], &[], &["a", "a"]), "s.csv: two columns are named `a`");
        assert!(message(&["a"], &["a"], &["a"]).contains("is a label of the model"));
        assert!(message(&["a"], &["x", "x"], &["a"]).contains("kept twice"));
        assert!(message(&["a"], &[], &["something"]).ends_with("not a label of the model"));
    }

    #[test]
    fn an_index_is_ignored_unless_it_is_a_label() {
        let none = ScoreOptions::default();
        let found = roles(&["a"], &none, &["", "a", "ID"]).unwrap();
        assert_eq!(found.ignored, ["", "ID"]);
        assert_eq!(found.columns[1], BlockColumn::Label(0));
        assert!(roles(&["a", "id"], &none, &["a", "id"]).unwrap().ignored.is_empty());
        assert!(message(&["a"], &[], &["a", ""]).contains("the column `` is not a label"));
    }

    #[test]
    fn labels_without_a_column_get_their_score() {
        let missing = vec![Some(0.0), None, Some(2.0)];
        let options = ScoreOptions { missing, ..ScoreOptions::default() };
        assert_eq!(
            roles(&["a", "b", "c"], &options, &["b"]).unwrap().missing,
            [(0, 0.0), (2, 2.0)]
        );
        let error = roles(&["a", "b", "c"], &options, &["a"]).unwrap_err();
        assert_eq!(error, "s.csv: no column is named `b`");
        let options = ScoreOptions { missing: vec![Some(0.0); 2], ..ScoreOptions::default() };
        let error = roles(&["a", "b"], &options, &["id"]).unwrap_err();
        assert!(error.contains("no column is named `a`"), "{error}");
    }

    #[test]
    fn a_list_names_columns() {
        let options = ScoreOptions { names: Some(names(&["c", "a"])), ..ScoreOptions::default() };
        let labels =
            |header: &[&str]| roles(&["a", "c"], &options, header).map(|roles| roles.columns);
        let (a, c) = (BlockColumn::Label(0), BlockColumn::Label(1));
        assert_eq!(labels(&["x", "y"]).unwrap(), [c, a]);
        assert_eq!(labels(&["1", "0"]).unwrap(), [a, c], "numbers of lines");
        assert_eq!(labels(&["", "0", "1"]).unwrap(), [BlockColumn::Ignored, c, a]);
        // Names of labels are better than a list.
        assert_eq!(labels(&["a", "c"]).unwrap(), [a, c]);
        assert!(labels(&["a", "y"]).unwrap_err().contains("the column `a` is a label"));
        assert!(labels(&["x"]).unwrap_err().contains("1 columns of scores and the list has 2"));
        let twice = ScoreOptions { names: Some(names(&["a", "a"])), ..ScoreOptions::default() };
        assert!(roles(&["a", "c"], &twice, &["x", "y"]).unwrap_err().contains("two columns"));
    }
}
