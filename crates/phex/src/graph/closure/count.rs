//! Counts the legal states exactly.
//!
//! Once a label is decided and the consequences are propagated, the undecided labels fall into
//! components that share no relation, and the counts of the components multiply. A component is
//! identified by its labels alone, because a label is undecided only while no relation with a
//! decided label binds it. So counts are cached by component. Branching goes from the top of the
//! hierarchy downwards and takes one exclusive set at a time: none of its members is on, or exactly
//! one is.
//!
//! The cost is polynomial on trees. On graphs of moderate width the cache keeps counting feasible.
//! The budget bounds the rest, because the problem is #P-hard.

use std::collections::HashMap;

use num_bigint::BigUint;

use super::super::LabelId;
use super::logic::Logic;
use crate::Error;

/// How many decisions are allowed in all.
const BUDGET: u64 = 60_000_000;
/// How many labels the keys of the cache may hold in total.
const CACHE: usize = 50_000_000;
/// Bytes of stack per label, because the recursion is at most as deep as there are labels, and bytes in all.
const STACK_PER_LABEL: usize = 16 << 10;
const STACK: usize = 512 << 20;
/// Graphs of so few labels need no stack of their own.
const SMALL: usize = 64;

impl Logic {
    /// The number of legal states.
    ///
    /// # Errors
    /// [`Error::Budget`] when the graph is too entangled to count.
    pub fn count_states(&self) -> Result<BigUint, Error> {
        let labels = self.len();
        if labels <= SMALL {
            return Counter::new(self).count_all();
        }
        let stack = labels.saturating_mul(STACK_PER_LABEL).min(STACK);
        std::thread::scope(|scope| {
            let count = || Counter::new(self).count_all();
            let thread = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, count);
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(count)) => count,
                // The count is unknown after a panic.
                Ok(Err(_)) => Err(over_budget()),
                Err(_) => Err(Error::NoRoom {
                    what: "a thread that counts the legal states",
                    bytes: stack,
                }),
            }
        })
    }
}

