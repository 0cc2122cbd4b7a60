//! The QUBO files of qbsolv.
//!
//! ```text
//! c a comment
//! p qubo 0 3 2 1      topology, variables, diagonal terms, other terms
//! 0 0 -1.5
//! 2 2 1
//! 0 2 2
//! ```
//!
//! Variables are 0/1 and numbered from 0. Names and offset are in comments.

use std::fmt::Write as _;

use phex::model::Ising;

use super::polynomial::{Polynomial, Variables};
use super::{coo, most_spins};
use crate::Error;
use crate::files::text::SourceText;
use crate::models::notes::{self, FileNotes};

pub(super) fn read(source: &SourceText<'_>) -> Result<Ising, Error> {
    let mut notes = FileNotes::default();
    let mut header: Option<[usize; 3]> = None;
    let mut polynomial = Polynomial::new(Variables::Binary, 0);
    let mut diagonal = 0;
    let mut last = 1;
    for (line, text) in source.lines() {
        let text = text.trim();
        let fault = |message: String| source.error(line, message);
        let is_comment = text == "c" || text.starts_with("c ") || text.starts_with("c\t");
        if text.is_empty() || is_comment {
            notes.take(text.get(1..).unwrap_or("")).map_err(fault)?;
            continue;
        }
        last = line;
        if text.starts_with('p') {
            if header.is_some() {
                return Err(fault(String::from("this is a second `p` line; a file has one")));
            }
            let counts = counts(text, most_spins(source)).map_err(fault)?;
            polynomial.linear = vec![0.0; counts[0]];
            header = Some(counts);
            continue;
        }
        let Some([n, ..]) = header else {
            return Err(fault(String::from(
                "the line `p qubo 0 variables diagonals others` should come before the terms",
            )));
        };
        let (a, b, value) = coo::term(text).map_err(fault)?;
        if a.max(b) >= n {
            let message = format!("variable {} is not below the {n} of the `p` line", a.max(b));
            return Err(fault(message));
        }
        diagonal += usize::from(a == b);
        polynomial.add(a, b, value);
    }
    let Some([n, diagonals, others]) = header else {
        return Err(source.error(last, "there is no line `p qubo 0 variables diagonals others`"));
    };
    if (diagonal, polynomial.pairs.len()) != (diagonals, others) {
        let message = format!(
            "the `p` line promises {diagonals} diagonal and {others} other terms, but there are \
             {diagonal} and {}; is the file complete?",
            polynomial.pairs.len()
        );
        return Err(source.error(last, message));
    }
    if let Some((number, _)) = notes.names.range(n..).next() {
        let message = format!("a name is given to variable {number}, which does not exist");
        return Err(source.error(last, message));
    }
    polynomial.offset = notes.offset;
    Ok(polynomial.into_ising((0..n).map(|number| notes.name(number)).collect()))
}

/// The variables, diagonal terms and other terms of a `p` line.
fn counts(text: &str, most: usize) -> Result<[usize; 3], String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["p", "qubo", _, counts @ ..] = words.as_slice() else {
        return Err(String::from("the line should be `p qubo 0 variables diagonals others`"));
    };
    let count =
        |word: &&str| word.parse::<usize>().ok().filter(|&count| count <= u32::MAX as usize);
    let counts: Option<Vec<usize>> = counts.iter().map(count).collect();
    match counts.as_deref() {
        Some(&[n, diagonals, others]) if n <= most => Ok([n, diagonals, others]),
        _ => Err(format!("`p qubo 0` is followed by three counts, of at most {most} variables")),
    }
}

pub(super) fn write(ising: &Ising) -> String {
    let polynomial = Polynomial::binary(ising);
    let mut out = String::new();
    notes::write(&mut out, "c", polynomial.offset, &ising.names);
    let n = ising.names.len();
    let _ = writeln!(out, "p qubo 0 {n} {n} {}", polynomial.pairs.len());
    for (at, value) in polynomial.linear.iter().enumerate() {
        let _ = writeln!(out, "{at} {at} {value}");
    }
    for (a, b, value) in &polynomial.pairs {
        let _ = writeln!(out, "{a} {b} {value}");
    }
    out
}
