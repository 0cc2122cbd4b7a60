//! Columns that grow cell by cell and become features.
//!
//! A column of text without declared types is a number as long as every cell is one. Its
//! different texts are remembered too, up to the limit of categories, so that one pass is enough:
//! the first cell that is no number makes it a column of categories, and when there were more
//! different texts than categories are allowed, it would have been refused anyway.

use std::collections::HashMap;

use super::table::Cell;
use super::{FeatureColumn, FeatureKind, Unseen};
use crate::text::shown;

/// The code of a cell without a category.
const NONE: u32 = u32::MAX;

/// A column of features in the making.
#[derive(Debug)]
pub(super) enum Column {
    Numeric(Vec<f32>),
    Nominal(Nominal),
    Learned(Learned),
}

/// A column whose categories are known.
#[derive(Debug)]
pub(super) struct Nominal {
    categories: Categories,
    codes: Vec<u32>,
    /// Whether other categories are mistakes: else they are counted.
    strict: bool,
    unseen: usize,
    first_unseen: String,
}

/// A column whose cells show what it is.
#[derive(Debug)]
pub(super) struct Learned {
    /// The cells, as long as all are numbers.
    numbers: Option<Vec<f32>>,
    /// The cells as categories, as long as these are not too many.
    codes: Option<(Categories, Vec<u32>)>,
    limit: usize,
    first_text: Option<String>,
}

/// Texts and their numbers.
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

/// A finished column: a number or a category for each row.
pub(super) enum Values {
    Numbers(Vec<f32>),
    Codes(Vec<u32>),
}

impl Column {
    /// A column of a known kind; `strict` refuses other categories.
    pub(super) fn known(kind: &FeatureKind, strict: bool) -> Column {
        match kind {
            FeatureKind::Numeric => Column::Numeric(Vec::new()),
            FeatureKind::Nominal { values } => Column::Nominal(Nominal {
                categories: Categories::new(values),
                codes: Vec::new(),
                strict,
                unseen: 0,
                first_unseen: String::new(),
            }),
        }
    }

    /// A column of text, which may turn out to be numbers or not.
    pub(super) fn learned(numbers: bool, limit: usize) -> Column {
        let numbers = numbers.then(Vec::new);
        let codes = Some((Categories::default(), Vec::new()));
        Column::Learned(Learned { numbers, codes, limit, first_text: None })
    }

    /// Whether another column is of the same kind: one that a file before this one has.
    pub(super) fn is_like(&self, new: &Column) -> bool {
        match (self, new) {
            (Column::Numeric(_), Column::Numeric(_)) | (Column::Learned(_), Column::Learned(_)) => {
                true
            }
            (Column::Nominal(old), Column::Nominal(new)) => {
                old.categories.values == new.categories.values
            }
            _ => false,
        }
    }

    /// Adds a cell.
    pub(super) fn push(&mut self, cell: Cell<'_>) -> Result<(), String> {
        match self {
            Column::Numeric(numbers) => {
                numbers.push(number(cell)?);
                Ok(())
            }
            Column::Nominal(nominal) => nominal.push(cell),
            Column::Learned(learned) => learned.push(cell),
        }
    }

    /// What the column became.
    pub(super) fn finish(self, name: &str) -> (FeatureColumn, Values, Option<Unseen>) {
        let mut unseen = None;
        let (kind, values) = match self {
            Column::Numeric(numbers) => (FeatureKind::Numeric, Values::Numbers(numbers)),
            Column::Nominal(nominal) => {
                if nominal.unseen > 0 {
                    let (column, first) = (name.to_owned(), nominal.first_unseen);
                    unseen = Some(Unseen { column, count: nominal.unseen, first });
                }
                let values = nominal.categories.values;
                (FeatureKind::Nominal { values }, Values::Codes(nominal.codes))
            }
            Column::Learned(Learned { numbers: Some(numbers), .. }) => {
                (FeatureKind::Numeric, Values::Numbers(numbers))
            }
            Column::Learned(Learned { codes, .. }) => sorted(codes.unwrap_or_default()),
        };
        (FeatureColumn { name: name.to_owned(), kind }, values, unseen)
    }
}

