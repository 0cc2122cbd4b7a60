//! Decides whether there is a legal state with some labels on and others off.
//!
//! Turning a label on turns on all its ancestors. Nothing else has to be propagated, because the
//! remaining labels can always be off. What is left is to choose one member of each one-of group
//! such that no two labels share an exclusive set. Without groups the whole question is a walk
//! upwards. With one group the choice is immediate. With many groups it is a backtracking search,
//! which a budget bounds because the general problem is NP-hard; when the budget runs out, the
//! answer is "undecided".

use std::collections::HashSet;

use super::super::LabelId;
use super::logic::Logic;

/// Two labels that are on and share an exclusive set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::graph) struct Conflict {
    pub(in crate::graph) a: LabelId,
    pub(in crate::graph) b: LabelId,
}

/// The answer to a question about legal states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::graph) enum Verdict {
    /// A legal state exists: the labels that are on in one of them.
    Possible(Vec<LabelId>),
    /// None exists.
    Impossible,
    /// The budget ran out.
    Undecided,
}

/// How many labels may be turned on to answer one question.
const BUDGET: u64 = 2_000_000;
/// How many labels may be turned on in all questions of a solver that ran out of budget.
const BUDGET_OF_ALL: u64 = 20_000_000;

/// Answers questions about legal states, and reuses its memory between them.
pub(in crate::graph) struct Solver<'l> {
    logic: &'l Logic,
    on: Vec<bool>,
    forbidden: Vec<bool>,
    /// The label that is on in each set.
    owner: Vec<Option<LabelId>>,
    group_on: Vec<bool>,
    trail: Vec<LabelId>,
    /// The member that satisfied each group most recently: it often does so again.
    saved: Vec<LabelId>,
    /// Groups that questions may leave unsatisfied.
    ignored: Vec<bool>,
    /// Hierarchy edges `(parent, child)` and sets that questions ignore.
    without_edges: HashSet<(LabelId, LabelId)>,
    without_sets: Vec<bool>,
    steps: u64,
    /// The steps spent on questions that ran out of budget. If there are many, the problem is hard
    /// as a whole.
    lost: u64,
}

