//! Prepares a row for sweeps: fields, couplings, costs (with a finite cost for hard relations), the
//! labels that are left to sample, and the states in which the chains start.

use super::LANES;
use super::quadratic::CountedQuadratic;
use super::sweep::{Replica, same};
use crate::infer::approximate::network::{Implied, Network};
use crate::infer::{Block, Evidence, Number};
use crate::numeric::{LaneRandom, log_max, mix, sigmoid_lane};

/// What a hard relation costs in addition to the largest score and the largest soft cost, in nats:
/// e⁻⁴⁰ is 4e-18.
const HARD: f64 = 40.0;

/// A row of scores with its evidence.
#[derive(Debug, Default)]
pub(super) struct GibbsRow {
    /// The field of each label while all others are off. For states of one-of groups, the largest
    /// field is subtracted.
    pub(super) theta: Vec<f32>,
    /// One per entry of the lists of neighbours.
    pub(super) couplings: Vec<f32>,
    /// One per counter.
    pub(super) costs: Vec<f32>,
    /// Binary labels that are not fixed.
    pub(super) free: Vec<u32>,
    /// The remaining states of each one-of group that has several.
    pub(super) groups: Vec<Vec<u32>>,
    /// The evidence of each label, including what follows from it.
    pub(super) evidence: Vec<Evidence>,
    /// The seed of the row. It depends on the scores and the evidence only.
    pub(super) seed: u64,
}

impl GibbsRow {
    /// Reads a row. Returns false when no state agrees with its evidence.
    pub(super) fn read<T: Number>(
        &mut self,
        form: &CountedQuadratic,
        (network, implied): (&Network, &Implied),
        binary: &[usize],
        (block, row): (&Block<'_, T>, usize),
        seed: u64,
    ) -> bool {
        let scores = block.row(row);
        self.evidence.clear();
        self.evidence.extend((0..scores.len()).map(|label| block.evidence(row, label)));
        self.seed = mix(seed);
        for (score, evidence) in scores.iter().zip(&self.evidence) {
            self.seed = mix(self.seed ^ score.to_f64().to_bits());
            self.seed = self.seed.wrapping_add(*evidence as u64);
        }
        if !implied.settle(network, block, row, &mut self.evidence) {
            return false;
        }
        self.free.clear();
        let unknown = |label: &&usize| self.evidence[**label] == Evidence::Unknown;
        self.free.extend(binary.iter().filter(unknown).map(|&label| label as u32));
        self.groups.clear();
        for labels in &network.groups {
            let left: Vec<u32> = labels.iter().filter(unknown).map(|&label| label as u32).collect();
            if !left.is_empty() {
                self.groups.push(left);
            }
        }
        self.weigh(form, scores);
        true
    }

    fn weigh<T: Number>(&mut self, form: &CountedQuadratic, scores: &[T]) {
        let sampled = self.free.iter().chain(self.groups.iter().flatten());
        let score = |label: usize| scores[label].to_f64() + form.bias[label].value(0.0);
        let largest = sampled.map(|&label| score(label as usize).abs()).fold(0.0, f64::max);
        let hard = HARD + largest + form.largest;
        let field = |label: usize| scores[label].to_f64() + form.bias[label].value(hard);
        self.theta.clear();
        self.theta.extend((0..scores.len()).map(|label| field(label) as f32));
        for labels in &self.groups {
            let most = log_max(labels.iter().map(|&label| field(label as usize)));
            for &label in labels {
                self.theta[label as usize] = (field(label as usize) - most) as f32;
            }
        }
        self.couplings.clear();
        self.couplings.extend(form.couplings.iter().map(|coupling| coupling.value(hard) as f32));
        self.costs.clear();
        self.costs.extend(form.costs.iter().map(|cost| cost.value(hard) as f32));
    }

    /// Draws independent start states. Labels follow their scores, with a weight that grows from
    /// none before the first lane to full in the last, so that chains start far apart. The states
    /// of groups are drawn uniformly.
    pub(super) fn start(
        &self,
        form: &CountedQuadratic,
        replica: &mut Replica,
        mut random: LaneRandom<LANES>,
    ) {
        let Replica { on, counts, .. } = replica;
        for (on, evidence) in on.iter_mut().zip(&self.evidence) {
            *on = same(if *evidence == Evidence::On { 1.0 } else { 0.0 });
        }
        for &label in &self.free {
            let uniform = random.uniform();
            let (theta, on) = (self.theta[label as usize], &mut on[label as usize]);
            for lane in 0..LANES {
                let part = (lane as f32 + 1.0) / LANES as f32;
                on.0[lane] = if uniform.0[lane] < sigmoid_lane(theta * part) { 1.0 } else { 0.0 };
            }
        }
        for labels in &self.groups {
            let uniform = random.uniform();
            for lane in 0..LANES {
                let at = (uniform.0[lane] * labels.len() as f32) as usize;
                on[labels[at.min(labels.len() - 1)] as usize].0[lane] = 1.0;
            }
        }
        counts.fill(same(0.0));
        for (label, on) in on.iter().enumerate() {
            for &counter in form.counters.of(label) {
                counts[counter as usize] += *on;
            }
        }
        replica.random = random;
    }
}
