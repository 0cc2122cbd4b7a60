//! Renders evaluations as aligned text.

use std::fmt;

use super::headline::NO_NEGATIVES;
use super::{Averages, Evaluation, HierarchicalScores, LabelScores, Violations};

/// Names are cut after this many characters.
const LONGEST_NAME: usize = 32;

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        writeln!(
            f,
            "{} rows, {} labels: {} entries count, {} of them on; left out: {} unknown, {} unanswered",
            counts.rows,
            counts.labels,
            counts.known,
            counts.positives,
            counts.unknown,
            counts.unanswered
        )?;
        if self.unjudged_labels > 0 {
            writeln!(
                f,
                "{} labels are not known to be off in any row: only class accuracy and violations count them",
                self.unjudged_labels
            )?;
        }
        writeln!(f, "\n{:<30}{:>9}{:>9}{:>9}", "", "micro", "macro", "weighted")?;
        let missing = self.lacks_negatives().is_some();
        if missing {
            writeln!(f, "{:<30}{:>9}  {NO_NEGATIVES}", "average precision, AU(PRC)", "–")?;
        } else {
            averages(f, "average precision, AU(PRC)", &self.average_precision)?;
        }
        averages(f, "  interpolated", &self.interpolated_area)?;
        averages(f, "ROC area", &self.roc_area)?;
        averages(f, "precision", &self.precision)?;
        averages(f, "recall", &self.recall)?;
        averages(f, "F1", &self.f1)?;
        let HierarchicalScores { precision, recall, f: harmonic, .. } = self.hierarchical;
        writeln!(f, "\n{:<30}{:>9}{:>9}{:>9}", "", "precision", "recall", "F")?;
        line(f, "hierarchical", &[precision, recall, harmonic])?;
        writeln!(f)?;
        line(f, "accuracy (1 − Hamming loss)", &[self.accuracy])?;
        line(f, "subset accuracy", &[self.subset_accuracy])?;
        line(f, "log-loss", &[self.log_loss])?;
        line(f, "Brier score", &[self.brier])?;
        line(f, "calibration error", &[self.calibration_error])?;
        line(f, "  bins of equal mass", &[self.calibration_error_equal_mass])?;
        if let Some(classes) = &self.classes {
            for top in &classes.top {
                line(f, &format!("top-{} accuracy", top.k), &[top.accuracy])?;
                line(f, "  mean per class", &[top.mean_per_class])?;
            }
            line(f, "class calibration error", &[self.class_calibration_error])?;
        }
        let head = ["hierarchy", "exclusion", "one-of", "rows"];
        write!(f, "\n{:<30}", "violations")?;
        head.iter().try_for_each(|head| write!(f, "{head:>11}"))?;
        writeln!(f)?;
        violations(f, "of label sets", &self.set_violations)?;
        violations(f, "of probabilities", &self.probability_violations)?;
        if f.alternate() { labels(f, &self.labels) } else { Ok(()) }
    }
}

fn averages(f: &mut fmt::Formatter<'_>, name: &str, of: &Averages) -> fmt::Result {
    line(f, name, &[of.micro, of.macro_mean, of.weighted_mean])
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, values: &[Option<f64>]) -> fmt::Result {
    write!(f, "{name:<30}")?;
    values.iter().try_for_each(|value| write!(f, "{:>9}", number(*value)))?;
    writeln!(f)
}

fn violations(f: &mut fmt::Formatter<'_>, name: &str, of: &Violations) -> fmt::Result {
    let counts = [of.hierarchy, of.exclusion, of.one_of, of.violating_rows];
    write!(f, "{name:<30}")?;
    counts.iter().try_for_each(|count| write!(f, "{count:>11}"))?;
    writeln!(f, " of {}", of.rows)
}

fn labels(f: &mut fmt::Formatter<'_>, labels: &[LabelScores]) -> fmt::Result {
    let name = |label: &LabelScores| label.name.chars().take(LONGEST_NAME).collect::<String>();
    let width = labels.iter().map(|label| name(label).chars().count()).max().unwrap_or(0).max(5);
    write!(f, "\n{:<width$}{:>9}{:>9}", "label", "known", "support")?;
    for head in ["AP", "precision", "recall", "F1", "accuracy"] {
        write!(f, "{head:>10}")?;
    }
    writeln!(f)?;
    for label in labels {
        write!(f, "{:<width$}{:>9}{:>9}", name(label), label.known, label.support)?;
        let scores = [label.average_precision, label.precision, label.recall, label.f1];
        for score in scores.into_iter().chain([label.accuracy]) {
            write!(f, "{:>10}", number(score))?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// Four digits, or a dash if there is no value.
fn number(value: Option<f64>) -> String {
    value.map_or_else(|| String::from("–"), |value| format!("{value:.4}"))
}