impl<'l> Solver<'l> {
    pub(in crate::graph) fn new(logic: &'l Logic) -> Solver<'l> {
        let groups = logic.groups();
        Solver {
            logic,
            on: vec![false; logic.len()],
            forbidden: vec![false; logic.len()],
            owner: vec![None; logic.sets().len()],
            group_on: vec![false; groups.len()],
            trail: Vec::new(),
            saved: groups.iter().map(|group| group[0]).collect(),
            ignored: vec![false; groups.len()],
            without_edges: HashSet::new(),
            without_sets: vec![false; logic.sets().len()],
            steps: 0,
            lost: 0,
        }
    }

    /// Ignores a group in the questions that follow, or considers it again.
    pub(in crate::graph) fn ignore_group(&mut self, group: usize, ignored: bool) {
        self.ignored[group] = ignored;
    }

    /// Ignores a hierarchy edge in the questions that follow, or considers it again.
    pub(in crate::graph) fn without_edge(&mut self, parent: LabelId, child: LabelId, out: bool) {
        if out {
            self.without_edges.insert((parent, child));
        } else {
            self.without_edges.remove(&(parent, child));
        }
    }

    /// Ignores an exclusive set in the questions that follow, or considers it again.
    pub(in crate::graph) fn without_set(&mut self, set: usize, out: bool) {
        self.without_sets[set] = out;
    }

    /// How many labels the last question turned on.
    pub(in crate::graph) fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether there is a legal state in which all labels of `on` are on and all labels of `off`
    /// are off.
    pub(in crate::graph) fn ask(&mut self, on: &[LabelId], off: &[LabelId]) -> Verdict {
        if self.lost > BUDGET_OF_ALL {
            return Verdict::Undecided;
        }
        self.steps = 0;
        off.iter().for_each(|label| self.forbidden[label.index()] = true);
        let possible = if on.iter().all(|&label| self.turn_on(label).is_ok()) {
            self.choose(on)
        } else {
            Some(false)
        };
        let verdict = match possible {
            Some(true) => Verdict::Possible(self.trail.clone()),
            Some(false) => Verdict::Impossible,
            None => {
                self.lost += self.steps;
                Verdict::Undecided
            }
        };
        self.undo(0);
        off.iter().for_each(|label| self.forbidden[label.index()] = false);
        verdict
    }

    /// A conflict between these labels and their ancestors, regardless of one-of groups.
    pub(in crate::graph) fn conflict(&mut self, on: &[LabelId]) -> Option<Conflict> {
        let conflict = on.iter().find_map(|&label| self.turn_on(label).err().flatten());
        self.undo(0);
        conflict
    }

    /// Turns a label and its ancestors on. On failure the caller has to undo it.
    fn turn_on(&mut self, label: LabelId) -> Result<(), Option<Conflict>> {
        let logic = self.logic;
        let mut at = self.trail.len();
        if !self.on[label.index()] {
            self.on[label.index()] = true;
            self.trail.push(label);
        }
        while at < self.trail.len() {
            let label = self.trail[at];
            at += 1;
            self.steps += 1;
            if self.forbidden[label.index()] {
                self.trail_from(at - 1);
                return Err(None);
            }
            for &set in logic.sets_of(label) {
                if self.without_sets[set as usize] {
                    continue;
                }
                if let Some(other) = self.owner[set as usize] {
                    self.trail_from(at - 1);
                    return Err(Some(Conflict { a: other, b: label }));
                }
            }
            for &set in logic.sets_of(label) {
                self.owner[set as usize] = Some(label);
            }
            if let Some(group) = logic.group_of[label.index()] {
                self.group_on[group as usize] = true;
            }
            for &parent in logic.topology().parents(label) {
                let passed =
                    !self.without_edges.is_empty() && self.without_edges.contains(&(parent, label));
                if !self.on[parent.index()] && !passed {
                    self.on[parent.index()] = true;
                    self.trail.push(parent);
                }
            }
        }
        Ok(())
    }

    /// Removes labels from the trail that were pushed but do not own a set yet.
    fn trail_from(&mut self, at: usize) {
        for label in self.trail.drain(at..) {
            self.on[label.index()] = false;
        }
    }

    fn undo(&mut self, to: usize) {
        while self.trail.len() > to {
            let Some(label) = self.trail.pop() else { return };
            self.on[label.index()] = false;
            for &set in self.logic.sets_of(label) {
                if self.owner[set as usize] == Some(label) {
                    self.owner[set as usize] = None;
                }
            }
            if let Some(group) = self.logic.group_of[label.index()] {
                self.group_on[group as usize] = false;
            }
        }
    }

    /// Satisfies the groups that have no member on. `None` when the budget ran out.
    fn choose(&mut self, near: &[LabelId]) -> Option<bool> {
        let open = (0..self.group_on.len()).filter(|&g| !self.group_on[g] && !self.ignored[g]);
        let Some(group) = open.min_by_key(|&group| self.logic.groups[group].len()) else {
            return Some(true);
        };
        let logic = self.logic;
        let below = near.iter().filter_map(|&label| self.member_below(label, group));
        let first: Vec<LabelId> = below.chain([self.saved[group]]).collect();
        for &member in first.iter().chain(&logic.groups[group]) {
            if self.steps > BUDGET {
                return None;
            }
            let mark = self.trail.len();
            if self.turn_on(member).is_ok() {
                match self.choose(near) {
                    Some(false) => {}
                    found => {
                        if found == Some(true) {
                            self.saved[group] = member;
                        }
                        return found;
                    }
                }
            }
            self.undo(mark);
        }
        Some(false)
    }

    /// A member of the group among the first descendants of a label, because it is likely to be
    /// compatible.
    fn member_below(&self, label: LabelId, group: usize) -> Option<LabelId> {
        let topology = self.logic.topology();
        let mut at = label;
        loop {
            if self.logic.group_of[at.index()] == Some(group as u32) {
                return Some(at);
            }
            at = *topology.children(at).first()?;
        }
    }
}
