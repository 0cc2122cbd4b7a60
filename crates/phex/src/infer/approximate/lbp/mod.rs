//! `lbp` is loopy belief propagation, the paper's algorithm.
//!
//! The nodes are binary labels, and one-of groups as nodes of k states. Exclusion groups are
//! factors that count their members, or pairs. Messages are odds `ρ = m(1) / m(0)`. [`labels`],
//! [`groups`] and [`counts`] have the equations of the three kinds of nodes and factors, and
//! [`settle`] those of marginals and the Bethe estimate of log Z.
//!
//! The result is exact on trees, and on a star around one one-of group. On other graphs it is
//! approximate, and with strong relations often poor. Each row reports whether it converged.
//! Convergence is checked over two sweeps, and also by the relative change of odds, because a
//! damped message to a nearly certain label would otherwise pass for settled.
//!
//! An iteration costs, per row, about 0.3 ns per message over a pair (with 16 rows side by side),
//! O(k²) for an exclusion group of k, and O(states + entries) for a one-of group. Odds have their
//! own exponent ([`number`]), so a message needs no logarithm. A lane takes the next row as soon as
//! its own has converged. A single row has its own layout ([`single`]) with the same order of
//! operations, so that it has the same bits as among other rows.

mod counts;
mod groups;
mod labels;
mod layout;
mod mild;
mod number;
mod rows;
mod settle;
mod single;
mod state;

use crate::infer::compiled::Compiled;
use crate::infer::{Kernel, forward_to_own};
use labels::Pairs;
use layout::{MessageLayout, Weights};
use number::Odds;
use state::MessageState;

use crate::infer::approximate::network::{Implied, Network};
use crate::infer::compiled::Messages;
use crate::infer::pool::Pool;
use crate::infer::{Answers, Block, MessageOptions, Number, Options, Unfit};
use crate::model::Model;

/// A state, and the weights of the label off and on.
type EntryWeights = Vec<(usize, [f64; 2])>;

/// A model laid out for message passing.
#[derive(Debug)]
struct Program {
    network: Network,
    layout: MessageLayout,
    link_weights: Vec<EntryWeights>,
    table_weights: Vec<Vec<f64>>,
}

/// Loopy belief propagation on a model.
#[derive(Debug)]
pub(crate) struct Lbp {
    compiled: Program,
    /// The weights of pairs in single precision, unless they are too strong for it.
    single: Option<PairWeights<f32, 16>>,
    double: PairWeights<f64, 8>,
    implied: Implied,
    options: MessageOptions,
}

/// The weights of pairs in one number type.
#[derive(Debug)]
struct PairWeights<T, const L: usize> {
    weights: Vec<Weights<T>>,
    ratios: Option<Vec<T>>,
    /// The messages of a register of rows, and of one row.
    many: Pool<MessageState<T, L>>,
    one: Pool<MessageState<T, 1>>,
}

impl<T: Odds, const L: usize> PairWeights<T, L> {
    fn new(network: &Network, layout: &MessageLayout) -> PairWeights<T, L> {
        PairWeights {
            weights: layout.weights(network),
            ratios: layout.ratios(network),
            many: Pool::default(),
            one: Pool::default(),
        }
    }

    fn pairs(&self) -> Pairs<'_, T> {
        Pairs { weights: &self.weights, ratios: self.ratios.as_deref() }
    }
}

/// Log-weight ratios above this need double precision.
const SINGLE: f64 = 20.0;

/// Tables with up to this many cells are written out, so that sums over them never cancel.
const DENSE: usize = 1 << 16;

/// Fewer rows than this run one at a time.
const FEW: usize = 3;

impl Lbp {
    /// Lays out a model.
    pub(crate) fn compile(model: &Model, options: &Options) -> Result<Lbp, Unfit> {
        let mut network = Network::new(model, options.messages.groups)?;
        let implied = Implied::new(&network);
        network.fill_tables(DENSE);
        network.symmetrise();
        let layout = MessageLayout::new(&network)?;
        let double = PairWeights::new(&network, &layout);
        let strong = layout.strongest > SINGLE || network.is_hard();
        let single = (!strong).then(|| PairWeights::new(&network, &layout));
        let link_weights = network.links.iter().map(|link| {
            let entries = link.entries.iter();
            entries.map(|&(state, costs)| (state, costs.map(|cost| (-cost).exp()))).collect()
        });
        let table_weights = network
            .tables
            .iter()
            .map(|table| table.entries.iter().map(|entry| (-entry.2).exp()).collect());
        let (link_weights, table_weights) = (link_weights.collect(), table_weights.collect());
        let compiled = Program { network, layout, link_weights, table_weights };
        Ok(Lbp { compiled, single, double, implied, options: options.messages })
    }

    /// The factors, for devices.
    pub(crate) fn view(&self) -> Messages<'_> {
        Messages { network: &self.compiled.network, implied: &self.implied }
    }

    /// Operations per row for all iterations, although most rows need fewer.
    pub(crate) fn operations(&self) -> f64 {
        let network = &self.compiled.network;
        let square = |factor: &crate::infer::approximate::network::Cardinality| {
            (factor.len() * factor.len()) as f64
        };
        let counts: f64 = network.cardinalities.iter().map(square).sum();
        let entries = network.entries() as f64 + 4.0 * counts;
        2.0 * entries * f64::from(self.options.iterations)
    }

    /// Bytes of index arrays, weights, and the messages of a register of rows.
    pub(crate) fn bytes(&self) -> u64 {
        let entries = self.compiled.network.entries() as u64;
        entries * (64 + 48) * 2
    }

    pub(crate) fn run<S: Number>(&self, block: &Block<'_, S>, answers: &mut Answers<'_, S>) {
        let few = block.rows() < FEW;
        let narrow = size_of::<S>() == size_of::<f32>();
        let double = &self.double;
        match &self.single {
            Some(single) if narrow && few => {
                self.run_lanes(single.pairs(), &single.one, block, answers);
            }
            Some(single) if narrow => {
                self.run_lanes(single.pairs(), &single.many, block, answers);
            }
            _ if few => self.run_lanes(double.pairs(), &double.one, block, answers),
            _ => self.run_lanes(double.pairs(), &double.many, block, answers),
        }
        self.implied.mark(&self.compiled.network, block, answers);
    }
}

impl Kernel for Lbp {
    forward_to_own!();

    fn view<'a>(&'a self, _model: &Model) -> Compiled<'a> {
        Compiled::Messages(self.view())
    }
}
