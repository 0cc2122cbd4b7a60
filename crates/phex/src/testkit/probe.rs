//! A look at the `junction` engine from outside the crate, for its benchmark.

use crate::infer::junction::Junction;
use crate::infer::{Answers, Block, Budget};
use crate::model::Model;

/// A compiled junction tree.
#[derive(Debug)]
pub struct JunctionProbe(Junction);

impl JunctionProbe {
    /// Compiles with 16 restarts.
    ///
    /// # Errors
    /// Says why the engine refuses the model.
    pub fn compile(model: &Model, budget: &Budget) -> Result<JunctionProbe, String> {
        let compiled = Junction::compile(model, budget, 16, 1);
        compiled.map(JunctionProbe).map_err(|unfit| format!("{unfit:?}"))
    }

    /// Legal states of all bags, of the largest bag, and variables of the widest.
    pub fn size(&self) -> (usize, usize, usize) {
        (self.0.states(), self.0.largest(), self.0.width())
    }

    /// The log-partition and the marginals of each row.
    pub fn run(&self, block: &Block<'_, f32>) -> (Vec<f64>, Vec<f32>) {
        let rows = block.rows();
        let (mut log_partition, mut error) = (vec![0.0; rows], vec![0.0; rows]);
        let mut marginals = vec![0.0; rows * block.labels()];
        let mut answers = Answers {
            marginals: &mut marginals,
            log_partition: &mut log_partition,
            expectations: None,
            error: &mut error,
        };
        self.0.run(block, &mut answers);
        (log_partition, marginals)
    }
}
