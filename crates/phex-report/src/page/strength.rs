//! Tuning: a metric against the strength u of the relations, compared with hard relations.
//!
//! The axis of u is logarithmic if the strengths span a wide range; it then also has a position for u = 0.

use phex::metrics::Spread;

use super::{Piece, captioned};
use crate::chart::{Axis, Chart, PlotPanel, SeriesStyle};
use crate::text::{number, spread};

/// A metric against the strength of the relations.
#[derive(Debug, Clone)]
pub struct StrengthCurve {
    /// The name of the metric.
    pub metric: String,
    /// Each strength that was tried, as the paper's u = w / 4, and its result.
    pub points: Vec<(f64, Spread)>,
    /// The result of hard relations.
    pub hard: Option<Spread>,
    /// The strength that was chosen; infinity stands for hard.
    pub chosen: Option<f64>,
}

const WIDTH: f64 = 700.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 684.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 312.0;

impl StrengthCurve {
    /// The chart as an SVG file of its own.
    pub fn svg(&self) -> String {
        self.chart().standalone()
    }

    fn hard_is_chosen(&self) -> bool {
        self.chosen == Some(f64::INFINITY)
    }

    fn chosen_point(&self) -> Option<(f64, Spread)> {
        let near = |u: f64, chosen: f64| (u - chosen).abs() <= 1e-9 * chosen.abs();
        let chosen = self.chosen?;
        self.points.iter().copied().find(|(u, _)| near(*u, chosen))
    }

    fn description(&self) -> String {
        let mut parts = Vec::new();
        if self.hard_is_chosen() {
            parts.push(String::from("Chosen: hard relations."));
        } else if let Some(u) = self.chosen {
            let value = self.chosen_point().map(|(_, value)| format!(", {}", spread(&value)));
            parts.push(format!("Chosen: u = {u}{}.", value.unwrap_or_default()));
        }
        if let Some(hard) = self.hard {
            parts.push(format!("Hard relations: {}.", spread(&hard)));
        }
        if self.has_deviations() {
            parts.push(String::from("Bars: one standard deviation."));
        }
        let about = format!("By strength u of the relations: {}.", self.metric);
        format!("{about} {}", parts.join(" ")).trim_end().to_owned()
    }

    fn has_deviations(&self) -> bool {
        self.points.iter().any(|(_, value)| value.deviation.is_some())
    }

    fn chart(&self) -> Chart {
        let mut chart = Chart::new(WIDTH, HEIGHT, "Strength of relations", &self.description());
        let mut points = self.points.clone();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let strengths: Vec<f64> = points.iter().map(|(u, _)| *u).collect();
        let ends = |value: &Spread| {
            let deviation = value.deviation.unwrap_or(0.0);
            [value.mean - deviation, value.mean + deviation, value.mean]
        };
        let drawn = points.iter().map(|(_, value)| value).filter(|value| value.mean.is_finite());
        let heights: Vec<f64> = drawn.chain(&self.hard).flat_map(ends).collect();
        let x = Axis::fitting(&strengths, 20.0, 8);
        let y = Axis::linear(heights, 6);
        let Some((x, y)) = x.zip(y) else {
            chart.no_data((LEFT, RIGHT), (TOP, BOTTOM), &self.metric);
            return chart;
        };
        let name = if x.is_logarithmic() { "strength u (logarithmic)" } else { "strength u" };
        let (width, height) = (RIGHT - LEFT, BOTTOM - TOP);
        let panel = PlotPanel { left: LEFT, top: TOP, width, height, x, y };
        if let Some((low, high)) = self.hard.as_ref().map(ends).and_then(|[low, high, _]| {
            panel.at_y(low).zip(panel.at_y(high)).filter(|(low, high)| low > high)
        }) {
            chart.rectangle("band", (LEFT, RIGHT), (high, low), "hard relations, ± deviation");
        }
        chart.axes(&panel, Some(name), &self.metric);
        self.draw(&mut chart, &panel, &points);
        chart
    }

    fn draw(&self, chart: &mut Chart, panel: &PlotPanel, points: &[(f64, Spread)]) {
        let soft = if self.has_deviations() { "soft, ± deviation" } else { "soft" };
        let mut legend = vec![(SeriesStyle::First, String::from(soft))];
        if let Some((hard, y)) = self.hard.and_then(|hard| Some((hard, panel.at_y(hard.mean)?))) {
            chart.segment("line ref", (panel.left, y), (panel.right(), y));
            let chosen = if self.hard_is_chosen() { ", chosen" } else { "" };
            legend.push((SeriesStyle::Reference, format!("hard {}{chosen}", number(hard.mean))));
        }
        for (u, value) in points {
            if let Some(deviation) = value.deviation.filter(|deviation| *deviation > 0.0) {
                chart.error_bar(panel, *u, value.mean - deviation, value.mean + deviation);
            }
        }
        let line: Vec<(f64, f64)> = points.iter().map(|(u, value)| (*u, value.mean)).collect();
        let about = |u: f64, mean: f64| format!("u = {u}: {}", number(mean));
        chart.line(panel, SeriesStyle::First, &line, about);
        if let Some((u, value)) = self.chosen_point() {
            if let Some(x) = panel.at_x(u) {
                chart.segment("mark", (x, panel.top), (x, panel.bottom()));
            }
            let about = format!("chosen u = {u}");
            chart.point(panel, SeriesStyle::Chosen, (u, value.mean), &about);
            legend.push((SeriesStyle::Chosen, about));
        }
        let named = LEFT + 8.0 * self.metric.chars().count() as f64;
        chart.legend(named, RIGHT, TOP - 12.0, &legend);
    }
}

impl Piece for StrengthCurve {
    fn html(&self) -> String {
        captioned(&self.chart().inline(), &self.description())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use crate::well_formed::elements;

    #[test]
    fn the_curve_stands_alone_too() {
        let curve = samples::strength();
        let svg = curve.svg();
        let names = elements(&svg);
        assert_eq!(names.first().map(String::as_str), Some("svg"));
        assert!(names.contains(&String::from("style")));
        assert_eq!(svg.matches("class=\"error\"").count(), curve.points.len());
        assert_eq!(svg.matches("<circle").count(), curve.points.len() + 3, "a ring, the legend");
        for part in ["chosen u = 0.5", "hard 0.7210", "line ref", "class=\"band\""] {
            assert!(svg.contains(part), "{part}\n{svg}");
        }
        assert!(!svg.contains("var(") && !svg.contains("NaN"));
    }

    #[test]
    fn hard_may_win_and_strengths_may_be_missing() {
        let mut curve = samples::strength();
        curve.chosen = Some(f64::INFINITY);
        assert!(curve.svg().contains("hard 0.7210, chosen"));
        curve.points.iter_mut().for_each(|(_, value)| value.mean = f64::NAN);
        elements(&curve.svg());
        curve.hard = None;
        assert!(curve.svg().contains("no data"));
        curve.points.clear();
        let html = curve.html();
        elements(&html);
        assert!(html.contains("no data"));
    }
}
