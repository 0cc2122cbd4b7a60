//! The recursion as flat arrays: which cells each step reads and writes, and the one-of layers.
//!
//! A quantity that covers a set X of labels has a layer for each subset S of the one-of groups that
//! are *open* at X (some but not all of their labels are in X): S are those whose label that is on
//! lies in X. Joining two disjoint sets joins disjoint subsets; a group that is then complete must
//! be in the union, and is dropped from the layers.

use std::ops::Range;

use super::Unfit;
use super::structure::Structure;
use crate::infer::Budget;
use crate::model::Model;

/// More groups than this are never open at once: 2⁶ layers.
const MAX_OPEN: usize = 6;

/// From layers `a` and `b` of two quantities to a layer of their product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Move {
    pub(super) a: u8,
    pub(super) b: u8,
    pub(super) to: u8,
}

/// Which loop a step takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// No layers.
    Plain,
    /// One group is open before and after, and below the child.
    Dual,
    /// By the list of moves.
    General,
}

/// A label, or the virtual root above all roots.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The virtual root has none.
    pub(super) label: Option<usize>,
    /// Where its inside messages are: off by layer, then on by layer.
    pub(super) message: usize,
    /// Where its outside messages are; leaves share a place, for theirs are used at once.
    pub(super) outside: usize,
    /// Where its own weights are, off and on, among the inside messages. Those of a leaf are its
    /// messages.
    pub(super) weight: usize,
    pub(super) layers: usize,
    pub(super) units: Range<usize>,
    /// Moves by the label itself: `b` is whether it is on.
    pub(super) own: Range<usize>,
    /// The moves change no layer: the label is in no group, and completes none.
    pub(super) same_layers: bool,
}

/// A counted set of siblings, or one uncounted child.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) steps: Range<usize>,
    /// The first cells: 1 a stream.
    pub(super) cells: usize,
    /// All edges cost the same: one stream serves both states of the parent.
    pub(super) shared: bool,
    /// Cells a layer at the end.
    pub(super) width: usize,
    /// Most layers at any step.
    pub(super) most_layers: usize,
    pub(super) layers: usize,
    /// Where its totals are: parent off by layer, then parent on by layer.
    pub(super) total: usize,
    /// Where the product of the totals up to this unit is.
    pub(super) product: usize,
    pub(super) product_layers: usize,
    pub(super) moves: Range<usize>,
    /// Log-weights: q^m for m = 0..=width.
    pub(super) turns: usize,
    /// Log-weights: the edges of m children below a parent that is off, when shared.
    pub(super) falls: usize,
    /// The first expectation of a pair of steps, when asked for pair by pair.
    pub(super) pairs: Option<usize>,
}

/// A child joins its unit.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) node: usize,
    /// Cells and layers before; those after follow.
    pub(super) input: usize,
    pub(super) input_width: usize,
    pub(super) input_layers: usize,
    pub(super) output: usize,
    pub(super) width: usize,
    pub(super) layers: usize,
    pub(super) kind: Kind,
    pub(super) moves: Range<usize>,
    /// Log-weight: the edge below a parent that is off.
    pub(super) fall: usize,
}

/// The flat arrays.
#[derive(Debug)]
pub(super) struct Plan {
    /// Children before parents, the virtual root last.
    pub(super) nodes: Vec<Node>,
    pub(super) units: Vec<Unit>,
    pub(super) steps: Vec<Step>,
    pub(super) moves: Vec<Move>,
    pub(super) log_weights: Vec<f64>,
    /// The nodes with children.
    pub(super) parents: Vec<usize>,
    /// Where the weights of each label off and on go.
    pub(super) slots: Vec<[usize; 2]>,
    /// Lengths of the arrays that the recursion fills.
    pub(super) messages: usize,
    pub(super) outside: usize,
    pub(super) cells: usize,
    pub(super) totals: usize,
    pub(super) pairs: usize,
    /// Cells of the widest unit's backward pass.
    pub(super) widest: usize,
    pub(super) longest: usize,
    /// The unit of each counted set.
    pub(super) unit_of_set: Vec<usize>,
    /// The last cell of a capped unit keeps what overflows; otherwise it is dropped.
    pub(super) saturate: bool,
    /// Whether any unit has more members than the cap.
    pub(super) capped: bool,
    pub(super) operations: f64,
    /// The step of each label within its unit.
    pub(super) place: Vec<usize>,
}

/// The open groups of a set of labels, ascending, with how many labels of each it has.
type Open = Vec<(usize, usize)>;

/// The groups of a model.
struct Groups {
    size: Vec<usize>,
    of: Vec<Vec<usize>>,
}

impl Groups {
    /// Joins disjoint sets: the groups open afterwards, and the moves.
    fn join(&self, a: &Open, b: &Open) -> Result<(Open, Vec<Move>), Unfit> {
        let mut all = a.clone();
        for &(group, count) in b {
            match all.iter_mut().find(|have| have.0 == group) {
                Some(have) => have.1 += count,
                None => all.push((group, count)),
            }
        }
        all.sort_unstable();
        let open: Open = all.iter().copied().filter(|g| g.1 < self.size[g.0]).collect();
        if open.len() > MAX_OPEN || b.len() > MAX_OPEN {
            let needs = format!("2^{} layers for one-of groups that are interleaved", open.len());
            return Err(Unfit::Budget { needs });
        }
        // Subsets as bit masks over `all`.
        let mask = |set: &Open, bits: usize| {
            let of = |&(at, &(group, _)): &(usize, &(usize, usize))| {
                let place = all.iter().position(|have| have.0 == group).unwrap_or(0);
                (bits >> at & 1) << place
            };
            set.iter().enumerate().map(|item| of(&item)).sum::<usize>()
        };
        let mut moves = Vec::new();
        for from in 0..1usize << a.len() {
            for with in 0..1usize << b.len() {
                let (s, t) = (mask(a, from), mask(b, with));
                let complete = all.iter().enumerate().filter(|(_, g)| g.1 == self.size[g.0]);
                if s & t != 0 || complete.into_iter().any(|(at, _)| (s | t) >> at & 1 == 0) {
                    continue;
                }
                let to = open.iter().enumerate().map(|(at, &(group, _))| {
                    let place = all.iter().position(|have| have.0 == group).unwrap_or(0);
                    ((s | t) >> place & 1) << at
                });
                moves.push(Move { a: from as u8, b: with as u8, to: to.sum::<usize>() as u8 });
            }
        }
        Ok((open, moves))
    }
}

