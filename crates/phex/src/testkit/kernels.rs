//! Kernels by name, for benchmarks.

use crate::infer::{Answers, Block, Budget, Family, Scalar};
use crate::model::Model;

/// The `family` kernel.
#[derive(Debug)]
pub struct FamilyKernel(Family);

impl FamilyKernel {
    /// `None` when the kernel does not take the model.
    pub fn new(model: &Model, cap: Option<usize>) -> Option<FamilyKernel> {
        Family::compile(model, cap, &Budget::default()).ok().map(FamilyKernel)
    }

    /// From scores to marginals and log-partitions.
    pub fn run<T: Scalar>(
        &self,
        block: &Block<'_, T>,
        marginals: &mut [T],
        log_partition: &mut [f64],
    ) {
        let error = &mut vec![0.0; log_partition.len()];
        let mut answers = Answers { marginals, log_partition, expectations: None, error };
        self.0.run(block, &mut answers);
    }
}
