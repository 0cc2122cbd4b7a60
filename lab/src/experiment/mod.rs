//! Experiments: descriptions in TOML, of which those of the paper are built in.
//!
//! A description has the settings of the full run. Its table `quick` has the settings that the miniature changes.

mod command;
mod findings;
mod graphs;
mod inference;
mod reconcile;
mod relabelled;
mod speed;
mod wrong_edges;
mod zero_shot;

use std::path::Path;

use serde::Deserialize;

pub(crate) use command::{ExperimentCommand, run};
pub use findings::Findings;
use inference::InferenceSettings;
use reconcile::ReconcileSettings;
use relabelled::RelabelledSettings;
pub(crate) use relabelled::{HierarchyData, RelabelledData, Relations, RowSample};
use speed::SpeedSettings;
use wrong_edges::WrongEdgeSettings;
use zero_shot::ZeroShotSettings;

use crate::Error;
use crate::harness::JobQueue;
use crate::harness::data::read_text;

/// The built-in descriptions.
const BUILT_IN: [(&str, &str); 11] = [
    ("imagenet", include_str!("../../experiments/imagenet.toml")),
    ("cifar100", include_str!("../../experiments/cifar100.toml")),
    ("recipe-cifar100", include_str!("../../experiments/recipe_cifar100.toml")),
    ("recipe-imagenet", include_str!("../../experiments/recipe_imagenet.toml")),
    ("wrong-edges", include_str!("../../experiments/wrong_edges.toml")),
    ("awa", include_str!("../../experiments/awa.toml")),
    ("cub", include_str!("../../experiments/cub.toml")),
    ("apy", include_str!("../../experiments/apy.toml")),
    ("speed", include_str!("../../experiments/speed.toml")),
    ("inference", include_str!("../../experiments/inference.toml")),
    ("reconcile", include_str!("../../experiments/reconcile.toml")),
];

/// An experiment that can be run.
#[derive(Debug, Clone)]
pub struct Experiment {
    name: String,
    quick: bool,
    settings: ExperimentSettings,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum ExperimentSettings {
    Relabelled(RelabelledSettings),
    ZeroShot(ZeroShotSettings),
    Speed(SpeedSettings),
    Inference(InferenceSettings),
    Reconcile(ReconcileSettings),
    WrongEdges(WrongEdgeSettings),
}

impl Experiment {
    /// The names of the built-in experiments.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A built-in experiment, or the one of a TOML file.
    ///
    /// # Errors
    /// [`Error::Specification`] if there is none of this name or it is not well formed; [`Error::File`].
    pub fn load(name: &str, quick: bool) -> Result<Experiment, Error> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Experiment::parse(name, text, quick);
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|ending| ending != "toml") {
            let names: Vec<&str> = Experiment::names().collect();
            let message = format!(
                "no experiment has this name: choose one of {}, or a file that ends in .toml",
                names.join(", ")
            );
            return Err(Error::Specification { name: String::from(name), message });
        }
        let text = read_text(path)?;
        let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
        // Errors name the file; the experiment is named after it.
        let mut experiment = Experiment::parse(name, &text, quick)?;
        experiment.name = stem.into_owned();
        Ok(experiment)
    }

    /// The experiment that a TOML text describes.
    ///
    /// # Errors
    /// [`Error::Specification`] if it is not well formed.
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

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it on the data sets of a folder. A miniature uses generated data if its data set is missing.
    ///
    /// # Errors
    /// [`Error::NoData`], errors in the data, and errors of the runs.
    pub fn run(&self, data: &Path, queue: &JobQueue<'_>) -> Result<Findings, Error> {
        let found = match &self.settings {
            ExperimentSettings::Relabelled(settings) => {
                relabelled::run(settings, data, self.quick, queue)?
            }
            ExperimentSettings::ZeroShot(settings) => {
                zero_shot::run(settings, data, self.quick, queue)?
            }
            ExperimentSettings::Speed(settings) => speed::run(settings, data, self.quick, queue)?,
            ExperimentSettings::WrongEdges(settings) => {
                wrong_edges::run(settings, data, self.quick, queue)?
            }
            ExperimentSettings::Inference(settings) => {
                inference::run(settings, data, self.quick, queue)?
            }
            ExperimentSettings::Reconcile(settings) => {
                reconcile::run(settings, data, self.quick, queue)?
            }
        };
        Ok(Findings {
            name: self.name.clone(),
            quick: self.quick,
            version: String::from(env!("CARGO_PKG_VERSION")),
            // The last bits of a sum depend on the order of runs.
            core_seconds: (1e3 * queue.seconds()).round() / 1e3,
            ..found
        })
    }
}
