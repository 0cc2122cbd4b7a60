//! The tables and figures of a relabelled experiment.

use super::data::RelabelledData;
use super::settings::{Inference, MethodSettings, RelabelledSettings, Relations};
use super::{MeasuredCell, TrainingAnswer};
use crate::experiment::Findings;
use crate::harness::MarkdownTable;
use crate::harness::PairedTest;
use crate::harness::statistics::percent as percent_spread;
use phex::metrics::Spread;
use phex_report::{Figure, FigurePanel, FigureSeries, LineStyle};

pub(super) fn outcome(
    settings: &RelabelledSettings,
    data: &RelabelledData,
    measured: &[MeasuredCell],
) -> Findings {
    let view = ResultTables { settings, measured };
    let mut tables = vec![
        view.accuracies("Top-1 accuracy on test rows, %", |run| run.top_1),
        view.accuracies("Top-5 accuracy on test rows, %", |run| run.top_5),
        view.soft_against_hard(),
    ];
    tables.extend(view.recipe());
    tables.extend(view.by_method());
    let mut figures = Vec::new();
    for (at, group) in view.groups().iter().enumerate() {
        for (metric, value) in [("1", top_1 as fn(&TrainingAnswer) -> f64), ("5", top_5)] {
            let file = format!("group{}_top{metric}", at + 1);
            figures.extend(view.figure(group, &file, metric, value));
        }
    }
    let about = format!(
        "{} rows per class: {}; {} epochs; learning rates tried: {}; a tenth of the evaluation rows for validation, the rest for the test.",
        data.about,
        if settings.rows_a_class == 0 {
            String::from("all")
        } else {
            settings.rows_a_class.to_string()
        },
        settings.epochs,
        rates(settings)
    );
    Findings { title: settings.title.clone(), data: about, tables, figures, ..Findings::default() }
}

/// The learning rates of the experiment, and of groups with their own.
fn rates(settings: &RelabelledSettings) -> String {
    let mut text = format!("{:?}", settings.learning_rates);
    let mut told: Vec<&str> = Vec::new();
    for method in &settings.methods {
        if let Some(own) = &method.learning_rates
            && !told.contains(&method.group.as_str())
        {
            told.push(&method.group);
            text.push_str(&format!(", by \"{}\" {own:?}", method.group));
        }
    }
    text
}

fn top_1(run: &TrainingAnswer) -> f64 {
    run.top_1
}

fn top_5(run: &TrainingAnswer) -> f64 {
    run.top_5
}

fn percent(part: f64) -> String {
    format!("{} %", (1000.0 * part).round() / 10.0)
}

struct ResultTables<'a> {
    settings: &'a RelabelledSettings,
    measured: &'a [MeasuredCell],
}

impl MeasuredCell {
    fn summary(&self, value: impl Fn(&TrainingAnswer) -> f64) -> Option<Spread> {
        Spread::of(&self.runs.iter().map(value).collect::<Vec<f64>>())
    }

    fn values(&self) -> Vec<f64> {
        self.runs.iter().map(top_1).collect()
    }

    fn validation(&self) -> f64 {
        self.summary(|run| run.validation).map_or(f64::NAN, |summary| summary.mean)
    }
}

