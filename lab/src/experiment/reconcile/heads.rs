//! Classifiers that do not know the relations: their logits of held-out and test rows.
//!
//! `lab/python/reconcile_heads.py` trains them with PyTorch and leaves its files in a folder, from which later runs
//! read them. A miniature draws logits at random.

use std::path::{Path, PathBuf};
use std::process::Command;

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph};
use phex::infer::Evidence;
use phex::numeric::{log_sum_exp, softplus};
use phex_io::{EvidenceReader, Limits, ScoreReader, ScoreValues};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::harness::RandomStream;
use crate::harness::data::{read_edges, read_text};

/// The relations of a set that are reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SetRelations {
    /// Nothing but the hierarchy.
    Hierarchy,
    /// The children of a label exclude each other, unless they have a common descendant.
    Siblings,
    /// Exactly one leaf is on.
    Leaves,
    /// A softmax head per level.
    Heads,
}

/// A data set, a kind of classifier, and the relations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct HeadSet {
    /// A folder of hmc, `digits`, `cifar100-ROWS` or `generated`.
    pub(super) name: String,
    /// `lr` or `mlp`.
    pub(super) model: String,
    pub(super) relations: SetRelations,
}

/// Rows with their logits and truths.
#[derive(Debug)]
pub(super) struct HeadRows {
    /// Logits of probabilities; for softmax heads, logarithms of probabilities.
    pub(super) logits: Vec<f64>,
    pub(super) truths: Vec<Evidence>,
}

/// What a classifier says of rows that it has not seen.
#[derive(Debug)]
pub(super) struct TrainedHeads {
    pub(super) graph: RelationGraph,
    /// For the parameters of reconciling.
    pub(super) held_out: HeadRows,
    pub(super) test: HeadRows,
}

impl HeadSet {
    /// Its name in tables.
    pub(super) fn title(&self) -> String {
        let model = self.model.to_uppercase();
        let relations = match self.relations {
            SetRelations::Hierarchy => "hierarchy",
            SetRelations::Siblings => "siblings",
            SetRelations::Leaves => "one leaf",
            SetRelations::Heads => "heads",
        };
        format!("{} {model}, {relations}", self.name)
    }

    /// The classifier of a seed, trained if it was not trained before.
    pub(super) fn load(&self, seed: u64, data: &Path, kept: &Path) -> Result<TrainedHeads, Error> {
        if self.name == "generated" {
            return self.generated(seed);
        }
        let folder = kept.join(format!("{}-{}-{seed}", self.name, self.model));
        if !folder.join("labels.txt").exists() {
            self.train(seed, data, &folder)?;
        }
        let labels: Vec<String> =
            read_text(&folder.join("labels.txt"))?.lines().map(String::from).collect();
        let edges = read_edges(&folder.join("edges.tsv"))?;
        let graph = self.graph(&labels, &edges)?;
        let [held_out, test] = ["fit", "test"].map(|side| read_rows(&folder, side, &labels));
        let (mut held_out, mut test) = (held_out?, test?);
        if self.relations == SetRelations::Heads {
            let coarse = graph.roots().count();
            for row in [&mut held_out, &mut test]
                .into_iter()
                .flat_map(|rows| rows.logits.chunks_mut(labels.len()))
            {
                row.iter_mut().for_each(|logit| *logit = -softplus(-*logit));
                let (coarse, fine) = row.split_at_mut(coarse);
                normalise(coarse);
                normalise(fine);
            }
        }
        Ok(TrainedHeads { graph, held_out, test })
    }

