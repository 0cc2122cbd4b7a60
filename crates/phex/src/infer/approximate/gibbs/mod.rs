//! `gibbs` estimates the marginals of any model by Gibbs sampling, with standard errors.
//!
//! Each row has `chains` independent chains, [`LANES`] side by side. A sweep updates every label in
//! turn from its conditional given all others, `p(x_i = 1 | rest) = σ(β f_i)`, and every one-of
//! group as one block; `sweep.rs` has the equations. The estimate of a marginal is the mean of
//! these conditionals, not of the states (Rao–Blackwell), over the sweeps after the burn-in.
//! `tally.rs` estimates its error. A sweep costs O(relations) multiply-adds and O(labels) sigmoids
//! per chain. An exclusion group costs one multiply-add per member whatever its size, because the
//! chain keeps its count.
//!
//! Lanes are chains of one row, not rows. So a single row is as fast as a row of a block.
//!
//! **Hard relations** cost 40 nats more than the largest score of the row and the largest soft
//! cost. So breaking one in favour of another label is at most 4e-18 as probable as not, and chains
//! can start anywhere. What the evidence forces is settled beforehand ([`Implied`]).
//!
//! **Mixing**: chains start far apart, so that they disagree if they do not mix. The first half of
//! the burn-in cools them from β = ½ to 1. Single updates cannot make changes that need several
//! labels at once, such as moving to another leaf of a hard hierarchy with a one-of group of
//! leaves. The chains then disagree, and the diagnosis reports it. Parallel tempering (`temper.rs`)
//! mixes such models where its hottest replica crosses the cost.
//!
//! **log Z** cannot be estimated by sampling. It is NaN, or minus infinity when the evidence
//! contradicts itself. **Random numbers** of a row come from the seed, its scores and its evidence,
//! so equal rows have equal answers, whatever their block or thread. States and fields are in
//! single precision whatever the scores are; sums are in double precision.

mod quadratic;
mod row;
mod sweep;
mod tally;
mod temper;

use self::quadratic::CountedQuadratic;
use self::row::GibbsRow;
use self::sweep::{Replica, Vector, count_states, same, sweep};
use self::tally::Tally;
use self::temper::Ladder;
use crate::infer::approximate::network::{Implied, Network, PairPlace};
use crate::infer::{Answers, Block, Diagnosis, Number, Options, SamplingOptions, Unfit};
use crate::infer::{Kernel, forward_to_own};
use crate::model::Model;
use crate::numeric::LaneRandom;
use crate::numeric::Scalar;
use crate::numeric::mix;

/// The number of chains side by side: two vectors of the widest machines, so that one hides the
/// latency of the other.
const LANES: usize = 32;
/// The factor at which the burn-in starts to cool. It is low enough to leave states that hard
/// relations hold by a few nats.
const COOLING: f32 = 0.5;

/// A model compiled for sampling.
#[derive(Debug)]
pub(crate) struct Gibbs {
    network: Network,
    form: CountedQuadratic,
    implied: Implied,
    /// The labels that are in no one-of group.
    binary: Vec<usize>,
    /// The pairs of labels whose joint state some relation needs, sorted.
    pairs: Vec<(u32, u32)>,
    /// The options, with whole packs of chains and an even number of sweeps.
    sampling: SamplingOptions,
    seed: u64,
}

impl Gibbs {
    pub(crate) fn compile(model: &Model, options: &Options) -> Result<Gibbs, Unfit> {
        let network = Network::new(model, options.messages.groups)?;
        let mut sampling = options.sampling;
        sampling.chains = sampling.chains.max(1).next_multiple_of(LANES as u32);
        sampling.sweeps = sampling.sweeps.max(2).next_multiple_of(2);
        sampling.temperatures = sampling.temperatures.max(1);
        if sampling.temperatures > 1 && !(sampling.hottest > 0.0 && sampling.hottest < 1.0) {
            let why =
                format!("the hottest factor is {}, but must be between 0 and 1", sampling.hottest);
            return Err(Unfit::Shape(why));
        }
        let mut gibbs = Gibbs {
            form: CountedQuadratic::new(&network),
            implied: Implied::new(&network),
            binary: network.binary().collect(),
            pairs: Vec::new(),
            sampling,
            seed: options.seed,
            network,
        };
        gibbs.pairs = gibbs.network.places().filter_map(|place| gibbs.pair(place)).collect();
        gibbs.pairs.sort_unstable();
        gibbs.pairs.dedup();
        Ok(gibbs)
    }

