//! From learned strengths to a repaired taxonomy: relations that hold become hard, and labels under a wrong
//! parent move to the right one.
//!
//! Where each row is one leaf of a forest, a label whose relation was dropped is an orphan: its rows have to
//! find a parent on their own, and the other classes pay for the answers that this opens. But the heads that
//! were trained apart know the parent. An orphan `c` moves to the parent `P` that explains best the rows
//! listed as `c`, by heads that have not seen them:
//!
//! `argmax_P Σᵢ log softmax(z₋ᵢ(xᵢ))_P`, over the labels with children at the depth of the old parent that
//! rows list.
//!
//! A parent that explains these rows best keeps its child. Then all of the hierarchy is
//! hard, and the head is trained as under any hard taxonomy: from zero, with a warm-up and scaled inner
//! scores. If no relation was dropped this is plain training under hard relations. The learned costs are in
//! the last record of the history.
//!
//! Nothing is repaired where labels may have several parents, exclusions are soft, no row lists an orphan,
//! a parent would lose its last child, or rows contradict the hard taxonomy. Then the strengths are used as
//! they are learned. Cost: one training. It keeps no checkpoint of its own.

use std::sync::Arc;

use phex::graph::document::{Document, HierarchyItem};
use phex::graph::{LabelId, RelationGraph, Strength};
use phex::learn::{Strengths, Tie};
use phex::numeric::log_sum_exp;

use super::measure::Stoppable;
use super::{BestWeights, Observer, Trainer};
use crate::config::{StrengthConfig, StrengthSetting};
use crate::head::Head;
use crate::recipe::Recipe;
use crate::{Error, TrainedModel};

/// The name in progress reports.
const REPAIRED: &str = "repaired";

/// A hard taxonomy, and what training under it gave.
#[derive(Debug)]
pub(super) struct RepairedRun {
    pub(super) graph: RelationGraph,
    /// What was moved, in sentences.
    pub(super) moves: Vec<String>,
    /// The model of all rows, if the rows that were held out are trained on as well.
    pub(super) again: Option<TrainedModel>,
}