fn over_budget() -> Error {
    Error::Budget {
        question: "counting the legal states",
        budget: BUDGET,
        help: "count part of the graph, or add relations that constrain its labels",
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CountState {
    Undecided,
    On,
    Off,
}

struct Counter<'l> {
    logic: &'l Logic,
    state: Vec<CountState>,
    trail: Vec<LabelId>,
    cache: HashMap<Box<[LabelId]>, BigUint>,
    cached: usize,
    steps: u64,
    /// Marks the components of the current split.
    seen: Vec<u32>,
    seen_set: Vec<u32>,
    now: u32,
}

impl<'l> Counter<'l> {
    fn new(logic: &'l Logic) -> Counter<'l> {
        Counter {
            logic,
            state: vec![CountState::Undecided; logic.len()],
            trail: Vec::new(),
            cache: HashMap::new(),
            cached: 0,
            steps: 0,
            seen: vec![0; logic.len()],
            seen_set: vec![0; logic.sets.len()],
            now: 0,
        }
    }

    fn count_all(mut self) -> Result<BigUint, Error> {
        // A one-of group with a single label is not an exclusive set, so it is decided first.
        for group in &self.logic.groups {
            if let &[only] = group.as_slice()
                && !self.decide(only, CountState::On)
            {
                return Ok(BigUint::ZERO);
            }
        }
        let all: Vec<LabelId> = self.logic.ids().collect();
        self.product(&all)
    }

    /// The number of ways to complete the undecided ones among these labels.
    fn product(&mut self, labels: &[LabelId]) -> Result<BigUint, Error> {
        let mut product = BigUint::from(1u32);
        for component in self.components(labels) {
            let count = self.count(component)?;
            if count == BigUint::ZERO {
                return Ok(count);
            }
            product *= count;
        }
        Ok(product)
    }

    fn count(&mut self, component: Vec<LabelId>) -> Result<BigUint, Error> {
        if let [only] = component.as_slice() {
            // A single undecided label is free, unless it is the last one left of a one-of group.
            let last = self.logic.group_of[only.index()].is_some();
            return Ok(BigUint::from(if last { 1u32 } else { 2 }));
        }
        if let Some(count) = self.cache.get(component.as_slice()) {
            return Ok(count.clone());
        }
        let top = self.topmost(&component);
        let members = self.widest_set(top);
        let mut total = BigUint::ZERO;
        for &member in &members {
            total += self.branch(&component, &[member], CountState::On)?;
        }
        total += self.branch(&component, &members, CountState::Off)?;
        self.cached += component.len();
        if self.cached <= CACHE {
            self.cache.insert(component.into_boxed_slice(), total.clone());
        }
        Ok(total)
    }

    /// The count with these labels in this state.
    fn branch(
        &mut self,
        component: &[LabelId],
        labels: &[LabelId],
        state: CountState,
    ) -> Result<BigUint, Error> {
        if self.steps > BUDGET {
            return Err(over_budget());
        }
        let mark = self.trail.len();
        let consistent = labels.iter().all(|&label| self.decide(label, state));
        let count = if consistent { self.product(component) } else { Ok(BigUint::ZERO) };
        for label in self.trail.drain(mark..) {
            self.state[label.index()] = CountState::Undecided;
        }
        count
    }

    /// The undecided label that is least deep, and among those the one with the most relations.
    fn topmost(&self, component: &[LabelId]) -> LabelId {
        let topology = &self.logic.topology;
        let rank = |&id: &LabelId| {
            let relations = self.logic.sets_of(id).len() + topology.children(id).len();
            (topology.depth(id), usize::MAX - relations, id)
        };
        component.iter().copied().min_by_key(rank).expect("components are not empty")
    }

    /// The undecided members of the label's largest exclusive set, or the label alone.
    fn widest_set(&self, label: LabelId) -> Vec<LabelId> {
        let undecided = |&set: &u32| -> Vec<LabelId> {
            let labels = self.logic.sets[set as usize].labels.iter().copied();
            labels.filter(|id| self.state[id.index()] == CountState::Undecided).collect()
        };
        let sets = self.logic.sets_of(label).iter().map(undecided);
        sets.max_by_key(Vec::len).filter(|set| set.len() > 1).unwrap_or_else(|| vec![label])
    }

    /// Decides a label and propagates the consequences. Returns `false` on a contradiction.
    fn decide(&mut self, label: LabelId, state: CountState) -> bool {
        let logic = self.logic;
        let mut at = self.trail.len();
        if !self.assign(label, state) {
            return false;
        }
        while at < self.trail.len() {
            let label = self.trail[at];
            at += 1;
            self.steps += 1;
            let consistent = if self.state[label.index()] == CountState::On {
                let parents = logic.topology.parents(label).iter();
                let sets = logic.sets_of(label).iter();
                let others = sets.flat_map(|&set| &logic.sets[set as usize].labels);
                self.assign_all(parents, CountState::On)
                    && self.assign_all(others.filter(|&&other| other != label), CountState::Off)
            } else {
                let children = logic.topology.children(label).iter();
                self.assign_all(children, CountState::Off) && self.keep_group(label)
            };
            if !consistent {
                return false;
            }
        }
        true
    }

    fn assign_all<'a>(
        &mut self,
        labels: impl Iterator<Item = &'a LabelId>,
        state: CountState,
    ) -> bool {
        for &label in labels {
            if !self.assign(label, state) {
                return false;
            }
        }
        true
    }

    fn assign(&mut self, label: LabelId, state: CountState) -> bool {
        let slot = &mut self.state[label.index()];
        if *slot == CountState::Undecided {
            *slot = state;
            self.trail.push(label);
            return true;
        }
        *slot == state
    }

    /// Called after a member went off: if only one member of its group is left, that member goes
    /// on.
    fn keep_group(&mut self, label: LabelId) -> bool {
        let Some(group) = self.logic.group_of[label.index()] else {
            return true;
        };
        let members = &self.logic.groups[group as usize];
        let mut left = members.iter().filter(|id| self.state[id.index()] != CountState::Off);
        match (left.next(), left.next()) {
            (None, _) => false,
            (Some(&last), None) => self.assign(last, CountState::On),
            _ => true,
        }
    }

    /// The undecided ones among these labels, split into components in ascending order.
    fn components(&mut self, labels: &[LabelId]) -> Vec<Vec<LabelId>> {
        let logic = self.logic;
        self.now += 1;
        let mut components = Vec::new();
        for &start in labels {
            if self.state[start.index()] != CountState::Undecided
                || self.seen[start.index()] == self.now
            {
                continue;
            }
            self.seen[start.index()] = self.now;
            let mut component = vec![start];
            let mut at = 0;
            while at < component.len() {
                let label = component[at];
                at += 1;
                self.steps += 1;
                let parents = logic.topology.parents(label).iter();
                self.gather(parents.chain(logic.topology.children(label)), &mut component);
                for &set in logic.sets_of(label) {
                    if std::mem::replace(&mut self.seen_set[set as usize], self.now) != self.now {
                        self.gather(logic.sets[set as usize].labels.iter(), &mut component);
                    }
                }
            }
            component.sort_unstable();
            components.push(component);
        }
        components
    }

    fn gather<'a>(
        &mut self,
        labels: impl Iterator<Item = &'a LabelId>,
        component: &mut Vec<LabelId>,
    ) {
        for &label in labels {
            let fresh = self.state[label.index()] == CountState::Undecided
                && self.seen[label.index()] != self.now;
            if fresh {
                self.seen[label.index()] = self.now;
                component.push(label);
            }
        }
    }
}
