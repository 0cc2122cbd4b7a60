//! Evidence: what is observed about a label in a row.
//!
//! Files, arrays, tensors and GPU kernels all write evidence as **1 (on), 0 (off), −1 (unknown)**.
//! The two readers in this module are the only ones, and they reject every other value.

/// What is observed about a label in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(i8)]
pub enum Evidence {
    /// The label is on.
    On = 1,
    /// The label is off.
    Off = 0,
    /// There is no evidence.
    #[default]
    Unknown = -1,
}

impl Evidence {
    /// The allowed values, for error messages.
    pub const EXPECTED: &'static str = "write 1 (on), 0 (off) or -1 (unknown)";

    /// Reads a number: 1, 0, −1, or NaN for unknown. Returns `None` for any other number.
    pub fn from_number(number: f64) -> Option<Evidence> {
        match number {
            1.0 => Some(Evidence::On),
            0.0 => Some(Evidence::Off),
            -1.0 => Some(Evidence::Unknown),
            _ if number.is_nan() => Some(Evidence::Unknown),
            _ => None,
        }
    }

    /// Reads a text: a number as above, `on`, `off`, `true` or `false` in any case, or an empty
    /// text or `?` for unknown. Returns `None` for any other text.
    pub fn from_text(text: &str) -> Option<Evidence> {
        match text.trim() {
            "1" => Some(Evidence::On),
            "0" => Some(Evidence::Off),
            "" | "?" => Some(Evidence::Unknown),
            text if ["on", "true"].iter().any(|on| text.eq_ignore_ascii_case(on)) => {
                Some(Evidence::On)
            }
            text if ["off", "false"].iter().any(|off| text.eq_ignore_ascii_case(off)) => {
                Some(Evidence::Off)
            }
            text => Evidence::from_number(text.parse().ok()?),
        }
    }

    /// Evidence that a label is on or off.
    pub fn known(on: bool) -> Evidence {
        if on { Evidence::On } else { Evidence::Off }
    }

    /// Whether the label is on. `None` when it is unknown.
    pub fn is_on(self) -> Option<bool> {
        match self {
            Evidence::On => Some(true),
            Evidence::Off => Some(false),
            Evidence::Unknown => None,
        }
    }

    /// 1, 0 or −1.
    pub fn code(self) -> i8 {
        self as i8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_invert_the_codes_and_reject_everything_else() {
        for evidence in [Evidence::On, Evidence::Off, Evidence::Unknown] {
            assert_eq!(Evidence::from_number(f64::from(evidence.code())), Some(evidence));
            assert_eq!(Evidence::from_text(&evidence.code().to_string()), Some(evidence));
            assert_eq!(evidence.is_on().map_or(Evidence::Unknown, Evidence::known), evidence);
        }
        for number in [0.3, 2.0, -2.0, -100.0, f64::INFINITY] {
            assert_eq!(Evidence::from_number(number), None);
            assert_eq!(Evidence::from_text(&number.to_string()), None);
        }
        for (text, evidence) in
            [("On", Evidence::On), (" FALSE ", Evidence::Off), ("?", Evidence::Unknown)]
        {
            assert_eq!(Evidence::from_text(text), Some(evidence));
        }
        assert_eq!(Evidence::from_text("yes"), None);
    }
}
