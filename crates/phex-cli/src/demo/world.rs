//! The data of the demo: animals whose features are numbers around a centre.
//!
//! `features = A · centre of the kind + B · offset of the animal + noise`, all of them near-normal with
//! deviation 1: sums of twelve uniform numbers, which have the same bits on every machine. Values are
//! rounded as they are written, so that files hold what was trained on.

use std::fmt::Write as _;

use phex::graph::{LabelId, RelationGraph};
use phex::infer::Evidence;
use phex_io::{
    Dataset, FeatureColumn, FeatureKind, FeatureSchema, Features, Format, ReadOptions, Target,
    Targets,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The kinds, and the animals of each.
const KINDS: [(&str, [&str; 5]); 4] = [
    ("mammal", ["dog", "cat", "horse", "bat", "whale"]),
    ("bird", ["eagle", "owl", "parrot", "duck", "penguin"]),
    ("fish", ["shark", "trout", "tuna", "eel", "ray"]),
    ("insect", ["ant", "bee", "beetle", "moth", "wasp"]),
];
const FEATURES: usize = 32;
/// How far apart the kinds are, and the animals of a kind, in deviations of the noise.
const KIND_SCALE: f64 = 0.35;
const ANIMAL_SCALE: f64 = 0.4;
/// One in this many training rows names its animal; the others name only its kind.
const NAMED: usize = 20;

/// Labels, relations, and where the animals are.
pub(super) struct World {
    pub(super) graph: RelationGraph,
    /// The graph as a file.
    pub(super) text: String,
    /// The labels of the kinds.
    pub(super) kinds: Vec<LabelId>,
    /// Each animal with its kind and its centre.
    animals: Vec<(LabelId, LabelId, Vec<f64>)>,
}

impl World {
    pub(super) fn new() -> anyhow::Result<World> {
        let text = graph_text();
        let builder = phex_io::parse_graph(
            text.as_bytes(),
            "graph.toml",
            Format::Toml,
            &ReadOptions::default(),
        )?;
        let graph = builder.build()?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let (mut kinds, mut animals) = (Vec::new(), Vec::new());
        let id = |name: &str| {
            graph.id(name).ok_or_else(|| anyhow::anyhow!("`{name}` is not a label of the demo"))
        };
        for (kind, names) in KINDS {
            let kind = id(kind)?;
            let centre = normals(&mut random);
            for name in names {
                let offset = normals(&mut random);
                let at = centre.iter().zip(&offset);
                let at = at.map(|(a, b)| KIND_SCALE * a + ANIMAL_SCALE * b).collect();
                animals.push((id(name)?, kind, at));
            }
            kinds.push(kind);
        }
        Ok(World { graph, text, kinds, animals })
    }

    /// Rows with an animal after another, of which all is known.
    pub(super) fn named(&self, rows: usize, seed: u64) -> Dataset {
        self.rows(rows, seed, 1)
    }

    /// Rows of which most are known by their kind alone.
    pub(super) fn coarse(&self, rows: usize, seed: u64) -> Dataset {
        self.rows(rows, seed, NAMED)
    }

    fn rows(&self, rows: usize, seed: u64, named: usize) -> Dataset {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut values = Vec::with_capacity(rows * FEATURES);
        let mut targets = Targets::new(self.graph.len());
        for row in 0..rows {
            let (animal, kind, centre) = &self.animals[row % self.animals.len()];
            let noise = normals(&mut random);
            let value = |(a, b): (&f64, &f64)| (((a + b) * 1000.0).round() / 1000.0) as f32;
            values.extend(centre.iter().zip(&noise).map(value));
            let animal = (row / self.animals.len()).is_multiple_of(named).then_some(*animal);
            targets.push(&self.known(*kind, animal), false);
        }
        let columns = (1..=FEATURES)
            .map(|at| FeatureColumn { name: format!("x{at}"), kind: FeatureKind::Numeric });
        let schema = FeatureSchema { columns: columns.collect() };
        let features = Features { names: schema.names(), rows, columns: FEATURES, values };
        Dataset { features, schema, targets: Some(targets), kept: Vec::new(), unseen: Vec::new() }
    }

    /// What follows for sure from a row's kind, and its animal where that is known: animals of other
    /// kinds are off, and of a named animal everything is known.
    fn known(&self, kind: LabelId, animal: Option<LabelId>) -> Vec<Target> {
        let kinds = self.kinds.iter().map(|other| Target { label: other.0, on: *other == kind });
        let animals = self.animals.iter().filter_map(|(other, its_kind, _)| {
            let on = animal.map(|animal| animal == *other);
            let on = on.or((*its_kind != kind).then_some(false));
            on.map(|on| Target { label: other.0, on })
        });
        kinds.chain(animals).collect()
    }

    /// Rows as a CSV file: features, and a column for each label with 1, 0 or nothing.
    pub(super) fn csv(&self, data: &Dataset) -> String {
        let labels = self.graph.labels().iter().map(|label| label.name.as_str());
        let names = data.features.names.iter().map(String::as_str);
        let mut text = names.chain(labels).collect::<Vec<_>>().join(",") + "\n";
        for row in 0..data.rows() {
            let values = data.features.row(row).iter().map(f32::to_string);
            let known = data.targets.iter().flat_map(|targets| targets.evidence(row));
            let known = known.map(|known| {
                String::from(match known {
                    Evidence::On => "1",
                    Evidence::Off => "0",
                    Evidence::Unknown => "",
                })
            });
            let cells: Vec<String> = values.chain(known).collect();
            let _ = writeln!(text, "{}", cells.join(","));
        }
        text
    }
}

/// The first line of the graph.
pub(super) const TITLE: &str = "# The labels of the demo: each animal is of one kind.";

fn graph_text() -> String {
    let list = |names: &[&str]| {
        let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        quoted.join(", ")
    };
    let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
    let mut text = format!("{TITLE}\n");
    text.push_str("exclude = \"siblings\"   # labels with one parent exclude each other\n\n");
    let _ = writeln!(text, "[[exclusion]]\nlabels = [{}]", list(&kinds));
    for (kind, animals) in KINDS {
        let _ =
            writeln!(text, "\n[[hierarchy]]\nparent = \"{kind}\"\nchildren = [{}]", list(&animals));
    }
    text
}

/// Near-normal numbers, one per feature.
fn normals(random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    (0..FEATURES).map(|_| normal()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_know_what_follows_from_their_label() {
        let world = World::new().unwrap();
        let data = world.coarse(800, 5);
        let targets = data.targets.as_ref().unwrap();
        let id = |name: &str| world.graph.id(name).unwrap().index();
        let named = targets.evidence(2);
        assert!(named.iter().all(|known| *known != Evidence::Unknown));
        assert_eq!((named[id("horse")], named[id("mammal")]), (Evidence::On, Evidence::On));
        assert_eq!(named.iter().filter(|known| **known == Evidence::On).count(), 2);
        let coarse = targets.evidence(27); // an animal of the second kind
        assert_eq!((coarse[id("bird")], coarse[id("fish")]), (Evidence::On, Evidence::Off));
        assert_eq!((coarse[id("owl")], coarse[id("dog")]), (Evidence::Unknown, Evidence::Off));
        let rows = (0..800).filter(|&row| !targets.evidence(row).contains(&Evidence::Unknown));
        assert_eq!(rows.count(), 40, "one in twenty");
    }

    #[test]
    fn files_hold_what_is_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.csv");
        let world = World::new().unwrap();
        let data = world.coarse(60, 3);
        std::fs::write(&path, world.csv(&data)).unwrap();
        let options = phex_io::DatasetOptions {
            targets: Some(phex_io::TargetOptions::new(phex_io::TargetSource::Matrix)),
            ..Default::default()
        };
        let read = phex_io::read_dataset(&[path], &options, Some(&world.graph)).unwrap();
        assert_eq!(read, data);
    }
}
