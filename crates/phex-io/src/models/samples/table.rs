//! Samples as CSV: one column per variable, one row per sample.

use super::{OffValue, SolverSample, positions};
use crate::Error;
use crate::files::csv::CsvRecords;
use crate::files::text::{SourceText, shown};

/// Columns that are not variables unless a label has their name: the unnamed index of pandas, and
/// the columns that samplers add.
const OTHERS: [&str; 4] = ["", "energy", "num_occurrences", "chain_break_fraction"];

pub(super) fn read(source: &SourceText<'_>, names: &[String]) -> Result<Vec<SolverSample>, Error> {
    let mut records = CsvRecords::of_text(source, b',')?;
    records.next()?;
    let columns: Vec<String> =
        records.cells().iter().map(|column| column.trim().to_owned()).collect();
    let positions = positions(source.name, &columns, names, &OTHERS)?;
    let mut samples = Vec::new();
    let mut off = OffValue::default();
    while records.next()? {
        let (found, expected) = (records.cells().len(), columns.len());
        if found != expected {
            let message = format!("the row has {found} cells and the header has {expected}");
            return Err(records.error(message));
        }
        let mut sample =
            SolverSample { state: vec![false; names.len()], energy: None, occurrences: 1 };
        for ((position, column), cell) in positions.iter().zip(&columns).zip(records.cells()) {
            let cell = cell.trim();
            let fault =
                |message: String| records.error(format!("column {}: {message}", shown(column)));
            match (position, column.as_str()) {
                (Some(position), _) => {
                    let value = whole(cell)
                        .ok_or_else(|| fault(format!("{} should be 0, 1 or −1", shown(cell))))?;
                    sample.state[*position] = off.is_on(value).map_err(fault)?;
                }
                (None, "energy") => {
                    let energy = cell
                        .parse()
                        .map_err(|_| fault(format!("{} should be an energy", shown(cell))))?;
                    sample.energy = Some(energy);
                }
                (None, "num_occurrences") => {
                    let count = whole(cell).and_then(|count| u64::try_from(count).ok());
                    sample.occurrences =
                        count.ok_or_else(|| fault(format!("{} should be a count", shown(cell))))?;
                }
                (None, _) => {}
            }
        }
        samples.push(sample);
    }
    Ok(samples)
}

/// A whole number: `1`, or `1.0` as pandas may write it.
fn whole(cell: &str) -> Option<i64> {
    let digits = cell.strip_suffix(".0").unwrap_or(cell);
    digits.parse().ok()
}
