//! The boxes of labels in an SVG picture: a layout in pixels.
//!
//! Columns are as wide as their widest label. Text is not measured: every character counts the same. O(n).

use std::collections::HashMap;

use phex::graph::{Label, LabelId, RelationGraph};

use super::GraphLayout;

const ROW: f64 = 24.0;
const BOX: f64 = 18.0;
const GAP: f64 = 46.0;
const CHARACTER: f64 = 6.7;
const PADDING: f64 = 7.0;

/// The box of a label.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct LabelBox {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl LabelBox {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn middle(&self) -> f64 {
        self.y + self.height / 2.0
    }
}

/// The boxes of all labels, and the right and lower ends of all of them.
pub(super) struct LabelBoxes {
    boxes: Vec<LabelBox>,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl LabelBoxes {
    /// Boxes for these texts, from a left upper corner on.
    pub(super) fn new(layout: &GraphLayout, texts: &[String], left: f64, top: f64) -> LabelBoxes {
        let width = |text: &String| text.chars().count() as f64 * CHARACTER + 2.0 * PADDING;
        let widths: Vec<f64> = texts.iter().map(width).collect();
        let deepest = layout.layers.iter().copied().max().unwrap_or(0);
        let mut columns = vec![0.0f64; deepest + 1];
        for (width, &layer) in widths.iter().zip(&layout.layers) {
            columns[layer] = columns[layer].max(*width);
        }
        let starts: Vec<f64> = columns
            .iter()
            .scan(left, |x, width| {
                let start = *x;
                *x += width + GAP;
                Some(start)
            })
            .collect();
        let places = layout.layers.iter().zip(&layout.rows).zip(&widths);
        let boxes: Vec<LabelBox> = places
            .map(|((&layer, row), &width)| LabelBox {
                x: starts[layer],
                y: top + row * ROW,
                width,
                height: BOX,
            })
            .collect();
        let right = boxes.iter().map(LabelBox::right).fold(left, f64::max);
        LabelBoxes { boxes, right, bottom: top + layout.height as f64 * ROW }
    }

    pub(super) fn of(&self, id: LabelId) -> LabelBox {
        self.boxes[id.index()]
    }
}

/// The texts of the boxes: short titles (whole ones where two labels share the short form), else names,
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
