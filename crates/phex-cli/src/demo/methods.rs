//! The methods that are compared: the same head, optimiser and number of epochs, other objectives.

use phex::graph::Strength;
use phex::learn::Tie;
use phex_train::{
    Config, Metric, ObjectiveConfig, RowChoice, Stage, Start, StrengthConfig, StrengthSetting,
};

/// The strengths that are tried.
const GRID: [f64; 6] = [0.1, 0.3, 0.5, 1.0, 2.0, 4.0];
/// Where learned strengths begin.
const BEGIN: f64 = 1.0;
const STRENGTH_RATE: f64 = 0.05;
pub(super) const LEARNING_RATE: f64 = 0.01;
/// The deviation of random weights at the start.
const RANDOM: f64 = 1.0;
/// The soft relations that are trained from random weights.
const RANDOM_STRENGTH: f64 = 0.3;
/// Named rows are few: so many epochs on them take about as many steps as one on all rows.
const WARM_UP_EPOCHS: usize = 15;

/// How a method is trained.
#[derive(Debug, Clone)]
pub(super) struct Method {
    pub(super) name: String,
    config: Config,
}

/// All that is trained.
pub(super) struct Methods {
    /// Without relations; the independent sigmoids are the last.
    pub(super) baselines: Vec<Method>,
    /// Hard relations, the strengths of [`GRID`], and learned strengths.
    pub(super) relations: Vec<Method>,
    /// From random weights.
    pub(super) random: Vec<Method>,
}

impl Methods {
    pub(super) fn new(epochs: usize) -> Methods {
        let base = base(epochs);
        let objective = |name: &str, objective: ObjectiveConfig| Method {
            name: name.to_owned(),
            config: Config { objective, ..base.clone() },
        };
        let strong = |name: &str, strength: Strength| {
            let mut config = base.clone();
            config.stages[0].strength = StrengthSetting::All(strength);
            Method { name: name.to_owned(), config }
        };
        let random = |name: &str, strength: Strength, warm_up: usize| {
            let mut method = strong(name, strength);
            let Config { head, stages, .. } = &mut method.config;
            head.start = Start::Normal(RANDOM);
            if warm_up > 0 {
                let (name, rows) = (String::from("warm-up"), RowChoice::MostSpecific);
                let epochs = warm_up * WARM_UP_EPOCHS;
                let first = Stage { name, rows, epochs, ..stages[0].clone() };
                stages[0].epochs -= warm_up;
                stages.insert(0, first);
            }
            method
        };
        let mut relations = vec![strong("HEX: hard relations", Strength::Hard)];
        relations.extend(
            GRID.map(|u| strong(&format!("pHEX: soft relations, u = {u}"), Strength::U(u))),
        );
        let mut learned = strong("pHEX: strengths learned", Strength::U(BEGIN));
        learned.config.strengths = StrengthConfig::Learned {
            tie: Tie::Kind,
            prior: 0.01,
            learning_rate: STRENGTH_RATE,
            every: 10,
        };
        relations.push(learned);
        Methods {
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
                random("HEX, half of the steps on named rows first", Strength::Hard, epochs / 2),
                random(&format!("pHEX, u = {RANDOM_STRENGTH}"), Strength::U(RANDOM_STRENGTH), 0),
            ],
            relations,
        }
    }
}

impl Method {
    pub(super) fn config(&self, seed: u64) -> Config {
        Config { seed, ..self.config.clone() }
    }

    /// The strength of the relations.
    pub(super) fn setting(&self) -> StrengthSetting {
        self.config.stages.last().map_or(StrengthSetting::Given, |stage| stage.strength)
    }

    /// The flags of `phex train` that train it.
    pub(super) fn flags(&self) -> String {
        let epochs = self.config.stages.last().map_or(0, |stage| stage.epochs);
        let mut flags = format!(
            "--metric accuracy --epochs {epochs} --warm-up 0 --learning-rate {LEARNING_RATE} --rate-schedule constant --strength {}",
            self.setting()
        );
        if self.config.strengths != StrengthConfig::Fixed {
            flags.push_str(&format!(
                " \\\n  --learn-strengths kind --strength-rate {STRENGTH_RATE}"
            ));
        }
        flags
    }
}

/// A linear head from zero weights; the epoch with the best accuracy on the validation rows is kept.
fn base(epochs: usize) -> Config {
    let mut config = Config::default();
    config.optimiser.learning_rate = LEARNING_RATE;
    config.stages[0].epochs = epochs;
    config.validation.metric = Metric::Accuracy;
    config
}
