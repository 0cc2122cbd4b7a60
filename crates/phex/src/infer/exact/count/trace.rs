//! Reads a label set off the tables of an inside pass, from the top down.

use super::CountForest;
use super::semiring::Weight;
use super::tables::{Inside, Unary};

/// The position of the largest log-weight, or `None` when all are impossible.
pub(super) fn largest(weights: &[f64]) -> Option<usize> {
    let best = (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b]))?;
    (weights[best] > f64::NEG_INFINITY).then_some(best)
}

/// Walks down the forest. `choose` picks among log-weights: at random for a sample, or the largest
/// for the best set (with tables of maxima).
pub(super) fn trace<W: Weight>(
    forest: &CountForest,
    inside: &Inside<W>,
    unary: &[Unary],
    choose: &mut dyn FnMut(&[f64]) -> Option<usize>,
) -> Option<Vec<bool>> {
    let n = forest.parent.len();
    let mut on = vec![false; n];
    let root = &inside.merged[n];
    let total = &root[root.len() - 1];
    let full = forest.layers - 1;
    let weights: Vec<f64> = (0..total.shape.counts)
        .map(|count| match forest.is_overflow(count) {
            false => total.cells[total.shape.at(0, count, full)].log(),
            true => f64::NEG_INFINITY,
        })
        .collect();
    // Each entry holds a node, the number of ancestors on that its children see, and the count and
    // groups of the children together.
    let mut stack = vec![(n, 0, choose(&weights)?, full)];
    while let Some((node, above, mut count, mut layer)) = stack.pop() {
        for (step, &child) in forest.children[node].iter().enumerate().rev() {
            let (before, sub) = (&inside.merged[node][step], &inside.subtree[child]);
            let mut options = Vec::new();
            let mut weights = Vec::new();
            for small in 0..sub.shape.counts.min(count + 1) {
                let big = count - small;
                if big >= before.shape.counts {
                    continue;
                }
                for &(mine, its, both) in &forest.disjoint {
                    if both != layer {
                        continue;
                    }
                    let cost = if big * small == 0 || forest.family_cost[node] == 0.0 {
                        0.0
                    } else {
                        forest.family_cost[node] * (big * small) as f64
                    };
                    let x = before.cells[before.shape.at(above, big, mine)].log();
                    let y = sub.cells[sub.shape.at(above, small, its)].log();
                    options.push((big, mine, small, its));
                    weights.push(x + y - cost);
                }
            }
            let (big, mine, small, its) = options[choose(&weights)?];
            (count, layer) = (big, mine);
            // The child itself: on or off.
            let merged = &inside.merged[child][forest.children[child].len()];
            let mut options = Vec::new();
            let mut weights = Vec::new();
            for state in 0..2usize {
                for within in 0..forest.layers {
                    let fits = forest.layer_with(child, state, within) == Some(its);
                    let Some(left) = small.checked_sub(state).filter(|_| fits) else { continue };
                    if left >= merged.shape.counts {
                        continue;
                    }
                    let own: W = forest.own_weight(child, above, state, unary[child]);
                    let rest = merged.cells[merged.shape.at(above + state, left, within)];
                    options.push((state, left, within));
                    weights.push(own.log() + rest.log());
                }
            }
            let (state, left, within) = options[choose(&weights)?];
            on[child] = state == 1;
            stack.push((child, above + state, left, within));
        }
    }
    Some(on)
}
