//! Made-up numbers like those of real runs, for tests and for pages that people look at.

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Strength};
use phex::metrics::Spread;

use super::*;

/// A wave between −1 and 1 that does not repeat soon: noise that is the same on every machine.
fn noise(at: usize) -> f64 {
    let at = at as f64;
    0.6 * (at * 2.399).sin() + 0.4 * (at * 5.131 + 1.0).sin()
}

pub(super) fn curves() -> TrainingCurves {
    let epoch = |at: usize| {
        let t = at as f64;
        EpochPoint {
            training_loss: 0.11 + 0.58 * (-t / 6.0).exp() + 0.006 * noise(at),
            validation_loss: 0.16 + 0.5 * (-t / 5.0).exp() + 0.0017 * t + 0.008 * noise(at + 50),
            metric: match at {
                0 => f64::NAN,
                _ => 0.815 - 0.42 * (-t / 5.5).exp() - 0.0012 * (t - 23.0).abs(),
            },
            learning_rate: 1e-3 * 0.5 * (1.0 + (std::f64::consts::PI * t / 30.0).cos()) + 1e-6,
        }
    };
    let stage = |name: &str, first_epoch| StageStart { name: name.to_owned(), first_epoch };
    TrainingCurves {
        epochs: (0..30).map(epoch).collect(),
        metric: String::from("mean average precision"),
        stages: vec![
            stage("roots", 1),
            stage("two levels", 6),
            stage("leaves <only> & all the rest", 12),
            stage("x", 29),
        ],
        best: Some(24),
    }
}

pub(super) fn reliability() -> ReliabilityDiagram {
    let bin = |at: usize| {
        let range = (at as f64 / 10.0, (at + 1) as f64 / 10.0);
        let mean_predicted = range.0 + 0.05 + 0.01 * noise(at);
        let observed = mean_predicted - 0.32 * mean_predicted * (1.0 - mean_predicted) * 1.4;
        match at {
            6 => ReliabilityBin { range, mean_predicted: f64::NAN, observed: f64::NAN, count: 0 },
            _ => ReliabilityBin {
                range,
                mean_predicted,
                observed,
                count: 48_210 / (1 + at as u64).pow(3),
            },
        }
    };
    ReliabilityDiagram {
        name: String::from("pHEX, u = 0.5"),
        bins: (0..10).map(bin).collect(),
        expected_calibration_error: 0.0312,
    }
}

pub(super) fn strength() -> StrengthCurve {
    let value = |u: f64, mean: f64| {
        (
            u,
            Spread {
                mean,
                count: 3,
                deviation: Some(0.004 + 0.003 * noise((u * 100.0) as usize).abs()),
            },
        )
    };
    StrengthCurve {
        metric: String::from("mean average precision"),
        points: vec![
            value(0.0, 0.694),
            value(0.05, 0.703),
            value(0.1, 0.716),
            value(0.25, 0.738),
            value(0.5, 0.747),
            value(1.0, 0.741),
            value(2.0, 0.729),
            value(5.0, 0.7225),
        ],
        hard: Some(Spread { mean: 0.721, deviation: Some(0.005), count: 3 }),
        chosen: Some(0.5),
    }
}

pub(super) fn animals() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    for (parent, children) in [
        ("animal", &["mammal", "bird", "fish"][..]),
        ("mammal", &["dog", "cat", "antelope", "<script>alert('x')</script>"]),
        ("dog", &["husky", "poodle", "Bernese mountain dog"]),
        ("bird", &["penguin", "eagle"]),
        ("swims", &["fish", "penguin"]),
    ] {
        children.iter().for_each(|child| {
            builder.hierarchy(parent, child, None);
        });
    }
    builder.hierarchy("furry", "dog", Some(Strength::U(0.3)));
    builder.exclusion_rule(ExclusionRule::Siblings, None);
    builder.one_of("size", ["small", "large"], None);
    builder.build().unwrap()
}

/// Names of fields of study, as a taxonomy of some depth.
fn large() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    for at in 1..900usize {
        let name = |at: usize| format!("topic {at:03}");
        builder.hierarchy(&name((at - 1) / 6), &name(at), None);
    }
    builder.build().unwrap()
}

fn f1(at: usize) -> f64 {
    (0.78 + 0.2 * noise(at * 3)).clamp(0.0, 1.0)
}

pub(super) fn labels() -> LabelTable {
    let graph = animals();
    let row = |(at, label): (usize, &phex::graph::Label)| LabelRow {
        name: label.name.clone(),
        title: (at == 3).then(|| String::from("fish, any of the gilled vertebrates")),
        support: 1204 / (at as u64 + 1),
        average_precision: if at == 5 { f64::NAN } else { f1(at + 7) },
        precision: f1(at + 1),
        recall: f1(at + 2),
        f1: if at == 5 { f64::NAN } else { f1(at) },
    };
    let mut rows: Vec<LabelRow> = graph.labels().iter().enumerate().map(row).collect();
    let more = (0..12).map(|at| LabelRow { name: format!("label {at}"), ..rows[at].clone() });
    let more: Vec<LabelRow> = more.collect();
    rows.extend(more);
    LabelTable { rows }
}

