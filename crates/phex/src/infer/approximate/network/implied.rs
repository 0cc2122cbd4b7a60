//! Finds what evidence implies through hard relations and one-of groups, as far as arc consistency
//! can: labels that can only be on or only off, and rows in which no legal state is left.

use super::{Frame, Live, Network, Support};
use crate::infer::{Answers, Block, Evidence, Number};

/// Finds what evidence implies.
#[derive(Debug)]
pub(crate) struct Implied {
    frame: Frame,
    support: Support,
}

impl Implied {
    pub(crate) fn new(network: &Network) -> Implied {
        let frame = Frame::new(network);
        let support = Support::new(network, &frame, f64::INFINITY);
        Implied { frame, support }
    }

    /// Writes the evidence of each label in a row, including what follows from it. Returns `false`
    /// when no state agrees with it.
    pub(crate) fn settle<T: Number>(
        &self,
        network: &Network,
        block: &Block<'_, T>,
        row: usize,
        evidence: &mut [Evidence],
    ) -> bool {
        let mut weights = vec![0.0; self.frame.states()];
        let mut live = Live::default();
        self.frame.weigh(network, block, row, &mut weights);
        if !self.support.start(&weights, &mut live) {
            return false;
        }
        for (label, evidence) in evidence.iter_mut().enumerate() {
            let on = self.frame.on[label];
            let mut others = self.frame.of(self.frame.node[label]).filter(|&state| state != on);
            *evidence = match (live.state[on], others.any(|state| live.state[state])) {
                (true, true) => Evidence::Unknown,
                (true, false) => Evidence::On,
                (false, _) => Evidence::Off,
            };
        }
        true
    }

    /// Whether some state agrees with the evidence of a row.
    pub(crate) fn is_possible<T: Number>(
        &self,
        network: &Network,
        block: &Block<'_, T>,
        row: usize,
    ) -> bool {
        let mut weights = vec![0.0; self.frame.states()];
        self.frame.weigh(network, block, row, &mut weights);
        self.support.start(&weights, &mut Live::default())
    }

    /// Marks the rows of a block with which no state agrees: sets their log Z to minus infinity.
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
