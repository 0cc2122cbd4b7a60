//! Examples: features with targets for their labels.

use phex::graph::{LabelId, RelationGraph};
use phex::infer::Evidence;
use phex_io::{Features, Targets};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Error;
use crate::config::{ClassWeights, RowChoice};
use crate::features::Standardiser;

/// Features and targets of the same rows.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// One row per example.
    pub features: &'a Features,
    /// Which labels of each row are on and off.
    pub targets: &'a Targets,
}

/// The properties of examples that the recipe needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExampleCounts {
    /// All rows.
    pub rows: usize,
    /// Rows labelled with a leaf, and rows in which every leaf is on or off.
    pub with_leaf: usize,
    /// Rows in which no label is unknown.
    pub complete: usize,
}

impl<'a> Examples<'a> {
    /// Features and targets that belong together.
    ///
    /// # Errors
    /// [`Error::Examples`] when they have different numbers of rows, or the targets do not have the
    /// graph's labels.
    pub fn new(
        features: &'a Features,
        targets: &'a Targets,
        graph: &RelationGraph,
    ) -> Result<Examples<'a>, Error> {
        let message = if features.rows != targets.rows() {
            format!("there are {} rows of features and {} of labels", features.rows, targets.rows())
        } else if targets.labels() != graph.len() {
            format!(
                "the targets have {} labels and the graph has {}",
                targets.labels(),
                graph.len()
            )
        } else if features.columns == 0 {
            String::from("there are no features")
        } else {
            return Ok(Examples { features, targets });
        };
        Err(Error::Examples { message })
    }

    /// The number of examples.
    pub fn rows(&self) -> usize {
        self.features.rows
    }

    /// How many rows are labelled with a leaf, and how many completely.
    pub fn counts(&self, graph: &RelationGraph) -> ExampleCounts {
        let labels = self.targets.labels();
        let is_complete = |row: &usize| {
            let target = self.targets.row(*row);
            target.others_off || target.listed.len() == labels
        };
        ExampleCounts {
            rows: self.rows(),
            with_leaf: self.have_leaf(graph).into_iter().filter(|has| *has).count(),
            complete: (0..self.rows()).filter(is_complete).count(),
        }
    }

    /// The standardised features of some rows, and the evidence of each of their labels.
    pub(crate) fn gather(
        &self,
        standardiser: &Standardiser,
        rows: &[u32],
    ) -> (Vec<f32>, Vec<Evidence>) {
        let mut features = Vec::with_capacity(rows.len() * standardiser.columns());
        let mut evidence = Vec::with_capacity(rows.len() * self.targets.labels());
        for &row in rows {
            standardiser.push(self.features.row(row as usize), &mut features);
            self.push_evidence(row as usize, &mut evidence);
        }
        (features, evidence)
    }

    /// Appends the evidence of a row, one entry per label.
    pub(crate) fn push_evidence(&self, row: usize, out: &mut Vec<Evidence>) {
        let start = out.len();
        out.resize(start + self.targets.labels(), Evidence::Unknown);
        self.targets.fill(row, &mut out[start..]);
    }

    /// The labels that are on in a row and have no child that is on.
    pub(crate) fn most_specific(&self, row: usize, graph: &RelationGraph) -> Vec<u32> {
        let on: Vec<u32> =
            self.targets.row(row).listed.iter().filter(|entry| entry.on).map(|e| e.label).collect();
        let topology = graph.topology();
        let is_above = |label: u32| {
            topology.children(LabelId(label)).iter().any(|child| on.contains(&child.0))
        };
        on.iter().copied().filter(|&label| !is_above(label)).collect()
    }

    /// The rows of a choice among these.
    pub(crate) fn choose(
        &self,
        rows: &[u32],
        choice: RowChoice,
        graph: &RelationGraph,
    ) -> Result<Vec<u32>, Error> {
        if choice == RowChoice::All {
            return Ok(rows.to_vec());
        }
        let has_leaf = self.have_leaf(graph);
        let chosen: Vec<u32> = rows.iter().copied().filter(|&row| has_leaf[row as usize]).collect();
        if chosen.is_empty() {
            let message = "a warm-up trains on the rows labelled with a leaf, and there are none; \
                           leave the warm-up out";
            return Err(Error::Examples { message: String::from(message) });
        }
        Ok(chosen)
    }

    /// Whether each row is labelled with a leaf, or has every leaf on or off.
    pub(crate) fn have_leaf(&self, graph: &RelationGraph) -> Vec<bool> {
        rows_with_leaf(self.targets, graph)
    }

    /// The weight of each row: 1 on average when balanced.
    pub(crate) fn weights(
        &self,
        weights: &ClassWeights,
        graph: &RelationGraph,
    ) -> Result<Option<Vec<f64>>, Error> {
        let by_label: Vec<f64> = match weights {
            ClassWeights::None => return Ok(None),
            ClassWeights::Given(given) => {
                let mut by_label = vec![1.0; graph.len()];
                for (name, &weight) in given {
                    let Some(id) = graph.id(name) else {
                        let message =
                            format!("a class weight names `{name}`, which is not a label");
                        return Err(Error::Examples { message });
                    };
                    if !(weight >= 0.0 && weight.is_finite()) {
                        let message =
                            format!("the class weight {weight} of `{name}` is not 0 or more");
                        return Err(Error::Examples { message });
                    }
                    by_label[id.index()] = weight;
                }
                by_label
            }
            ClassWeights::Balanced => {
                let mut counts = vec![0.0f64; graph.len()];
                for row in 0..self.rows() {
                    self.most_specific(row, graph)
                        .iter()
                        .for_each(|&at| counts[at as usize] += 1.0);
                }
                let total: f64 = counts.iter().sum();
                let classes = counts.iter().filter(|count| **count > 0.0).count() as f64;
                counts
                    .iter()
                    .map(|count| if *count > 0.0 { total / (classes * count) } else { 1.0 })
                    .collect()
            }
        };
        let row_weight = |row: usize| {
            let labels = self.most_specific(row, graph);
            if labels.is_empty() {
                return 1.0;
            }
            labels.iter().map(|&at| by_label[at as usize]).sum::<f64>() / labels.len() as f64
        };
        Ok(Some((0..self.rows()).map(row_weight).collect()))
    }

    /// The error of a row that contradicts hard relations.
    pub(crate) fn contradiction(&self, row: usize, graph: &RelationGraph) -> Error {
        let names = graph.labels().iter().map(|label| label.name.as_str());
        phex::Error::contradiction(row, names, &self.targets.evidence(row)).into()
    }
}

/// Whether each row is labelled with a leaf, or has every leaf on or off.
pub fn rows_with_leaf(targets: &Targets, graph: &RelationGraph) -> Vec<bool> {
    let mut is_leaf = vec![false; graph.len()];
    graph.leaves().for_each(|leaf| is_leaf[leaf.index()] = true);
    let leaves = is_leaf.iter().filter(|leaf| **leaf).count();
    let has_leaf = |row: usize| {
        let row = targets.row(row);
        let listed = || row.listed.iter().filter(|entry| is_leaf[entry.label as usize]);
        row.others_off || listed().any(|entry| entry.on) || listed().count() == leaves
    };
    (0..targets.rows()).map(has_leaf).collect()
}

/// The order of rows in an epoch.
pub(crate) fn shuffled(rows: &[u32], seed: u64) -> Vec<u32> {
    let mut order = rows.to_vec();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for last in (1..order.len()).rev() {
        order.swap(last, random.random_range(0..=last));
    }
    order
}

/// Numbers mixed into one seed, so that neighbouring seeds have nothing in common.
pub(crate) fn mix(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0x9e37_79b9_7f4a_7c15, |state, number| {
        let mut x = (state ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    })
}
