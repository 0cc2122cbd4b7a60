//! One-flip tabu search (Glover 1989).
//!
//! Each step makes the best move that was not made within the last `tenure` steps, even if it goes
//! uphill. A forbidden move is allowed when it leads below the best energy so far (aspiration).
//! After `stall` steps without a new best, the search continues from a copy of the best state in
//! which a random part is flipped. A step costs O(n + degree), vectorised.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::options::Tabu;
use super::search::{Flip, Search};

impl Search<'_> {
    /// Tabu search from the current state. It ends in the best state found. It stops early at
    /// `target`, or when `abandoned` returns true.
    pub(super) fn tabu(
        &mut self,
        options: &Tabu,
        target: f64,
        random: &mut Xoshiro256PlusPlus,
        abandoned: &dyn Fn() -> bool,
    ) {
        let moves = self.problem.moves();
        let tenure = options.tenure.unwrap_or((moves / 4).min(20)).min(moves.saturating_sub(1));
        let stall = options.stall.unwrap_or(10 * moves).max(1);
        let mut best = (self.energy, self.sign.clone());
        for round in 0..=options.kicks {
            if round > 0 {
                self.load(&best.1.iter().map(|&sign| sign < 0.0).collect::<Vec<_>>());
                self.kick(random);
            }
            self.until.fill(0.0);
            let (mut idle, mut step) = (0, 0u64);
            let mut here = f64::INFINITY;
            while idle < stall && best.0 > target + self.epsilon {
                let Some(next) = self.best_move(step as f64, best.0 - self.energy - self.epsilon)
                else {
                    break;
                };
                self.mark(next, step, tenure, random);
                self.make(next);
                step += 1;
                idle += 1;
                if self.energy < here - self.epsilon {
                    here = self.energy;
                    idle = 0;
                }
                if self.energy < best.0 - self.epsilon {
                    best.0 = self.energy;
                    best.1.copy_from_slice(&self.sign);
                }
                if step % 1024 == 0 && abandoned() {
                    break;
                }
            }
            if best.0 <= target + self.epsilon || abandoned() {
                break;
            }
        }
        self.load(&best.1.iter().map(|&sign| sign < 0.0).collect::<Vec<_>>());
    }

    /// Forbids undoing a move for about `tenure` steps, or fewer in a small group.
    fn mark(&mut self, next: Flip, step: u64, tenure: usize, random: &mut Xoshiro256PlusPlus) {
        let (at, tenure) = match next.group {
            Some(group) => {
                let size = self.problem.groups[group].len();
                (self.current[group], tenure.min(size / 2))
            }
            None => (next.at, tenure),
        };
        let more = random.random_range(0..=tenure / 2);
        self.until[at] = (step + 1) as f64 + (tenure + more) as f64;
    }

    /// Flips a random tenth to third of the variables, and moves the same fraction of the groups.
    fn kick(&mut self, random: &mut Xoshiro256PlusPlus) {
        let share = random.random_range(0.1..0.35);
        for at in 0..self.problem.singles {
            if random.random_bool(share) {
                self.flip(at);
            }
        }
        for (group, range) in self.problem.groups.iter().enumerate() {
            let to = random.random_range(range.clone());
            if random.random_bool(share) && to != self.current[group] {
                self.make(Flip { at: to, group: Some(group), delta: 0.0 });
            }
        }
    }
}
