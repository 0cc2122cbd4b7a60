//! From variables and factors to a model.
//!
//! **More than two states.** A variable becomes a one-of group: the one label that is on is its
//! state. States that a table of one variable forbids are left out. A table of two variables puts
//! the cost `c(s, t)` on the pair of labels of `s` and `t`. In a legal state exactly one such pair is
//! on, so exactly one entry is paid.
//!
//! **Three or more variables.** A factor becomes a one-of group `f` with one label, of bias `ln t`,
//! for each entry `t` that is not 0. Hard relations tie an entry to the states that it stands for:
//! it is a child of each label that must be on, and excludes each label that must be off. Exactly one
//! entry is on and its ties hold, so the variables are in its states. Each state of the variables
//! that the factor allows therefore has exactly one completion, of weight `t`, and each other state
//! has none: the partition function, the marginals and the best states are those of the file.

use std::collections::HashSet;

use phex::graph::LabelId;
use phex::model::{Model, OneOfGroup, Relation};

use super::{UaiModel, UaiState};
use crate::models::notes::FileNotes;

/// The most labels that a file may have: a count alone could claim any number.
const MAX_STATES: usize = 4_000_000;

/// A table over variables.
#[derive(Debug)]
pub(super) struct UaiFactor {
    pub(super) number: usize,
    pub(super) line: usize,
    pub(super) scope: Vec<usize>,
    /// `−ln t`, last variable fastest.
    pub(super) costs: Vec<f64>,
}

/// The variables and factors of a file.
#[derive(Debug, Default)]
pub(super) struct UaiNetwork {
    /// How many states each variable has.
    pub(super) states: Vec<usize>,
    pub(super) factors: Vec<UaiFactor>,
    total: usize,
}

impl UaiNetwork {
    pub(super) fn variable(&mut self, states: usize) -> Result<(), String> {
        self.total = self.total.saturating_add(states);
        if states == 0 {
            return Err(String::from("a variable needs at least one"));
        }
        if self.total > MAX_STATES {
            return Err(format!("all variables together have more than {MAX_STATES}"));
        }
        self.states.push(states);
        Ok(())
    }

    /// The model, or the line of an error and its message.
    pub(super) fn build(self, mut notes: FileNotes) -> Result<UaiModel, (usize, String)> {
        let mut parts = ModelParts::default();
        let mut possible: Vec<Vec<bool>> = self.states.iter().map(|&k| vec![true; k]).collect();
        for factor in &self.factors {
            let &[variable] = factor.scope.as_slice() else { continue };
            for (state, &cost) in factor.costs.iter().enumerate().filter(|_| factor.costs.len() > 2)
            {
                possible[variable][state] &= cost != f64::INFINITY;
            }
            if !possible[variable].contains(&true) {
                let message =
                    format!("no state of variable {variable} is possible after this table");
                return Err((factor.line, message));
            }
        }
        for (variable, possible) in possible.iter().enumerate() {
            let name = notes.names.remove(&variable).unwrap_or_else(|| format!("x{variable}"));
            parts.variable(name, possible);
        }
        if let Some(number) = notes.names.keys().next() {
            return Err((1, format!("a name is given to variable {number}, which does not exist")));
        }
        for factor in &self.factors {
            parts.factor(factor);
        }
        if let Some(group) = parts.one_of.iter().find(|group| group.labels.is_empty()) {
            let message = format!("no entry of the factor {} is possible", group.name);
            return Err((1, message));
        }
        let mut seen = HashSet::new();
        if let Some(name) = parts.names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err((1, format!("two labels are named `{name}`; rename one")));
        }
        let ModelParts { names, bias, constant, relations, one_of, variables } = parts;
        Ok(UaiModel {
            model: Model::from_parts(names, bias, constant, relations, one_of),
            variables,
        })
    }
}

/// A model under construction.
#[derive(Default)]
struct ModelParts {
    names: Vec<String>,
    bias: Vec<f64>,
    constant: f64,
    relations: Vec<Relation>,
    one_of: Vec<OneOfGroup>,
    variables: Vec<Vec<UaiState>>,
}

impl ModelParts {
    fn label(&mut self, name: String, bias: f64) -> LabelId {
        self.names.push(name);
        self.bias.push(bias);
        LabelId::from(self.names.len() - 1)
    }

    fn variable(&mut self, name: String, possible: &[bool]) {
        let states = match possible.len() {
            1 => vec![UaiState::Always],
            2 => {
                let label = self.label(name, 0.0);
                vec![UaiState::Off(label), UaiState::On(label)]
            }
            _ => {
                let mut states = Vec::with_capacity(possible.len());
                let mut labels = Vec::new();
                for (state, &possible) in possible.iter().enumerate() {
                    states.push(UaiState::Never);
                    if possible {
                        let label = self.label(format!("{name}={state}"), 0.0);
                        states[state] = UaiState::On(label);
                        labels.push(label);
                    }
                }
                self.one_of.push(OneOfGroup { name, labels });
                states
            }
        };
        self.variables.push(states);
    }

