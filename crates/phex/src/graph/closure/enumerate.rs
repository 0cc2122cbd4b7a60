//! Enumerates the legal states.
//!
//! Labels are decided parents first. A label may be on when all its parents are on and no label
//! that shares an exclusive set with it is on. It may always be off. Without one-of groups every
//! branch ends in a legal state. With them a branch is entered only when the solver finds a legal
//! state in it. Memory is O(n). Without groups, time is O(n) per state.

use super::super::LabelId;
use super::logic::Logic;
use super::solve::{Solver, Verdict};

/// An iterator over the legal states, each as the labels that are on, ascending.
///
/// ```
/// use phex::graph::{GraphBuilder, closure::Logic};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("dog", "puppy", None).exclusion("dog", "cat", None);
/// let graph = builder.build()?;
/// let logic = Logic::hard(&graph);
/// // Nothing, cat, dog, dog and puppy.
/// assert_eq!(logic.legal_states().count(), 4);
/// # Ok::<(), phex::Error>(())
/// ```
pub struct LegalStates<'l> {
    logic: &'l Logic,
    solver: Solver<'l>,
    on: Vec<bool>,
    owner: Vec<bool>,
    /// For each decided label, in order, whether "on" has still to be tried after "off".
    pending: Vec<bool>,
    done: bool,
    /// How many labels have been visited, and how many may be.
    steps: u64,
    most: u64,
}

impl Logic {
    /// Streams the legal states.
    pub fn legal_states(&self) -> LegalStates<'_> {
        LegalStates {
            logic: self,
            solver: Solver::new(self),
            on: vec![false; self.len()],
            owner: vec![false; self.sets.len()],
            pending: Vec::with_capacity(self.len()),
            done: self.is_satisfiable().is_ok_and(|satisfiable| !satisfiable),
            steps: 0,
            most: u64::MAX,
        }
    }
}

impl LegalStates<'_> {
    /// Ends after visits of so many labels, which is about the time it takes.
    pub(crate) fn within(self, most: u64) -> Self {
        LegalStates { most, ..self }
    }

    /// Whether it has ended before all states were found.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.steps > self.most
    }

    fn label(&self, at: usize) -> LabelId {
        self.logic.topology.order()[at]
    }

    fn may_be_on(&self, label: LabelId) -> bool {
        let mut parents = self.logic.topology.parents(label).iter();
        let mut sets = self.logic.sets_of(label).iter();
        parents.all(|parent| self.on[parent.index()]) && !sets.any(|&set| self.owner[set as usize])
    }

    fn set(&mut self, label: LabelId, on: bool) {
        self.on[label.index()] = on;
        for &set in self.logic.sets_of(label) {
            self.owner[set as usize] = on;
        }
    }

    /// Whether the labels decided so far can be completed to a legal state.
    fn can_complete(&mut self) -> bool {
        if self.logic.groups.is_empty() {
            return true;
        }
        // Propagation visits about every label.
        self.steps += self.logic.len() as u64;
        let decided = &self.logic.topology.order()[..self.pending.len()];
        let (on, off): (Vec<LabelId>, Vec<LabelId>) =
            decided.iter().partition(|label| self.on[label.index()]);
        // An undecided answer counts as possible, because the end of the branch is checked again.
        let verdict = self.solver.ask(&on, &off);
        self.steps += self.solver.steps();
        verdict != Verdict::Impossible
    }

    /// Decides the remaining labels, off wherever possible.
    fn descend(&mut self) -> bool {
        while self.pending.len() < self.logic.len() {
            if self.is_cut_short() {
                return false;
            }
            let label = self.label(self.pending.len());
            let may = self.may_be_on(label);
            self.steps += 1;
            self.pending.push(may);
            // A label that must be off removes no possibility, so nothing has to be checked again.
            if !may || self.can_complete() {
                continue;
            }
            self.turn_last_on();
            if !self.can_complete() {
                return false;
            }
        }
        true
    }

    fn turn_last_on(&mut self) {
        let last = self.pending.len() - 1;
        self.pending[last] = false;
        self.set(self.label(last), true);
    }

    /// Goes back to the last label that can still be turned on, and turns it on.
    fn backtrack(&mut self) -> bool {
        while let Some(&pending) = self.pending.last() {
            if self.is_cut_short() {
                return false;
            }
            self.steps += 1;
            if pending {
                self.turn_last_on();
                if self.can_complete() {
                    return true;
                }
            }
            let label = self.label(self.pending.len() - 1);
            if self.on[label.index()] {
                self.set(label, false);
            }
            self.pending.pop();
        }
        false
    }
}

impl Iterator for LegalStates<'_> {
    type Item = Vec<LabelId>;

    fn next(&mut self) -> Option<Vec<LabelId>> {
        if self.done {
            return None;
        }
        if !self.pending.is_empty() || self.logic.is_empty() {
            self.done = !self.backtrack();
        }
        while !self.done {
            if self.descend() {
                let on = self.logic.ids().filter(|id| self.on[id.index()]);
                return Some(on.collect());
            }
            self.done = !self.backtrack();
        }
        None
    }
}
