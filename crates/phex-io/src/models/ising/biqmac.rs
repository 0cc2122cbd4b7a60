//! The files of the Biq Mac library: a line `n m`, then `m` lines `i j w`, numbered from 1.
//!
//! Two formats look alike:
//!
//! - `.sparse`: minimise `Σ w_ii x_i + 2 Σ_{i<j} w_ij x_i x_j` over `x ∈ {0, 1}`; the file holds half
//!   of a symmetric matrix.
//! - maximum cut: maximise the weight of the edges between two sides. The energy is minus the cut,
//!   with spins as sides: `E = −Σ w_ij (1 − y_i y_j) / 2`.

use phex::model::Ising;

use super::polynomial::{Polynomial, Variables};
use super::{coo, most_spins};
use crate::Error;
use crate::files::text::{SourceText, shown};

pub(super) fn read_sparse(source: &SourceText<'_>) -> Result<Ising, Error> {
    let (n, terms) = terms(source)?;
    let mut polynomial = Polynomial::new(Variables::Binary, n);
    for (a, b, value) in terms {
        polynomial.add(a, b, if a == b { value } else { 2.0 * value });
    }
    Ok(polynomial.into_ising(names(n)))
}

pub(super) fn read_cut(source: &SourceText<'_>) -> Result<Ising, Error> {
    let (n, terms) = terms(source)?;
    let mut polynomial = Polynomial::new(Variables::Spin, n);
    // An edge from a vertex to itself is never cut.
    for (a, b, value) in terms.into_iter().filter(|(a, b, _)| a != b) {
        polynomial.add(a, b, value / 2.0);
        polynomial.offset -= value / 2.0;
    }
    Ok(polynomial.into_ising(names(n)))
}

fn names(n: usize) -> Vec<String> {
    (1..=n).map(|number| number.to_string()).collect()
}

type Term = (usize, usize, f64);

/// The number of variables, and the terms, with variables counted from 0.
fn terms(source: &SourceText<'_>) -> Result<(usize, Vec<Term>), Error> {
    let mut lines = source.lines().filter(|(_, text)| !text.trim().is_empty());
    let (line, header) = lines.next().unwrap_or((1, ""));
    let counts: Option<Vec<usize>> =
        header.split_whitespace().map(|word| word.parse().ok()).collect();
    let Some(&[n, m]) = counts.as_deref().filter(|counts| counts.iter().all(|&c| c <= MAX_LINES))
    else {
        let message =
            format!("{} should be the number of variables and of terms", shown(header.trim()));
        return Err(source.error(line, message));
    };
    let most = most_spins(source);
    if n > most {
        let message = format!("the file claims {n} variables, and {most} are allowed for its size");
        return Err(source.error(line, message));
    }
    let mut terms = Vec::new();
    let mut last = line;
    for (line, text) in lines {
        let (a, b, value) = coo::term(text).map_err(|message| source.error(line, message))?;
        if a.min(b) == 0 || a.max(b) > n {
            let message = format!("variables are numbered from 1 to {n}");
            return Err(source.error(line, message));
        }
        terms.push((a - 1, b - 1, value));
        last = line;
    }
    if terms.len() != m {
        let message = format!(
            "the header promises {m} terms and the file has {}; is it complete?",
            terms.len()
        );
        return Err(source.error(last, message));
    }
    Ok((n, terms))
}

/// More lines than any file has.
const MAX_LINES: usize = 1 << 30;
