//! Numbers of options, with their ranges.

use phex::numeric::SCORE_LIMIT;

pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 => Ok(number),
        _ => Err(String::from("a number above 0 is needed")),
    }
}

pub(super) fn finite(text: &str) -> Result<f64, String> {
    let number = positive(text)?;
    if number < f64::INFINITY { Ok(number) } else { Err(String::from("a finite number is needed")) }
}

/// A number that an engine takes as a score.
pub(super) fn score(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| phex::numeric::is_usable_score::<f64>(*number));
    number.ok_or_else(|| format!("a number between -{SCORE_LIMIT:e} and {SCORE_LIMIT:e} is needed"))
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(String::from("a number of 1 or more is needed")),
        Ok(number) => Ok(number),
    }
}

/// 0 is valid: then all iterations are run.
pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..f64::INFINITY).contains(&number) => Ok(number),
        _ => Err(String::from("a number of 0 or more is needed")),
    }
}

/// The hottest and the coldest inverse temperature.
pub(super) fn betas(text: &str) -> Result<(f64, f64), String> {
    let two = text.split_once(',').map(|(hot, cold)| (finite(hot.trim()), finite(cold.trim())));
    match two {
        Some((Ok(hot), Ok(cold))) => Ok((hot, cold)),
        _ => Err(String::from("two numbers above 0 are needed, such as 0.1,10")),
    }
}
