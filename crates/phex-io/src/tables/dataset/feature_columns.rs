//! Columns that grow cell by cell and become features.
//!
//! A column without a declared type holds numbers as long as every cell is a number. Its distinct
//! texts are recorded as well, up to the limit of categories, so that one pass is enough: the first
//! cell that is not a number makes it a column of categories. If there were more distinct texts than
//! the limit allows, the column would have been refused anyway.

use std::collections::HashMap;
use std::sync::Arc;

use super::{FeatureColumn, FeatureKind, Unseen};
use crate::files::text::shown;
use crate::tables::cursor::RecordCell;

/// The code of a cell without a category.
const NONE: u32 = u32::MAX;

/// What is wrong with a cell.
#[derive(Debug)]
pub(super) enum CellFault {
    /// What is wrong and what is expected.
    Message(String),
    /// The column has too many categories; `text` is its first cell that is not a number.
    TooManyCategories { text: String, limit: usize },
}

impl From<String> for CellFault {
    fn from(message: String) -> CellFault {
        CellFault::Message(message)
    }
}

/// A column that is not complete yet.
#[derive(Debug)]
pub(super) enum GrowingColumn {
    Numeric(Vec<f32>),
    Nominal(NominalColumn),
    Learned(LearnedColumn),
}

/// A column whose categories are known.
#[derive(Debug)]
pub(super) struct NominalColumn {
    categories: Arc<Categories>,
    codes: Vec<u32>,
    /// Whether other categories are errors; otherwise they are counted.
    strict: bool,
    unseen: usize,
    first_unseen: String,
}

/// A column whose type only its cells show.
#[derive(Debug)]
pub(super) struct LearnedColumn {
    /// The cells as numbers, as long as all of them are.
    numbers: Option<Vec<f32>>,
    /// The cells as categories, as long as there are not too many.
    codes: Option<(Categories, Vec<u32>)>,
    limit: usize,
    first_text: Option<String>,
}

/// Categories and their codes.
#[derive(Debug, Default)]
struct Categories {
    values: Vec<String>,
    index: HashMap<String, u32>,
}

impl Categories {
    fn new(values: &[String]) -> Categories {
        let mut categories = Categories::default();
        for value in values {
            categories.code(value);
        }
        categories
    }

    fn code(&mut self, value: &str) -> u32 {
        if let Some(&code) = self.index.get(value) {
            return code;
        }
        let code = self.values.len() as u32;
        self.values.push(value.to_owned());
        self.index.insert(value.to_owned(), code);
        code
    }
}

/// A complete column: one number or category per row.
pub(super) enum FeatureValues {
    Numbers(Vec<f32>),
    Codes(Vec<u32>),
}

impl GrowingColumn {
    /// A column of a known kind; `strict` refuses other categories.
    pub(super) fn known(kind: &FeatureKind, strict: bool) -> GrowingColumn {
        match kind {
            FeatureKind::Numeric => GrowingColumn::Numeric(Vec::new()),
            FeatureKind::Nominal { values } => GrowingColumn::Nominal(NominalColumn {
                categories: Arc::new(Categories::new(values)),
                codes: Vec::new(),
                strict,
                unseen: 0,
                first_unseen: String::new(),
            }),
        }
    }

    /// A column whose type is learned; `numbers` says whether it may be numeric.
    pub(super) fn learned(numbers: bool, limit: usize) -> GrowingColumn {
        let numbers = numbers.then(Vec::new);
        let codes = Some((Categories::default(), Vec::new()));
        GrowingColumn::Learned(LearnedColumn { numbers, codes, limit, first_text: None })
    }

    /// Whether a column of a later file has the same type.
    pub(super) fn is_like(&self, new: &GrowingColumn) -> bool {
        match (self, new) {
            (GrowingColumn::Numeric(_), GrowingColumn::Numeric(_))
            | (GrowingColumn::Learned(_), GrowingColumn::Learned(_)) => true,
            (GrowingColumn::Nominal(old), GrowingColumn::Nominal(new)) => {
                old.categories.values == new.categories.values
            }
            _ => false,
        }
    }

    /// Adds a cell.
    pub(super) fn push(&mut self, cell: RecordCell<'_>) -> Result<(), CellFault> {
        match self {
            GrowingColumn::Numeric(numbers) => {
                numbers.push(number(cell)?);
                Ok(())
            }
            GrowingColumn::Nominal(nominal) => Ok(nominal.push(cell)?),
            GrowingColumn::Learned(learned) => learned.push(cell),
        }
    }

