//! Examples: features with what is known of their labels.

use phex::graph::RelationGraph;
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
    /// A row an example.
    pub features: &'a Features,
    /// What is known of the labels of each row.
    pub targets: &'a Targets,
}

impl<'a> Examples<'a> {
    /// Features and targets that belong together.
    ///
    /// # Errors
    /// [`Error::Examples`] when they have different numbers of rows, or the targets are not of the
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
            String::from("there is no feature")
        } else {
            return Ok(Examples { features, targets });
        };
        Err(Error::Examples { message })
    }

    /// How many there are.
    pub fn rows(&self) -> usize {
        self.features.rows
    }

    /// The standardised features of some rows, and what is known of each of their labels.
    pub(crate) fn gather(
        &self,
        standardiser: &Standardiser,
        rows: &[u32],
    ) -> (Vec<f32>, Vec<Evidence>) {
        let mut features = Vec::with_capacity(rows.len() * standardiser.columns());
        let mut observed = Vec::with_capacity(rows.len() * self.targets.labels());
        for &row in rows {
            standardiser.push(self.features.row(row as usize), &mut features);
            self.push_observed(row as usize, &mut observed);
        }
        (features, observed)
    }

    /// Adds what is known of a row, an entry a label, to `out`.
    pub(crate) fn push_observed(&self, row: usize, out: &mut Vec<Evidence>) {
        let target = self.targets.row(row);
        let start = out.len();
        let others = if target.others_off { Evidence::Off } else { Evidence::Unknown };
        out.resize(start + self.targets.labels(), others);
        for entry in target.listed {
            out[start + entry.label as usize] = if entry.on { Evidence::On } else { Evidence::Off };
        }
    }

    /// The labels that are on in a row and have none below them that is on too.
    fn most_specific(&self, row: usize, graph: &RelationGraph) -> Vec<u32> {
        let on: Vec<u32> =
            self.targets.row(row).listed.iter().filter(|entry| entry.on).map(|e| e.label).collect();
        let topology = graph.topology();
        let is_above = |label: u32| {
            topology.children(phex::graph::LabelId(label)).iter().any(|child| on.contains(&child.0))
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
        let known = self.know_a_leaf(graph);
        let chosen: Vec<u32> = rows.iter().copied().filter(|&row| known[row as usize]).collect();
        if chosen.is_empty() {
            let message = "no row has a leaf of the hierarchy that is on, so there is nothing to warm \
                           up on; leave the warm-up out";
            return Err(Error::Examples { message: String::from(message) });
        }
        Ok(chosen)
    }

    /// Whether a leaf of the hierarchy is known to be on, or every leaf is known, of each row.
    fn know_a_leaf(&self, graph: &RelationGraph) -> Vec<bool> {
        let mut is_leaf = vec![false; graph.len()];
        graph.leaves().for_each(|leaf| is_leaf[leaf.index()] = true);
        let leaves = is_leaf.iter().filter(|leaf| **leaf).count();
        let knows = |row: usize| {
            let row = self.targets.row(row);
            let listed = || row.listed.iter().filter(|entry| is_leaf[entry.label as usize]);
            row.others_off || listed().any(|entry| entry.on) || listed().count() == leaves
        };
        (0..self.rows()).map(knows).collect()
    }

    /// How often to go over the rows that know a leaf for as many steps as one pass over all rows takes;
    /// none where all rows or few know one.
    pub(crate) fn warm_up_epochs(&self, graph: &RelationGraph) -> Option<usize> {
        const MOST: usize = 1000;
        // With fewer, validation might hold out all of them.
        const FEWEST: usize = 10;
        let fine = self.know_a_leaf(graph).into_iter().filter(|known| *known).count();
        let some = (FEWEST..self.rows()).contains(&fine);
        some.then(|| ((self.rows() as f64 / fine as f64).round() as usize).clamp(1, MOST))
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
                            format!("a class weight is given for `{name}`, which is no label");
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

    /// The observed labels of a row in words: `dog, not cat`.
    pub(crate) fn describe(&self, row: usize, graph: &RelationGraph) -> String {
        let target = self.targets.row(row);
        let word = |entry: &phex_io::Target| {
            let name = graph.name(phex::graph::LabelId(entry.label));
            if entry.on { String::from(name) } else { format!("not {name}") }
        };
        let mut words: Vec<String> = target.listed.iter().take(12).map(word).collect();
        if target.listed.len() > 12 {
            words.push(format!("{} more", target.listed.len() - 12));
        }
        if target.others_off {
            words.push(String::from("nothing else"));
        }
        words.join(", ")
    }
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

/// Numbers mixed into one seed, so that neighbours have nothing in common.
pub(crate) fn mix(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0x9e37_79b9_7f4a_7c15, |state, number| {
        let mut x = (state ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    })
}
