//! The report of the demo.

use anyhow::Context as _;
use phex_report::{
    GraphPicture, MethodTable, MetricColumn, Page, ReliabilityDiagram, Section, f1_by_label,
};

use super::measure::{DRAWS, MeasuredMethod, TOLERANCE};
use super::{DemoResults, coarse, photos, read};
use crate::pages;

/// The page.
pub(super) fn page(results: &DemoResults) -> anyhow::Result<Page> {
    let DemoResults { photos: of_photos, coarse: of_animals, broken, report } = results;
    let missing = "nothing was trained";
    let (sigmoids, trained) =
        (of_photos.methods.first().context(missing)?, of_photos.methods.last().context(missing)?);
    let graph = &of_photos.world.graph;
    let f1 = f1_by_label(graph, &trained.first.evaluation);
    let wrong = read(broken, "broken.toml")?.build()?;
    let about = format!(
        "Means ± deviations over {DRAWS} draws of the training rows. A row contradicts itself if its \
         probabilities break a relation by more than {TOLERANCE}; the log-loss is the mean of all labels."
    );
    let diagram =
        |method: &MeasuredMethod| ReliabilityDiagram::new(method.name, &method.first.reliability);
    let calibration =
        "The probability of the most probable animal of each test row, and how often it is right.";
    let mut explained =
        Section::new("A mistake, explained").text("Somebody adds that birds are never outdoors.");
    for line in report.to_text(false).lines().filter(|line| !line.trim().is_empty()) {
        explained = explained.text(line.trim());
    }
    Ok(Page {
        title: String::from("What relations between labels do"),
        subtitle: format!(
            "Generated data: {} photos with labels that overlap, and {} animals of which most are labelled \
             with their kind",
            photos::TRAINING,
            coarse::TRAINING
        ),
        sections: vec![
            Section::new("Labels that overlap")
                .text("All labels of the training rows are known. No softmax applies.")
                .with(&comparison(&of_photos.methods))
                .text(&about)
                .with(&GraphPicture { graph, metric: String::from("F1"), values: &f1 })
                .text(calibration)
                .with(&diagram(sigmoids))
                .with(&diagram(trained)),
            Section::new("Coarse labels")
                .text(&format!(
                    "{} of {} rows name the animal, the others only its kind.",
                    of_animals.named(),
                    coarse::TRAINING
                ))
                .with(&comparison(&of_animals.methods))
                .text(&about)
                .with(&pages::curves(&of_animals.model.model)),
            explained.with(&GraphPicture { graph: &wrong, metric: String::new(), values: &[] }),
        ],
    })
}

fn comparison(methods: &[MeasuredMethod]) -> MethodTable {
    let column = |(name, higher_is_better): (&str, bool)| MetricColumn {
        name: name.to_owned(),
        higher_is_better,
    };
    let columns =
        [("rows that contradict themselves", false), ("log-loss", false), ("animal right", true)];
    let row = |method: &MeasuredMethod| (method.name.to_owned(), method.scores.to_vec());
    MethodTable {
        metrics: columns.into_iter().map(column).collect(),
        methods: methods.iter().map(row).collect(),
    }
}
