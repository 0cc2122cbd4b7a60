//! The log-probability of all evidence of a row.
//!
//! `log p(o) = log Z(o) − log Z`, where `o` is the evidence. It costs one clamped pass. When every
//! label of a row has evidence, only one state is left, and its weight and violations are computed
//! without a pass.

use super::{Ascent, Picked, RowLoss, answer, evidence_of};
use crate::Error;
use crate::infer::{Backend, Block, Evidence, Number, Posterior, RowStatus, Want};
use crate::model::Model;

pub(super) fn add<T: Number>(
    runner: &dyn Backend,
    block: &Block<'_, T>,
    free: &Posterior<T>,
    ascent: &mut Ascent,
) -> Result<(), Error> {
    let is_full =
        |row: usize| evidence_of(block, row).is_some_and(|all| !all.contains(&Evidence::Unknown));
    let (full, partial): (Vec<usize>, Vec<usize>) =
        (0..block.rows()).filter(|&row| ascent.is_answered(row)).partition(|&row| is_full(row));
    for row in full {
        add_state(runner.engine().model(), block, row, free, ascent);
    }
    if partial.is_empty() {
        return Ok(());
    }
    let picked;
    let clamped = if partial.len() == block.rows() {
        *block
    } else {
        picked = Picked::of(block, partial.iter().map(|&row| (row, None)));
        picked.block()
    };
    let want = Want { expectations: ascent.costs.is_some(), ..Want::default() };
    let clamped = runner.run(&clamped, want)?;
    for (at, &row) in partial.iter().enumerate() {
        match clamped.status[at] {
            RowStatus::Answered => {
                ascent.log_probability[row] = clamped.log_partition[at] - free.log_partition[row];
                ascent.add(row, 1.0, answer(&clamped, at), answer(free, row));
            }
            _ => ascent.refuse(row),
        }
    }
    Ok(())
}

/// Adds a row in which every label has evidence.
fn add_state<T: Number>(
    model: &Model,
    block: &Block<'_, T>,
    row: usize,
    free: &Posterior<T>,
    ascent: &mut Ascent,
) {
    let evidence = evidence_of(block, row).unwrap_or(&[]);
    let state: Vec<bool> = evidence.iter().map(|&entry| entry == Evidence::On).collect();
    let scores: Vec<f64> = block.row(row).iter().map(|score| score.to_f64()).collect();
    let log_weight = model.log_weight(&scores, &state);
    if log_weight == f64::NEG_INFINITY {
        return ascent.refuse(row);
    }
    ascent.log_probability[row] = log_weight - free.log_partition[row];
    let number = |value: f64| T::from_f64(value);
    let marginals: Vec<T> = state.iter().map(|&on| number(f64::from(u8::from(on)))).collect();
    let expectations = ascent.costs.is_some().then(|| {
        let violations = model.violations(&state);
        violations.into_iter().map(number).collect::<Vec<T>>()
    });
    let to = RowLoss { marginals: &marginals, expectations: expectations.as_deref() };
    ascent.add(row, 1.0, to, answer(free, row));
}
