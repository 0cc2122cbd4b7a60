//! Metrics compare predicted probabilities and label sets with the truth.
//!
//! A [`LabelTable`] borrows rows × labels of probabilities and truths. [`evaluate`] computes all
//! metrics in one call, and its result prints as a small table. Each metric is also available as a
//! function:
//!
//! | | |
//! |---|---|
//! | [`areas`], [`Ranking`], [`average_precision`] | average precision, AU(PRC), ROC |
//! | [`class_report`], [`top_k_accuracy`], [`mean_accuracy_per_class`] | one true class per row |
//! | [`set_scores`], [`hierarchical_scores`] | label sets, as [`decide`](crate::decide) makes them |
//! | [`set_violations`], [`probability_violations`] | relations that predictions break |
//! | [`losses`], [`reliability`], [`class_reliability`] | log-loss, Brier score, calibration |
//! | [`Spread`], [`mean`] | mean, deviation and standard error over runs |
//!
//! Truths are closed before they are judged: [`TruthClosure`] adds what follows from them by the hard
//! relations. A label that is still off in no row cannot be judged, because a model that always turns
//! it on would be perfect. Only class accuracy and violations consider such labels.
//!
//! What cannot be judged is left out and counted, never guessed: entries of unknown truth, entries
//! without a probability (NaN or infinite, from rows that inference could not answer), and rows
//! without a decision. If nothing is left, the score is `None` (`null` in JSON). Wrong shapes are
//! errors.

mod areas;
mod calibration;
mod evaluation;
mod headline;
mod hierarchical;
mod multiclass;
mod probability;
mod ranking;
mod render;
mod sets;
mod spread;
mod table;
mod truths;
mod violations;

pub use areas::{Areas, Averages, LabelAreas, areas};
pub use calibration::{Bin, Binning, Reliability, class_reliability, reliability};
pub use evaluation::{Evaluation, EvaluationOptions, LabelScores, evaluate, evaluate_sets};
pub use headline::Headline;
pub use hierarchical::{HierarchicalScores, hierarchical_scores};
pub use multiclass::{
    ClassCount, ClassReport, TopAccuracy, class_report, mean_accuracy_per_class, top_k_accuracy,
};
pub use probability::{LOG_LOSS_FLOOR, LabelLoss, Losses, losses};
pub use ranking::{Ranking, average_precision};
pub use sets::{Confusion, SetScores, set_scores};
pub use spread::{Spread, mean};
pub use table::{Counts, LabelTable};
pub use truths::TruthClosure;
pub use violations::{Violations, probability_violations, set_violations};
