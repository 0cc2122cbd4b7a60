//! Settings of training and decisions that are more than a number or a name.

use std::str::FromStr;

use phex::decide::{Classes, Decision};
use phex_train::{RateSchedule, Start, StrengthSetting};

use super::numbers::{damping, finite, tolerance};

/// The widths of hidden layers: `500,500`, or `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Widths(pub(crate) Vec<usize>);

impl FromStr for Widths {
    type Err = String;

    fn from_str(text: &str) -> Result<Widths, String> {
        if text == "none" {
            return Ok(Widths(Vec::new()));
        }
        let width = |part: &str| part.trim().parse().ok().filter(|width| *width > 0);
        let widths: Option<Vec<usize>> = text.split(',').map(width).collect();
        widths.map(Widths).ok_or_else(|| String::from("write widths such as `500,500`, or `none`"))
    }
}

/// One kind of relations first, then the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Curriculum {
    None,
    HardToSoft(f64),
    SoftToHard(f64),
}

impl FromStr for Curriculum {
    type Err = String;

    fn from_str(text: &str) -> Result<Curriculum, String> {
        let strength = |u: &str| finite(u).map_err(|error| format!("`{text}`: {error}"));
        match text.split_once('=') {
            None if text == "none" => Ok(Curriculum::None),
            Some(("hard-to-soft", u)) => Ok(Curriculum::HardToSoft(strength(u)?)),
            Some(("soft-to-hard", u)) => Ok(Curriculum::SoftToHard(strength(u)?)),
            _ => Err(String::from("write `none`, `hard-to-soft=0.5` or `soft-to-hard=0.5`")),
        }
    }
}

/// How long to train on the rows with a known leaf alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarmUp {
    /// As many steps as one pass over all rows takes, where some rows know no leaf.
    Auto,
    Epochs(usize),
}

impl FromStr for WarmUp {
    type Err = String;

    fn from_str(text: &str) -> Result<WarmUp, String> {
        match text.parse() {
            Ok(epochs) => Ok(WarmUp::Epochs(epochs)),
            Err(_) if text == "auto" => Ok(WarmUp::Auto),
            Err(_) => Err(String::from("write a number of epochs, or `auto`")),
        }
    }
}

/// The epochs of the two stages of a curriculum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StageEpochs(pub(crate) usize, pub(crate) usize);

impl FromStr for StageEpochs {
    type Err = String;

    fn from_str(text: &str) -> Result<StageEpochs, String> {
        let number = |part: &str| part.trim().parse().ok().filter(|epochs| *epochs > 0);
        let both = text.split_once(',').and_then(|(a, b)| number(a).zip(number(b)));
        both.map(|(first, second)| StageEpochs(first, second))
            .ok_or_else(|| String::from("write two numbers of epochs, such as `10,20`"))
    }
}

/// Strengths with commas between them, each once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grid(pub(crate) Vec<StrengthSetting>);

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Grid, String> {
        let mut settings: Vec<StrengthSetting> = Vec::new();
        for part in text.split(',') {
            let setting = part.parse()?;
            if settings.contains(&setting) {
                return Err(format!("`{setting}` is there twice"));
            }
            settings.push(setting);
        }
        Ok(Grid(settings))
    }
}

pub(super) fn start(text: &str) -> Result<Start, String> {
    match text.split_once('=') {
        None if text == "zero" => Ok(Start::Zero),
        None if text == "uniform" => Ok(Start::Uniform),
        Some(("normal", deviation)) => Ok(Start::Normal(tolerance(deviation)?)),
        _ => Err(String::from("write `zero`, `uniform` or `normal=0.1`")),
    }
}