/// Categories in the order of their texts, and the codes that follow them.
fn sorted((categories, mut codes): (Categories, Vec<u32>)) -> (FeatureKind, Values) {
    let mut order: Vec<u32> = (0..categories.values.len() as u32).collect();
    order.sort_by_key(|&code| &categories.values[code as usize]);
    let mut rank = vec![0; order.len()];
    (0..).zip(&order).for_each(|(place, &code)| rank[code as usize] = place);
    for code in codes.iter_mut().filter(|code| **code != NONE) {
        *code = rank[*code as usize];
    }
    let values = order.iter().map(|&code| categories.values[code as usize].clone()).collect();
    (FeatureKind::Nominal { values }, Values::Codes(codes))
}

impl Nominal {
    fn push(&mut self, cell: Cell<'_>) -> Result<(), String> {
        let formatted;
        let text = match cell {
            Cell::Missing => {
                self.codes.push(NONE);
                return Ok(());
            }
            Cell::Text(text) => text.trim(),
            Cell::Number(number) => {
                formatted = number.to_string();
                &formatted
            }
            Cell::List(_) => return Err(String::from("a list is no category")),
        };
        let code = match self.categories.index.get(text) {
            Some(&code) => code,
            None if is_missing(text) => NONE,
            None if self.strict => {
                return Err(format!("{} is none of the declared values", shown(text)));
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

impl Learned {
    fn push(&mut self, cell: Cell<'_>) -> Result<(), String> {
        let text = match cell {
            Cell::Text(text) => text.trim(),
            Cell::Missing => "",
            Cell::Number(_) | Cell::List(_) => return Err(String::from("text was expected")),
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
            (None, None) => Err(format!(
                "{} makes this a column of text, and it has more than {} different ones; mend \
                 the cell, leave the column out with --drop or pass it through with --keep",
                shown(self.first_text.as_deref().unwrap_or(text)),
                self.limit
            )),
            _ => Ok(()),
        }
    }
}

/// Whether the text of a cell says that there is nothing.
fn is_missing(text: &str) -> bool {
    matches!(text, "" | "?" | "NA") || text.eq_ignore_ascii_case("nan")
}

/// The number in single precision, unless it is infinite there.
fn finite(number: f64) -> Option<f32> {
    let number = number as f32;
    (!number.is_infinite()).then_some(number)
}

fn number(cell: Cell<'_>) -> Result<f32, String> {
    let expected = "a feature is a finite number, or empty, `?`, `NA` or `nan` where there is none";
    match cell {
        Cell::Missing => Ok(f32::NAN),
        Cell::Number(number) => {
            finite(number).ok_or_else(|| format!("the cell is {number}; {expected}"))
        }
        Cell::Text(text) if is_missing(text.trim()) => Ok(f32::NAN),
        Cell::Text(text) => text
            .trim()
            .parse()
            .ok()
            .and_then(finite)
            .ok_or_else(|| format!("the cell is {}; {expected}", shown(text))),
        Cell::List(_) => Err(String::from("a list is no feature")),
    }
}

/// The features of columns, row after row. Each column is dropped once it is copied.
pub(super) fn assemble(columns: Vec<(FeatureColumn, Values)>, rows: usize) -> Vec<f32> {
    let width = |kind: &FeatureKind| match kind {
        FeatureKind::Numeric => 1,
        FeatureKind::Nominal { values } => values.len(),
    };
    let all: usize = columns.iter().map(|(column, _)| width(&column.kind)).sum();
    let mut out = vec![0.0; all * rows];
    let mut first = 0;
    for (column, values) in columns {
        match values {
            Values::Numbers(numbers) => {
                let cells = out.iter_mut().skip(first).step_by(all.max(1));
                cells.zip(numbers).for_each(|(cell, number)| *cell = number);
            }
            Values::Codes(codes) => {
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

    fn learned(texts: &[&str], limit: usize) -> Result<(FeatureKind, Vec<f32>), String> {
        let mut column = Column::learned(true, limit);
        texts.iter().try_for_each(|text| column.push(Cell::Text(text)))?;
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
        let error = learned(&["1", "2", "3", "x"], 2).unwrap_err();
        assert!(error.starts_with("`x` makes this a column of text"), "{error}");
        assert!(learned(&["a", "b", "c"], 2).unwrap_err().starts_with("`a` makes"));
        // Infinite numbers are no features.
        assert!(matches!(learned(&["1", "inf"], 5).unwrap().0, FeatureKind::Nominal { .. }));
        assert!(number(Cell::Number(1e39)).is_err());
        assert!(number(Cell::Text("-inf")).is_err());
    }
}
