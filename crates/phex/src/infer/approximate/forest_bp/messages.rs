//! The iteration over a block of rows. Rows that have converged drop out of it.

use super::ForestBp;
use super::split::Residual;
use crate::infer::{Answers, Block, Evidence, Number};
use crate::numeric::{log_max, log_sum_exp, softplus};

/// Odds are clamped to this and its inverse.
const CERTAIN: f64 = 1e250;

/// The scores, messages and beliefs of a block of rows.
pub(super) struct ForestBpRows<'a> {
    blocks: &'a ForestBp,
    n: usize,
    /// θ, rows × labels.
    scores: Vec<f64>,
    evidence: Option<&'a [Evidence]>,
    /// The messages to the first and the second label of each residual pair, as odds, rows × pairs.
    messages: Vec<[f64; 2]>,
    /// The beliefs under the messages, rows × labels.
    marginals: Vec<f64>,
    /// log Z of the forest under the messages.
    forest: Vec<f64>,
    /// log Z of the forest without messages.
    alone: Vec<f64>,
    pub(super) iterations: Vec<u32>,
    pub(super) residual: Vec<f64>,
}

/// The odds of a probability.
fn odds(p: f64) -> f64 {
    within(p / (1.0 - p))
}

fn within(odds: f64) -> f64 {
    // NaN comes from 0/0: a pair forbids what the forest is certain of.
    if odds.is_nan() { 1.0 } else { odds.clamp(1.0 / CERTAIN, CERTAIN) }
}

