//! Whether probabilities are honest: how often what got probability p was so.
//!
//! Above: the observed rate by the mean prediction of each bin, beside the diagonal, with the gap
//! as a bar. Below: how many predictions each bin holds. No intervals are drawn: predictions of
//! one row are not independent, and binomial ones would be too narrow.

use super::axis::Axis;
use super::chart::{Chart, Panel, Series};
use super::text::{count, number, share};
use super::{Piece, figure};

/// One bin of predictions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bin {
    /// Where the bin begins and ends.
    pub(crate) range: (f64, f64),
    /// The mean of its predictions; NaN where it is empty.
    pub(crate) mean_predicted: f64,
    /// The part of them that was so; NaN where it is empty.
    pub(crate) observed: f64,
    /// How many predictions it holds.
    pub(crate) count: u64,
}

/// A reliability diagram.
#[derive(Debug, Clone)]
pub(crate) struct ReliabilityDiagram {
    /// Whose predictions they are: `pHEX, u = 0.5`.
    pub(crate) name: String,
    /// The bins in order.
    pub(crate) bins: Vec<Bin>,
    /// The expected calibration error; NaN where it is not known.
    pub(crate) expected_calibration_error: f64,
}

const WIDTH: f64 = 440.0;
const LEFT: f64 = 58.0;
const SIDE: f64 = 364.0;
const TOP: f64 = 34.0;
/// Below the diagram: its gap and the histogram.
const GAP: f64 = 42.0;
const COUNTS: f64 = 84.0;

impl ReliabilityDiagram {
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
        let panel = Panel { left: LEFT, top: TOP, width: SIDE, height: SIDE, x, y };
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
        chart.line(&panel, Series::Reference, &[(0.0, 0.0), (1.0, 1.0)], |_, _| String::new());
        // Empty bins are no gaps in the line: there is nothing between their neighbours.
        let there: Vec<(f64, f64)> = points.into_iter().filter(|point| drawn(point)).collect();
        chart.line(&panel, Series::First, &there, |x, y| {
            format!("predicted {}, observed {}", share(x), share(y))
        });
        let legend =
            [(Series::First, String::from("bins")), (Series::Reference, String::from("honest"))];
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
        let panel = Panel { left: LEFT, top, width: SIDE, height: COUNTS, x, y };
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
                // A unit of air between bars, where they are wide enough for it.
                let air = if to - from > 4.0 { 1.0 } else { 0.0 };
                let bottom = panel.bottom();
                chart.rectangle("bar", (from + air, to - air), (top, bottom), &about);
            }
        }
    }
}

impl Piece for ReliabilityDiagram {
    fn html(&self) -> String {
        figure(&self.chart().inline(), &self.caption()).replacen(
            "<figure",
            "<figure class=\"small\"",
            1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::markup::elements;
    use super::super::samples;
    use super::*;

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
            *bin = Bin { mean_predicted: f64::NAN, observed: f64::NAN, count: 0, ..*bin };
        }
        let html = diagram.html();
        elements(&html);
        assert!(html.contains("no data") && html.contains("no predictions"), "{html}");
        diagram.bins.clear();
        assert!(diagram.html().contains("no data"));
    }
}
