//! The label graph with a number for each label.
//!
//! Graphs of up to a few hundred labels are drawn as a picture with coloured boxes. Larger graphs become an
//! outline of their upper levels that can be folded, with bars. O(n).

use std::collections::VecDeque;
use std::fmt::Write as _;

use phex::graph::{LabelId, RelationGraph};

use super::{Piece, captioned};
use crate::picture::{LabelValues, graph_picture};
use crate::text::{count, escape, share};

/// Graphs of more labels become an outline.
const MOST_DRAWN: usize = 250;
/// The most lines and levels of an outline. More would not help a reader, and would be slow in a browser.
const MOST_LISTED: usize = 4000;
const MOST_LEVELS: usize = 40;
/// The first level is open at first if it has at most this many labels.
const OPEN: usize = 60;

/// A graph with a number for each label.
#[derive(Debug, Clone)]
pub struct GraphPicture<'g> {
    /// The graph.
    pub graph: &'g RelationGraph,
    /// The name of the numbers: `F1`.
    pub metric: String,
    /// In the order of the labels; NaN for labels without a number. Empty for a picture without numbers.
    pub values: &'g [f64],
}

impl GraphPicture<'_> {
    fn value(&self, id: LabelId) -> f64 {
        self.values.get(id.index()).copied().unwrap_or(f64::NAN)
    }

    /// The ends of the scale. Shares end at 1 and begin at the tenth below the smallest, so that colours also
    /// tell good labels apart.
    fn range(&self) -> (f64, f64) {
        let finite = || self.values.iter().copied().filter(|value| value.is_finite());
        let low = finite().fold(f64::INFINITY, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            (0.0, 1.0)
        } else if low >= 0.0 && high <= 1.0 {
            ((low * 10.0).floor().min(9.0) / 10.0, 1.0)
        } else {
            (low, high)
        }
    }

    fn drawn(&self) -> String {
        let values = LabelValues { name: &self.metric, values: self.values, range: self.range() };
        let has_values = !self.values.is_empty();
        let svg = graph_picture(self.graph, has_values.then_some(&values));
        let caption = match has_values {
            true => format!("{} of each label; labels without a number are grey.", self.metric),
            false => String::from("The labels and their relations."),
        };
        captioned(&svg, &caption).replacen("<figure", "<figure class=\"graph\"", 1)
    }

    /// Which labels are listed: whole levels, from the roots on, while there is room.
    fn listed(&self) -> Vec<bool> {
        let mut listed = vec![false; self.graph.len()];
        let mut queue: VecDeque<(LabelId, usize)> =
            self.graph.roots().map(|root| (root, 1)).collect();
        let mut room = MOST_LISTED;
        while let Some((id, level)) = queue.pop_front() {
            if room == 0 {
                break;
            }
            room -= 1;
            listed[id.index()] = true;
            if level < MOST_LEVELS {
                queue.extend(self.below(id).map(|child| (child, level + 1)));
            }
        }
        listed
    }

    /// The labels of which this is the first parent, so that each label is listed once.
    fn below(&self, id: LabelId) -> impl Iterator<Item = LabelId> {
        let topology = self.graph.topology();
        let children = topology.children(id).iter().copied();
        children.filter(move |&child| topology.parents(child).first() == Some(&id))
    }

    fn line(&self, id: LabelId) -> String {
        let value = self.value(id);
        let label = self.graph.label(id);
        let name = label.short_title().unwrap_or(&label.name);
        let (low, high) = self.range();
        let part =
            if value.is_finite() { (value - low.min(0.0)) / (high - low.min(0.0)) } else { 0.0 };
        format!(
            r#"<span class="line"><span title="{}">{}</span><span class="bar" style="--share:{:.3}"></span><span class="value">{}</span></span>"#,
            escape(&label.to_string()),
            escape(name),
            part.clamp(0.0, 1.0),
            share(value)
        )
    }

    fn outline(&self) -> String {
        enum OutlineStep {
            Enter(LabelId, usize),
            Leave(&'static str),
        }
        let listed = self.listed();
        let shown = listed.iter().filter(|listed| **listed).count();
        let roots: Vec<LabelId> = self.graph.roots().filter(|id| listed[id.index()]).collect();
        let mut out = String::from("<div class=\"outline\">\n<ul>\n");
        let mut stack: Vec<OutlineStep> =
            roots.iter().rev().map(|&root| OutlineStep::Enter(root, 0)).collect();
        while let Some(step) = stack.pop() {
            let (id, level) = match step {
                OutlineStep::Leave(end) => {
                    out.push_str(end);
                    continue;
                }
                OutlineStep::Enter(id, level) => (id, level),
            };
            let children: Vec<LabelId> =
                self.below(id).filter(|child| listed[child.index()]).collect();
            if children.is_empty() {
                let _ = writeln!(out, "<li>{}</li>", self.line(id));
                continue;
            }
            let open = level == 0 && roots.len() * children.len() <= OPEN;
            let open = if open { " open=\"open\"" } else { "" };
            let _ = writeln!(out, "<li><details{open}><summary>{}</summary>\n<ul>", self.line(id));
            stack.push(OutlineStep::Leave("</ul>\n</details></li>\n"));
            stack.extend(
                children.into_iter().rev().map(|child| OutlineStep::Enter(child, level + 1)),
            );
        }
        out.push_str("</ul>\n</div>");
        let hidden = self.graph.len() - shown;
        let rest = match hidden {
            0 => String::new(),
            _ => format!(" {} labels further down are not listed.", count(hidden as u64)),
        };
        let caption = format!(
            "{} of each label, below its first parent. Lines with a triangle unfold.{rest}",
            self.metric
        );
        captioned(&out, &caption)
    }
}

