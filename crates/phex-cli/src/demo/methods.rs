//! The methods that are compared: the same head, optimiser and number of steps, different objectives.
//!
//! A method is what a user of `phex train` would choose; [`Recipe`](phex_train::Recipe) fills in the rest.

use phex::graph::Strength;
use phex::learn::Tie;
use phex_train::{
    Config, Examples, Metric, ObjectiveConfig, RateSchedule, Recipe, Start, StrengthSetting,
    TrainingChoices, WarmUp,
};

use super::world::World;

/// The strengths that are compared.
const GRID: [f64; 6] = [0.1, 0.3, 0.5, 1.0, 2.0, 4.0];
/// The initial u of learned strengths, and the size of their steps.
const LEARNED_START: f64 = 1.0;
const STRENGTH_RATE: f64 = 0.05;
/// Fewer and larger steps than the recipe's, because the demo has little time; all of the same size, so
/// that half of them is half of the training.
const LEARNING_RATE: f64 = 0.01;
const SCHEDULE: RateSchedule = RateSchedule::Constant;
const EPOCHS: usize = 15;
/// The deviation of random initial weights.
const RANDOM: f64 = 1.0;
/// The soft relations that are trained from random weights.
const RANDOM_STRENGTH: f64 = 0.3;
/// Few rows are named, so this many epochs on them take about as many steps as one on all rows.
const NAMED_EPOCHS: usize = 15;

/// How a method is trained.
#[derive(Debug, Clone)]
pub(super) struct DemoMethod {
    pub(super) name: String,
    choices: TrainingChoices,
}

/// The methods that are trained.
pub(super) struct DemoMethods {
    /// Without relations; the independent sigmoids are the last.
    pub(super) baselines: Vec<DemoMethod>,
    /// Hard relations, the strengths of [`GRID`], and learned strengths.
    pub(super) relations: Vec<DemoMethod>,
    /// From random weights.
    pub(super) random: Vec<DemoMethod>,
}

impl DemoMethods {
    pub(super) fn new() -> DemoMethods {
        let objective = |name: &str, objective: ObjectiveConfig| DemoMethod {
            name: name.to_owned(),
            choices: TrainingChoices { objective: Some(objective), ..base() },
        };
        let through = |name: &str, strength: Strength| DemoMethod {
            name: name.to_owned(),
            choices: TrainingChoices { strength: Some(StrengthSetting::All(strength)), ..base() },
        };
        let random = |name: &str, strength: Strength, warm_up: usize| {
            let mut method = through(name, strength);
            method.choices.start = Some(Start::Normal(RANDOM));
            method.choices.warm_up = Some(WarmUp::Epochs(warm_up * NAMED_EPOCHS));
            method.choices.epochs = Some(EPOCHS - warm_up);
            method
        };
        let mut relations = vec![through("HEX: hard relations", Strength::Hard)];
        relations.extend(
            GRID.map(|u| through(&format!("pHEX: soft relations, u = {u}"), Strength::U(u))),
        );
        let mut learned = through("pHEX: strengths learned", Strength::U(LEARNED_START));
        learned.choices.learn_strengths = Some(Tie::Kind);
        learned.choices.strength_rate = Some(STRENGTH_RATE);
        relations.push(learned);
        DemoMethods {
            baselines: vec![
                objective(
                    "softmax, rows that name an animal",
                    ObjectiveConfig::Softmax { coarse: false },
                ),
                objective("softmax, all rows", ObjectiveConfig::Softmax { coarse: true }),
                objective("independent sigmoids", ObjectiveConfig::Independent),
            ],
            random: vec![
                random("HEX", Strength::Hard, 0),
                random("HEX, half of the steps on named rows first", Strength::Hard, EPOCHS / 2),
                random(&format!("pHEX, u = {RANDOM_STRENGTH}"), Strength::U(RANDOM_STRENGTH), 0),
            ],
            relations,
        }
    }
}

impl DemoMethod {
    pub(super) fn config(
        &self,
        seed: u64,
        examples: &Examples<'_>,
        world: &World,
    ) -> anyhow::Result<Config> {
        let choices = TrainingChoices { seed: Some(seed), ..self.choices.clone() };
        Ok(Recipe::STANDARD.config(&choices, examples, &world.graph)?)
    }

    /// The strength of the relations.
    pub(super) fn setting(&self) -> StrengthSetting {
        self.choices.strength.unwrap_or_default()
    }

    /// The flags of `phex train` that train it.
    pub(super) fn flags(&self) -> String {
        let mut flags = format!("{} --warm-up 0 --strength {}", base_flags(), self.setting());
        if self.choices.learn_strengths.is_some() {
            flags.push_str(&format!(
                " \\\n  --learn-strengths kind --strength-rate {STRENGTH_RATE}"
            ));
        }
        flags
    }
}

/// The choices of all methods: they keep the epoch with the best accuracy on the validation rows, and do
/// not warm up, so that all make the same steps.
fn base() -> TrainingChoices {
    TrainingChoices {
        metric: Some(Metric::Accuracy),
        epochs: Some(EPOCHS),
        learning_rate: Some(LEARNING_RATE),
        schedule: Some(SCHEDULE),
        warm_up: Some(WarmUp::Epochs(0)),
        ..TrainingChoices::default()
    }
}

/// The same as flags, but for the warm-up, which belongs to `phex train` and `phex tune` alike.
pub(super) fn base_flags() -> String {
    format!(
        "--metric accuracy --epochs {EPOCHS} --learning-rate {LEARNING_RATE} --rate-schedule {SCHEDULE}"
    )
}
