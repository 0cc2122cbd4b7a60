//! `phex samples`: the samples of an annealer as label sets, best first.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{BufWriter, Write as _};

use anyhow::bail;
use phex_io::Output;
use serde::Serialize;

use crate::args::SamplesCommand;
use crate::files::CommandFiles;
use crate::say::say;
use crate::{Outcome, output};

/// A label set as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    rank: usize,
    /// None if a hard constraint without a finite cost is broken.
    energy: Option<f64>,
    log_weight: Option<f64>,
    legal: bool,
    occurrences: u64,
    labels: Vec<&'a str>,
}

#[derive(Serialize)]
struct Summary {
    /// All samples, counting repeated ones.
    samples: u64,
    label_sets: usize,
    legal_sets: usize,
}

/// A state, how often it was found, and its energy.
struct Found {
    state: Vec<bool>,
    occurrences: u64,
    log_weight: f64,
    energy: f64,
}

pub(crate) fn run(command: &SamplesCommand) -> anyhow::Result<Outcome> {
    let standard = [&command.input.path, &command.samples];
    if standard.iter().all(|path| path.as_os_str() == "-") {
        bail!("the graph and the samples cannot both be standard input");
    }
    let files = CommandFiles::default().reads(command.input.files()).reads([&command.samples]);
    files.reads(&command.scores.scores).writes([&command.out]).check()?;
    output::check_lines(&command.out)?;
    let model = command.input.model()?;
    let scores = command.scores.row(model.names())?;
    // With a cost for hard constraints, the energies are those of the annealer.
    let ising = match command.scores.hard {
        Some(_) => Some(command.scores.ising(&model, &scores)?),
        None => None,
    };
    let mut places: HashMap<Vec<bool>, usize> = HashMap::new();
    let mut found: Vec<Found> = Vec::new();
    for sample in phex_io::read_samples(&command.samples, model.names())? {
        match places.entry(sample.state) {
            Entry::Occupied(place) => {
                let occurrences = &mut found[*place.get()].occurrences;
                *occurrences = occurrences.saturating_add(sample.occurrences);
            }
            Entry::Vacant(place) => {
                let state = place.key().clone();
                let log_weight = model.log_weight(&scores, &state);
                // A difference, so that no energy is printed as −0.
                let energy = ising.as_ref().map_or(0.0 - log_weight, |ising| ising.energy(&state));
                place.insert(found.len());
                found.push(Found { state, occurrences: sample.occurrences, log_weight, energy });
            }
        }
    }
    found.sort_by(|a, b| {
        let by_weight = b.log_weight.total_cmp(&a.log_weight);
        by_weight.then(a.energy.total_cmp(&b.energy)).then(b.occurrences.cmp(&a.occurrences))
    });
    write(command, model.names(), &found)?;
    let summary = Summary {
        samples: found.iter().fold(0, |sum, found| found.occurrences.saturating_add(sum)),
        label_sets: found.len(),
        legal_sets: found.iter().filter(|found| found.log_weight.is_finite()).count(),
    };
    if summary.legal_sets == 0 && summary.label_sets > 0 {
        say("phex: no sample is legal; with a larger --hard, breaking a constraint costs more");
    }
    if command.json {
        output::summary(&summary, command.out.as_os_str() == "-")?;
    }
    Ok(Outcome::Fine)
}

fn write(command: &SamplesCommand, names: &[String], found: &[Found]) -> anyhow::Result<()> {
    let json_lines = command.out.extension().is_some_and(|e| e == "jsonl" || e == "ndjson");
    let mut out = BufWriter::new(Output::create(&command.out)?);
    if !json_lines {
        writeln!(out, "rank,energy,log_weight,legal,occurrences,labels")?;
    }
    for (at, Found { state, occurrences, log_weight, energy }) in found.iter().enumerate() {
        let on = names.iter().zip(state).filter(|(_, on)| **on);
        let line = Line {
            rank: at + 1,
            energy: Some(*energy).filter(|energy| energy.is_finite()),
            log_weight: Some(*log_weight).filter(|weight| weight.is_finite()),
            legal: log_weight.is_finite(),
            occurrences: *occurrences,
            labels: on.map(|(name, _)| name.as_str()).collect(),
        };
        if json_lines {
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        } else {
            let labels = output::label_list(&line.labels);
            let Line { rank, legal, .. } = line;
            writeln!(out, "{rank},{energy},{log_weight},{legal},{occurrences},{labels}")?;
        }
    }
    Ok(out.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?)
}
