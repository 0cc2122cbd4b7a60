//! Prints the demo: one screen.

use std::fmt::Write as _;
use std::path::Path;

use phex::graph::Report;
use phex::metrics::Spread;

use super::coarse::{self, CoarseTour};
use super::measure::MeasuredMethod;
use super::photos::{self, PhotoTour};
use crate::output;

/// The width of names of methods.
const NAMES: usize = 47;
/// The lines of the report about the mistake that are printed.
const LINES: usize = 4;

/// Labels that overlap.
pub(super) fn photos(tour: &PhotoTour) -> anyhow::Result<()> {
    let shown = &tour.shown;
    let mut text = format!(
        "A photo shows a cat: a mammal, furry, perhaps a pet, indoors or outdoors. The labels overlap, so no\n\
         softmax applies. Sigmoids contradict themselves, relations do not (photos.toml). One test photo,\n\
         which is {}:\n\n  {:<18}",
        list(&shown.truth),
        ""
    );
    let width = |name: &String| name.len().max(5) + 2;
    shown.labels.iter().for_each(|(name, _)| {
        let _ = write!(text, "{name:>0$}", width(name));
    });
    for (at, method) in ["a sigmoid per label", "with relations"].into_iter().enumerate() {
        let _ = write!(text, "\n  {method:<19}");
        for (place, (name, p)) in shown.labels.iter().enumerate() {
            let _ = write!(text, "{:>1$.2}", p[at], width(name) - usize::from(place == 0));
        }
    }
    let _ = write!(
        text,
        "\n\n{}",
        heading(&format!(
            "{} photos for training, {} for the test",
            photos::TRAINING,
            photos::TEST
        ))
    );
    tour.methods.iter().for_each(|method| text.push_str(&line(method)));
    output::text(&text)
}

/// Most labels are coarse.
pub(super) fn coarse(tour: &CoarseTour) -> anyhow::Result<()> {
    let named = tour.named();
    let mut text = format!(
        "\nMost labels are coarse: {named} of {} rows name the animal (owl), the others only its kind (bird).\n{}",
        coarse::TRAINING,
        heading("")
    );
    tour.methods.iter().for_each(|method| text.push_str(&line(method)));
    output::text(&text)
}

/// A mistake, explained.
pub(super) fn mistake(report: &Report) -> anyhow::Result<()> {
    let text = report.to_text(false);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).take(LINES).collect();
    output::text(&format!(
        "\nSomebody adds to the graph of photos that birds are never outdoors. phex graph check explains:\n  {}\n",
        lines.join("\n  ")
    ))
}

/// What was written, and commands to try next.
pub(super) fn files(folder: &Path) -> anyhow::Result<()> {
    let folder = folder.display();
    output::text(&format!(
        "\nPictures and tables are in {folder}/report.html. The last model again, and its test:\n\
         phex train {folder}/animals.toml --data {folder}/train.csv --label-column is --out {folder}/again\n\
         phex eval {folder}/again --data {folder}/test.csv\n"
    ))
}

fn heading(title: &str) -> String {
    format!(
        "{title:<NAMES$}{:>21}{:>10}{:>14}\n",
        "contradict themselves", "log-loss", "animal right"
    )
}

fn line(method: &MeasuredMethod) -> String {
    let percent = |value: Spread| format!("{:.1} %", 100.0 * value.mean);
    let [broken, loss, right] = method.scores;
    let (name, broken, right) = (method.name, percent(broken), percent(right));
    format!("  {name:<0$}{broken:>21}{1:>10.3}{right:>14}\n", NAMES - 2, loss.mean)
}

/// "a, b and c".
fn list(names: &[String]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
