//! The coordinate lists of `dimod.serialization.coo`.
//!
//! ```text
//! # vartype=SPIN
//! 0 0 1.5        a field
//! 0 1 -0.25      a coupling
//! ```
//!
//! Variables are numbers from 0; some may be unused. dimod cannot read exponents, so none are
//! written. It skips comments, so names and offset go there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use phex::model::Ising;

use super::polynomial::{Polynomial, Variables};
use crate::Error;
use crate::files::text::{SourceText, shown};
use crate::models::notes::{self, FileNotes};

pub(super) fn read(source: &SourceText<'_>) -> Result<Ising, Error> {
    let mut notes = FileNotes::default();
    let mut variables = None;
    let mut terms: Vec<(usize, usize, f64)> = Vec::new();
    for (line, text) in source.lines() {
        let text = text.trim();
        let fault = |message: String| source.error(line, message);
        if text.is_empty() {
            continue;
        }
        if let Some(comment) = text.strip_prefix('#') {
            if let Some(found) = vartype(comment) {
                let found = found.map_err(fault)?;
                if variables.is_some_and(|variables| variables != found) {
                    return Err(fault(String::from("the vartype changes; a file has one")));
                }
                variables = Some(found);
            } else {
                notes.take(comment).map_err(fault)?;
            }
            continue;
        }
        terms.push(term(text).map_err(fault)?);
    }
    let variables = variables.ok_or_else(|| {
        source.error(1, "the vartype is missing; begin the file with `# vartype=SPIN` or BINARY")
    })?;
    let mut positions: BTreeMap<usize, usize> = notes.names.keys().map(|&at| (at, 0)).collect();
    positions.extend(terms.iter().flat_map(|&(a, b, _)| [(a, 0), (b, 0)]));
    positions.values_mut().enumerate().for_each(|(position, slot)| *slot = position);
    let mut polynomial = Polynomial::new(variables, positions.len());
    polynomial.offset = notes.offset;
    for (a, b, value) in terms {
        polynomial.add(positions[&a], positions[&b], value);
    }
    Ok(polynomial.into_ising(positions.keys().map(|&number| notes.name(number)).collect()))
}

/// The type of the variables, if a comment gives it.
fn vartype(comment: &str) -> Option<Result<Variables, String>> {
    let said = |(at, word): (usize, &str)| comment[at + word.len()..].strip_prefix(['=', ':']);
    let rest = comment.match_indices("vartype").find_map(said)?.trim_start_matches([' ', '\t']);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    Some(match &rest[..end.unwrap_or(rest.len())] {
        "SPIN" => Ok(Variables::Spin),
        "BINARY" => Ok(Variables::Binary),
        other => Err(format!("the vartype {} is not SPIN or BINARY", shown(other))),
    })
}

/// `variable variable number`.
pub(super) fn term(text: &str) -> Result<(usize, usize, f64), String> {
    let mut words = text.split_whitespace();
    let (Some(a), Some(b), Some(value), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(format!("{} should be two variables and a number", shown(text)));
    };
    let variable = |word: &str| {
        word.parse().map_err(|_| format!("{} should be the number of a variable", shown(word)))
    };
    Ok((variable(a)?, variable(b)?, notes::number(value)?))
}

pub(super) fn write(ising: &Ising) -> String {
    let mut out = String::from("# vartype=SPIN\n");
    notes::write(&mut out, "#", ising.offset, &ising.names);
    // Fields of zero are written too, because a variable without a term would not exist.
    for (at, h) in ising.h.iter().enumerate() {
        let _ = writeln!(out, "{at} {at} {h}");
    }
    for (a, b, j) in &ising.j {
        let _ = writeln!(out, "{a} {b} {j}");
    }
    out
}
