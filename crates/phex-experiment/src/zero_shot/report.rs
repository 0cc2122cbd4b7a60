//! From accuracies to tables and a figure like the paper's.

use super::Tested;
use super::data::Data;
use super::entry::Entry;
use super::relations::Strengths;
use super::settings::{CostMap, ZeroShotSettings};
use crate::outcome::{Figure, FigurePanel, FigureSeries, Line, Outcome, Table};
use crate::statistics::{Comparison, Summary};

/// A line of a table: what was tested in each fold, and which entry it was.
struct Row {
    name: String,
    tests: Vec<f64>,
    validations: Vec<f64>,
    chosen: Vec<String>,
}

/// Everything that was found.
pub(super) fn outcome(
    settings: &ZeroShotSettings,
    data: &Data,
    entries: &[Entry],
    results: &[Vec<Tested>],
) -> Outcome {
    let report = Report { settings, entries, results };
    let mut tables = vec![report.table(false)];
    tables.push(report.recipe_table());
    if !settings.class_logits.is_empty() {
        tables.push(report.table(true));
    }
    tables.push(report.choices());
    let mut about = data.about.clone();
    if let Some(area) = settings.detector_area {
        about += &format!(
            " The noise of the detectors is Gaussian, for an area of {area} under the ROC curve of each \
             attribute. Standard errors are over {} draws of the noise with rotated validation classes: the \
             test classes are the same in all.",
            settings.folds
        );
    }
    Outcome {
        title: settings.title.clone(),
        data: about,
        tables,
        figures: vec![report.figure(data)],
        ..Outcome::default()
    }
}

struct Report<'a> {
    settings: &'a ZeroShotSettings,
    entries: &'a [Entry],
    results: &'a [Vec<Tested>],
}

