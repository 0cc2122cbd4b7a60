//! The figure of an experiment: panels side by side, with curves and their standard errors against the
//! strength u, and horizontal lines for what does not depend on u.

use phex::metrics::Spread;
use serde::{Deserialize, Serialize};

use super::{Axis, Chart, PlotPanel, SeriesStyle};
use crate::text::number;

/// Panels side by side, with series of the same names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The name of its file, without an ending.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// The name of the horizontal axis.
    pub x: String,
    /// The name of the vertical axis.
    pub y: String,
    /// From left to right.
    pub panels: Vec<FigurePanel>,
}

/// One pair of axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigurePanel {
    /// What distinguishes it from the other panels.
    pub title: String,
    /// What is drawn.
    pub series: Vec<FigureSeries>,
}

/// One line of a panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureSeries {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub line: LineStyle,
    /// Values by x, as shares of one; a horizontal line has one point without x.
    pub points: Vec<(Option<f64>, Spread)>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineStyle {
    /// Solid: constant strengths by exact inference.
    Solid,
    /// Dotted: variable strengths.
    Dotted,
    /// Short dashes: another method of inference.
    Dashed,
    /// Horizontal and dashed: does not depend on x.
    Level,
    /// Horizontal and grey: a baseline.
    Baseline,
}

const PANEL: f64 = 260.0;
const BETWEEN: f64 = 58.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 92.0;
const HEIGHT: f64 = 240.0;
const BELOW: f64 = 48.0;
/// How many panels stand side by side.
const MOST: usize = 2;
/// The mean width of a bold character, and the height of a line.
const CHARACTER: f64 = 7.0;
const LINE: f64 = 16.0;
/// Values are drawn in percent.
const PERCENT: f64 = 100.0;

/// Draws a figure as an SVG file of its own. O(points).
pub fn figure_svg(figure: &Figure) -> String {
    let columns = figure.panels.len().clamp(1, MOST);
    let lines = figure.panels.len().div_ceil(MOST).max(1);
    let width = LEFT + columns as f64 * (PANEL + BETWEEN) - BETWEEN + 16.0;
    let width = width.max(620.0);
    let each = HEIGHT + BELOW + 46.0;
    let title = wrapped(&figure.title, (width / CHARACTER) as usize);
    let head = LINE * title.len().saturating_sub(1) as f64;
    let height = TOP + head + lines as f64 * each - 40.0;
    let about =
        "Curves by strength u of the relations, with standard errors; levels do not depend on u.";
    let mut chart = Chart::new(width, height, &figure.title, about);
    for (at, line) in title.iter().enumerate() {
        chart.text("name", 12.0, 22.0 + LINE * at as f64, line);
    }
    chart.legend(12.0, width - 12.0, 46.0 + head, &legend(figure));
    for (at, panel) in figure.panels.iter().enumerate() {
        let left = LEFT + (at % MOST) as f64 * (PANEL + BETWEEN);
        let top = TOP + head + (at / MOST) as f64 * each;
        draw(&mut chart, figure, panel, left, top);
    }
    chart.standalone()
}

/// Splits a text between words into lines of at most this many characters.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn style(series: &FigureSeries) -> Option<SeriesStyle> {
    match series.line {
        LineStyle::Solid => Some(SeriesStyle::First),
        LineStyle::Dashed => Some(SeriesStyle::Second),
        LineStyle::Dotted => Some(SeriesStyle::Third),
        LineStyle::Level => Some(SeriesStyle::Reference),
        LineStyle::Baseline => None,
    }
}

/// Whether it is a horizontal line.
fn is_level(series: &FigureSeries) -> bool {
    series.points.iter().all(|(u, _)| u.is_none())
}

/// Every name once; baselines are named in the panels.
fn legend(figure: &Figure) -> Vec<(SeriesStyle, String)> {
    let mut entries: Vec<(SeriesStyle, String)> = Vec::new();
    for series in figure.panels.iter().flat_map(|panel| &panel.series) {
        if let Some(style) = style(series)
            && !entries.iter().any(|(_, name)| *name == series.name)
        {
            entries.push((style, series.name.clone()));
        }
    }
    entries
}

fn ends(spread: &Spread) -> [f64; 2] {
    let error = spread.standard_error().unwrap_or(0.0);
    [PERCENT * (spread.mean - error), PERCENT * (spread.mean + error)]
}

