//! The graphs and scores that approximate engines are compared on.

use std::collections::HashMap;

use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::model::Model;

use crate::harness::RandomStream;
use crate::harness::data::{graph, imagenet_edges};

/// Scores are `ℓ = 2z`: the log-odds of a unary potential `exp(±z)`.
const LOG_ODDS: f64 = 2.0;

/// A random tree whose siblings exclude each other.
pub(super) fn tree(labels: usize, branching: usize, u: f64, seed: u64) -> anyhow::Result<Model> {
    let mut random = RandomStream::new(seed, "tree");
    let mut builder = GraphBuilder::new();
    let soft = Some(Strength::U(u));
    let (mut open, mut made) = (vec![0], 1);
    while made < labels {
        let parent = open.swap_remove(random.below(open.len()));
        let children = (2 + random.below(branching - 1)).min(labels - made);
        for child in made..made + children {
            builder.hierarchy(&format!("l{parent}"), &format!("l{child}"), soft);
            open.push(child);
        }
        made += children;
    }
    builder.exclusion_rule(ExclusionRule::Siblings, soft);
    Ok(Model::new(&builder.build()?)?)
}

/// Rows of `z ~ N(0, s²)`.
pub(super) fn diffuse(labels: usize, rows: usize, s: f64, seed: u64) -> Vec<f32> {
    let mut random = RandomStream::new(seed, "diffuse scores");
    (0..labels * rows).map(|_| (LOG_ODDS * s * random.normal()) as f32).collect()
}

/// How the scores of a row are distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ScoreKind {
    /// `z ~ N(0, 1)`: early in training, or a hard image.
    N1,
    /// A leaf and its ancestors `N(1, 1)`, the rest `N(−2, 1)`.
    Real,
    /// A leaf and its ancestors `N(0, 1)`, the rest `N(−2, 1)`.
    Weak,
}

impl ScoreKind {
    pub(super) const ALL: [ScoreKind; 3] = [ScoreKind::N1, ScoreKind::Real, ScoreKind::Weak];

    pub(super) fn name(self) -> &'static str {
        match self {
            ScoreKind::N1 => "N1",
            ScoreKind::Real => "real",
            ScoreKind::Weak => "weak",
        }
    }
}

/// The ImageNet hierarchy.
pub(super) struct ImageNet {
    edges: Vec<(String, String)>,
}

impl ImageNet {
    /// Reads it from the data sets.
    pub(super) fn read() -> Result<ImageNet, crate::Error> {
        Ok(ImageNet { edges: imagenet_edges()? })
    }

    /// All relations soft; labels without a common descendant exclude each other.
    pub(super) fn model(&self, u: f64, leaves: bool) -> anyhow::Result<Model> {
        let soft = Strength::U(u);
        let rule = ExclusionRule::NoCommonDescendant;
        Ok(Model::new(&graph(&self.edges, rule, soft, soft, leaves)?)?)
    }

    pub(super) fn scores(
        &self,
        model: &Model,
        kind: ScoreKind,
        rows: usize,
        seed: u64,
    ) -> Vec<f32> {
        let (on_path, off_path) = match kind {
            ScoreKind::N1 => (0.0, 0.0),
            ScoreKind::Real => (1.0, -2.0),
            ScoreKind::Weak => (0.0, -2.0),
        };
        let mut random = RandomStream::new(seed, "scores of a path");
        let mut scores = Vec::with_capacity(rows * model.len());
        for _ in 0..rows {
            let path = self.path(model, &mut random);
            scores.extend(path.into_iter().map(|on| {
                let mean = if on { on_path } else { off_path };
                (LOG_ODDS * (mean + random.normal())) as f32
            }));
        }
        scores
    }

    /// A random leaf and its ancestors.
    fn path(&self, model: &Model, random: &mut RandomStream) -> Vec<bool> {
        let names = model.names().iter().enumerate();
        let index: HashMap<&str, usize> = names.map(|(at, name)| (name.as_str(), at)).collect();
        let mut parents: Vec<Vec<usize>> = vec![Vec::new(); model.len()];
        let mut is_leaf = vec![true; model.len()];
        for (parent, child) in &self.edges {
            let (parent, child) = (index[parent.as_str()], index[child.as_str()]);
            parents[child].push(parent);
            is_leaf[parent] = false;
        }
        let leaves: Vec<usize> = (0..model.len()).filter(|&label| is_leaf[label]).collect();
        let mut on = vec![false; model.len()];
        let mut open = vec![leaves[random.below(leaves.len())]];
        while let Some(label) = open.pop() {
            if !std::mem::replace(&mut on[label], true) {
                open.extend(&parents[label]);
            }
        }
        on
    }
}
