//! Lists and decisions as they are typed.

use std::str::FromStr;

use phex::decide::{Classes, Decision};
use phex_train::StrengthSetting;

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

/// The epochs of the two stages of a curriculum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StageEpochs(pub(crate) [usize; 2]);

impl FromStr for StageEpochs {
    type Err = String;

    fn from_str(text: &str) -> Result<StageEpochs, String> {
        let number = |part: &str| part.trim().parse().ok().filter(|epochs| *epochs > 0);
        let both = text.split_once(',').and_then(|(a, b)| number(a).zip(number(b)));
        both.map(|(first, second)| StageEpochs([first, second]))
            .ok_or_else(|| String::from("write two numbers of epochs, such as `10,20`"))
    }
}

/// Strengths separated by commas, each once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StrengthGrid(pub(crate) Vec<StrengthSetting>);

impl FromStr for StrengthGrid {
    type Err = String;

    fn from_str(text: &str) -> Result<StrengthGrid, String> {
        let mut settings: Vec<StrengthSetting> = Vec::new();
        for part in text.split(',') {
            let setting = part.parse()?;
            if settings.contains(&setting) {
                return Err(format!("`{setting}` is given twice"));
            }
            settings.push(setting);
        }
        Ok(StrengthGrid(settings))
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
    fn lists_and_decisions_are_read_and_faults_are_reported() {
        assert_eq!("500, 20".parse(), Ok(Widths(vec![500, 20])));
        assert_eq!("none".parse(), Ok(Widths(Vec::new())));
        assert!("5,0".parse::<Widths>().is_err());
        assert_eq!("3,4".parse(), Ok(StageEpochs([3, 4])));
        assert!("3".parse::<StageEpochs>().is_err());
        assert_eq!("hard,u=1".parse::<StrengthGrid>().unwrap().0.len(), 2);
        assert!("u=1,u=1".parse::<StrengthGrid>().unwrap_err().contains("twice"));
        assert!("u=1,,".parse::<StrengthGrid>().is_err());
        assert_eq!(decision("back-off=0.9"), Ok(Decision::BackOff { confidence: 0.9 }));
        assert_eq!(
            decision("best=size"),
            Ok(Decision::Best { among: Classes::Group(String::from("size")) })
        );
        assert!(decision("threshold=2").is_err());
    }
}
