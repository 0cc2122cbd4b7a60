//! A pattern search on the grid: one coordinate at a time, in steps that double after a success and
//! halve after a failure.
//!
//! A coordinate moves some levels together. The search visits a bounded number of points, each of
//! which costs a run of the reconciler, unless another search has been there.

use super::options::FitForm;
use super::start::{HOTTEST, LARGEST_BIAS, start};
use super::trials::{GridPoint, Trials, UNITS};
use crate::Error;

/// Points that all searches of large tables visit at least.
const FEWEST: usize = 12;
/// Points that a search visits at most.
const MOST: usize = 96;
/// Entries that a search reads at most, unless it would visit too few points.
const ENTRIES: usize = 60_000_000;
/// With more levels, temperatures are refined together.
const MOST_REFINED: usize = 6;
/// The largest logarithm of the ratio of weights of adjacent levels, in units.
const STEEPEST: i32 = 276;

/// A direction in which the search moves.
#[derive(Debug, Clone)]
struct Coordinate {
    /// What one unit adds to each level.
    moves: Vec<[i32; 3]>,
    /// The first step.
    step: i32,
    /// Points far away that are tried first, in units.
    anchors: Vec<i32>,
}

fn coordinates(form: FitForm, levels: usize, heaviest: i32) -> Vec<Coordinate> {
    let mut found = Vec::new();
    let some = |slot: usize, which: &dyn Fn(usize) -> i32| -> Vec<[i32; 3]> {
        let mut moves = vec![[0; 3]; levels];
        moves.iter_mut().enumerate().for_each(|(level, unit)| unit[slot] = which(level));
        moves
    };
    let mut add = |moves, step, anchors| found.push(Coordinate { moves, step, anchors });
    let depth = levels as i32 - 1;
    if matches!(
        form,
        FitForm::Trust
            | FitForm::TemperatureTrust
            | FitForm::LevelsTrust
            | FitForm::LevelsBiasTrust
    ) {
        let most = (heaviest / depth.max(1)).min(STEEPEST / 2);
        add(some(2, &|level| 2 * level as i32 - depth), 4, vec![most, -most]);
    }
    if form == FitForm::LevelsWeights {
        for level in 1..levels {
            let most = heaviest.min(STEEPEST / 2);
            add(some(2, &|at| i32::from(at == level)), 16, vec![most, -most]);
        }
    }
    if matches!(form, FitForm::Identity | FitForm::Trust) {
        return found;
    }
    let first = if form.infers() { 32 } else { 4 };
    add(some(0, &|_| 1), first, Vec::new());
    if form.is_per_level() && levels <= MOST_REFINED {
        for level in 0..levels {
            add(some(0, &|at| i32::from(at == level)), first, Vec::new());
            if form.biases() {
                add(some(1, &|at| i32::from(at == level)), 8, Vec::new());
            }
        }
    }
    found
}

/// The best point that was found, on the rows of `train`.
pub(super) fn search(
    form: FitForm,
    trials: &mut Trials<'_>,
    train: &[usize],
) -> Result<GridPoint, Error> {
    let levels = trials.levels.len();
    let mut here = start(form, trials, train);
    let mut coordinates = coordinates(form, levels, trials.heaviest);
    let entries = trials.logits.len().max(1);
    let budget = (ENTRIES / entries).clamp(FEWEST, MOST);
    let mut visited = 1;
    let mut value = objective(form, trials, train, &here)?;
    // From every anchor, temperatures stay where they are best before reconciling.
    for coordinate in &coordinates {
        let origin = here.clone();
        for &anchor in &coordinate.anchors {
            let Some(there) = moved(&origin, coordinate, anchor, trials.heaviest) else { continue };
            let found = objective(form, trials, train, &there)?;
            visited += 1;
            if found < value {
                (here, value) = (there, found);
            }
        }
    }
    while visited < budget && coordinates.iter().any(|coordinate| coordinate.step > 0) {
        for coordinate in &mut coordinates {
            if coordinate.step == 0 || visited >= budget {
                continue;
            }
            let mut better = false;
            for sign in [1, -1] {
                let Some(there) = moved(&here, coordinate, sign * coordinate.step, trials.heaviest)
                else {
                    continue;
                };
                let found = objective(form, trials, train, &there)?;
                visited += 1;
                if found < value {
                    (here, value) = (there, found);
                    better = true;
                    break;
                }
            }
            coordinate.step =
                if better { (coordinate.step * 2).min(128) } else { coordinate.step / 2 };
        }
    }
    Ok(here)
}

/// A point some steps away, if it is in bounds.
fn moved(
    from: &GridPoint,
    coordinate: &Coordinate,
    steps: i32,
    heaviest: i32,
) -> Option<GridPoint> {
    let mut point = from.clone();
    for (level, unit) in point.levels.iter_mut().zip(&coordinate.moves) {
        for slot in 0..3 {
            level[slot] += steps * unit[slot];
        }
    }
    let limits = [HOTTEST / UNITS[0], LARGEST_BIAS / UNITS[1], f64::from(heaviest)];
    let fits = |level: &[i32; 3]| (0..3).all(|slot| f64::from(level[slot].abs()) <= limits[slot]);
    point.levels.iter().all(fits).then_some(point)
}

/// The loss of the rows, and the priors that keep levels without evidence at their start.
fn objective(
    form: FitForm,
    trials: &mut Trials<'_>,
    train: &[usize],
    point: &GridPoint,
) -> Result<f64, Error> {
    let losses = trials.losses(form, point)?;
    let prior: f64 = point
        .levels
        .iter()
        .map(|level| {
            let [heat, bias] = [0, 1].map(|slot| f64::from(level[slot]) * UNITS[slot]);
            0.5 * (heat * heat + bias * bias)
        })
        .sum();
    Ok(train.iter().map(|&row| losses[row]).sum::<f64>() + prior)
}
