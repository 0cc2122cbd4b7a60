//! The report of the demo.

use anyhow::Context as _;
use phex_train::{Metric, Trial, Tuning};

use super::DemoResults;
use super::learn::{TOLERANCE, Tried};
use crate::{pages, tune};
use phex_report::{
    GraphPicture, MethodTable, MetricColumn, Page, ReliabilityDiagram, Section, StrengthCurve,
    f1_by_label,
};

/// The page.
pub(super) fn page(results: &DemoResults<'_>) -> anyhow::Result<Page> {
    let DemoResults { world, data, baselines, random, .. } = results;
    let winner = results.winner()?;
    let run = winner.runs.first().context("nothing was trained")?;
    let sigmoids = baselines.last().context("nothing was trained")?;
    let sigmoid_run = sigmoids.runs.first().context("nothing was trained")?;
    let training = data.seeds.first().map_or(0, |rows| rows.training.rows());
    let about = format!(
        "On {} test rows, over {} draws of the training rows. A row breaks relations when its \
         probabilities do so by more than {TOLERANCE}; the calibration error is that of the most \
         probable animal.",
        data.test.rows(),
        data.seeds.len()
    );
    let values = f1_by_label(&world.graph, &run.evaluation);
    let picture = GraphPicture { graph: &world.graph, metric: String::from("F1"), values: &values };
    let of_winner =
        format!("The first draw of \"{}\", the best on validation rows.", winner.method.name);
    Ok(Page {
        title: String::from("Learning when most labels are coarse"),
        subtitle: format!(
            "{training} generated training rows, most of them labelled with the kind of an animal alone"
        ),
        sections: vec![
            Section::new("Methods").text(&about).with(&comparison(&results.shown()?)),
            Section::new("From random weights")
                .text(
                    "The same data and settings, but the weights start at random and not at zero. \
                     Probably a coarse row then teaches whichever of its animals happens to lead.",
                )
                .with(&comparison(&random.iter().collect::<Vec<_>>())),
            Section::new("Strength of soft relations").with(&strengths(results)?),
            Section::new("Training").text(&of_winner).with(&pages::curves(&run.trained.model)),
            Section::new("Calibration")
                .text("The probability of the most probable animal of each test row, and how often it is right.")
                .with(&ReliabilityDiagram::new(&winner.method.name, &run.reliability))
                .with(&ReliabilityDiagram::new(&sigmoids.method.name, &sigmoid_run.reliability)),
            Section::new("Labels").text(&of_winner).with(&picture),
        ],
    })
}

fn comparison(methods: &[&Tried<'_>]) -> MethodTable {
    let column = |(name, higher_is_better): (&str, bool)| MetricColumn {
        name: name.to_owned(),
        higher_is_better,
    };
    let columns = [
        ("accuracy of animals", true),
        ("accuracy of kinds", true),
        ("rows that break relations", false),
        ("calibration error", false),
    ];
    let row = |tried: &&Tried<'_>| (tried.method.name.clone(), tried.scores().to_vec());
    MethodTable {
        metrics: columns.into_iter().map(column).collect(),
        methods: methods.iter().map(row).collect(),
    }
}

/// The accuracy of animals on the validation rows by strength.
fn strengths(results: &DemoResults<'_>) -> anyhow::Result<StrengthCurve> {
    let mut tuning = Tuning::new(Metric::Accuracy);
    for tried in std::iter::once(results.hard()?).chain(results.soft()) {
        for run in &tried.runs {
            tuning.add(Trial {
                setting: tried.method.setting(),
                seed: run.trained.model.config.seed,
                value: run.validation_accuracy,
                fingerprint: run.trained.fingerprint.clone(),
                epochs: run.trained.model.history.len(),
                seconds: run.trained.model.seconds(),
            });
        }
    }
    let chosen = results.chosen()?.method.setting();
    Ok(tune::curve("accuracy on validation rows", &tuning.summary(), chosen))
}
