//! The tables of the experiment.

use phex::metrics::Spread;

use super::ReconcileAnswer;
use super::heads::HeadSet;
use super::methods::Consistency;
use super::scores::MethodScores;
use crate::harness::MarkdownTable;

type SetRuns = (HeadSet, Vec<ReconcileAnswer>);

/// Scores, comparisons with the fit, and parameters.
pub(super) fn tables(found: &[SetRuns]) -> Vec<MarkdownTable> {
    vec![scores(found), comparisons(found), parameters(found)]
}

fn of(runs: &[ReconcileAnswer], way: Consistency) -> Vec<&MethodScores> {
    let one = |run: &'_ ReconcileAnswer| run.methods.iter().position(|(known, _)| *known == way);
    runs.iter().filter_map(|run| run.methods[one(run)?].1.as_ref()).collect()
}

fn scores(found: &[SetRuns]) -> MarkdownTable {
    let mut table = MarkdownTable::new(
        "Scores on test rows",
        "set | method | log loss | Brier | AU(PRC) | F1@.5 | exact | ECE | worse",
    );
    for (set, runs) in found {
        for way in Consistency::ALL {
            let scores = of(runs, way);
            let mean = |value: fn(&MethodScores) -> f64| {
                scores.iter().map(|scores| value(scores)).sum::<f64>() / scores.len() as f64
            };
            if scores.is_empty() {
                continue;
            }
            let losses: Vec<f64> = scores.iter().map(|scores| scores.log_loss).collect();
            let error = Spread::of(&losses).and_then(|spread| spread.standard_error());
            let error = error.map_or(String::new(), |error| format!(" ± {error:.3}"));
            let worse = mean(|scores| scores.worse);
            table.row([
                set.title(),
                String::from(way.title()),
                format!("{:.4}{error}", mean(|scores| scores.log_loss)),
                format!("{:.4}", mean(|scores| scores.brier)),
                format!("{:.4}", mean(|scores| scores.au_prc)),
                format!("{:.4}", mean(|scores| scores.f1)),
                format!("{:.4}", mean(|scores| scores.exact)),
                format!("{:.4}", mean(|scores| scores.ece)),
                if way == Consistency::Raw {
                    String::from("–")
                } else if worse == 0.0 {
                    String::from("0")
                } else {
                    format!("{worse:.4}")
                },
            ]);
        }
    }
    table
}

/// The methods that the fit should be no worse than.
const RIVALS: [Consistency; 6] = [
    Consistency::Raw,
    Consistency::Max,
    Consistency::Min,
    Consistency::InferTemperature,
    Consistency::SumOfFine,
    Consistency::Reconciled,
];

fn comparisons(found: &[SetRuns]) -> MarkdownTable {
    let names: Vec<&str> = RIVALS.iter().map(|way| way.title()).collect();
    let mut table = MarkdownTable::new(
        "Mean log loss of reconcile with fit, minus that of the other method (± standard error over seeds, paired). At most 0 is wanted",
        &format!("set | {} | at or below all", names.join(" | ")),
    );
    for (set, runs) in found {
        let fitted = of(runs, Consistency::Fitted);
        let mut row = vec![set.title()];
        let mut lost = Vec::new();
        for way in RIVALS {
            let others = of(runs, way);
            let differences: Vec<f64> =
                fitted.iter().zip(&others).map(|(a, b)| a.log_loss - b.log_loss).collect();
            let Some(spread) = Spread::of(&differences) else {
                row.push(String::from("–"));
                continue;
            };
            let error = spread.standard_error().map(|error| format!(" ± {error:.4}"));
            row.push(format!("{:+.4}{}", spread.mean, error.unwrap_or_default()));
            if spread.mean > 1e-6 {
                lost.push(way.title());
            }
        }
        row.push(if lost.is_empty() {
            String::from("yes")
        } else {
            format!("no: {}", lost.join(", "))
        });
        table.row(row);
    }
    table
}

fn parameters(found: &[SetRuns]) -> MarkdownTable {
    let mut table = MarkdownTable::new(
        "What was fitted, one seed after another: form, and temperature/bias/weight of each level",
        "set | held-out rows | test rows | illegal truths, held out | illegal truths, test | fits | temperature of the CRF",
    );
    for (set, runs) in found {
        let count = |value: fn(&ReconcileAnswer) -> usize| {
            let values: Vec<usize> = runs.iter().map(value).collect();
            let mean = values.iter().sum::<usize>() as f64 / values.len().max(1) as f64;
            format!("{mean:.0}")
        };
        let fits: Vec<&str> = runs.iter().map(|run| run.parameters.as_str()).collect();
        let heat: Vec<&str> =
            of(runs, Consistency::InferTemperature).iter().map(|one| one.note.as_str()).collect();
        table.row([
            set.title(),
            count(|run| run.held_out),
            count(|run| run.tested),
            count(|run| run.illegal),
            count(|run| run.illegal_tests),
            fits.join("; "),
            heat.join(", "),
        ]);
    }
    table
}