impl Plan {
    pub(super) fn new(
        model: &Model,
        structure: &Structure,
        cap: usize,
        saturate: bool,
        budget: &Budget,
    ) -> Result<Plan, Unfit> {
        let n = model.len();
        let mut groups = Groups { size: Vec::new(), of: vec![Vec::new(); n] };
        for (at, group) in model.one_of().iter().enumerate() {
            groups.size.push(group.labels.len());
            group.labels.iter().for_each(|label| groups.of[label.index()].push(at));
            if group.labels.is_empty() {
                return Err(Unfit::Shape(format!("the one-of group {} is empty", group.name)));
            }
        }
        let plan = Plan {
            nodes: Vec::with_capacity(n + 1),
            units: Vec::new(),
            steps: Vec::with_capacity(n),
            moves: Vec::new(),
            log_weights: vec![0.0],
            parents: Vec::new(),
            slots: vec![[0; 2]; n],
            // The first takes weights of states that no group allows.
            messages: 1,
            // The first are those of leaves.
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
        let plan = emitter.plan;
        let bytes = plan.bytes() as f64;
        if plan.operations > budget.operations || bytes > budget.bytes {
            let needs = format!("{:.1e} operations a row, {bytes:.1e} bytes", plan.operations);
            return Err(Unfit::Budget { needs });
        }
        Ok(plan)
    }

    /// Where the messages of the virtual root are.
    pub(super) fn root(&self) -> usize {
        self.nodes.last().map_or(0, |node| node.message)
    }

    /// Tables, and scratch memory for a register of rows.
    pub(super) fn bytes(&self) -> u64 {
        let numbers = self.cells + self.messages + self.outside + 2 * self.totals + 2 * self.widest;
        let tables = self.log_weights.len() * 20 + self.steps.len() * 240 + self.units.len() * 200;
        (numbers * 64 + tables) as u64
    }
}

struct Emitter<'a> {
    plan: Plan,
    structure: &'a Structure,
    groups: Groups,
    open_at: Vec<Open>,
    node_of: Vec<usize>,
    cap: usize,
}

impl Emitter<'_> {
    fn moves(&mut self, moves: Vec<Move>) -> Range<usize> {
        let from = self.plan.moves.len();
        self.plan.moves.extend(moves);
        from..self.plan.moves.len()
    }

    /// The log-weights of 0, 1, 2, ... violations.
    fn weights(&mut self, cost: f64, many: usize) -> usize {
        let from = self.plan.log_weights.len();
        let weight = |m: usize| if m == 0 { 0.0 } else { -cost * m as f64 };
        // −0.0 · ∞ is kept out by m = 0, and 0 · m is 0.
        self.plan.log_weights.extend((0..many).map(weight));
        from
    }

    /// A node, its units before it. `family` is its place among the families.
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
        let off = moves.iter().filter(|step| step.b == 0).map(|step| Move { b: 0, ..*step });
        let mut own_moves: Vec<Move> = off.collect();
        let on = moves.iter().filter(|step| usize::from(step.b) == on);
        own_moves.extend(on.map(|step| Move { b: 1, ..*step }));
        self.plan.operations += 20.0 + 8.0 * own_moves.len() as f64;
        let layers = 1 << after.len();
        let message = self.plan.messages;
        self.plan.messages += 2 * layers;
        let (mut outside, mut weight) = (0, 0);
        if from == self.plan.units.len() {
            for way in &own_moves {
                let on = usize::from(way.b);
                let slot = message + on * layers + usize::from(way.to);
                if let Some(label) = label {
                    self.plan.slots[label][on] = slot;
                }
            }
        } else {
            self.plan.parents.push(self.plan.nodes.len());
            (outside, weight) = (self.plan.outside, self.plan.messages);
            self.plan.outside += 2 * layers;
            self.plan.messages += 2;
            if let Some(label) = label {
                self.plan.slots[label] = [weight, weight + 1];
            }
        }
        let stays = |way: &Move| way.a == way.to;
        let same_layers = own_moves.len() == 2 * layers && own_moves.iter().all(stays);
        let own = self.moves(own_moves);
        if let Some(label) = label {
            self.node_of[label] = self.plan.nodes.len();
            self.open_at[label] = after;
        }
        let units = from..self.plan.units.len();
        self.plan.nodes.push(Node {
            label,
            message,
            outside,
            weight,
            layers,
            units,
            own,
            same_layers,
        });
        Ok(())
    }

    /// A unit of these children; returns the groups open at it.
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
                (1, 1, 1) => Kind::Plain,
                (2, 2, 2) if moves.len() == 3 => Kind::Dual,
                _ => Kind::General,
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
            self.plan.steps.push(Step {
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
        self.plan.units.push(Unit {
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
