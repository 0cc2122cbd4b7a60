//! Builds the program of the recursion from the structure of a forest.

use std::ops::Range;

use super::Unfit;
use super::layers::{Groups, LayerMove, MAX_OPEN, Open};
use super::plan::{ForestNode, ForestProgram, JoinStep, SiblingUnit, StepKind};
use super::structure::Structure;
use crate::infer::Budget;
use crate::model::Model;

impl ForestProgram {
    pub(super) fn new(
        model: &Model,
        structure: &Structure,
        cap: usize,
        saturate: bool,
        budget: &Budget,
    ) -> Result<ForestProgram, Unfit> {
        let n = model.len();
        let groups = Groups::new(model)?;
        let plan = ForestProgram {
            nodes: Vec::with_capacity(n + 1),
            units: Vec::new(),
            steps: Vec::with_capacity(n),
            moves: Vec::new(),
            log_weights: vec![0.0],
            parents: Vec::new(),
            slots: vec![[0; 2]; n],
            // The first slot takes the weights of states that no group allows.
            messages: 1,
            // The first slots are those of leaves.
            outside: 2 << MAX_OPEN,
            cells: 0,
            totals: 0,
            pairs: 0,
            widest: 0,
            longest: 0,
            unit_of_set: vec![0; structure.sets.len()],
            saturate,
            capped: false,
            operations: 0.0,
            place: vec![0; n],
        };
        let open_at = vec![Vec::new(); n];
        let node_of = vec![0; n];
        let mut emitter = Emitter { plan, structure, groups, open_at, node_of, cap };
        for &label in &structure.order {
            emitter.node(label, Some(label))?;
        }
        emitter.node(n, None)?;
        let mut plan = emitter.plan;
        plan.place_messages();
        let bytes = plan.bytes() as f64;
        if plan.operations > budget.operations || bytes > budget.bytes {
            let needs = format!("{:.1e} operations per row, {bytes:.1e} bytes", plan.operations);
            return Err(Unfit::Budget { needs });
        }
        Ok(plan)
    }

    /// Lays out the messages in the order of the steps, so that siblings are adjacent. The weights
    /// of labels with children follow.
    fn place_messages(&mut self) {
        let root = self.nodes.len() - 1;
        for at in self.steps.iter().map(|step| step.node).chain([root]) {
            let node = &mut self.nodes[at];
            node.message = self.messages;
            self.messages += 2 * node.layers;
        }
        for node in &mut self.nodes {
            let mut slots = [0; 2];
            if node.units.is_empty() {
                for way in &self.moves[node.own.clone()] {
                    let on = usize::from(way.b);
                    slots[on] = node.message + on * node.layers + usize::from(way.to);
                }
            } else {
                node.weight = self.messages;
                self.messages += 2;
                node.outside = self.outside;
                self.outside += 2 * node.layers;
                slots = [node.weight, node.weight + 1];
            }
            if let Some(label) = node.label {
                self.slots[label] = slots;
            }
        }
    }
}

struct Emitter<'a> {
    plan: ForestProgram,
    structure: &'a Structure,
    groups: Groups,
    open_at: Vec<Open>,
    node_of: Vec<usize>,
    cap: usize,
}

