//! Annealing searches for the lowest energy of a quadratic form, or for the best label set of a
//! model that is too wide for an exact engine.
//!
//! [`anneal`] minimises a [`Problem`] by simulated annealing, simulated quantum annealing, tabu
//! search, or annealing followed by tabu search. [`best`] turns a label model into a problem, and
//! the result into legal label sets. Nothing here is exact: the answer is the best state that was
//! found.
//!
//! The threads of the current rayon pool share the restarts. Each restart has its own generator,
//! from the seed and its number. With a target, only the restarts up to the first that reaches it
//! count. So the answer does not depend on the number of threads.
//!
//! ```
//! use phex::anneal::{AnnealOptions, Problem, anneal};
//! use phex::model::Ising;
//! // Three spins that all prefer to differ: one pair has to agree.
//! let ising = Ising {
//!     names: vec!["a".into(), "b".into(), "c".into()],
//!     h: vec![0.0; 3],
//!     j: vec![(0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0)],
//!     offset: 0.0,
//! };
//! let outcome = anneal(&Problem::from_ising(&ising)?, &AnnealOptions { keep: 6, ..AnnealOptions::default() });
//! assert_eq!(outcome.solutions[0].energy, -1.0);
//! assert_eq!(ising.energy(&outcome.solutions[0].state), -1.0);
//! # Ok::<(), phex::Error>(())
//! ```

mod builder;
mod chains;
mod convert;
mod cooling;
mod label_sets;
mod lanes;
mod options;
mod problem;
mod quantum;
mod recombine;
mod search;
mod simulated;
mod tabu;

use crate::numeric::GOLDEN;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

pub use builder::Builder;
pub(crate) use label_sets::BestSets;
pub use label_sets::best;
pub use options::{AnnealMethod, AnnealOptions, Cooling, CoolingShape, Quantum, Tabu};
pub use problem::Problem;

use chains::Narrow;
use lanes::CHAINS;
use quantum::Path;
use search::{Search, random_state};

/// How many tasks run between two checks of whether to continue.
const WAVE: usize = 64;

/// A state and its energy.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The energy, computed from the state.
    pub energy: f64,
    /// One value per variable.
    pub state: Vec<bool>,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnealOutcome {
    /// The best distinct states, best first. Empty only when the search was stopped before the
    /// first restart ended.
    pub solutions: Vec<Solution>,
    /// How many searches ended: restarts, or populations of sixteen for
    /// [`AnnealMethod::SimulatedTabu`].
    pub restarts: usize,
    /// How many of them ended at the best energy.
    pub reached: usize,
    /// Whether `stop` was raised.
    pub interrupted: bool,
}

/// The result of one task: the final energy of each restart, and the best distinct states.
struct TaskResult {
    ends: Vec<f64>,
    solutions: Vec<Solution>,
}

/// Minimises a problem.
pub fn anneal(problem: &Problem, options: &AnnealOptions) -> AnnealOutcome {
    let plan = SearchPlan::new(problem, options);
    let stopped = || options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
    let tasks = match options.method {
        AnnealMethod::Tabu => options.restarts.max(1),
        _ => options.restarts.max(1).div_ceil(CHAINS),
    };
    // The first task that reached the target. Later ones do not count.
    let first = AtomicUsize::new(usize::MAX);
    let mut outcome =
        AnnealOutcome { solutions: Vec::new(), restarts: 0, reached: 0, interrupted: false };
    let mut ends = Vec::new();
    for wave in (0..tasks).step_by(WAVE) {
        let run = |task: usize| {
            let abandoned = || stopped() || task > first.load(Ordering::Relaxed);
            if abandoned() {
                return None;
            }
            let found = plan.run(task, &abandoned);
            if found.solutions.first().is_some_and(|best| best.energy <= plan.target) {
                first.fetch_min(task, Ordering::Relaxed);
            }
            Some(found)
        };
        let found: Vec<Option<TaskResult>> =
            (wave..(wave + WAVE).min(tasks)).into_par_iter().map(run).collect();
        let last = first.load(Ordering::Relaxed);
        for found in found.into_iter().take(last.saturating_add(1).saturating_sub(wave)).flatten() {
            ends.extend(found.ends);
            outcome.solutions.extend(found.solutions);
        }
        best_first(&mut outcome.solutions, options.keep.max(1));
        if last < usize::MAX || stopped() {
            break;
        }
    }
    let best = outcome.solutions.first().map_or(f64::INFINITY, |best| best.energy);
    outcome.restarts = ends.len();
    outcome.reached = ends.iter().filter(|&&end| end <= best + plan.rounding).count();
    outcome.interrupted = stopped();
    for solution in &mut outcome.solutions {
        solution.state = problem.expand(&solution.state);
    }
    outcome
}

/// Sorts states by energy, drops duplicates and keeps the best `keep`.
fn best_first(solutions: &mut Vec<Solution>, keep: usize) {
    solutions.sort_by(|x, y| x.energy.total_cmp(&y.energy).then_with(|| x.state.cmp(&y.state)));
    solutions.dedup_by(|x, y| x.state == y.state);
    solutions.truncate(keep);
}

