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
    /// Why there is no value, if that is known.
    pub missing: Option<&'static str>,
}

impl Evaluation {
    /// The results that matter most.
    pub fn headlines(&self) -> Vec<Headline> {
        // Without negatives, none of the measures over pairs exists.
        let over_pairs = self.lacks_negatives().map(|_| NO_NEGATIVES);
        let line = |name: &str, value: Option<f64>, meaning: &'static str| Headline {
            name: String::from(name),
            value: value.unwrap_or(f64::NAN),
            meaning,
            missing: over_pairs.filter(|_| value.is_none()),
        };
        let mut lines = Vec::new();
        for top in self.classes.iter().flat_map(|classes| &classes.top) {
            let name = match top.k {
                1 => String::from("accuracy"),
                k => format!("top-{k} accuracy"),
            };
            let missing = top.accuracy.is_none().then_some(NO_CLASS);
            let meaning = "rows whose class is among the most probable";
            lines.push(Headline { missing, ..line(&name, top.accuracy, meaning) });
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
/// What stands beside a dash where a metric needs the class of rows.
const NO_CLASS: &str = "(no row has one class on)";

impl Headline {
    /// The value with four digits, or a dash and, if that is known, why there is none.
    pub fn text(&self) -> String {
        match self.missing {
            _ if self.value.is_finite() => format!("{:.4}", self.value),
            Some(why) => format!("–  {why}"),
            None => String::from("–"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_has_the_reason_that_applies() {
        let line = |value, missing| {
            let name = String::from("ROC area");
            Headline { name, value, meaning: "", missing }.text()
        };
        assert_eq!(line(0.5, None), "0.5000");
        assert_eq!(line(f64::NAN, Some(NO_NEGATIVES)), "–  (no label is known to be off)");
        assert_eq!(line(f64::NAN, None), "–", "a label that is always on has no ROC area either");
    }
}
