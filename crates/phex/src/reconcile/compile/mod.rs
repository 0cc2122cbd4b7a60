//! From a graph to parts that engines can handle.
//!
//! Labels that never change are taken out, the rest falls into components ([`relations`]), and each
//! component gets the cheapest engine that can handle it.

mod families;
mod relations;

pub(super) use self::families::{Families, NONE};
use self::relations::LiveRelations;
pub(super) use self::relations::{Component, Edge};
use super::categorical::CategoricalPart;
use super::closure::ClosurePart;
use super::forest::ForestPart;
use super::newton::{NewtonPart, RowSystem, Tangent};
use super::plan::{PlannedPart, ReconcileEngine, ReconcilePlan};
use super::{ReconcileLoss, ReconcileOptions};
use crate::Error;
use crate::graph::{LabelId, RelationGraph};

/// A part of the graph with its engine.
#[derive(Debug)]
pub(super) enum Part {
    /// `pool` or `family`.
    Forest(ForestPart),
    /// `closure`.
    Closure(ClosurePart),
    /// `categorical`.
    Categorical(CategoricalPart),
    /// `newton`.
    Newton(NewtonPart),
}

impl Part {
    /// The inequalities.
    pub(super) fn system(&self) -> RowSystem {
        match self {
            Part::Forest(part) => RowSystem::of_forest(&part.forest),
            Part::Closure(part) => part.system(),
            Part::Categorical(part) => RowSystem::of_forest(part.forest()),
            Part::Newton(part) => part.system.clone(),
        }
    }

    /// What gradients need. `None` when it would be too large.
    pub(super) fn tangent(&self) -> Option<Tangent> {
        match self {
            Part::Forest(part) if part.engine == ReconcileEngine::Pool => {
                Some(Tangent::of_blocks(RowSystem::of_forest(&part.forest)))
            }
            Part::Forest(part) => Tangent::of(RowSystem::of_forest(&part.forest)),
            Part::Closure(part) if part.has_pairs() => Tangent::of(part.system()),
            Part::Closure(part) => Some(Tangent::of_blocks(part.system())),
            Part::Categorical(part) => Tangent::of(RowSystem::of_heads(part.forest())),
            Part::Newton(part) => Tangent::of(part.system.clone()),
        }
    }
}

/// A compiled graph.
#[derive(Debug)]
pub(super) struct CompiledParts {
    /// The value of each label that never changes.
    pub(super) constant: Vec<Option<bool>>,
    pub(super) parts: Vec<Part>,
    pub(super) plan: ReconcilePlan,
}

/// Compiles a graph.
pub(super) fn compile(
    graph: &RelationGraph,
    options: &ReconcileOptions,
) -> Result<CompiledParts, Error> {
    options.check(graph.len())?;
    let LiveRelations { constant, components, soft } = LiveRelations::of(graph)?;
    let weights = options.weights.clone().unwrap_or_else(|| vec![1.0; graph.len()]);
    let uniform = weights.windows(2).all(|pair| pair[0] == pair[1]);
    let mut plan = ReconcilePlan {
        never: constant.iter().filter(|value| **value == Some(false)).count(),
        always: constant.iter().filter(|value| **value == Some(true)).count(),
        soft,
        ..ReconcilePlan::default()
    };
    let mut parts = Vec::new();
    let mut related = plan.never + plan.always;
    for component in &components {
        related += component.labels.len();
        let (part, planned) = choose(graph, component, &weights, uniform, options)?;
        merge(&mut plan.parts, planned);
        parts.push(part);
    }
    plan.free = graph.len() - related;
    if options.loss == ReconcileLoss::Categorical {
        only_heads(graph, &constant, &components)?;
    }
    plan.parts.sort_by_key(|part| part.engine);
    Ok(CompiledParts { constant, parts, plan })
}

/// Adds a part to those of the same engine.
fn merge(parts: &mut Vec<PlannedPart>, new: PlannedPart) {
    let same = |part: &&mut PlannedPart| part.engine == new.engine && part.hull == new.hull;
    match parts.iter_mut().find(same) {
        None => parts.push(new),
        Some(part) => {
            part.parts += 1;
            part.labels += new.labels;
            part.rows += new.rows;
            part.operations += new.operations;
        }
    }
}