    /// The two labels of a pair.
    fn pair(&self, place: PairPlace) -> Option<(u32, u32)> {
        let network = &self.network;
        let (a, b) = match place {
            PairPlace::Pair(at) => (network.pairs[at].a, network.pairs[at].b),
            PairPlace::Link(at, state) => {
                let link = &network.links[at];
                (network.groups[link.group][state], link.label)
            }
            PairPlace::Table(at, a, b) => {
                let table = &network.tables[at];
                (network.groups[table.a][a], network.groups[table.b][b])
            }
            PairPlace::Never => return None,
        };
        Some((a as u32, b as u32))
    }

    /// Operations per row. A vector of sixteen chains counts as one operation.
    pub(crate) fn operations(&self) -> f64 {
        let SamplingOptions { chains, burn_in, sweeps, temperatures, .. } = self.sampling;
        let swept = f64::from(burn_in) + f64::from(sweeps);
        swept * f64::from(chains) * f64::from(temperatures) * self.form.operations() / 16.0
    }

    pub(crate) fn bytes(&self) -> u64 {
        let (labels, form) = (self.network.labels as u64, &self.form);
        let tables =
            40 * (form.couplings.len() + form.counters.items().len()) as u64 + 120 * labels;
        let vector = size_of::<Vector>() as u64;
        let state = (labels + form.costs.len() as u64) * vector;
        tables + u64::from(self.sampling.temperatures) * state + 6 * labels * vector
    }

    pub(crate) fn run<T: Number>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let mut run = GibbsRun::new(self, answers.expectations.is_some());
        let n = self.network.labels;
        for row in 0..block.rows() {
            let (model, place) = ((&self.network, &self.implied), (block, row));
            let possible = run.row.read(&self.form, model, &self.binary, place, self.seed);
            let marginals = &mut answers.marginals[row * n..(row + 1) * n];
            if !possible {
                answers.log_partition[row] = f64::NEG_INFINITY;
                answers.diagnosis[row] = Diagnosis::default();
                marginals.fill(<T as Scalar>::ZERO);
                continue;
            }
            run.sample();
            answers.log_partition[row] = f64::NAN;
            answers.diagnosis[row] = run.diagnosis();
            run.marginals(marginals);
            if let Some(errors) = &mut answers.standard_errors {
                let errors = errors[row * n..(row + 1) * n].iter_mut().enumerate();
                errors.for_each(|(at, out)| *out = T::from_f64(run.tally.standard_error(at)));
            }
            if let Some(all) = &mut answers.expectations {
                let terms = self.network.terms.len();
                run.expectations(&mut all[row * terms..(row + 1) * terms]);
            }
        }
    }
}

/// The scratch memory of a thread.
struct GibbsRun<'a> {
    gibbs: &'a Gibbs,
    row: GibbsRow,
    replicas: Vec<Replica>,
    ladder: Ladder,
    tally: Tally,
    scratch: Vec<Vector>,
    /// The number of counted states with a label on, with a pair on, and with pairs on in counters,
    /// if requested.
    counted: Option<[Vec<f64>; 3]>,
}

