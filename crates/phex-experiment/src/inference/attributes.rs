//! Trained scores of classes with attributes: a head trained by exact inference, asked by both.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{Errors, InferenceSettings, answers, compare};
use crate::outcome::Table;
use crate::zero_shot::{Attributes, LogitSettings};
use crate::{Error, Runner};

#[derive(Debug, Clone, Serialize)]
struct Job<'a> {
    attributes: &'a LogitSettings,
    u: f64,
}

/// The mean accuracy per unseen class by both ways of inference.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    by_exact: f64,
    by_lbp: f64,
    errors: Errors,
}

/// A line for each data set and strength; none without data sets.
pub(super) fn table(
    settings: &InferenceSettings,
    folder: &Path,
    runner: &Runner<'_>,
) -> Result<Option<Table>, Error> {
    if settings.attributes.is_empty() {
        return Ok(None);
    }
    let mut table = Table::new(
        "Classes with attributes, trained by exact inference: mean accuracy per unseen class, %, and the error of LBP on the scores of their rows",
        &Errors::headings(
            &["graph", "u", "predicted by exact", "predicted by LBP"],
            "same best class, %",
        ),
    );
    for attributes in &settings.attributes {
        let data = Attributes::load(attributes, folder)?;
        let jobs: Vec<Job<'_>> =
            settings.strengths.iter().map(|&u| Job { attributes, u }).collect();
        let work = |job: &Job<'_>, stop: &AtomicBool| ask(job, &data, stop);
        let name = attributes.data.title();
        let found = runner.run(format!("{name}: trained scores").as_str(), &jobs, work)?;
        for (job, asked) in jobs.iter().zip(&found) {
            let percent = |part: f64| format!("{:.1}", 100.0 * part);
            let mut row = vec![String::from(name), job.u.to_string()];
            row.extend([percent(asked.by_exact), percent(asked.by_lbp)]);
            row.extend(asked.errors.cells());
            table.rows.push(row);
        }
    }
    Ok(Some(table))
}

fn ask(job: &Job<'_>, data: &Attributes, stop: &AtomicBool) -> Result<Asked, Error> {
    let logits = data.train(job.attributes, job.u, stop)?;
    let [exact, loopy] = answers(&logits.graph, &logits.scores)?;
    Ok(Asked {
        by_exact: logits.accuracy(&exact.marginals)?,
        by_lbp: logits.accuracy(&loopy.marginals)?,
        errors: compare(&logits.graph, &exact, &loopy),
    })
}
