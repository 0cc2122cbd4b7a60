//! The problems that ours and the peers solve, and the files in which peers read them.
//!
//! `bench/peers/README.md` describes the files: a JSON header beside raw arrays, little-endian.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use phex::graph::{ExclusionRule, LabelId, Strength};
use phex::model::{Ising, Model, OneOfGroup, Relation};
use serde_json::json;

use crate::data::{graph, imagenet_edges};
use crate::random::Random;

/// Rows of scores in a file; larger batches repeat them.
const ROWS: usize = 256;

/// A pairwise model with rows of scores.
pub(super) struct Problem {
    pub(super) name: &'static str,
    pub(super) model: Arc<Model>,
    /// Couplings of the Ising form; with a group, of the model without it.
    pub(super) couplings: Vec<(usize, usize, f64)>,
    /// The labels of the one-of group; empty where there is none.
    pub(super) group: Vec<usize>,
    /// Rows of scores for our engine, which has the fixed fields as a bias.
    pub(super) scores: Vec<f32>,
    /// Rows of fields, with the fixed ones.
    fields: Vec<f32>,
    /// Batches that peers run.
    batches: Vec<usize>,
}

impl Problem {
    /// From the Ising form, and a group apart from it.
    fn new(
        name: &'static str,
        ising: Ising,
        one_of: Vec<OneOfGroup>,
        scale: f64,
        batches: &[usize],
    ) -> Problem {
        let n = ising.h.len();
        let mut random = Random::new(1);
        let scores: Vec<f32> = (0..ROWS * n).map(|_| (scale * random.normal()) as f32).collect();
        let field = |(at, score): (usize, &f32)| (ising.h[at % n] - f64::from(*score) / 2.0) as f32;
        let fields = scores.iter().enumerate().map(field).collect();
        let group = one_of.iter().flat_map(|group| &group.labels);
        let group = group.map(|label| label.index()).collect();
        let couplings: Vec<(usize, usize, f64)> =
            ising.j.into_iter().filter(|coupling| coupling.2 != 0.0).collect();
        // Symmetric in the spins, as the peers have it: where messages do not converge, the answer depends
        // on what uniform first messages mean, and that on how fields are shared out.
        let pair = |&(a, b, j): &(usize, usize, f64)| {
            let (a, b) = (LabelId::from(a), LabelId::from(b));
            Relation::Pair { a, b, costs: [[j, -j], [-j, j]] }
        };
        let relations = couplings.iter().map(pair).collect();
        let bias = ising.h.iter().map(|h| -2.0 * h).collect();
        let model = Arc::new(Model::from_parts(ising.names, bias, 0.0, relations, one_of));
        Problem { name, model, couplings, group, scores, fields, batches: batches.to_vec() }
    }

    /// A grid with couplings and fields at random.
    pub(super) fn grid(name: &'static str, side: usize, batches: &[usize]) -> Problem {
        let mut random = Random::new(2);
        let mut j = Vec::new();
        for label in 0..side * side {
            if label % side + 1 < side {
                j.push((label, label + 1, 0.1 * random.normal()));
            }
            if label + side < side * side {
                j.push((label, label + side, 0.1 * random.normal()));
            }
        }
        let names = (0..side * side).map(|label| label.to_string()).collect();
        let ising = Ising { names, h: vec![0.0; side * side], j, offset: 0.0 };
        // Fields of standard deviation 0.5, as `make_problem.py` has them.
        Problem::new(name, ising, Vec::new(), 1.0, batches)
    }

    /// ImageNet's labels at u = 0.5, every pair without a common descendant exclusive.
    pub(super) fn imagenet(
        name: &'static str,
        leaves: bool,
        batches: &[usize],
    ) -> anyhow::Result<Problem> {
        let edges = imagenet_edges().context("no ImageNet hierarchy (set PHEX_DATA)")?;
        let soft = Strength::U(0.5);
        let rule = ExclusionRule::NoCommonDescendant;
        let of = |leaves| graph(&edges, rule, soft, soft, leaves).and_then(|g| Ok(Model::new(&g)?));
        let model: Model = of(leaves)?;
        // The group is apart in the file: the Ising form is of the model without it.
        let ising = of(false)?.to_ising(&vec![0.0; model.len()], None)?;
        Ok(Problem::new(name, ising, model.one_of().to_vec(), 2.0, batches))
    }

    /// Messages over pairs in an iteration.
    pub(super) fn messages(&self) -> usize {
        2 * self.couplings.len()
    }

    /// The first rows of the scores, repeated.
    pub(super) fn batch(&self, rows: usize) -> Vec<f32> {
        self.scores.iter().copied().cycle().take(rows * self.model.len()).collect()
    }

    /// Where the header is.
    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(self.name).with_extension("json")
    }

    /// Writes the header and its arrays.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let array = |kind: &str, bytes: Vec<u8>| -> anyhow::Result<String> {
            let name = format!("{}.{kind}.bin", self.name);
            std::fs::write(folder.join(&name), bytes)?;
            Ok(name)
        };
        let singles = |values: &mut dyn Iterator<Item = f32>| -> Vec<u8> {
            values.flat_map(f32::to_le_bytes).collect()
        };
        let indices = |values: &mut dyn Iterator<Item = usize>| -> Vec<u8> {
            values.flat_map(|value| (value as u32).to_le_bytes()).collect()
        };
        let couplings = &self.couplings;
        let mut head = json!({
            "format": "phex-peers-1",
            "name": self.name,
            "n": self.model.len(),
            "edges": array("edges", indices(&mut couplings.iter().flat_map(|c| [c.0, c.1])))?,
            "j": array("j", singles(&mut couplings.iter().map(|c| c.2 as f32)))?,
            "h": array("h", singles(&mut self.fields.iter().copied()))?,
            "iterations": 20,
            "batches": self.batches,
            "reads": 64,
            "sweeps": 200,
        });
        if !self.group.is_empty() {
            head["group"] = json!(array("group", indices(&mut self.group.iter().copied()))?);
        }
        let path = self.path(folder);
        std::fs::write(&path, serde_json::to_string_pretty(&head)?)
            .with_context(|| path.display().to_string())
    }
}