impl Emitter<'_> {
    fn moves(&mut self, moves: Vec<LayerMove>) -> Range<usize> {
        let from = self.plan.moves.len();
        self.plan.moves.extend(moves);
        from..self.plan.moves.len()
    }

    /// The log-weights of 0, 1, 2, ... violations.
    fn weights(&mut self, cost: f64, many: usize) -> usize {
        let from = self.plan.log_weights.len();
        let weight = |m: usize| if m == 0 { 0.0 } else { -cost * m as f64 };
        // For m = 0 the product −0.0 · ∞ is avoided, and 0 · m is 0.
        self.plan.log_weights.extend((0..many).map(weight));
        from
    }

    /// Emits a node after its units. `family` is its index among the families.
    fn node(&mut self, family: usize, label: Option<usize>) -> Result<(), Unfit> {
        let structure = self.structure;
        let mut units: Vec<(Vec<usize>, Option<usize>)> = Vec::new();
        let mut counted = vec![];
        for &set in &structure.sets_of[family] {
            counted.extend_from_slice(&structure.sets[set].labels);
            units.push((structure.sets[set].labels.clone(), Some(set)));
        }
        counted.sort_unstable();
        let rest = structure.children[family].iter();
        let rest = rest.filter(|label| counted.binary_search(label).is_err());
        units.extend(rest.map(|&label| (vec![label], None)));
        // Neighbours that share a group close it early.
        let first_group = |label: &usize| self.open_at[*label].first().map(|group| group.0);
        units.iter_mut().for_each(|unit| unit.0.sort_by_key(|label| (first_group(label), *label)));
        units.sort_by_key(|unit| (unit.0.iter().map(first_group).min(), unit.0[0]));
        let from = self.plan.units.len();
        let mut open: Open = Vec::new();
        for (at, (labels, set)) in units.into_iter().enumerate() {
            let total = self.unit(&labels, set)?;
            let (joined, moves) = self.groups.join(&open, &total)?;
            let moves = self.moves(moves);
            let last = self.plan.units.len() - 1;
            // The first total is its own product.
            let product = if at > 0 { self.plan.totals } else { self.plan.units[last].total };
            if at > 0 {
                self.plan.totals += 2 << joined.len();
                self.plan.operations += 12.0 * moves.len() as f64;
            }
            let unit = &mut self.plan.units[last];
            (unit.product, unit.product_layers, unit.moves) = (product, 1 << joined.len(), moves);
            open = joined;
        }
        let own: Open = match label {
            Some(label) => self.groups.of[label].iter().map(|&group| (group, 1)).collect(),
            None => Vec::new(),
        };
        let on = (1 << own.len()) - 1;
        let (after, moves) = self.groups.join(&open, &own)?;
        let off = moves.iter().filter(|step| step.b == 0).map(|step| LayerMove { b: 0, ..*step });
        let mut own_moves: Vec<LayerMove> = off.collect();
        let on = moves.iter().filter(|step| usize::from(step.b) == on);
        own_moves.extend(on.map(|step| LayerMove { b: 1, ..*step }));
        self.plan.operations += 20.0 + 8.0 * own_moves.len() as f64;
        let layers = 1 << after.len();
        if from < self.plan.units.len() {
            self.plan.parents.push(self.plan.nodes.len());
        }
        let stays = |way: &LayerMove| way.a == way.to;
        let same_layers = own_moves.len() == 2 * layers && own_moves.iter().all(stays);
        let own = self.moves(own_moves);
        if let Some(label) = label {
            self.node_of[label] = self.plan.nodes.len();
            self.open_at[label] = after;
        }
        let units = from..self.plan.units.len();
        self.plan.nodes.push(ForestNode {
            label,
            message: 0,
            outside: 0,
            weight: 0,
            layers,
            units,
            own,
            same_layers,
        });
        Ok(())
    }

    /// Emits a unit of these children, and returns the groups that are open at it.
    fn unit(&mut self, labels: &[usize], set: Option<usize>) -> Result<Open, Unfit> {
        let structure = self.structure;
        let costs = labels.iter().map(|&label| structure.edge_cost[label]);
        let first = structure.edge_cost[labels[0]];
        let shared = costs.clone().all(|cost| cost == first);
        let streams = if shared { 1 } else { 2 };
        let (from, cells) = (self.plan.steps.len(), self.plan.cells);
        let mut open: Open = Vec::new();
        let (mut input, mut input_width, mut input_layers) = (cells, 1, 1);
        self.plan.cells += streams;
        let mut most_layers = 1;
        for (at, (&label, cost)) in labels.iter().zip(costs).enumerate() {
            let (after, moves) = self.groups.join(&open, &self.open_at[label])?;
            let child_layers = 1 << self.open_at[label].len();
            let layers = 1 << after.len();
            let kind = match (input_layers, child_layers, layers) {
                (1, 1, 1) => StepKind::Plain,
                (2, 2, 2) if moves.len() == 3 => StepKind::Dual,
                _ => StepKind::General,
            };
            let width = (at + 1).min(self.cap) + 1;
            let output = self.plan.cells;
            self.plan.cells += streams * layers * width;
            self.plan.operations += 14.0 * (streams * moves.len() * width) as f64;
            let moves = self.moves(moves);
            let fall = self.plan.log_weights.len();
            self.plan.log_weights.push(-cost);
            let node = self.node_of[label];
            self.plan.place[label] = at;
            self.plan.steps.push(JoinStep {
                node,
                input,
                input_width,
                input_layers,
                output,
                width,
                layers,
                kind,
                moves,
                fall,
            });
            (input, input_width, input_layers, open) = (output, width, layers, after);
            most_layers = most_layers.max(layers);
        }
        let k = labels.len();
        let width = input_width;
        let cost = set.map_or(0.0, |set| structure.sets[set].cost);
        let turns = self.weights(cost, width + 1);
        let falls = self.weights(first, width + 1);
        let total = self.plan.totals;
        self.plan.totals += 2 * input_layers;
        let by_pairs = set.is_some_and(|set| structure.sets[set].by_pairs);
        let pairs = by_pairs.then_some(self.plan.pairs);
        if by_pairs {
            self.plan.pairs += k * k;
        }
        self.plan.capped |= k > self.cap;
        self.plan.widest = self.plan.widest.max(2 * most_layers * width);
        self.plan.longest = self.plan.longest.max(if by_pairs { k } else { 0 });
        if let Some(set) = set {
            self.plan.unit_of_set[set] = self.plan.units.len();
        }
        self.plan.units.push(SiblingUnit {
            steps: from..self.plan.steps.len(),
            cells,
            shared,
            width,
            most_layers,
            layers: input_layers,
            total,
            product: 0,
            product_layers: 0,
            moves: 0..0,
            turns,
            falls,
            pairs,
        });
        Ok(open)
    }
}
