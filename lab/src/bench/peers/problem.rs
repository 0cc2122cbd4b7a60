//! The problems that we and the peers solve, and the files from which peers read them.
//!
//! `lab/peers/README.md` describes the files: a JSON header and raw little-endian arrays.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use phex::graph::{ExclusionRule, LabelId, Strength};
use phex::model::{Ising, Model, OneOfGroup, Relation};
use serde_json::json;

use crate::harness::RandomStream;
use crate::harness::data::{graph, imagenet_edges};

/// Rows of scores in a file; larger batches repeat them.
const ROWS: usize = 256;

/// A pairwise model with rows of scores.
pub(super) struct PeerProblem {
    pub(super) name: &'static str,
    pub(super) model: Arc<Model>,
    /// Couplings of the Ising form; with a group, of the model without it.
    pub(super) couplings: Vec<(usize, usize, f64)>,
    /// The labels of the one-of group; empty if there is none.
    pub(super) group: Vec<usize>,
    /// Rows of scores for our engine, which has the constant fields as a bias.
    pub(super) scores: Vec<f32>,
    /// Rows of fields for the peers, with the constant ones.
    fields: Vec<f32>,
    /// Batches that peers run.
    batches: Vec<usize>,
}

impl PeerProblem {
    /// From the Ising form, and separate groups.
    fn new(
        name: &'static str,
        ising: Ising,
        one_of: Vec<OneOfGroup>,
        scale: f64,
        batches: &[usize],
    ) -> PeerProblem {
        let n = ising.h.len();
        let mut random = RandomStream::new(1, "scores");
        let scores: Vec<f32> = (0..ROWS * n).map(|_| (scale * random.normal()) as f32).collect();
        let field = |(at, score): (usize, &f32)| (ising.h[at % n] - f64::from(*score) / 2.0) as f32;
        let fields = scores.iter().enumerate().map(field).collect();
        let group = one_of.iter().flat_map(|group| &group.labels);
        let group = group.map(|label| label.index()).collect();
        let couplings: Vec<(usize, usize, f64)> =
            ising.j.into_iter().filter(|coupling| coupling.2 != 0.0).collect();
        // Symmetric in the spins, like the peers: if messages do not converge, the answer depends on what uniform first
        // messages mean, and so on how fields are distributed.
        let pair = |&(a, b, j): &(usize, usize, f64)| {
            let (a, b) = (LabelId::from(a), LabelId::from(b));
            Relation::Pair { a, b, costs: [[j, -j], [-j, j]] }
        };
        let relations = couplings.iter().map(pair).collect();
        let bias = ising.h.iter().map(|h| -2.0 * h).collect();
        let model = Arc::new(Model::from_parts(ising.names, bias, 0.0, relations, one_of));
        PeerProblem { name, model, couplings, group, scores, fields, batches: batches.to_vec() }
    }

    /// A grid with random couplings and fields.
    pub(super) fn grid(name: &'static str, side: usize, batches: &[usize]) -> PeerProblem {
        let mut random = RandomStream::new(2, "couplings");
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
        // Fields of standard deviation 0.5, as in `make_problem.py`.
        PeerProblem::new(name, ising, Vec::new(), 1.0, batches)
    }

    /// ImageNet's labels at u = 0.5; labels without a common descendant exclude each other.
    pub(super) fn imagenet(
        name: &'static str,
        leaves: bool,
        batches: &[usize],
    ) -> anyhow::Result<PeerProblem> {
        let edges = imagenet_edges()?;
        let soft = Strength::U(0.5);
        let rule = ExclusionRule::NoCommonDescendant;
        let of = |leaves| -> anyhow::Result<Model> {
            Ok(Model::new(&graph(&edges, rule, soft, soft, leaves)?)?)
        };
        let model: Model = of(leaves)?;
        // The file has the group separately: the Ising form is that of the model without it.
        let ising = of(false)?.to_ising(&vec![0.0; model.len()], None)?;
        Ok(PeerProblem::new(name, ising, model.one_of().to_vec(), 2.0, batches))
    }

    /// Messages over pairs per iteration.
    pub(super) fn messages(&self) -> usize {
        2 * self.couplings.len()
    }

    /// The first rows of the scores, repeated.
    pub(super) fn batch(&self, rows: usize) -> Vec<f32> {
        self.scores.iter().copied().cycle().take(rows * self.model.len()).collect()
    }

    /// The path of the header.
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
