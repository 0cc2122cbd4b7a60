//! Animals of which most are labelled only with their kind.

use std::fmt::Write as _;

use anyhow::Context as _;
use phex::graph::{LabelId, RelationGraph};
use phex::infer::{Evidence, Options};
use phex::metrics::TruthClosure;
use phex_io::{Dataset, Target, Targets};
use phex_train::{ObjectiveConfig, TrainedRun, TrainingChoices};
use rayon::prelude::*;

use super::measure::{DRAWS, Judged, MeasuredMethod, judge, train};
use super::world::{RowMaker, normals, random, sum};

/// The kinds, and the animals of each.
const KINDS: [(&str, [&str; 5]); 4] = [
    ("mammal", ["dog", "cat", "horse", "bat", "whale"]),
    ("bird", ["eagle", "owl", "parrot", "duck", "penguin"]),
    ("fish", ["shark", "trout", "tuna", "eel", "ray"]),
    ("insect", ["ant", "bee", "beetle", "moth", "wasp"]),
];
pub(super) const TRAINING: usize = 3000;
const TEST: usize = 2000;
/// One in this many training rows names its animal; the others name only its kind.
const NAMED: usize = 20;
/// How far apart the kinds are, and the animals of a kind, in deviations of the noise.
const SCALES: [f64; 2] = [0.35, 0.4];
/// The first line of the graph.
pub(super) const TITLE: &str = "# The labels of the demo: each animal is of one kind.";
/// The column of the files that has the label.
pub(super) const COLUMN: &str = "is";

/// Labels, relations, and where the animals are.
pub(super) struct CoarseWorld {
    pub(super) graph: RelationGraph,
    /// The graph as a file.
    pub(super) text: String,
    /// Each animal with its kind and its centre.
    animals: Vec<(LabelId, LabelId, Vec<f64>)>,
}

/// The comparison of methods.
pub(super) struct CoarseTour {
    pub(super) world: CoarseWorld,
    /// Two softmaxes, sigmoids, and relations.
    pub(super) methods: Vec<MeasuredMethod>,
    /// Trained with relations on the first draw.
    pub(super) model: TrainedRun,
    /// The first draw.
    pub(super) training: Dataset,
    pub(super) test: Dataset,
}

impl CoarseWorld {
    pub(super) fn new() -> anyhow::Result<CoarseWorld> {
        let text = graph_text();
        let graph = super::read(&text, "animals.toml")?.build()?;
        let id = |name: &str| graph.id(name).with_context(|| format!("`{name}` is not a label"));
        let mut random = random(2);
        let mut animals = Vec::new();
        for (kind, names) in KINDS {
            let kind = id(kind)?;
            let of_kind = normals(&mut random);
            for name in names {
                let own = normals(&mut random);
                animals.push((id(name)?, kind, sum(&[(SCALES[0], &of_kind), (SCALES[1], &own)])));
            }
        }
        Ok(CoarseWorld { graph, text, animals })
    }

    /// Rows of one animal after another. One in `named` is labelled with its animal, the others with its kind.
    fn rows(&self, rows: usize, seed: u64, named: usize) -> Dataset {
        let mut maker = RowMaker::new(&self.graph, seed);
        for row in 0..rows {
            let (animal, kind, centre) = &self.animals[row % self.animals.len()];
            let is_named = (row / self.animals.len()).is_multiple_of(named);
            let label = if is_named { animal } else { kind };
            maker.push(centre, &[Target { label: label.0, on: true }], false);
        }
        maker.finish()
    }

    /// Rows as a CSV file: features and the label.
    pub(super) fn csv(&self, data: &Dataset) -> String {
        let mut text = format!("{},{COLUMN}\n", data.features.names.join(","));
        for row in 0..data.rows() {
            let values: Vec<String> = data.features.row(row).iter().map(f32::to_string).collect();
            let known = data.targets.iter().flat_map(|targets| targets.evidence(row));
            let on = self.graph.labels().iter().zip(known);
            let on = on.filter(|(_, known)| *known == Evidence::On);
            let name: String = on.map(|(label, _)| label.name.as_str()).collect();
            let _ = writeln!(text, "{},{name}", values.join(","));
        }
        text
    }
}

