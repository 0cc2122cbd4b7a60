//! Rejects files that were probably read in the wrong format.
//!
//! Outlines, tables, paths and nested labels have no mark of their own. A hundred thousand lines of
//! something else would become as many labels without any relation. If more than half of the labels
//! of such a file have no relation, and the format was not named, the error shows the first lines as
//! they were understood.

use phex::graph::GraphBuilder;

use crate::files::text::{SourceText, shown};
use crate::{Error, Format};

/// Smaller files are small enough to look at.
const LEAST: usize = 8;
/// How many labels the error shows.
const SHOWN: usize = 3;

pub(super) fn refuse(
    builder: &GraphBuilder,
    source: &SourceText<'_>,
    format: Format,
) -> Result<(), Error> {
    use Format::*;
    let guessed = matches!(
        format,
        Outline | Parents | Levels | Paths | Tree | Yaml | NodeLink | GraphMl | Icd10
    );
    let labels = builder.len();
    if !guessed || labels < LEAST {
        return Ok(());
    }
    let alone = builder.isolated();
    if 2 * alone.len() <= labels {
        return Ok(());
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let understood = alone.iter().take(SHOWN).map(|(name, place)| {
        let line = place.line.unwrap_or(1) as usize;
        let text = lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        format!("\n  line {line}: {} was read as the label {}", shown(text.trim()), shown(name))
    });
    Err(Error::MostlyIsolated {
        path: source.name.to_owned(),
        isolated: alone.len(),
        labels,
        format,
        understood: understood.collect(),
    })
}
