//! The tables and the figure of a zero-shot experiment, as in the paper.

use super::Tested;
use super::data::ZeroShotData;
use super::entry::MethodEntry;
use super::relations::PredicateStrengths;
use super::settings::{CostMap, ZeroShotSettings};
use crate::experiment::Findings;
use crate::harness::MarkdownTable;
use crate::harness::PairedTest;
use crate::harness::statistics::percent as percent_spread;
use phex::metrics::Spread;
use phex_report::{Figure, FigurePanel, FigureSeries, LineStyle};

/// A row of a table: the tests of all folds, and the entry that was chosen in each.
struct ReportRow {
    name: String,
    tests: Vec<f64>,
    validations: Vec<f64>,
    chosen: Vec<String>,
}

/// All findings.
pub(super) fn outcome(
    settings: &ZeroShotSettings,
    data: &ZeroShotData,
    entries: &[MethodEntry],
    results: &[Vec<Tested>],
) -> Findings {
    let report = ZeroShotTables { settings, entries, results };
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
    Findings {
        title: settings.title.clone(),
        data: about,
        tables,
        figures: vec![report.figure(data)],
        ..Findings::default()
    }
}

struct ZeroShotTables<'a> {
    settings: &'a ZeroShotSettings,
    entries: &'a [MethodEntry],
    results: &'a [Vec<Tested>],
}

