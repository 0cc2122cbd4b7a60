//! What a model has to beat, and signs that it learned nothing.
//!
//! All scores are of the same rows with the same truths, closed by the hard relations of the graph.
//! *Label frequencies* give each label its frequency in every row. Of all answers that ignore the
//! features this one has the lowest log-loss.

use phex::decide::{Classes, Decision, decide};
use phex::graph::{LabelId, RelationGraph};
use phex::infer::Evidence;
use phex::metrics::{LabelTable, TruthClosure, areas, class_report, losses, set_scores};
use serde::Serialize;

use crate::{Error, Examples};

/// Rows closed at a time.
const PIECE: usize = 512;
/// A label whose probabilities have a smaller standard deviation over rows is the same in all of them.
const SAME: f64 = 0.005;
/// Leaves that are never chosen are reported if they are more than this part of those that occur.
const NEVER: f64 = 0.1;
/// Fewer rows show nothing about what a model answers in all rows.
const FEW: usize = 10;

/// The name of the model itself among compared scores.
const MODEL: &str = "this model";
/// The name of the first baseline.
const FREQUENCIES: &str = "label frequencies";
/// The name of the second baseline: a softmax over leaves, in which a label above is the sum of its
/// leaves.
pub(crate) const LEAF_SUMS: &str = "sums of leaves";

/// Scores of one method on the validation rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedScores {
    /// The method.
    pub name: &'static str,
    /// Average precision over all pairs of a row and a label.
    pub au_prc: Option<f64>,
    /// F1 of the labels with a probability of 0.5 or more.
    pub f1: Option<f64>,
    /// Mean log-loss over pairs.
    pub log_loss: Option<f64>,
    /// Part of the rows with one leaf on in which this leaf is the most probable one.
    pub accuracy: Option<f64>,
    /// How many rows have one leaf on.
    pub leaf_rows: usize,
}

/// A model beside what it has to beat.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The model.
    pub model: ComparedScores,
    /// What it has to beat.
    pub baselines: Vec<ComparedScores>,
    /// Signs that the model learned nothing, in sentences.
    pub signs: Vec<String>,
}

impl ComparedScores {
    /// The scores of rows of probabilities with closed truths.
    pub(crate) fn new(
        name: &'static str,
        graph: &RelationGraph,
        probabilities: &[f32],
        truths: &[Evidence],
    ) -> Result<ComparedScores, Error> {
        let table = LabelTable::new(graph.len(), probabilities, truths)?.leave_out_unjudged();
        let sets = decide(&Decision::default(), graph, probabilities)?;
        let classes = class_report(&table, &Classes::Leaves.resolve(graph)?, &[1])?;
        Ok(ComparedScores {
            name,
            au_prc: areas(&table).average_precision.micro,
            f1: set_scores(&table, &sets)?.f1.micro,
            log_loss: losses(&table).log_loss,
            accuracy: classes.top.first().and_then(|top| top.accuracy),
            leaf_rows: classes.rows,
        })
    }

    /// The scores of the same probabilities in all rows.
    pub(crate) fn of_frequencies(
        graph: &RelationGraph,
        frequencies: &[f32],
        truths: &[Evidence],
    ) -> Result<ComparedScores, Error> {
        let probabilities = frequencies.repeat(truths.len() / graph.len().max(1));
        ComparedScores::new(FREQUENCIES, graph, &probabilities, truths)
    }
}

/// How often each label is on among the rows in which it is known, with half a row added to both
/// sides.
pub(crate) fn label_frequencies(truths: impl Iterator<Item = Vec<Evidence>>) -> Vec<f32> {
    let mut counts: Vec<[f64; 2]> = Vec::new();
    for row in truths {
        counts.resize(row.len(), [0.5; 2]);
        for (count, evidence) in counts.iter_mut().zip(row) {
            match evidence {
                Evidence::On => count[1] += 1.0,
                Evidence::Off => count[0] += 1.0,
                Evidence::Unknown => {}
            }
        }
    }
    counts.into_iter().map(|[off, on]| (on / (off + on)) as f32).collect()
}

impl Examples<'_> {
    /// The frequencies of labels in some rows.
    pub(crate) fn frequencies(&self, rows: &[u32], closure: &TruthClosure) -> Vec<f32> {
        let labels = self.targets.labels();
        label_frequencies(rows.chunks(PIECE).flat_map(|rows| {
            let mut truths = Vec::with_capacity(rows.len() * labels);
            rows.iter().for_each(|&row| self.push_evidence(row as usize, &mut truths));
            closure.close(&mut truths);
            truths.chunks(labels).map(<[Evidence]>::to_vec).collect::<Vec<_>>()
        }))
    }
}

