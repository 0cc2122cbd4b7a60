//! The results of a run: model, report, `run.json`, and a summary for the terminal.

use std::path::Path;

use anyhow::bail;
use phex_train::{ComparedScores, Comparison, LabelSettings, RunFolder, RunRecord, TrainedRun};

use crate::say::say;
use crate::{output, pages};

/// What to write and print besides the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunOutputs<'a> {
    pub(crate) report: bool,
    /// The file of the report, if not in the folder of the model.
    pub(crate) report_file: Option<&'a Path>,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

impl RunOutputs<'_> {
    /// Checks that the report can be written, before hours of training and not after.
    pub(crate) fn check(&self, folder: &RunFolder) -> anyhow::Result<()> {
        let Some(report) = self.report_file else { return Ok(()) };
        let parent = report.parent().unwrap_or(Path::new(""));
        let own = folder.report_file();
        if parent == folder.path() && *report != own {
            bail!(
                "{}: in the folder of the model the report is `{}`; leave out --report",
                report.display(),
                own.file_name().unwrap_or_default().display()
            );
        }
        if !parent.as_os_str().is_empty() && parent != folder.path() && !parent.is_dir() {
            bail!("{}: there is no folder {}", report.display(), parent.display());
        }
        Ok(())
    }

    /// The file of the report, if it is not part of the folder of the model.
    pub(crate) fn report_elsewhere(&self, folder: &RunFolder) -> Option<&Path> {
        self.report_file.filter(|path| **path != folder.report_file())
    }

    /// Writes everything, the folder of the model last, and prints a summary.
    pub(crate) fn write(
        &self,
        folder: &RunFolder,
        run: &TrainedRun,
        record: &RunRecord<'_>,
        labels: &LabelSettings,
    ) -> anyhow::Result<()> {
        let mut report = None;
        if self.report {
            let page = pages::training(&folder.title(), &describe(record), run, record)?.html();
            match self.report_elsewhere(folder) {
                Some(path) => phex_io::write_text(path, &page)?,
                None => report = Some(page),
            }
        }
        folder.write(run, record, Some(labels), report.as_deref())?;
        if self.json {
            output::text(&record.to_json()?)?;
        }
        if !self.quiet {
            record.notes.iter().for_each(|note| say(format_args!("phex: {note}")));
            say(format_args!("{}{}", describe(record), results(record)));
            say(format_args!("written to {}", folder.path().display()));
            record.verdict.iter().for_each(|verdict| say(format_args!("phex: {verdict}")));
        }
        Ok(())
    }
}

/// "600 rows, 12 features, 9 labels; 30 epochs in 2.1 s, the best is 24".
fn describe(run: &RunRecord<'_>) -> String {
    let best = run.best_epoch.map_or(String::new(), |best| format!(", the best is {best}"));
    format!(
        "{} rows, {} features, {} labels; {} epoch{} in {:.1} s{best}",
        run.rows,
        run.features,
        run.labels,
        run.epochs,
        if run.epochs == 1 { "" } else { "s" },
        run.seconds
    )
}

/// The results that are printed at the end: the model beside what it has to beat.
fn results(run: &RunRecord<'_>) -> String {
    let Some(evaluation) = run.validation else { return String::new() };
    if let Some(comparison) = run.comparison {
        let title = format!("validation ({} rows)", run.validation_rows);
        return format!("\n{}", comparison_table(&title, comparison));
    }
    let shown = [
        ("AU(PRC)", evaluation.average_precision.micro),
        ("F1", evaluation.f1.micro),
        ("log-loss", evaluation.log_loss),
    ];
    let mut text = format!("\nvalidation ({} rows)", run.validation_rows);
    let one_sided = evaluation.lacks_negatives().is_some();
    for (name, value) in shown {
        match value {
            Some(value) => text.push_str(&format!(", {name} {value:.4}")),
            None if one_sided => text.push_str(&format!(", {name} –")),
            None => {}
        }
    }
    if one_sided {
        text.push_str("  (no label is known to be off)");
    }
    if let Some(top) = evaluation.classes.as_ref().and_then(|classes| classes.top.first())
        && let Some(accuracy) = top.accuracy
    {
        text.push_str(&format!(", accuracy {accuracy:.4}"));
    }
    text
}

/// A model beside what it has to beat, one line each. A dash where a score does not exist.
pub(crate) fn comparison_table(title: &str, comparison: &Comparison) -> String {
    let number =
        |value: Option<f64>| value.map_or(String::from("–"), |value| format!("{value:.4}"));
    let classes = comparison.all().any(|scores| scores.accuracy.is_some());
    let accuracy = |text: &str| if classes { format!("{text:>10}") } else { String::new() };
    let mut text = format!("{title:<24}{:>9}{:>9}{:>10}", "AU(PRC)", "F1", "log-loss");
    text += &accuracy("accuracy");
    for scores in comparison.all() {
        let ComparedScores { name, au_prc, f1, log_loss, .. } = scores;
        let (au_prc, f1) = (number(*au_prc), number(*f1));
        text += &format!("\n{name:<24}{au_prc:>9}{f1:>9}{:>10}", number(*log_loss));
        text += &accuracy(&number(scores.accuracy));
    }
    if comparison.model.au_prc.is_none() {
        text += "\n–  (no label is known to be off)";
    }
    text
}