    /// The rows so far, as a column of their own. The count of unseen categories stays. A column
    /// whose type is learned needs all its rows.
    pub(super) fn take_rows(&mut self) -> GrowingColumn {
        match self {
            GrowingColumn::Numeric(numbers) => GrowingColumn::Numeric(std::mem::take(numbers)),
            GrowingColumn::Nominal(nominal) => GrowingColumn::Nominal(NominalColumn {
                categories: Arc::clone(&nominal.categories),
                codes: std::mem::take(&mut nominal.codes),
                strict: nominal.strict,
                unseen: 0,
                first_unseen: String::new(),
            }),
            GrowingColumn::Learned(learned) => {
                let new = GrowingColumn::learned(learned.numbers.is_some(), learned.limit);
                std::mem::replace(self, new)
            }
        }
    }

    /// The categories that the schema lacks, so far.
    pub(super) fn unseen(&self, name: &str) -> Option<Unseen> {
        match self {
            GrowingColumn::Nominal(nominal) => nominal.unseen(name),
            _ => None,
        }
    }

    /// The complete column, and the categories that its schema lacks.
    pub(super) fn finish(self, name: &str) -> (FeatureColumn, FeatureValues, Option<Unseen>) {
        let mut unseen = None;
        let (kind, values) = match self {
            GrowingColumn::Numeric(numbers) => {
                (FeatureKind::Numeric, FeatureValues::Numbers(numbers))
            }
            GrowingColumn::Nominal(nominal) => {
                unseen = nominal.unseen(name);
                let values = nominal.categories.values.clone();
                (FeatureKind::Nominal { values }, FeatureValues::Codes(nominal.codes))
            }
            GrowingColumn::Learned(LearnedColumn { numbers: Some(numbers), .. }) => {
                (FeatureKind::Numeric, FeatureValues::Numbers(numbers))
            }
            GrowingColumn::Learned(LearnedColumn { codes, .. }) => {
                sorted(codes.unwrap_or_default())
            }
        };
        (FeatureColumn { name: name.to_owned(), kind }, values, unseen)
    }
}

/// The categories in alphabetical order, and the codes in that order.
fn sorted((categories, mut codes): (Categories, Vec<u32>)) -> (FeatureKind, FeatureValues) {
    let mut order: Vec<u32> = (0..categories.values.len() as u32).collect();
    order.sort_by_key(|&code| &categories.values[code as usize]);
    let mut rank = vec![0; order.len()];
    (0..).zip(&order).for_each(|(position, &code)| rank[code as usize] = position);
    for code in codes.iter_mut().filter(|code| **code != NONE) {
        *code = rank[*code as usize];
    }
    let values = order.iter().map(|&code| categories.values[code as usize].clone()).collect();
    (FeatureKind::Nominal { values }, FeatureValues::Codes(codes))
}

impl NominalColumn {
    fn unseen(&self, name: &str) -> Option<Unseen> {
        let (column, first) = (name.to_owned(), self.first_unseen.clone());
        (self.unseen > 0).then_some(Unseen { column, count: self.unseen, first })
    }

    fn push(&mut self, cell: RecordCell<'_>) -> Result<(), String> {
        let formatted;
        let text = match cell {
            RecordCell::Missing => {
                self.codes.push(NONE);
                return Ok(());
            }
            RecordCell::Text(text) => text.trim(),
            RecordCell::Number(number) => {
                formatted = number.to_string();
                &formatted
            }
            RecordCell::List(_) => return Err(String::from("a list is not a category")),
        };
        let code = match self.categories.index.get(text) {
            Some(&code) => code,
            None if is_missing(text) => NONE,
            None if self.strict => {
                return Err(format!("{} is not one of the declared values", shown(text)));
            }
            None => {
                if self.unseen == 0 {
                    text.clone_into(&mut self.first_unseen);
                }
                self.unseen += 1;
                NONE
            }
        };
        self.codes.push(code);
        Ok(())
    }
}

