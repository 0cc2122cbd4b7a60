//! Initial biases of a head, under which the model expects each label as often as the targets have it.
//!
//! If features carry no information, the best a head can do is to match moments:
//! `E[x_i] = mean over rows of E[x_i | evidence]`. Where labels are unknown, the right side depends on
//! the biases as well, so expectation and matching alternate (expectation maximisation), starting from
//! the frequencies among the rows with evidence on a label. Matching climbs the likelihood of the biases
//! alone. Its passes are over a single row, so the cost is negligible.

use phex::infer::{Block, Engine, Evidence, RowStatus, Want};
use phex::numeric::logit;

use crate::Error;
use crate::examples::{Examples, mix, shuffled};
use crate::objective::Objective;

/// Rows used.
const ROWS: usize = 2000;
/// Rounds of expectation and matching, where labels are unknown.
const TURNS: usize = 6;
/// Steps of matching, and the size of the first.
const STEPS: i32 = 300;
const RATE: f64 = 0.3;
/// The largest bias.
const MOST: f64 = 20.0;

pub(crate) fn biases(
    objective: &Objective,
    examples: &Examples<'_>,
    rows: &[u32],
    seed: u64,
) -> Result<Vec<f32>, Error> {
    let mut some = shuffled(rows, mix(&[seed, 0x7072_696f]));
    some.truncate(ROWS);
    let mut biases: Vec<f64> = counted(examples, &some).into_iter().map(logit).collect();
    if let Some(engine) = objective.engine() {
        for _ in 0..TURNS {
            let (wanted, complete) = expected(engine, examples, &some, &biases)?;
            biases = matched(engine, &wanted, biases)?;
            if complete {
                break;
            }
        }
    }
    Ok(biases.into_iter().map(|bias| bias.clamp(-MOST, MOST) as f32).collect())
}

/// How often each label is expected to be on, given the evidence and these biases, and whether no label
/// is unknown. A tenth of a row is added to each count, so that nothing is impossible.
fn expected(
    engine: &Engine,
    examples: &Examples<'_>,
    rows: &[u32],
    biases: &[f64],
) -> Result<(Vec<f64>, bool), Error> {
    let n = engine.model().len();
    let (mut sums, mut count, mut complete) = (vec![0.1f64; n], 1.0, true);
    for rows in rows.chunks(256) {
        let (mut partial, mut evidence) = (Vec::new(), Vec::new());
        for &row in rows {
            evidence.clear();
            examples.push_evidence(row as usize, &mut evidence);
            if evidence.contains(&Evidence::Unknown) {
                partial.extend_from_slice(&evidence);
                continue;
            }
            count += 1.0;
            let on = evidence.iter().zip(&mut sums).filter(|(entry, _)| **entry == Evidence::On);
            on.for_each(|(_, sum)| *sum += 1.0);
        }
        if partial.is_empty() {
            continue;
        }
        complete = false;
        let scores = biases.repeat(partial.len() / n);
        let block = Block::new(n, &scores).with_evidence(&partial);
        let posterior = engine.run(&block, Want::default())?;
        for row in (0..block.rows()).filter(|&row| posterior.status[row] == RowStatus::Answered) {
            count += 1.0;
            sums.iter_mut().zip(posterior.row(row)).for_each(|(sum, p)| *sum += p);
        }
    }
    let wanted = sums.into_iter().map(|sum| (sum / count).min(1.0 - 0.05 / count)).collect();
    Ok((wanted, complete))
}

/// How often each label is on among the rows with evidence on it; half of the time if it is off in no
/// row, because then the rows do not say how often it is on.
fn counted(examples: &Examples<'_>, rows: &[u32]) -> Vec<f64> {
    let mut counts = vec![(0.1f64, 0.2f64); examples.targets.labels()];
    let mut evidence = Vec::new();
    for &row in rows {
        evidence.clear();
        examples.push_evidence(row as usize, &mut evidence);
        for (entry, (on, all)) in evidence.iter().zip(&mut counts) {
            *on += f64::from(u8::from(*entry == Evidence::On));
            *all += f64::from(u8::from(*entry != Evidence::Unknown));
        }
    }
    let part = |(on, all): (f64, f64)| if all - on > 0.5 { on / all } else { 0.5 };
    counts.into_iter().map(part).collect()
}