impl CoarseTour {
    /// Trains and measures.
    pub(super) fn take() -> anyhow::Result<CoarseTour> {
        let world = CoarseWorld::new()?;
        let animals: Vec<LabelId> = world.animals.iter().map(|(animal, ..)| *animal).collect();
        let test = world.rows(TEST, 300, 1);
        let softmax = |coarse: bool| Some(ObjectiveConfig::Softmax { coarse });
        let methods = [
            ("softmax, only rows that name the animal", softmax(false)),
            ("softmax, a kind is the sum of its animals", softmax(true)),
            ("a sigmoid for each label, with implied labels", Some(ObjectiveConfig::Independent)),
            ("trained with relations (phex train)", None),
        ];
        let run = |at: usize| -> anyhow::Result<(TrainedRun, Judged)> {
            let seed = at as u64 % DRAWS;
            let mut rows = world.rows(TRAINING, 100 + seed, NAMED);
            let objective = methods[at / DRAWS as usize].1;
            if objective == Some(ObjectiveConfig::Independent) {
                imply(&world.graph, &mut rows);
            }
            let choices =
                TrainingChoices { objective, seed: Some(seed), ..TrainingChoices::default() };
            let trained = train(&world.graph, &rows, choices)?;
            let predictor = trained.model.predictor(&Options::default())?;
            let p = predictor.predict(&test.features)?;
            let judged = judge(&world.graph, &animals, &test, p)?;
            Ok((trained, judged))
        };
        let runs: anyhow::Result<Vec<_>> =
            (0..methods.len() * DRAWS as usize).into_par_iter().map(run).collect();
        let mut runs = runs?.into_iter();
        let mut measured = Vec::new();
        let mut model = None;
        for (name, objective) in methods {
            let (trained, judged): (Vec<_>, Vec<_>) = runs.by_ref().take(DRAWS as usize).unzip();
            measured.extend(MeasuredMethod::of_draws(name, judged));
            if objective.is_none() {
                model = trained.into_iter().next();
            }
        }
        let model = model.context("nothing was trained")?;
        let training = world.rows(TRAINING, 100, NAMED);
        Ok(CoarseTour { world, methods: measured, model, training, test })
    }

    /// How many training rows name the animal.
    pub(super) fn named(&self) -> usize {
        let animals = self.world.animals.len();
        (0..TRAINING).filter(|row| (row / animals).is_multiple_of(NAMED)).count()
    }
}

/// Adds the labels that follow from those of each row, because sigmoids do not know the relations.
fn imply(graph: &RelationGraph, rows: &mut Dataset) {
    let closure = TruthClosure::new(graph);
    let mut implied = Targets::new(graph.len());
    for row in 0..rows.rows() {
        let known = rows.targets.iter().flat_map(|targets| targets.evidence(row));
        let mut known: Vec<Evidence> = known.collect();
        closure.close(&mut known);
        let labels = graph.ids().zip(&known);
        let labels =
            labels.filter_map(|(id, known)| Some(Target { label: id.0, on: known.is_on()? }));
        implied.push(&labels.collect::<Vec<Target>>(), false);
    }
    rows.targets = Some(implied);
}

fn graph_text() -> String {
    let mut text =
        format!("{TITLE}\nsingle_label = true   # a taxonomy: each row is exactly one animal\n");
    for (kind, animals) in KINDS {
        let quoted = animals.map(|name| format!("\"{name}\"")).join(", ");
        let _ = writeln!(text, "\n[[hierarchy]]\nparent = \"{kind}\"\nchildren = [{quoted}]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_what_is_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.csv");
        let world = CoarseWorld::new().unwrap();
        let data = world.rows(800, 3, NAMED);
        std::fs::write(&path, world.csv(&data)).unwrap();
        let source = phex_io::TargetSource::Column(String::from(COLUMN));
        let options = phex_io::DatasetOptions {
            targets: Some(phex_io::TargetOptions::new(source)),
            ..Default::default()
        };
        let read = phex_io::read_dataset(&[path], &options, Some(&world.graph)).unwrap();
        assert_eq!(read, data);
        let id = |name: &str| world.graph.id(name).unwrap().index();
        let targets = data.targets.as_ref().unwrap();
        assert_eq!(targets.evidence(2)[id("horse")], Evidence::On);
        assert_eq!(targets.evidence(27)[id("bird")], Evidence::On, "only the kind");
        assert_eq!(targets.evidence(27)[id("parrot")], Evidence::Unknown);
    }
}
