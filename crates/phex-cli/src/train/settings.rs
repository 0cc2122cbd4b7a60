//! From flags and a file to the settings of a run.

use std::path::Path;

use anyhow::{Context as _, bail};
use phex::graph::{RelationGraph, Strength};
use phex::learn::{Loss, Tie};
use phex_io::Dataset;
use phex_train::{
    ClassWeights, Config, Examples, ObjectiveConfig, RateSchedule, RowChoice, Rule, Stage,
    StrengthConfig, StrengthSetting,
};

use crate::args::{
    Curriculum, LossName, ObjectiveName, OptimiserName, SettingArguments, StageEpochs, TieName,
    WarmUp, WeightsName,
};

impl SettingArguments {
    /// The settings of a run, checked.
    pub(crate) fn config(
        &self,
        seed: Option<u64>,
        validation_fraction: Option<f64>,
    ) -> anyhow::Result<Config> {
        let mut config = match &self.config {
            Some(path) => read(path)?,
            None => Config::default(),
        };
        self.head(&mut config);
        self.optimiser(&mut config)?;
        config.objective = self.objective(config.objective)?;
        config.stages = self.stages(config.stages)?;
        config.strengths = self.strengths(config.strengths)?;
        let validation = &mut config.validation;
        validation.fraction = validation_fraction.unwrap_or(validation.fraction);
        validation.metric = self.metric.map_or(validation.metric, Into::into);
        validation.patience = self.patience.unwrap_or(validation.patience);
        match self.class_weights {
            Some(WeightsName::None) => config.class_weights = ClassWeights::None,
            Some(WeightsName::Balanced) => config.class_weights = ClassWeights::Balanced,
            None => {}
        }
        config.seed = seed.unwrap_or(config.seed);
        config.check()?;
        Ok(config)
    }

    fn head(&self, config: &mut Config) {
        let head = &mut config.head;
        if let Some(widths) = &self.hidden {
            head.hidden.clone_from(&widths.0);
        }
        head.dropout = self.dropout.unwrap_or(head.dropout);
        head.input_dropout = self.input_dropout.unwrap_or(head.input_dropout);
        head.norm = self.norm.map_or(head.norm, Into::into);
        head.start = self.start.unwrap_or(head.start);
        head.prior |= self.prior;
        head.feature_clip = self.feature_clip.unwrap_or(head.feature_clip);
    }

    fn optimiser(&self, config: &mut Config) -> anyhow::Result<()> {
        let optimiser = &mut config.optimiser;
        match (self.optimiser, optimiser.rule) {
            (Some(OptimiserName::AdamW), Rule::Sgd { .. }) => optimiser.rule = Rule::default(),
            (Some(OptimiserName::Sgd), Rule::AdamW { .. }) => {
                optimiser.rule = Rule::Sgd { momentum: 0.9 };
            }
            _ => {}
        }
        match (self.momentum, &mut optimiser.rule) {
            (Some(given), Rule::Sgd { momentum }) => *momentum = given,
            (Some(_), _) => bail!("--momentum is for --optimiser sgd"),
            (None, _) => {}
        }
        optimiser.learning_rate = self.learning_rate.unwrap_or(optimiser.learning_rate);
        optimiser.weight_decay = self.weight_decay.unwrap_or(optimiser.weight_decay);
        // What the experiments with relabelled rows recommend; a file of settings says what it wants.
        let usual = match &self.config {
            None => RateSchedule::Cosine { warm_up: 0.0 },
            Some(_) => optimiser.schedule,
        };
        optimiser.schedule = self.rate_schedule.unwrap_or(usual);
        optimiser.batch = self.batch.unwrap_or(optimiser.batch);
        optimiser.average = self.average.unwrap_or(optimiser.average);
        optimiser.clip = self.clip.unwrap_or(optimiser.clip);
        Ok(())
    }

    fn objective(&self, known: ObjectiveConfig) -> anyhow::Result<ObjectiveConfig> {
        let mut objective = match self.objective {
            None => known,
            Some(ObjectiveName::Relations) => match known {
                ObjectiveConfig::Relations { .. } => known,
                _ => ObjectiveConfig::default(),
            },
            Some(ObjectiveName::Independent) => ObjectiveConfig::Independent,
            Some(ObjectiveName::Softmax) => ObjectiveConfig::Softmax { coarse: false },
            Some(ObjectiveName::SoftmaxCoarse) => ObjectiveConfig::Softmax { coarse: true },
            Some(ObjectiveName::MaxConstraint) => ObjectiveConfig::MaxConstraint,
        };
        match (self.loss, &mut objective) {
            (Some(name), ObjectiveConfig::Relations { loss }) => {
                *loss = match name {
                    LossName::Joint => Loss::Joint,
                    LossName::Marginal => Loss::Marginal,
                };
            }
            (Some(_), _) => bail!("--loss is for --objective relations: the others have their own"),
            (None, _) => {}
        }
        Ok(objective)
    }