    fn factor(&mut self, factor: &UaiFactor) {
        let UaiFactor { scope, costs, .. } = factor;
        // A variable of one state adds nothing: the table has the same entries without it.
        let scope: Vec<&[UaiState]> = scope
            .iter()
            .map(|&variable| self.variables[variable].as_slice())
            .filter(|states| states.len() > 1)
            .collect();
        let hard = costs.contains(&f64::INFINITY);
        match (scope.as_slice(), costs.as_slice()) {
            ([], &[cost]) => self.constant -= cost,
            (&[&[_, UaiState::On(a)]], &[off, on]) if !hard => {
                self.constant -= off;
                self.bias[a.index()] += off - on;
            }
            // This forbids a state of one label. A bias cannot be infinite, but the cost of a pair
            // can.
            (&[&[_, UaiState::On(a)]], &[off, on]) if self.names.len() > 1 => {
                let b = if a.index() == 0 { self.names.len() - 1 } else { a.index() - 1 };
                let costs = [[off, off], [on, on]];
                self.relations.push(Relation::Pair { a, b: LabelId::from(b), costs });
            }
            ([states @ [_, _, _, ..]], costs) => {
                for (state, cost) in states.iter().zip(costs) {
                    if let UaiState::On(label) = state {
                        self.bias[label.index()] -= cost;
                    }
                }
            }
            ([first, second], costs) => {
                let pairs = pairs(first, second, costs);
                self.relations.extend(pairs);
            }
            (scope, costs) => {
                let states: Vec<Vec<UaiState>> =
                    scope.iter().map(|states| states.to_vec()).collect();
                self.entries(factor.number, &states, costs);
            }
        }
    }

    /// A group with one label per entry, each tied to the states that it stands for.
    fn entries(&mut self, number: usize, scope: &[Vec<UaiState>], costs: &[f64]) {
        let hard = f64::INFINITY;
        let mut labels = Vec::new();
        for (at, &cost) in costs.iter().enumerate().filter(|(_, cost)| cost.is_finite()) {
            let mut rest = at;
            let mut digits: Vec<usize> = Vec::with_capacity(scope.len());
            for states in scope.iter().rev() {
                digits.push(rest % states.len());
                rest /= states.len();
            }
            digits.reverse();
            let states = || scope.iter().zip(&digits).map(|(states, &digit)| states[digit]);
            if states().any(|state| state == UaiState::Never) {
                continue;
            }
            let digits: Vec<String> = digits.iter().map(ToString::to_string).collect();
            let entry = self.label(format!("f{number}={}", digits.join(".")), -cost);
            labels.push(entry);
            for state in states() {
                match state {
                    UaiState::On(parent) => {
                        self.relations.push(Relation::Hierarchy {
                            parent,
                            child: entry,
                            cost: hard,
                        });
                    }
                    UaiState::Off(a) => {
                        self.relations.push(Relation::Exclusion { a, b: entry, cost: hard });
                    }
                    UaiState::Always | UaiState::Never => {}
                }
            }
        }
        self.one_of.push(OneOfGroup { name: format!("f{number}"), labels });
    }
}

/// The relations of a table over two variables.
fn pairs(first: &[UaiState], second: &[UaiState], costs: &[f64]) -> Vec<Relation> {
    let width = second.len();
    let cost = |s: usize, t: usize| costs[s * width + t];
    let on = |states: &[UaiState]| -> Vec<(usize, LabelId)> {
        let label = |(at, state): (usize, &UaiState)| match state {
            UaiState::On(label) => Some((at, *label)),
            _ => None,
        };
        states.iter().enumerate().filter_map(label).collect()
    };
    let mut found = Vec::new();
    let mut push = |a: LabelId, b: LabelId, costs: [[f64; 2]; 2]| {
        if costs != [[0.0; 2]; 2] {
            found.push(Relation::Pair { a, b, costs });
        }
    };
    match (first, second) {
        (&[_, UaiState::On(a)], &[_, UaiState::On(b)]) => {
            push(a, b, [[cost(0, 0), cost(0, 1)], [cost(1, 0), cost(1, 1)]]);
        }
        (states, &[_, UaiState::On(b)]) => {
            for (s, a) in on(states) {
                push(a, b, [[0.0, 0.0], [cost(s, 0), cost(s, 1)]]);
            }
        }
        (&[_, UaiState::On(a)], states) => {
            for (t, b) in on(states) {
                push(a, b, [[0.0, cost(0, t)], [0.0, cost(1, t)]]);
            }
        }
        (first, second) => {
            for (s, a) in on(first) {
                on(second)
                    .into_iter()
                    .for_each(|(t, b)| push(a, b, [[0.0, 0.0], [0.0, cost(s, t)]]));
            }
        }
    }
    found
}
