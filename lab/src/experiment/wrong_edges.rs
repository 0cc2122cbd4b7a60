//! Wrong edges: some classes stand under a wrong parent in the graph, and their rows keep the right one.
//!
//! This is where soft relations should pay most. Every method is what `phex train` does with these settings,
//! which hold out a tenth of the rows. Learned strengths are judged by accuracy and by how well they find the wrong edges: the
//! area under the ROC curve of "a low strength means a wrong edge", over all edges between a class and its parent.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use phex::graph::{RelationGraph, RelationKind, Strength};
use phex::infer::Options;
use phex::learn::Tie;
use phex::metrics::{Spread, mean};
use phex_train::{Examples, Recipe, StrengthSetting, Trainer, TrainingChoices};
use serde::{Deserialize, Serialize};

use super::relabelled::{HierarchyData, MovedClasses, RelabelledData, Relations, accuracy_of};
use crate::Error;
use crate::experiment::Findings;
use crate::harness::statistics::percent;
use crate::harness::{JobQueue, MarkdownTable, StopObserver};

/// The settings of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct WrongEdgeSettings {
    title: String,
    data: HierarchyData,
    /// Training rows per class.
    rows_a_class: usize,
    /// The share of rows that get the label of a parent.
    relabelled: f64,
    /// How many classes stand under a wrong parent.
    wrong: Vec<usize>,
    seeds: u64,
    methods: Vec<WrongEdgeMethod>,
}

/// A method: what a user of `phex train` chooses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrongEdgeMethod {
    name: String,
    relations: WrongEdgeRelations,
    /// The strength of soft relations, or the one from which strengths are learned.
    u: Option<f64>,
    /// Parts of the rows for learned strengths; 0 learns them together with the weights.
    folds: Option<usize>,
    inner_scale: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrongEdgeRelations {
    Hard,
    /// All relations have the same strength.
    Soft,
    /// One strength for each hierarchy relation; exclusions are hard.
    Learned,
    /// Hierarchy relations of wrong edges cost nothing, all others have the same strength, and exclusions are hard:
    /// what learning could find at best.
    Known,
}

