//! Loopy belief propagation as in the paper, for comparison: flooding, 20 iterations, no damping.
//!
//! Odds domain, as fast as this layout goes: a message is `ρ = m(1)/m(0)`, a belief the odds `B`,
//! `t = exp(−2J)`, and the message from `i` to `j` is `(t B_i + ρ_ji) / (B_i + t ρ_ji)`. No exp or log
//! in the loop; 16 rows side by side.

use phex::graph::LabelId;
use phex::model::Model;

const LANES: usize = 16;
type Lane = [f32; LANES];

/// A pairwise model for message passing.
pub(crate) struct Lbp {
    labels: usize,
    /// For each edge the two labels and `t`.
    edges: Vec<(u32, u32, f32)>,
    fields: Vec<f32>,
}

impl Lbp {
    /// From the Ising form of a soft model.
    pub(crate) fn new(model: &Model) -> anyhow::Result<Lbp> {
        let ising = model.to_ising(&vec![0.0; model.len()], None)?;
        let edges = ising.j.iter().filter(|edge| edge.2 != 0.0);
        let edges = edges
            .map(|&(a, b, j)| (LabelId::from(a).0, LabelId::from(b).0, (-2.0 * j).exp() as f32));
        Ok(Lbp {
            labels: model.len(),
            edges: edges.collect(),
            fields: ising.h.iter().map(|h| (-2.0 * h) as f32).collect(),
        })
    }

    pub(crate) fn edges(&self) -> usize {
        self.edges.len()
    }

    /// The beliefs of all rows after some iterations.
    pub(crate) fn run(&self, scores: &[f32], iterations: usize) -> Vec<f32> {
        let rows = scores.len() / self.labels;
        let mut out = vec![0.0; scores.len()];
        let mut own = vec![[1.0; LANES]; self.labels];
        let mut belief = own.clone();
        let mut next = own.clone();
        // Both directions of each edge: to the second label, to the first.
        let mut messages: Vec<[Lane; 2]> = vec![[[1.0; LANES]; 2]; self.edges.len()];
        for first in (0..rows).step_by(LANES) {
            let here = LANES.min(rows - first);
            for (label, own) in own.iter_mut().enumerate() {
                for lane in 0..here {
                    let score = scores[(first + lane) * self.labels + label] + self.fields[label];
                    own[lane] = score.exp();
                }
            }
            messages.fill([[1.0; LANES]; 2]);
            belief.copy_from_slice(&own);
            for _ in 0..iterations {
                next.copy_from_slice(&own);
                iterate(&self.edges, &belief, &mut messages, &mut next);
                std::mem::swap(&mut belief, &mut next);
            }
            for (label, belief) in belief.iter().enumerate() {
                for lane in 0..here {
                    out[(first + lane) * self.labels + label] = belief[lane] / (1.0 + belief[lane]);
                }
            }
        }
        out
    }
}

#[multiversion::multiversion(targets = "simd")]
fn iterate(
    edges: &[(u32, u32, f32)],
    belief: &[Lane],
    messages: &mut [[Lane; 2]],
    next: &mut [Lane],
) {
    for (&(a, b, t), [to_b, to_a]) in edges.iter().zip(messages) {
        let (odds_a, odds_b) = (&belief[a as usize], &belief[b as usize]);
        for lane in 0..LANES {
            let (forth, back) = (to_b[lane], to_a[lane]);
            to_b[lane] = (t * odds_a[lane] + back) / (odds_a[lane] + t * back);
            to_a[lane] = (t * odds_b[lane] + forth) / (odds_b[lane] + t * forth);
        }
        let sum = &mut next[b as usize];
        for lane in 0..LANES {
            sum[lane] *= to_b[lane];
        }
        let sum = &mut next[a as usize];
        for lane in 0..LANES {
            sum[lane] *= to_a[lane];
        }
    }
}
