//! Validation after an epoch, on rows that are not trained on.

use phex::decide::Classes;
use phex::metrics::{LabelTable, Ranking, TruthClosure, top_k_accuracy};

use super::Trainer;
use crate::Error;
use crate::config::Metric;

/// Rows evaluated at a time.
const PIECE: usize = 512;

impl Trainer<'_> {
    /// The mean loss and the metric of the validation rows, if there are any.
    pub(super) fn validate(&self) -> Result<Option<(f64, f64)>, Error> {
        let all: Vec<u32>;
        let (examples, rows) = match &self.validation {
            Some(examples) => {
                all = (0..examples.rows() as u32).collect();
                (examples, &all)
            }
            None => (&self.training, &self.held_out),
        };
        if rows.is_empty() {
            return Ok(None);
        }
        let mut head = self.state.head.clone();
        head.weights = self.state.optimiser.kept(&self.state.head.weights).to_vec();
        let needs_table = self.config.validation.metric != Metric::Loss;
        let (mut loss, mut probabilities, mut evidence) = (0.0, Vec::new(), Vec::new());
        for rows in rows.chunks(PIECE) {
            let (features, mut targets) = examples.gather(&self.standardiser, rows);
            let logits = head.logits(&features);
            let found = self.objective.loss(&logits, &targets, &vec![1.0; rows.len()], false)?;
            loss += found.total;
            if needs_table {
                probabilities.extend(match found.probabilities {
                    Some(probabilities) => probabilities,
                    None => self.objective.probabilities(&logits)?,
                });
                evidence.append(&mut targets);
            }
        }
        // By the given relations and not those of a stage, so that strengths are compared on the same
        // truths.
        if needs_table {
            TruthClosure::new(&self.graph).close(&mut evidence);
        }
        let loss = loss / rows.len() as f64;
        let metric = match self.config.validation.metric {
            Metric::Loss => Some(loss),
            Metric::AuPrc => {
                let table = LabelTable::new(self.graph.len(), &probabilities, &evidence)?;
                let table = table.leave_out_unjudged();
                Ranking::pooled(&table).average_precision()
            }
            Metric::Accuracy => {
                let table = LabelTable::new(self.graph.len(), &probabilities, &evidence)?;
                top_k_accuracy(&table, &Classes::default().resolve(&self.graph)?, 1)?
            }
        };
        let Some(metric) = metric else {
            let name = self.config.validation.metric.name();
            let message = format!(
                "the metric {name} needs validation rows with a label that is on and one that is off"
            );
            return Err(Error::Examples { message });
        };
        Ok(Some((loss, metric)))
    }
}
