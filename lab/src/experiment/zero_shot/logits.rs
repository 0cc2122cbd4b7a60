//! Trained scores of attributes, to compare kinds of inference on.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use ndarray::Array2;
use phex::graph::RelationGraph;
use serde::{Deserialize, Serialize};

use super::data::ZeroShotData;
use super::folds::Fold;
use super::job::{SplitRows, ZeroShotJob, ZeroShotMethod};
use super::linear::StepSettings;
use super::relations::PredicateStrengths;
use super::settings::{AttributeData, Scaling, StepRule};
use super::through::RelationTraining;
use super::{noise, read};
use crate::Error;

/// How a head is trained through constant strengths on the seen classes of the first fold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct LogitSettings {
    pub(crate) data: AttributeData,
    /// As in the zero-shot experiments.
    folds: usize,
    seed: u64,
    scaling: Scaling,
    detector_area: Option<f64>,
    learning_rate: f64,
    epochs: usize,
    batch: usize,
}

/// Scores of the rows of unseen classes, and the relations of these classes.
#[derive(Debug)]
pub(crate) struct UnseenLogits {
    pub(crate) graph: RelationGraph,
    /// Rows × labels: classes, whose scores are zero, then attributes.
    pub(crate) scores: Vec<f64>,
    rows: SplitRows,
}

/// A data set with attributes, and its test fold.
#[derive(Debug)]
pub(crate) struct AttributeFold {
    data: ZeroShotData,
    fold: Fold,
}

impl AttributeFold {
    pub(crate) fn load(settings: &LogitSettings, folder: &Path) -> Result<AttributeFold, Error> {
        let mut data = read::read(settings.data, folder, settings.seed)?;
        data.noise = settings.detector_area.map(noise::separation);
        let nothing = || Error::Broken { message: String::from("there is no fold") };
        let folds = Fold::all(&data, settings.folds, settings.seed);
        let fold = folds.into_iter().next().ok_or_else(nothing)?;
        Ok(AttributeFold { data, fold })
    }

    /// Trains by exact inference, and scores the rows of the unseen classes.
    pub(crate) fn train(
        &self,
        settings: &LogitSettings,
        u: f64,
        stop: &AtomicBool,
    ) -> Result<UnseenLogits, Error> {
        let split = self.fold.test();
        let strengths = PredicateStrengths::Constant { u };
        let lengths = vec![settings.epochs];
        let learning_rate = settings.learning_rate;
        let job = ZeroShotJob {
            data: settings.data,
            seed: settings.seed,
            folds: settings.folds,
            fold: self.fold.index,
            validation: None,
            method: ZeroShotMethod::Relations {
                strengths,
                class_logits: false,
                learned: false,
                learning_rate,
                lengths: lengths.clone(),
            },
            batch: settings.batch,
            rule: StepRule::Adam,
            scaling: settings.scaling,
            rows_a_class: 0,
            detector_area: settings.detector_area,
        };
        let rows = SplitRows::new(&self.data, &split, &job)?;
        let mut through =
            RelationTraining::new(&self.data.predicates, &split, strengths, false, false)?;
        let schedule = StepSettings {
            learning_rate,
            lengths: &lengths,
            batch: job.batch,
            rule: job.rule,
            seed: job.seed,
        };
        let mut scores = Vec::new();
        rows.train(&mut through, &schedule, stop, |through, head| {
            let found = through.scores(head.logits(rows.asked.view()).view());
            scores = found.into_iter().map(f64::from).collect();
            Ok(())
        })?;
        Ok(UnseenLogits { graph: through.unseen().clone(), scores, rows })
    }
}

impl UnseenLogits {
    /// The mean accuracy per class if the class with the largest marginal is chosen. Marginals are rows × labels.
    pub(crate) fn accuracy(&self, marginals: &[f64]) -> Result<f64, Error> {
        let classes = self.rows.unseen();
        let labels = self.graph.len();
        let of_classes = marginals.chunks_exact(labels).flat_map(|row| row[..classes].to_vec());
        let shape = (marginals.len() / labels.max(1), classes);
        let broken = |error: ndarray::ShapeError| Error::Broken { message: error.to_string() };
        let scores = Array2::from_shape_vec(shape, of_classes.collect()).map_err(broken)?;
        Ok(self.rows.accuracy(scores.view()))
    }
}