impl<'a> ResultTables<'a> {
    fn method(&self, measured: &MeasuredCell) -> &'a MethodSettings {
        &self.settings.methods[measured.cell.method]
    }

    fn groups(&self) -> Vec<&'a str> {
        let mut groups: Vec<&str> = Vec::new();
        for method in &self.settings.methods {
            if !groups.contains(&method.group.as_str()) {
                groups.push(&method.group);
            }
        }
        groups
    }

    /// The name of a cell without its share of relabelled rows.
    fn name(&self, measured: &MeasuredCell) -> String {
        let method = self.method(measured);
        match (method.relations, measured.cell.u) {
            (Relations::Soft, Some(u)) => format!("{}, u = {u}", method.name),
            _ => method.name.clone(),
        }
    }

    fn accuracies(&self, title: &str, value: fn(&TrainingAnswer) -> f64) -> MarkdownTable {
        let mut columns = String::from("| method");
        for &part in &self.settings.relabelled {
            columns.push_str(&format!(" | {} relabelled", percent(part)));
        }
        let mut table = MarkdownTable::new(title, &columns);
        for group in self.groups() {
            for first in self.measured.iter().filter(|m| self.method(m).group == group) {
                let same = |other: &&MeasuredCell| {
                    other.cell.method == first.cell.method && other.cell.u == first.cell.u
                };
                let all: Vec<&MeasuredCell> = self.measured.iter().filter(same).collect();
                if !std::ptr::eq(all[0], first) {
                    continue;
                }
                let mut row = vec![String::from(group), self.name(first)];
                row.extend(self.settings.relabelled.iter().map(|part| {
                    let cell = all.iter().find(|other| other.cell.relabelled == *part);
                    cell.and_then(|cell| cell.summary(value))
                        .map_or(String::from("–"), |summary| percent_spread(&summary))
                }));
                table.rows.push(row);
            }
        }
        table
    }

    /// The cell that is best on the validation rows.
    fn best<'m>(&self, cells: impl Iterator<Item = &'m MeasuredCell>) -> Option<&'m MeasuredCell> {
        cells.reduce(|best, next| if next.validation() > best.validation() { next } else { best })
    }

    fn of(&self, group: &str, part: f64) -> impl Iterator<Item = &'a MeasuredCell> {
        let (settings, measured) = (self.settings, self.measured);
        let group = String::from(group);
        measured.iter().filter(move |measured| {
            settings.methods[measured.cell.method].group == group
                && measured.cell.relabelled == part
        })
    }

    /// Soft relations against the hard ones of their group, run by run.
    fn soft_against_hard(&self) -> MarkdownTable {
        let mut table = MarkdownTable::new(
            "Soft relations, u chosen on validation rows, against hard ones of the same group: gain in top-1 accuracy, % (paired t-test)",
            " | relabelled | soft | inference | gain over hard",
        );
        for group in self.groups() {
            for &part in &self.settings.relabelled {
                let hard =
                    self.of(group, part).find(|m| self.method(m).relations == Relations::Hard);
                let Some(hard) = hard else { continue };
                for inference in [Inference::Exact, Inference::Lbp] {
                    let soft = self.of(group, part).filter(|m| {
                        let method = self.method(m);
                        method.relations == Relations::Soft && method.inference == inference
                    });
                    let Some(soft) = self.best(soft) else { continue };
                    let count = soft.runs.len().min(hard.runs.len());
                    let gain = PairedTest::new(&soft.values()[..count], &hard.values()[..count]);
                    table.rows.push(vec![
                        String::from(group),
                        percent(part),
                        self.name(soft),
                        String::from(if inference == Inference::Exact { "exact" } else { "LBP" }),
                        gain.map_or(String::from("–"), |gain| gain.percent()),
                    ]);
                }
            }
        }
        table
    }

    /// The recipe against the other methods.
    fn recipe(&self) -> Option<MarkdownTable> {
        let recipe = self.settings.recipe.as_deref()?;
        let mut table = MarkdownTable::new(
            "The recipe (strengths chosen on validation rows, hard among them) against others: gain in top-1 accuracy, %",
            "relabelled | chosen | top-1 | over HEX from random weights | over the best staged pHEX (the paper's) | over the best HEX or constant u of all, by its test rows | over the best baseline, by its test rows",
        );
        for &part in &self.settings.relabelled {
            let Some(chosen) = self.best(self.of(recipe, part)) else { continue };
            let against = |other: Option<&MeasuredCell>| {
                let gain = other.and_then(|other| {
                    let count = chosen.runs.len().min(other.runs.len());
                    PairedTest::new(&chosen.values()[..count], &other.values()[..count])
                });
                let name = other.map_or(String::new(), |other| {
                    format!(" ({}: {})", self.method(other).group, self.name(other))
                });
                gain.map_or(String::from("–"), |gain| format!("{}{name}", gain.percent()))
            };
            let random = self.settings.random.as_deref().and_then(|group| {
                self.of(group, part).find(|m| self.method(m).relations == Relations::Hard)
            });
            let staged = self.settings.staged.as_deref().and_then(|group| {
                self.best(
                    self.of(group, part).filter(|m| self.method(m).relations == Relations::Soft),
                )
            });
            let mean = |m: &MeasuredCell| m.summary(top_1).map_or(f64::NAN, |summary| summary.mean);
            let best = |kind: fn(Relations) -> bool| {
                let same = self.measured.iter().filter(|m| {
                    let method = self.method(m);
                    m.cell.relabelled == part
                        && method.hidden == self.method(chosen).hidden
                        && kind(method.relations)
                });
                same.reduce(|best, next| if mean(next) > mean(best) { next } else { best })
            };
            table.rows.push(vec![
                percent(part),
                self.name(chosen),
                chosen
                    .summary(top_1)
                    .map_or(String::from("–"), |summary| percent_spread(&summary)),
                against(random),
                against(staged),
                against(best(|kind| matches!(kind, Relations::Hard | Relations::Soft))),
                against(best(|kind| {
                    !matches!(kind, Relations::Hard | Relations::Soft | Relations::Learned)
                })),
            ]);
        }
        Some(table)
    }

    /// Every method at its best on validation rows, and how far the compared one is above it.
    fn by_method(&self) -> Option<MarkdownTable> {
        let compared = self.settings.compare.as_deref()?;
        let mut columns = String::from("method");
        for &part in &self.settings.relabelled {
            columns.push_str(&format!(" | {} relabelled", percent(part)));
        }
        let title = format!(
            "Each method with the group and the strength that validation rows choose: top-1 accuracy, %, and the gain of \"{compared}\" over it"
        );
        let mut table = MarkdownTable::new(&title, &columns);
        let best = |name: &str, part: f64| {
            let own = self.measured.iter().filter(|measured| measured.cell.relabelled == part);
            self.best(own.filter(|measured| self.method(measured).name == name))
        };
        let mut names: Vec<&str> = Vec::new();
        for method in &self.settings.methods {
            if !names.contains(&method.name.as_str()) {
                names.push(&method.name);
            }
        }
        for name in names {
            let cell = |&part: &f64| {
                let own = best(name, part)?;
                let group = &self.method(own).group;
                let u = own.cell.u.map_or(String::new(), |u| format!(", u = {u}"));
                let accuracy = percent_spread(&own.summary(top_1)?);
                if name == compared {
                    return Some(format!("{accuracy} ({group}{u})"));
                }
                let reference = best(compared, part)?;
                let count = reference.runs.len().min(own.runs.len());
                let gain = PairedTest::new(&reference.values()[..count], &own.values()[..count])?;
                Some(format!("{accuracy} ({group}{u}); {}", gain.percent()))
            };
            let cells = self.settings.relabelled.iter();
            let cells = cells.map(|part| cell(part).unwrap_or_else(|| String::from("–")));
            table.rows.push(std::iter::once(String::from(name)).chain(cells).collect());
        }
        Some(table)
    }

    /// Accuracy against u, with one panel per share of relabelled rows; `None` for a group without a curve.
    fn figure(
        &self,
        group: &str,
        file: &str,
        metric: &str,
        value: fn(&TrainingAnswer) -> f64,
    ) -> Option<Figure> {
        let methods = || {
            let methods = self.settings.methods.iter().enumerate();
            methods.filter(|(_, method)| method.group == group)
        };
        methods().find(|(_, method)| method.relations == Relations::Soft)?;
        let panels = self.settings.relabelled.iter().map(|&part| {
            let series = methods().filter_map(|(at, method)| {
                let cells = self.of(group, part).filter(|m| m.cell.method == at);
                let u = |m: &MeasuredCell| m.cell.u.filter(|_| method.relations == Relations::Soft);
                let points: Vec<(Option<f64>, Spread)> =
                    cells.filter_map(|m| Some((u(m), m.summary(value)?))).collect();
                let line = match (method.relations, method.inference) {
                    (Relations::Soft, Inference::Exact) => LineStyle::Solid,
                    (Relations::Soft, Inference::Lbp) => LineStyle::Dashed,
                    (Relations::Learned, _) => LineStyle::Dotted,
                    (Relations::Hard, _) => LineStyle::Level,
                    _ => LineStyle::Baseline,
                };
                let name = method.name.clone();
                (!points.is_empty()).then_some(FigureSeries { name, line, points })
            });
            let series: Vec<FigureSeries> = series.collect();
            FigurePanel { title: format!("{} relabelled", percent(part)), series }
        });
        let panels: Vec<FigurePanel> = panels.filter(|panel| !panel.series.is_empty()).collect();
        (!panels.is_empty()).then(|| Figure {
            file: String::from(file),
            title: format!("{}, {group}: top-{metric} accuracy", self.settings.title),
            x: String::from("u"),
            y: format!("top-{metric} accuracy"),
            panels,
        })
    }
}
