//! Turns scores and evidence into the weights of the label variables.
//!
//! A label has the weights `(1, e^s)`, where `s` is its score plus bias. The members of a one-of
//! group are first shifted by the largest of their scores, which keeps the two halves of the
//! group's bits on one scale. Then each pair of weights is divided by the larger one. Evidence sets
//! a weight to zero.

use super::variables::VariableNetwork;
use crate::infer::{Block, Evidence};
use crate::numeric::{Scalar, log_max, log_sum_exp};

/// The weights of one row.
#[derive(Debug, Default, Clone)]
pub(super) struct RowWeights {
    /// The logarithms of both weights of each label variable.
    pub(super) logarithms: Vec<[f64; 2]>,
    /// The logarithm of each label's share of its variable.
    pub(super) share: Vec<f64>,
    /// What was divided out.
    pub(super) offset: f64,
}

impl RowWeights {
    pub(super) fn fill<T: Scalar>(
        &mut self,
        network: &VariableNetwork,
        block: &Block<'_, T>,
        row: usize,
    ) {
        let scores = block.row(row);
        let evidence = |label: usize| block.evidence(row, label);
        self.share.clear();
        self.share.extend(scores.iter().zip(&network.bias).map(|(s, bias)| s.to_f64() + bias));
        if block.evidence.is_some() {
            for (label, score) in self.share.iter_mut().enumerate() {
                if evidence(label) == Evidence::Off {
                    *score = f64::NEG_INFINITY;
                }
            }
        }
        self.offset = network.constant;
        for (labels, _) in &network.groups {
            let most = log_max(labels.iter().map(|&label| self.share[label as usize]));
            if most.is_finite() {
                labels.iter().for_each(|&label| self.share[label as usize] -= most);
                self.offset += most;
            }
        }
        self.logarithms.clear();
        for labels in &network.classes {
            let certain = |label: &&u32| evidence(**label as usize) == Evidence::On;
            let mut off = 0.0;
            if block.evidence.is_some() && labels.iter().any(|label| certain(&label)) {
                off = f64::NEG_INFINITY;
                let several = labels.iter().filter(certain).count() > 1;
                for label in labels.iter().filter(|label| several || !certain(label)) {
                    self.share[*label as usize] = f64::NEG_INFINITY;
                }
            }
            let on = match labels[..] {
                [label] => std::mem::replace(&mut self.share[label as usize], 0.0),
                _ => self.split(labels),
            };
            let most = f64::max(off, on);
            if most.is_finite() {
                self.offset += most;
                self.logarithms.push([off - most, on - most]);
            } else {
                self.logarithms.push([f64::NEG_INFINITY; 2]);
            }
        }
    }

    /// The logarithm of a summed weight. It also computes the shares of the labels.
    fn split(&mut self, labels: &[u32]) -> f64 {
        let sum = log_sum_exp(labels.iter().map(|&label| self.share[label as usize]));
        if sum == f64::NEG_INFINITY {
            return sum;
        }
        labels.iter().for_each(|&label| self.share[label as usize] -= sum);
        sum
    }
}