impl Comparison {
    /// A model's probabilities beside the label frequencies of the same rows, for data that come without
    /// training rows. The truths are those that are known; what follows from them is added.
    ///
    /// # Errors
    /// As [`LabelTable::new`].
    pub fn with_own_frequencies(
        graph: &RelationGraph,
        probabilities: &[f32],
        truths: &[Evidence],
    ) -> Result<Comparison, Error> {
        LabelTable::new(graph.len(), probabilities, truths)?;
        let mut closed = truths.to_vec();
        TruthClosure::new(graph).close(&mut closed);
        let rows = closed.chunks(graph.len().max(1)).map(<[Evidence]>::to_vec);
        let frequencies = label_frequencies(rows);
        Comparison::new(graph, probabilities, &closed, None, &frequencies)
    }

    /// A model's probabilities beside those of sums of leaves, if there are any, and beside frequencies
    /// of labels. The truths are closed.
    pub(crate) fn new(
        graph: &RelationGraph,
        probabilities: &[f32],
        truths: &[Evidence],
        leaf_sums: Option<&[f32]>,
        frequencies: &[f32],
    ) -> Result<Comparison, Error> {
        let sums = leaf_sums.map(|p| ComparedScores::new(LEAF_SUMS, graph, p, truths));
        let mut baselines: Vec<ComparedScores> = sums.transpose()?.into_iter().collect();
        baselines.push(ComparedScores::of_frequencies(graph, frequencies, truths)?);
        Ok(Comparison {
            model: ComparedScores::new(MODEL, graph, probabilities, truths)?,
            baselines,
            signs: signs(graph, probabilities, truths),
        })
    }

    /// The model and what it has to beat.
    pub fn all(&self) -> impl Iterator<Item = &ComparedScores> {
        std::iter::once(&self.model).chain(&self.baselines)
    }

    /// What is wrong with the model and what to try, if it does not beat the baselines.
    pub fn verdict(&self) -> Option<String> {
        let of = |name: &str| self.baselines.iter().find(|scores| scores.name == name);
        let model = &self.model;
        let worse = |ours: Option<f64>, theirs: Option<f64>| Some((ours?, theirs?));
        if let Some(frequencies) = of(FREQUENCIES) {
            if let Some((ours, theirs)) = worse(model.au_prc, frequencies.au_prc)
                && ours <= theirs
            {
                return Some(format!(
                    "the model is not better than label frequencies alone (AU(PRC) {ours:.4} against \
                     {theirs:.4}): check that features and labels are of the same rows, or train longer"
                ));
            }
            if let Some((ours, theirs)) = worse(model.log_loss, frequencies.log_loss)
                && ours >= theirs
            {
                return Some(format!(
                    "the model's probabilities are worse than label frequencies alone (log-loss \
                     {ours:.4} against {theirs:.4}): hold out rows for validation with some patience, or \
                     lower the learning rate"
                ));
            }
        }
        let sums = of(LEAF_SUMS)?;
        let (name, ours, theirs, margin) = match (model.accuracy, sums.accuracy) {
            (Some(ours), Some(theirs)) => {
                let variance = ours * (1.0 - ours) + theirs * (1.0 - theirs);
                ("accuracy", ours, theirs, 2.0 * (variance / model.leaf_rows as f64).sqrt())
            }
            _ => ("AU(PRC)", model.au_prc?, sums.au_prc?, 0.02),
        };
        (ours + margin < theirs).then(|| {
            format!(
                "the model is clearly worse than sums of leaves ({name} {ours:.4} against {theirs:.4}): \
                 the relations may not fit the rows; say that the graph is single-label if each row is \
                 exactly one kind, or try soft relations"
            )
        })
    }
}