impl Piece for GraphPicture<'_> {
    fn html(&self) -> String {
        if self.graph.is_empty() {
            return captioned("<p class=\"nothing\">no data</p>", "The graph has no labels.");
        }
        if self.graph.len() <= MOST_DRAWN { self.drawn() } else { self.outline() }
    }
}

#[cfg(test)]
mod tests {
    use phex::graph::GraphBuilder;

    use super::super::samples;
    use super::*;
    use crate::well_formed::elements;

    fn picture(graph: &RelationGraph, values: &[f64]) -> String {
        let html = GraphPicture { graph, metric: String::from("F1"), values }.html();
        elements(&html);
        html
    }

    #[test]
    fn small_graphs_are_drawn() {
        let graph = samples::animals();
        let values: Vec<f64> = (0..graph.len()).map(|at| 0.62 + 0.02 * at as f64).collect();
        let html = picture(&graph, &values);
        assert!(html.contains("phex-graph") && html.contains("F1  0.60"), "{html}");
        let bare = picture(&graph, &[]);
        assert!(!bare.contains("F1") && bare.contains("The labels and their relations."), "{bare}");
        let unknown = picture(&graph, &[f64::NAN]);
        assert!(unknown.contains("F1  0.00"), "no number: the whole scale");
        assert!(picture(&graph, &[-3.0, 5.0]).contains("F1  -3.00"));
    }

    #[test]
    fn large_graphs_are_outlines_that_end() {
        let mut builder = GraphBuilder::new();
        for at in 1..9000usize {
            builder.hierarchy(&format!("n{}", (at - 1) / 7), &format!("n{at}"), None);
        }
        // A second parent does not list a label twice.
        builder.hierarchy("n5", "n8", None);
        let graph = builder.build().unwrap();
        let values: Vec<f64> = (0..graph.len()).map(|at| (at % 100) as f64 / 100.0).collect();
        let html = picture(&graph, &values);
        assert_eq!(html.matches("class=\"line\"").count(), MOST_LISTED);
        assert_eq!(html.matches(">n8<").count(), 1);
        assert!(html.contains("5\u{202f}000 labels further down are not listed"), "caption");
        assert!(!html.contains("<svg"));
    }

    #[test]
    fn deep_chains_and_empty_graphs_do_no_harm() {
        let mut builder = GraphBuilder::new();
        for at in 1..3000 {
            builder.hierarchy(&format!("n{}", at - 1), &format!("n{at}"), None);
        }
        let html = picture(&builder.build().unwrap(), &[]);
        assert_eq!(html.matches("class=\"line\"").count(), MOST_LEVELS);
        if let Ok(graph) = GraphBuilder::new().build() {
            assert!(picture(&graph, &[]).contains("no data"));
        }
    }
}