pub(super) fn schedule(text: &str) -> Result<RateSchedule, String> {
    match text.split_once('=') {
        None if text == "constant" => Ok(RateSchedule::Constant),
        None if text == "cosine" => Ok(RateSchedule::Cosine { warm_up: 0.0 }),
        None if text == "linear" => Ok(RateSchedule::Linear { warm_up: 0.0 }),
        Some(("cosine", part)) => Ok(RateSchedule::Cosine { warm_up: damping(part)? }),
        Some(("linear", part)) => Ok(RateSchedule::Linear { warm_up: damping(part)? }),
        Some(("step", both)) => {
            let both = both.split_once(',').and_then(|(every, factor)| {
                every.trim().parse().ok().filter(|every| *every > 0).zip(factor.trim().parse().ok())
            });
            match both {
                Some((every, factor)) if factor > 0.0 && factor <= 1.0 => {
                    Ok(RateSchedule::Step { every, factor })
                }
                _ => Err(String::from("write `step=10,0.5`: every 10 epochs times 0.5")),
            }
        }
        _ => Err(String::from("write `constant`, `cosine`, `linear=0.1` or `step=10,0.5`")),
    }
}

pub(super) fn decision(text: &str) -> Result<Decision, String> {
    let probability = |text: &str| match text.parse() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err(String::from("a number from 0 to 1 is needed")),
    };
    match text.split_once('=') {
        None if text == "threshold" => Ok(Decision::default()),
        None if text == "best" => Ok(Decision::Best { among: Classes::Leaves }),
        None if text == "consistent" => Ok(Decision::Consistent),
        Some(("threshold", at)) => Ok(Decision::Threshold { at: probability(at)? }),
        Some(("best", group)) => Ok(Decision::Best { among: classes(group)? }),
        Some(("back-off", at)) => Ok(Decision::BackOff { confidence: probability(at)? }),
        _ => Err(String::from(
            "write `threshold=0.5`, `best`, `best=GROUP`, `back-off=0.9` or `consistent`",
        )),
    }
}

/// `leaves`, `all`, or the name of a one-of group.
pub(super) fn classes(text: &str) -> Result<Classes, String> {
    match text {
        "" => Err(String::from("write `leaves`, `all` or the name of a one-of group")),
        "leaves" => Ok(Classes::Leaves),
        "all" => Ok(Classes::All),
        group => Ok(Classes::Group(group.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_faults_are_told() {
        assert_eq!("500, 20".parse(), Ok(Widths(vec![500, 20])));
        assert_eq!("none".parse(), Ok(Widths(Vec::new())));
        assert!("5,0".parse::<Widths>().is_err());
        assert_eq!("auto".parse(), Ok(WarmUp::Auto));
        assert_eq!("0".parse(), Ok(WarmUp::Epochs(0)));
        assert!("-1".parse::<WarmUp>().is_err());
        assert_eq!("hard-to-soft=0.5".parse(), Ok(Curriculum::HardToSoft(0.5)));
        assert!("hard-to-soft=-1".parse::<Curriculum>().unwrap_err().contains("above 0"));
        assert!("soft".parse::<Curriculum>().is_err());
        assert_eq!("3,4".parse(), Ok(StageEpochs(3, 4)));
        assert!("3".parse::<StageEpochs>().is_err());
        assert_eq!("hard,u=1".parse::<Grid>().unwrap().0.len(), 2);
        assert!("u=1,u=1".parse::<Grid>().unwrap_err().contains("twice"));
        assert!("u=1,,".parse::<Grid>().is_err());
        assert_eq!(start("normal=0.1"), Ok(Start::Normal(0.1)));
        assert!(start("normal=x").is_err());
        assert_eq!(schedule("linear=0.1"), Ok(RateSchedule::Linear { warm_up: 0.1 }));
        assert_eq!(schedule("step=10,0.5"), Ok(RateSchedule::Step { every: 10, factor: 0.5 }));
        assert!(schedule("step=10").is_err());
        assert_eq!(decision("back-off=0.9"), Ok(Decision::BackOff { confidence: 0.9 }));
        assert_eq!(
            decision("best=size"),
            Ok(Decision::Best { among: Classes::Group(String::from("size")) })
        );
        assert!(decision("threshold=2").is_err());
    }
}
