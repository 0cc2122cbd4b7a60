//! Generated rows: labels with features around a centre.
//!
//! `features = centre + noise`, near-normal with deviation 1: sums of twelve uniform numbers, which have the
//! same bits on every machine. Values are rounded as they are written, so that files hold what was trained on.

use phex::graph::RelationGraph;
use phex_io::{Dataset, FeatureColumn, FeatureKind, FeatureSchema, Features, Target, Targets};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How many features a row has.
pub(super) const FEATURES: usize = 32;

/// A generator of rows.
pub(super) struct RowMaker {
    random: Xoshiro256PlusPlus,
    values: Vec<f32>,
    targets: Targets,
}

impl RowMaker {
    pub(super) fn new(graph: &RelationGraph, seed: u64) -> RowMaker {
        RowMaker { random: random(seed), values: Vec::new(), targets: Targets::new(graph.len()) }
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.random.random::<f64>() < probability
    }

    /// Adds a row. With `others_off`, labels that are not listed are off; otherwise they are unknown.
    pub(super) fn push(&mut self, centre: &[f64], labels: &[Target], others_off: bool) {
        let noise = normals(&mut self.random);
        let value = |(a, b): (&f64, &f64)| (((a + b) * 1000.0).round() / 1000.0) as f32;
        self.values.extend(centre.iter().zip(&noise).map(value));
        self.targets.push(labels, others_off);
    }

    pub(super) fn finish(self) -> Dataset {
        let columns = (1..=FEATURES)
            .map(|at| FeatureColumn { name: format!("x{at}"), kind: FeatureKind::Numeric });
        let schema = FeatureSchema { columns: columns.collect() };
        let (names, rows) = (schema.names(), self.targets.rows());
        let features = Features { names, rows, columns: FEATURES, values: self.values };
        let targets = Some(self.targets);
        let (kept, unseen, ignored) = (Vec::new(), Vec::new(), Vec::new());
        Dataset { features, schema, targets, kept, unseen, ignored }
    }
}

/// The generator of a seed.
pub(super) fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Near-normal numbers, one per feature.
pub(super) fn normals(random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    (0..FEATURES).map(|_| normal()).collect()
}

/// `Σ factor · part`.
pub(super) fn sum(parts: &[(f64, &[f64])]) -> Vec<f64> {
    (0..FEATURES).map(|at| parts.iter().map(|(factor, part)| factor * part[at]).sum()).collect()
}
