//! Recognises a hard forest in the relations of a model, and describes it as trees of which one path
//! is on.
//!
//! Siblings that exclude each other continue the tree of their parent. Where the children of a label
//! fall into several sets that can be on together, each set starts a tree of its own below it, and so
//! does each set of roots. One-of groups and exclusions between labels of the same tree only rule out
//! ends of paths: a group needs exactly one of its labels on the path, and an exclusion between a
//! label and one below it means that the lower one is never on.
//!
//! One soft relation leaves the whole model to `family`, also where other components are hard. An
//! engine for each component would have to join their best sets, samples, expectations and forms for
//! devices, and `family` handles the whole in one pass.

use std::collections::{HashMap, HashSet};

use super::program::{OutlineNode, OutlineTree, PathProgram};
use crate::graph::LabelId;
use crate::infer::Unfit;
use crate::lists::Lists;
use crate::model::{DenseForest, Model, Relation};

/// More pairs of siblings than this are not compared one by one.
const MOST_PAIRS: usize = 20_000_000;

/// Labels of which at most one is on, or exactly one.
struct LabelGroup {
    labels: Vec<usize>,
    one_of: bool,
}

/// Reads a model, or says why it is not a hard forest.
pub(super) fn recognise(model: &Model) -> Result<PathProgram, Unfit> {
    let n = model.len();
    let (parent, mut groups) = match model.dense() {
        None => sparse(model)?,
        Some(dense) => (dense_parents(model, dense)?, Vec::new()),
    };
    for group in model.one_of() {
        let labels: Vec<usize> = group.labels.iter().map(|label| label.index()).collect();
        if labels.is_empty() {
            return Err(Unfit::Shape(format!("the one-of group {} has no label", group.name)));
        }
        groups.push(LabelGroup { labels, one_of: true });
    }
    // The last family is that of the roots.
    let families = (0..n).map(|label| (parent[label].unwrap_or(n), label));
    let children = Lists::by_key(n + 1, families);
    let order = parents_first(&children, n);
    if order.len() < n {
        let reached: HashSet<usize> = order.into_iter().collect();
        let lost = (0..n).find(|label| !reached.contains(label)).unwrap_or(0);
        return Err(Unfit::Shape(format!("{} is on a cycle", model.names()[lost])));
    }
    let sets = if model.dense().is_some() {
        (0..=n).map(|family| vec![children.of(family).to_vec()]).collect()
    } else {
        exclusive_sets(model, &parent, &children, &groups)?
    };
    let mut outline = Outline::new(n, &parent, &order, &sets);
    outline.rule_out(model, &groups)?;
    Ok(PathProgram::new(n, &outline.nodes, &outline.trees))
}

/// The parent of each label, and the exclusions.
fn sparse(model: &Model) -> Result<(Vec<Option<usize>>, Vec<LabelGroup>), Unfit> {
    let name = |id: LabelId| model.names()[id.index()].as_str();
    let mut parent: Vec<Option<usize>> = vec![None; model.len()];
    let mut groups = Vec::new();
    for relation in model.relations() {
        let (labels, cost) = match relation {
            Relation::Hierarchy { parent: above, child, cost } => {
                let slot = &mut parent[child.index()];
                if let Some(other) = slot.filter(|&other| other != above.index()) {
                    return Err(Unfit::Shape(format!(
                        "{} has two parents, {} and {}",
                        name(*child),
                        model.names()[other],
                        name(*above)
                    )));
                }
                *slot = Some(above.index());
                (vec![*above, *child], *cost)
            }
            Relation::Exclusion { a, b, cost } => (vec![*a, *b], *cost),
            Relation::Group { labels, cost } => (labels.clone(), *cost),
            Relation::Pair { a, b, .. } => {
                let (a, b) = (name(*a), name(*b));
                return Err(Unfit::Shape(format!("{a} and {b} have a table of costs")));
            }
        };
        if cost != f64::INFINITY {
            let names: Vec<&str> = labels.iter().take(3).map(|&id| name(id)).collect();
            let names = names.join(", ");
            return Err(Unfit::Shape(format!("the relation of {names} is not hard")));
        }
        if !matches!(relation, Relation::Hierarchy { .. }) {
            let labels: Vec<usize> = labels.into_iter().map(LabelId::index).collect();
            if labels.iter().collect::<HashSet<_>>().len() < labels.len() {
                return Err(Unfit::Shape("an exclusion names a label twice".to_owned()));
            }
            if !labels.is_empty() {
                groups.push(LabelGroup { labels, one_of: false });
            }
        }
    }
    Ok((parent, groups))
}

