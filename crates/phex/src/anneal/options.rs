//! What a search may do: method, schedule, restarts, polish, when to stop.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How to look for the lowest energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Simulated annealing, then a descent to a local minimum.
    Simulated,
    /// Simulated quantum annealing, then a descent.
    Quantum,
    /// Tabu search from random states.
    Tabu,
    /// Simulated annealing of sixteen chains, whose ends are then mixed and improved by tabu search.
    #[default]
    SimulatedTabu,
}

/// How the inverse temperature grows from the hottest to the coldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// By a constant factor.
    #[default]
    Geometric,
    /// By a constant step.
    Linear,
}

/// The temperatures of simulated annealing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cooling {
    /// How β grows.
    pub shape: Shape,
    /// The hottest and the coldest β; from the problem when not given.
    pub beta: Option<(f64, f64)>,
}

/// The settings of simulated quantum annealing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantum {
    /// Trotter slices, 2 to 1024.
    pub slices: usize,
    /// The temperature; from the problem when not given.
    pub temperature: Option<f64>,
    /// The transverse field at the start and at the end; from the temperature when not given.
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
    /// Steps during which a move may not be undone; `min(20, moves / 4)` when not given.
    pub tenure: Option<usize>,
    /// Steps without a new best state before it gives up; `10 · moves` when not given.
    pub stall: Option<usize>,
    /// How often it goes on from a disturbed copy of its best state after giving up.
    pub kicks: usize,
}

impl Default for Tabu {
    fn default() -> Tabu {
        Tabu { tenure: None, stall: None, kicks: 4 }
    }
}

/// All settings. The answer depends on them and on nothing else, unless `stop` is raised.
#[derive(Debug, Clone)]
pub struct Options {
    /// How to search.
    pub method: Method,
    /// Independent searches; the annealers round them up to a multiple of 16.
    pub restarts: usize,
    /// Sweeps over all variables a restart.
    pub sweeps: usize,
    /// The temperatures of simulated annealing.
    pub schedule: Cooling,
    /// Simulated quantum annealing.
    pub quantum: Quantum,
    /// Tabu search.
    pub tabu: Tabu,
    /// How many mixtures of the ends of sixteen chains [`Method::SimulatedTabu`] tries at most.
    pub children: usize,
    /// How many of the best distinct states to return.
    pub keep: usize,
    /// Stop once a state has this energy or less.
    pub target: Option<f64>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The finite cost of a hard relation; from the model, and raised where needed, when not given.
    pub penalty: Option<f64>,
    /// Stop when this becomes true, with what was found.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            method: Method::default(),
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
