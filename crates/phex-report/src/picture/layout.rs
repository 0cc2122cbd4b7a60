//! Where the labels of a picture stand, and how its exclusions are marked; free of any unit.
//!
//! The layout is a tidy tree from left to right. Every label hangs below its deepest parent. The leaves of
//! the tree that this makes stand in rows of their own, the children of a label in consecutive rows, and
//! the label itself at their middle. Its layer is the length of the longest path from a root. O(n).
//!
//! Renderers turn layers and rows into their own units: the SVG picture of this crate, and the figures of
//! the Python package.

use phex::graph::closure::{Logic, SetSource};
use phex::graph::{LabelId, RelationGraph, Strength};

/// A layer and a row for each label, by its index.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex_report::GraphLayout;
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
/// let layout = GraphLayout::new(&builder.build()?);
/// assert_eq!(layout.layers, [0, 1, 1]);
/// assert_eq!(layout.rows, [0.5, 0.0, 1.0]);
/// assert_eq!(layout.height, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GraphLayout {
    /// The layer of each label; roots are in layer 0, on the left.
    pub layers: Vec<usize>,
    /// The row of each label, counted from 0 at the top. Labels with children may stand between rows.
    pub rows: Vec<f64>,
    /// The parent that each label hangs below; `None` for roots.
    pub parents: Vec<Option<LabelId>>,
    /// How many rows there are.
    pub height: usize,
}

impl GraphLayout {
    /// Lays out a graph. O(n + e).
    pub fn new(graph: &RelationGraph) -> GraphLayout {
        let topology = graph.topology();
        let deepest = |id: LabelId| {
            // Of several the first: `max_by_key` keeps the last.
            let parents = topology.parents(id).iter().rev().copied();
            parents.max_by_key(|&parent| topology.depth(parent))
        };
        let parents: Vec<Option<LabelId>> = graph.ids().map(deepest).collect();
        let mut below: Vec<Vec<LabelId>> = vec![Vec::new(); graph.len()];
        for id in graph.ids() {
            if let Some(parent) = parents[id.index()] {
                below[parent.index()].push(id);
            }
        }
        let mut rows = vec![0.0; graph.len()];
        let mut height = 0;
        // Roots with children come first, then labels that stand alone.
        let roots = graph.ids().filter(|id| parents[id.index()].is_none());
        let (alone, trees): (Vec<LabelId>, Vec<LabelId>) =
            roots.partition(|id| below[id.index()].is_empty());
        for root in trees.into_iter().chain(alone) {
            let mut stack = vec![(root, false)];
            while let Some((id, children_are_placed)) = stack.pop() {
                let children = &below[id.index()];
                if !children_are_placed && !children.is_empty() {
                    stack.push((id, true));
                    stack.extend(children.iter().rev().map(|&child| (child, false)));
                    continue;
                }
                rows[id.index()] = match (children.first(), children.last()) {
                    (Some(first), Some(last)) => (rows[first.index()] + rows[last.index()]) / 2.0,
                    _ => {
                        height += 1;
                        (height - 1) as f64
                    }
                };
            }
        }
        let layers = graph.ids().map(|id| topology.depth(id)).collect();
        GraphLayout { layers, rows, parents, height }
    }

    /// Whether all labels hang below the same parent, or are all roots.
    pub fn are_siblings(&self, labels: &[LabelId]) -> bool {
        labels.windows(2).all(|pair| self.parents[pair[0].index()] == self.parents[pair[1].index()])
    }
}

/// Labels that exclude each other, and the mark that says so.
#[derive(Debug, Clone, PartialEq)]
pub struct ExclusionMark {
    /// Two or more labels, by index.
    pub labels: Vec<LabelId>,
    /// How strongly they exclude each other.
    pub strength: Strength,
    /// How this is drawn.
    pub form: MarkForm,
}