pub(super) fn comparison() -> MethodTable {
    let column =
        |name: &str, higher_is_better| MetricColumn { name: name.into(), higher_is_better };
    let value = |mean, deviation| Spread { mean, deviation: Some(deviation), count: 3 };
    let alone = Spread::single;
    let method = |name: &str, values: Vec<Spread>| (name.to_owned(), values);
    MethodTable {
        metrics: vec![
            column("mean average precision", true),
            column("micro F1", true),
            column("calibration error", false),
        ],
        methods: vec![
            method("independent", vec![value(0.7411, 0.0063), value(0.702, 0.005), alone(0.0574)]),
            method("HEX, hard", vec![value(0.7902, 0.0052), value(0.744, 0.004), alone(0.0441)]),
            method("pHEX, u = 0.5", vec![value(0.812, 0.0041), value(0.751, 0.004), alone(0.0312)]),
            method("pHEX, learned", vec![value(0.8113, 0.0048), value(0.751, 0.006)]),
        ],
    }
}

pub(super) fn report() -> Page {
    let metric = |name: &str, mean, deviation, meaning: &str| MetricValue {
        name: name.to_owned(),
        value: Spread { mean, deviation, count: 3 },
        meaning: meaning.to_owned(),
    };
    let summary = MetricTable {
        metrics: vec![
            metric(
                "mean average precision",
                0.812,
                Some(0.0041),
                "ranking of rows, averaged over labels",
            ),
            metric("micro F1", 0.751, None, "precision and recall over all decisions together"),
            metric("log loss", 0.1634, None, "mean surprise per label, in nats; less is better"),
            metric(
                "expected calibration error",
                0.0312,
                None,
                "distance of probabilities from rates",
            ),
            metric("illegal label sets", 0.0, None, "predictions that break a hard relation"),
        ],
    };
    let warnings = Warnings {
        messages: vec![
            String::from(
                "antelope has no positive row in the validation part: its average precision is not defined.",
            ),
            String::from("12 of 4 096 rows did not converge within 500 sweeps."),
        ],
    };
    let entry = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let settings = SettingsTable {
        entries: vec![
            entry("graph", "animals.toml (15 labels)"),
            entry("engine", "family, exact"),
            entry("head", "mlp 512 → 256, dropout 0.1"),
            entry("optimiser", "AdamW, learning rate 0.001, weight decay 0.01"),
            entry("seed", "7"),
        ],
    };
    let (graph, outlined) = (animals(), large());
    let values: Vec<f64> =
        (0..graph.len()).map(|at| if at == 5 { f64::NAN } else { f1(at) }).collect();
    let many: Vec<f64> = (0..outlined.len()).map(f1).collect();
    let metric = || String::from("F1");
    let picture = GraphPicture { graph: &graph, metric: metric(), values: &values };
    let outline = GraphPicture { graph: &outlined, metric: metric(), values: &many };
    Page {
        title: String::from("Animals with attributes"),
        subtitle: String::from("phex train · 4 096 rows, 15 labels · 2 min 14 s on 8 threads"),
        sections: vec![
            Section::new("Results")
                .text(
                    "The relations help most where labels are rare: leaves gain 0.09, roots 0.01.",
                )
                .with(&warnings)
                .with(&summary),
            Section::new("Training").with(&curves()),
            Section::new("Methods").with(&comparison()),
            Section::new("Strength").with(&strength()),
            Section::new("Calibration").with(&reliability()),
            Section::new("Labels").with(&picture).with(&labels()).with(&outline),
            Section::new("SettingsTable").with(&settings),
        ],
    }
}

/// Numbers that few runs have.
pub(super) fn edges() -> Page {
    let mut one = curves();
    one.epochs.truncate(1);
    one.best = Some(1);
    let mut none = curves();
    none.epochs.clear();
    none.stages.clear();
    let mut long = curves();
    let wave = |at: usize| EpochPoint {
        training_loss: 900.0 * (-(at as f64) / 60.0).exp() + 0.02,
        learning_rate: f64::NAN,
        metric: if at % 97 == 5 { 0.5 + 0.001 * at as f64 } else { f64::NAN },
        validation_loss: f64::NAN,
    };
    long.epochs = (0..400).map(wave).collect();
    long.best = Some(297);
    let mut linear = strength();
    linear.points.retain(|(u, _)| *u >= 0.25 && *u <= 2.0);
    linear.points.iter_mut().for_each(|(_, value)| value.deviation = None);
    linear.hard = None;
    let empty = StrengthCurve { points: Vec::new(), ..linear.clone() };
    let unknown = ReliabilityDiagram { bins: Vec::new(), ..reliability() };
    Page {
        title: String::from("Edges"),
        subtitle: String::new(),
        sections: vec![
            Section::new("One epoch").with(&one),
            Section::new("No epoch").with(&none),
            Section::new("Many epochs, few metrics").with(&long),
            Section::new("Linear strengths").with(&linear).with(&empty),
            Section::new("No bins").with(&unknown),
            Section::new("No tables").with(&MetricTable::default()).with(&LabelTable::default()),
        ],
    }
}
