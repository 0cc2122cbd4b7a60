//! What a cell of a table may hold: a score, or on, off or unknown.

use phex::infer::Evidence;

/// A value of a cell.
pub(crate) trait Cell: Copy {
    /// What a table without this cell says: not a number, or unknown.
    const MISSING: Self;
    /// What a cell may hold, for messages.
    const EXPECTED: &'static str;

    /// The value of a number; none when it may not be there.
    fn from_number(number: f64) -> Option<Self>;

    /// The value of text; none when it may not be there.
    fn from_text(text: &str) -> Option<Self>;
}

macro_rules! score {
    ($type:ident) => {
        impl Cell for $type {
            const MISSING: $type = $type::NAN;
            const EXPECTED: &'static str = "a score is a number, or `nan` where there is none";

            #[inline]
            fn from_number(number: f64) -> Option<$type> {
                Some(number as $type)
            }

            #[inline]
            fn from_text(text: &str) -> Option<$type> {
                text.trim().parse().ok()
            }
        }
    };
}

score!(f32);
score!(f64);

impl Cell for Evidence {
    const MISSING: Evidence = Evidence::Unknown;
    const EXPECTED: &'static str = "a cell is 1 (on), 0 (off), or empty, -1 or nan (unknown)";

    #[inline]
    fn from_number(number: f64) -> Option<Evidence> {
        Evidence::from_number(number)
    }

    fn from_text(text: &str) -> Option<Evidence> {
        Evidence::from_text(text)
    }
}

/// The number in sixteen bits: sign, 5 bits of exponent, 10 of fraction.
pub(crate) fn half_to_f64(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_from_words_and_numbers() {
        for text in ["1", " on", "TRUE", "1.0", "True"] {
            assert_eq!(Evidence::from_text(text), Some(Evidence::On), "{text}");
        }
        for text in ["0", "off ", "false", "0.0", "-0"] {
            assert_eq!(Evidence::from_text(text), Some(Evidence::Off), "{text}");
        }
        for text in ["", " ", "?", "nan", "NaN", "-1", "-1.0"] {
            assert_eq!(Evidence::from_text(text), Some(Evidence::Unknown), "{text}");
        }
        for text in ["2", "0.5", "yes", "inf", "1 1"] {
            assert_eq!(Evidence::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn scores_are_read_from_text() {
        assert_eq!(f64::from_text(" -1.5e3 "), Some(-1500.0));
        assert_eq!(f64::from_text("-Inf"), Some(f64::NEG_INFINITY));
        assert!(f64::from_text("nan").is_some_and(f64::is_nan));
        for text in ["", "  ", "NA", "1,5", "0x10"] {
            assert_eq!(f64::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn halves_are_known_values() {
        let cases = [
            (0x0000, 0.0),
            (0x0001, 5.960_464_477_539_063e-8),
            (0x03ff, 6.097_555_160_522_461e-5),
            (0x0400, 6.103_515_625e-5),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0xfc00, f64::NEG_INFINITY),
            (0x3555, 0.333_251_953_125),
        ];
        for (bits, value) in cases {
            assert_eq!(half_to_f64(bits), value, "{bits:#x}");
        }
        assert!(half_to_f64(0x7e00).is_nan());
        assert!(half_to_f64(0x8000).is_sign_negative());
    }
}
