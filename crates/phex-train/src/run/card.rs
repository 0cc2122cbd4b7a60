//! The model card of a trained model.

use phex::Named as _;
use phex_io::ModelCard;

use super::RunRecord;
use crate::config::{Metric, ObjectiveConfig};
use crate::model::TrainedModel;

impl RunRecord<'_> {
    /// The card of the run's model, with its results and notes.
    pub(super) fn card(&self, model: &TrainedModel, title: String) -> ModelCard {
        let evaluation = self.validation.map_or(Vec::new(), |evaluation| {
            let one_sided = evaluation.lacks_negatives().is_some();
            evaluation
                .headlines()
                .into_iter()
                .filter(|line| line.value.is_finite() || one_sided)
                .map(|line| phex_io::Evaluation {
                    data: String::from("validation"),
                    value: line.text(),
                    measure: line.name,
                })
                .collect()
        });
        let mut card = model.card(title);
        card.training = format!("Trained on {} rows. {}", self.rows, card.training);
        card.evaluation = evaluation;
        let limits = self.notes.iter().chain(&self.verdict);
        card.limits = limits.map(|note| format!("- {note}\n")).collect();
        card
    }
}

impl TrainedModel {
    /// A card of what the model itself knows.
    pub fn card(&self, title: String) -> ModelCard {
        let config = &self.config;
        let head = match config.head.hidden.as_slice() {
            [] => String::from("A linear head"),
            hidden => format!("A head with hidden layers of {hidden:?}"),
        };
        let objective = match config.objective {
            ObjectiveConfig::Relations { loss } => {
                format!("the {} loss of the targets under their relations", loss.name())
            }
            ObjectiveConfig::Independent => String::from("each label on its own (a baseline)"),
            ObjectiveConfig::Softmax { .. } => {
                String::from("a softmax over the leaves (a baseline)")
            }
            ObjectiveConfig::MaxConstraint => {
                String::from("the largest sigmoid below each label (a baseline)")
            }
        };
        let stages: Vec<String> = config
            .stages
            .iter()
            .map(|stage| {
                format!("{} ({} epochs, strength {})", stage.name, stage.epochs, stage.strength)
            })
            .collect();
        let metric = match config.validation.metric {
            Metric::AuPrc => "AU(PRC)",
            metric => metric.name(),
        };
        let kept = self.best_epoch.map_or(String::new(), |best| {
            format!(" The weights of epoch {best} had the best {metric}.")
        });
        ModelCard {
            title,
            tags: Vec::new(),
            uses: String::from(
                "`phex predict` gives a probability for each label, or label sets; `phex eval` measures \
                 how good they are on other data. `phex.sklearn.RelationClassifier.load` reads it in \
                 Python.",
            ),
            training: format!(
                "{head} over {} features, trained by {objective}. Stages: {}.{kept} Seed {}. \
                 `config.json` has all settings and the record of each epoch.",
                self.head.inputs(),
                stages.join(", "),
                config.seed
            ),
            evaluation: Vec::new(),
            limits: String::new(),
        }
    }

    /// Seconds that training took.
    pub fn seconds(&self) -> f64 {
        self.history.iter().map(|record| record.seconds).sum()
    }
}
