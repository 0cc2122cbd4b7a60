//! Computes the upper bound, which is valid for any messages.
//!
//! Hölder's inequality: `log Z(θ) ≤ Σ_T ρ_T log Z(θ_T)` for any parameters with `Σ_T ρ_T θ_T = θ`.
//! The messages `m` determine how θ is divided: in tree T a node has
//! `θ + Σ_e ρ_e m_e − Σ_{e ∈ T} m_e`, and an edge of T has `−c / ρ`. Averaged over the trees the
//! messages cancel, so the parameters add up whatever the messages are. The log-partition of each
//! tree is exact, by a pass from its leaves to its root, which costs O(states + entries) per tree.
//! On a forest there is one tree, and the bound is log Z.

use multiversion::multiversion;

use super::edges::{Edges, LinkEdge, PairEdge, TableEdge};
use super::math::{less, log_sum, log_sums, total};
use super::messages::TreeMessages;
use crate::numeric::Lanes;

/// The bound of each row, without the constant. The beliefs must be up to date.
#[multiversion(targets = "simd")]
pub(super) fn bound<const L: usize>(messages: &TreeMessages<L>, edges: &Edges) -> Lanes<f64, L> {
    let mut values = messages.beliefs.clone();
    let mut scratch = [Vec::new(), Vec::new()];
    let mut sum = Lanes::NONE;
    for steps in &edges.trees.steps {
        values.copy_from_slice(&messages.beliefs);
        let mut pass = Pass { values: &mut values, messages, edges, log: Lanes::NONE, scratch };
        for step in steps {
            let (edge, pairs) = (step.edge as usize, edges.pairs.len());
            if edge < pairs {
                pass.pair(&edges.pairs[edge], edge, step.turned);
            } else if edge < pairs + edges.links.len() {
                let at = edge - pairs;
                if step.turned {
                    pass.link_to_group(&edges.links[at], at);
                } else {
                    pass.link_to_label(&edges.links[at], at);
                }
            } else {
                let table = &edges.tables[edge - pairs - edges.links.len()];
                pass.table(table, usize::from(step.turned));
            }
        }
        for &root in &edges.trees.roots {
            pass.log += if root < edges.frame.binary {
                log_sum(pass.values[2 * root], pass.values[2 * root + 1])
            } else {
                total(&pass.values[edges.frame.of(root)], |_| true).log()
            };
        }
        sum += pass.log;
        scratch = pass.scratch;
    }
    let count = edges.trees.steps.len() as f64;
    sum.map(|sum| sum / count)
}

/// A pass to the roots of a tree.
struct Pass<'a, const L: usize> {
    /// The log-weights of the states, including those of the finished subtrees.
    values: &'a mut [Lanes<f64, L>],
    messages: &'a TreeMessages<L>,
    edges: &'a Edges,
    /// What was added equally to all states of a node.
    log: Lanes<f64, L>,
    scratch: [Vec<f64>; 2],
}

impl<const L: usize> Pass<'_, L> {
    #[inline(always)]
    fn pair(&mut self, pair: &PairEdge, at: usize, turned: bool) {
        let [a, b] = pair.nodes;
        self.values[2 * a + 1] = self.values[2 * a + 1] - self.messages.pairs[2 * at];
        self.values[2 * b + 1] = self.values[2 * b + 1] - self.messages.pairs[2 * at + 1];
        let (child, parent) = if turned { (b, a) } else { (a, b) };
        let (off, on) = (self.values[2 * child], self.values[2 * child + 1]);
        let cost = |x: usize, y: usize| if turned { pair.costs[y][x] } else { pair.costs[x][y] };
        let off = [less(off, cost(0, 0)), less(off, cost(0, 1))];
        let on = [less(on, cost(1, 0)), less(on, cost(1, 1))];
        let sums = log_sums(off, on, &mut self.scratch);
        self.values[2 * parent] += sums[0];
        self.values[2 * parent + 1] += sums[1];
    }

    /// Removes the messages of a link from both ends.
    #[inline(always)]
    fn take_out(&mut self, link: &LinkEdge, at: usize) {
        let first = self.edges.frame.first[link.group];
        for (at, &(state, _)) in link.entries.iter().enumerate() {
            let value = &mut self.values[first + state];
            *value = *value - self.messages.states[link.first + at];
        }
        let on = &mut self.values[2 * link.label + 1];
        *on = *on - self.messages.labels[at];
    }

    #[inline(always)]
    fn link_to_group(&mut self, link: &LinkEdge, at: usize) {
        self.take_out(link, at);
        let (off, on) = (self.values[2 * link.label], self.values[2 * link.label + 1]);
        let unlisted = log_sum(off, on);
        self.log += unlisted;
        let first = self.edges.frame.first[link.group];
        for &(state, [c0, c1]) in &link.entries {
            let here = log_sum(less(off, c0), less(on, c1));
            self.values[first + state] += relative(here, unlisted);
        }
    }

    #[inline(always)]
    fn link_to_label(&mut self, link: &LinkEdge, at: usize) {
        self.take_out(link, at);
        let values = &self.values[self.edges.frame.of(link.group)];
        let rest = total(values, |_| true).log_without(values, &link.entries, |entry| entry.0);
        let mut sums = [rest, rest];
        for &(state, costs) in &link.entries {
            for (sum, cost) in sums.iter_mut().zip(costs) {
                *sum = log_sum(*sum, less(values[state], cost));
            }
        }
        self.values[2 * link.label] += sums[0];
        self.values[2 * link.label + 1] += sums[1];
    }

    /// From the node on side `child` to the other node.
    #[inline(always)]
    fn table(&mut self, table: &TableEdge, child: usize) {
        let frame = &self.edges.frame;
        for side in 0..2 {
            let messages = &self.messages.tables[table.first[side]..];
            let values = &mut self.values[frame.of(table.nodes[side])];
            values.iter_mut().zip(messages).for_each(|(value, &m)| *value = *value - m);
        }
        let from = self.values[frame.of(table.nodes[child])].to_vec();
        let all = total(&from, |_| true);
        let unlisted = all.log();
        self.log += unlisted;
        let first = frame.first[table.nodes[1 - child]];
        for run in table.cells[1 - child].chunk_by(|a, b| a.0 == b.0) {
            let mut sum = all.log_without(&from, run, |cell| cell.1);
            for &(_, state, cost) in run {
                sum = log_sum(sum, less(from[state], cost));
            }
            self.values[first + run[0].0] += relative(sum, unlisted);
        }
    }
}

/// The difference of two logs. It is 0 where the second is minus infinity, because then the weight
/// is 0 anyway.
#[inline(always)]
fn relative<const L: usize>(log: Lanes<f64, L>, to: Lanes<f64, L>) -> Lanes<f64, L> {
    log.zip(to, |log, to| if to > f64::NEG_INFINITY { log - to } else { 0.0 })
}
