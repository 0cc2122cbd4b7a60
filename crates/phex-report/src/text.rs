//! Numbers and names in a form that people read.

use phex::metrics::Spread;

pub(crate) use crate::markup::escape_markup as escape;

/// Stands in for a missing number.
pub(crate) const NOTHING: &str = "–";

/// The text of a tick, with as many digits as its step needs.
pub(crate) fn tick(value: f64, step: f64) -> String {
    let size = value.abs();
    if value == 0.0 && step >= 1.0 {
        return String::from("0");
    }
    if size >= 1e6 || step < 1e-5 {
        let power = |number: f64| (number.log10() + 1e-9).floor();
        let digits = (power(size.max(step)) - power(step)).clamp(0.0, 15.0) as usize;
        let text = format!("{value:.digits$e}");
        // Zeros at the end of the mantissa say nothing.
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = match mantissa.contains('.') {
            true => mantissa.trim_end_matches('0').trim_end_matches('.'),
            false => mantissa,
        };
        return format!("{mantissa}e{exponent}").replace('-', "−");
    }
    let digits = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.digits$}").replace('-', "−")
}

/// A result: four decimal places below one, four significant digits above.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        _ if !value.is_finite() => return nonfinite(value),
        _ if size == 0.0 => 0,
        _ if !(1e-3..1e7).contains(&size) => return format!("{value:.2e}").replace('-', "−"),
        _ if size < 1.0 => 4,
        _ => 3usize.saturating_sub(size.log10() as usize),
    };
    format!("{value:.digits$}").replace('-', "−")
}

/// A share such as F1, with three digits.
pub(crate) fn share(value: f64) -> String {
    if value.is_finite() { format!("{value:.3}").replace('-', "−") } else { nonfinite(value) }
}

/// A mean, and its standard deviation if there is one: `0.8120 ± 0.0041`.
pub(crate) fn spread(spread: &Spread) -> String {
    let mean = number(spread.mean);
    match spread.deviation {
        Some(deviation) if spread.mean.is_finite() => format!("{mean} ± {}", number(deviation)),
        _ => mean,
    }
}

fn nonfinite(value: f64) -> String {
    String::from(match value {
        _ if value.is_nan() => NOTHING,
        _ if value > 0.0 => "∞",
        _ => "−∞",
    })
}

/// A count with its thousands separated: `12 345`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            // A narrow space at which no line breaks.
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A text shortened to at most this many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(most.saturating_sub(1)).collect::<String>().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.81234, "0.8123"),
            (12.3456, "12.35"),
            (1.0, "1.000"),
            (123456.0, "123456"),
            (-0.5, "−0.5000"),
            (0.00012, "1.20e−4"),
            (0.0, "0"),
            (f64::NAN, NOTHING),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(12), "12");
        assert_eq!(cut("fine-tuning", 6), "fine-…");
        assert_eq!(cut("fine", 6), "fine");
        assert_eq!(tick(0.25, 0.05), "0.25");
        assert_eq!(tick(1e-6, 1e-6), "1e−6");
        assert_eq!(tick(0.001, 0.001), "0.001");
    }
}