    fn train(&self, seed: u64, data: &Path, folder: &Path) -> Result<(), Error> {
        let python =
            std::env::var_os("PHEX_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
        let script = Path::new("lab/python/reconcile_heads.py");
        let mut command = Command::new(python);
        command.arg(script).args(["--set", &self.name, "--model", &self.model]);
        command.arg("--seed").arg(seed.to_string());
        command.arg("--data").arg(data).arg("--out").arg(folder);
        let failed = |message: String| Error::Broken {
            message: format!(
                "{}: {message}; PHEX_PYTHON names the Python with torch",
                script.display()
            ),
        };
        let done = command.output().map_err(|error| failed(error.to_string()))?;
        if !done.status.success() {
            let text = String::from_utf8_lossy(&done.stderr);
            return Err(failed(String::from(text.lines().last().unwrap_or("it failed"))));
        }
        Ok(())
    }

    fn graph(&self, labels: &[String], edges: &[(String, String)]) -> Result<RelationGraph, Error> {
        let mut builder = GraphBuilder::new();
        builder.close_labels();
        labels.iter().for_each(|label| {
            builder.label(label);
        });
        edges.iter().for_each(|(parent, child)| {
            builder.hierarchy(parent, child, None);
        });
        match self.relations {
            SetRelations::Hierarchy => {}
            SetRelations::Siblings => {
                builder.exclusion_rule(ExclusionRule::Siblings, None);
            }
            SetRelations::Leaves | SetRelations::Heads => {
                builder.single_label();
            }
        }
        Ok(builder.build()?)
    }

    /// Three kinds of four classes each. The head of the kinds is too certain and noisy.
    fn generated(&self, seed: u64) -> Result<TrainedHeads, Error> {
        let mut labels: Vec<String> = (0..3).map(|kind| format!("kind {kind}")).collect();
        let mut edges = Vec::new();
        for class in 0..12 {
            labels.push(format!("class {class}"));
            edges.push((labels[class / 4].clone(), labels[3 + class].clone()));
        }
        let graph = self.graph(&labels, &edges)?;
        let mut random = RandomStream::new(seed, "reconcile");
        let mut draw = |rows: usize| {
            let mut all = HeadRows { logits: Vec::new(), truths: Vec::new() };
            for _ in 0..rows {
                let class = random.below(12);
                let on = |label: usize| label == class / 4 || label == 3 + class;
                for label in 0..labels.len() {
                    let side = if on(label) { 1.5 } else { -1.5 };
                    let noise = if label < 3 { 3.0 } else { 1.5 };
                    all.logits.push(side + noise * random.normal());
                    all.truths.push(Evidence::known(on(label)));
                }
                if self.relations == SetRelations::Heads {
                    let start = all.logits.len() - labels.len();
                    normalise(&mut all.logits[start..start + 3]);
                    normalise(&mut all.logits[start + 3..]);
                }
            }
            all
        };
        Ok(TrainedHeads { graph, held_out: draw(200), test: draw(300) })
    }
}

/// Replaces scores by the logarithms of their softmax.
fn normalise(scores: &mut [f64]) {
    let total = log_sum_exp(scores.iter().copied());
    scores.iter_mut().for_each(|score| *score -= total);
}

fn read_rows(folder: &Path, side: &str, labels: &[String]) -> Result<HeadRows, Error> {
    let limits = Limits::default();
    let path = folder.join(format!("{side}_logits.npy"));
    let mut reader = ScoreReader::open(&path, None, labels, &[], &limits)?;
    let mut rows = HeadRows { logits: Vec::new(), truths: Vec::new() };
    while let Some(block) = reader.next_rows(4096)? {
        match block.values {
            ScoreValues::F32(values) => rows.logits.extend(values.into_iter().map(f64::from)),
            ScoreValues::F64(values) => rows.logits.extend(values),
        }
    }
    let path = folder.join(format!("{side}_truths.npy"));
    let mut reader = EvidenceReader::open(&path, None, labels, &[], &limits)?;
    while let Some(block) = reader.next_rows(4096)? {
        rows.truths.extend(block.values);
    }
    if rows.truths.len() != rows.logits.len() {
        let message = String::from("there is not one truth per logit; remove the folder");
        return Err(Error::WrongData { path: folder.to_owned(), message });
    }
    Ok(rows)
}
