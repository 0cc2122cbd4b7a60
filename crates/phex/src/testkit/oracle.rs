//! Applies the definitions literally to all 2ⁿ states.
//!
//! `p(x) ∝ exp(Σ ℓᵢ xᵢ − Σ w_r v_r(x)) · Π_g [exactly one of g is on]`, where a hard relation has
//! `w = ∞`. A state is a bit mask: bit `i` is label `i`. The cost is O(2ⁿ · relations).

use crate::graph::{ExclusionRule, LabelId, RelationGraph, Semantics};

/// Graphs with more labels are refused, because the oracle visits all states.
pub const MAX_LABELS: usize = 20;

/// All states of a small graph and their log-weights.
#[derive(Debug, Clone)]
pub struct Oracle {
    n: usize,
    /// `(parent, child, cost)`.
    hierarchy: Vec<(usize, usize, f64)>,
    /// `(a, b, cost)`. A group or rule is written as all its pairs.
    exclusions: Vec<(usize, usize, f64)>,
    one_of: Vec<u32>,
}

impl Oracle {
    /// Reads the relations of a graph. Those of a rule follow from its definition.
    ///
    /// # Panics
    /// Above [`MAX_LABELS`] labels.
    pub fn new(graph: &RelationGraph) -> Oracle {
        let n = graph.len();
        assert!(n <= MAX_LABELS, "the oracle can handle up to {MAX_LABELS} labels");
        let hierarchy: Vec<(usize, usize, f64)> = graph
            .hierarchy()
            .iter()
            .map(|edge| (edge.parent.index(), edge.child.index(), edge.strength.cost()))
            .collect();
        let mut exclusions = Vec::new();
        for exclusion in graph.exclusions() {
            for (at, a) in exclusion.labels.iter().enumerate() {
                for b in &exclusion.labels[at + 1..] {
                    exclusions.push((a.index(), b.index(), exclusion.strength.cost()));
                }
            }
        }
        if let Some(declared) = graph.rule() {
            let pairs = rule_pairs(declared.rule, n, &hierarchy);
            // Under sparse semantics, a soft rule charges for its minimal pairs. The minimal pairs
            // of a hard rule imply the others only through hard edges.
            let all_hard = hierarchy.iter().all(|edge| edge.2 == f64::INFINITY);
            let minimal = graph.semantics() == Semantics::Sparse
                && !(all_hard && declared.strength.is_hard());
            let cost = declared.strength.cost();
            let kept = pairs.iter().filter(|&&pair| {
                !minimal
                    || declared.rule == ExclusionRule::Siblings
                    || is_minimal(pair, &pairs, &hierarchy)
            });
            exclusions.extend(kept.map(|&(a, b)| (a, b, cost)));
        }
        let mask = |labels: &[LabelId]| labels.iter().fold(0u32, |mask, id| mask | 1 << id.0);
        let one_of = graph.one_of().iter().map(|group| mask(&group.labels)).collect();
        Oracle { n, hierarchy, exclusions, one_of }
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The cost of a state. It is infinite when the state is not legal.
    pub fn cost(&self, state: u32) -> f64 {
        let on = |label: usize| state >> label & 1 == 1;
        // 0 · ∞ is NaN, so only violated relations are added.
        let hierarchy = self.hierarchy.iter().filter(|&&(p, c, _)| on(c) && !on(p));
        let exclusions = self.exclusions.iter().filter(|&&(a, b, _)| on(a) && on(b));
        let violated: f64 = hierarchy.chain(exclusions).map(|&(_, _, cost)| cost).sum();
        let satisfied = self.one_of.iter().all(|&group| (state & group).count_ones() == 1);
        if satisfied { violated } else { f64::INFINITY }
    }

    /// Whether a state violates no hard relation.
    pub fn is_legal(&self, state: u32) -> bool {
        self.cost(state) < f64::INFINITY
    }

    /// The legal states, in ascending order as numbers.
    pub fn legal_states(&self) -> Vec<u32> {
        (0..1u32 << self.n).filter(|&state| self.is_legal(state)).collect()
    }

    /// The log-weight of a state under these logits.
    pub fn log_weight(&self, state: u32, logits: &[f64]) -> f64 {
        let score: f64 =
            (0..self.n).filter(|&label| state >> label & 1 == 1).map(|label| logits[label]).sum();
        score - self.cost(state)
    }

    /// The log-partition and the marginals under these logits, over the states that agree with the
    /// evidence. `(-inf, zeros)` when there are none.
    pub fn marginals(&self, logits: &[f64], evidence: &[Option<bool>]) -> (f64, Vec<f64>) {
        let agrees = |state: u32| {
            let mut known = evidence.iter().enumerate();
            known.all(|(label, known)| known.is_none_or(|on| on == (state >> label & 1 == 1)))
        };
        let weights: Vec<(u32, f64)> = (0..1u32 << self.n)
            .filter(|&state| agrees(state))
            .map(|state| (state, self.log_weight(state, logits)))
            .filter(|&(_, weight)| weight > f64::NEG_INFINITY)
            .collect();
        let most = weights.iter().map(|&(_, weight)| weight).fold(f64::NEG_INFINITY, f64::max);
        let mut marginals = vec![0.0; self.n];
        if most == f64::NEG_INFINITY {
            return (most, marginals);
        }
        let total: f64 = weights.iter().map(|&(_, weight)| (weight - most).exp()).sum();
        for (state, weight) in weights {
            let probability = (weight - most).exp() / total;
            for (label, marginal) in marginals.iter_mut().enumerate() {
                if state >> label & 1 == 1 {
                    *marginal += probability;
                }
            }
        }
        (most + total.ln(), marginals)
    }
}

/// `below[a]` is the mask of the labels that `a` subsumes, including itself.
fn descendants(n: usize, hierarchy: &[(usize, usize, f64)]) -> Vec<u32> {
    let mut below: Vec<u32> = (0..n).map(|label| 1 << label).collect();
    for _ in 0..n {
        for &(parent, child, _) in hierarchy {
            below[parent] |= below[child];
        }
    }
    below
}

fn rule_pairs(
    rule: ExclusionRule,
    n: usize,
    hierarchy: &[(usize, usize, f64)],
) -> Vec<(usize, usize)> {
    let below = descendants(n, hierarchy);
    let parents = |label: usize| {
        hierarchy.iter().filter(move |edge| edge.1 == label).fold(0u32, |mask, e| mask | 1 << e.0)
    };
    let mut pairs = Vec::new();
    for a in 0..n {
        for b in a + 1..n {
            let comparable = below[a] >> b & 1 == 1 || below[b] >> a & 1 == 1;
            let overlap = below[a] & below[b] != 0;
            let exclusive = match rule {
                ExclusionRule::NoCommonDescendant => !overlap,
                ExclusionRule::NotSubsumed => !comparable,
                ExclusionRule::Siblings => !overlap && parents(a) & parents(b) != 0,
            };
            if exclusive {
                pairs.push((a, b));
            }
        }
    }
    pairs
}

/// Whether no other pair of the list is above this one.
fn is_minimal(
    (a, b): (usize, usize),
    pairs: &[(usize, usize)],
    hierarchy: &[(usize, usize, f64)],
) -> bool {
    let n = 1 + pairs
        .iter()
        .map(|pair| pair.1)
        .chain(hierarchy.iter().map(|e| e.0.max(e.1)))
        .max()
        .unwrap_or(0);
    let below = descendants(n, hierarchy);
    let above = |high: usize, low: usize| below[high] >> low & 1 == 1;
    !pairs.iter().any(|&(c, d)| {
        (c, d) != (a, b) && ((above(c, a) && above(d, b)) || (above(c, b) && above(d, a)))
    })
}
