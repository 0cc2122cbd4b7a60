//! Kernels by name, for benchmarks.

use crate::infer::{Answers, Block, Budget, Family, Scalar};
use crate::model::Model;

/// The `family` kernel: from scores to marginals and log-partitions, block after block. `None` when
/// it does not take the model.
pub fn family<T: Scalar>(
    model: &Model,
    cap: Option<usize>,
) -> Option<impl Fn(&[T], &mut [T], &mut [f64])> {
    let labels = model.len();
    let family = Family::compile(model, cap, &Budget::default()).ok()?;
    Some(move |scores: &[T], marginals: &mut [T], log_partition: &mut [f64]| {
        let mut error = vec![0.0; log_partition.len()];
        let error = &mut error[..];
        let mut answers = Answers { marginals, log_partition, expectations: None, error };
        family.run(&Block::new(labels, scores), &mut answers);
    })
}
