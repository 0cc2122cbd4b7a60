//! Where labels go: a tidy tree, left to right, a row a leaf.
//!
//! Every label hangs below its deepest parent; the tree that this makes is drawn with the children
//! of a label in consecutive rows and the label at their middle. Columns are as wide as their
//! widest label. O(n).

use std::collections::HashMap;

use phex::graph::{Label, LabelId, RelationGraph};

const ROW: f64 = 24.0;
const BOX: f64 = 18.0;
const GAP: f64 = 46.0;
const CHARACTER: f64 = 6.7;
const PADDING: f64 = 7.0;

/// A label's box.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn middle(&self) -> f64 {
        self.y + self.height / 2.0
    }
}

/// Boxes for all labels, and the parent that each hangs below.
pub(super) struct Layout {
    pub(super) areas: Vec<Area>,
    pub(super) hangs_below: Vec<Option<LabelId>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Texts of the boxes: short titles (whole ones where two labels share the short form), else names,
/// cut when long.
pub(super) fn captions(graph: &RelationGraph) -> Vec<String> {
    const LONGEST: usize = 34;
    let short = |label: &Label| label.short_title().unwrap_or(&label.name).to_owned();
    let mut uses: HashMap<String, usize> = HashMap::new();
    graph.labels().iter().for_each(|label| *uses.entry(short(label)).or_default() += 1);
    let caption = |label: &Label| {
        let text = match &label.title {
            Some(title) if uses[&short(label)] > 1 => title.clone(),
            _ => short(label),
        };
        if text.chars().count() <= LONGEST {
            return text;
        }
        format!("{}…", text.chars().take(LONGEST - 1).collect::<String>())
    };
    graph.labels().iter().map(caption).collect()
}

impl Layout {
    pub(super) fn new(graph: &RelationGraph, captions: &[String], left: f64, top: f64) -> Layout {
        let n = graph.len();
        let topology = graph.topology();
        let deepest = |id: LabelId| {
            // Of several the first: `max_by_key` keeps the last.
            let parents = topology.parents(id).iter().rev().copied();
            parents.max_by_key(|&parent| topology.depth(parent))
        };
        let hangs_below: Vec<Option<LabelId>> = graph.ids().map(deepest).collect();
        let mut below: Vec<Vec<LabelId>> = vec![Vec::new(); n];
        for id in graph.ids() {
            if let Some(parent) = hangs_below[id.index()] {
                below[parent.index()].push(id);
            }
        }
        let level =
            |id: LabelId| std::iter::successors(Some(id), |id| hangs_below[id.index()]).count() - 1;
        let width = |text: &String| text.chars().count() as f64 * CHARACTER + 2.0 * PADDING;
        let widths: Vec<f64> = captions.iter().map(width).collect();
        let levels: Vec<usize> = graph.ids().map(level).collect();
        let deepest = levels.iter().copied().max().unwrap_or(0);
        let mut columns = vec![0.0f64; deepest + 1];
        for (width, &level) in widths.iter().zip(&levels) {
            columns[level] = columns[level].max(*width);
        }
        let starts: Vec<f64> = columns
            .iter()
            .scan(left, |x, width| {
                let start = *x;
                *x += width + GAP;
                Some(start)
            })
            .collect();

        let mut areas = vec![Area::default(); n];
        let mut row = 0.0;
        // Roots with children first, then labels that hang alone; children before their parent.
        let roots = graph.ids().filter(|id| hangs_below[id.index()].is_none());
        let (alone, trees): (Vec<LabelId>, Vec<LabelId>) =
            roots.partition(|id| below[id.index()].is_empty());
        for root in trees.into_iter().chain(alone) {
            let mut stack = vec![(root, false)];
            while let Some((id, done)) = stack.pop() {
                let children = &below[id.index()];
                if !done && !children.is_empty() {
                    stack.push((id, true));
                    stack.extend(children.iter().rev().map(|&child| (child, false)));
                    continue;
                }
                let y = match (children.first(), children.last()) {
                    (Some(first), Some(last)) => {
                        (areas[first.index()].y + areas[last.index()].y) / 2.0
                    }
                    _ => {
                        row += 1.0;
                        top + (row - 1.0) * ROW
                    }
                };
                let (x, width) = (starts[levels[id.index()]], widths[id.index()]);
                areas[id.index()] = Area { x, y, width, height: BOX };
            }
        }
        let width = areas.iter().map(Area::right).fold(left, f64::max);
        Layout { areas, hangs_below, width, height: top + row * ROW }
    }

    pub(super) fn area(&self, id: LabelId) -> Area {
        self.areas[id.index()]
    }
}
