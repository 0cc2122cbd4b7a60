//! Decides what relations imply, and whether two graphs have the same legal states.
//!
//! A relation is implied when no legal state violates it. Two graphs over the same labels are
//! equivalent when each implies every relation of the other.

use super::super::{LabelId, RelationGraph};
use super::logic::Logic;
use super::solve::{Solver, Verdict};
use crate::Error;

/// The answer to a question, or an error when the budget ran out.
pub(super) fn decided(verdict: &Verdict) -> Result<bool, Error> {
    match verdict {
        Verdict::Possible(_) => Ok(true),
        Verdict::Impossible => Ok(false),
        Verdict::Undecided => Err(Error::Budget {
            question: "deciding whether a legal state exists",
            budget: 2_000_000,
            help: "use fewer interlocking one-of groups",
        }),
    }
}

impl Logic {
    /// Whether every legal state with `child` on has `parent` on.
    ///
    /// # Errors
    /// [`Error::Budget`] when many one-of groups interlock.
    pub fn implies_hierarchy(&self, parent: LabelId, child: LabelId) -> Result<bool, Error> {
        Ok(!decided(&Solver::new(self).ask(&[child], &[parent]))?)
    }

    /// Whether no legal state has both labels on.
    ///
    /// # Errors
    /// [`Error::Budget`] when many one-of groups interlock.
    pub fn implies_exclusion(&self, a: LabelId, b: LabelId) -> Result<bool, Error> {
        Ok(!decided(&Solver::new(self).ask(&[a, b], &[]))?)
    }

    /// Whether any legal state exists.
    ///
    /// # Errors
    /// [`Error::Budget`] when many one-of groups interlock.
    pub fn is_satisfiable(&self) -> Result<bool, Error> {
        decided(&Solver::new(self).ask(&[], &[]))
    }

    /// Whether every legal state of `self` is legal in `other`, which has the same labels.
    fn implies_all(&self, other: &Logic) -> Result<bool, Error> {
        let mut solver = Solver::new(self);
        for (parent, child) in other.edges() {
            if decided(&solver.ask(&[child], &[parent]))? {
                return Ok(false);
            }
        }
        for set in &other.sets {
            // The pairs of a set that both graphs have need no check.
            let shared = set.labels.first().is_some_and(|&first| {
                let mut mine = self.sets_of(first).iter();
                mine.any(|&at| self.sets[at as usize].labels == set.labels)
            });
            if shared {
                continue;
            }
            for (at, &a) in set.labels.iter().enumerate() {
                for &b in &set.labels[at + 1..] {
                    if decided(&solver.ask(&[a, b], &[]))? {
                        return Ok(false);
                    }
                }
            }
        }
        for group in &other.groups {
            if !self.groups.contains(group) && decided(&solver.ask(&[], group))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl RelationGraph {
    /// Whether two graphs have the same labels (in any order) and the same legal states.
    ///
    /// Only hard relations count, because soft relations do not change which states are legal.
    ///
    /// ```
    /// use phex::graph::GraphBuilder;
    /// let mut chain = GraphBuilder::new();
    /// chain.hierarchy("animal", "dog", None).hierarchy("dog", "husky", None);
    /// let mut dense = chain.clone();
    /// dense.hierarchy("animal", "husky", None);
    /// assert!(chain.build()?.is_equivalent(&dense.build()?)?);
    /// # Ok::<(), phex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DifferentLabels`] when the labels differ, [`Error::Budget`] when many one-of groups
    /// interlock.
    pub fn is_equivalent(&self, other: &RelationGraph) -> Result<bool, Error> {
        let missing = |labels: &RelationGraph, from: &RelationGraph| {
            labels.labels().iter().find(|label| from.id(&label.name).is_none()).cloned()
        };
        for (label, which) in [(missing(self, other), "first"), (missing(other, self), "second")] {
            if let Some(label) = label {
                return Err(Error::DifferentLabels { label: label.name, which });
            }
        }
        let mine = Logic::hard(self);
        let theirs = Logic::hard(other).renamed(|id| {
            self.id(other.name(id)).expect("both graphs have the same labels, checked above")
        });
        Ok(mine.implies_all(&theirs)? && theirs.implies_all(&mine)?)
    }
}

impl Logic {
    /// The same constraints with other ids.
    fn renamed(&self, id: impl Fn(LabelId) -> LabelId) -> Logic {
        let rename = |labels: &[LabelId]| {
            let mut labels: Vec<LabelId> = labels.iter().map(|&label| id(label)).collect();
            labels.sort_unstable();
            labels
        };
        let edges: Vec<_> = self.edges().map(|(p, c)| (id(p), id(c))).collect();
        let topology = super::super::topology::Topology::new(self.len(), edges.iter().copied());
        let mut sets = self.sets.clone();
        sets.iter_mut().for_each(|set| set.labels = rename(&set.labels));
        Logic::new(topology, sets, self.groups.iter().map(|group| rename(group)).collect())
    }
}
