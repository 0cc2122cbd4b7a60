//! Prints the part of the demo that trains.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use phex::decide::{Classes, Decision};
use phex::infer::{Evidence, Options};
use phex_io::Dataset;

use super::learn::{DemoTables, TOLERANCE, Tried};
use super::world::World;
use super::{DemoResults, heading};
use crate::output;
use phex::metrics::Spread;

/// Labels of a row that are shown.
const SHOWN: usize = 5;
/// The confidence that backing off needs.
const CONFIDENCE: f64 = 0.9;

/// The data.
pub(super) fn data(world: &World, data: &DemoTables) -> anyhow::Result<()> {
    heading("3. Learning when most labels are coarse (generated animals)")?;
    let rows = data.seeds.first().context("there are no rows")?;
    let training = &rows.training;
    let named = (0..training.rows()).filter(|&row| is_named(training, row)).count();
    let kinds = world.kinds.len();
    output::text(&format!(
        "The data are {} animals of {kinds} kinds, described by {} noisy numbers. Of {} training rows, \
         {named}\nname the animal (\"owl\"); the others name only its kind (\"bird\"). All methods have the \
         same labels\n(a bird is no fish, no dog and no eel), linear head, optimiser and number of epochs. \
         {} validation\nrows choose the epoch and the strength; {} test rows measure the result. The table \
         shows\nmeans ± deviations over {} draws of the training rows, in %.\n\n",
        world.graph.len() - kinds,
        training.features.columns,
        training.rows(),
        rows.validation.rows(),
        data.test.rows(),
        data.seeds.len(),
    ))
}

fn is_named(data: &Dataset, row: usize) -> bool {
    data.targets.as_ref().is_some_and(|targets| !targets.evidence(row).contains(&Evidence::Unknown))
}

/// The methods beside each other, and the strengths.
pub(super) fn tables(results: &DemoResults<'_>) -> anyhow::Result<()> {
    let (first, second) = ("accuracy of", "accuracy of");
    let mut text = format!(
        "{:<44}{first:>12}{second:>14}{:>13}{:>14}\n{:<44}{:>12}{:>14}{:>13}{:>14}\n",
        "", "rows that", "calibration", "method", "animals", "kinds", "contradict", "error"
    );
    for tried in results.shown()? {
        text.push_str(&line(tried));
    }
    text.push_str("the same, from random weights instead of zeros:\n");
    results.random.iter().for_each(|tried| text.push_str(&line(tried)));
    let _ = write!(
        text,
        "\nA row contradicts itself if its probabilities break a relation by more than {TOLERANCE}; HEX \
         rows\ncannot. The calibration error is that of the most probable animal. Here every row is one \
         animal, so\na softmax whose kinds are sums of animals is as good as HEX, which can also handle labels \
         that\noverlap. From random weights, HEX falls far behind, probably because a coarse row then trains \
         whichever\nof its animals is ahead. Training on named rows first undoes part of this, and so do soft \
         relations.\n\n"
    );
    let chosen = results.chosen()?.method.setting();
    text.push_str("pHEX by strength, accuracy of animals on the validation rows (*: chosen)\n ");
    for tried in results.soft() {
        let mark = if tried.method.setting() == chosen { "*" } else { "" };
        let _ = write!(
            text,
            " {} {:.1}{mark},",
            tried.method.setting(),
            100.0 * tried.validation().mean
        );
    }
    let _ = writeln!(text, " hard {:.1}", 100.0 * results.hard()?.validation().mean);
    output::text(&text)
}

fn line(tried: &Tried<'_>) -> String {
    let cell = |value: Spread| {
        let deviation = value
            .deviation
            .map_or(String::new(), |deviation| format!(" ±{:>4.1}", 100.0 * deviation));
        format!("{:.1}{deviation}", 100.0 * value.mean)
    };
    let [animals, kinds, broken, calibration] = tried.scores().map(cell);
    format!("{:<44}{animals:>12}{kinds:>14}{broken:>13}{calibration:>14}\n", tried.method.name)
}

