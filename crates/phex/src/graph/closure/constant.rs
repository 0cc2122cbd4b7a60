//! Finds the labels that have the same value in every legal state.
//!
//! Every answer of the solver that is "possible" comes with a state, which settles all labels that
//! are on in it, or off in it. So few labels need a question of their own: most labels are off in
//! the first state found, and a label that can be on shows that its ancestors can.

use super::super::LabelId;
use super::logic::Logic;
use super::solve::{Solver, Verdict};
use crate::Error;

impl Logic {
    /// For each label, its value in every legal state: `None` when both values occur, or when the
    /// budget of the search ran out.
    ///
    /// # Errors
    /// [`Error::NoLegalState`] when there is no legal state. [`Error::Budget`] when this could not
    /// be decided because many one-of groups interlock.
    pub fn constant_labels(&self) -> Result<Vec<Option<bool>>, Error> {
        if !self.is_satisfiable()? {
            return Err(Error::NoLegalState);
        }
        let mut solver = Solver::new(self);
        let mut constant = vec![None; self.len()];
        let mut seen_on = vec![false; self.len()];
        // Labels that were on in every state so far: few, once there is one state.
        let mut always: Vec<LabelId> = self.ids().collect();
        let mut in_state = vec![false; self.len()];
        let mut note = |state: &[LabelId], seen_on: &mut [bool], always: &mut Vec<LabelId>| {
            state.iter().for_each(|label| in_state[label.index()] = true);
            always.retain(|label| in_state[label.index()]);
            for label in state {
                (seen_on[label.index()], in_state[label.index()]) = (true, false);
            }
        };
        if let Verdict::Possible(state) = solver.ask(&[], &[]) {
            note(&state, &mut seen_on, &mut always);
        }
        // Labels below others come first, because their states turn on the most.
        for &label in self.topology.order().iter().rev() {
            if seen_on[label.index()] {
                continue;
            }
            match solver.ask(&[label], &[]) {
                Verdict::Possible(state) => note(&state, &mut seen_on, &mut always),
                Verdict::Impossible => constant[label.index()] = Some(false),
                Verdict::Undecided => {}
            }
        }
        while let Some(label) = always.pop() {
            match solver.ask(&[], &[label]) {
                Verdict::Possible(state) => note(&state, &mut seen_on, &mut always),
                Verdict::Impossible => constant[label.index()] = Some(true),
                Verdict::Undecided => {}
            }
        }
        Ok(constant)
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::closure::Logic;
    use crate::testkit::{Oracle, RandomGraph};

    #[test]
    fn constant_labels_are_those_of_enumeration() {
        let mut found = 0;
        for seed in 0..300 {
            let graph = RandomGraph::any(7, seed).draw();
            let states = Oracle::new(&graph).legal_states();
            let logic = Logic::hard(&graph);
            if states.is_empty() {
                assert!(logic.constant_labels().is_err());
                continue;
            }
            let constant = logic.constant_labels().unwrap();
            for (label, value) in constant.into_iter().enumerate() {
                let on = states.iter().filter(|&&state| state >> label & 1 == 1).count();
                let expected = match on {
                    0 => Some(false),
                    all if all == states.len() => Some(true),
                    _ => None,
                };
                assert_eq!(value, expected, "seed {seed}, label {label}");
                found += usize::from(value.is_some());
            }
        }
        assert!(found > 100);
    }
}
