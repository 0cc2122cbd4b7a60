//! Reconciling with a few parameters that are fitted on labelled rows.
//!
//! Reconciling never makes a row worse, but it trusts every label alike, and it believes how certain
//! the classifier says it is. Rows with known labels, on which the classifier was not trained, can
//! say more. [`fit`] divides the logits of each level (labels at the same depth, or a softmax head)
//! by a temperature, adds a bias, and gives the level a weight in the loss, so that a poor head
//! gives way to a good one.
//!
//! The candidates are nested: nothing ⊂ one temperature ⊂ a temperature per level ⊂ temperatures and
//! weights, and so on (see [`FitForm`]). One factor of weights from level to level has as its limits
//! that the most specific labels decide ("coarse := sum of fine", or the maximum of the children) and
//! that the most general ones do (the minimum). The conditional random field of the graph with a
//! temperature is among the candidates too. Each candidate is fitted by the loss of its *reconciled*
//! output, and compared by cross-validation: every row is judged by parameters that were fitted
//! without it. The candidate with the fewest parameters is chosen whose loss is within the noise of
//! the lowest, and never one whose loss is above that of plain reconciling.
//!
//! Parameters lie on a grid, the search is deterministic and bounded, and its cost is some dozens of
//! runs of the reconciler on the labelled rows per candidate.

mod calibration;
mod fitted;
mod levels;
mod options;
mod parameters;
mod report;
mod search;
mod start;
mod trials;
mod truths;

pub use fitted::FittedReconciler;
pub use options::{FitForm, FitOptions};
pub use parameters::{FittedParameters, LevelParameters};
pub use report::{BrokenRelation, FitCandidate, FitReport, IllegalTruths};

use self::calibration::logits_of;
use self::levels::Levels;
use self::search::search;
use self::trials::Trials;
use self::truths::LegalRows;
use super::{FinishedRows, Reconciler, refuse_softmax};
use crate::Error;
use crate::graph::RelationGraph;
use crate::infer::{Evidence, Number};
use crate::metrics;
use crate::numeric::mix;

/// This many rows tell whether all of them are one softmax.
const SEEN: usize = 1000;

/// Fits parameters on rows whose labels are known, in part or in whole.
///
/// The truths are rows of one entry per label. What follows from them by hard relations is added.
/// Rows whose truth breaks hard relations are left out, counted and reported.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex::infer::Evidence::{Off, On};
/// use phex::reconcile::{FinishedRows, FitOptions, fit};
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None);
/// let graph = builder.build()?;
/// // A classifier that is too certain: it says .99 or .01 and is wrong every fourth time.
/// let (mut rows, mut truths) = (Vec::new(), Vec::new());
/// for row in 0..400 {
///     let says = if row % 2 == 0 { 0.99 } else { 0.01 };
///     let on = (row % 2 == 0) != (row % 8 < 2);
///     rows.extend([says, says]);
///     truths.extend(if on { [On, On] } else { [Off, Off] });
/// }
/// let fitted = fit(&graph, FinishedRows::Probabilities(&rows), &truths, &FitOptions::default())?;
/// assert!(fitted.parameters().levels[0].temperature > 2.0);
/// let answer = fitted.run(FinishedRows::Probabilities(&[0.99, 0.99]))?;
/// assert!((answer.row(0)[0] - 0.75_f64).abs() < 0.02);
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] when there is not one truth per value. [`Error::Unfittable`] when too few rows
/// can be used; it names the relations that the others break. [`Error::OneSoftmax`] when the rows look like one softmax over labels of a hierarchy. Those of [`FitOptions::check`], [`Reconciler::compile`] and [`Reconciler::run`].
pub fn fit<T: Number>(
    graph: &RelationGraph,
    rows: FinishedRows<'_, T>,
    truths: &[Evidence],
    options: &FitOptions,
) -> Result<FittedReconciler, Error> {
    options.check(graph.len())?;
    let n = graph.len();
    let plain = Reconciler::compile(graph, &options.reconcile)?;
    let count = plain.check(rows)?;
    if truths.len() != count * n {
        let (expected, found) = (count * n, truths.len());
        return Err(Error::Shape { what: "truths", expected, found });
    }
    let first = rows.first(SEEN * n);
    refuse_softmax(graph, first, &plain.run(first)?)?;
    let legal = LegalRows::of(graph, truths, spread(count, options.rows));
    let folds = options.folds as usize;
    if legal.rows.len() < 2 * folds {
        let mut reason = format!(
            "{} of {count} rows can be used, but {folds} folds need at least {}; give more labelled rows or fewer folds",
            legal.rows.len(),
            2 * folds
        );
        if legal.unknown > 0 {
            reason += &format!("; nothing is known of {} rows", legal.unknown);
        }
        if legal.illegal.rows > 0 {
            reason += &format!("; {}", legal.illegal);
        }
        return Err(Error::Unfittable { reason });
    }
    let levels = Levels::of(graph, options.reconcile.loss);
    let chosen = gather(rows.values(), &legal.rows, n);
    let input = match rows {
        FinishedRows::Probabilities(_) => FinishedRows::Probabilities(&chosen),
        FinishedRows::Logits(_) => FinishedRows::Logits(&chosen),
    };
    let logits = logits_of(input, &levels);
    let mut trials = Trials::new(graph, &options.reconcile, &levels, &logits, &legal.truths);
    let tried = cross_validate(&mut trials, options)?;
    let (candidates, chosen) = choose(&tried, levels.len(), options.noise);
    let all: Vec<usize> = (0..trials.rows()).collect();
    let point = search(chosen, &mut trials, &all)?;
    let parameters = point.parameters(chosen, options.reconcile.loss, &levels).normalised(&levels);
    let report = FitReport {
        rows: count,
        used: trials.rows(),
        unknown: legal.unknown,
        illegal: legal.illegal.clone(),
        folds: options.folds,
        input_loss: mean(&trials.input()),
        candidates,
        chosen,
    };
    FittedReconciler::with_report(graph, parameters, &options.reconcile, Some(report))
}

