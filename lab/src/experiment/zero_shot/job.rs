//! Runs: each is described by everything that decides its accuracies.

use std::sync::atomic::AtomicBool;

use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use super::bilinear::{self, Bilinear};
use super::data::{Scaler, ZeroShotData};
use super::folds::{Fold, Split};
use super::linear::{LinearHead, StepSettings};
use super::relations::PredicateStrengths;
use super::settings::{AttributeData, Scaling, StepRule, ZeroShotSettings};
use super::through::RelationTraining;
use super::{attributes, noise};
use crate::Error;

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ZeroShotJob {
    pub(super) data: AttributeData,
    pub(super) seed: u64,
    pub(super) folds: usize,
    pub(super) fold: usize,
    /// The number of the validation; `None` for the test.
    pub(super) validation: Option<usize>,
    pub(super) method: ZeroShotMethod,
    pub(super) batch: usize,
    pub(super) rule: StepRule,
    pub(super) scaling: Scaling,
    pub(super) rows_a_class: usize,
    pub(super) detector_area: Option<f64>,
}

/// A method, with the settings that one run tries.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "method")]
pub(super) enum ZeroShotMethod {
    /// RelationTraining relations.
    Relations {
        strengths: PredicateStrengths,
        class_logits: bool,
        learned: bool,
        learning_rate: f64,
        lengths: Vec<usize>,
    },
    /// Direct attribute prediction.
    Attributes { learning_rate: f64, lengths: Vec<usize> },
    /// The bilinear map: all ridges of attributes for the first ridge of features, and so on.
    Bilinear { feature_ridges: Vec<f64>, attribute_ridges: Vec<f64> },
}

impl ZeroShotMethod {
    /// The same method with one of its settings.
    pub(super) fn only(&self, setting: usize) -> ZeroShotMethod {
        let mut only = self.clone();
        match &mut only {
            ZeroShotMethod::Relations { lengths, .. }
            | ZeroShotMethod::Attributes { lengths, .. } => {
                *lengths = vec![lengths[setting]];
            }
            ZeroShotMethod::Bilinear { feature_ridges, attribute_ridges } => {
                let width = attribute_ridges.len();
                *feature_ridges = vec![feature_ridges[setting / width]];
                *attribute_ridges = vec![attribute_ridges[setting % width]];
            }
        }
        only
    }

    /// Its setting in words, if it has only one.
    pub(super) fn describe(&self) -> String {
        match self {
            ZeroShotMethod::Relations { learning_rate, lengths, .. }
            | ZeroShotMethod::Attributes { learning_rate, lengths } => {
                format!("rate {learning_rate}, {} epochs", lengths[0])
            }
            ZeroShotMethod::Bilinear { feature_ridges, attribute_ridges } => {
                format!("ridges {} and {}", feature_ridges[0], attribute_ridges[0])
            }
        }
    }
}

/// The results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ZeroShotAnswer {
    /// The mean accuracy per unseen class, of each setting.
    pub(super) accuracies: Vec<f64>,
    /// Learned factors on the costs of hierarchy and exclusion, after the last epoch.
    pub(super) factors: Vec<f64>,
}

impl ZeroShotJob {
    pub(super) fn new(
        settings: &ZeroShotSettings,
        fold: &Fold,
        validation: Option<usize>,
        method: ZeroShotMethod,
    ) -> ZeroShotJob {
        ZeroShotJob {
            data: settings.data,
            seed: settings.seed,
            folds: settings.folds,
            fold: fold.index,
            validation,
            method,
            batch: settings.batch,
            rule: settings.rule,
            scaling: settings.scaling,
            rows_a_class: settings.rows_a_class,
            detector_area: settings.detector_area,
        }
    }

    /// Trains on the rows of the seen classes and recognises the unseen ones.
    pub(super) fn run(
        &self,
        data: &ZeroShotData,
        fold: &Fold,
        stop: &AtomicBool,
    ) -> Result<ZeroShotAnswer, Error> {
        let split = match self.validation {
            Some(number) => fold.validation(number),
            None => fold.test(),
        };
        let rows = SplitRows::new(data, &split, self)?;
        let schedule = |learning_rate: f64| StepSettings {
            learning_rate,
            lengths: &[],
            batch: self.batch,
            rule: self.rule,
            seed: self.seed,
        };
        let predicates = &data.predicates;
        match &self.method {
            ZeroShotMethod::Relations {
                strengths,
                class_logits,
                learned,
                learning_rate,
                lengths,
            } => {
                let mut through =
                    RelationTraining::new(predicates, &split, *strengths, *class_logits, *learned)?;
                let schedule = StepSettings { lengths, ..schedule(*learning_rate) };
                let mut accuracies = Vec::new();
                rows.train(&mut through, &schedule, stop, |through, head| {
                    let answer = through.answer(head.logits(rows.asked.view()).view())?;
                    accuracies.push(rows.accuracy(answer.view()));
                    Ok(())
                })?;
                Ok(ZeroShotAnswer { accuracies, factors: through.learned() })
            }
            ZeroShotMethod::Attributes { learning_rate, lengths } => {
                let priors = attributes::priors(predicates, &split.seen);
                let mut head = LinearHead::new(rows.inputs.ncols(), predicates.attributes.len());
                let mut accuracies = Vec::new();
                head.train(
                    &rows.inputs,
                    &StepSettings { lengths, ..schedule(*learning_rate) },
                    stop,
                    |outputs, batch| {
                        let class = |&row: &usize| split.seen[rows.places[row]];
                        let classes: Vec<usize> = batch.iter().map(class).collect();
                        Ok(attributes::slope(predicates, outputs, &classes))
                    },
                    |head| {
                        let logits = head.logits(rows.asked.view());
                        let scores =
                            attributes::scores(predicates, logits.view(), &priors, &split.unseen);
                        accuracies.push(rows.accuracy(scores.view()));
                        Ok(())
                    },
                )?;
                Ok(ZeroShotAnswer { accuracies, factors: Vec::new() })
            }
            ZeroShotMethod::Bilinear { feature_ridges, attribute_ridges } => {
                let signatures = |classes: &[usize]| bilinear::signatures(predicates, classes);
                let bilinear = Bilinear::new(&rows.inputs, &rows.places, signatures(&split.seen));
                let unseen = signatures(&split.unseen);
                let mut accuracies = Vec::new();
                for &ridge in feature_ridges {
                    for map in bilinear.maps(ridge, attribute_ridges)? {
                        let scores = bilinear::scores(rows.asked.view(), &map, &unseen);
                        accuracies.push(rows.accuracy(scores.view()));
                    }
                }
                Ok(ZeroShotAnswer { accuracies, factors: Vec::new() })
            }
        }
    }
}