impl Trainer<'_> {
    /// Repairs the taxonomy and trains under it. Returns whether it did: then the run is finished.
    pub(super) fn train_repaired(
        &mut self,
        parts: &[(Head, Vec<u32>)],
        strengths: &Strengths,
        observer: &mut dyn Observer,
    ) -> Result<bool, Error> {
        let Some((graph, moves)) = self.repair(parts, strengths)? else { return Ok(false) };
        let mut config = self.config.clone();
        config.strengths = StrengthConfig::Fixed;
        // Of the recipe, in addition to a scale that was chosen.
        config.head.inner_scale *= Recipe::STANDARD.inner_scale_of(&graph);
        let is_linear = config.head.hidden.is_empty();
        config.validation.all_rows &= is_linear && !self.held_out.is_empty();
        let stage = &mut config.stages[0];
        stage.strength = StrengthSetting::Given;
        if let Some(epochs) = Recipe::STANDARD.warm_up_epochs(&self.training.counts(&graph)) {
            match is_linear {
                true => {
                    let first = stage.warm_up(epochs);
                    config.stages.insert(0, first);
                }
                false => stage.leaf_share = Recipe::STANDARD.leaf_share,
            }
        }
        let (training, validation) = (self.training, self.validation);
        let mut trainer = Trainer::new(config, &graph, &self.options, training, validation)?;
        if let Some(accelerator) = &self.accelerator {
            trainer = trainer.on(Arc::clone(accelerator))?;
        }
        trainer.weights.clone_from(&self.weights);
        match trainer.run_stages(&mut Stoppable { observer, stage: REPAIRED }) {
            Err(Error::Core(phex::Error::Contradiction { .. })) => return Ok(false),
            done => done?,
        }
        // The rows that were held out may contradict the relations as well.
        let again = match trainer.train_on_all_rows(observer) {
            Err(Error::Core(phex::Error::Contradiction { .. })) => return Ok(false),
            again => again?,
        };
        // The head of this run has no scale of inner scores; rows keep their scores.
        let own = |weights: &Head| {
            let mut head = self.state.head.clone();
            head.copy_weights(weights);
            head
        };
        let again = again.map(|model| TrainedModel { head: own(&model.head), ..model });
        let head = own(&trainer.state.head);
        let mut state = trainer.state;
        if let Some(record) = state.history.last_mut() {
            record.strengths = strengths.values().to_vec();
        }
        self.state.best = state.best.map(|best| BestWeights {
            weights: head.weights.clone(),
            averages: head.averages.clone(),
            strengths: Vec::new(),
            ..best
        });
        self.state.history = state.history;
        self.state.head = head;
        self.objective = self.compile(&graph)?;
        self.repaired = Some(RepairedRun { graph, moves, again });
        Ok(true)
    }

    /// The hard taxonomy in which orphans have the parent that explains their rows best, and what moved.
    fn repair(
        &self,
        parts: &[(Head, Vec<u32>)],
        strengths: &Strengths,
    ) -> Result<Option<(RelationGraph, Vec<String>)>, Error> {
        let graph = self.config.stages[0].strength.apply(&self.graph)?;
        let untied =
            matches!(self.config.strengths, StrengthConfig::CrossFitted { tie: Tie::Relation, .. });
        let learned = strengths.graph()?;
        let open = graph.exclusions().iter().any(|exclusion| !exclusion.strength.is_hard())
            || graph.rule().is_some_and(|declared| !declared.strength.is_hard());
        let topology = graph.topology();
        let single = self.config.stages.len() == 1 && graph.is_single_label();
        if !untied || open || !single || !topology.is_forest() {
            return Ok(None);
        }
        let mut parents: Vec<LabelId> = graph.hierarchy().iter().map(|edge| edge.parent).collect();
        let mut moves = Vec::new();
        for (at, edge) in learned.hierarchy().iter().enumerate() {
            if edge.strength.cost() > 0.0 {
                continue;
            }
            let is_other = |id: &LabelId| {
                !graph.is_leaf(*id) && topology.depth(*id) == topology.depth(edge.parent)
            };
            let others: Vec<LabelId> = graph.ids().filter(is_other).collect();
            let Some(parent) = self.explaining(parts, edge.child, &others) else { return Ok(None) };
            if parent != edge.parent {
                let [child, from, to] = [edge.child, edge.parent, parent].map(|id| graph.name(id));
                moves.push(format!(
                    "the rows of `{child}` contradict its parent: it moved from `{from}` to `{to}`"
                ));
                parents[at] = parent;
            }
        }
        let childless = |label: &LabelId| !parents.contains(label);
        if graph.hierarchy().iter().any(|edge| childless(&edge.parent)) {
            return Ok(None);
        }
        let mut document = Document::from(&graph);
        let name = |id: LabelId| graph.name(id).to_owned();
        let items = graph.hierarchy().iter().zip(&parents).map(|(edge, &parent)| HierarchyItem {
            parent: name(parent),
            children: vec![name(edge.child)],
            strength: Some(Strength::Hard),
        });
        document.hierarchy = items.collect();
        Ok(Some((document.builder().build()?, moves)))
    }

    /// The label that explains best the rows that list `child`, by the heads that have not seen them; `None`
    /// if no row lists it or no other label occurs.
    fn explaining(
        &self,
        parts: &[(Head, Vec<u32>)],
        child: LabelId,
        others: &[LabelId],
    ) -> Option<LabelId> {
        let lists = |row: u32, label: LabelId| {
            let listed = self.training.targets.row(row as usize).listed;
            listed.iter().any(|entry| entry.on && entry.label == label.0)
        };
        let occurs = |id: &LabelId| self.rows.iter().any(|&row| lists(row, *id));
        let others: Vec<LabelId> = others.iter().copied().filter(occurs).collect();
        let mut scores = vec![0.0; others.len()];
        let mut found = false;
        for (head, rows) in parts {
            let own: Vec<u32> = rows.iter().copied().filter(|&row| lists(row, child)).collect();
            if own.is_empty() {
                continue;
            }
            found = true;
            let (features, _) = self.training.gather(&self.standardiser, &own);
            for row in head.logits(&features).chunks_exact(self.graph.len()) {
                let z: Vec<f64> = others.iter().map(|id| f64::from(row[id.index()])).collect();
                let log_sum = log_sum_exp(z.iter().copied());
                scores.iter_mut().zip(&z).for_each(|(sum, z)| *sum += z - log_sum);
            }
        }
        let best = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        best.filter(|_| found).map(|(at, _)| others[at])
    }
}
