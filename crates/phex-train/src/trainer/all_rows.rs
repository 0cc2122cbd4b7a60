//! Training once more on all rows, after validation has chosen the epochs.
//!
//! Rows that are held out choose when to stop, and then have nothing more to do. The head is trained from
//! its start again, with the same settings, on the held-out rows as well, for as many epochs of each stage as
//! validation kept. Cost: that of training up to these epochs. It keeps no checkpoint of its own: a run that
//! is interrupted here resumes from its last epoch and begins this again, with the same bits.

use std::sync::Arc;

use super::measure::Stoppable;
use super::{Observer, Trainer};
use crate::Error;
use crate::config::StrengthConfig;
use crate::model::TrainedModel;

/// The name in progress reports.
const ALL_ROWS: &str = "all rows";

impl Trainer<'_> {
    /// Whether a finished run trains once more on all rows.
    pub(super) fn uses_all_rows(&self) -> bool {
        match &self.repaired {
            Some(repaired) => repaired.again.is_some(),
            None => {
                self.config.validation.all_rows
                    && !self.held_out.is_empty()
                    && self.config.strengths == StrengthConfig::Fixed
            }
        }
    }

    /// The model of all rows, if the settings ask for it. The stages of this run are finished.
    pub(super) fn train_on_all_rows(
        &self,
        observer: &mut dyn Observer,
    ) -> Result<Option<TrainedModel>, Error> {
        if let Some(repaired) = &self.repaired {
            return Ok(repaired.again.clone());
        }
        if !self.uses_all_rows() {
            return Ok(None);
        }
        let mut config = self.config.clone();
        let kept = self.kept_epochs();
        config.stages.iter_mut().zip(kept).for_each(|(stage, epochs)| stage.epochs = epochs);
        (config.validation.fraction, config.validation.all_rows) = (0.0, false);
        let mut trainer = Trainer::new(config, &self.graph, &self.options, self.training, None)?;
        if let Some(accelerator) = &self.accelerator {
            trainer = trainer.on(Arc::clone(accelerator))?;
        }
        trainer.weights.clone_from(&self.weights);
        if let Some(head) = &self.given_head {
            trainer.start_from(head)?;
        }
        Ok(Some(trainer.run(&mut Stoppable { observer, stage: ALL_ROWS })?))
    }

    /// The epochs after which each stage had its best validation; all of a stage without one.
    fn kept_epochs(&self) -> Vec<usize> {
        let mut history = self.state.history.as_slice();
        let metric = self.config.validation.metric;
        let kept = |stage: &crate::config::Stage| {
            let own = history.iter().take_while(|record| record.stage == stage.name).count();
            let (records, rest) = history.split_at(own);
            history = rest;
            let mut best: Option<(f64, usize)> = None;
            for (at, record) in records.iter().enumerate() {
                if let Some(value) = record.validation_metric
                    && best.is_none_or(|(best, _)| metric.improves(value, best))
                {
                    best = Some((value, at + 1));
                }
            }
            best.map_or(own, |(_, epochs)| epochs)
        };
        self.config.stages.iter().map(kept).collect()
    }
}