/// One test row by sigmoids and by the winner, and the decisions.
pub(super) fn row(results: &DemoResults<'_>) -> anyhow::Result<()> {
    let DemoResults { world, data, .. } = results;
    let winner = results.winner()?;
    let run = winner.runs.first().context("nothing was trained")?;
    let sigmoids = results.baselines.last().and_then(|tried| tried.runs.first());
    let sigmoids = sigmoids.context("nothing was trained")?;
    let labels = world.graph.len();
    let of = |probabilities: &[f32], row: usize| probabilities[row * labels..][..labels].to_vec();
    let row = telling(results, &run.probabilities, &sigmoids.probabilities);
    let (before, after) = (of(&sigmoids.probabilities, row), of(&run.probabilities, row));
    let truth = crate::data::targets(&data.test)?.evidence(row);
    let names: Vec<&str> = world.graph.labels().iter().map(|label| label.name.as_str()).collect();
    let list = |on: &dyn Fn(usize) -> bool| {
        let on: Vec<&str> = (0..labels).filter(|&at| on(at)).map(|at| names[at]).collect();
        if on.is_empty() { String::from("nothing") } else { on.join(", ") }
    };
    heading(&format!(
        "4. A test row that is hard to classify; its true labels: {}",
        list(&|at| truth[at] == Evidence::On)
    ))?;
    let mut order: Vec<usize> = (0..labels).collect();
    order.sort_by(|&a, &b| before[b].max(after[b]).total_cmp(&before[a].max(after[a])));
    let (_, child, parent) = contradiction(world, &before);
    let mut shown: Vec<usize> = order.iter().copied().take(SHOWN).collect();
    shown.extend([parent, child].iter().filter(|at| !order[..SHOWN].contains(*at)));
    let mut text = format!("{:<12}{:>10}{:>10}\n", "label", "sigmoids", short(winner));
    for at in shown {
        let _ = writeln!(text, "{:<12}{:>10.3}{:>10.3}", names[at], before[at], after[at]);
    }
    let _ = writeln!(
        text,
        "According to the sigmoids, {} is more probable than {}, its kind.",
        names[child], names[parent]
    );
    let predictor = run.trained.model.predictor(&Options::default())?;
    let decisions = [
        ("threshold=0.5", Decision::default()),
        ("best", Decision::Best { among: Classes::Leaves }),
        ("back-off=0.9", Decision::BackOff { confidence: CONFIDENCE }),
        ("consistent", Decision::Consistent),
    ];
    text.push_str(&format!("Decisions by {}:\n", short(winner)));
    for (name, decision) in decisions {
        let sets = predictor.decide(&decision, None, &data.test.features, row..row + 1, &after)?;
        let _ = writeln!(text, "  {name:<15}{}", list(&|at| sets.row(0)[at]));
    }
    output::text(&text)
}

/// The name of a method before its colon.
fn short<'t>(tried: &'t Tried<'_>) -> &'t str {
    tried.method.name.split(':').next().unwrap_or_default()
}

/// The largest excess of an animal's probability over that of its kind, with the animal and the kind.
fn contradiction(world: &World, probabilities: &[f32]) -> (f32, usize, usize) {
    let pairs = world.kinds.iter().flat_map(|kind| {
        let animals = world.graph.topology().children(*kind).iter();
        animals.map(|animal| (animal.index(), kind.index()))
    });
    pairs
        .map(|(child, parent)| (probabilities[child] - probabilities[parent], child, parent))
        .fold((f32::NEG_INFINITY, 0, 0), |most, next| if next.0 > most.0 { next } else { most })
}

/// The first row of which the winner is sure about the kind but not about the animal, and for which
/// sigmoids contradict themselves within three digits.
fn telling(results: &DemoResults<'_>, winner: &[f32], sigmoids: &[f32]) -> usize {
    let world = &results.world;
    let labels = world.graph.len();
    let confidence = CONFIDENCE as f32;
    let most = |row: &[f32], kinds: bool| {
        let is_kind = |at: usize| world.kinds.iter().any(|kind| kind.index() == at);
        let chosen = row.iter().enumerate().filter(|(at, _)| is_kind(*at) == kinds);
        chosen.fold(0.0f32, |most, (_, p)| most.max(*p))
    };
    let mut rows = winner.chunks_exact(labels).zip(sigmoids.chunks_exact(labels));
    let tells = |(after, before): (&[f32], &[f32])| {
        most(after, true) >= confidence
            && (0.5..confidence).contains(&most(after, false))
            && contradiction(world, before).0 > TOLERANCE as f32
    };
    rows.position(tells).unwrap_or(0)
}

/// Prints what was written, and commands to try next.
pub(super) fn files(results: &DemoResults<'_>, folder: &Path) -> anyhow::Result<()> {
    heading("5. Go on")?;
    let winner = results.winner()?;
    let folder = folder.display();
    let data = format!("{folder}/graph.toml --data {folder}/train.csv --valid {folder}/valid.csv");
    output::text(&format!(
        "{folder}/report.html compares the methods. {folder}/model is the best on the validation rows\n\
         (\"{}\"), trained on {folder}/train.csv.\n\n\
         phex predict {folder}/model --data {folder}/test.csv --decide back-off=0.9 --out sets.csv\n\
         phex eval {folder}/model --data {folder}/test.csv --top 1,5 --report test.html\n\
         phex train {data} \\\n  {} \\\n  --out {folder}/again    # the same model\n\
         phex tune {data} \\\n  {} --out {folder}/tuned\n",
        winner.method.name,
        winner.method.flags(),
        super::methods::base_flags(),
    ))
}
