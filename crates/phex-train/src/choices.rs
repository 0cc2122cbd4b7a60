//! The settings of a run that a user chose explicitly.
//!
//! Every front end fills in a [`TrainingChoices`]: the command line from flags and a file, Python from
//! keyword arguments, the demo by hand. [`Recipe`] fills in what is left open.

use std::str::FromStr;

use phex::graph::Strength;
use phex::learn::{Loss, Tie};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use crate::Error;
use crate::config::{
    ClassWeights, Config, Curriculum, Metric, Norm, ObjectiveConfig, RateSchedule, Stage, Start,
    StrengthConfig, StrengthSetting, UpdateRule, WarmUp,
};
use crate::recipe::Recipe;

/// What a user chose; `None` leaves a setting to the recipe.
///
/// As JSON, settings that are more than a number or a name are texts, such as `"cosine=0.1"`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingChoices {
    /// Settings nested as in the `config.json` of a model. The other fields win over them.
    pub settings: Map<String, Value>,
    /// What is minimised.
    #[serde(deserialize_with = "from_text")]
    pub objective: Option<ObjectiveConfig>,
    /// The loss under relations.
    pub loss: Option<Loss>,
    /// The strength of relations in the last stage.
    pub strength: Option<StrengthSetting>,
    /// Hard and soft relations one after the other.
    #[serde(deserialize_with = "from_text")]
    pub curriculum: Option<Curriculum>,
    /// The epochs of the two stages of a curriculum; half of the epochs each if `None`.
    pub stage_epochs: Option<[usize; 2]>,
    /// How long to train on the rows labelled with a leaf first.
    #[serde(deserialize_with = "from_text")]
    pub warm_up: Option<WarmUp>,
    /// Epochs of the last stage.
    pub epochs: Option<usize>,
    /// Which relations share a learned strength.
    pub learn_strengths: Option<Tie>,
    /// Parts of the rows for strengths on rows that the weights have not seen; 0 learns both on the
    /// same rows.
    pub strength_folds: Option<usize>,
    /// Weight of the prior that holds learned strengths to the given ones.
    pub strength_prior: Option<f64>,
    /// Size of a step of learned strengths.
    pub strength_rate: Option<f64>,
    /// Steps of the weights per step of learned strengths.
    pub strength_every: Option<usize>,
    /// How rows are weighted.
    pub class_weights: Option<ClassWeights>,
    /// Fraction of rows held out for validation.
    pub validation_fraction: Option<f64>,
    /// The metric that chooses the epoch to keep.
    pub metric: Option<Metric>,
    /// Validations without improvement that end a stage.
    pub patience: Option<usize>,
    /// Whether the head is trained again on all rows, for the epochs that validation chose.
    pub all_rows: Option<bool>,
    /// Widths of hidden layers.
    pub hidden: Option<Vec<usize>>,
    /// Fraction of hidden values dropped in training.
    pub dropout: Option<f64>,
    /// Fraction of features dropped in training.
    pub input_dropout: Option<f64>,
    /// Normalisation of hidden layers.
    pub norm: Option<Norm>,
    /// Initial weights of the last layer.
    #[serde(deserialize_with = "from_text")]
    pub start: Option<Start>,
    /// Whether biases start at the labels' frequencies.
    pub prior: Option<bool>,
    /// Standardised features are clipped to ± this value.
    pub feature_clip: Option<f64>,
    /// Factor on the scores of labels that have children.
    pub inner_scale: Option<f64>,
    /// Share of each batch that is drawn from the rows labelled with a leaf.
    pub leaf_share: Option<f64>,
    /// How a step follows from a gradient.
    #[serde(deserialize_with = "from_text")]
    pub optimiser: Option<UpdateRule>,
    /// The momentum of `sgd`.
    pub momentum: Option<f64>,
    /// Size of a step.
    pub learning_rate: Option<f64>,
    /// Weight decay per step, times the learning rate.
    pub weight_decay: Option<f64>,
    /// The learning rate over a stage.
    #[serde(deserialize_with = "from_text")]
    pub schedule: Option<RateSchedule>,
    /// Rows per step.
    pub batch: Option<usize>,
    /// Memory of the average of weights.
    pub average: Option<f64>,
    /// Longest gradient.
    pub clip: Option<f64>,
    /// The seed of everything random.
    pub seed: Option<u64>,
}

