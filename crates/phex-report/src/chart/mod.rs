//! Charts as SVG, drawn by hand: a chart consists of panels with axes and of what is drawn on them.
//!
//! All styles are classes of `chart.css`, so that a chart turns dark with its page. The style sheet is part of
//! every page and of every chart that is saved as a file of its own. Series differ in dashes and markers as
//! well as in colour. Missing numbers (NaN) interrupt a line and are left out otherwise. Text is not measured:
//! a character counts as 0.54 of its height. O(points).
//!
//! No plotting library is used: dashes, markers, dark pages and titles for screen readers are a few classes
//! here, and the result does not depend on the fonts of the machine that writes it.

mod axis;
mod figure;

use std::fmt::Write as _;

pub(crate) use axis::Axis;
pub use figure::{Figure, FigurePanel, FigureSeries, LineStyle, figure_svg};

use crate::text::{cut, escape};

pub(crate) const STYLE: &str = include_str!("chart.css");
/// The mean width of a character of a legend.
const CHARACTER: f64 = 6.3;
/// Lines of more points have no markers, which would hide them.
const MOST_MARKERS: usize = 60;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeriesStyle {
    /// Blue, solid, full circles.
    First,
    /// Orange, dashed, hollow squares.
    Second,
    /// Green, dotted, full diamonds.
    Third,
    /// Grey and dashed, without markers: what others are compared with.
    Reference,
    /// A large ring around a point that was chosen.
    Chosen,
}

