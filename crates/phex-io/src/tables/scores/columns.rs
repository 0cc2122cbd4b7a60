//! Matches the columns of a table to labels.

use std::collections::HashMap;

use super::Precision;
use crate::Error;
use crate::files::text::did_you_mean;
use crate::tables::cursor::{
    BlockColumn, BlockColumns, ColumnType, NpyCursor, NumberType, RecordCursor,
};

/// What a reader needs from a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedColumns<'a> {
    /// The labels of the model, in order.
    pub(super) labels: &'a [String],
    /// The columns that are passed through as text.
    pub(super) keep: &'a [String],
    /// Whether the table holds evidence, in which labels may be missing; otherwise it holds scores.
    pub(super) evidence: bool,
}

impl WantedColumns<'_> {
    /// The columns of a table, and the precision of its scores.
    pub(super) fn find(&self, cursor: &RecordCursor) -> Result<(BlockColumns, Precision), Error> {
        let (columns, precision) = match cursor {
            RecordCursor::Npy(npy) => self.of_npy(npy, cursor.path())?,
            _ => self.by_name(cursor)?,
        };
        Ok((BlockColumns { labels: self.labels.to_vec(), columns }, precision))
    }

    /// An npy file has one column per label, in order.
    fn of_npy(&self, npy: &NpyCursor, path: &str) -> Result<(Vec<BlockColumn>, Precision), Error> {
        let wrong = |message| Err(Error::Table { path: path.to_owned(), message });
        if let Some(name) = self.keep.first() {
            return wrong(format!("npy files have no names, so no column `{name}` can be kept"));
        }
        npy.check_shape(self.labels.len())?;
        if !self.evidence && npy.number() == NumberType::Whole {
            return wrong(String::from(
                "scores are floating-point numbers; save array.astype('float32')",
            ));
        }
        let columns = (0..self.labels.len()).map(BlockColumn::Label).collect();
        Ok((columns, precision([ColumnType::Number(npy.number())])))
    }

    fn by_name(&self, cursor: &RecordCursor) -> Result<(Vec<BlockColumn>, Precision), Error> {
        let (path, names) = (cursor.path(), cursor.names());
        let list_name = if self.evidence { "evidence" } else { "scores" };
        let is_list = |column: usize| {
            names[column] == list_name && matches!(cursor.column_type(column), ColumnType::Lists(_))
        };
        let lists = (0..names.len()).filter(|&column| is_list(column)).count();
        let plain = (0..names.len()).filter(|&column| !is_list(column));
        let plain = plain.map(|column| names[column].as_str());
        let roles = match lists {
            0 => self.roles(path, plain)?,
            1 => WantedColumns { labels: &[], evidence: true, ..*self }.roles(path, plain)?,
            _ => {
                let column = list_name.to_owned();
                return Err(Error::DuplicateColumn { path: path.to_owned(), column });
            }
        };
        let mut roles = roles.into_iter();
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
        let scores = columns.iter().enumerate();
        let scores = scores.filter(|(_, role)| !matches!(role, BlockColumn::Kept(_)));
        let precision = precision(scores.map(|(column, _)| cursor.column_type(column)));
        Ok((columns, precision))
    }

    /// Whether a column has a type that can be read; the error says what is expected.
    fn check_type(&self, role: BlockColumn, kind: ColumnType<'_>) -> Result<(), &'static str> {
        let number = match (role, kind) {
            (_, ColumnType::Untyped) => return Ok(()),
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

    /// The role of each column of a header.
    fn roles<'h>(
        &self,
        path: &str,
        header: impl Iterator<Item = &'h str>,
    ) -> Result<Vec<BlockColumn>, Error> {
        let path = || path.to_owned();
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
            return Err(Error::Table { path: path(), message });
        }
        let mut has_label = vec![false; self.labels.len()];
        let mut has_kept = vec![false; self.keep.len()];
        let mut roles = Vec::new();
        for column in header {
            let Some(&role) = known.get(column) else {
                let hint = did_you_mean(column, self.labels.iter().map(String::as_str));
                return Err(Error::UnknownColumn { path: path(), column: column.to_owned(), hint });
            };
            let seen = match role {
                BlockColumn::Label(label) => Some(&mut has_label[label]),
                BlockColumn::Kept(kept) => Some(&mut has_kept[kept]),
                BlockColumn::AllLabels => None,
            };
            if seen.is_some_and(|seen| std::mem::replace(seen, true)) {
                return Err(Error::DuplicateColumn { path: path(), column: column.to_owned() });
            }
            roles.push(role);
        }
        let labels = self.labels.iter().zip(&has_label).filter(|_| !self.evidence);
        let needed = labels.chain(self.keep.iter().zip(&has_kept));
        let mut missing = needed.filter(|&(_, &has)| !has).map(|(name, _)| name);
        match missing.next() {
            Some(first) => {
                let (column, count) = (first.clone(), 1 + missing.count());
                Err(Error::MissingColumn { path: path(), column, count })
            }
            None => Ok(roles),
        }
    }
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

    fn message(labels: &[&str], keep: &[&str], header: &[&str]) -> String {
        let (labels, keep) = (names(labels), names(keep));
        let wanted = WantedColumns { labels: &labels, keep: &keep, evidence: false };
        wanted.roles("s.csv", header.iter().copied()).unwrap_err().to_string()
    }

    #[test]
    fn columns_come_in_any_order() {
        let (labels, keep) = (names(&["a", "b"]), names(&["id"]));
        let wanted = WantedColumns { labels: &labels, keep: &keep, evidence: false };
        let roles = wanted.roles("s.csv", ["b", "id", "a"].into_iter()).unwrap();
        let expected = [BlockColumn::Label(1), BlockColumn::Kept(0), BlockColumn::Label(0)];
        assert_eq!(roles, expected);
        let wanted = WantedColumns { labels: &labels, keep: &[], evidence: true };
        assert_eq!(wanted.roles("s.csv", ["b"].into_iter()).unwrap(), [BlockColumn::Label(1)]);
    }

    #[test]
    fn messages_name_columns() {
        assert_eq!(
            message(&["animal", "dog"], &[], &["Animal", "dog"]),
            "s.csv: the column `Animal` is not a label of the model; did you mean `animal`?"
        );
        let missing = message(&["a", "b", "c"], &["id"], &["b"]);
        assert_eq!(missing, "s.csv: no column is named `a`, nor 2 others that are needed");
        assert_eq!(message(&["a", "b"], &[], &["b"]), "s.csv: no column is named `a`");
        assert_eq!(message(&["a"], &[], &["a", "a"]), "s.csv: two columns are named `a`");
        assert!(message(&["a"], &["a"], &["a"]).contains("is a label of the model"));
        assert!(message(&["a"], &["x", "x"], &["a"]).contains("kept twice"));
        assert!(message(&["a"], &[], &["something"]).ends_with("not a label of the model"));
    }
}
