//! The data sets, their published results, and the settings of our head.

use std::path::PathBuf;

use anyhow::Context as _;
use phex::graph::RelationGraph;
use phex::infer::Evidence;
use phex_io::{
    Dataset, DatasetOptions, Target, TargetOptions, TargetSource, Targets, Unlisted, graph_of_arff,
    read_dataset,
};
use phex_train::{
    Config, HeadConfig, ObjectiveConfig, OptimiserConfig, RateSchedule, Stage, Start,
};

use crate::harness::{RandomStream, data};

/// The family of a set, which decides the settings. They were chosen on validation data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HmcFamily {
    /// FunCat: a tree of 499 classes.
    Tree,
    /// The Gene Ontology: a DAG of about 4100 classes.
    Ontology,
    Diatoms,
    Clef,
}

/// A data set of the benchmark.
#[derive(Debug, Clone, Copy)]
pub(super) struct HmcSet {
    pub(super) name: &'static str,
    kind: HmcFamily,
    /// The published AU(PRC) of C-HMCNN.
    pub(super) published: f64,
    input_dropout: f64,
}

const fn set(name: &'static str, kind: HmcFamily, published: f64, input_dropout: f64) -> HmcSet {
    HmcSet { name, kind, published, input_dropout }
}

pub(super) const SETS: [HmcSet; 12] = [
    set("cellcycle_FUN", HmcFamily::Tree, 0.255, 0.15),
    set("derisi_FUN", HmcFamily::Tree, 0.195, 0.15),
    set("gasch1_FUN", HmcFamily::Tree, 0.286, 0.15),
    set("seq_FUN", HmcFamily::Tree, 0.292, 0.3),
    set("spo_FUN", HmcFamily::Tree, 0.215, 0.15),
    set("cellcycle_GO", HmcFamily::Ontology, 0.413, 0.0),
    set("derisi_GO", HmcFamily::Ontology, 0.370, 0.0),
    set("gasch1_GO", HmcFamily::Ontology, 0.436, 0.0),
    set("seq_GO", HmcFamily::Ontology, 0.446, 0.0),
    set("spo_GO", HmcFamily::Ontology, 0.382, 0.0),
    set("Diatoms", HmcFamily::Diatoms, 0.758, 0.0),
    set("ImCLEF07A", HmcFamily::Clef, 0.956, 0.1),
];

/// The roots of the Gene Ontology, which are always on and do not count.
pub(super) const ROOTS: [&str; 3] = ["GO0003674", "GO0005575", "GO0008150"];

/// A set in memory: train and valid together, and test.
#[derive(Debug)]
pub(super) struct LoadedSet {
    pub(super) graph: RelationGraph,
    pub(super) training: Dataset,
    pub(super) test: Dataset,
}

impl HmcSet {
    fn files(&self) -> (Vec<PathBuf>, PathBuf) {
        let name = self.name;
        let file = |part: &str| data::path(&format!("hmc/{name}/{name}.{part}.arff"));
        let single = |part: &str| data::path(&format!("hmc/{name}_{part}.arff"));
        match self.kind {
            HmcFamily::Tree | HmcFamily::Ontology => {
                (vec![file("train"), file("valid")], file("test"))
            }
            HmcFamily::Diatoms => (vec![single("train")], single("test")),
            HmcFamily::Clef => (vec![single("Train")], single("Test")),
        }
    }

    pub(super) fn load(&self) -> anyhow::Result<LoadedSet> {
        let (training, test) = self.files();
        let graph = graph_of_arff(&training[0])?.build()?;
        let mut targets = TargetOptions::new(TargetSource::Hierarchical);
        targets.unlisted = Unlisted::Off;
        let mut options = DatasetOptions { targets: Some(targets), ..DatasetOptions::default() };
        let training = read_dataset(&training, &options, Some(&graph))?;
        options.schema = Some(training.schema.clone());
        let test = read_dataset(&[test], &options, Some(&graph))?;
        Ok(LoadedSet { graph, training, test })
    }

    /// The settings of our head, also with the baselines.
    pub(super) fn config(&self, objective: ObjectiveConfig, seed: u64) -> Config {
        let (dropout, batch, learning_rate, epochs) = match self.kind {
            HmcFamily::Tree => (0.7, 32, 3e-4, 42),
            HmcFamily::Ontology => (0.7, 32, 3e-4, 40),
            HmcFamily::Diatoms => (0.5, 64, 5e-4, 96),
            HmcFamily::Clef => (0.5, 128, 1e-3, 36),
        };
        Config {
            head: HeadConfig {
                hidden: vec![1000, 1000],
                dropout,
                input_dropout: self.input_dropout,
                start: Start::Uniform,
                prior: true,
                feature_clip: 3.0,
                ..HeadConfig::default()
            },
            objective,
            optimiser: OptimiserConfig {
                learning_rate,
                weight_decay: 0.0,
                schedule: RateSchedule::Constant,
                batch,
                average: 0.998,
                ..OptimiserConfig::default()
            },
            stages: vec![Stage { epochs, ..Stage::default() }],
            seed,
            ..Config::default()
        }
    }
}

impl LoadedSet {
    /// The targets, with a share of the known labels removed at random.
    pub(super) fn targets(&self, missing: f64, seed: u64) -> anyhow::Result<Targets> {
        let all = self.training.targets.as_ref().context("the training data have no labels")?;
        if missing == 0.0 {
            return Ok(all.clone());
        }
        let mut random = RandomStream::new(seed, "missing labels");
        let mut kept = Targets::new(all.labels());
        let mut evidence = vec![Evidence::Unknown; all.labels()];
        for row in 0..all.rows() {
            all.fill(row, &mut evidence);
            let entries = (0u32..).zip(&evidence);
            let entries = entries.filter_map(|(label, evidence)| Some((label, evidence.is_on()?)));
            let listed: Vec<Target> = entries
                .filter(|_| random.uniform() >= missing)
                .map(|(label, on)| Target { label, on })
                .collect();
            kept.push(&listed, false);
        }
        Ok(kept)
    }
}