/// The requested engine if it can handle a part, or else the cheapest one that can.
fn choose(
    graph: &RelationGraph,
    component: &Component,
    weights: &[f64],
    uniform: bool,
    options: &ReconcileOptions,
) -> Result<(Part, PlannedPart), Error> {
    let brier = options.loss == ReconcileLoss::Brier;
    let wanted = options.engine;
    let (part, mut planned) = if options.loss == ReconcileLoss::Categorical {
        heads_part(graph, component, weights)?
    } else {
        if brier {
            only_hierarchy(graph, component)?;
        }
        let family = uniform && !brier;
        let made = wanted.and_then(|_| label_part(component, weights, family, brier, wanted));
        match made.or_else(|| label_part(component, weights, family, brier, None)) {
            Some(made) => made,
            None => {
                let first = graph.name(LabelId(component.labels[0]));
                let reason = format!("no engine can handle the relations of `{first}`");
                return Err(Error::Unreconcilable { reason });
            }
        }
    };
    if let Some(wanted) = wanted.filter(|wanted| *wanted != planned.engine) {
        planned.why += match wanted {
            ReconcileEngine::Pool => "; `pool` is only for forests with nothing but hierarchy",
            ReconcileEngine::Closure => {
                "; `closure` is only for hard hierarchies with exclusions of two labels"
            }
            ReconcileEngine::Family => {
                "; `family` is only for hard forests, the log loss and equal weights"
            }
            ReconcileEngine::Categorical => "; `categorical` is only for the categorical loss",
            ReconcileEngine::Newton => "; `newton` is only for the log loss",
        };
    }
    Ok((part, planned))
}

/// The part with softmax heads.
fn heads_part(
    graph: &RelationGraph,
    component: &Component,
    weights: &[f64],
) -> Result<(Part, PlannedPart), Error> {
    let labels = component.labels.len();
    let name = |label: u32| graph.name(LabelId(label)).to_owned();
    let part = CategoricalPart::of(component, weights, name)?;
    let planned = PlannedPart {
        engine: ReconcileEngine::Categorical,
        parts: 1,
        labels,
        rows: part.rows(),
        why: String::from("softmax heads on the levels of a forest"),
        exact: true,
        hull: true,
        operations: 60.0 * labels as f64,
    };
    Ok((Part::Categorical(part), planned))
}

/// The part for losses that add up over labels, by the cheapest engine that can handle it, or by
/// this one if it can. `family`: whether the loss and the weights are those that `family` knows.
fn label_part(
    component: &Component,
    weights: &[f64],
    family: bool,
    brier: bool,
    wanted: Option<ReconcileEngine>,
) -> Option<(Part, PlannedPart)> {
    let takes = |engine| wanted.is_none_or(|wanted| wanted == engine);
    let labels = component.labels.len();
    if let Some(forest) = Families::of(component, weights) {
        let rows = (0..forest.groups()).filter(|&g| !forest.is_free(g)).count();
        let plan = |engine, why: &str, exact, operations| PlannedPart {
            engine,
            parts: 1,
            labels,
            rows,
            why: String::from(why),
            exact,
            hull: true,
            operations,
        };
        if forest.plain && takes(ReconcileEngine::Pool) {
            let why = "a forest with nothing but hierarchy";
            let planned = plan(ReconcileEngine::Pool, why, true, 20.0 * labels as f64);
            return Some((Part::Forest(ForestPart::new(forest, ReconcileEngine::Pool)), planned));
        }
        if family && takes(ReconcileEngine::Family) {
            let why = "a forest whose siblings exclude each other";
            let planned = plan(ReconcileEngine::Family, why, false, 600.0 * labels as f64);
            return Some((Part::Forest(ForestPart::new(forest, ReconcileEngine::Family)), planned));
        }
    }
    if takes(ReconcileEngine::Closure) {
        let part = ClosurePart::of(component, weights);
        if let Some(part) = part.filter(|part| part.is_hull() || wanted.is_some()) {
            let planned = PlannedPart {
                engine: ReconcileEngine::Closure,
                parts: 1,
                labels,
                rows: part.rows(),
                why: String::from(if component.has_exclusions() {
                    "hierarchy, and exclusions between two labels"
                } else {
                    "a hierarchy in which labels have several parents"
                }),
                exact: true,
                hull: part.is_hull(),
                operations: 300.0 * labels as f64,
            };
            return Some((Part::Closure(part), planned));
        }
    }
    (!brier && takes(ReconcileEngine::Newton)).then(|| newton_part(component, weights))
}

