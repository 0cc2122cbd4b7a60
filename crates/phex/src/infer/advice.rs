//! Finds changes to a graph that would make exact inference possible.

use serde::Serialize;

use super::{Budget, Engine, Method, Options};
use crate::graph::document::{Document, RuleItem};
use crate::graph::{ExclusionRule, RelationGraph, Strength};
use crate::model::Model;

/// A change that makes a graph tractable, with the cost of inference after it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The change, in words.
    pub change: String,
    /// The engine that can handle the changed model.
    pub method: Method,
    /// Its operations per row.
    pub operations: f64,
    /// Its number of states, for engines that enumerate them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<u64>,
}

/// How much of the steps of a search each change may take.
const PART: f64 = 0.1;

/// No changes are tried on graphs with more labels: building each changed graph takes seconds.
const MOST_LABELS: usize = 30_000;

/// Tries a few changes and returns those after which an exact engine can handle the graph, cheapest
/// first. The search for an engine may take a tenth of the steps that the options allow, so a change
/// that needs more is not found. None is tried on graphs with more than 30,000 labels.
pub fn changes_for_exactness(graph: &RelationGraph, options: &Options) -> Vec<Change> {
    if graph.len() > MOST_LABELS {
        return Vec::new();
    }
    let document = Document::from(graph);
    let budget = Budget { search: PART * options.budget.search, ..options.budget };
    let options = Options { method: Method::Exact, budget, ..options.clone() };
    let mut changes = Vec::new();
    let mut attempt = |change: &str, document: Document| {
        let model = document.builder().build().and_then(|graph| Model::new(&graph));
        let Ok(engine) = model.and_then(|model| Engine::compile(model, &options)) else { return };
        let plan = engine.plan();
        if !plan.exact {
            return;
        }
        changes.push(Change {
            change: change.to_owned(),
            method: plan.method,
            operations: plan.operations,
            states: plan.states,
        });
    };
    if !graph.exclusions().is_empty() || graph.rule().is_some() {
        attempt("make the exclusions hard", hard_exclusions(document.clone()));
    }
    if graph.rule().is_some_and(|declared| declared.rule != ExclusionRule::Siblings) {
        let mut siblings = document.clone();
        siblings.exclude = graph.rule().map(|declared| RuleItem::Strong {
            rule: ExclusionRule::Siblings,
            strength: declared.strength,
        });
        attempt("exclude siblings only (rule `siblings`)", siblings);
    }
    if !graph.topology().is_forest() {
        attempt("keep the first parent of each label only", first_parents(graph, &document));
    }
    if graph.one_of().len() > 1 {
        attempt("remove the one-of groups", Document { one_of: Vec::new(), ..document });
    }
    changes.sort_by(|a, b| a.operations.total_cmp(&b.operations));
    changes
}

fn hard_exclusions(mut document: Document) -> Document {
    document.exclusion.iter_mut().for_each(|item| item.strength = Some(Strength::Hard));
    document.exclude = document.exclude.map(|rule| match rule {
        RuleItem::Rule(rule) | RuleItem::Strong { rule, .. } => {
            RuleItem::Strong { rule, strength: Strength::Hard }
        }
    });
    document
}

fn first_parents(graph: &RelationGraph, document: &Document) -> Document {
    let first = |parent: &str, child: &str| {
        let (parent, child) = (graph.id(parent), graph.id(child));
        child.is_some_and(|child| graph.topology().parents(child).first().copied() == parent)
    };
    let mut document = document.clone();
    for item in &mut document.hierarchy {
        item.children.retain(|child| first(&item.parent, child));
    }
    document.hierarchy.retain(|item| !item.children.is_empty());
    document
}
