//! Trained scores of classes with attributes: a head trained by exact inference, asked by exact and by loopy
//! inference.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{InferenceSettings, MarginalErrors, answers, compare};
use crate::Error;
use crate::experiment::zero_shot::{AttributeFold, LogitSettings};
use crate::harness::JobQueue;
use crate::harness::MarkdownTable;

#[derive(Debug, Clone, Serialize)]
struct AttributeJob<'a> {
    attributes: &'a LogitSettings,
    u: f64,
}

/// The mean accuracy per unseen class by both kinds of inference.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ClassAccuracies {
    by_exact: f64,
    by_lbp: f64,
    errors: MarginalErrors,
}

/// One row per data set and strength; `None` without data sets.
pub(super) fn table(
    settings: &InferenceSettings,
    folder: &Path,
    queue: &JobQueue<'_>,
) -> Result<Option<MarkdownTable>, Error> {
    if settings.attributes.is_empty() {
        return Ok(None);
    }
    let mut table = MarkdownTable::new(
        "Classes with attributes, trained by exact inference: mean accuracy per unseen class, %, and the error of LBP on the scores of their rows",
        &MarginalErrors::headings(
            "graph | u | predicted by exact | predicted by LBP",
            "same best class, %",
        ),
    );
    for attributes in &settings.attributes {
        let data = AttributeFold::load(attributes, folder)?;
        let jobs: Vec<AttributeJob<'_>> =
            settings.strengths.iter().map(|&u| AttributeJob { attributes, u }).collect();
        let work = |job: &AttributeJob<'_>, stop: &AtomicBool| ask(job, &data, stop);
        let name = attributes.data.title();
        let found = queue.run(format!("{name}: trained scores").as_str(), &jobs, work)?;
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

fn ask(
    job: &AttributeJob<'_>,
    data: &AttributeFold,
    stop: &AtomicBool,
) -> Result<ClassAccuracies, Error> {
    let logits = data.train(job.attributes, job.u, stop)?;
    let [exact, loopy] = answers(&logits.graph, &logits.scores)?;
    Ok(ClassAccuracies {
        by_exact: logits.accuracy(&exact.marginals)?,
        by_lbp: logits.accuracy(&loopy.marginals)?,
        errors: compare(&logits.graph, &exact, &loopy),
    })
}
