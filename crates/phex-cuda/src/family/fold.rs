//! Leaves of a one-of group, folded into one child or into their parent.
//!
//! Of the leaves of one group below one parent at most one is on, and the group gives them a weight off of 1. So together
//! they act as one child, whose weight off is 1 and whose weight on is the sum `S` of theirs. A parent that has no other
//! children has the messages (off, on; without and with a label of the group)
//!
//! ```text
//! w₀, w₀ f S;  w₁, w₁ S        w its own weights, f the edge's weight below a parent that is off
//! ```
//!
//! and needs no counts at all. A leaf's marginal is its share of `S` times that of the set. Cost: O(leaves) per row. In a
//! large hierarchy, most parents have only leaves.

use phex::infer::compiled::{Forest, ForestNode, ForestProgram, JoinStep, SiblingUnit};

use super::units::{UnitForm, form};

/// Leaves that were folded into one child, or into their parent.
#[derive(Debug)]
pub(super) struct LeafSet {
    /// The node that stands for them.
    pub(super) node: usize,
    /// The weight of an edge below a parent that is off, if that node is their parent.
    pub(super) fall: Option<usize>,
    pub(super) labels: Vec<usize>,
}

/// A plan without those leaves.
#[derive(Debug)]
pub(super) struct FoldedPlan {
    pub(super) plan: ForestProgram,
    pub(super) sets: Vec<LeafSet>,
}

/// Weights below e⁻⁸⁰ are checked in each row; those of a folded parent are not.
const SMALLEST: f64 = -80.0;

struct Folding<'a> {
    plan: &'a ForestProgram,
    /// Whether a label's group gives it a weight off of 1.
    shifted: Vec<bool>,
}

impl FoldedPlan {
    /// Which nodes are parents that were folded.
    pub(super) fn parents(&self) -> Vec<bool> {
        let mut all = vec![false; self.plan.nodes.len()];
        self.sets.iter().filter(|set| set.fall.is_some()).for_each(|set| all[set.node] = true);
        all
    }
}

impl Folding<'_> {
    /// The label of a child that may be folded: a leaf that is off without and on with a label of the group.
    fn leaf(&self, step: &JoinStep) -> Option<usize> {
        let node = &self.plan.nodes[step.node];
        let label = node.label.filter(|&label| self.shifted[label])?;
        let places = [node.message, node.message + 3];
        let fits = node.units.is_empty() && node.layers == 2 && self.plan.slots[label] == places;
        fits.then_some(label)
    }

    fn leaves(&self, unit: &SiblingUnit) -> Vec<usize> {
        let is_dual = form(self.plan, unit) == UnitForm::Dual;
        let steps = self.plan.steps[unit.steps.clone()].iter().filter(|_| is_dual);
        steps.filter_map(|step| self.leaf(step)).collect()
    }

    /// The leaves of a parent that has no other children and can be folded.
    fn whole(&self, node: &ForestNode) -> Option<Vec<usize>> {
        let own = node.label.is_some() && node.units.len() == 1 && node.same_layers;
        let unit = self.plan.units[node.units.clone()].first().filter(|_| own)?;
        let fall = self.plan.log_weights[unit.falls + 1];
        let leaves = self.leaves(unit);
        let fits = leaves.len() == unit.steps.len() && node.layers == 2;
        (fits && (fall >= SMALLEST || fall == f64::NEG_INFINITY)).then_some(leaves)
    }
}