/// How an exclusion is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkForm {
    /// A bracket beside siblings.
    Bracket {
        /// Which bracket of their parent it is, counted from 0: they stand beside each other.
        lane: usize,
    },
    /// An arc between two labels of different families.
    Arc,
    /// A numbered badge at each of three or more labels of different families.
    Badge {
        /// The number, counted from 1.
        number: usize,
    },
}

/// The marks of all exclusions of a graph: declared ones, and the minimal sets of its exclusion rule.
///
/// One-of groups have no marks. O(sets) besides the closure of the rule.
///
/// ```
/// use phex::graph::{ExclusionRule, GraphBuilder};
/// use phex_report::{GraphLayout, MarkForm, exclusion_marks};
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
/// builder.exclusion_rule(ExclusionRule::Siblings, None);
/// let graph = builder.build()?;
/// let marks = exclusion_marks(&graph, &GraphLayout::new(&graph));
/// assert_eq!((marks.len(), marks[0].form), (1, MarkForm::Bracket { lane: 0 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn exclusion_marks(graph: &RelationGraph, layout: &GraphLayout) -> Vec<ExclusionMark> {
    let mut marks = Vec::new();
    let mut lanes = vec![0; graph.len()];
    let mut badges = 0;
    for set in Logic::all(graph).sets() {
        let strength = match set.source {
            SetSource::OneOf(_) => continue,
            SetSource::Exclusion(at) => graph.exclusions()[at].strength,
            SetSource::Rule => graph.rule().map_or(Strength::Hard, |declared| declared.strength),
        };
        let parent = layout.parents[set.labels[0].index()];
        let is_pair = set.labels.len() == 2;
        let form = if layout.are_siblings(&set.labels) && (parent.is_some() || !is_pair) {
            let lane = parent.map_or(0, |parent| {
                lanes[parent.index()] += 1;
                lanes[parent.index()] - 1
            });
            MarkForm::Bracket { lane }
        } else if is_pair {
            MarkForm::Arc
        } else {
            badges += 1;
            MarkForm::Badge { number: badges }
        };
        marks.push(ExclusionMark { labels: set.labels.clone(), strength, form });
    }
    marks
}

#[cfg(test)]
mod tests {
    use phex::graph::{ExclusionRule, GraphBuilder};

    use super::*;

    #[test]
    fn labels_hang_below_their_deepest_parent() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("animal", "dog", None).hierarchy("dog", "husky", None);
        builder.hierarchy("pet", "husky", None).hierarchy("pet", "goldfish", None).label("alone");
        let graph = builder.build().unwrap();
        let layout = GraphLayout::new(&graph);
        let id = |name: &str| graph.id(name).unwrap();
        assert_eq!(layout.parents[id("husky").index()], Some(id("dog")));
        assert_eq!(layout.layers[id("husky").index()], 2);
        assert_eq!(layout.rows[id("animal").index()], layout.rows[id("husky").index()]);
        assert_eq!(
            layout.rows[id("alone").index()],
            (layout.height - 1) as f64,
            "lone labels last"
        );
    }

    #[test]
    fn every_exclusion_has_one_mark() {
        let mut builder = GraphBuilder::new();
        for (parent, children) in [("a", ["b", "c"]), ("d", ["e", "f"])] {
            children.iter().for_each(|child| {
                builder.hierarchy(parent, child, None);
            });
        }
        builder.exclusion("b", "e", Some(Strength::U(1.0)));
        builder.exclusion_group(Some("across"), ["c", "f", "g"], None);
        builder.exclusion_rule(ExclusionRule::Siblings, None);
        builder.one_of("one", ["g", "h"], None);
        let graph = builder.build().unwrap();
        let forms: Vec<MarkForm> = exclusion_marks(&graph, &GraphLayout::new(&graph))
            .iter()
            .map(|mark| mark.form)
            .collect();
        let brackets = forms.iter().filter(|form| matches!(form, MarkForm::Bracket { .. })).count();
        assert_eq!((forms.len(), brackets), (4, 2), "{forms:?}");
        assert!(forms.contains(&MarkForm::Arc) && forms.contains(&MarkForm::Badge { number: 1 }));
    }
}
