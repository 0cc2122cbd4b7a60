//! From trained models to the pages of `phex-report`.

use phex::learn::Strengths;
use phex::metrics::Spread;
use phex_report::{
    EpochPoint, MethodTable, MetricColumn, Page, SettingsTable, StageStart, TrainingContent,
    TrainingCurves, training_page,
};
use phex_train::{
    ComparedScores, Comparison, EpochRecord, Metric, RunRecord, StrengthConfig, TrainedModel,
    TrainedRun,
};

/// At most this many learned strengths are listed.
const LISTED: usize = 60;

/// The page of a training.
pub(crate) fn training(
    title: &str,
    subtitle: &str,
    run: &TrainedRun,
    record: &RunRecord<'_>,
) -> anyhow::Result<Page> {
    let model = &run.model;
    let notes: Vec<String> = record.verdict.iter().chain(&record.notes).cloned().collect();
    let content = TrainingContent {
        graph: &model.graph,
        curves: curves(model),
        evaluation: run.evaluation.as_ref(),
        comparison: run.comparison.as_ref().map(comparison),
        strengths: strengths(model),
        settings: SettingsTable::from_json(&serde_json::to_value(&model.config)?),
        notes: &notes,
    };
    Ok(training_page(title, subtitle, &content))
}

/// A model beside what it has to beat.
pub(crate) fn comparison(comparison: &Comparison) -> MethodTable {
    type Score = fn(&ComparedScores) -> Option<f64>;
    let all: [(&str, bool, Score); 4] = [
        ("AU(PRC)", true, |scores| scores.au_prc),
        ("F1", true, |scores| scores.f1),
        ("log-loss", false, |scores| scores.log_loss),
        ("accuracy", true, |scores| scores.accuracy),
    ];
    let exists = |score: &Score| comparison.all().any(|scores| score(scores).is_some());
    let shown: Vec<_> = all.into_iter().filter(|(_, _, score)| exists(score)).collect();
    let value = |value: Option<f64>| Spread::single(value.unwrap_or(f64::NAN));
    let column = |(name, higher_is_better, _): &(&str, bool, Score)| MetricColumn {
        name: String::from(*name),
        higher_is_better: *higher_is_better,
    };
    let method = |scores: &ComparedScores| {
        let values = shown.iter().map(|(_, _, score)| value(score(scores))).collect();
        (String::from(scores.name), values)
    };
    MethodTable {
        metrics: shown.iter().map(column).collect(),
        methods: comparison.all().map(method).collect(),
    }
}

/// Losses, the metric and the learning rate by epoch.
pub(crate) fn curves(model: &TrainedModel) -> TrainingCurves {
    let metric = model.config.validation.metric;
    let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let epoch = |record: &EpochRecord| EpochPoint {
        training_loss: record.training_loss,
        validation_loss: of(record.validation_loss),
        // The loss has a panel of its own.
        metric: of(record.validation_metric.filter(|_| metric != Metric::Loss)),
        learning_rate: record.learning_rate,
    };
    let mut stages: Vec<StageStart> = Vec::new();
    for record in &model.history {
        if stages.last().is_none_or(|stage| stage.name != record.stage) {
            stages.push(StageStart { name: record.stage.clone(), first_epoch: record.epoch });
        }
    }
    if stages.len() == 1 {
        stages.clear();
    }
    TrainingCurves {
        epochs: model.history.iter().map(epoch).collect(),
        metric: metric.name().to_owned(),
        stages,
        best: model.best_epoch,
    }
}

/// The learned strengths, with a sentence about them.
fn strengths(model: &TrainedModel) -> Option<(String, SettingsTable)> {
    let (StrengthConfig::Learned { tie, .. } | StrengthConfig::CrossFitted { tie, .. }) =
        model.config.strengths
    else {
        return None;
    };
    let epoch = model.best_epoch.unwrap_or(model.history.len());
    let record = model.history.iter().find(|record| record.epoch == epoch)?;
    let learned = Strengths::new(model.graph.clone(), tie).ok()?;
    let names = learned.names().iter().zip(&record.strengths);
    let entries: Vec<(String, String)> =
        names.take(LISTED).map(|(name, value)| (name.clone(), format!("{value:.4}"))).collect();
    let what = match tie {
        phex::learn::Tie::Relation => "The cost w of each relation",
        _ => "Factors on the given costs",
    };
    let more = record.strengths.len().saturating_sub(entries.len());
    let more = if more > 0 { format!("; {more} more are in `graph.json`") } else { String::new() };
    let text = format!("{what}, as learned by epoch {epoch}{more}.");
    Some((text, SettingsTable { entries }))
}
