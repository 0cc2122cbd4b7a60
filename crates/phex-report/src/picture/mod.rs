//! Pictures of label graphs as SVG, readable up to a few hundred labels.
//!
//! Labels stand from left to right, from general to special ([`GraphLayout`]). Grey lines are the hierarchy;
//! blue lines lead to further parents. A red bracket joins siblings that exclude each other. A red arc joins
//! two such labels of different families, and larger groups across families get a numbered badge. Labels of
//! one one-of group share a colour. A struck-out label can never be on. Soft relations are dashed. Pointing
//! at anything shows what it is. If each label has a number, such as its F1, the number colours its box.
//!
//! All style rules are scoped to the picture, so that one HTML page can hold several. They use no CSS
//! variables, because SVG converters do not support them.

mod boxes;
mod layout;
mod values;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use phex::graph::{FindingKind, LabelId, RelationGraph, Strength};

use boxes::{LabelBox, LabelBoxes, captions};
pub use layout::{ExclusionMark, GraphLayout, MarkForm, exclusion_marks};
pub use values::LabelValues;

use crate::markup::escape_markup as escape;

const STYLE: &str = include_str!("style.css");
const MARGIN: f64 = 20.0;
const HEAD: f64 = 58.0;
/// The height of the scale of values, below the legend.
const SCALE: f64 = 22.0;
/// More arcs than this would hide the picture.
const MOST_ARCS: usize = 150;
/// How many colours the style has for one-of groups.
const ONE_OF_COLOURS: usize = 6;

/// Draws a graph as SVG text. Values, if given, colour the boxes of the labels.
///
/// O(n + e) besides the checks of the graph.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex_report::{LabelValues, graph_picture};
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None);
/// let values = LabelValues { name: "F1", values: &[0.97, 0.83], range: (0.0, 1.0) };
/// let svg = graph_picture(&builder.build()?, Some(&values));
/// assert!(svg.contains("dog 0.83"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn graph_picture(graph: &RelationGraph, values: Option<&LabelValues<'_>>) -> String {
    let captions = captions(graph);
    let number = |index: usize| values.and_then(|values| values.of(index));
    let texts: Vec<String> = captions
        .iter()
        .enumerate()
        .map(|(index, caption)| match number(index) {
            Some(value) => format!("{caption} {}", values::number(value)),
            None => caption.clone(),
        })
        .collect();
    let head = if values.is_some() { HEAD + SCALE } else { HEAD };
    let layout = GraphLayout::new(graph);
    let boxes = LabelBoxes::new(&layout, &texts, MARGIN, head);
    let mut picture = SvgPicture {
        graph,
        values,
        captions,
        texts,
        layout,
        boxes,
        out: String::new(),
        omitted: 0,
        badges: 0,
        dead: false,
    };
    picture.hierarchy();
    picture.exclusions();
    picture.labels();
    picture.finish()
}

/// Whether to write a graph as a picture: if the format is `svg`, or else if the file name ends so.
pub fn wants_picture(form: Option<&str>, path: &Path) -> bool {
    match form {
        Some(form) => form == "svg",
        None => path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg")),
    }
}

struct SvgPicture<'g> {
    graph: &'g RelationGraph,
    values: Option<&'g LabelValues<'g>>,
    captions: Vec<String>,
    /// Captions with their values.
    texts: Vec<String>,
    layout: GraphLayout,
    boxes: LabelBoxes,
    out: String,
    /// Exclusions that are not drawn.
    omitted: u64,
    /// Groups across families.
    badges: usize,
    /// Whether some label can never be on.
    dead: bool,
}