impl ZeroShotTables<'_> {
    /// The entries with given strengths.
    fn given(&self, logits: bool) -> impl Iterator<Item = (usize, PredicateStrengths)> + '_ {
        self.entries.iter().enumerate().filter_map(move |(at, entry)| match *entry {
            MethodEntry::Given { strengths, class_logits } if class_logits == logits => {
                Some((at, strengths))
            }
            _ => None,
        })
    }

    fn row(&self, at: usize) -> ReportRow {
        let folds = &self.results[at];
        let describe = |tested: &Tested| {
            let factors: Vec<String> = tested.factors.iter().map(|f| format!("{f:.2}")).collect();
            let mut text = tested.chosen.describe();
            if !factors.is_empty() {
                text += &format!(", costs times {}", factors.join(" and "));
            }
            text
        };
        ReportRow {
            name: self.entries[at].name(),
            tests: folds.iter().map(|tested| tested.test).collect(),
            validations: folds.iter().map(|tested| tested.validation).collect(),
            chosen: folds.iter().map(describe).collect(),
        }
    }

    /// In each fold the entry that is best on validation classes; the first of equals.
    fn best(&self, name: &str, among: &[usize]) -> Option<ReportRow> {
        let mut row = ReportRow {
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

    fn recipe(&self, logits: bool) -> Option<ReportRow> {
        let all: Vec<usize> = self.given(logits).map(|(at, _)| at).collect();
        self.best("recipe: strengths chosen on validation", &all)
    }

    fn hard(&self, logits: bool) -> Option<ReportRow> {
        let found =
            self.given(logits).find(|(_, strengths)| *strengths == PredicateStrengths::Hard);
        found.map(|(at, _)| self.row(at))
    }

    /// Entries that are chosen among others: constant ones, those of each map, and all.
    fn tuned(&self, logits: bool) -> Vec<ReportRow> {
        let among = |is: &dyn Fn(PredicateStrengths) -> bool| -> Vec<usize> {
            self.given(logits).filter(|(_, strengths)| is(*strengths)).map(|(at, _)| at).collect()
        };
        let constant = among(&|strengths| matches!(strengths, PredicateStrengths::Constant { .. }));
        let mut rows: Vec<ReportRow> =
            self.best("constant, u tuned", &constant).into_iter().collect();
        for wanted in self.settings.maps.iter().map(|curve| curve.map) {
            let is = |s| matches!(s, PredicateStrengths::Variable { map, .. } if map == wanted);
            rows.extend(self.best(&format!("variable ({}), u tuned", wanted.name()), &among(&is)));
        }
        rows.extend(self.recipe(logits));
        rows
    }

    /// The rows of a table: given strengths, those chosen among them, and methods without strengths.
    fn rows(&self, logits: bool) -> Vec<ReportRow> {
        let mut rows: Vec<ReportRow> = self.given(logits).map(|(at, _)| self.row(at)).collect();
        rows.extend(self.tuned(logits));
        if !logits {
            let others = self.entries.iter().enumerate();
            let others = others.filter(|(_, entry)| !matches!(entry, MethodEntry::Given { .. }));
            rows.extend(others.map(|(at, _)| self.row(at)));
        }
        rows
    }

    fn table(&self, logits: bool) -> MarkdownTable {
        let with = if logits { "with class logits" } else { "attributes alone decide" };
        let title = format!("Mean accuracy per unseen class, %; {with}");
        let columns = "relations | test | against HEX | validation";
        let mut table = MarkdownTable::new(&title, columns);
        let hard = self.hard(logits);
        for row in self.rows(logits) {
            let against = hard.as_ref().and_then(|hard| PairedTest::new(&row.tests, &hard.tests));
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
    fn recipe_table(&self) -> MarkdownTable {
        let title = "The recipe against hard relations and every strength";
        let columns = "against | difference | loses by more than the standard error";
        let mut table = MarkdownTable::new(title, columns);
        let Some(recipe) = self.recipe(false) else { return table };
        for (at, _) in self.given(false) {
            let row = self.row(at);
            let Some(found) = PairedTest::new(&recipe.tests, &row.tests) else { continue };
            let error = found.difference.standard_error().unwrap_or(0.0);
            let loses = if found.difference.mean < -error { "yes" } else { "no" };
            table.rows.push(vec![row.name, found.percent(), String::from(loses)]);
        }
        table
    }

    /// The choice of validation in each fold, and its test.
    fn choices(&self) -> MarkdownTable {
        let columns = "fold | entry | chosen | validation | test";
        let mut table = MarkdownTable::new("What validation chose, %", columns);
        let mut rows: Vec<ReportRow> = self.hard(false).into_iter().collect();
        rows.extend(self.tuned(false));
        let others = self.entries.iter().enumerate();
        let others = others.filter(|(_, entry)| !matches!(entry, MethodEntry::Given { .. }));
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

    fn figure(&self, data: &ZeroShotData) -> Figure {
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
        let curve =
            |name: String, line: LineStyle, point: &dyn Fn(PredicateStrengths) -> Option<f64>| {
                let points = self.given(logits).filter_map(|(at, strengths)| {
                    Some((Some(point(strengths)?), Spread::of(&self.row(at).tests)?))
                });
                FigureSeries { name, line, points: points.collect() }
            };
        let constant = |strengths| match strengths {
            PredicateStrengths::Constant { u } => Some(u),
            _ => None,
        };
        let variable = |wanted: CostMap| {
            move |strengths| match strengths {
                PredicateStrengths::Variable { map, u } if map == wanted => Some(u),
                _ => None,
            }
        };
        let level = |name: &str, line: LineStyle, tests: &[f64]| {
            let points = Spread::of(tests).map(|spread| (None, spread)).into_iter().collect();
            FigureSeries { name: String::from(name), line, points }
        };
        let mut series = vec![curve(String::from("pHEX constant"), LineStyle::Solid, &constant)];
        for map in self.settings.maps.iter().map(|curve| curve.map) {
            let name = format!("pHEX variable ({})", map.name());
            series.push(curve(name, LineStyle::Dotted, &variable(map)));
        }
        series.extend(self.hard(logits).map(|row| level("HEX", LineStyle::Level, &row.tests)));
        for (at, entry) in self.entries.iter().enumerate() {
            if matches!(entry, MethodEntry::Attributes | MethodEntry::Bilinear) {
                series.push(level(&entry.name(), LineStyle::Baseline, &self.row(at).tests));
            }
        }
        series.retain(|series| !series.points.is_empty());
        FigurePanel { title: String::from(title), series }
    }
}

fn percent(values: &[f64]) -> String {
    Spread::of(values).map_or(String::new(), |spread| percent_spread(&spread))
}
