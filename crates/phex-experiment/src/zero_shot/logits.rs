//! Trained scores of attributes, for comparisons of inference.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use ndarray::Array2;
use phex::graph::RelationGraph;
use serde::{Deserialize, Serialize};

use super::data::Data;
use super::folds::Fold;
use super::job::{Job, Method, Rows};
use super::linear::RateSchedule;
use super::relations::Strengths;
use super::settings::{DataName, Scaling, StepRule};
use super::through::Through;
use super::{noise, read};
use crate::Error;

/// How a head is trained through constant strengths on the seen classes of the first fold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct LogitSettings {
    pub(crate) data: DataName,
    /// See the experiments of zero-shot learning.
    folds: usize,
    seed: u64,
    scaling: Scaling,
    detector_area: Option<f64>,
    learning_rate: f64,
    epochs: usize,
    batch: usize,
}

/// Rows of the unseen classes under the relations of these.
#[derive(Debug)]
pub(crate) struct Logits {
    pub(crate) graph: RelationGraph,
    /// Rows × labels: classes, which have no score of their own, then attributes.
    pub(crate) scores: Vec<f64>,
    rows: Rows,
}

/// A data set of attributes with the fold that is tested.
#[derive(Debug)]
pub(crate) struct Attributes {
    data: Data,
    fold: Fold,
}

impl Attributes {
    pub(crate) fn load(settings: &LogitSettings, folder: &Path) -> Result<Attributes, Error> {
        let mut data = read::read(settings.data, folder, settings.seed)?;
        data.noise = settings.detector_area.map(noise::separation);
        let nothing = || Error::Broken { message: String::from("there is no fold") };
        let folds = Fold::all(&data, settings.folds, settings.seed);
        let fold = folds.into_iter().next().ok_or_else(nothing)?;
        Ok(Attributes { data, fold })
    }

    /// Trains by exact inference, and scores the rows of the classes that were not seen.
    pub(crate) fn train(
        &self,
        settings: &LogitSettings,
        u: f64,
        stop: &AtomicBool,
    ) -> Result<Logits, Error> {
        let split = self.fold.test();
        let strengths = Strengths::Constant { u };
        let lengths = vec![settings.epochs];
        let learning_rate = settings.learning_rate;
        let job = Job {
            data: settings.data,
            seed: settings.seed,
            folds: settings.folds,
            fold: self.fold.index,
            validation: None,
            method: Method::Relations {
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
        let rows = Rows::new(&self.data, &split, &job)?;
        let mut through = Through::new(&self.data.predicates, &split, strengths, false, false)?;
        let schedule = RateSchedule {
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
        Ok(Logits { graph: through.unseen().clone(), scores, rows })
    }
}

impl Logits {
    /// The mean accuracy per class of the class that these marginals, rows × labels, like best.
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
