//! The sum of the log-probabilities of each label with evidence: the paper's loss.
//!
//! `L = Σ_t log p(x_t = o_t)` is a sum of terms of one label each, where `o` is the evidence. The
//! gradient of a term is `E[x | x_t = o_t] − E[x]`, which costs one clamped pass per label. An
//! exact engine needs fewer. With the marginals `P(θ)` and `g_t = ∂L/∂P_t` (`1/P_t` for a label
//! that is on, `−1/(1 − P_t)` for one that is off), the gradient is the covariance times `g`, by
//! two passes in double precision ([`super::covariance`]):
//!
//! `∂L/∂ℓ = Cov(x) g`, `∂L/∂w_r = −(E_{ℓ+εg}[v_r] − E_{ℓ−εg}[v_r]) / 2ε`
//!
//! Their error is 1e-9 `max|g|`. Labels whose evidence is improbable would make `g` large. So each
//! of them gets its own clamped pass, which also gives its log-probability without cancellation.

use super::covariance::{CHUNK, ScoreDirection, both_ways};
use super::rules::{FEW_LABELS, IMPROBABLE};
use super::{Ascent, Picked, RowLoss, answer, evidence_of};
use crate::Error;
use crate::infer::{Backend, Block, Evidence, Number, Posterior, RowStatus, Want};

/// A label with evidence in a row.
#[derive(Clone, Copy)]
struct LabelEvidence {
    row: usize,
    label: usize,
    entry: Evidence,
    /// The probability of the evidence.
    probability: f64,
}

pub(super) fn add<T: Number>(
    runner: &dyn Backend,
    block: &Block<'_, T>,
    free: &Posterior<T>,
    ascent: &mut Ascent,
) -> Result<(), Error> {
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for row in (0..block.rows()).filter(|&row| ascent.is_answered(row)) {
        let labels = labels_of(block, free, row);
        let probable = labels.iter().filter(|seen| seen.probability >= IMPROBABLE).count();
        if runner.engine().plan().exact && probable > FEW_LABELS {
            let (likely, unlikely): (Vec<_>, Vec<_>) =
                labels.into_iter().partition(|seen| seen.probability >= IMPROBABLE);
            together.push(likely);
            alone.extend(unlikely);
        } else {
            alone.extend(labels);
        }
    }
    add_alone(runner, block, free, &alone, ascent)?;
    add_together(runner, block, &together, ascent)
}

fn labels_of<T: Number>(
    block: &Block<'_, T>,
    free: &Posterior<T>,
    row: usize,
) -> Vec<LabelEvidence> {
    let entries = evidence_of(block, row).unwrap_or(&[]).iter().enumerate();
    let entries = entries.filter(|(_, entry)| **entry != Evidence::Unknown);
    entries
        .map(|(label, &entry)| {
            let on = free.row(row)[label].to_f64();
            let probability = if entry == Evidence::On { on } else { 1.0 - on };
            LabelEvidence { row, label, entry, probability }
        })
        .collect()
}

/// Runs one clamped pass per label.
fn add_alone<T: Number>(
    runner: &dyn Backend,
    block: &Block<'_, T>,
    free: &Posterior<T>,
    labels: &[LabelEvidence],
    ascent: &mut Ascent,
) -> Result<(), Error> {
    let want = Want { expectations: ascent.costs.is_some(), ..Want::default() };
    // As many labels as rows at a time, so that the memory stays that of the block.
    for labels in labels.chunks(block.rows().max(256)) {
        let rows = labels.iter().map(|seen| (seen.row, Some((seen.label, seen.entry))));
        let clamped = runner.run(&Picked::of(block, rows).block(), want)?;
        for (at, seen) in labels.iter().enumerate() {
            if clamped.status[at] != RowStatus::Answered {
                ascent.refuse(seen.row);
                continue;
            }
            let exact = clamped.log_partition[at] - free.log_partition[seen.row];
            // Samples give no log Z, and neither bounds nor the Bethe estimate are probabilities.
            let log =
                if runner.engine().plan().approximate { seen.probability.ln() } else { exact };
            ascent.log_probability[seen.row] += log;
            ascent.add(seen.row, 1.0, answer(&clamped, at), answer(free, seen.row));
        }
    }
    Ok(())
}

/// Runs two passes for all labels of a row.
fn add_together<T: Number>(
    runner: &dyn Backend,
    block: &Block<'_, T>,
    rows: &[Vec<LabelEvidence>],
    ascent: &mut Ascent,
) -> Result<(), Error> {
    let n = block.labels();
    let want = Want { expectations: ascent.costs.is_some(), ..Want::default() };
    for rows in rows.chunks(CHUNK) {
        let mut slopes = Vec::with_capacity(rows.len());
        for labels in rows {
            let Some(row) = labels.first().map(|seen| seen.row) else { continue };
            let mut slope = vec![0.0; n];
            for seen in labels {
                let sign = if seen.entry == Evidence::On { 1.0 } else { -1.0 };
                slope[seen.label] = sign / seen.probability;
                ascent.log_probability[row] += seen.probability.ln();
            }
            slopes.push((row, slope));
        }
        // The single-label terms belong to a free row, so nothing is clamped.
        let moves = slopes.iter().map(|(row, slope)| ScoreDirection {
            scores: block.row(*row),
            slope,
            evidence: None,
        });
        let (moved, factors) = both_ways(runner, n, moves, want)?;
        for (at, ((row, _), factor)) in slopes.iter().zip(factors).enumerate() {
            let up: RowLoss<'_, f64> = answer(&moved, 2 * at);
            ascent.add(*row, factor, up, answer(&moved, 2 * at + 1));
        }
    }
    Ok(())
}
