//! The few numbers of an [`Evaluation`] that people look at first.

use super::Evaluation;

/// A result that people look at first.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// Its name.
    pub name: String,
    /// Its value; NaN if there is none.
    pub value: f64,
    /// What it means.
    pub meaning: &'static str,
}

impl Evaluation {
    /// The results that matter most.
    pub fn headlines(&self) -> Vec<Headline> {
        let line = |name: &str, value: Option<f64>, meaning: &'static str| Headline {
            name: String::from(name),
            value: value.unwrap_or(f64::NAN),
            meaning,
        };
        let mut lines = Vec::new();
        for top in self.classes.iter().flat_map(|classes| &classes.top) {
            let name = match top.k {
                1 => String::from("accuracy"),
                k => format!("top-{k} accuracy"),
            };
            lines.push(line(&name, top.accuracy, "rows whose class is among the most probable"));
        }
        let precision = &self.average_precision;
        let broken = &self.probability_violations;
        lines.extend([
            line(
                "AU(PRC)",
                precision.micro,
                "average precision over all pairs of a row and a label",
            ),
            line("mean average precision", precision.macro_mean, "mean over labels"),
            line("ROC area", self.roc_area.macro_mean, "mean over labels"),
            line("F1", self.f1.micro, "of the label sets, over all pairs"),
            line("hierarchical F", self.hierarchical.f, "of the label sets with all labels above"),
            line("subset accuracy", self.subset_accuracy, "rows whose label set has no error"),
            line("log-loss", self.log_loss, "mean over pairs; lower is better"),
            line("Brier score", self.brier, "mean over pairs; lower is better"),
            line(
                "calibration error",
                self.calibration_error,
                "mean distance of probability and frequency; lower is better",
            ),
            line(
                "rows that break relations",
                Some(broken.violating_rows as f64 / broken.rows as f64),
                "probabilities that no legal distribution has",
            ),
        ]);
        lines
    }

    /// Why there is no precision, if no label of the rows is known to be off.
    pub fn lacks_negatives(&self) -> Option<&'static str> {
        let counts = &self.counts;
        let to_the_leaf = self.rows_with_leaf == counts.rows;
        (counts.known > 0 && counts.known == counts.positives).then_some(if to_the_leaf {
            "no label of these rows is known to be off, so precision, areas and calibration cannot be \
             measured; the rows are labelled down to the leaf: take unlisted labels as off"
        } else {
            "no label of these rows is known to be off, so precision, areas and calibration cannot be \
             measured; say which labels exclude each other"
        })
    }
}

/// What stands beside a dash where a metric needs negatives.
pub(super) const NO_NEGATIVES: &str = "(no label is known to be off)";

impl Headline {
    /// The value with four digits, or a dash and why there is none.
    pub fn text(&self) -> String {
        if self.value.is_finite() {
            return format!("{:.4}", self.value);
        }
        format!("–  {NO_NEGATIVES}")
    }
}
