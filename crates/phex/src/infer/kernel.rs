//! The compiled forms behind an engine, one interface.

use std::sync::OnceLock;

use super::blocks::Blocks;
use super::brute::Brute;
use super::compiled::Compiled;
use super::count::Count;
use super::family::Family;
use super::forests::Forests;
use super::gibbs::Gibbs;
use super::junction::Junction;
use super::lbp::Lbp;
use super::mean_field::MeanField;
use super::plan::Refusal;
use super::star::Star;
use super::states::States;
use super::subsets::Subsets;
use super::trw::Trw;
use super::{Answers, Block, Budget, LabelSet, Method, Number, Unfit};
use crate::Error;
use crate::anneal;
use crate::model::Model;

/// A model compiled by one method.
#[derive(Debug)]
pub(super) enum Kernel {
    Brute(Brute),
    States(States),
    Star(Star),
    /// The junction tree of the same model answers for best sets and samples; made when asked.
    Family(Box<Family>, Box<OnceLock<Result<Junction, Unfit>>>),
    Count(Box<Count>),
    Junction(Box<Junction>),
    Subsets(Subsets),
    Blocks(Box<Blocks>),
    Lbp(Box<Lbp>),
    /// Best sets only, with this seed.
    Anneal(Box<anneal::Options>),
    MeanField(Box<MeanField>),
    Trw(Box<Trw>),
    Forests(Box<Forests>),
    Gibbs(Box<Gibbs>),
}

impl Kernel {
    pub(super) fn family(family: Family) -> Kernel {
        Kernel::Family(Box::new(family), Box::default())
    }

    pub(super) fn junction(junction: Junction) -> Kernel {
        Kernel::Junction(Box::new(junction))
    }

    pub(super) fn gibbs(gibbs: Gibbs) -> Kernel {
        Kernel::Gibbs(Box::new(gibbs))
    }

    pub(super) fn method(&self) -> Method {
        match self {
            Kernel::Brute(_) => Method::Brute,
            Kernel::States(_) => Method::States,
            Kernel::Star(_) => Method::Star,
            Kernel::Family(..) => Method::Family,
            Kernel::Count(_) => Method::Count,
            Kernel::Junction(_) => Method::Junction,
            Kernel::Subsets(_) => Method::Subsets,
            Kernel::Blocks(_) => Method::Blocks,
            Kernel::Lbp(_) => Method::Lbp,
            Kernel::Anneal(_) => Method::Anneal,
            Kernel::MeanField(_) => Method::MeanField,
            Kernel::Trw(_) => Method::Trw,
            Kernel::Forests(_) => Method::Forests,
            Kernel::Gibbs(_) => Method::Gibbs,
        }
    }

    /// Why `auto` took this one.
    pub(super) fn reason(&self) -> String {
        String::from(match self {
            Kernel::Blocks(blocks) => {
                let residual = blocks.residual();
                return format!(
                    "no exact engine takes it within the budget; {residual} pairs are left to messages"
                );
            }
            Kernel::Brute(_) => "the model is small and nothing else takes it",
            Kernel::States(_) => "the model is hard and has few legal states",
            Kernel::Star(_) => "one one-of group of classes with independent attributes",
            Kernel::Family(..) => "a forest whose exclusions are between siblings",
            Kernel::Count(_) => "dense semantics on a forest",
            Kernel::Junction(_) => "no special shape, and narrow enough for a junction tree",
            Kernel::Subsets(_) => "classes and attributes without a one-of group",
            Kernel::Anneal(_) => "it looks for the best label sets",
            Kernel::Lbp(_) => "no exact engine takes it within the budget, nor exact blocks",
            Kernel::MeanField(_) => "a lower bound on log Z",
            Kernel::Trw(_) => "an upper bound on log Z",
            Kernel::Forests(_) => "a mixture of forests: its log Z is convex in the scores",
            Kernel::Gibbs(_) => "it samples",
        })
    }

    pub(super) fn is_exact(&self) -> bool {
        match self {
            Kernel::Family(family, _) => family.is_exact(),
            Kernel::Count(count) => count.is_exact(),
            Kernel::Subsets(_) => false,
            _ if self.is_approximate() => false,
            _ => true,
        }
    }

    /// Whether no bound on the error is known.
    pub(super) fn is_approximate(&self) -> bool {
        Method::APPROXIMATE.contains(&self.method()) || self.method() == Method::Anneal
    }

    /// Whether it knows the standard errors of its marginals.
    pub(super) fn samples(&self) -> bool {
        self.method() == Method::Gibbs
    }

