//! The strength of a relation: how much a violation costs.
//!
//! A strength is one number in three units: the cost `w`, the paper's Ising coefficient
//! `u = w / 4`, and the factor `q = exp(-w)` by which a violation multiplies the weight of a state.
//! `w = 0` means no relation, and `w = ∞` means a hard constraint.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The strength of a relation, in the unit in which it was given.
///
/// ```
/// use phex::graph::Strength;
/// let strength = Strength::U(0.5);
/// assert_eq!(strength.cost(), 2.0);
/// assert!((strength.factor() - (-2.0f64).exp()).abs() < 1e-15);
/// assert!(Strength::Q(0.0).is_hard());
/// assert_eq!(Strength::Hard.to_string(), "hard");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Strength {
    /// A violation is impossible.
    #[default]
    Hard,
    /// A violation multiplies the weight of a state by this factor, in `[0, 1]`.
    Q(f64),
    /// The paper's coefficient: a violation costs four times this, in `[0, ∞]`.
    U(f64),
    /// A violation costs this much log-weight, in `[0, ∞]`.
    W(f64),
}

impl Strength {
    /// The cost `w` of a violation: 0 for no relation, infinite for a hard one.
    pub fn cost(self) -> f64 {
        match self {
            Strength::Hard => f64::INFINITY,
            // `0.0 -` and not a unary minus, so that q = 1 gives 0 and not -0.
            Strength::Q(q) => 0.0 - q.ln(),
            Strength::U(u) => 4.0 * u,
            Strength::W(w) => w,
        }
    }

    /// The factor `q = exp(-w)`: 1 for no relation, 0 for a hard one.
    pub fn factor(self) -> f64 {
        match self {
            Strength::Hard => 0.0,
            Strength::Q(q) => q,
            other => (-other.cost()).exp(),
        }
    }

    /// Whether a violation is impossible.
    pub fn is_hard(self) -> bool {
        self.cost() == f64::INFINITY
    }

    /// Whether both strengths cost the same, whatever their units.
    pub fn same_cost(self, other: Strength) -> bool {
        self.cost() == other.cost()
    }

    /// What is wrong with the number, if anything. `q` must be in `[0, 1]`, `u` and `w` in
    /// `[0, ∞]`, and none may be NaN.
    pub fn fault(self) -> Option<String> {
        let (unit, value, most) = match self {
            Strength::Hard => return None,
            Strength::Q(q) => ("q", q, 1.0),
            Strength::U(u) => ("u", u, f64::INFINITY),
            Strength::W(w) => ("w", w, f64::INFINITY),
        };
        if (0.0..=most).contains(&value) {
            return None;
        }
        let range = if most == 1.0 { "between 0 (hard) and 1 (no relation)" } else { "0 or more" };
        Some(format!("{unit} = {value} is out of range: {unit} must be {range}"))
    }

    /// Reads `hard`, an empty text (which also means hard), or a number such as `q=0.1`, `u = 0.5`,
    /// `w=2`.
    ///
    /// ```
    /// use phex::graph::Strength;
    /// assert_eq!(Strength::parse("u=0.5"), Ok(Strength::U(0.5)));
    /// assert_eq!(Strength::parse(""), Ok(Strength::Hard));
    /// assert!(Strength::parse("strong").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Strength, String> {
        let text = text.trim();
        if text.is_empty() || text.eq_ignore_ascii_case("hard") {
            return Ok(Strength::Hard);
        }
        let wrong =
            || format!("`{text}` is not a strength: write `hard`, `q=0.1`, `u=0.5` or `w=2`");
        let (unit, value) = text.split_once('=').ok_or_else(wrong)?;
        let value: f64 = value.trim().parse().map_err(|_| wrong())?;
        match unit.trim() {
            "q" => Ok(Strength::Q(value)),
            "u" => Ok(Strength::U(value)),
            "w" => Ok(Strength::W(value)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strength::Hard => f.write_str("hard"),
            Strength::Q(q) => write!(f, "q={q}"),
            Strength::U(u) => write!(f, "u={u}"),
            Strength::W(w) => write!(f, "w={w}"),
        }
    }
}

