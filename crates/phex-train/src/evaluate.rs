//! Predictions of a trained model for a whole table, and how good they are where the table has targets.
//!
//! Cost: that of prediction, some rows at a time, and of [`phex::metrics`].

use phex::decide::{Decision, Decisions, decide, decide_scores};
use phex::graph::RelationGraph;
use phex::infer::{Block, Engine, Evidence, Options};
use phex::metrics::{Evaluation, EvaluationOptions, TruthClosure, evaluate_sets};
use phex::model::Model;
use phex_io::{Features, Targets};

use crate::model::{Predictor, TrainedModel};
use crate::{Comparison, Error, Examples};

/// Rows predicted at a time.
const PIECE: usize = 512;

/// Rows with what a model says about them and what is known.
pub(crate) struct JudgedRows {
    pub(crate) evaluation: Evaluation,
    pub(crate) probabilities: Vec<f32>,
    /// Closed by the relations.
    pub(crate) truths: Vec<Evidence>,
}

impl Predictor<'_> {
    /// The probability of each label in every row.
    ///
    /// # Errors
    /// [`Error::Examples`] when the table has another number of features.
    pub fn predict(&self, features: &Features) -> Result<Vec<f32>, Error> {
        let mut all = Vec::with_capacity(features.rows * self.model.graph.len());
        for start in (0..features.rows).step_by(PIECE) {
            let rows = start..(start + PIECE).min(features.rows);
            all.extend(self.probabilities(features, rows)?);
        }
        Ok(all)
    }

    /// Label sets of some rows with these probabilities. `best` finds the most probable legal sets
    /// for [`Decision::Consistent`], which needs scores; the others need probabilities alone.
    ///
    /// # Errors
    /// As [`decide`]; [`phex::Error::NeedsEngine`] without an engine where one is needed.
    pub fn decide(
        &self,
        decision: &Decision,
        best: Option<&Engine>,
        features: &Features,
        rows: std::ops::Range<usize>,
        probabilities: &[f32],
    ) -> Result<Decisions, Error> {
        let graph = &self.model.graph;
        if *decision != Decision::Consistent {
            return Ok(decide(decision, graph, probabilities)?);
        }
        let engine = best.or_else(|| self.engine()).ok_or(phex::Error::NeedsEngine)?;
        let scores: Vec<f64> =
            self.model.logits(features, rows)?.into_iter().map(f64::from).collect();
        Ok(decide_scores(decision, graph, engine, &Block::new(graph.len(), &scores))?)
    }

    /// How good the predictions are for examples. `best` as for [`Predictor::decide`].
    ///
    /// # Errors
    /// As [`Predictor::predict`], [`Predictor::decide`] and [`phex::metrics::evaluate`].
    pub fn evaluate(
        &self,
        examples: &Examples<'_>,
        options: &EvaluationOptions,
        best: Option<&Engine>,
    ) -> Result<Evaluation, Error> {
        Ok(self.evaluate_by(&self.model.graph, examples, options, best)?.evaluation)
    }

    /// The model beside what it has to beat: the baselines that are kept with it, or otherwise the label
    /// frequencies of the same examples.
    ///
    /// # Errors
    /// As [`Predictor::evaluate`].
    pub fn evaluate_beside_baselines(
        &self,
        examples: &Examples<'_>,
        options: &EvaluationOptions,
        best: Option<&Engine>,
    ) -> Result<(Evaluation, Comparison), Error> {
        let graph = &self.model.graph;
        let judged = self.evaluate_by(graph, examples, options, best)?;
        let comparison = match &self.model.baselines {
            None => Comparison::with_own_frequencies(graph, &judged.probabilities, &judged.truths),
            Some(kept) => self.model.compare(graph, examples.features, &judged, &kept.frequencies),
        }?;
        Ok((judged.evaluation, comparison))
    }

    /// The same with truths that are closed by the relations of another graph as well, such as the
    /// given one, whose strengths the model may have softened.
    pub(crate) fn evaluate_by(
        &self,
        given: &RelationGraph,
        examples: &Examples<'_>,
        options: &EvaluationOptions,
        best: Option<&Engine>,
    ) -> Result<JudgedRows, Error> {
        let graph = &self.model.graph;
        let probabilities = self.predict(examples.features)?;
        let rows = 0..examples.rows();
        let sets = self.decide(&options.decision, best, examples.features, rows, &probabilities)?;
        let mut truths: Vec<Evidence> = Vec::with_capacity(probabilities.len());
        (0..examples.rows()).for_each(|row| examples.push_evidence(row, &mut truths));
        TruthClosure::new(given).close(&mut truths);
        let model = Model::new(graph)?;
        let evaluation = evaluate_sets(options, graph, &model, &probabilities, &truths, &sets)?;
        Ok(JudgedRows { evaluation, probabilities, truths })
    }
}

impl TrainedModel {
    /// The model beside the sums of leaves that are kept with it, if any, and beside frequencies of labels.
    pub(crate) fn compare(
        &self,
        graph: &RelationGraph,
        features: &Features,
        judged: &JudgedRows,
        frequencies: &[f32],
    ) -> Result<Comparison, Error> {
        let sums = self.leaf_sums();
        let sums = sums.map(|sums| sums.predictor(&Options::default())?.predict(features));
        let sums = sums.transpose()?;
        let JudgedRows { probabilities, truths, .. } = judged;
        Comparison::new(graph, probabilities, truths, sums.as_deref(), frequencies)
    }
}

impl Examples<'_> {
    /// A copy of some rows, such as the rows a trainer held out.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn copy_rows(&self, rows: &[u32]) -> (Features, Targets) {
        let mut features = Features {
            names: self.features.names.clone(),
            rows: rows.len(),
            columns: self.features.columns,
            values: Vec::with_capacity(rows.len() * self.features.columns),
        };
        let mut targets = Targets::new(self.targets.labels());
        for &row in rows {
            features.values.extend_from_slice(self.features.row(row as usize));
            let target = self.targets.row(row as usize);
            targets.push(target.listed, target.others_off);
        }
        (features, targets)
    }
}
