//! Evidence that no legal state agrees with, as far as arc consistency finds it.

use super::{Frame, Live, Network, Support};
use crate::infer::{Answers, Block, Number};

/// Finds evidence that contradicts hard relations.
#[derive(Debug)]
pub(crate) struct Contradictions {
    frame: Frame,
    support: Support,
}

impl Contradictions {
    pub(crate) fn new(network: &Network) -> Contradictions {
        let frame = Frame::new(network);
        let support = Support::new(network, &frame, f64::INFINITY);
        Contradictions { frame, support }
    }

    /// Marks the rows of a block whose evidence is contradictory: their log Z is minus infinity.
    pub(crate) fn mark<T: Number>(
        &self,
        network: &Network,
        block: &Block<'_, T>,
        answers: &mut Answers<'_, T>,
    ) {
        if block.evidence.is_none() || self.support.is_empty() {
            return;
        }
        let mut weights = vec![0.0; self.frame.states()];
        let mut live = Live::default();
        for row in 0..block.rows() {
            self.frame.weigh(network, block, row, &mut weights);
            if !self.support.start(&weights, &mut live) {
                answers.log_partition[row] = f64::NEG_INFINITY;
            }
        }
    }
}