impl<'a> ForestBpRows<'a> {
    /// Runs every row until it has converged or has used up its iterations.
    pub(super) fn iterate<T: Number>(
        blocks: &'a ForestBp,
        block: &Block<'a, T>,
    ) -> ForestBpRows<'a> {
        let (n, count) = (block.labels(), block.rows());
        let pairs = blocks.split.residual.len();
        let mut rows = ForestBpRows {
            blocks,
            n,
            scores: block.scores.iter().map(|score| score.to_f64()).collect(),
            evidence: block.evidence,
            messages: vec![[1.0; 2]; count * pairs],
            marginals: vec![0.0; count * n],
            forest: vec![0.0; count],
            alone: vec![0.0; count],
            iterations: vec![0; count],
            residual: vec![f64::INFINITY; count],
        };
        let mut active: Vec<usize> = (0..count).collect();
        for iteration in 0..blocks.options.iterations {
            rows.pass(&active);
            if iteration == 0 {
                rows.alone.copy_from_slice(&rows.forest);
            }
            let options = &blocks.options;
            active.retain(|&row| {
                rows.iterations[row] = iteration + 1;
                let enough = options.tolerance > 0.0 && rows.residual[row] <= options.tolerance;
                !enough && rows.forest[row] > f64::NEG_INFINITY && pairs > 0
            });
            // The last beliefs must match the messages that produced them.
            if active.is_empty() || iteration + 1 == options.iterations {
                break;
            }
            // The first messages are not damped, because there are no old ones to keep.
            let keep = if iteration == 0 { 0.0 } else { options.damping };
            active.iter().for_each(|&row| rows.send(row, keep));
        }
        if pairs == 0 {
            rows.residual.fill(0.0);
        }
        rows
    }

    /// The scores plus messages.
    fn adjusted(&self, row: usize) -> Vec<f64> {
        let pairs = self.blocks.split.residual.len();
        let mut scores = self.scores[row * self.n..(row + 1) * self.n].to_vec();
        let messages = &self.messages[row * pairs..(row + 1) * pairs];
        for (pair, message) in self.blocks.split.residual.iter().zip(messages) {
            scores[pair.a] += message[0].ln();
            scores[pair.b] += message[1].ln();
        }
        scores
    }

    /// Runs the forest over some rows.
    fn pass(&mut self, active: &[usize]) {
        let n = self.n;
        let scores: Vec<f64> = active.iter().flat_map(|&row| self.adjusted(row)).collect();
        let evidence: Option<Vec<Evidence>> = self.evidence.map(|all| {
            active.iter().flat_map(|&row| all[row * n..(row + 1) * n].iter().copied()).collect()
        });
        let mut block = Block::new(n, &scores);
        if let Some(evidence) = &evidence {
            block = block.with_evidence(evidence);
        }
        let mut marginals = vec![0.0; active.len() * n];
        let mut log_partition = vec![0.0; active.len()];
        let mut error = vec![0.0; active.len()];
        let mut answers = Answers {
            marginals: &mut marginals,
            log_partition: &mut log_partition,
            expectations: None,
            error: &mut error,
            diagnosis: &mut [],
            standard_errors: None,
        };
        self.blocks.family.run(&block, &mut answers);
        for (at, &row) in active.iter().enumerate() {
            let fresh = &marginals[at * n..(at + 1) * n];
            let old = &mut self.marginals[row * n..(row + 1) * n];
            let change = |(a, b): (&f64, &f64)| (a - b).abs();
            self.residual[row] = fresh.iter().zip(old.iter()).map(change).fold(0.0, f64::max);
            old.copy_from_slice(fresh);
            self.forest[row] = log_partition[at];
        }
    }

    /// Computes new messages for a row and keeps a fraction of the old ones. Probabilities are
    /// mixed, as in `lbp`.
    fn send(&mut self, row: usize, keep: f64) {
        let split = &self.blocks.split;
        let pairs = split.residual.len();
        let beliefs = self.marginals[row * self.n..(row + 1) * self.n].iter();
        let beliefs: Vec<f64> = beliefs.map(|&p| odds(p)).collect();
        let messages = &mut self.messages[row * pairs..(row + 1) * pairs];
        let mix = |above: f64, below: f64, before: f64| {
            let fresh = (1.0 - keep) * (1.0 + before);
            let kept = keep * (above + below);
            within((fresh * above + kept * before) / (fresh * below + kept))
        };
        let weights = self.blocks.weights.iter();
        for ((pair, message), weights) in split.residual.iter().zip(messages).zip(weights) {
            let [to_a, to_b] = *message;
            let (a, b) = (within(beliefs[pair.a] / to_a), within(beliefs[pair.b] / to_b));
            let [[none, only_b], [only_a, both]] = *weights;
            // Scaled so that nothing overflows. Only the proportions matter.
            let (off_a, off_b) = (1.0 / (1.0 + a), 1.0 / (1.0 + b));
            let (on_a, on_b) = (a * off_a, b * off_b);
            let fresh_a = [only_a * off_b + both * on_b, none * off_b + only_b * on_b];
            let fresh_b = [only_b * off_a + both * on_a, none * off_a + only_a * on_a];
            *message = [mix(fresh_a[0], fresh_a[1], to_a), mix(fresh_b[0], fresh_b[1], to_b)];
        }
    }

    pub(super) fn beliefs(&self, row: usize) -> &[f64] {
        &self.marginals[row * self.n..(row + 1) * self.n]
    }

    fn pairs(&self, row: usize) -> impl Iterator<Item = (&Residual, &[f64; 2])> {
        let pairs = self.blocks.split.residual.len();
        self.blocks.split.residual.iter().zip(&self.messages[row * pairs..(row + 1) * pairs])
    }

    /// The Bethe estimate of log Z.
    pub(super) fn log_partition(&self, row: usize) -> f64 {
        let beliefs = self.beliefs(row);
        let term = |(pair, message): (&Residual, &[f64; 2])| {
            let (odds_a, odds_b) = (odds(beliefs[pair.a]).ln(), odds(beliefs[pair.b]).ln());
            joint(pair, odds_a - message[0].ln(), odds_b - message[1].ln()).1
                - softplus(odds_a)
                - softplus(odds_b)
        };
        self.forest[row] + self.pairs(row).map(term).sum::<f64>()
    }

    /// The probability that both labels of a residual pair are on.
    pub(super) fn both(&self, row: usize, pair: usize) -> f64 {
        let beliefs = self.beliefs(row);
        let message = self.messages[row * self.blocks.split.residual.len() + pair];
        let pair = &self.blocks.split.residual[pair];
        let (a, b) = (odds(beliefs[pair.a]), odds(beliefs[pair.b]));
        let (both, all) = joint(pair, (a / message[0]).ln(), (b / message[1]).ln());
        (both - all).exp()
    }

    /// Rigorous bounds on log Z.
    pub(super) fn bounds(&self, row: usize) -> (f64, f64) {
        let beliefs = self.beliefs(row);
        let (mut low, mut high) = (self.forest[row], self.forest[row]);
        let mut plain = self.alone[row];
        for (pair, message) in self.pairs(row) {
            let (p, q) = (beliefs[pair.a], beliefs[pair.b]);
            let [[none, only_b], [only_a, both]] = pair.costs;
            let [to_a, to_b] = message.map(f64::ln);
            let largest = [-none, -only_b - to_b, -only_a - to_a, -both - to_a - to_b];
            high += log_max(largest);
            plain -= none.min(only_b).min(only_a).min(both);
            // The mean cost is linear in P(both on), which is between the Fréchet bounds.
            let mean = |both_on: f64| {
                let cells = [
                    (none, 1.0 - p - q + both_on),
                    (only_b, q - both_on),
                    (only_a, p - both_on),
                    (both, both_on),
                ];
                let cost =
                    |(cost, weight): (f64, f64)| if weight <= 0.0 { 0.0 } else { cost * weight };
                cells.into_iter().map(cost).sum::<f64>()
            };
            let worst = mean(p.min(q)).max(mean((p + q - 1.0).max(0.0)));
            low -= worst + to_a * p + to_b * q;
        }
        // The two ends are computed separately, and rounding must not let them cross.
        let high = high.min(plain);
        (low.min(high), high)
    }

    /// The expected violations of the forest's own relations under the messages.
    pub(super) fn forest_expectations(&self) -> Vec<f64> {
        let (n, count) = (self.n, self.iterations.len());
        let width = self.blocks.split.forest.relations().len();
        let scores: Vec<f64> = (0..count).flat_map(|row| self.adjusted(row)).collect();
        let mut block = Block::new(n, &scores);
        if let Some(evidence) = self.evidence {
            block = block.with_evidence(evidence);
        }
        let mut out = vec![0.0; count * width];
        let mut answers = Answers {
            marginals: &mut vec![0.0; count * n],
            log_partition: &mut vec![0.0; count],
            expectations: Some(&mut out),
            error: &mut vec![0.0; count],
            diagnosis: &mut [],
            standard_errors: None,
        };
        self.blocks.family.run(&block, &mut answers);
        out
    }

    /// The scores plus messages, the scores, and the evidence of a row, for sampling.
    pub(super) fn proposal(&self, row: usize) -> (Vec<f64>, &[f64], Option<&[Evidence]>) {
        let range = row * self.n..(row + 1) * self.n;
        let evidence = self.evidence.map(|all| &all[range.clone()]);
        (self.adjusted(row), &self.scores[range], evidence)
    }
}

/// The log-weights of both on, and of all four states, from cavity log-odds.
fn joint(pair: &Residual, a: f64, b: f64) -> (f64, f64) {
    let [[none, only_b], [only_a, both]] = pair.costs;
    let all = [-none, b - only_b, a - only_a, a + b - both];
    (all[3], log_sum_exp(all))
}