impl<'a> GibbsRun<'a> {
    fn new(gibbs: &'a Gibbs, expectations: bool) -> GibbsRun<'a> {
        let (n, counters) = (gibbs.network.labels, gibbs.form.costs.len());
        let replica = Replica {
            on: vec![same(0.0); n],
            counts: vec![same(0.0); counters],
            beta: same(1.0),
            weight: same(0.0),
            random: LaneRandom::new(0),
        };
        let largest = gibbs.network.groups.iter().map(Vec::len).max().unwrap_or(0);
        let sampling = &gibbs.sampling;
        GibbsRun {
            gibbs,
            row: GibbsRow::default(),
            replicas: vec![replica; sampling.temperatures as usize],
            ladder: Ladder::new(sampling.temperatures, sampling.hottest),
            tally: Tally::new(n, sampling.sweeps),
            scratch: vec![same(0.0); largest],
            counted: expectations
                .then(|| [vec![0.0; n], vec![0.0; gibbs.pairs.len()], vec![0.0; counters]]),
        }
    }

    /// Runs all chains of the row.
    fn sample(&mut self) {
        self.tally.clear();
        self.counted.iter_mut().flatten().for_each(|counts| counts.fill(0.0));
        for pack in 0..self.gibbs.sampling.chains / LANES as u32 {
            self.sample_pack(mix(self.row.seed ^ u64::from(pack)));
        }
    }

    /// Runs as many chains as there are lanes.
    fn sample_pack(&mut self, seed: u64) {
        let SamplingOptions { burn_in, sweeps, temperatures, .. } = self.gibbs.sampling;
        let form = &self.gibbs.form;
        self.ladder.reset(&mut self.replicas);
        for (at, replica) in self.replicas.iter_mut().enumerate() {
            replica.weight = same(0.0);
            self.row.start(form, replica, LaneRandom::new(mix(seed.wrapping_add(1 + at as u64))));
        }
        let mut random = LaneRandom::new(seed);
        for swept in 0..burn_in + sweeps {
            let counts = swept >= burn_in;
            for replica in &mut self.replicas {
                if temperatures == 1 {
                    let cooled = (swept + 1) as f32 / (burn_in / 2).max(1) as f32;
                    replica.beta = same((COOLING + (1.0 - COOLING) * cooled).min(1.0));
                }
                if counts {
                    replica.weight = replica.beta.map(|b| if b == 1.0 { 1.0 } else { 0.0 });
                }
                sweep(form, &self.row, replica, &mut self.tally.block, &mut self.scratch);
                if let (true, Some([labels, pairs, counters])) = (counts, &mut self.counted) {
                    count_states(replica, &self.gibbs.pairs, [labels, pairs, counters]);
                }
            }
            if counts {
                self.tally.swept();
            }
            if temperatures > 1 && (swept + 1).is_multiple_of(temper::EVERY) {
                self.ladder.exchange(form, &self.row, &mut self.replicas, &mut random);
            }
        }
    }

    fn diagnosis(&self) -> Diagnosis {
        let sampled = self.row.free.iter().chain(self.row.groups.iter().flatten());
        let SamplingOptions { burn_in, sweeps, .. } = self.gibbs.sampling;
        self.tally.diagnosis(sampled.map(|&label| label as usize), burn_in + sweeps)
    }

    /// Labels with evidence are 0 or 1. Those of a one-of group sum to 1 except for rounding, which
    /// is corrected.
    fn marginals<T: Number>(&self, out: &mut [T]) {
        for (label, out) in out.iter_mut().enumerate() {
            let value = f64::from(self.row.evidence[label].code().max(0));
            *out = T::from_f64(value);
        }
        for &label in &self.row.free {
            out[label as usize] = T::from_f64(self.tally.marginal(label as usize));
        }
        for labels in &self.row.groups {
            let marginal = |&label: &u32| self.tally.marginal(label as usize);
            let total: f64 = labels.iter().map(marginal).sum();
            for label in labels {
                out[*label as usize] = T::from_f64(marginal(label) / total);
            }
        }
    }

    /// Expected violations by counting states, so that a hard relation has none.
    fn expectations<T: Number>(&self, out: &mut [T]) {
        let Some([labels, pairs, counters]) = &self.counted else { return };
        let SamplingOptions { sweeps, chains, .. } = self.gibbs.sampling;
        let states = f64::from(sweeps) * f64::from(chains);
        let both = |place| {
            let at = self.gibbs.pair(place).and_then(|p| self.gibbs.pairs.binary_search(&p).ok());
            at.map_or(0.0, |at| pairs[at] / states)
        };
        let marginal = |label: usize| labels[label] / states;
        self.gibbs.network.expectations(marginal, both, |at| counters[at] / states, out);
    }
}

impl Kernel for Gibbs {
    forward_to_own!();
}