/// Signs that a model learned nothing: answers that are nearly the same for all rows, labels that are on
/// in all rows though they should not be, leaves that are never chosen.
pub(crate) fn signs(
    graph: &RelationGraph,
    probabilities: &[f32],
    truths: &[Evidence],
) -> Vec<String> {
    let labels = graph.len();
    let rows = probabilities.len() / labels.max(1);
    if rows < FEW {
        return Vec::new();
    }
    let column = |label: usize| (0..rows).map(move |row| probabilities[row * labels + label]);
    let truth = |label: usize| (0..rows).map(move |row| truths[row * labels + label]);
    let deviation = |label: usize| {
        let mean = column(label).map(f64::from).sum::<f64>() / rows as f64;
        let squares = column(label).map(|p| (f64::from(p) - mean).powi(2)).sum::<f64>();
        (squares / rows as f64).sqrt()
    };
    // Labels that are on in all rows do not vary.
    let varies = |&label: &usize| {
        truth(label).any(|t| t == Evidence::On) && truth(label).any(|t| t == Evidence::Off)
    };
    let varying: Vec<usize> = (0..labels).filter(varies).collect();
    let mut signs = Vec::new();
    if !varying.is_empty() && varying.iter().all(|&label| deviation(label) < SAME) {
        signs.push(String::from("the model answers nearly the same for all rows"));
    }
    let always = |&&label: &&usize| column(label).all(|p| p >= 0.5);
    let on: Vec<usize> = varying.iter().filter(always).copied().collect();
    if let Some(&first) = on.first() {
        signs.push(match on.len() {
            1 => format!("the label `{}` is on in all rows, and should not be", name(graph, first)),
            count => format!(
                "{count} labels are on in all rows, and should not be, such as `{}`",
                name(graph, first)
            ),
        });
    }
    let leaves: Vec<usize> = graph.leaves().map(LabelId::index).collect();
    let mut chosen = vec![false; labels];
    for row in probabilities.chunks_exact(labels) {
        let best = leaves.iter().copied().max_by(|&a, &b| row[a].total_cmp(&row[b]));
        best.into_iter().for_each(|leaf| chosen[leaf] = true);
        leaves.iter().filter(|&&leaf| row[leaf] >= 0.5).for_each(|&leaf| chosen[leaf] = true);
    }
    let occurs = |&&leaf: &&usize| truth(leaf).any(|t| t == Evidence::On);
    let occurring: Vec<usize> = leaves.iter().filter(occurs).copied().collect();
    let never: Vec<usize> = occurring.iter().copied().filter(|&leaf| !chosen[leaf]).collect();
    if let Some(&first) = never.first()
        && never.len() as f64 > NEVER * occurring.len() as f64
    {
        signs.push(format!(
            "{} of {} leaves that occur are never chosen, such as `{}`",
            never.len(),
            occurring.len(),
            name(graph, first)
        ));
    }
    signs
}

fn name(graph: &RelationGraph, label: usize) -> &str {
    &graph.labels()[label].name
}

#[cfg(test)]
mod tests {
    use phex::graph::GraphBuilder;

    use super::*;

    fn graph() -> RelationGraph {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None).single_label();
        builder.build().unwrap()
    }

    /// 20 rows, half of them dogs, with these probabilities of animal, dog and cat.
    fn compare(of: impl Fn(bool) -> [f32; 3]) -> Comparison {
        let dogs = (0..20).map(|row| row % 2 == 0);
        let probabilities: Vec<f32> = dogs.clone().flat_map(of).collect();
        let (on, unknown) = (Evidence::On, Evidence::Unknown);
        let truths: Vec<Evidence> = dogs
            .flat_map(|dog| {
                [unknown, if dog { on } else { unknown }, if dog { unknown } else { on }]
            })
            .collect();
        Comparison::with_own_frequencies(&graph(), &probabilities, &truths).unwrap()
    }

    #[test]
    fn a_good_model_beats_the_frequencies() {
        let good = compare(|dog| if dog { [1.0, 0.9, 0.1] } else { [1.0, 0.2, 0.8] });
        assert_eq!((good.verdict(), good.signs.len()), (None, 0));
        assert_eq!((good.model.accuracy, good.model.leaf_rows), (Some(1.0), 20));
        assert_eq!(good.baselines[0].accuracy, Some(0.0), "ties are wrong");
    }

    #[test]
    fn models_that_learned_nothing_are_told_so() {
        let same = compare(|_| [1.0, 0.6, 0.4]);
        assert!(same.verdict().unwrap().contains("not better than label frequencies"));
        assert_eq!(same.signs.len(), 3, "{:?}", same.signs);
        assert!(same.signs[1].contains("`dog` is on in all rows"));
        assert!(same.signs[2].contains("1 of 2 leaves that occur are never chosen, such as `cat`"));
        let sure = compare(|dog| if dog { [1.0, 0.999, 0.99] } else { [1.0, 0.99, 0.9999] });
        assert!(sure.verdict().unwrap().contains("worse than label frequencies alone (log-loss"));
    }

    #[test]
    fn clearly_worse_is_beyond_two_standard_errors() {
        let mut found = compare(|dog| if dog { [1.0, 0.9, 0.1] } else { [1.0, 0.2, 0.8] });
        let sums = ComparedScores { name: LEAF_SUMS, ..found.model.clone() };
        found.baselines.push(sums);
        found.model.accuracy = Some(0.95);
        assert_eq!(found.verdict(), None);
        found.model.accuracy = Some(0.6);
        assert!(found.verdict().unwrap().contains("clearly worse than sums of leaves (accuracy"));
    }
}
