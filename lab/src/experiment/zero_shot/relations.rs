//! From predicates to relations.
//!
//! The classes are a one-of group; a cell of the matrix costs `off` when its class is on and its attribute
//! off (hierarchy, the attribute above the class), and `on` when both are on (exclusion). With w = 4u:
//!
//! ```text
//! hard        off = ∞, on = 0  where the class has the attribute;  off = 0, on = ∞  where not
//! constant    off = w, on = 0                                      off = 0, on = w
//! variable    off = w·m(c), on = w·(1 − m(c))                      of the graded predicate c
//! ```
//!
//! with one of the monotone maps m of [`CostMap`]; there is no cost if c is missing. Violations need a class that is on.
//! So the posterior of the unseen classes, given that no seen class is on, is that of the graph of the unseen classes
//! alone. O(classes · attributes).

use phex::graph::{GraphBuilder, RelationGraph, Strength};
use serde::{Deserialize, Serialize};

use super::data::Predicates;
use super::settings::CostMap;

/// The strengths of all relations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum PredicateStrengths {
    /// HEX.
    Hard,
    /// One strength, by the binary matrix.
    Constant { u: f64 },
    /// By the graded matrix.
    Variable { map: CostMap, u: f64 },
}

impl PredicateStrengths {
    /// Its name in reports.
    pub(super) fn describe(self) -> String {
        match self {
            PredicateStrengths::Hard => String::from("HEX"),
            PredicateStrengths::Constant { u } => format!("constant, u = {u}"),
            PredicateStrengths::Variable { map, u } => {
                format!("variable ({}), u = {u}", map.name())
            }
        }
    }
}

/// The costs of each cell, off and on, class after class.
pub(super) fn costs(predicates: &Predicates, strengths: PredicateStrengths) -> Vec<[f64; 2]> {
    let binary = |cost: f64| {
        let cell = |&has: &bool| if has { [cost, 0.0] } else { [0.0, cost] };
        predicates.binary.iter().map(cell).collect()
    };
    match strengths {
        PredicateStrengths::Hard => binary(f64::INFINITY),
        PredicateStrengths::Constant { u } => binary(4.0 * u),
        PredicateStrengths::Variable { map, u } => {
            let cost = 4.0 * u;
            let cell = |m: Option<f64>| m.map_or([0.0, 0.0], |m| [cost * m, cost * (1.0 - m)]);
            mapped(predicates, map).into_iter().map(cell).collect()
        }
    }
}

/// The map of each graded predicate, in 0 to 1.
fn mapped(predicates: &Predicates, map: CostMap) -> Vec<Option<f64>> {
    let mut sorted: Vec<f64> = predicates.graded.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let threshold = predicates.threshold;
    let value = |c: f64| match map {
        CostMap::Linear => c,
        CostMap::Centred if c <= threshold => c / (2.0 * threshold).max(f64::MIN_POSITIVE),
        CostMap::Centred => 0.5 + (c - threshold) / (2.0 * (1.0 - threshold)),
        CostMap::Rank => {
            let below = sorted.partition_point(|&other| other < c);
            let not_above = sorted.partition_point(|&other| other <= c);
            (below + not_above) as f64 / (2 * sorted.len()) as f64
        }
    };
    predicates.graded.iter().map(|c| c.map(|c| value(c).clamp(0.0, 1.0))).collect()
}

/// The graph of some classes: these, in this order, then all attributes.
///
/// # Errors
/// If names repeat.
pub(super) fn graph(
    predicates: &Predicates,
    costs: &[[f64; 2]],
    classes: &[usize],
) -> Result<RelationGraph, phex::Error> {
    let class_name = |class: usize| format!("class {}", predicates.classes[class]);
    let attribute_names: Vec<String> =
        predicates.attributes.iter().map(|name| format!("attribute {name}")).collect();
    let class_names: Vec<String> = classes.iter().map(|&class| class_name(class)).collect();
    let mut builder = GraphBuilder::new();
    for name in class_names.iter().chain(&attribute_names) {
        builder.label(name);
    }
    builder.one_of("class", class_names.iter().map(String::as_str), None);
    let width = attribute_names.len();
    for (class, class_name) in classes.iter().zip(&class_names) {
        let cells = &costs[class * width..(class + 1) * width];
        for (attribute, &[off, on]) in attribute_names.iter().zip(cells) {
            if off > 0.0 {
                builder.hierarchy(attribute, class_name, Some(strength(off)));
            }
            if on > 0.0 {
                builder.exclusion(class_name, attribute, Some(strength(on)));
            }
        }
    }
    builder.build()
}

fn strength(cost: f64) -> Strength {
    if cost == f64::INFINITY { Strength::Hard } else { Strength::W(cost) }
}

#[cfg(test)]
mod tests;