/// The random numbers of a task. They are the same for the same seed and task.
fn generator(seed: u64, task: u64) -> Xoshiro256PlusPlus {
    let task = task.wrapping_add(1).wrapping_mul(GOLDEN);
    Xoshiro256PlusPlus::seed_from_u64(seed ^ task)
}

/// What all tasks share.
struct SearchPlan<'a> {
    problem: &'a Problem,
    options: &'a AnnealOptions,
    narrow: Narrow,
    betas: Vec<f32>,
    path: Option<Path>,
    target: f64,
    /// Energies that differ by less count as equal.
    rounding: f64,
}

impl<'a> SearchPlan<'a> {
    fn new(problem: &'a Problem, options: &'a AnnealOptions) -> SearchPlan<'a> {
        let narrow = Narrow::new(problem);
        let rounding = 1e-9 * problem.largest;
        let sweeps = options.sweeps;
        let scaled = |beta: f64| (beta / narrow.scale).clamp(1e-30, f64::from(simulated::FROZEN));
        let (mut betas, mut path) = (Vec::new(), None);
        match options.method {
            AnnealMethod::Tabu => {}
            AnnealMethod::Simulated | AnnealMethod::SimulatedTabu => {
                let all = options.schedule.betas(problem, sweeps);
                betas = all.into_iter().map(|beta| scaled(beta) as f32).collect();
            }
            AnnealMethod::Quantum => {
                let slices = options.quantum.slices.clamp(2, 1024);
                let beta = match options.quantum.temperature {
                    Some(temperature) => 1.0 / (temperature * slices as f64),
                    None => quantum::beta(cooling::range(problem)),
                };
                let field = options.quantum.field.map(|(from, to)| (beta * from, beta * to));
                let field = field.unwrap_or(quantum::FIELD);
                path = Some(Path::new(scaled(beta), field, slices, sweeps));
            }
        }
        let target = options.target.map_or(f64::NEG_INFINITY, |target| target + rounding);
        SearchPlan { problem, options, narrow, betas, path, target, rounding }
    }

    fn run(&self, task: usize, abandoned: &dyn Fn() -> bool) -> TaskResult {
        let mut random = generator(self.options.seed, task as u64);
        if self.options.method == AnnealMethod::Tabu {
            let mut search = Search::new(self.problem, &random_state(self.problem, &mut random));
            search.tabu(&self.options.tabu, self.target, &mut random, abandoned);
            return self.found(vec![self.solution(&search)]);
        }
        let mut ends: Vec<Solution> = Vec::with_capacity(CHAINS + 1);
        if self.options.method == AnnealMethod::SimulatedTabu {
            // Easy problems need no more than this.
            let mut search = Search::new(self.problem, &random_state(self.problem, &mut random));
            let short = Tabu { kicks: 0, ..self.options.tabu };
            search.tabu(&short, self.target, &mut random, abandoned);
            ends.push(self.solution(&search));
            if ends[0].energy <= self.target {
                return self.found(ends);
            }
        }
        let states: Vec<Vec<Vec<bool>>> = match &self.path {
            Some(path) => quantum::quantum(&self.narrow, path, &mut random, abandoned),
            None => {
                let ends = simulated::simulated(&self.narrow, &self.betas, &mut random, abandoned);
                ends.into_iter().map(|end| vec![end]).collect()
            }
        };
        let mut search = Search::new(self.problem, &states[0][0]);
        for states in &states {
            let descended = states.iter().map(|state| {
                search.load(state);
                search.descend();
                self.solution(&search)
            });
            ends.extend(descended.min_by(|x, y| x.energy.total_cmp(&y.energy)));
        }
        if self.options.method == AnnealMethod::SimulatedTabu {
            self.polish(&mut search, &mut ends, &mut random, abandoned);
            // The chains have become one search.
            let mut found = self.found(ends);
            found.ends = found.solutions.first().map(|best| best.energy).into_iter().collect();
            return found;
        }
        self.found(ends)
    }

    /// Mixes the final states of the chains, then continues the search from the best one.
    fn polish(
        &self,
        search: &mut Search<'_>,
        ends: &mut Vec<Solution>,
        random: &mut Xoshiro256PlusPlus,
        abandoned: &dyn Fn() -> bool,
    ) {
        let mut population = ends.clone();
        best_first(&mut population, CHAINS + 1);
        let children = self.options.children;
        recombine::recombine(search, &mut population, children, self.target, random, abandoned);
        if population[0].energy > self.target && !abandoned() {
            search.load(&population[0].state);
            search.tabu(&self.options.tabu, self.target, random, abandoned);
            population.push(self.solution(search));
        }
        *ends = population;
    }

    fn solution(&self, search: &Search<'_>) -> Solution {
        let state = search.state();
        Solution { energy: self.problem.free_energy(&state), state }
    }

    fn found(&self, mut solutions: Vec<Solution>) -> TaskResult {
        let ends = solutions.iter().map(|solution| solution.energy).collect();
        best_first(&mut solutions, self.options.keep.max(1));
        TaskResult { ends, solutions }
    }
}
