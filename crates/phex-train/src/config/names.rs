//! Reads and writes settings as text, for every front end.

use std::fmt;
use std::str::FromStr;

use phex::graph::Strength;

use super::{
    ClassWeights, Curriculum, Metric, Norm, ObjectiveConfig, RateSchedule, Start, StrengthSetting,
    UpdateRule, WarmUp,
};
use crate::recipe::Recipe;

/// Reads, writes and lists a closed set of names.
macro_rules! names {
    ($type:ty, $what:literal, $($pattern:pat => $name:literal = $value:expr),+ $(,)?) => {
        impl $type {
            /// All names.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<$type, String> {
                match text {
                    $($name => Ok($value),)+
                    _ => Err(unknown(text, $what, Self::NAMES)),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($pattern => $name),+ })
            }
        }
    };
}

fn unknown(text: &str, what: &str, names: &[&str]) -> String {
    format!("`{text}` is not {what}: write one of {}", names.join(", "))
}

names!(Norm, "a normalisation",
    Norm::None => "none" = Norm::None,
    Norm::Batch => "batch" = Norm::Batch,
    Norm::Layer => "layer" = Norm::Layer,
);

names!(Metric, "a metric",
    Metric::Loss => "loss" = Metric::Loss,
    Metric::Accuracy => "accuracy" = Metric::Accuracy,
    Metric::AuPrc => "au-prc" = Metric::AuPrc,
);

names!(ObjectiveConfig, "an objective",
    ObjectiveConfig::Relations { .. } => "relations" = ObjectiveConfig::default(),
    ObjectiveConfig::Independent => "independent" = ObjectiveConfig::Independent,
    ObjectiveConfig::Softmax { coarse: false } => "softmax" = ObjectiveConfig::Softmax { coarse: false },
    ObjectiveConfig::Softmax { coarse: true } => "softmax-coarse" = ObjectiveConfig::Softmax { coarse: true },
    ObjectiveConfig::MaxConstraint => "max-constraint" = ObjectiveConfig::MaxConstraint,
);

names!(UpdateRule, "an optimiser",
    UpdateRule::AdamW { .. } => "adamw" = Recipe::STANDARD.rule,
    UpdateRule::Sgd { .. } => "sgd" = UpdateRule::Sgd { momentum: Recipe::STANDARD.momentum },
);

impl Metric {
    /// The name in settings and results.
    pub fn name(self) -> &'static str {
        Metric::NAMES[self as usize]
    }
}

impl ClassWeights {
    /// The names of those that are not given label by label.
    pub const NAMES: &'static [&'static str] = &["none", "balanced"];
}

impl FromStr for ClassWeights {
    type Err = String;

    fn from_str(text: &str) -> Result<ClassWeights, String> {
        match text {
            "none" => Ok(ClassWeights::None),
            "balanced" => Ok(ClassWeights::Balanced),
            _ => Err(unknown(text, "a choice of class weights", ClassWeights::NAMES)),
        }
    }
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Start, String> {
        match (text, text.split_once('=')) {
            ("zero", _) => Ok(Start::Zero),
            ("uniform", _) => Ok(Start::Uniform),
            (_, Some(("normal", deviation))) => Ok(Start::Normal(number(text, deviation)?)),
            _ => Err(format!("`{text}` is not a start: write `zero`, `uniform` or `normal=0.1`")),
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Start::Zero => f.write_str("zero"),
            Start::Uniform => f.write_str("uniform"),
            Start::Normal(deviation) => write!(f, "normal={deviation}"),
        }
    }
}

impl FromStr for RateSchedule {
    type Err = String;

    fn from_str(text: &str) -> Result<RateSchedule, String> {
        let forms = "write `constant`, `cosine`, `linear=0.1` or `step=10,0.5`";
        let wrong = || format!("`{text}` is not a rate schedule: {forms}");
        match (text, text.split_once('=')) {
            ("constant", _) => Ok(RateSchedule::Constant),
            ("cosine", _) => Ok(RateSchedule::Cosine { warm_up: 0.0 }),
            ("linear", _) => Ok(RateSchedule::Linear { warm_up: 0.0 }),
            (_, Some(("cosine", part))) => {
                Ok(RateSchedule::Cosine { warm_up: number(text, part)? })
            }
            (_, Some(("linear", part))) => {
                Ok(RateSchedule::Linear { warm_up: number(text, part)? })
            }
            (_, Some(("step", both))) => {
                let (every, factor) = both.split_once(',').ok_or_else(wrong)?;
                let every = every.trim().parse().map_err(|_| wrong())?;
                Ok(RateSchedule::Step { every, factor: number(text, factor)? })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for RateSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RateSchedule::Constant => f.write_str("constant"),
            RateSchedule::Cosine { warm_up: 0.0 } => f.write_str("cosine"),
            RateSchedule::Linear { warm_up: 0.0 } => f.write_str("linear"),
            RateSchedule::Cosine { warm_up } => write!(f, "cosine={warm_up}"),
            RateSchedule::Linear { warm_up } => write!(f, "linear={warm_up}"),
            RateSchedule::Step { every, factor } => write!(f, "step={every},{factor}"),
        }
    }
}

impl FromStr for Curriculum {
    type Err = String;

