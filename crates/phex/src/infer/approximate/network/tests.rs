//! The factor graph gives every state the same weight as the model.

use super::{GroupForm, Network};
use crate::graph::LabelId;
use crate::model::{Model, OneOfGroup, Relation};
use crate::testkit::RandomGraph;

/// The log-weight of a state in which every one-of group has one label on.
fn log_weight(network: &Network, scores: &[f64], state: &[bool]) -> f64 {
    let bit = |label: usize| usize::from(state[label]);
    let state_of = |group: usize| {
        network.groups[group].iter().position(|&label| state[label]).expect("one is on")
    };
    let on = (0..state.len()).filter(|&label| state[label]);
    let score: f64 = on.map(|label| scores[label] + network.bias[label]).sum();
    let pairs = network.pairs.iter().map(|pair| pair.costs[bit(pair.a)][bit(pair.b)]);
    let links = network.links.iter().map(|link| {
        let entry = link.entries.iter().find(|entry| entry.0 == state_of(link.group));
        entry.map_or(0.0, |entry| entry.1[bit(link.label)])
    });
    let tables = network.tables.iter().map(|table| {
        let here = (state_of(table.a), state_of(table.b));
        let entry = table.entries.iter().find(|entry| (entry.0, entry.1) == here);
        entry.map_or(0.0, |entry| entry.2)
    });
    let cardinalities = network.cardinalities.iter().map(|factor| {
        let labels: usize = factor.labels.iter().map(|&label| bit(label)).sum();
        let part = |part: &&super::GroupPart| part.states.contains(&state_of(part.group));
        let m = (labels + factor.parts.iter().filter(part).count()) as f64;
        if m < 2.0 { 0.0 } else { factor.cost * m * (m - 1.0) / 2.0 }
    });
    let cost: f64 = pairs.chain(links).chain(tables).chain(cardinalities).sum();
    network.constant + score - cost
}

/// Compares all states; the number of those compared.
fn agrees(model: &Model, seed: u64) -> usize {
    let mut states = 0;
    let n = model.len();
    let scores: Vec<f64> = (0..n).map(|i| ((i * 7 + seed as usize) % 11) as f64 - 5.0).collect();
    for form in [GroupForm::Cardinality, GroupForm::Pairs] {
        let Ok(network) = Network::new(model, form) else { return states };
        for bits in 0u32..1 << n {
            let state: Vec<bool> = (0..n).map(|label| bits >> label & 1 == 1).collect();
            let one = |group: &OneOfGroup| {
                group.labels.iter().filter(|id| state[id.index()]).count() == 1
            };
            if !model.one_of().iter().all(one) {
                continue;
            }
            let expected = model.log_weight(&scores, &state);
            let found = log_weight(&network, &scores, &state);
            let same = expected == found || (expected - found).abs() < 1e-9;
            assert!(same, "seed {seed}, {form:?}, state {state:?}: {expected} and {found}");
            states += 1;
        }
    }
    states
}

#[test]
fn random_graphs_have_the_same_weights() {
    let mut states = 0;
    for seed in 0..300 {
        let graph = RandomGraph::any(2 + (seed % 7) as usize, seed).draw();
        if let Ok(model) = Model::new(&graph) {
            states += agrees(&model, seed);
        }
    }
    assert!(states > 5000, "{states}");
}

#[test]
fn pairs_between_groups_have_the_same_weights() {
    // Labels 0–2 and 3–5 are one-of groups, 6 and 7 are free, and every pair has a table.
    let names = (0..8).map(|label| format!("x{label}")).collect::<Vec<_>>();
    let mut relations = Vec::new();
    for a in 0..8usize {
        for b in (0..8).filter(|&b| b != a) {
            let cell = |k: usize| match (a * 5 + b * 3 + k) % 13 {
                0 => f64::INFINITY,
                value => value as f64 / 4.0 - 1.0,
            };
            let costs = [[cell(0), cell(1)], [cell(2), cell(3)]];
            relations.push(Relation::Pair { a: LabelId::from(a), b: LabelId::from(b), costs });
        }
    }
    let group = |name: &str, labels: std::ops::Range<usize>| OneOfGroup {
        name: name.to_owned(),
        labels: labels.map(LabelId::from).collect(),
    };
    let groups = vec![group("g", 0..3), group("h", 3..6)];
    for keep in 1..6 {
        let some = relations.iter().step_by(keep).cloned().collect();
        let model = Model::from_parts(names.clone(), vec![0.5; 8], 0.25, some, groups.clone());
        agrees(&model, keep as u64);
    }
}
