//! Reliability diagrams: how often labels that were given probability p are on.
//!
//! The upper panel shows the observed rate against the mean prediction of each bin, beside the diagonal, with
//! the gap as a bar. The lower panel shows how many predictions each bin holds. No intervals are drawn:
//! predictions of one row are not independent, so binomial intervals would be too narrow.

use phex::metrics::Reliability;

use super::{Piece, captioned};
use crate::chart::{Axis, Chart, PlotPanel, SeriesStyle};
use crate::text::{count, number, share};

/// One bin of predictions.
#[derive(Debug, Clone, Copy)]
pub struct ReliabilityBin {
    /// Where the bin begins and ends.
    pub range: (f64, f64),
    /// The mean of its predictions; NaN if it is empty.
    pub mean_predicted: f64,
    /// The share of them that are on; NaN if it is empty.
    pub observed: f64,
    /// How many predictions it holds.
    pub count: u64,
}

/// A reliability diagram.
#[derive(Debug, Clone)]
pub struct ReliabilityDiagram {
    /// The name of the method: `pHEX, u = 0.5`.
    pub name: String,
    /// The bins in order.
    pub bins: Vec<ReliabilityBin>,
    /// The expected calibration error; NaN if it is unknown.
    pub expected_calibration_error: f64,
}

const WIDTH: f64 = 440.0;
const LEFT: f64 = 58.0;
const SIDE: f64 = 364.0;
const TOP: f64 = 34.0;
/// Below the diagram: its gap and the histogram.
const GAP: f64 = 42.0;
const COUNTS: f64 = 84.0;

impl ReliabilityDiagram {
    /// The diagram of a measured reliability.
    pub fn new(name: &str, reliability: &Reliability) -> ReliabilityDiagram {
        let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let bins = reliability.bins.iter().map(|bin| ReliabilityBin {
            range: (bin.low, bin.high),
            mean_predicted: known(bin.predicted),
            observed: known(bin.observed),
            count: bin.count,
        });
        ReliabilityDiagram {
            name: name.to_owned(),
            bins: bins.collect(),
            expected_calibration_error: known(reliability.expected_error()),
        }
    }

    fn caption(&self) -> String {
        let total: u64 = self.bins.iter().map(|bin| bin.count).sum();
        if total == 0 {
            return format!("{}: no predictions.", self.name);
        }
        format!(
            "{}: expected calibration error {} over {} predictions in {} bins. Below \
             the diagonal probabilities are too high, above it too low.",
            self.name,
            number(self.expected_calibration_error),
            count(total),
            self.bins.len()
        )
    }

    fn chart(&self) -> Chart {
        let height = TOP + SIDE + GAP + COUNTS + 46.0;
        let mut chart = Chart::new(WIDTH, height, "Reliability diagram", &self.caption());
        let unit = || Axis::between(0.0, 1.0, 5);
        let (x, y) = (unit(), unit());
        let panel = PlotPanel { left: LEFT, top: TOP, width: SIDE, height: SIDE, x, y };
        let points: Vec<(f64, f64)> =
            self.bins.iter().map(|bin| (bin.mean_predicted, bin.observed)).collect();
        let drawn = |point: &(f64, f64)| panel.at(*point).is_some();
        if !points.iter().any(drawn) {
            let y = (TOP, TOP + SIDE + GAP + COUNTS);
            chart.no_data((LEFT, LEFT + SIDE), y, "observed rate");
            return chart;
        }
        chart.axes(&panel, None, "observed rate");
        for &(predicted, observed) in points.iter().filter(|point| drawn(point)) {
            let ends = panel.at((predicted, predicted)).zip(panel.at((predicted, observed)));
            if let Some((from, to)) = ends {
                chart.segment("gap", from, to);
            }
        }
        chart.line(&panel, SeriesStyle::Reference, &[(0.0, 0.0), (1.0, 1.0)], |_, _| String::new());
        // Empty bins do not interrupt the line.
        let there: Vec<(f64, f64)> = points.into_iter().filter(|point| drawn(point)).collect();
        chart.line(&panel, SeriesStyle::First, &there, |x, y| {
            format!("predicted {}, observed {}", share(x), share(y))
        });
        let legend = [
            (SeriesStyle::First, String::from("bins")),
            (SeriesStyle::Reference, String::from("honest")),
        ];
        chart.legend(LEFT + 90.0, LEFT + SIDE, TOP - 12.0, &legend);
        self.histogram(&mut chart);
        chart
    }

    fn histogram(&self, chart: &mut Chart) {
        let counts: Vec<f64> = self.bins.iter().map(|bin| bin.count as f64).collect();
        let largest = counts.iter().copied().fold(0.0, f64::max);
        let least = counts.iter().copied().filter(|n| *n > 0.0).fold(f64::INFINITY, f64::min);
        let x = Axis::between(0.0, 1.0, 5);
        // Logarithms from a little below the smallest bin, so that it can be seen.
        let logarithmic = (largest > 50.0 * least).then(|| {
            let low = 10f64.powf(least.log10().floor()) * 0.7;
            Axis::logarithmic([low, largest], 3)
        });
        let y = logarithmic.flatten().unwrap_or_else(|| Axis::between(0.0, largest, 3));
        let top = TOP + SIDE + GAP;
        let panel = PlotPanel { left: LEFT, top, width: SIDE, height: COUNTS, x, y };
        chart.axes(&panel, Some("predicted probability"), "predictions");
        for bin in self.bins.iter().filter(|bin| bin.count > 0) {
            let (from, to) = (panel.at_x(bin.range.0), panel.at_x(bin.range.1));
            if let Some(((from, to), top)) = from.zip(to).zip(panel.at_y(bin.count as f64)) {
                let about = format!(
                    "{} to {}: {} predictions",
                    share(bin.range.0),
                    share(bin.range.1),
                    count(bin.count)
                );
                // A gap between bars that are wide enough for it.
                let air = if to - from > 4.0 { 1.0 } else { 0.0 };
                let bottom = panel.bottom();
                chart.rectangle("bar", (from + air, to - air), (top, bottom), &about);
            }
        }
    }
}

impl Piece for ReliabilityDiagram {
    fn html(&self) -> String {
        captioned(&self.chart().inline(), &self.caption()).replacen(
            "<figure",
            "<figure class=\"small\"",
            1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use crate::well_formed::elements;

    #[test]
    fn every_bin_has_a_point_and_a_bar() {
        let html = samples::reliability().html();
        let names = elements(&html);
        assert_eq!(names.iter().filter(|name| *name == "circle").count(), 9 + 1, "and the legend");
        assert_eq!(names.iter().filter(|name| *name == "rect").count(), 9, "one bin is empty");
        assert!(html.contains("expected calibration error 0.0312 over"), "{html}");
        assert!(!html.contains("NaN"));
    }

    #[test]
    fn empty_bins_give_no_data() {
        let mut diagram = samples::reliability();
        for bin in &mut diagram.bins {
            *bin =
                ReliabilityBin { mean_predicted: f64::NAN, observed: f64::NAN, count: 0, ..*bin };
        }
        let html = diagram.html();
        elements(&html);
        assert!(html.contains("no data") && html.contains("no predictions"), "{html}");
        diagram.bins.clear();
        assert!(diagram.html().contains("no data"));
    }
}