impl Report<'_> {
    /// The entries that relations of given strengths make.
    fn given(&self, logits: bool) -> impl Iterator<Item = (usize, Strengths)> + '_ {
        self.entries.iter().enumerate().filter_map(move |(at, entry)| match *entry {
            Entry::Given { strengths, class_logits } if class_logits == logits => {
                Some((at, strengths))
            }
            _ => None,
        })
    }

    fn row(&self, at: usize) -> Row {
        let folds = &self.results[at];
        let describe = |tested: &Tested| {
            let factors: Vec<String> = tested.factors.iter().map(|f| format!("{f:.2}")).collect();
            let mut text = tested.chosen.describe();
            if !factors.is_empty() {
                text += &format!(", costs times {}", factors.join(" and "));
            }
            text
        };
        Row {
            name: self.entries[at].name(),
            tests: folds.iter().map(|tested| tested.test).collect(),
            validations: folds.iter().map(|tested| tested.validation).collect(),
            chosen: folds.iter().map(describe).collect(),
        }
    }

    /// In each fold the one of some entries that validation likes best; the first of equals.
    fn best(&self, name: &str, among: &[usize]) -> Option<Row> {
        let mut row = Row {
            name: String::from(name),
            tests: Vec::new(),
            validations: Vec::new(),
            chosen: Vec::new(),
        };
        for fold in 0..self.results.first().map_or(0, Vec::len) {
            let tested = |at: usize| &self.results[at][fold];
            let better = |best: usize, at: usize| {
                if tested(at).validation > tested(best).validation { at } else { best }
            };
            let at = among.iter().copied().reduce(better)?;
            row.tests.push(tested(at).test);
            row.validations.push(tested(at).validation);
            row.chosen.push(format!(
                "{}: {}",
                self.entries[at].name(),
                tested(at).chosen.describe()
            ));
        }
        Some(row)
    }

    fn recipe(&self, logits: bool) -> Option<Row> {
        let all: Vec<usize> = self.given(logits).map(|(at, _)| at).collect();
        self.best("recipe: strengths chosen on validation", &all)
    }

    fn hard(&self, logits: bool) -> Option<Row> {
        let found = self.given(logits).find(|(_, strengths)| *strengths == Strengths::Hard);
        found.map(|(at, _)| self.row(at))
    }

    /// Entries chosen among others: constant, each map, and all.
    fn tuned(&self, logits: bool) -> Vec<Row> {
        let among = |is: &dyn Fn(Strengths) -> bool| -> Vec<usize> {
            self.given(logits).filter(|(_, strengths)| is(*strengths)).map(|(at, _)| at).collect()
        };
        let constant = among(&|strengths| matches!(strengths, Strengths::Constant { .. }));
        let mut rows: Vec<Row> = self.best("constant, u tuned", &constant).into_iter().collect();
        for wanted in self.settings.maps.iter().map(|curve| curve.map) {
            let is = |s| matches!(s, Strengths::Variable { map, .. } if map == wanted);
            rows.extend(self.best(&format!("variable ({}), u tuned", wanted.name()), &among(&is)));
        }
        rows.extend(self.recipe(logits));
        rows
    }

    /// The rows of a table: given strengths, those chosen among them, and what has none.
    fn rows(&self, logits: bool) -> Vec<Row> {
        let mut rows: Vec<Row> = self.given(logits).map(|(at, _)| self.row(at)).collect();
        rows.extend(self.tuned(logits));
        if !logits {
            let others = self.entries.iter().enumerate();
            let others = others.filter(|(_, entry)| !matches!(entry, Entry::Given { .. }));
            rows.extend(others.map(|(at, _)| self.row(at)));
        }
        rows
    }

    fn table(&self, logits: bool) -> Table {
        let with = if logits { "with class logits" } else { "attributes alone decide" };
        let title = format!("Mean accuracy per unseen class, %; {with}");
        let columns = ["relations", "test", "against HEX", "validation"];
        let mut table = Table::new(&title, &columns);
        let hard = self.hard(logits);
        for row in self.rows(logits) {
            let against =
                hard.as_ref().and_then(|hard| Comparison::paired(&row.tests, &hard.tests));
            let is_hard = hard.as_ref().is_some_and(|hard| hard.name == row.name);
            table.rows.push(vec![
                row.name,
                percent(&row.tests),
                against.filter(|_| !is_hard).map_or(String::new(), |found| found.percent()),
                percent(&row.validations),
            ]);
        }
        table
    }

    /// Whether the recipe loses to hard relations or to a constant strength.
    fn recipe_table(&self) -> Table {
        let title = "The recipe against hard relations and every strength";
        let columns = ["against", "difference", "loses by more than the standard error"];
        let mut table = Table::new(title, &columns);
        let Some(recipe) = self.recipe(false) else { return table };
        for (at, _) in self.given(false) {
            let row = self.row(at);
            let Some(found) = Comparison::paired(&recipe.tests, &row.tests) else { continue };
            let error = found.difference.error.unwrap_or(0.0);
            let loses = if found.difference.mean < -error { "yes" } else { "no" };
            table.rows.push(vec![row.name, found.percent(), String::from(loses)]);
        }
        table
    }

    /// What validation chose in each fold, and what became of it.
    fn choices(&self) -> Table {
        let columns = ["fold", "entry", "chosen", "validation", "test"];
        let mut table = Table::new("What validation chose, %", &columns);
        let mut rows: Vec<Row> = self.hard(false).into_iter().collect();
        rows.extend(self.tuned(false));
        let others = self.entries.iter().enumerate();
        let others = others.filter(|(_, entry)| !matches!(entry, Entry::Given { .. }));
        rows.extend(others.map(|(at, _)| self.row(at)));
        for fold in 0..self.results.first().map_or(0, Vec::len) {
            for row in &rows {
                table.rows.push(vec![
                    (fold + 1).to_string(),
                    row.name.clone(),
                    row.chosen[fold].clone(),
                    format!("{:.1}", 100.0 * row.validations[fold]),
                    format!("{:.1}", 100.0 * row.tests[fold]),
                ]);
            }
        }
        table
    }

    fn figure(&self, data: &Data) -> Figure {
        let mut title = format!("{}: mean accuracy per unseen class", self.settings.title);
        if let (Some(area), Some(_)) = (self.settings.detector_area, data.noise) {
            title += &format!(
                "; inputs are annotated attributes with detector noise (area under ROC {area}), no image \
                 features"
            );
        }
        let mut panels = vec![self.panel("attributes alone decide", false)];
        if !self.settings.class_logits.is_empty() {
            panels.push(self.panel("with class logits", true));
        }
        Figure {
            file: String::from("accuracy"),
            title,
            x: String::from("relation strength u"),
            y: String::from("mean accuracy per class"),
            panels,
        }
    }

    fn panel(&self, title: &str, logits: bool) -> FigurePanel {
        let curve = |name: String, line: Line, point: &dyn Fn(Strengths) -> Option<f64>| {
            let points = self.given(logits).filter_map(|(at, strengths)| {
                Some((Some(point(strengths)?), Summary::of(&self.row(at).tests)?))
            });
            FigureSeries { name, line, points: points.collect() }
        };
        let constant = |strengths| match strengths {
            Strengths::Constant { u } => Some(u),
            _ => None,
        };
        let variable = |wanted: CostMap| {
            move |strengths| match strengths {
                Strengths::Variable { map, u } if map == wanted => Some(u),
                _ => None,
            }
        };
        let level = |name: &str, line: Line, tests: &[f64]| {
            let points = Summary::of(tests).map(|summary| (None, summary)).into_iter().collect();
            FigureSeries { name: String::from(name), line, points }
        };
        let mut series = vec![curve(String::from("pHEX constant"), Line::Solid, &constant)];
        for map in self.settings.maps.iter().map(|curve| curve.map) {
            let name = format!("pHEX variable ({})", map.name());
            series.push(curve(name, Line::Dotted, &variable(map)));
        }
        series.extend(self.hard(logits).map(|row| level("HEX", Line::Level, &row.tests)));
        for (at, entry) in self.entries.iter().enumerate() {
            if matches!(entry, Entry::Attributes | Entry::Bilinear) {
                series.push(level(&entry.name(), Line::Baseline, &self.row(at).tests));
            }
        }
        series.retain(|series| !series.points.is_empty());
        FigurePanel { title: String::from(title), series }
    }
}

fn percent(values: &[f64]) -> String {
    Summary::of(values).map_or(String::new(), |summary| summary.percent())
}
