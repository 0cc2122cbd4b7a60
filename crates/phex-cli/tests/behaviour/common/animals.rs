//! Made-up animals: rows of numbers around a centre for each kind, some of them labelled coarsely.
#![allow(dead_code)] // Not every test file trains.

use std::fs;
use std::path::Path;

pub const GRAPH: &str = r#"exclude = "siblings"
[[hierarchy]]
parent = "animal"
children = ["dog", "cat"]
[[hierarchy]]
parent = "dog"
children = ["husky", "poodle"]
"#;

/// The start of a command line that trains on them.
pub const TRAIN: [&str; 12] = [
    "train",
    "g.toml",
    "--data",
    "train.csv",
    "--label-column",
    "is",
    "--drop",
    "id",
    "--validation-fraction",
    "0.2",
    "--unlisted",
    "off",
];

/// A folder with a graph and data.
pub struct Animals(tempfile::TempDir);

impl Animals {
    pub fn new(training: usize, test: usize) -> Animals {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("g.toml"), GRAPH).unwrap();
        fs::write(folder.path().join("train.csv"), rows(training, 1)).unwrap();
        fs::write(folder.path().join("test.csv"), rows(test, 2)).unwrap();
        Animals(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Numbers from 0 to 1 that are the same on every machine.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn rows(count: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = String::from("id,x,y,fur,is\n");
    for at in 0..count {
        let (kind, x, y) = [("husky", 2.0, 2.0), ("poodle", 2.0, -2.0), ("cat", -2.0, 0.0)][at % 3];
        let mut near = |centre: f64| centre + 3.0 * (dice.roll() + dice.roll() - 1.0);
        let (x, y) = (near(x), near(y));
        let x = if at % 17 == 0 { String::new() } else { format!("{x:.3}") };
        let fur = if dice.roll() < 0.5 { "long" } else { "short" };
        // One dog in ten is just a dog: where unlisted labels are off, it is of neither kind.
        let label = if kind != "cat" && dice.roll() < 0.1 { "dog" } else { kind };
        text.push_str(&format!("r{at},{x},{y:.3},{fur},{label}\n"));
    }
    text
}