/// Folds all leaves that can be folded.
pub(super) fn fold(forest: &Forest<'_>) -> FoldedPlan {
    let from = forest.plan;
    let mut shifted = vec![false; forest.bias.len()];
    forest.shifted.iter().flatten().for_each(|&label| shifted[label] = true);
    let folding = Folding { plan: from, shifted };
    let mut plan =
        ForestProgram { units: Vec::new(), steps: Vec::new(), parents: Vec::new(), ..from.clone() };
    let mut sets = Vec::new();
    for &at in &from.parents {
        let node = &from.nodes[at];
        if let Some(labels) = folding.whole(node) {
            let fall = Some(from.units[node.units.start].falls + 1);
            sets.push(LeafSet { node: at, fall, labels });
            plan.nodes[at].units = 0..0;
            continue;
        }
        let first = plan.units.len();
        for unit in &from.units[node.units.clone()] {
            let leaves = folding.leaves(unit);
            let is_set = leaves.len() > 1;
            let start = plan.steps.len();
            let mut stands = None;
            for step in &from.steps[unit.steps.clone()] {
                if is_set && folding.leaf(step).is_some() {
                    if stands.is_some() {
                        continue;
                    }
                    stands = Some(step.node);
                }
                // Layers stay as they are: the first of the leaves has opened the group.
                let input_width = plan.steps.len() - start + 1;
                let width = input_width + 1;
                let step = step.clone();
                plan.steps.push(if is_set {
                    JoinStep { input_width, width, ..step }
                } else {
                    step
                });
            }
            sets.extend(stands.map(|node| LeafSet { node, fall: None, labels: leaves }));
            let steps = start..plan.steps.len();
            let width = if is_set { steps.len() + 1 } else { unit.width };
            plan.units.push(SiblingUnit { steps, width, ..unit.clone() });
        }
        plan.nodes[at].units = first..plan.units.len();
        plan.parents.push(at);
    }
    place(&mut plan);
    for set in sets.iter().filter(|set| set.fall.is_some()) {
        let ForestNode { label, message, .. } = plan.nodes[set.node];
        // Until the leaves are weighed: off and on, without a label of the group.
        label.into_iter().for_each(|label| plan.slots[label] = [message, message + 2]);
    }
    FoldedPlan { plan, sets }
}

/// Assigns the places of messages and weights again: siblings side by side, then the weights of parents.
fn place(plan: &mut ForestProgram) {
    let root = plan.nodes.len() - 1;
    plan.messages = 1;
    let mut old = vec![0; plan.nodes.len()];
    for at in plan.steps.iter().map(|step| step.node).chain([root]) {
        let node = &mut plan.nodes[at];
        old[at] = node.message;
        node.message = plan.messages;
        plan.messages += 2 * node.layers;
    }
    for &at in &plan.parents {
        plan.nodes[at].weight = plan.messages;
        plan.messages += 2;
    }
    for (at, node) in plan.nodes.iter().enumerate() {
        let Some(label) = node.label else { continue };
        let slots = &mut plan.slots[label];
        if !node.units.is_empty() {
            *slots = [node.weight, node.weight + 1];
        } else if old[at] > 0 {
            // A leaf's weights lie among its messages, as its layers say; 0 means no place.
            let moved = |slot: usize| if slot == 0 { 0 } else { slot - old[at] + node.message };
            *slots = slots.map(moved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::label_places;
    use super::super::tests::forest;
    use super::*;
    use phex::infer::compiled::Compiled;

    fn folded(one_of: bool) -> (FoldedPlan, usize) {
        let engine = forest(one_of);
        let Compiled::Family(forest) = engine.compiled() else { panic!("a forest") };
        (fold(&forest), forest.plan.messages)
    }

    #[test]
    fn without_a_group_nothing_folds() {
        let (folded, messages) = folded(false);
        assert!(folded.sets.is_empty());
        assert_eq!(folded.plan.messages, messages);
    }

    #[test]
    fn leaves_of_a_group_fold_into_a_child_or_into_their_parent() {
        let (folded, messages) = folded(true);
        let plan = &folded.plan;
        // 40 families. In those of seven or more children, one child has a leaf of its own, and the others fold into one.
        let [whole, beside]: [Vec<&LeafSet>; 2] = [true, false]
            .map(|whole| folded.sets.iter().filter(|s| s.fall.is_some() == whole).collect());
        let nested = (0..40).filter(|family| family % 12 >= 6).count();
        assert_eq!((whole.len(), beside.len()), (40, nested));
        assert!(beside.iter().all(|set| set.labels.len() > 1));
        // The labels below the root, some of which have two children; the root; and the virtual root.
        assert_eq!(plan.parents.len(), nested + 2);
        assert_eq!(plan.steps.len(), 40 + 2 * nested + 1);
        // Every label has a place of its own, and all numbers together are fewer than before.
        let places = label_places(&folded);
        let mut used: Vec<i32> = places.members.clone();
        let is_member = |label: &usize| folded.sets.iter().any(|set| set.labels.contains(label));
        let others = (0..plan.slots.len()).filter(|label| !is_member(label));
        used.extend(others.flat_map(|label| places.slots[label]));
        let count = used.len();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), count);
        assert!(used.iter().all(|&place| (1..places.messages as i32).contains(&place)));
        assert!(places.messages < messages);
    }
}
