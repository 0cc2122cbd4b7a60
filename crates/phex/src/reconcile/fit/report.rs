//! What the fit saw, and why it chose what it chose.

use std::fmt;

use serde::Serialize;

use super::options::FitForm;
use super::truths::LegalRows;
use crate::Error;
use crate::graph::RelationGraph;
use crate::infer::Evidence;

/// Rows whose truth breaks hard relations. The guarantee says nothing about them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct IllegalTruths {
    /// How many rows there are. They were left out.
    pub rows: usize,
    /// The relations that they break, those of most rows first.
    pub relations: Vec<BrokenRelation>,
}

impl IllegalTruths {
    /// The rows of a table of truths that break hard relations, after what follows from them was
    /// added. The guarantee of reconciling does not hold for them.
    ///
    /// # Errors
    /// [`Error::Shape`] when the truths are not rows of one entry per label.
    pub fn of(graph: &RelationGraph, truths: &[Evidence]) -> Result<IllegalTruths, Error> {
        let n = graph.len();
        if !truths.len().is_multiple_of(n) {
            let (expected, found) = (truths.len().next_multiple_of(n), truths.len());
            return Err(Error::Shape { what: "truths", expected, found });
        }
        Ok(LegalRows::of(graph, truths, 0..truths.len() / n).illegal)
    }
}

impl fmt::Display for IllegalTruths {
    /// One line with the relations of most rows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows break hard relations", self.rows)?;
        for (at, broken) in self.relations.iter().take(SHOWN).enumerate() {
            let before = if at == 0 { ": " } else { ", " };
            write!(f, "{before}{} ({} rows)", broken.relation, broken.rows)?;
        }
        match self.relations.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more relations"),
        }
    }
}

/// A relation that truths break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BrokenRelation {
    /// The relation in words: `dog is below animal`, `cat excludes dog`.
    pub relation: String,
    /// How many rows break it.
    pub rows: usize,
}

/// A form that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitCandidate {
    /// The form.
    pub form: FitForm,
    /// How many parameters are free.
    pub parameters: usize,
    /// The mean loss per row, cross-validated. `None` if it could not be fitted.
    pub loss: Option<f64>,
    /// By how much this is above the lowest.
    pub above_best: Option<f64>,
    /// The standard error of that difference.
    pub standard_error: Option<f64>,
    /// Why it could not be fitted.
    pub refused: Option<String>,
}

/// What the fit saw.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitReport {
    /// How many rows were given.
    pub rows: usize,
    /// How many of them were used.
    pub used: usize,
    /// How many were left out because nothing is known of them.
    pub unknown: usize,
    /// How many were left out because their truth is illegal, by relation.
    pub illegal: IllegalTruths,
    /// How many parts the rows fell into.
    pub folds: u32,
    /// The mean loss per row of the input as it came.
    pub input_loss: f64,
    /// The forms, those with the fewest parameters first.
    pub candidates: Vec<FitCandidate>,
    /// The form that was chosen.
    pub chosen: FitForm,
}

/// How many broken relations are written out.
const SHOWN: usize = 10;

impl fmt::Display for FitReport {
    /// The table of candidates, and one line for each broken relation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {} rows used", self.used, self.rows)?;
        if self.unknown > 0 {
            writeln!(f, "{} rows left out: nothing is known of them", self.unknown)?;
        }
        writeln!(f, "{:<20} {:>10} {:>12}", "form", "parameters", "loss")?;
        writeln!(f, "{:<20} {:>10} {:>12.5}", "(input as it came)", "", self.input_loss)?;
        for candidate in &self.candidates {
            let FitCandidate { form, parameters, .. } = candidate;
            write!(f, "{:<20} {parameters:>10} ", form.to_string())?;
            match (candidate.loss, &candidate.refused) {
                (Some(loss), _) => write!(f, "{loss:>12.5}")?,
                (None, Some(reason)) => write!(f, "{:>12} ({reason})", "–")?,
                (None, None) => write!(f, "{:>12}", "–")?,
            }
            writeln!(f, "{}", if *form == self.chosen { "  ← chosen" } else { "" })?;
        }
        if self.illegal.rows > 0 {
            writeln!(f, "{} rows left out: their truth breaks hard relations", self.illegal.rows)?;
        }
        for broken in self.illegal.relations.iter().take(SHOWN) {
            writeln!(f, "  {}: {} rows", broken.relation, broken.rows)?;
        }
        let more = self.illegal.relations.len().saturating_sub(SHOWN);
        if more > 0 {
            writeln!(f, "  and {more} more relations")?;
        }
        Ok(())
    }
}
