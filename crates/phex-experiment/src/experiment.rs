//! The description of an experiment: a TOML file, those of the paper built in.
//!
//! A file has the settings of the full run and, in its table `quick`, those that its miniature changes.

use std::path::Path;

use serde::Deserialize;

use crate::error::read_text;
use crate::inference::{self, InferenceSettings};
use crate::relabelled::{self, RelabelledSettings};
use crate::speed::{self, SpeedSettings};
use crate::zero_shot::{self, ZeroShotSettings};
use crate::{Error, Outcome, Runner};

/// What comes with the program.
const BUILT_IN: [(&str, &str); 7] = [
    ("imagenet", include_str!("../../../experiments/imagenet.toml")),
    ("cifar100", include_str!("../../../experiments/cifar100.toml")),
    ("awa", include_str!("../../../experiments/awa.toml")),
    ("cub", include_str!("../../../experiments/cub.toml")),
    ("apy", include_str!("../../../experiments/apy.toml")),
    ("speed", include_str!("../../../experiments/speed.toml")),
    ("inference", include_str!("../../../experiments/inference.toml")),
];

/// An experiment that can be run.
#[derive(Debug, Clone)]
pub struct Experiment {
    name: String,
    quick: bool,
    settings: Settings,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Settings {
    Relabelled(RelabelledSettings),
    ZeroShot(ZeroShotSettings),
    Speed(SpeedSettings),
    Inference(InferenceSettings),
}

impl Experiment {
    /// The names of the experiments that are built in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// An experiment that is built in, or that of a TOML file.
    ///
    /// # Errors
    /// [`Error::Specification`] when there is none of this name or it is not well formed; [`Error::File`].
    pub fn load(name: &str, quick: bool) -> Result<Experiment, Error> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Experiment::parse(name, text, quick);
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|ending| ending != "toml") {
            let names: Vec<&str> = Experiment::names().collect();
            let message = format!(
                "no experiment has this name: take {}, or give a file that ends in .toml",
                names.join(", ")
            );
            return Err(Error::Specification { name: String::from(name), message });
        }
        let text = read_text(path)?;
        let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
        // What is wrong is told of the file, not of the name that it gives the experiment.
        let mut experiment = Experiment::parse(name, &text, quick)?;
        experiment.name = stem.into_owned();
        Ok(experiment)
    }

    /// The experiment of a text of TOML.
    ///
    /// # Errors
    /// [`Error::Specification`] when it is not well formed.
    pub fn parse(name: &str, text: &str, quick: bool) -> Result<Experiment, Error> {
        let wrong = |error: toml::de::Error| Error::Specification {
            name: String::from(name),
            message: String::from(error.to_string().trim()),
        };
        let mut table: toml::Table = text.parse().map_err(wrong)?;
        if let Some(toml::Value::Table(changes)) = table.remove("quick")
            && quick
        {
            table.extend(changes);
        }
        let settings = table.try_into().map_err(wrong)?;
        Ok(Experiment { name: String::from(name), quick, settings })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it on the data sets of a folder. A miniature whose data set is not there takes generated data.
    ///
    /// # Errors
    /// [`Error::NoData`], whatever is wrong with the data, and those of the runs.
    pub fn run(&self, data: &Path, runner: &Runner<'_>) -> Result<Outcome, Error> {
        let found = match &self.settings {
            Settings::Relabelled(settings) => relabelled::run(settings, data, self.quick, runner)?,
            Settings::ZeroShot(settings) => zero_shot::run(settings, data, self.quick, runner)?,
            Settings::Speed(settings) => speed::run(settings, data, self.quick, runner)?,
            Settings::Inference(settings) => inference::run(settings, data, self.quick, runner)?,
        };
        Ok(Outcome {
            name: self.name.clone(),
            quick: self.quick,
            version: String::from(env!("CARGO_PKG_VERSION")),
            // Sums depend on the order of runs by their last bits.
            core_seconds: (1e3 * runner.seconds()).round() / 1e3,
            ..found
        })
    }
}