fn from_text<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
}

/// Replaces a setting that was chosen.
fn set<T: Clone>(setting: &mut T, choice: &Option<T>) {
    if let Some(choice) = choice {
        setting.clone_from(choice);
    }
}

fn wrong<T>(setting: &'static str, message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Setting { setting, message: message.into() })
}

impl TrainingChoices {
    /// Whether the stages are the user's, so that the recipe adds none.
    pub(crate) fn sets_stages(&self) -> bool {
        self.curriculum.is_some() || self.settings.contains_key("stages")
    }

    /// Whether the nested settings have this one.
    pub(crate) fn sets_in(&self, section: &str, setting: &str) -> bool {
        self.settings.get(section).is_some_and(|nested| nested.get(setting).is_some())
    }

    /// Whether the scale of inner scores is the user's.
    pub(crate) fn sets_inner_scale(&self) -> bool {
        self.inner_scale.is_some() || self.sets_in("head", "inner_scale")
    }

    /// Whether it is the user's choice where biases start.
    pub(crate) fn sets_prior(&self) -> bool {
        self.prior.is_some() || self.sets_in("head", "prior")
    }

    /// The settings with these choices, not yet checked.
    pub(crate) fn settle(&self, recipe: &Recipe) -> Result<Config, Error> {
        let mut config = self.nested(Config {
            head: recipe.head(),
            objective: ObjectiveConfig::Relations { loss: recipe.loss },
            optimiser: recipe.optimiser(),
            stages: vec![recipe.stage()],
            strengths: StrengthConfig::Fixed,
            validation: recipe.validation(),
            class_weights: ClassWeights::None,
            seed: recipe.seed,
        })?;
        self.set_head(&mut config);
        if !config.head.hidden.is_empty() && !self.sets_in("optimiser", "learning_rate") {
            config.optimiser.learning_rate = recipe.hidden_learning_rate;
        }
        self.set_optimiser(&mut config)?;
        self.set_objective(&mut config.objective)?;
        config.stages = self.stages(recipe, config.stages)?;
        config.strengths = self.strengths(recipe, config.strengths)?;
        let validation = &mut config.validation;
        set(&mut validation.fraction, &self.validation_fraction);
        set(&mut validation.metric, &self.metric);
        set(&mut validation.patience, &self.patience);
        set(&mut validation.all_rows, &self.all_rows);
        set(&mut config.class_weights, &self.class_weights);
        set(&mut config.seed, &self.seed);
        Ok(config)
    }

    /// The settings with those that were given nested.
    fn nested(&self, config: Config) -> Result<Config, Error> {
        if self.settings.is_empty() {
            return Ok(config);
        }
        let merged = serde_json::to_value(&config).and_then(|mut value| {
            merge(&mut value, &self.settings);
            serde_json::from_value(value)
        });
        merged.or_else(|error| wrong("settings", error.to_string()))
    }

    fn set_head(&self, config: &mut Config) {
        let head = &mut config.head;
        set(&mut head.hidden, &self.hidden);
        set(&mut head.dropout, &self.dropout);
        set(&mut head.input_dropout, &self.input_dropout);
        set(&mut head.norm, &self.norm);
        set(&mut head.start, &self.start);
        set(&mut head.prior, &self.prior);
        set(&mut head.feature_clip, &self.feature_clip);
        set(&mut head.inner_scale, &self.inner_scale);
    }