impl SeriesStyle {
    fn class(self) -> &'static str {
        match self {
            SeriesStyle::First => "s1",
            SeriesStyle::Second => "s2",
            SeriesStyle::Third => "s3",
            SeriesStyle::Reference => "ref",
            SeriesStyle::Chosen => "chosen",
        }
    }

    fn marker(self, x: f64, y: f64) -> String {
        let class = self.class();
        match self {
            SeriesStyle::First => {
                format!(r#"<circle class="m {class}" cx="{x:.1}" cy="{y:.1}" r="3"/>"#)
            }
            SeriesStyle::Second => format!(
                r#"<rect class="m {class}" x="{:.1}" y="{:.1}" width="5.6" height="5.6"/>"#,
                x - 2.8,
                y - 2.8
            ),
            SeriesStyle::Third => format!(
                r#"<path class="m {class}" d="M{x:.1} {:.1}l3.8 3.8l-3.8 3.8l-3.8 -3.8z"/>"#,
                y - 3.8
            ),
            SeriesStyle::Reference => String::new(),
            SeriesStyle::Chosen => {
                format!(r#"<circle class="m {class}" cx="{x:.1}" cy="{y:.1}" r="7"/>"#)
            }
        }
    }
}

/// A rectangle with two axes.
#[derive(Debug, Clone)]
pub(crate) struct PlotPanel {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl PlotPanel {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(crate) fn at_x(&self, value: f64) -> Option<f64> {
        self.x.place(value).map(|place| self.left + place * self.width)
    }

    pub(crate) fn at_y(&self, value: f64) -> Option<f64> {
        self.y.place(value).map(|place| self.bottom() - place * self.height)
    }

    pub(crate) fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        self.at_x(x).zip(self.at_y(y))
    }
}

/// A chart in the making.
#[derive(Debug)]
pub(crate) struct Chart {
    width: f64,
    height: f64,
    out: String,
}

impl Chart {
    /// An empty chart; the title and the description are for screen readers.
    pub(crate) fn new(width: f64, height: f64, title: &str, description: &str) -> Chart {
        let out = format!("<title>{}</title><desc>{}</desc>\n", escape(title), escape(description));
        Chart { width, height, out }
    }

    /// A rectangle behind everything that is drawn later.
    pub(crate) fn rectangle(&mut self, class: &str, x: (f64, f64), y: (f64, f64), about: &str) {
        let about = if about.is_empty() { String::new() } else { title(about) };
        let _ = writeln!(
            self.out,
            r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}">{about}</rect>"#,
            x.0.min(x.1),
            y.0.min(y.1),
            (x.1 - x.0).abs(),
            (y.1 - y.0).abs()
        );
    }

    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let text = escape(text);
        let _ = writeln!(self.out, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#);
    }

    pub(crate) fn segment(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.out,
            r#"<path class="{class}" d="M{:.1} {:.1}L{:.1} {:.1}"/>"#,
            from.0, from.1, to.0, to.1
        );
    }

    /// Draws grid and ticks. The name of the vertical axis stands above it; the ticks of the horizontal axis
    /// are labelled only if that axis has a name.
    pub(crate) fn axes(&mut self, panel: &PlotPanel, x: Option<&str>, y: &str) {
        let (left, right, top, bottom) = (panel.left, panel.right(), panel.top, panel.bottom());
        for (value, text) in &panel.y.ticks {
            if let Some(at) = panel.at_y(*value) {
                self.segment("grid", (left, at), (right, at));
                self.text("tick end", left - 8.0, at + 4.0, text);
            }
        }
        for (value, text) in &panel.x.ticks {
            if let Some(at) = panel.at_x(*value) {
                self.segment("axis", (at, bottom), (at, bottom + 4.0));
                if x.is_some() {
                    self.text("tick middle", at, bottom + 18.0, text);
                }
            }
        }
        self.segment("axis", (left, bottom), (right, bottom));
        if let Some(name) = x {
            self.text("name end", right, bottom + 36.0, name);
        }
        let note = if panel.y.is_logarithmic() { " (logarithmic)" } else { "" };
        self.text("name", left, top - 12.0, &format!("{y}{note}"));
    }

    /// Draws a frame without axes that says "no data".
    pub(crate) fn no_data(&mut self, x: (f64, f64), y: (f64, f64), name: &str) {
        self.rectangle("none", x, y, "");
        self.text("name", x.0, y.0 - 12.0, name);
        self.text("nothing middle", (x.0 + x.1) / 2.0, (y.0 + y.1) / 2.0 + 4.0, "no data");
    }

    /// Draws a line with its markers; pointing at a marker shows `about` of it.
    pub(crate) fn line(
        &mut self,
        panel: &PlotPanel,
        series: SeriesStyle,
        points: &[(f64, f64)],
        about: impl Fn(f64, f64) -> String,
    ) {
        let mut path = String::new();
        let mut drawing = false;
        for point in points.iter().map(|&point| panel.at(point)) {
            if let Some((x, y)) = point {
                let _ = write!(path, "{}{x:.1} {y:.1}", if drawing { 'L' } else { 'M' });
            }
            drawing = point.is_some();
        }
        if path.contains('L') {
            let class = series.class();
            let _ = writeln!(self.out, r#"<path class="line {class}" d="{path}"/>"#);
        }
        let marked = points.len() <= MOST_MARKERS;
        for (at, &(x, y)) in points.iter().enumerate() {
            let there = |at: Option<usize>| {
                at.and_then(|at| points.get(at)).is_some_and(|&point| panel.at(point).is_some())
            };
            // A point between gaps is not part of a line: without a marker it would be invisible.
            let alone = !there(at.checked_sub(1)) && !there(Some(at + 1));
            if marked || alone {
                self.point(panel, series, (x, y), &about(x, y));
            }
        }
    }

    pub(crate) fn point(
        &mut self,
        panel: &PlotPanel,
        series: SeriesStyle,
        at: (f64, f64),
        about: &str,
    ) {
        if let Some((x, y)) = panel.at(at) {
            let _ = writeln!(self.out, "<g>{}{}</g>", title(about), series.marker(x, y));
        }
    }

    /// From `low` to `high` with a cap at each end.
    pub(crate) fn error_bar(&mut self, panel: &PlotPanel, at: f64, low: f64, high: f64) {
        let (x, low, high) = (panel.at_x(at), panel.at_y(low), panel.at_y(high));
        if let Some(((x, low), high)) = x.zip(low).zip(high) {
            let (low, high) = (low.min(panel.bottom()), high.max(panel.top));
            let _ = writeln!(
                self.out,
                r#"<path class="error" d="M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h6M{:.1} {high:.1}h6"/>"#,
                x - 3.0,
                x - 3.0
            );
        }
    }

    /// Draws entries in one line that ends at `right`; texts are shortened if there is not enough room.
    pub(crate) fn legend(
        &mut self,
        left: f64,
        right: f64,
        y: f64,
        entries: &[(SeriesStyle, String)],
    ) {
        const MARK: f64 = 30.0;
        const GAP: f64 = 16.0;
        let room = (right - left - entries.len() as f64 * (MARK + GAP)) / CHARACTER;
        let each = (room / entries.len().max(1) as f64).max(6.0) as usize;
        let total: usize = entries.iter().map(|(_, text)| text.chars().count()).sum();
        let fits = total as f64 <= room;
        let texts: Vec<String> = entries
            .iter()
            .map(|(_, text)| if fits { text.clone() } else { cut(text, each) })
            .collect();
        let wide = |text: &String| MARK + text.chars().count() as f64 * CHARACTER + GAP;
        let mut x = right + GAP - texts.iter().map(wide).sum::<f64>();
        for ((series, whole), text) in entries.iter().zip(&texts) {
            let line = match series {
                SeriesStyle::Chosen => String::new(),
                _ => format!(
                    r#"<path class="line {}" d="M{x:.1} {:.1}h24"/>"#,
                    series.class(),
                    y - 4.0
                ),
            };
            let marker = series.marker(x + 12.0, y - 4.0);
            let _ = writeln!(
                self.out,
                r#"<g>{}{line}{marker}<text class="legend" x="{:.1}" y="{y:.1}">{}</text></g>"#,
                title(whole),
                x + MARK,
                escape(text)
            );
            x += wide(text);
        }
    }

    /// The chart for a page that holds the style sheet.
    pub(crate) fn inline(&self) -> String {
        self.element("", "")
    }

    /// The chart as a file of its own.
    pub(crate) fn standalone(&self) -> String {
        let style = format!(
            "<style>\n{STYLE}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n"
        );
        let size = format!(r#" width="{}" height="{}""#, self.width, self.height);
        self.element(&size, &style)
    }

    fn element(&self, size: &str, style: &str) -> String {
        let Chart { width, height, out } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\"{size} \
             viewBox=\"0 0 {width} {height}\">\n{style}{out}</svg>\n"
        )
    }
}

fn title(text: &str) -> String {
    format!("<title>{}</title>", escape(text))
}