/// The parent of each label of a dense forest in which all families exclude.
fn dense_parents(model: &Model, dense: &DenseForest) -> Result<Vec<Option<usize>>, Unfit> {
    let n = model.len();
    let parent: Vec<Option<usize>> =
        dense.parent.iter().map(|parent| parent.map(LabelId::index)).collect();
    let mut size = vec![0; n + 1];
    for label in 0..n {
        size[parent[label].unwrap_or(n)] += 1;
        if parent[label].is_some() && dense.edge_cost[label] != f64::INFINITY {
            let name = &model.names()[label];
            return Err(Unfit::Shape(format!("the relation of {name} to its parent is not hard")));
        }
    }
    let soft = |family: &usize| size[*family] > 1 && dense.family_cost[*family] != f64::INFINITY;
    match (0..=n).find(soft) {
        None => Ok(parent),
        Some(family) => {
            let whose = model.names().get(family).map_or("the roots", String::as_str);
            Err(Unfit::Shape(format!(
                "dense semantics, and the family of {whose} is not exclusive"
            )))
        }
    }
}

/// Labels that can be reached from the roots, parents before children.
fn parents_first(children: &Lists<usize>, roots: usize) -> Vec<usize> {
    let mut order = children.of(roots).to_vec();
    let mut next = 0;
    while let Some(&label) = order.get(next) {
        next += 1;
        order.extend_from_slice(children.of(label));
    }
    order
}

/// Splits each family into sets whose labels exclude each other; labels of different sets do not.
fn exclusive_sets(
    model: &Model,
    parent: &[Option<usize>],
    children: &Lists<usize>,
    groups: &[LabelGroup],
) -> Result<Vec<Vec<Vec<usize>>>, Unfit> {
    let n = parent.len();
    // What the groups say about each family.
    let mut within: Vec<Vec<Vec<usize>>> = vec![Vec::new(); n + 1];
    for group in groups {
        let mut by_family: Vec<(usize, usize)> =
            group.labels.iter().map(|&label| (parent[label].unwrap_or(n), label)).collect();
        by_family.sort_unstable();
        for siblings in by_family.chunk_by(|a, b| a.0 == b.0).filter(|chunk| chunk.len() > 1) {
            within[siblings[0].0].push(siblings.iter().map(|&(_, label)| label).collect());
        }
    }
    let mut pairs_left = MOST_PAIRS;
    let mut all = Vec::with_capacity(n + 1);
    for (family, given) in within.iter().enumerate() {
        let siblings = children.of(family);
        if given.iter().any(|set| set.len() == siblings.len()) || siblings.len() < 2 {
            all.push(if siblings.is_empty() { Vec::new() } else { vec![siblings.to_vec()] });
            continue;
        }
        let sets = connected(siblings, given);
        for set in sets.iter().filter(|set| set.len() > 1) {
            check_clique(model, set, given, &mut pairs_left)?;
        }
        all.push(sets);
    }
    Ok(all)
}

/// Splits siblings into sets that are connected by the given ones.
fn connected(siblings: &[usize], given: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let place: HashMap<usize, usize> =
        siblings.iter().enumerate().map(|(at, &label)| (label, at)).collect();
    let mut leader: Vec<usize> = (0..siblings.len()).collect();
    fn find(leader: &mut [usize], mut at: usize) -> usize {
        while leader[at] != at {
            leader[at] = leader[leader[at]];
            at = leader[at];
        }
        at
    }
    for set in given {
        let first = find(&mut leader, place[&set[0]]);
        for label in &set[1..] {
            let other = find(&mut leader, place[label]);
            leader[other] = first;
        }
    }
    let mut sets: Vec<Vec<usize>> = Vec::new();
    let mut set_of: HashMap<usize, usize> = HashMap::new();
    for (at, &label) in siblings.iter().enumerate() {
        let set = *set_of.entry(find(&mut leader, at)).or_insert(sets.len());
        if set == sets.len() {
            sets.push(Vec::new());
        }
        sets[set].push(label);
    }
    sets
}

/// Whether all pairs of a set exclude each other.
fn check_clique(
    model: &Model,
    set: &[usize],
    given: &[Vec<usize>],
    pairs_left: &mut usize,
) -> Result<(), Unfit> {
    let members: HashSet<usize> = set.iter().copied().collect();
    let mine = || given.iter().filter(|group| members.contains(&group[0]));
    if mine().any(|group| group.len() == set.len()) {
        return Ok(());
    }
    let listed: usize = mine().map(|group| group.len() * group.len()).sum();
    if listed > *pairs_left {
        return Err(Unfit::Budget { needs: "too many pairs of siblings to compare".to_owned() });
    }
    *pairs_left -= listed;
    let mut pairs: HashSet<(usize, usize)> = HashSet::new();
    for group in mine() {
        for (at, &a) in group.iter().enumerate() {
            pairs.extend(group[at + 1..].iter().map(|&b| (a.min(b), a.max(b))));
        }
    }
    let misses = |a: usize, b: usize| !pairs.contains(&(a.min(b), a.max(b)));
    for (at, &a) in set.iter().enumerate() {
        if let Some(&b) = set[at + 1..].iter().find(|&&b| misses(a, b)) {
            let (a, b) = (&model.names()[a], &model.names()[b]);
            return Err(Unfit::Shape(format!("{a} does not exclude {b}, unlike their siblings")));
        }
    }
    Ok(())
}