    fn set_optimiser(&self, config: &mut Config) -> Result<(), Error> {
        let optimiser = &mut config.optimiser;
        if let Some(rule) = self.optimiser {
            // The same rule with settings of its own keeps them.
            let same = std::mem::discriminant(&rule) == std::mem::discriminant(&optimiser.rule);
            optimiser.rule = if same { optimiser.rule } else { rule };
        }
        match (self.momentum, &mut optimiser.rule) {
            (Some(chosen), UpdateRule::Sgd { momentum }) => *momentum = chosen,
            (Some(_), _) => return wrong("optimiser.momentum", "only `sgd` has momentum"),
            (None, _) => {}
        }
        set(&mut optimiser.learning_rate, &self.learning_rate);
        set(&mut optimiser.weight_decay, &self.weight_decay);
        set(&mut optimiser.schedule, &self.schedule);
        set(&mut optimiser.batch, &self.batch);
        set(&mut optimiser.average, &self.average);
        set(&mut optimiser.clip, &self.clip);
        Ok(())
    }

    fn set_objective(&self, objective: &mut ObjectiveConfig) -> Result<(), Error> {
        match (self.objective, &objective) {
            // The loss stays as it is set.
            (Some(ObjectiveConfig::Relations { .. }), ObjectiveConfig::Relations { .. }) => {}
            (Some(chosen), _) => *objective = chosen,
            (None, _) => {}
        }
        match (self.loss, objective) {
            (Some(chosen), ObjectiveConfig::Relations { loss }) => *loss = chosen,
            (Some(_), _) => {
                let message = "only the objective `relations` has a choice of losses";
                return wrong("objective.loss", message);
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// Choices about a single stage change the last one. A curriculum or a warm-up replaces all stages.
    fn stages(&self, recipe: &Recipe, mut stages: Vec<Stage>) -> Result<Vec<Stage>, Error> {
        let mut last = stages.pop().unwrap_or_else(|| recipe.stage());
        set(&mut last.epochs, &self.epochs);
        set(&mut last.strength, &self.strength);
        set(&mut last.leaf_share, &self.leaf_share);
        if self.curriculum.is_none() && self.warm_up.is_none() {
            stages.push(last);
            return Ok(stages);
        }
        let half = last.epochs / 2;
        let [first, second] = self.stage_epochs.unwrap_or([half, last.epochs - half]);
        let part = |name: &str, strength: Strength, epochs: usize| Stage {
            name: String::from(name),
            strength: StrengthSetting::All(strength),
            epochs,
            ..last.clone()
        };
        let mut made = match self.curriculum {
            None | Some(Curriculum::None) => {
                vec![Stage { name: String::from(Stage::TRAIN), ..last.clone() }]
            }
            Some(Curriculum::HardToSoft(u)) => {
                vec![part("hard", Strength::Hard, first), part("soft", Strength::U(u), second)]
            }
            Some(Curriculum::SoftToHard(u)) => {
                vec![part("soft", Strength::U(u), first), part("hard", Strength::Hard, second)]
            }
        };
        if made.iter().any(|stage| stage.epochs == 0) {
            return wrong("stages", "each stage needs 1 epoch or more");
        }
        if let Some(WarmUp::Epochs(epochs @ 1..)) = self.warm_up {
            made.insert(0, recipe.warm_up_stage(&made[0], epochs));
        }
        Ok(made)
    }

    fn strengths(&self, recipe: &Recipe, given: StrengthConfig) -> Result<StrengthConfig, Error> {
        let mut made = match (given, self.learn_strengths) {
            (StrengthConfig::Fixed, Some(tie)) => {
                recipe.learned_strengths(tie, self.strength_folds)
            }
            _ => given,
        };
        let stray = match made {
            StrengthConfig::Fixed => {
                let any = self.strength_prior.is_some()
                    || self.strength_rate.is_some()
                    || self.strength_folds.is_some()
                    || self.strength_every.is_some();
                let message =
                    "prior, learning rate, folds and steps are for strengths that are learned";
                any.then_some(message)
            }
            StrengthConfig::Learned { .. } => None,
            StrengthConfig::CrossFitted { .. } => self.strength_every.map(|_| {
                "steps of the weights per step of the strengths are for strengths that are learned \
                 together with the weights: 0 folds"
            }),
        };
        if let Some(message) = stray {
            return wrong("strengths", message);
        }
        match &mut made {
            StrengthConfig::Fixed => {}
            StrengthConfig::Learned { tie, prior, learning_rate, every } => {
                set(tie, &self.learn_strengths);
                set(prior, &self.strength_prior);
                set(learning_rate, &self.strength_rate);
                set(every, &self.strength_every);
            }
            StrengthConfig::CrossFitted { tie, prior, learning_rate, folds } => {
                set(tie, &self.learn_strengths);
                set(prior, &self.strength_prior);
                set(learning_rate, &self.strength_rate);
                set(folds, &self.strength_folds);
            }
        }
        Ok(made)
    }
}

/// Puts nested settings over others. A value with a `kind` replaces what was there, because another
/// kind has other settings.
fn merge(into: &mut Value, settings: &Map<String, Value>) {
    let Value::Object(into) = into else { return };
    for (key, value) in settings {
        match (into.get_mut(key), value) {
            (Some(old @ Value::Object(_)), Value::Object(new)) if !new.contains_key("kind") => {
                merge(old, new);
            }
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_win_over_nested_settings_and_both_over_the_recipe() {
        let text = r#"{"settings": {"optimiser": {"average": 0.9, "batch": 16, "rule":
            {"kind": "sgd", "momentum": 0.5}}}, "batch": 8, "schedule": "linear=0.1"}"#;
        let choices: TrainingChoices = serde_json::from_str(text).unwrap();
        let optimiser = Recipe::STANDARD.settle(&choices).unwrap().optimiser;
        assert_eq!((optimiser.average, optimiser.batch), (0.9, 8));
        assert_eq!(optimiser.rule, UpdateRule::Sgd { momentum: 0.5 });
        assert_eq!(optimiser.schedule, RateSchedule::Linear { warm_up: 0.1 });
        assert_eq!(optimiser.learning_rate, Recipe::STANDARD.learning_rate);
    }

    #[test]
    fn hidden_layers_have_a_learning_rate_of_their_own() {
        let rate = |text: &str| {
            let choices: TrainingChoices = serde_json::from_str(text).unwrap();
            Recipe::STANDARD.settle(&choices).unwrap().optimiser.learning_rate
        };
        assert_eq!(rate("{}"), Recipe::STANDARD.learning_rate);
        assert_eq!(rate(r#"{"hidden": [4]}"#), Recipe::STANDARD.hidden_learning_rate);
        assert_eq!(rate(r#"{"hidden": [4], "learning_rate": 0.5}"#), 0.5);
        let nested =
            r#"{"settings": {"head": {"hidden": [4]}, "optimiser": {"learning_rate": 0.5}}}"#;
        assert_eq!(rate(nested), 0.5);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let faults = [
            (r#"{"settings": {"optimiser": {"averag": 0.9}}}"#, "averag"),
            (r#"{"strength_rate": 1.0}"#, "strengths: "),
            (r#"{"momentum": 0.9}"#, "optimiser.momentum: only `sgd`"),
            (r#"{"objective": "independent", "loss": "joint"}"#, "objective.loss: "),
            (r#"{"curriculum": "hard-to-soft=1", "epochs": 1}"#, "stages: each stage"),
            (r#"{"epochs": 0}"#, "stages: one stage with one epoch"),
            (r#"{"dropout": 1.0}"#, "head.dropout: a number of 0 or more and below 1"),
            (r#"{"schedule": "cosine=2"}"#, "optimiser.schedule: "),
        ];
        for (text, expected) in faults {
            let choices: TrainingChoices = serde_json::from_str(text).unwrap();
            let error = Recipe::STANDARD.settle(&choices).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = serde_json::from_str::<TrainingChoices>(r#"{"schedule": "sine"}"#).unwrap_err();
        assert!(error.to_string().contains("`sine` is not a rate schedule"), "{error}");
    }
}
