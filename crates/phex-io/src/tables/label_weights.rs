//! How much each label counts: a table with the columns `label` and `weight`.
//!
//! ```csv
//! label,weight
//! animal,0.5
//! ```

use std::path::Path;

use super::cursor::{ColumnNeed, RecordCell, RecordCursor};
use crate::files::text::did_you_mean;
use crate::{Error, Limits};

/// The weight of each label, in the order of `labels`. A label without a line has the weight 1.
///
/// # Errors
/// When the file cannot be read, has other columns, names a label twice or one that is not in
/// `labels`, or a weight is not a number above 0.
pub fn read_label_weights(path: &Path, labels: &[String]) -> Result<Vec<f64>, Error> {
    let mut cursor = RecordCursor::open(path, None, &Limits::default())?;
    if cursor.names() != ["label", "weight"] {
        let message = format!(
            "weights of labels have the columns `label` and `weight`, but this table has {}",
            cursor.names().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        );
        return Err(Error::Table { path: cursor.path().to_owned(), message });
    }
    cursor.select(&[ColumnNeed::Texts, ColumnNeed::Texts])?;
    let mut weights: Vec<Option<f64>> = vec![None; labels.len()];
    while cursor.next()? {
        let text = |column| match cursor.cell(column) {
            RecordCell::Text(text) => text.trim().to_owned(),
            RecordCell::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let (name, weight) = (text(0), text(1));
        let Some(label) = labels.iter().position(|label| *label == name) else {
            let hint = did_you_mean(&name, labels.iter().map(String::as_str));
            return Err(cursor.error(0, format!("`{name}` is not a label of the graph{hint}")));
        };
        if weights[label].is_some() {
            return Err(cursor.error(0, format!("`{name}` has a weight already")));
        }
        let number = weight.parse().ok().filter(|&w: &f64| w > 0.0 && w.is_finite());
        let Some(number) = number else {
            let message = format!("the cell is `{weight}`; a weight is a number above 0");
            return Err(cursor.error(1, message));
        };
        weights[label] = Some(number);
    }
    Ok(weights.into_iter().map(|weight| weight.unwrap_or(1.0)).collect())
}