/// At most `most` of `count` rows, evenly spread.
fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let kept = count.min(most);
    (0..kept).map(move |at| at * count / kept.max(1))
}

fn gather<T: Copy>(values: &[T], rows: &[usize], labels: usize) -> Vec<T> {
    rows.iter().flat_map(|&row| &values[row * labels..(row + 1) * labels]).copied().collect()
}

/// The mean loss of some rows; 0 without rows.
fn mean(losses: &[f64]) -> f64 {
    metrics::mean(losses.iter().copied()).unwrap_or(0.0)
}

/// A form with the loss of each row, judged by parameters fitted without it, or why it has none.
type Tried = (FitForm, Result<Vec<f64>, Error>);

fn cross_validate(trials: &mut Trials<'_>, options: &FitOptions) -> Result<Vec<Tried>, Error> {
    let rows = trials.rows();
    let folds = options.folds as usize;
    // Files are often sorted, so neighbours must not share a fold by their position.
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by_key(|&row| (mix(row as u64 + 1), row));
    let mut fold = vec![0; rows];
    order.iter().enumerate().for_each(|(rank, &row)| fold[row] = rank % folds);
    let mut tried: Vec<Tried> = Vec::new();
    for form in options.forms(trials.levels.len()) {
        if let Err(reason) = trials.prepare(form) {
            tried.push((form, Err(reason)));
            continue;
        }
        let mut losses = vec![0.0; rows];
        for held_out in 0..folds {
            let train: Vec<usize> = (0..rows).filter(|&row| fold[row] != held_out).collect();
            let point = search(form, trials, &train)?;
            let found = trials.losses(form, &point)?;
            for row in (0..rows).filter(|&row| fold[row] == held_out) {
                losses[row] = found[row];
            }
        }
        tried.push((form, Ok(losses)));
    }
    Ok(tried)
}

/// The smallest form within the noise of the best, and not above the identity.
fn choose(tried: &[Tried], levels: usize, noise: f64) -> (Vec<FitCandidate>, FitForm) {
    let losses = |tried: &'_ Tried| tried.1.as_ref().ok().map(|losses| mean(losses));
    let best = tried
        .iter()
        .filter_map(|(form, losses)| losses.as_ref().ok().map(|losses| (*form, losses)))
        .min_by(|a, b| mean(a.1).total_cmp(&mean(b.1)));
    let identity = tried.iter().find(|tried| tried.0 == FitForm::Identity).and_then(losses);
    let mut chosen = None;
    let mut candidates = Vec::new();
    for one in tried {
        let (form, found) = one;
        let parameters = form.parameters(levels);
        let mut candidate = FitCandidate {
            form: *form,
            parameters,
            loss: None,
            above_best: None,
            standard_error: None,
            refused: None,
        };
        match (found, best) {
            (Ok(found), Some((_, best))) => {
                let differences: Vec<f64> = found.iter().zip(best).map(|(a, b)| a - b).collect();
                let above = mean(&differences);
                let square = differences.iter().map(|d| (d - above) * (d - above)).sum::<f64>();
                let count = differences.len() as f64;
                let error = (square / (count - 1.0).max(1.0) / count).sqrt();
                let loss = mean(found);
                candidate.loss = Some(loss);
                candidate.above_best = Some(above);
                candidate.standard_error = Some(error);
                let safe = identity.is_none_or(|identity| loss <= identity);
                if chosen.is_none() && above <= noise * error && safe {
                    chosen = Some(*form);
                }
            }
            (Err(reason), _) => candidate.refused = Some(reason.to_string()),
            (Ok(_), None) => {}
        }
        candidates.push(candidate);
    }
    let fallback = best.map_or(FitForm::Identity, |(form, _)| form);
    (candidates, chosen.unwrap_or(fallback))
}
