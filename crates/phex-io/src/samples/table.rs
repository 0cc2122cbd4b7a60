//! Samples as CSV: a column a variable, a row a sample.

use super::{Sample, Values, places};
use crate::Error;
use crate::text::{Source, shown};

/// Columns that are not variables, unless a label has their name: the unnamed index of pandas, and
/// what samplers add.
const OTHERS: [&str; 4] = ["", "energy", "num_occurrences", "chain_break_fraction"];

pub(super) fn read(source: &Source<'_>, names: &[String]) -> Result<Vec<Sample>, Error> {
    let mut reader = csv::ReaderBuilder::new().from_reader(source.text.as_bytes());
    let line_of = |error: &csv::Error| error.position().map_or(1, |place| place.line() as usize);
    let broken = |error: csv::Error| {
        source.error(line_of(&error), format!("the row does not fit the header: {error}"))
    };
    let header = reader.headers().map_err(broken)?;
    let columns: Vec<String> = header.iter().map(|column| column.trim().to_owned()).collect();
    let places = places(source.name, &columns, names, &OTHERS)?;
    let mut samples = Vec::new();
    let mut values = Values::default();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(1, |place| place.line() as usize);
        let mut sample = Sample { state: vec![false; names.len()], energy: None, occurrences: 1 };
        for ((place, column), cell) in places.iter().zip(&columns).zip(&record) {
            let cell = cell.trim();
            let fault = |message: String| {
                source.error(line, format!("column {}: {message}", shown(column)))
            };
            match (place, column.as_str()) {
                (Some(place), _) => {
                    let value = whole(cell)
                        .ok_or_else(|| fault(format!("{} should be 0, 1 or −1", shown(cell))))?;
                    sample.state[*place] = values.is_on(value).map_err(fault)?;
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

/// A whole number, `1` or as pandas may write it `1.0`.
fn whole(cell: &str) -> Option<i64> {
    let digits = cell.strip_suffix(".0").unwrap_or(cell);
    digits.parse().ok()
}