impl LearnedColumn {
    fn push(&mut self, cell: RecordCell<'_>) -> Result<(), CellFault> {
        let text = match cell {
            RecordCell::Text(text) => text.trim(),
            RecordCell::Missing => "",
            RecordCell::Number(_) | RecordCell::List(_) => {
                return Err(CellFault::Message(String::from("text was expected")));
            }
        };
        let missing = is_missing(text);
        if let Some(numbers) = &mut self.numbers {
            match text.parse().ok().and_then(finite) {
                _ if missing => numbers.push(f32::NAN),
                Some(number) => numbers.push(number),
                None => self.numbers = None,
            }
        }
        if self.numbers.is_none() && self.first_text.is_none() && !missing {
            self.first_text = Some(text.to_owned());
        }
        if let Some((categories, codes)) = &mut self.codes {
            codes.push(if missing { NONE } else { categories.code(text) });
            if categories.values.len() > self.limit {
                self.codes = None;
            }
        }
        match (&self.numbers, &self.codes) {
            (None, None) => {
                let text = shown(self.first_text.as_deref().unwrap_or(text));
                Err(CellFault::TooManyCategories { text, limit: self.limit })
            }
            _ => Ok(()),
        }
    }
}

/// Whether the text of a cell means that the value is missing.
fn is_missing(text: &str) -> bool {
    matches!(text, "" | "?" | "NA") || text.eq_ignore_ascii_case("nan")
}

/// The number in single precision, unless it is infinite.
fn finite(number: f64) -> Option<f32> {
    let number = number as f32;
    (!number.is_infinite()).then_some(number)
}

fn number(cell: RecordCell<'_>) -> Result<f32, String> {
    let expected = "a feature is a finite number, or empty, `?`, `NA` or `nan` if it is missing";
    match cell {
        RecordCell::Missing => Ok(f32::NAN),
        RecordCell::Number(number) => {
            finite(number).ok_or_else(|| format!("the cell is {number}; {expected}"))
        }
        RecordCell::Text(text) if is_missing(text.trim()) => Ok(f32::NAN),
        RecordCell::Text(text) => text
            .trim()
            .parse()
            .ok()
            .and_then(finite)
            .ok_or_else(|| format!("the cell is {}; {expected}", shown(text))),
        RecordCell::List(_) => Err(String::from("a list is not a feature")),
    }
}

/// The features row after row. Each column is dropped once it is copied, which saves memory.
pub(super) fn assemble(columns: Vec<(FeatureColumn, FeatureValues)>, rows: usize) -> Vec<f32> {
    let width = |kind: &FeatureKind| match kind {
        FeatureKind::Numeric => 1,
        FeatureKind::Nominal { values } => values.len(),
    };
    let all: usize = columns.iter().map(|(column, _)| width(&column.kind)).sum();
    let mut out = vec![0.0; all * rows];
    let mut first = 0;
    for (column, values) in columns {
        match values {
            FeatureValues::Numbers(numbers) => {
                let cells = out.iter_mut().skip(first).step_by(all.max(1));
                cells.zip(numbers).for_each(|(cell, number)| *cell = number);
            }
            FeatureValues::Codes(codes) => {
                for (row, code) in codes.into_iter().enumerate().filter(|&(_, code)| code != NONE) {
                    out[row * all + first + code as usize] = 1.0;
                }
            }
        }
        first += width(&column.kind);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(texts: &[&str], limit: usize) -> Result<(FeatureKind, Vec<f32>), CellFault> {
        let mut column = GrowingColumn::learned(true, limit);
        texts.iter().try_for_each(|text| column.push(RecordCell::Text(text)))?;
        let (column, values, _) = column.finish("x");
        Ok((column.kind.clone(), assemble(vec![(column, values)], texts.len())))
    }

    #[test]
    fn kinds_are_learned_in_one_pass() {
        let (kind, values) = learned(&["1", " 2.5", "", "?", "NA", "NaN"], 1).unwrap();
        assert_eq!(kind, FeatureKind::Numeric);
        assert_eq!(values[..2], [1.0, 2.5]);
        assert!(values[2..].iter().all(|value| value.is_nan()));
        let (kind, values) = learned(&["10", "b", "", "10", "a"], 3).unwrap();
        let values_of = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(kind, FeatureKind::Nominal { values: values_of(&["10", "a", "b"]) });
        assert_eq!(values, [1., 0., 0., 0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 1., 0.]);
        let first_text = |texts: &[&str]| match learned(texts, 2).unwrap_err() {
            CellFault::TooManyCategories { text, limit: 2 } => text,
            fault => panic!("{fault:?}"),
        };
        assert_eq!(first_text(&["1", "2", "3", "x"]), "`x`");
        assert_eq!(first_text(&["a", "b", "c"]), "`a`");
        // Infinite numbers cannot be features.
        assert!(matches!(learned(&["1", "inf"], 5).unwrap().0, FeatureKind::Nominal { .. }));
        assert!(number(RecordCell::Number(1e39)).is_err());
        assert!(number(RecordCell::Text("-inf")).is_err());
    }
}
