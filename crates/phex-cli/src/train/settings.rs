//! From flags and a file to the choices of a user, and from settings back to flags.

use std::path::Path;

use anyhow::anyhow;
use phex_train::{Config, Error, TrainingChoices};
use serde_json::{Map, Value};

use crate::args::SettingArguments;

impl SettingArguments {
    /// What the user chose.
    pub(crate) fn choices(
        &self,
        seed: Option<u64>,
        validation_fraction: Option<f64>,
    ) -> anyhow::Result<TrainingChoices> {
        let settings = self.config.as_deref().map(read).transpose()?;
        Ok(TrainingChoices {
            settings: settings.unwrap_or_default(),
            objective: self.objective,
            loss: self.loss,
            strength: self.strength,
            curriculum: self.curriculum,
            stage_epochs: self.stage_epochs.map(|epochs| epochs.0),
            warm_up: self.warm_up,
            epochs: self.epochs,
            learn_strengths: self.learn_strengths,
            strength_folds: self.strength_folds,
            strength_prior: self.strength_prior,
            strength_rate: self.strength_rate,
            strength_every: self.strength_every,
            class_weights: self.class_weights.clone(),
            validation_fraction,
            metric: self.metric,
            patience: self.patience,
            all_rows: self.all_rows,
            hidden: self.hidden.clone().map(|widths| widths.0),
            dropout: self.dropout,
            input_dropout: self.input_dropout,
            norm: self.norm,
            start: self.start,
            prior: self.prior,
            feature_clip: self.feature_clip,
            inner_scale: self.inner_scale,
            leaf_share: self.leaf_share,
            optimiser: self.optimiser,
            momentum: self.momentum,
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            schedule: self.rate_schedule,
            batch: self.batch,
            average: self.average,
            clip: self.clip,
            seed,
        })
    }
}

fn read(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let name = || path.display().to_string();
    let text = phex_io::read_text(path)?;
    let wrong = |error: toml::de::Error| anyhow!("{}: {}", name(), error.to_string().trim());
    // First as complete settings, because errors then name the line.
    toml::from_str::<Config>(&text).map_err(wrong)?;
    toml::from_str(&text).map_err(wrong)
}

/// An error of training, with the flag of the setting that caused it.
pub(crate) fn with_flag(error: Error) -> anyhow::Error {
    let flag = match &error {
        Error::Setting { setting, .. } => flag(setting),
        Error::Labels { .. } => Some("--label-column, --label-file, --label-format"),
        _ => None,
    };
    match flag {
        Some(flag) => anyhow!("{error} ({flag})"),
        None => error.into(),
    }
}

fn flag(setting: &str) -> Option<&'static str> {
    Some(match setting {
        "head.hidden" => "--hidden",
        "head.dropout" => "--dropout",
        "head.input_dropout" => "--input-dropout",
        "head.feature_clip" => "--feature-clip",
        "head.start" => "--start",
        "head.inner_scale" => "--inner-scale",
        "stages.leaf_share" => "--leaf-share",
        "objective.loss" => "--loss, --objective",
        "optimiser.learning_rate" => "--learning-rate",
        "optimiser.weight_decay" => "--weight-decay",
        "optimiser.clip" => "--clip",
        "optimiser.batch" => "--batch",
        "optimiser.average" => "--average",
        "optimiser.schedule" => "--rate-schedule",
        "optimiser.momentum" => "--momentum, --optimiser",
        "stages" => "--epochs",
        "strengths" => "--learn-strengths",
        "strengths.prior" => "--strength-prior",
        "strengths.learning_rate" => "--strength-rate",
        "strengths.every" => "--strength-every",
        "strengths.folds" => "--strength-folds",
        "validation.all_rows" => "--all-rows",
        "validation.fraction" => "--validation-fraction",
        _ => return None,
    })
}