/// A run.
#[derive(Debug, Clone, Serialize)]
struct WrongEdgeJob {
    data: HierarchyData,
    rows_a_class: usize,
    relabelled: f64,
    wrong: usize,
    method: WrongEdgeMethod,
    seed: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct WrongEdgeAnswer {
    top_1: f64,
    /// Of the classes under a wrong parent.
    top_1_moved: Option<f64>,
    /// The area under the ROC curve.
    area: Option<f64>,
    /// The mean learned cost of wrong and of right edges.
    costs: Option<[f64; 2]>,
}

/// Runs the experiment.
pub(crate) fn run(
    settings: &WrongEdgeSettings,
    folder: &Path,
    quick: bool,
    queue: &JobQueue<'_>,
) -> Result<Findings, Error> {
    let (name, data) = RelabelledData::load(settings.data, folder, quick)?;
    let mut jobs = Vec::new();
    for &wrong in &settings.wrong {
        for method in &settings.methods {
            jobs.extend((0..settings.seeds).map(|seed| WrongEdgeJob {
                data: name,
                rows_a_class: settings.rows_a_class,
                relabelled: settings.relabelled,
                wrong,
                method: method.clone(),
                seed,
            }));
        }
    }
    let answers =
        queue.run("runs", &jobs, |job: &WrongEdgeJob, stop: &_| train(job, &data, stop))?;
    let runs: Vec<(WrongEdgeJob, WrongEdgeAnswer)> = jobs.into_iter().zip(answers).collect();
    let table = |title: &str, show: &dyn Fn(&[WrongEdgeAnswer]) -> String| {
        let columns: Vec<String> =
            settings.wrong.iter().map(|wrong| format!("{wrong} wrong edges")).collect();
        let mut table = MarkdownTable::new(title, &format!("method | {}", columns.join(" | ")));
        for method in &settings.methods {
            let cell = |&wrong: &usize| {
                let own =
                    runs.iter().filter(|(job, _)| job.wrong == wrong && job.method == *method);
                show(&own.map(|(_, answer)| *answer).collect::<Vec<_>>())
            };
            let cells = settings.wrong.iter().map(cell);
            table.row(std::iter::once(method.name.clone()).chain(cells).collect::<Vec<_>>());
        }
        table
    };
    let dash = || String::from("–");
    let share = |of: fn(&WrongEdgeAnswer) -> Option<f64>| {
        move |answers: &[WrongEdgeAnswer]| {
            let values: Vec<f64> = answers.iter().filter_map(of).collect();
            Spread::of(&values).map_or_else(dash, |spread| percent(&spread))
        }
    };
    let area = |answers: &[WrongEdgeAnswer]| {
        let values: Vec<f64> = answers.iter().filter_map(|answer| answer.area).collect();
        Spread::of(&values).map_or_else(dash, |spread| format!("{:.3}", spread.mean))
    };
    let costs = |answers: &[WrongEdgeAnswer]| {
        let mean = |of: usize| {
            let values: Vec<f64> =
                answers.iter().filter_map(|answer| answer.costs.map(|costs| costs[of])).collect();
            Spread::of(&values).map(|spread| spread.mean)
        };
        match (mean(0), mean(1)) {
            (Some(wrong), Some(right)) => format!("{wrong:.1}, {right:.1}"),
            _ => dash(),
        }
    };
    let tables = vec![
        table("Top-1 accuracy on test rows, %", &share(|answer| Some(answer.top_1))),
        table(
            "The same of the classes under a wrong parent, %",
            &share(|answer| answer.top_1_moved),
        ),
        table("Area under the ROC curve: low learned strengths against wrong edges", &area),
        table("Mean learned cost w of wrong edges, of right edges", &costs),
    ];
    let about = format!(
        "{} {} rows per class, of which {:.0} % are labelled only with the right parent of their class. In the graph some classes stand under a wrong parent, drawn at random. Training is that of `phex train`; a tenth of the rows chooses the epoch; seeds: {}.",
        data.about,
        settings.rows_a_class,
        100.0 * settings.relabelled,
        settings.seeds
    );
    Ok(Findings { title: settings.title.clone(), data: about, tables, ..Findings::default() })
}

/// Every wrong edge costs nothing or has this strength, every exclusion is hard.
fn hierarchy_only(
    graph: &RelationGraph,
    strength: Strength,
    free: impl Fn(usize) -> bool,
) -> Result<RelationGraph, Error> {
    let hard = graph.map_strengths(|kind, strength| match kind {
        RelationKind::Exclusion => Strength::Hard,
        RelationKind::Hierarchy => strength,
    })?;
    Ok(hard.map_hierarchy(|edge| match free(edge.child.index()) {
        true => Strength::W(0.0),
        false => strength,
    })?)
}

fn train(
    job: &WrongEdgeJob,
    data: &RelabelledData,
    stop: &AtomicBool,
) -> Result<WrongEdgeAnswer, Error> {
    let MovedClasses { graph, moved } = data.with_wrong_parents(job.wrong, job.seed)?;
    let rows = data.training(job.rows_a_class, job.relabelled, Relations::Hard, job.seed);
    let [_, test] = data.evaluation(job.seed);
    let method = &job.method;
    let strength = method.u.map_or(Strength::Hard, Strength::U);
    let mut choices = TrainingChoices {
        inner_scale: method.inner_scale,
        seed: Some(job.seed),
        ..TrainingChoices::default()
    };
    let graph = match method.relations {
        WrongEdgeRelations::Hard => graph,
        WrongEdgeRelations::Soft => {
            choices.strength = Some(StrengthSetting::All(strength));
            graph
        }
        WrongEdgeRelations::Learned => {
            choices.learn_strengths = Some(Tie::Relation);
            choices.strength_folds = method.folds;
            hierarchy_only(&graph, strength, |_| false)?
        }
        WrongEdgeRelations::Known => hierarchy_only(&graph, strength, |class| moved[class])?,
    };
    let examples = Examples::new(&rows.features, &rows.targets, &graph)?;
    let config = Recipe::STANDARD.config(&choices, &examples, &graph)?;
    let options = Options::default();
    let trainer = Trainer::new(config, &graph, &options, examples, None)?;
    let model = trainer.run(&mut StopObserver(stop)).map_err(|error| match error {
        phex_train::Error::Interrupted => Error::Interrupted,
        error => Error::Training(error),
    })?;
    let (top_1, of_moved) = accuracy_of(&model, &options, &test, data, |leaf| moved[leaf.index()])?;
    let learned = method.relations == WrongEdgeRelations::Learned;
    // Where the taxonomy was repaired, the learned costs are in the last record, in the order of the relations.
    let last = model.history.last().filter(|_| model.graph.is_hard());
    let costs: Vec<f64> = match last {
        Some(record) if !record.strengths.is_empty() => record.strengths.clone(),
        _ => model.graph.hierarchy().iter().map(|edge| edge.strength.cost()).collect(),
    };
    let costs = |wrong: bool| -> Vec<f64> {
        let edges = graph.hierarchy().iter().zip(&costs);
        let own = edges.filter(|(edge, _)| moved[edge.child.index()] == wrong);
        own.map(|(_, cost)| *cost).collect()
    };
    let (wrong, right) = (costs(true), costs(false));
    let judged = learned && !wrong.is_empty();
    let mean = |costs: &[f64]| mean(costs.iter().copied()).unwrap_or(f64::NAN);
    Ok(WrongEdgeAnswer {
        top_1,
        top_1_moved: of_moved,
        area: judged.then(|| area(&wrong, &right)),
        costs: judged.then(|| [mean(&wrong), mean(&right)]),
    })
}

/// The share of pairs of a wrong and a right edge in which the wrong one has the lower strength; equal strengths count
/// half.
fn area(wrong: &[f64], right: &[f64]) -> f64 {
    let one = |low: &f64, high: &f64| match low.total_cmp(high) {
        std::cmp::Ordering::Less => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 0.0,
    };
    let sum: f64 = wrong.iter().flat_map(|low| right.iter().map(move |high| one(low, high))).sum();
    sum / (wrong.len() * right.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::area;

    #[test]
    fn the_area_counts_pairs_in_the_right_order() {
        assert_eq!(area(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(area(&[1.0, 4.0], &[3.0, 4.0]), 0.625);
        assert_eq!(area(&[0.0], &[0.0]), 0.5);
    }
}
