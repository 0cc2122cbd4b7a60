//! The course of a training: loss, a metric and the learning rate by epoch, in panels below one another.
//!
//! Stages of a curriculum are bands with names; the best epoch is a line and a ring.

use std::fmt::Write as _;

use super::{Piece, captioned};
use crate::chart::{Axis, Chart, PlotPanel, SeriesStyle};
use crate::text::{cut, number};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 746.0;
const TOP: f64 = 34.0;
/// Between panels: room for the name of the lower one.
const GAP: f64 = 44.0;

/// The results of one epoch.
#[derive(Debug, Clone, Copy)]
pub struct EpochPoint {
    /// Mean loss over the training rows.
    pub training_loss: f64,
    /// Mean loss over the validation rows; NaN where they were not evaluated.
    pub validation_loss: f64,
    /// The metric over the validation rows; NaN where it was not computed.
    pub metric: f64,
    /// The learning rate; NaN if there is none.
    pub learning_rate: f64,
}

/// A stage of a curriculum.
#[derive(Debug, Clone)]
pub struct StageStart {
    /// Its name.
    pub name: String,
    /// Its first epoch, counted from 1.
    pub first_epoch: usize,
}

/// The course of a training.
#[derive(Debug, Clone)]
pub struct TrainingCurves {
    /// Epoch 1 and those after it.
    pub epochs: Vec<EpochPoint>,
    /// The name of the metric: `mean average precision`.
    pub metric: String,
    /// The stages in order; empty without a curriculum.
    pub stages: Vec<StageStart>,
    /// The epoch whose weights were kept, counted from 1.
    pub best: Option<usize>,
}

impl TrainingCurves {
    fn series(&self, of: impl Fn(&EpochPoint) -> f64) -> Points {
        self.epochs.iter().enumerate().map(|(at, epoch)| ((at + 1) as f64, of(epoch))).collect()
    }

    /// The best epoch, if it is one of the epochs.
    fn best(&self) -> Option<usize> {
        self.best.filter(|best| (1..=self.epochs.len()).contains(best))
    }

    /// The stages that were reached.
    fn reached(&self) -> impl Iterator<Item = &StageStart> {
        self.stages.iter().filter(|stage| stage.first_epoch <= self.epochs.len())
    }

    fn description(&self) -> String {
        let Some(last) = self.epochs.last() else {
            return String::from("No epoch was finished.");
        };
        let best = self.best().map_or(String::new(), |best| format!(" The best epoch is {best}."));
        let (epochs, training) = (self.epochs.len(), number(last.training_loss));
        let mut text = match epochs {
            1 => format!("One epoch: training loss {training}"),
            _ => format!("{epochs} epochs. At the end: training loss {training}"),
        };
        for (name, value) in
            [("validation loss", last.validation_loss), (&self.metric, last.metric)]
        {
            if value.is_finite() {
                let _ = write!(text, ", {name} {}", number(value));
            }
        }
        format!("{text}.{best}")
    }

    fn chart(&self) -> Chart {
        let training = self.series(|epoch| epoch.training_loss);
        // Validation may be rare, so its gaps are bridged. A gap in the training loss is an error and shows.
        let joined = |mut points: Points| {
            points.retain(|(_, y)| y.is_finite());
            points
        };
        let validation = joined(self.series(|epoch| epoch.validation_loss));
        let metric = joined(self.series(|epoch| epoch.metric));
        let rate = self.series(|epoch| epoch.learning_rate);
        let has = |points: &[(f64, f64)]| points.iter().any(|(_, y)| y.is_finite());
        let mut blocks = vec![CurvePanel {
            name: "loss",
            height: 200.0,
            ratio: 100.0,
            series: vec![
                (SeriesStyle::First, String::from("training"), training),
                (SeriesStyle::Second, String::from("validation"), validation),
            ],
        }];
        blocks[0].series.retain(|(_, _, points)| has(points));
        if has(&metric) {
            let name = String::from("validation");
            let series = vec![(SeriesStyle::Second, name, metric)];
            blocks.push(CurvePanel { name: &self.metric, height: 140.0, ratio: 1000.0, series });
        }
        if has(&rate) {
            let series = vec![(SeriesStyle::Third, String::new(), rate)];
            blocks.push(CurvePanel { name: "learning rate", height: 54.0, ratio: 1000.0, series });
        }
        let inner: f64 = blocks.iter().map(|block| block.height).sum();
        let height = TOP + inner + GAP * (blocks.len() - 1) as f64 + 46.0;
        let mut chart = Chart::new(WIDTH, height, "Training by epoch", &self.description());
        let mut y = TOP;
        let lowest = blocks.len() - 1;
        for (at, block) in blocks.iter().enumerate() {
            self.draw(&mut chart, block, y, at == 0, at == lowest);
            y += block.height + GAP;
        }
        chart
    }