    fn from_str(text: &str) -> Result<Curriculum, String> {
        let strength = |u: &str| match number(text, u)? {
            u if u > 0.0 && u.is_finite() => Ok(u),
            _ => Err(format!("`{text}`: a number above 0 is needed")),
        };
        match (text, text.split_once('=')) {
            ("none", _) => Ok(Curriculum::None),
            (_, Some(("hard-to-soft", u))) => Ok(Curriculum::HardToSoft(strength(u)?)),
            (_, Some(("soft-to-hard", u))) => Ok(Curriculum::SoftToHard(strength(u)?)),
            _ => Err(format!(
                "`{text}` is not a curriculum: write `none`, `hard-to-soft=0.5` or `soft-to-hard=0.5`"
            )),
        }
    }
}

impl FromStr for WarmUp {
    type Err = String;

    fn from_str(text: &str) -> Result<WarmUp, String> {
        match text.parse() {
            Ok(epochs) => Ok(WarmUp::Epochs(epochs)),
            Err(_) if text == "auto" => Ok(WarmUp::Auto),
            Err(_) => {
                Err(format!("`{text}` is not a warm-up: write a number of epochs, or `auto`"))
            }
        }
    }
}

impl fmt::Display for StrengthSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrengthSetting::Given => f.write_str("given"),
            StrengthSetting::All(strength) => strength.fmt(f),
            StrengthSetting::Scale(factor) => write!(f, "scale={factor}"),
        }
    }
}

impl FromStr for StrengthSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<StrengthSetting, String> {
        let text = text.trim();
        if text == "given" {
            return Ok(StrengthSetting::Given);
        }
        if let Some(factor) = text.strip_prefix("scale=") {
            return match factor.parse() {
                Ok(factor) if (0.0..f64::INFINITY).contains(&factor) => {
                    Ok(StrengthSetting::Scale(factor))
                }
                _ => Err(format!("`{text}`: a scale is a number of 0 or more")),
            };
        }
        let forms = "write `given`, `hard`, `u=0.5`, `q=0.1`, `w=2` or `scale=2`";
        let strength =
            Strength::parse(text).map_err(|_| format!("`{text}` is not a strength: {forms}"))?;
        match strength.fault() {
            None if !text.is_empty() => Ok(StrengthSetting::All(strength)),
            None => Err(format!("the strength is empty: {forms}")),
            Some(fault) => Err(fault),
        }
    }
}

impl TryFrom<String> for StrengthSetting {
    type Error = String;

    fn try_from(text: String) -> Result<StrengthSetting, String> {
        text.parse()
    }
}

impl From<StrengthSetting> for String {
    fn from(setting: StrengthSetting) -> String {
        setting.to_string()
    }
}

fn number(text: &str, part: &str) -> Result<f64, String> {
    part.trim().parse().map_err(|_| format!("`{text}`: `{}` is not a number", part.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_are_written() {
        assert_eq!("auto".parse(), Ok(WarmUp::Auto));
        assert_eq!("0".parse(), Ok(WarmUp::Epochs(0)));
        assert!("-1".parse::<WarmUp>().is_err());
        assert_eq!("hard-to-soft=0.5".parse(), Ok(Curriculum::HardToSoft(0.5)));
        assert!("hard-to-soft=-1".parse::<Curriculum>().unwrap_err().contains("above 0"));
        assert!("soft".parse::<Curriculum>().is_err());
        assert_eq!("normal=0.1".parse(), Ok(Start::Normal(0.1)));
        assert!("normal=x".parse::<Start>().is_err());
        assert_eq!("linear=0.1".parse(), Ok(RateSchedule::Linear { warm_up: 0.1 }));
        assert!("step=10".parse::<RateSchedule>().is_err());
        for text in ["constant", "cosine", "cosine=0.1", "linear=0.2", "step=10,0.5"] {
            assert_eq!(text.parse::<RateSchedule>().unwrap().to_string(), text);
        }
        for name in Metric::NAMES {
            assert_eq!(name.parse::<Metric>().unwrap().name(), *name);
            // The names of text and of JSON are the same.
            let json = serde_json::to_string(&name.parse::<Metric>().unwrap()).unwrap();
            assert_eq!(json, format!("\"{name}\""));
        }
        for name in Norm::NAMES {
            let json = serde_json::to_string(&name.parse::<Norm>().unwrap()).unwrap();
            assert_eq!(json, format!("\"{name}\""));
        }
        for name in ObjectiveConfig::NAMES {
            assert_eq!(name.parse::<ObjectiveConfig>().unwrap().to_string(), *name);
        }
        let error = "bach".parse::<Norm>().unwrap_err();
        assert_eq!(error, "`bach` is not a normalisation: write one of none, batch, layer");
    }
}