impl SvgPicture<'_> {
    fn caption(&self, id: LabelId) -> &str {
        &self.captions[id.index()]
    }

    fn hierarchy(&mut self) {
        for edge in self.graph.hierarchy() {
            let (from, to) = (self.boxes.of(edge.parent), self.boxes.of(edge.child));
            let main = self.layout.parents[edge.child.index()] == Some(edge.parent);
            let class = if main { "is" } else { "is further" };
            let bend = ((to.x - from.right()) / 2.0).max(18.0);
            let (x1, y1, x2, y2) = (from.right(), from.middle(), to.x, to.middle());
            let path = format!(
                "M{x1:.1} {y1:.1}C{:.1} {y1:.1} {:.1} {y2:.1} {x2:.1} {y2:.1}",
                x1 + bend,
                x2 - bend
            );
            let about = format!(
                "{} is a {}{}",
                self.caption(edge.child),
                self.caption(edge.parent),
                strength_note(edge.strength)
            );
            self.path(&path, class, edge.strength, &about);
        }
    }

    fn exclusions(&mut self) {
        let mut arcs = 0;
        for mark in exclusion_marks(self.graph, &self.layout) {
            let about = self.describe(&mark);
            let ExclusionMark { labels, strength, form } = mark;
            match form {
                MarkForm::Bracket { lane } => self.bracket(&labels, lane, strength, &about),
                MarkForm::Arc if arcs < MOST_ARCS => {
                    arcs += 1;
                    self.arc(labels[0], labels[1], strength, &about);
                }
                MarkForm::Arc => self.omitted += 1,
                MarkForm::Badge { number } => {
                    self.badges = number;
                    self.badge(&labels, number, &about);
                }
            }
        }
    }

    fn describe(&self, mark: &ExclusionMark) -> String {
        let ids = mark.labels.iter().take(12);
        let names: Vec<&str> = ids.map(|&id| self.caption(id)).collect();
        let more = if mark.labels.len() > 12 { ", …" } else { "" };
        let strength = strength_note(mark.strength);
        format!("{}{more} exclude each other{strength}", names.join(", "))
    }

    /// A bracket left of siblings that exclude each other.
    fn bracket(&mut self, labels: &[LabelId], lane: usize, strength: Strength, about: &str) {
        let areas: Vec<_> = labels.iter().map(|&id| self.boxes.of(id)).collect();
        let x = areas[0].x - 7.0 - 4.0 * (lane % 4) as f64;
        let top = areas.iter().map(LabelBox::middle).fold(f64::INFINITY, f64::min);
        let bottom = areas.iter().map(LabelBox::middle).fold(0.0, f64::max);
        let mut path = format!("M{x:.1} {top:.1}V{bottom:.1}");
        for area in areas {
            let _ = write!(path, "M{x:.1} {:.1}h4", area.middle());
        }
        self.path(&path, "ex", strength, about);
    }

    /// An arc from the right side of one label to the other's.
    fn arc(&mut self, a: LabelId, b: LabelId, strength: Strength, about: &str) {
        let (from, to) = (self.boxes.of(a), self.boxes.of(b));
        let (y1, y2) = (from.middle() + 4.0, to.middle() - 4.0);
        let bulge = 26.0 + (y2 - y1).abs().sqrt() * 2.2;
        let (x1, x2) = (from.right(), to.right());
        let out = x1.max(x2) + bulge;
        let path = format!("M{x1:.1} {y1:.1}C{out:.1} {y1:.1} {out:.1} {y2:.1} {x2:.1} {y2:.1}");
        self.path(&path, "ex arc", strength, about);
    }

    /// A numbered badge at each label of a group across families.
    fn badge(&mut self, labels: &[LabelId], number: usize, about: &str) {
        for &id in labels {
            let area = self.boxes.of(id);
            let (x, y) = (area.right() + 9.0, area.middle());
            let _ = writeln!(
                self.out,
                r#"<g class="badge"><title>{}</title><circle cx="{x:.1}" cy="{y:.1}" r="7"/><text x="{x:.1}" y="{:.1}">{number}</text></g>"#,
                escape(about),
                y + 3.0
            );
        }
    }

    fn labels(&mut self) {
        let report = self.graph.check();
        let dead: HashSet<&str> =
            report.of_kind(FindingKind::DeadLabel).map(|f| f.labels[0].as_str()).collect();
        let why = |name: &str| {
            let mut findings = report.of_kind(FindingKind::DeadLabel);
            findings.find(|finding| finding.labels[0] == name).map(|f| f.message.clone())
        };
        let mut group_of = vec![None; self.graph.len()];
        for (at, group) in self.graph.one_of().iter().enumerate() {
            group.labels.iter().for_each(|id| group_of[id.index()] = Some(at));
        }
        for id in self.graph.ids() {
            let (area, label) = (self.boxes.of(id), self.graph.label(id));
            let is_dead = dead.contains(label.name.as_str());
            self.dead |= is_dead;
            let one_of = match group_of[id.index()] {
                Some(at) if !is_dead => format!(r#" class="one-of-{}""#, at % ONE_OF_COLOURS),
                _ => String::new(),
            };
            let value = self.values.and_then(|values| Some((values, values.of(id.index())?)));
            let (fill, ink) = match value {
                Some((values, value)) => {
                    let paint = values.paint(value);
                    (
                        format!(r#" style="fill:{}""#, paint.fill),
                        format!(r#" style="fill:{}""#, paint.text),
                    )
                }
                None => Default::default(),
            };
            let mut about = why(&label.name).unwrap_or_else(|| match &label.title {
                Some(title) => format!("{title} ({})", label.name),
                None => label.name.clone(),
            });
            if let Some((values, value)) = value {
                let _ = write!(about, ": {} {value:.4}", values.name);
            }
            let class = if is_dead { "label dead" } else { "label" };
            let _ = writeln!(
                self.out,
                r#"<g class="{class}"><title>{}</title><rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="4"{one_of}{fill}/><text x="{:.1}" y="{:.1}"{ink}>{}</text></g>"#,
                escape(&about),
                area.x,
                area.y,
                area.width,
                area.height,
                area.x + area.width / 2.0,
                area.middle() + 4.0,
                escape(&self.texts[id.index()]),
            );
        }
    }

    fn path(&mut self, path: &str, class: &str, strength: Strength, about: &str) {
        let soft = if strength.is_hard() { "" } else { " soft" };
        // Weak relations are pale: half strength at u = 0.25.
        let opacity = if strength.is_hard() { 1.0 } else { 1.0 - 0.75 * (-strength.cost()).exp() };
        let _ = writeln!(
            self.out,
            r#"<path class="{class}{soft}" d="{path}" opacity="{opacity:.2}"><title>{}</title></path>"#,
            escape(about)
        );
    }

    fn finish(self) -> String {
        let graph = self.graph;
        let (legend, legend_end) = self.legend();
        let width = (self.boxes.right + MARGIN + 70.0).max(640.0).max(legend_end);
        let height = self.boxes.bottom + MARGIN;
        let summary = format!(
            "labels: {}, hierarchy edges: {}, exclusions: {}, one-of groups: {}{}",
            graph.len(),
            graph.hierarchy().len(),
            graph.exclusions().len(),
            graph.one_of().len(),
            graph.rule().map(|d| format!(", rule {}", d.rule)).unwrap_or_default(),
        );
        let omitted = match self.omitted {
            0 => String::new(),
            n => format!(" ({n} exclusions across families are not drawn)"),
        };
        let head = escape(&format!("{summary}{omitted}")).into_owned();
        let scale = self.values.map_or(String::new(), |values| {
            let legend = values.legend();
            format!("<g transform=\"translate({MARGIN} {})\">{legend}</g>\n", HEAD - 2.0)
        });
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="phex-graph" role="img" aria-label="{head}" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="Helvetica, Arial, sans-serif">
<style>
{STYLE}</style>
<rect class="page" width="100%" height="100%"/>
<text class="head" x="{MARGIN}" y="22">{head}</text>
{legend}
{scale}{}</svg>
"#,
            self.out
        )
    }

    /// The legend and where it ends.
    fn legend(&self) -> (String, f64) {
        let mut out = String::new();
        let mut x = MARGIN;
        let mut entry = |mark: String, text: &str, mark_width: f64| {
            let at = x + mark_width + 5.0;
            let _ = write!(
                out,
                r#"<g transform="translate({x:.1} 40)">{mark}</g><text class="legend" x="{at:.1}" y="44">{}</text>"#,
                escape(text)
            );
            x = at + text.chars().count() as f64 * 5.9 + 16.0;
        };
        let line = |class: &str| format!(r#"<path class="{class}" d="M0 0h22"/>"#);
        entry(line("is"), "is a", 22.0);
        if !self.graph.topology().is_forest() {
            entry(line("is further"), "is also a", 22.0);
        }
        if !self.graph.exclusions().is_empty() || self.graph.rule().is_some() {
            entry(line("ex"), "exclude each other", 22.0);
        }
        if self.badges > 0 {
            let mark =
                r#"<g class="badge"><circle cx="7" cy="0" r="7"/><text x="7" y="3">1</text></g>"#;
            entry(String::from(mark), "exclude each other, across families", 14.0);
        }
        if !self.graph.is_hard() {
            entry(line("is soft"), "soft", 22.0);
        }
        for (at, group) in self.graph.one_of().iter().enumerate().take(ONE_OF_COLOURS) {
            let mark =
                format!(r#"<rect class="one-of-{at}" y="-6" width="16" height="11" rx="3"/>"#);
            entry(mark, &format!("one of: {}", group.name), 16.0);
        }
        if self.dead {
            let mark = r#"<g class="label dead"><rect y="-6" width="16" height="11" rx="3"/></g>"#;
            entry(String::from(mark), "can never be on", 16.0);
        }
        (out, x)
    }
}

fn strength_note(strength: Strength) -> String {
    if strength.is_hard() { String::new() } else { format!(" ({strength})") }
}

#[cfg(test)]
mod tests {
    use phex::graph::{ExclusionRule, GraphBuilder};

    use super::{LabelValues, graph_picture};

    #[test]
    fn a_picture_names_every_label_and_escapes() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("animal", "cat & <dog>", None).hierarchy("animal", "fish", None);
        builder.exclusion_rule(ExclusionRule::Siblings, None);
        builder.one_of_leaves("leaf");
        let svg = graph_picture(&builder.build().unwrap(), None);
        assert!(svg.contains("cat &amp; &lt;dog&gt;</text>"), "{svg}");
        assert!(svg.contains("one of: leaf"));
        assert_eq!(svg.matches("class=\"ex\" d=\"M").count(), 2, "a bracket and its legend");
    }

    #[test]
    fn dead_labels_are_struck_out() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("a", "c", None).hierarchy("b", "c", None).exclusion("a", "b", None);
        let svg = graph_picture(&builder.build().unwrap(), None);
        assert!(svg.contains("c can never be on"));
    }

    #[test]
    fn values_colour_their_labels_and_widen_them() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
        let graph = builder.build().unwrap();
        let values = [1.0, 0.5, f64::NAN];
        let values = LabelValues { name: "F1 <b>", values: &values, range: (0.0, 1.0) };
        let svg = graph_picture(&graph, Some(&values));
        for part in ["animal 1.00</text>", "dog 0.50</text>", "cat</text>", "F1 &lt;b&gt;  0.00"] {
            assert!(svg.contains(part), "{part}\n{svg}");
        }
        assert_eq!(svg.matches("class=\"label\"").count(), 3);
        assert!(svg.contains("style=\"fill:#223470\""), "the darkest blue is 1");
        let plain = graph_picture(&graph, None);
        assert!(!plain.contains("style=\"fill:"), "without values nothing is coloured");
    }
}
