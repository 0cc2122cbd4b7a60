//! Layers for one-of groups.
//!
//! A group is *open* at a set X of labels when some but not all of its labels are in X. A quantity
//! that covers X has one layer for each subset S of the groups that are open at X. S contains the
//! groups whose active label is in X. Joining two disjoint sets joins disjoint subsets. A group
//! that becomes complete must be in the union, and is then dropped from the layers. With g open
//! groups there are 2^g layers and 3^g moves.

use super::Unfit;
use crate::model::Model;

/// At most this many groups may be open at once: 2⁶ layers.
pub(super) const MAX_OPEN: usize = 6;

/// A move from layers `a` and `b` of two quantities to a layer of their product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerMove {
    /// The layer of the first quantity.
    pub a: u8,
    /// The layer of the second quantity.
    pub b: u8,
    /// The layer of the product.
    pub to: u8,
}

/// The open groups of a set of labels, ascending, each with the number of its labels in the set.
pub(super) type Open = Vec<(usize, usize)>;

/// The groups of a model.
pub(super) struct Groups {
    size: Vec<usize>,
    /// The groups of each label.
    pub(super) of: Vec<Vec<usize>>,
}

impl Groups {
    pub(super) fn new(model: &Model) -> Result<Groups, Unfit> {
        let mut groups = Groups { size: Vec::new(), of: vec![Vec::new(); model.len()] };
        for (at, group) in model.one_of().iter().enumerate() {
            groups.size.push(group.labels.len());
            group.labels.iter().for_each(|label| groups.of[label.index()].push(at));
            if group.labels.is_empty() {
                return Err(Unfit::Shape(format!("the one-of group {} has no labels", group.name)));
            }
        }
        Ok(groups)
    }

    /// Joins disjoint sets. Returns the groups that are open afterwards, and the moves.
    pub(super) fn join(&self, a: &Open, b: &Open) -> Result<(Open, Vec<LayerMove>), Unfit> {
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
            let needs = format!("2^{} layers for interleaved one-of groups", open.len());
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
                moves.push(LayerMove { a: from as u8, b: with as u8, to: to.sum::<usize>() as u8 });
            }
        }
        Ok((open, moves))
    }
}