/// The trees before their layout, with labels as nodes.
struct Outline {
    nodes: Vec<OutlineNode>,
    trees: Vec<OutlineTree>,
    /// Parents before children.
    order: Vec<usize>,
}

impl Outline {
    fn new(
        n: usize,
        parent: &[Option<usize>],
        order: &[usize],
        sets: &[Vec<Vec<usize>>],
    ) -> Outline {
        let unknown = OutlineNode { label: 0, parent: None, tree: 0, is_end: true };
        let mut nodes = vec![unknown; n];
        let mut trees = Vec::new();
        // Families after the label that they are below: the roots are below none.
        for family in std::iter::once(n).chain(order.iter().copied()) {
            let continues = family < n && sets[family].len() == 1;
            for set in &sets[family] {
                let tree = if continues { nodes[family].tree } else { trees.len() as u32 };
                if !continues {
                    let above = (family < n).then_some(family as u32);
                    trees.push(OutlineTree { above, may_be_empty: true });
                }
                for &label in set {
                    let inside = parent[label].filter(|_| continues).map(|above| above as u32);
                    nodes[label] =
                        OutlineNode { label: label as u32, parent: inside, tree, is_end: true };
                }
            }
        }
        Outline { nodes, trees, order: order.to_vec() }
    }

    /// Rules out ends that leave a group without its label, or with two.
    fn rule_out(&mut self, model: &Model, groups: &[LabelGroup]) -> Result<(), Unfit> {
        let n = self.nodes.len();
        let mut never = vec![false; n];
        // For each node, how many groups have their label there; for each tree, how many it needs.
        let mut gives = vec![0u32; n];
        let mut needs = vec![0u32; self.trees.len()];
        let (enter, leave) = self.intervals();
        for group in groups {
            let tree = self.nodes[group.labels[0]].tree;
            if let Some(&other) = group.labels.iter().find(|&&label| self.nodes[label].tree != tree)
            {
                let (a, b) = (&model.names()[group.labels[0]], &model.names()[other]);
                let what = if group.one_of { "one-of" } else { "exclusion" };
                return Err(Unfit::Shape(format!(
                    "an {what} group has {a} and {b}, which are in parts that can be on together"
                )));
            }
            let mut members = group.labels.clone();
            members.sort_by_key(|&label| enter[label]);
            let mut covered = 0;
            for label in members {
                // Below another member: both would be on.
                if enter[label] < covered {
                    never[label] = true;
                    continue;
                }
                covered = leave[label];
                gives[label] += u32::from(group.one_of);
            }
            needs[tree as usize] += u32::from(group.one_of);
        }
        self.apply(&mut never, &mut gives, &mut needs);
        Ok(())
    }

    /// Places of labels in a walk of their trees: the labels below one are an interval.
    fn intervals(&self) -> (Vec<u32>, Vec<u32>) {
        let n = self.nodes.len();
        let mut size = vec![1u32; n];
        for &label in self.order.iter().rev() {
            if let Some(parent) = self.nodes[label].parent {
                size[parent as usize] += size[label];
            }
        }
        let (mut enter, mut leave, mut next) = (vec![0; n], vec![0; n], vec![0; n]);
        // Place 0 is before all of them.
        let mut next_top = 1;
        for &label in &self.order {
            let slot = match self.nodes[label].parent {
                Some(parent) => &mut next[parent as usize],
                None => &mut next_top,
            };
            enter[label] = *slot;
            leave[label] = *slot + size[label];
            *slot = leave[label];
            next[label] = enter[label] + 1;
        }
        (enter, leave)
    }

    /// Decides ends and empty trees, trees after those that hang below them: a tree that needs a
    /// label needs the node that it hangs from, and one without a state makes it impossible.
    fn apply(&mut self, never: &mut [bool], gives: &mut [u32], needs: &mut [u32]) {
        let of_tree = self.order.iter().map(|&label| (self.nodes[label].tree as usize, label));
        let members = Lists::by_key(self.trees.len(), of_tree);
        for tree in (0..self.trees.len()).rev() {
            let mut has_end = false;
            for &label in members.of(tree) {
                if let Some(parent) = self.nodes[label].parent {
                    never[label] |= never[parent as usize];
                    gives[label] += gives[parent as usize];
                }
                self.nodes[label].is_end = !never[label] && gives[label] == needs[tree];
                has_end |= self.nodes[label].is_end;
            }
            self.trees[tree].may_be_empty = needs[tree] == 0;
            if let Some(above) = self.trees[tree].above.map(|above| above as usize) {
                never[above] |= !has_end && needs[tree] > 0;
                if needs[tree] > 0 {
                    gives[above] += 1;
                    needs[self.nodes[above].tree as usize] += 1;
                }
            }
        }
    }
}
