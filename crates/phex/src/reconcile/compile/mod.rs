//! From a graph to parts that engines can handle.
//!
//! Labels that never change are taken out, the rest falls into components ([`relations`]), and each
//! component gets the cheapest engine that can handle it.

mod families;
mod relations;

pub(super) use self::families::{Families, NONE};
pub(super) use self::relations::Component;
use self::relations::LiveRelations;
use super::categorical::CategoricalPart;
use super::closure::ClosurePart;
use super::forest::ForestPart;
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

fn choose(
    graph: &RelationGraph,
    component: &Component,
    weights: &[f64],
    uniform: bool,
    options: &ReconcileOptions,
) -> Result<(Part, PlannedPart), Error> {
    let brier = options.loss == ReconcileLoss::Brier;
    let takes = |engine| options.engine.is_none_or(|wanted| wanted == engine);
    let labels = component.labels.len();
    if options.loss == ReconcileLoss::Categorical {
        if !takes(ReconcileEngine::Categorical) {
            let reason = String::from("only the engine `categorical` knows the categorical loss");
            return Err(Error::Unreconcilable { reason });
        }
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
        return Ok((Part::Categorical(part), planned));
    }
    if let Some(forest) = Families::of(component, weights) {
        let rows = (0..forest.groups()).filter(|&g| !forest.is_free(g)).count();
        if forest.plain && takes(ReconcileEngine::Pool) {
            let part = ForestPart::new(forest, ReconcileEngine::Pool);
            let planned = PlannedPart {
                engine: ReconcileEngine::Pool,
                parts: 1,
                labels,
                rows,
                why: String::from("a forest with nothing but hierarchy"),
                exact: true,
                hull: true,
                operations: 20.0 * labels as f64,
            };
            return Ok((Part::Forest(part), planned));
        }
        if !brier && uniform && takes(ReconcileEngine::Family) {
            let part = ForestPart::new(forest, ReconcileEngine::Family);
            let planned = PlannedPart {
                engine: ReconcileEngine::Family,
                parts: 1,
                labels,
                rows,
                why: String::from("a forest whose siblings exclude each other"),
                exact: false,
                hull: true,
                operations: 600.0 * labels as f64,
            };
            return Ok((Part::Forest(part), planned));
        }
    }
    if takes(ReconcileEngine::Closure) && !(brier && component.has_exclusions()) {
        let wanted = options.engine.is_some();
        let part = ClosurePart::of(component, weights).filter(|part| part.is_hull() || wanted);
        if let Some(part) = part {
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
            return Ok((Part::Closure(part), planned));
        }
    }
    if brier && component.has_exclusions() {
        let reason = String::from(
            "the Brier score is only for hierarchies, and this graph has exclusions; use the log loss",
        );
        return Err(Error::Unreconcilable { reason });
    }
    Err(Error::Unreconcilable { reason: String::from("no engine can handle these relations") })
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