    /// For devices.
    pub(super) fn view(&self) -> Compiled<'_> {
        match self {
            Kernel::Family(family, _) => family.view().map_or(Compiled::Other, Compiled::Family),
            Kernel::Blocks(blocks) => blocks.view().map_or(Compiled::Other, Compiled::Joined),
            Kernel::Lbp(lbp) => Compiled::Messages(lbp.view()),
            Kernel::Star(star) => Compiled::Classes(star.view()),
            Kernel::States(states) => Compiled::States(states.view()),
            _ => Compiled::Other,
        }
    }

    pub(super) fn operations(&self) -> f64 {
        match self {
            Kernel::Brute(kernel) => kernel.operations(),
            Kernel::States(kernel) => kernel.operations(),
            Kernel::Star(kernel) => kernel.operations(),
            Kernel::Family(kernel, _) => kernel.operations(),
            Kernel::Count(kernel) => kernel.operations(),
            Kernel::Junction(kernel) => kernel.operations(),
            Kernel::Subsets(kernel) => kernel.operations(),
            Kernel::Blocks(kernel) => kernel.operations(),
            Kernel::Lbp(kernel) => kernel.operations(),
            Kernel::Anneal(options) => 100.0 * options.restarts as f64 * options.sweeps as f64,
            Kernel::MeanField(kernel) => kernel.operations(),
            Kernel::Trw(kernel) => kernel.operations(),
            Kernel::Forests(kernel) => kernel.operations(),
            Kernel::Gibbs(kernel) => kernel.operations(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Kernel::Brute(kernel) => kernel.bytes(),
            Kernel::States(kernel) => kernel.bytes(),
            Kernel::Star(kernel) => kernel.bytes(),
            Kernel::Family(kernel, _) => kernel.bytes(),
            Kernel::Count(kernel) => kernel.bytes(),
            Kernel::Junction(kernel) => kernel.bytes(),
            Kernel::Subsets(kernel) => kernel.bytes(),
            Kernel::Blocks(kernel) => kernel.bytes(),
            Kernel::Lbp(kernel) => kernel.bytes(),
            Kernel::Anneal(_) => 0,
            Kernel::MeanField(kernel) => kernel.bytes(),
            Kernel::Trw(kernel) => kernel.bytes(),
            Kernel::Forests(kernel) => kernel.bytes(),
            Kernel::Gibbs(kernel) => kernel.bytes(),
        }
    }

    pub(super) fn width(&self) -> Option<usize> {
        match self {
            Kernel::Junction(junction) => Some(junction.width()),
            _ => None,
        }
    }

    pub(super) fn largest_bag(&self) -> Option<u64> {
        match self {
            Kernel::Junction(junction) => Some(junction.largest() as u64),
            _ => None,
        }
    }

    pub(super) fn states(&self) -> Option<u64> {
        match self {
            Kernel::Junction(junction) => Some(junction.states() as u64),
            Kernel::States(states) => Some(states.len() as u64),
            _ => None,
        }
    }

    pub(super) fn run<T: Number>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        match self {
            Kernel::Brute(kernel) => kernel.run(block, answers),
            Kernel::States(kernel) => kernel.run(block, answers),
            Kernel::Star(kernel) => kernel.run(block, answers),
            Kernel::Family(kernel, _) => kernel.run(block, answers),
            Kernel::Count(kernel) => kernel.run(block, answers),
            Kernel::Junction(kernel) => kernel.run(block, answers),
            Kernel::Subsets(kernel) => kernel.run(block, answers),
            Kernel::Blocks(kernel) => kernel.run(block, answers),
            Kernel::Lbp(kernel) => kernel.run(block, answers),
            // The engine refuses before it comes to this.
            Kernel::Anneal(_) => {}
            Kernel::MeanField(kernel) => kernel.run(block, answers),
            Kernel::Trw(kernel) => kernel.run(block, answers),
            Kernel::Forests(kernel) => kernel.run(block, answers),
            Kernel::Gibbs(kernel) => kernel.run(block, answers),
        }
    }

    pub(super) fn best(
        &self,
        model: &Model,
        block: &Block<'_, f64>,
        row: usize,
        k: usize,
    ) -> Result<Vec<LabelSet>, Error> {
        Ok(match self {
            Kernel::Brute(kernel) => kernel.best(block, row, k),
            Kernel::States(kernel) => kernel.best(block, row, k),
            Kernel::Star(kernel) => kernel.best(block, row, k),
            Kernel::Family(_, tree) => junction_of(model, tree)?.best(block, row, k),
            Kernel::Count(kernel) => kernel.best(block, row, k),
            Kernel::Junction(kernel) => kernel.best(block, row, k),
            Kernel::Anneal(options) => {
                let evidence: Vec<_> =
                    (0..model.len()).map(|label| block.evidence(row, label)).collect();
                anneal::best(model, block.row(row), &evidence, k, options, options.seed)?
            }
            // The engine refuses: none of these is exact.
            _ => Vec::new(),
        })
    }

    pub(super) fn sample(
        &self,
        model: &Model,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Vec<Vec<bool>>, Error> {
        let from_tree =
            |tree: &Junction, uniform: &mut dyn FnMut() -> f64| match tree.sampler(block, row) {
                Some(sampler) => (0..count).map(|_| sampler.draw(uniform)).collect(),
                None => Vec::new(),
            };
        Ok(match self {
            Kernel::Brute(kernel) => kernel.sample(block, row, count, uniform),
            Kernel::States(kernel) => kernel.sample(block, row, count, uniform),
            Kernel::Star(kernel) => kernel.sample(block, row, count, uniform),
            Kernel::Family(_, tree) => from_tree(junction_of(model, tree)?, uniform),
            Kernel::Count(kernel) => kernel.sample(block, row, count, uniform),
            Kernel::Junction(kernel) => from_tree(kernel, uniform),
            // The engine refuses: none of these is exact.
            _ => Vec::new(),
        })
    }
}

/// The junction tree of a model that another engine runs.
fn junction_of<'k>(
    model: &Model,
    tree: &'k OnceLock<Result<Junction, Unfit>>,
) -> Result<&'k Junction, Error> {
    let tree = tree.get_or_init(|| Junction::compile(model, &Budget::default(), 1, 0));
    tree.as_ref().map_err(|unfit| {
        let why = match unfit {
            Unfit::Shape(why) => why.clone(),
            Unfit::Budget { needs } => format!("over budget: {needs}"),
        };
        Error::Unfit { refused: vec![Refusal { method: Method::Junction, why }] }
    })
}
