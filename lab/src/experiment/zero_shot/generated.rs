//! A small random data set for miniatures: classes with graded predicates, and rows whose features are a random linear
//! map of their noisy attributes.

use phex_io::Features;

use super::data::{Predicates, ZeroShotData};
use crate::harness::RandomStream;

const CLASSES: usize = 20;
const ATTRIBUTES: usize = 24;
const COLUMNS: usize = 32;
const ROWS_A_CLASS: usize = 30;

/// The same for the same seed.
pub(super) fn generate(seed: u64) -> ZeroShotData {
    let mut random = RandomStream::new(seed, "generated zero-shot data");
    let graded: Vec<Option<f64>> =
        (0..CLASSES * ATTRIBUTES).map(|_| Some(random.uniform().powi(2))).collect();
    let name = |what: &str, count: usize| (0..count).map(|at| format!("{what} {at}")).collect();
    let predicates =
        Predicates::from_graded(name("class", CLASSES), name("attribute", ATTRIBUTES), graded);
    let map: Vec<f64> = (0..ATTRIBUTES * COLUMNS).map(|_| random.normal()).collect();
    let (mut values, mut classes) = (Vec::new(), Vec::new());
    for class in 0..CLASSES {
        for _ in 0..ROWS_A_CLASS {
            let mut row: Vec<f64> = (0..COLUMNS).map(|_| 2.0 * random.normal()).collect();
            for (attribute, c) in predicates.graded(class).iter().enumerate() {
                if random.uniform() < c.unwrap_or(0.0) {
                    let weights = &map[attribute * COLUMNS..(attribute + 1) * COLUMNS];
                    row.iter_mut().zip(weights).for_each(|(x, weight)| *x += weight);
                }
            }
            values.extend(row.into_iter().map(|x| x as f32));
            classes.push(class);
        }
    }
    ZeroShotData {
        about: format!(
            "Generated data: {CLASSES} classes, {ATTRIBUTES} attributes, {} rows of {COLUMNS} features.",
            classes.len()
        ),
        features: Features {
            names: name("feature", COLUMNS),
            rows: classes.len(),
            columns: COLUMNS,
            values,
        },
        classes,
        predicates,
        official: Vec::new(),
        fixed: false,
        noise: None,
    }
}
