//! The options of a search: method, cooling, restarts, polishing, and when to stop.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::infer::in_range;
use crate::{Error, Named};

/// How to search for the lowest energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnnealMethod {
    /// Simulated annealing, then a descent to a local minimum.
    Simulated,
    /// Simulated quantum annealing, then a descent.
    Quantum,
    /// Tabu search from random states.
    Tabu,
    /// Simulated annealing of sixteen chains, whose final states are then mixed and improved by
    /// tabu search.
    #[default]
    SimulatedTabu,
}

impl Named for AnnealMethod {
    const WHAT: &'static str = "annealer";
    const CHOICES: &'static [(&'static str, AnnealMethod)] = &[
        ("simulated-tabu", AnnealMethod::SimulatedTabu),
        ("simulated", AnnealMethod::Simulated),
        ("quantum", AnnealMethod::Quantum),
        ("tabu", AnnealMethod::Tabu),
    ];
}

/// How the inverse temperature grows from hottest to coldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoolingShape {
    /// By a constant factor.
    #[default]
    Geometric,
    /// By a constant step.
    Linear,
}

impl Named for CoolingShape {
    const WHAT: &'static str = "shape of cooling";
    const CHOICES: &'static [(&'static str, CoolingShape)] =
        &[("geometric", CoolingShape::Geometric), ("linear", CoolingShape::Linear)];
}

/// The temperatures of simulated annealing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cooling {
    /// How β grows.
    pub shape: CoolingShape,
    /// The hottest and the coldest β. `None` derives them from the problem.
    pub beta: Option<(f64, f64)>,
}

/// The settings of simulated quantum annealing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantum {
    /// The number of Trotter slices, 2 to 1024.
    pub slices: usize,
    /// The temperature. `None` derives it from the problem.
    pub temperature: Option<f64>,
    /// The transverse field at the start and at the end. `None` derives it from the temperature.
    pub field: Option<(f64, f64)>,
}

impl Default for Quantum {
    fn default() -> Quantum {
        Quantum { slices: 8, temperature: None, field: None }
    }
}

/// The settings of tabu search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tabu {
    /// How many steps a move may not be undone. `None` means `min(20, moves / 4)`.
    pub tenure: Option<usize>,
    /// How many steps without a new best state before the search gives up. `None` means
    /// `10 · moves`.
    pub stall: Option<usize>,
    /// How often the search continues from a perturbed copy of its best state after giving up.
    pub kicks: usize,
}

impl Default for Tabu {
    fn default() -> Tabu {
        Tabu { tenure: None, stall: None, kicks: 4 }
    }
}

/// All settings. The result depends only on them, unless `stop` is raised.
#[derive(Debug, Clone)]
pub struct AnnealOptions {
    /// How to search.
    pub method: AnnealMethod,
    /// The number of independent searches. The annealers round it up to a multiple of 16.
    pub restarts: usize,
    /// The number of sweeps over all variables per restart.
    pub sweeps: usize,
    /// The temperatures of simulated annealing.
    pub schedule: Cooling,
    /// Simulated quantum annealing.
    pub quantum: Quantum,
    /// Tabu search.
    pub tabu: Tabu,
    /// The largest number of mixtures of the final states of sixteen chains that
    /// [`AnnealMethod::SimulatedTabu`] tries.
    pub children: usize,
    /// How many of the best distinct states to return.
    pub keep: usize,
    /// Stop once a state has this energy or less.
    pub target: Option<f64>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The finite cost of a hard relation. `None` derives it from the model, and raises it where
    /// needed.
    pub penalty: Option<f64>,
    /// Stop when this becomes true, and return what was found so far.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for AnnealOptions {
    fn default() -> AnnealOptions {
        AnnealOptions {
            method: AnnealMethod::default(),
            restarts: 64,
            sweeps: 100,
            schedule: Cooling::default(),
            quantum: Quantum::default(),
            tabu: Tabu::default(),
            children: 96,
            keep: 1,
            target: None,
            seed: 0,
            penalty: None,
            stop: None,
        }
    }
}

impl AnnealOptions {
    /// Checks that every option is in its range.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], which names the option.
    pub fn check(&self) -> Result<(), Error> {
        let many = |x: f64| (1.0..=1e8).contains(&x);
        in_range("restarts", self.restarts as f64, "1 to 100,000,000", many)?;
        in_range("anneal_sweeps", self.sweeps as f64, "1 to 100,000,000", many)?;
        let slices = self.quantum.slices as f64;
        in_range("slices", slices, "2 to 1024", |x| (2.0..=1024.0).contains(&x))?;
        let Some((hot, cold)) = self.schedule.beta else { return Ok(()) };
        for beta in [hot, cold] {
            in_range("beta", beta, "two numbers above 0", |x| x > 0.0 && x < f64::INFINITY)?;
        }
        let order = "given with the hottest first: β is the inverse temperature, so it grows";
        in_range("beta", hot, order, |hot| hot <= cold)
    }
}