    fn draw(&self, chart: &mut Chart, block: &CurvePanel<'_>, top: f64, first: bool, lowest: bool) {
        let values: Vec<f64> =
            block.series.iter().flat_map(|(_, _, points)| points).map(|(_, y)| *y).collect();
        let parts = if block.height > 100.0 { 5 } else { 2 };
        let Some(y) = Axis::fitting(&values, block.ratio, parts) else {
            chart.no_data((LEFT, RIGHT), (top, top + block.height), block.name);
            return;
        };
        let x = Axis::whole(1, self.epochs.len(), 12);
        let (width, height) = (RIGHT - LEFT, block.height);
        let panel = PlotPanel { left: LEFT, top, width, height, x, y };
        self.stages(chart, &panel, first);
        chart.axes(&panel, lowest.then_some("epoch"), block.name);
        let best = self.best();
        if let Some(x) = best.and_then(|best| panel.at_x(best as f64)) {
            chart.segment("mark", (x, panel.top), (x, panel.bottom()));
        }
        for (series, name, points) in &block.series {
            chart.line(&panel, *series, points, |x, y| {
                format!("epoch {x}, {name} {}: {}", block.name, number(y))
            });
        }
        let mut legend: Vec<(SeriesStyle, String)> =
            block.series.iter().map(|(series, name, _)| (*series, name.clone())).collect();
        legend.retain(|(_, name)| !name.is_empty());
        // The ring belongs to validation, the last of the series, not to the training loss.
        let ringed = block.series.last().filter(|(series, _, _)| *series == SeriesStyle::Second);
        let at = ringed.zip(best).and_then(|((_, _, points), best)| {
            points.iter().copied().find(|(epoch, _)| *epoch == best as f64)
        });
        if let Some((best, at)) = best.zip(at) {
            let about = format!("best epoch {best}: {}", number(at.1));
            chart.point(&panel, SeriesStyle::Chosen, at, &about);
            legend.push((SeriesStyle::Chosen, about));
        }
        let named = LEFT + 8.0 * block.name.chars().count() as f64;
        chart.legend(named, RIGHT, top - 12.0, &legend);
    }

    /// Bands of every second stage, lines where stages begin and, in the first panel, their names.
    fn stages(&self, chart: &mut Chart, panel: &PlotPanel, named: bool) {
        // A stage begins between its first epoch and the one before.
        let starts: Vec<f64> = self
            .reached()
            .map(|stage| match panel.at_x(stage.first_epoch as f64 - 0.5) {
                Some(x) if stage.first_epoch > 1 => x.clamp(panel.left, panel.right()),
                _ => panel.left,
            })
            .collect();
        for (at, stage) in self.reached().enumerate() {
            let from = starts[at];
            let to = starts.get(at + 1).copied().unwrap_or(panel.right()).max(from);
            if at % 2 == 1 {
                chart.rectangle("shade", (from, to), (panel.top, panel.bottom()), &stage.name);
            }
            if from > panel.left {
                chart.segment("edge", (from, panel.top), (from, panel.bottom()));
            }
            let letters = ((to - from - 8.0) / 5.8) as usize;
            if named && letters >= 3 {
                chart.text("stage", from + 5.0, panel.top + 13.0, &cut(&stage.name, letters));
            }
        }
    }
}

/// Epochs and values.
type Points = Vec<(f64, f64)>;

/// What one panel shows.
struct CurvePanel<'a> {
    name: &'a str,
    height: f64,
    /// The axis is logarithmic where numbers span more than this.
    ratio: f64,
    series: Vec<(SeriesStyle, String, Points)>,
}

impl Piece for TrainingCurves {
    fn html(&self) -> String {
        let stages: Vec<String> = self
            .reached()
            .map(|stage| format!("{} from epoch {}", stage.name, stage.first_epoch))
            .collect();
        let mut caption = self.description();
        if !stages.is_empty() {
            caption = format!("{caption} Stages: {}.", stages.join(", "));
        }
        captioned(&self.chart().inline(), &caption)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use crate::well_formed::elements;

    #[test]
    fn a_training_has_a_point_for_each_epoch_and_a_ring_for_the_best() {
        let html = samples::curves().html();
        let names = elements(&html);
        assert_eq!(names.iter().filter(|name| *name == "circle").count(), 30 + 1 + 2 * 2);
        for part in ["best epoch 24", "mean average precision", "leaves &lt;only&gt;", "<title>"] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("NaN"), "{html}");
    }

    #[test]
    fn few_epochs_or_none_still_give_a_picture() {
        let mut curves = samples::curves();
        curves.epochs.truncate(1);
        let html = curves.html();
        elements(&html);
        assert!(!html.contains("best epoch"), "epoch 24 is not among them");
        curves.epochs.clear();
        let html = curves.html();
        elements(&html);
        assert!(html.contains("no data") && html.contains("No epoch was finished"), "{html}");
        let nothing = f64::NAN;
        curves.epochs = vec![
            EpochPoint {
                training_loss: nothing,
                validation_loss: nothing,
                metric: nothing,
                learning_rate: f64::INFINITY
            };
            3
        ];
        assert!(curves.html().contains("no data"));
    }

    #[test]
    fn stages_outside_the_epochs_do_no_harm() {
        let mut curves = samples::curves();
        curves.stages.push(StageStart { name: String::from("never"), first_epoch: 900 });
        curves.stages.push(StageStart { name: String::from("zeroth"), first_epoch: 0 });
        curves.best = Some(0);
        elements(&curves.html());
    }
}