impl std::str::FromStr for Strength {
    type Err = String;

    fn from_str(text: &str) -> Result<Strength, String> {
        Strength::parse(text)
    }
}

/// The written form: `"hard"` or a table with one of the keys `q`, `u`, `w`.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Strength")]
enum StrengthText {
    HardWord(HardWord),
    StrengthUnit(StrengthUnit),
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum HardWord {
    Hard,
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StrengthUnit {
    Q(f64),
    U(f64),
    W(f64),
}

impl Serialize for Strength {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // JSON has no infinity, so an infinite cost is written as the word `hard`.
        match *self {
            Strength::Hard => StrengthText::HardWord(HardWord::Hard),
            Strength::Q(q) => StrengthText::StrengthUnit(StrengthUnit::Q(q)),
            infinite if infinite.is_hard() => StrengthText::HardWord(HardWord::Hard),
            Strength::U(u) => StrengthText::StrengthUnit(StrengthUnit::U(u)),
            Strength::W(w) => StrengthText::StrengthUnit(StrengthUnit::W(w)),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Strength {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Strength, D::Error> {
        let written = StrengthText::deserialize(deserializer).map_err(|_| {
            serde::de::Error::custom(
                "a strength is \"hard\" or a table with one number: { q = 0.1 }, { u = 0.5 } or { w = 2 }",
            )
        })?;
        Ok(match written {
            StrengthText::HardWord(HardWord::Hard) => Strength::Hard,
            StrengthText::StrengthUnit(StrengthUnit::Q(q)) => Strength::Q(q),
            StrengthText::StrengthUnit(StrengthUnit::U(u)) => Strength::U(u),
            StrengthText::StrengthUnit(StrengthUnit::W(w)) => Strength::W(w),
        })
    }
}

impl schemars::JsonSchema for Strength {
    fn schema_name() -> Cow<'static, str> {
        "Strength".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        StrengthText::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_units_are_equivalent() {
        for cost in [0.0, 0.1, 1.0, 7.5] {
            let strengths =
                [Strength::W(cost), Strength::U(cost / 4.0), Strength::Q((-cost).exp())];
            for strength in strengths {
                assert!((strength.cost() - cost).abs() < 1e-12, "{strength}");
                assert!((strength.factor() - (-cost).exp()).abs() < 1e-15, "{strength}");
                assert!(strength.fault().is_none());
            }
        }
        assert!(Strength::Q(1.0).cost().is_sign_positive());
        assert_eq!(Strength::U(f64::INFINITY).factor(), 0.0);
    }

    #[test]
    fn messages_name_the_unit_and_the_range() {
        assert!(Strength::Q(1.5).fault().unwrap().contains("between 0 (hard) and 1"));
        assert!(Strength::U(-1.0).fault().unwrap().contains("u = -1"));
        assert!(Strength::W(f64::NAN).fault().is_some());
        assert!(Strength::W(f64::INFINITY).fault().is_none());
    }

    #[test]
    fn text_and_json_round_trip() {
        for strength in [Strength::Hard, Strength::Q(0.25), Strength::U(0.5), Strength::W(3.0)] {
            assert_eq!(Strength::parse(&strength.to_string()), Ok(strength));
            let json = serde_json::to_string(&strength).unwrap();
            assert_eq!(serde_json::from_str::<Strength>(&json).unwrap(), strength);
        }
        assert_eq!(serde_json::to_string(&Strength::W(f64::INFINITY)).unwrap(), "\"hard\"");
        assert!(serde_json::from_str::<Strength>("\"strong\"").is_err());
        assert!(serde_json::from_str::<Strength>("{\"q\": 0.1, \"u\": 2}").is_err());
    }
}