    /// The settings with the warm-up that these data ask for, where it is left to them.
    pub(crate) fn warmed_up(
        &self,
        config: Config,
        data: &Dataset,
        graph: &RelationGraph,
    ) -> anyhow::Result<Config> {
        let relations = matches!(config.objective, ObjectiveConfig::Relations { .. });
        let left = self.config.is_none() && self.curriculum.is_none() && relations;
        if self.warm_up == Some(WarmUp::Auto) || self.warm_up.is_none() && left {
            let examples = Examples::new(&data.features, crate::data::targets(data)?, graph)?;
            return Ok(config.with_warm_up(&examples, graph));
        }
        Ok(config)
    }

    /// Flags on single stages change the last one; a curriculum or a warm-up replaces them all.
    fn stages(&self, mut stages: Vec<Stage>) -> anyhow::Result<Vec<Stage>> {
        let mut last = stages.pop().unwrap_or_default();
        last.epochs = self.epochs.unwrap_or(last.epochs);
        last.strength = self.strength.unwrap_or(last.strength);
        if self.curriculum.is_none() && self.warm_up.is_none() {
            stages.push(last);
            return Ok(stages);
        }
        let StageEpochs(first, second) = match self.stage_epochs {
            Some(epochs) => epochs,
            None => StageEpochs(last.epochs / 2, last.epochs - last.epochs / 2),
        };
        let part = |name: &str, strength: Strength, epochs: usize| Stage {
            name: name.to_owned(),
            strength: StrengthSetting::All(strength),
            epochs,
            ..last.clone()
        };
        let mut made = match self.curriculum {
            None | Some(Curriculum::None) => vec![Stage { name: "train".into(), ..last.clone() }],
            Some(Curriculum::HardToSoft(u)) => {
                vec![part("hard", Strength::Hard, first), part("soft", Strength::U(u), second)]
            }
            Some(Curriculum::SoftToHard(u)) => {
                vec![part("soft", Strength::U(u), first), part("hard", Strength::Hard, second)]
            }
        };
        if made.iter().any(|stage| stage.epochs == 0) {
            bail!("a curriculum of two stages needs --epochs 2 or more");
        }
        if let Some(WarmUp::Epochs(epochs @ 1..)) = self.warm_up {
            let rows = RowChoice::MostSpecific;
            made.insert(0, Stage { name: "warm-up".into(), rows, epochs, ..made[0].clone() });
        }
        Ok(made)
    }

    fn strengths(&self, known: StrengthConfig) -> anyhow::Result<StrengthConfig> {
        let tie = match self.learn_strengths {
            Some(TieName::Scale) => Some(Tie::Scale),
            Some(TieName::Kind) => Some(Tie::Kind),
            Some(TieName::Relation) => Some(Tie::Relation),
            None => None,
        };
        let start = match (known, tie) {
            (StrengthConfig::Learned { prior, learning_rate, every, tie: known }, _) => {
                Some((tie.unwrap_or(known), prior, learning_rate, every))
            }
            (StrengthConfig::Fixed, Some(tie)) => Some((tie, 0.01, 0.01, 10)),
            (StrengthConfig::Fixed, None) => None,
        };
        let given = self.strength_prior.is_some()
            || self.strength_rate.is_some()
            || self.strength_every.is_some();
        match start {
            Some((tie, prior, learning_rate, every)) => Ok(StrengthConfig::Learned {
                tie,
                prior: self.strength_prior.unwrap_or(prior),
                learning_rate: self.strength_rate.unwrap_or(learning_rate),
                every: self.strength_every.unwrap_or(every),
            }),
            None if given => bail!(
                "--strength-prior, --strength-rate and --strength-every are for --learn-strengths"
            ),
            None => Ok(StrengthConfig::Fixed),
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Config> {
    let name = || path.display().to_string();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", name()))?;
    toml::from_str(&text)
        .map_err(|error| anyhow::anyhow!("{}: {}", name(), error.to_string().trim()))
}
