//! What evidence forces through hard relations and one-of groups.
//!
//! Unit propagation, O(relations of the labels that become known): a hard relation with one label
//! known settles the other, a one-of group with one label on settles the rest, and with all but one off
//! the last. Settled labels are not sampled, and a contradiction means that no state agrees with the
//! evidence. Without one-of groups every contradiction is found, for hard relations then are clauses
//! of two labels; with them, some are not.

use super::quadratic::Lists;
use crate::infer::Evidence;
use crate::infer::network::Network;

/// The hard relations of a model.
#[derive(Debug, Clone)]
pub(super) struct Implications {
    /// For the label `l` off (2l) and on (2l + 1): what follows, in the same code.
    pairs: Lists,
    /// The hard exclusion groups of each label, and the members of each of them.
    exclusions_of: Lists,
    exclusions: Vec<Vec<usize>>,
    /// The one-of groups.
    groups: Vec<Vec<usize>>,
    group_of: Vec<Option<usize>>,
    /// What is known without evidence: labels of infinite bias.
    always: Vec<(usize, bool)>,
}

impl Implications {
    pub(super) fn new(network: &Network) -> Implications {
        let n = network.labels;
        let mut pairs = vec![Vec::new(); 2 * n];
        let mut forbid = |a: usize, on_a: usize, b: usize, on_b: usize| {
            pairs[2 * a + on_a].push((2 * b + 1 - on_b) as u32);
            pairs[2 * b + on_b].push((2 * a + 1 - on_a) as u32);
        };
        for pair in &network.pairs {
            for (on_a, costs) in pair.costs.iter().enumerate() {
                for (on_b, _) in costs.iter().enumerate().filter(|(_, c)| **c == f64::INFINITY) {
                    forbid(pair.a, on_a, pair.b, on_b);
                }
            }
        }
        for link in &network.links {
            for (state, costs) in &link.entries {
                let state = network.groups[link.group][*state];
                for (on, _) in costs.iter().enumerate().filter(|(_, c)| **c == f64::INFINITY) {
                    forbid(state, 1, link.label, on);
                }
            }
        }
        for table in &network.tables {
            for entry in table.entries.iter().filter(|entry| entry.2 == f64::INFINITY) {
                forbid(network.groups[table.a][entry.0], 1, network.groups[table.b][entry.1], 1);
            }
        }
        let mut exclusions_of = vec![Vec::new(); n];
        let mut exclusions: Vec<Vec<usize>> = Vec::new();
        for factor in network.cardinalities.iter().filter(|factor| factor.cost == f64::INFINITY) {
            let members: Vec<usize> = factor.members(&network.groups).collect();
            members.iter().for_each(|&label| exclusions_of[label].push(exclusions.len() as u32));
            exclusions.push(members);
        }
        let infinite = network.bias.iter().enumerate().filter(|(_, bias)| bias.is_infinite());
        Implications {
            pairs: Lists::new(&pairs),
            exclusions_of: Lists::new(&exclusions_of),
            exclusions,
            groups: network.groups.clone(),
            group_of: network.state_of.iter().map(|at| at.map(|(group, _)| group)).collect(),
            always: infinite.map(|(label, &bias)| (label, bias > 0.0)).collect(),
        }
    }

    /// Settles all that follows; false when nothing agrees with the evidence.
    pub(super) fn settle(&self, known: &mut [Evidence]) -> bool {
        let evidence = known.iter().enumerate().filter(|(_, state)| **state != Evidence::Unknown);
        let mut settled: Vec<usize> = evidence.map(|(label, _)| label).collect();
        let all = |known: &mut [Evidence], settled: &mut Vec<usize>| {
            self.always.iter().all(|&(label, on)| settle(known, settled, label, on))
                && (0..self.groups.len()).all(|group| self.last(group, known, settled))
        };
        if !all(known, &mut settled) {
            return false;
        }
        while let Some(label) = settled.pop() {
            if !self.follow(label, known, &mut settled) {
                return false;
            }
        }
        true
    }

    /// Settles what follows from one label.
    fn follow(&self, label: usize, known: &mut [Evidence], settled: &mut Vec<usize>) -> bool {
        let on = known[label] == Evidence::On;
        for &code in self.pairs.of(2 * label + usize::from(on)) {
            if !settle(known, settled, code as usize / 2, code % 2 == 1) {
                return false;
            }
        }
        let group = self.group_of[label];
        if !on {
            return group.is_none_or(|group| self.last(group, known, settled));
        }
        let exclusions =
            self.exclusions_of.of(label).iter().map(|&at| &self.exclusions[at as usize]);
        let others = exclusions.chain(group.map(|group| &self.groups[group])).flatten();
        others.filter(|&&other| other != label).all(|&other| settle(known, settled, other, false))
    }

    /// Of a one-of group with none on and one unknown, that one is on; with none at all, nothing is.
    fn last(&self, group: usize, known: &mut [Evidence], settled: &mut Vec<usize>) -> bool {
        let labels = &self.groups[group];
        if labels.iter().any(|&label| known[label] == Evidence::On) {
            return true;
        }
        let mut left = labels.iter().filter(|&&label| known[label] == Evidence::Unknown);
        match (left.next(), left.next()) {
            (None, _) => false,
            (Some(&label), None) => settle(known, settled, label, true),
            _ => true,
        }
    }
}

/// Makes a label known; false when the opposite is.
fn settle(known: &mut [Evidence], settled: &mut Vec<usize>, label: usize, on: bool) -> bool {
    let value = if on { Evidence::On } else { Evidence::Off };
    if known[label] == Evidence::Unknown {
        known[label] = value;
        settled.push(label);
    }
    known[label] == value
}