/// The rows of a split, scaled by those of the seen classes.
#[derive(Debug)]
pub(super) struct SplitRows {
    inputs: Array2<f32>,
    /// The index of each row's class among the seen ones.
    places: Vec<usize>,
    pub(super) asked: Array2<f32>,
    /// The index of each test row's class among the unseen ones.
    truth: Vec<usize>,
    unseen: usize,
}

impl SplitRows {
    pub(super) fn new(
        data: &ZeroShotData,
        split: &Split,
        job: &ZeroShotJob,
    ) -> Result<SplitRows, Error> {
        let (seen, asked) = (data.rows_of(&split.seen), data.rows_of(&split.unseen));
        let noisy;
        let features = match data.noise {
            None => &data.features,
            Some(separation) => {
                let seed = job.seed.wrapping_mul(1000).wrapping_add(job.fold as u64);
                noisy = noise::noisy(&data.features, separation, seed);
                &noisy
            }
        };
        let scaler = Scaler::new(features, &seen, job.scaling);
        let broken = |error: ndarray::ShapeError| Error::Broken { message: error.to_string() };
        let matrix = |rows: &[usize]| {
            let shape = (rows.len(), features.columns);
            Array2::from_shape_vec(shape, scaler.apply(features, rows)).map_err(broken)
        };
        let place = |rows: &[usize], classes: &[usize]| -> Vec<usize> {
            let places = |&row: &usize| classes.iter().position(|&c| c == data.classes[row]);
            rows.iter().filter_map(places).collect()
        };
        Ok(SplitRows {
            inputs: matrix(&seen)?,
            places: place(&seen, &split.seen),
            asked: matrix(&asked)?,
            truth: place(&asked, &split.unseen),
            unseen: split.unseen.len(),
        })
    }

    /// How many unseen classes there are.
    pub(super) fn unseen(&self) -> usize {
        self.unseen
    }

    /// Trains a head through relations; `look` sees it after each length.
    pub(super) fn train(
        &self,
        through: &mut RelationTraining,
        schedule: &StepSettings<'_>,
        stop: &AtomicBool,
        mut look: impl FnMut(&RelationTraining, &LinearHead) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut head = LinearHead::new(self.inputs.ncols(), through.outputs());
        let through = std::cell::RefCell::new(through);
        let slope = |outputs: &Array2<f32>, batch: &[usize]| {
            let places: Vec<usize> = batch.iter().map(|&row| self.places[row]).collect();
            through.borrow_mut().slope(outputs, &places)
        };
        head.train(&self.inputs, schedule, stop, slope, |head| look(*through.borrow(), head))
    }

    /// The mean over classes of the share of their rows that are recognised.
    pub(super) fn accuracy(&self, scores: ArrayView2<'_, f64>) -> f64 {
        mean_accuracy(scores, &self.truth, self.unseen)
    }
}

/// The mean, over classes with rows, of the share of their rows whose largest score is their own.
fn mean_accuracy(scores: ArrayView2<'_, f64>, truth: &[usize], classes: usize) -> f64 {
    let (mut right, mut all) = (vec![0.0; classes], vec![0.0; classes]);
    for (row, &class) in scores.outer_iter().zip(truth) {
        let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
        all[class] += 1.0;
        right[class] += f64::from(u8::from(best.is_some_and(|(at, _)| at == class)));
    }
    let parts = right.iter().zip(&all).filter(|(_, all)| **all > 0.0);
    let (sum, count) = parts.fold((0.0, 0.0), |(s, n), (right, all)| (s + right / all, n + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_is_a_mean_over_classes() {
        let scores = vec![0.9, 0.1, 0.8, 0.2, 0.3, 0.7, 0.6, 0.4];
        let scores = Array2::from_shape_vec((4, 2), scores).unwrap();
        // Class 0: two of three; class 1: none of one.
        let found = mean_accuracy(scores.view(), &[0, 0, 0, 1], 3);
        assert!((found - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn one_setting_is_taken_from_many() {
        let all = ZeroShotMethod::Bilinear {
            feature_ridges: vec![1.0, 2.0],
            attribute_ridges: vec![3.0, 4.0, 5.0],
        };
        let one =
            ZeroShotMethod::Bilinear { feature_ridges: vec![2.0], attribute_ridges: vec![4.0] };
        assert_eq!(all.only(4), one);
    }
}