/// Checks that a part can have the Brier score: it has hard hierarchy and nothing else.
fn only_hierarchy(graph: &RelationGraph, component: &Component) -> Result<(), Error> {
    let name = |at: u32| graph.name(LabelId(component.labels[at as usize]));
    let pair = |labels: &[u32]| (name(labels[0]), name(labels[1]));
    let edge = component.edges.iter().find(|edge| edge.cap < f64::INFINITY);
    let set = component.sets.iter().find(|set| set.cap < f64::INFINITY);
    let soft = edge.map(|edge| (name(edge.parent), name(edge.child)));
    if let Some((a, b)) = soft.or_else(|| set.map(|set| pair(&set.labels))) {
        let reason = format!(
            "the Brier score needs hard relations, and that of `{a}` and `{b}` is soft; use the log loss"
        );
        return Err(Error::Unreconcilable { reason });
    }
    let sets = component.sets.iter().map(|set| &set.labels).chain(&component.one_of);
    if let Some((a, b)) = sets.into_iter().find(|set| set.len() > 1).map(|set| pair(set)) {
        let reason = format!(
            "the Brier score is only for hierarchies, and `{a}` and `{b}` exclude each other; use the log loss"
        );
        return Err(Error::Unreconcilable { reason });
    }
    Ok(())
}

fn newton_part(component: &Component, weights: &[f64]) -> (Part, PlannedPart) {
    let part = NewtonPart::new(RowSystem::of_component(component, weights));
    let (labels, rows) = (component.labels.len(), part.system.len());
    let hierarchy = component.is_hard() && component.sets.is_empty();
    let why = match (component.is_hard(), part.updates()) {
        (_, None) => "too many relations to factor, so ascent does all the work",
        (true, _) => "relations of any shape",
        (false, _) => "soft relations",
    };
    let planned = PlannedPart {
        engine: ReconcileEngine::Newton,
        parts: 1,
        labels,
        rows,
        why: String::from(why),
        exact: false,
        hull: hierarchy || Families::of(component, weights).is_some(),
        operations: 40.0 * part.updates().unwrap_or(100 * labels) as f64 + 2000.0 * labels as f64,
    };
    (Part::Newton(part), planned)
}

/// Checks that each label belongs to a softmax head.
fn only_heads(
    graph: &RelationGraph,
    constant: &[Option<bool>],
    components: &[Component],
) -> Result<(), Error> {
    let mut has_head = vec![false; graph.len()];
    let labels = components.iter().flat_map(|component| &component.labels);
    labels.for_each(|&label| has_head[label as usize] = true);
    for label in graph.ids() {
        let reason = match constant[label.index()] {
            None if !has_head[label.index()] => "has no relations, so it is in no softmax head",
            Some(false) => "can never be on, so no softmax head has it",
            _ => continue,
        };
        let reason = format!("`{}` {reason}; take it out, or use the log loss", graph.name(label));
        return Err(Error::Unreconcilable { reason });
    }
    Ok(())
}

/// The first part of a graph, for tests.
#[cfg(test)]
pub(super) fn component_of(graph: &RelationGraph) -> Option<Component> {
    LiveRelations::of(graph).ok()?.components.into_iter().next()
}

/// The forest of a graph that has one part, for tests.
#[cfg(test)]
pub(super) fn forest_of(graph: &RelationGraph) -> Option<Families> {
    let relations = LiveRelations::of(graph).ok()?;
    Families::of(relations.components.first()?, &vec![1.0; graph.len()])
}