fn draw(chart: &mut Chart, figure: &Figure, shown: &FigurePanel, left: f64, top: f64) {
    let curves = || shown.series.iter().filter(|series| !is_level(series));
    let strengths: Vec<f64> =
        curves().flat_map(|s| s.points.iter().filter_map(|(u, _)| *u)).collect();
    let points = shown.series.iter().flat_map(|series| &series.points);
    let heights: Vec<f64> = points.flat_map(|(_, spread)| ends(spread)).collect();
    let x = Axis::fitting(&strengths, 20.0, 6);
    let Some((x, y)) = x.zip(Axis::linear(heights, 6)) else {
        chart.no_data((left, left + PANEL), (top, top + HEIGHT), &shown.title);
        return;
    };
    let name =
        if x.is_logarithmic() { format!("{} (logarithmic)", figure.x) } else { figure.x.clone() };
    let panel = PlotPanel { left, top, width: PANEL, height: HEIGHT, x, y };
    // The title of the figure says what is measured if a panel has no room for it.
    let full = format!("{}: {}, %", shown.title, figure.y);
    let fits = full.chars().count() as f64 * CHARACTER <= PANEL + BETWEEN;
    chart.axes(&panel, Some(&name), if fits { &full } else { &shown.title });
    for series in shown.series.iter().filter(|series| is_level(series)) {
        level(chart, &panel, series);
    }
    for series in curves() {
        let points = || series.points.iter().filter_map(|(u, spread)| Some(((*u)?, spread)));
        for (u, spread) in points().filter(|(_, spread)| spread.deviation.is_some()) {
            let [low, high] = ends(spread);
            chart.error_bar(&panel, u, low, high);
        }
        let line: Vec<(f64, f64)> =
            points().map(|(u, spread)| (u, PERCENT * spread.mean)).collect();
        let about = |u: f64, mean: f64| format!("{}, u = {u}: {}", series.name, number(mean));
        chart.line(&panel, style(series).unwrap_or(SeriesStyle::First), &line, about);
    }
}

fn level(chart: &mut Chart, panel: &PlotPanel, series: &FigureSeries) {
    let Some(spread) = series.points.first().map(|(_, spread)| spread) else { return };
    let Some(y) = panel.at_y(PERCENT * spread.mean) else { return };
    let (left, right) = (panel.left, panel.right());
    let [low, high] = ends(spread).map(|end| panel.at_y(end));
    if let Some((low, high)) =
        low.zip(high).filter(|(low, high)| low > high && series.line == LineStyle::Level)
    {
        chart.rectangle("band", (left, right), (high, low), &format!("{}, ± error", series.name));
    }
    let class = match series.line {
        LineStyle::Level => "line ref",
        LineStyle::Dotted => "line s3",
        _ => "edge",
    };
    chart.segment(class, (left, y), (right, y));
    if series.line == LineStyle::Baseline {
        chart.text("stage", left + 4.0, y - 3.0, &series.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::well_formed::elements;

    fn spread(mean: f64) -> Spread {
        Spread { mean, deviation: Some(0.02), count: 5 }
    }

    #[test]
    fn curves_levels_and_baselines_are_drawn() {
        let series = |name: &str, line: LineStyle, points: &[(Option<f64>, f64)]| FigureSeries {
            name: String::from(name),
            line,
            points: points.iter().map(|&(u, mean)| (u, spread(mean))).collect(),
        };
        let panel = |title: &str| FigurePanel {
            title: String::from(title),
            series: vec![
                series(
                    "constant",
                    LineStyle::Solid,
                    &[(Some(0.1), 0.4), (Some(0.5), 0.5), (Some(1.5), 0.45)],
                ),
                series("variable", LineStyle::Dotted, &[(Some(0.1), 0.42), (Some(0.5), 0.52)]),
                series("HEX", LineStyle::Level, &[(None, 0.44)]),
                series("softmax", LineStyle::Baseline, &[(None, 0.3)]),
            ],
        };
        let figure = Figure {
            file: String::from("figure"),
            title: String::from("A & B"),
            x: String::from("u"),
            y: String::from("top-1 accuracy"),
            panels: (0..5).map(|at| panel(&format!("{at} %"))).collect(),
        };
        let svg = figure_svg(&figure);
        assert_eq!(elements(&svg).first().map(String::as_str), Some("svg"));
        assert_eq!(svg.matches("class=\"error\"").count(), 5 * 5);
        assert_eq!(svg.matches(">softmax</text>").count(), 5, "in each panel");
        assert_eq!(svg.matches(">HEX</text>").count(), 1, "in the legend");
        assert!(svg.contains("A &amp; B") && !svg.contains("NaN"), "{svg}");
        let nothing =
            Figure { panels: vec![FigurePanel { title: String::new(), series: vec![] }], ..figure };
        assert!(figure_svg(&nothing).contains("no data"));
    }
}