/// The log-likelihood `Σ wanted b − log Z(b)` is concave, so Adam with a rate that falls to zero climbs
/// it. If each label only followed its own error, parents and children would chase each other.
fn matched(engine: &Engine, wanted: &[f64], mut biases: Vec<f64>) -> Result<Vec<f64>, Error> {
    let (mut first, mut second) = (vec![0.0; wanted.len()], vec![0.0; wanted.len()]);
    for step in 1..=STEPS {
        let posterior = engine.run(&Block::new(wanted.len(), &biases), Want::default())?;
        let rate = RATE * (1.0 - f64::from(step) / f64::from(STEPS + 1));
        for (at, (&p, &wanted)) in posterior.row(0).iter().zip(wanted).enumerate() {
            // Roughly the error in log-odds, which rare labels need.
            let gradient = ((wanted - p) / (wanted * (1.0 - wanted) + 1e-9)).clamp(-3.0, 3.0);
            first[at] += 0.2 * (gradient - first[at]);
            second[at] += 0.02 * (gradient * gradient - second[at]);
            let mean = first[at] / (1.0 - 0.8f64.powi(step));
            let square: f64 = second[at] / (1.0 - 0.98f64.powi(step));
            biases[at] = (biases[at] + rate * mean / (square.sqrt() + 1e-3)).clamp(-MOST, MOST);
        }
    }
    Ok(biases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use phex::graph::GraphBuilder;
    use phex::infer::Options;
    use phex_io::{Features, Target, Targets};

    use crate::config::ObjectiveConfig;

    #[test]
    fn the_model_expects_what_is_seen() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("a", "b", None).hierarchy("a", "c", None).hierarchy("b", "d", None);
        let graph = builder.build().unwrap();
        let mut targets = Targets::new(4);
        let on = |labels: &[u32]| -> Vec<Target> {
            labels.iter().map(|&label| Target { label, on: true }).collect()
        };
        let sets: [&[u32]; 5] = [&[0, 1, 3], &[0, 2], &[0, 1], &[], &[]];
        for row in 0..400 {
            targets.push(&on(sets[row % 5]), true);
        }
        assert_frequencies(&graph, &targets, 0.01);
        // Two of three labels are unknown, at random.
        let mut hidden = Targets::new(4);
        for row in 0..400 {
            let evidence = targets.evidence(row);
            let seen = |label: &u32| mix(&[row as u64, u64::from(*label)]).is_multiple_of(3);
            let entry = |label: u32| Target { label, on: evidence[label as usize] == Evidence::On };
            let listed: Vec<Target> = (0..4u32).filter(seen).map(entry).collect();
            hidden.push(&listed, false);
        }
        assert_frequencies(&graph, &hidden, 0.08);
    }

    fn assert_frequencies(graph: &phex::graph::RelationGraph, targets: &Targets, tolerance: f32) {
        let rows = targets.rows();
        let names = vec![String::from("x")];
        let features = Features { names, rows, columns: 1, values: vec![0.0; rows] };
        let examples = Examples::new(&features, targets, graph).unwrap();
        let objective =
            Objective::new(ObjectiveConfig::default(), graph, &Options::default()).unwrap();
        let rows: Vec<u32> = (0..rows as u32).collect();
        let biases = biases(&objective, &examples, &rows, 0).unwrap();
        let p = objective.probabilities(&biases).unwrap();
        for (p, wanted) in p.iter().zip([0.6, 0.4, 0.2, 0.2]) {
            assert!((p - wanted).abs() < tolerance, "{p} {wanted}");
        }
    }
}
