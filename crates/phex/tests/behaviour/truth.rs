//! The truth suite: every exact engine against enumeration with exact sums, on graphs and rows that aim
//! at weak spots. `make truth` runs a million pairs of a graph and a row; `PHEX_TRUTH` says how many.

use std::collections::BTreeMap;

use phex::infer::{Block, Engine, Evidence, Method, Options, Posterior, RowStatus, Trust, Want};
use phex::model::Model;
use phex::testkit::{AimedRow, Random, RowKind, Truth, TruthTable, aimed_graph, aimed_row};
use rayon::prelude::*;

/// Rows of each graph.
const ROWS: usize = 50;

/// What some graphs showed.
#[derive(Default)]
struct Findings {
    pairs: usize,
    checked: BTreeMap<(String, RowKind), usize>,
    certified: usize,
    wrong: Vec<String>,
}

impl Findings {
    fn and(mut self, other: Findings) -> Findings {
        self.pairs += other.pairs;
        self.certified += other.certified;
        other.checked.into_iter().for_each(|(key, n)| *self.checked.entry(key).or_default() += n);
        self.wrong.extend(other.wrong);
        self
    }
}

/// The precision that is promised for a number type: what a sum of scores may lose relative to them,
/// the largest score that is summed in this type, and the error that no sum explains.
#[derive(Clone, Copy)]
struct Promise {
    epsilon: f64,
    large: f64,
    floor: f64,
}

const DOUBLE: Promise = Promise { epsilon: f64::EPSILON, large: 1e6, floor: 1e-9 };
const SINGLE: Promise = Promise { epsilon: f32::EPSILON as f64, large: 256.0, floor: 1e-5 };

/// How far a marginal may be from the truth.
fn tolerance(row: &AimedRow, trust: Trust, precision: Promise) -> f64 {
    let certified = match trust {
        Trust::Exact => 0.0,
        Trust::Certified(error) => error,
        Trust::Approximate(_) => f64::NAN,
    };
    let sizes = row.scores.iter().map(|score| score.abs());
    let summed: f64 = sizes.clone().filter(|&size| size <= precision.large).sum();
    // Larger scores decide labels, or are certified unless they lose less than 10⁻⁶.
    let larger = (4.0 * f64::EPSILON * sizes.sum::<f64>()).min(1e-6);
    precision.floor + certified + 4.0 * precision.epsilon * summed + larger
}

/// Why an engine's answer is wrong.
fn fault<T: Copy + Into<f64>>(
    got: &Posterior<T>,
    at: usize,
    row: &AimedRow,
    truth: Option<&Truth>,
    precision: Promise,
) -> Option<String> {
    let Some(truth) = truth else {
        let status = got.status[at];
        return (status != RowStatus::Impossible)
            .then(|| format!("{status:?}, but it is impossible"));
    };
    if got.status[at] != RowStatus::Answered {
        return Some(format!("{:?}, but it is possible", got.status[at]));
    }
    let tolerance = tolerance(row, got.trust[at], precision);
    for (label, (&p, e)) in got.row(at).iter().zip(&truth.marginals).enumerate() {
        let p = p.into();
        let close = (p - e).abs() <= tolerance;
        if !close {
            return Some(format!("label {label}: {p}, but it is {e} (tolerance {tolerance:.1e})"));
        }
    }
    let size: f64 = row.scores.iter().map(|score| score.abs()).sum();
    let (z, e) = (got.log_partition[at], truth.log_partition);
    let close =
        (z - e).abs() <= 100.0 * precision.floor + 8.0 * precision.epsilon * (size + e.abs());
    (!close).then(|| format!("log Z {z}, but it is {e}"))
}

/// Every exact engine on the rows of one graph.
fn check(seed: u64) -> Findings {
    let mut findings = Findings::default();
    let graph = aimed_graph(seed);
    let Ok(model) = Model::new(&graph) else { return findings };
    let table = TruthTable::new(&graph, &model);
    let mut random = Random::new(seed);
    let rows: Vec<AimedRow> = (0..ROWS).map(|_| aimed_row(&table, &mut random)).collect();
    let truths: Vec<Option<Truth>> =
        rows.iter().map(|row| table.answer(&row.scores, &row.evidence)).collect();
    let scores: Vec<f64> = rows.iter().flat_map(|row| row.scores.iter().copied()).collect();
    let evidence: Vec<Evidence> =
        rows.iter().flat_map(|row| row.evidence.iter().copied()).collect();
    // Single precision gets the rows as it holds them.
    let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
    let narrow_rows: Vec<AimedRow> = rows
        .iter()
        .map(|row| {
            let scores = row.scores.iter().map(|&score| f64::from(score as f32)).collect();
            AimedRow { scores, ..row.clone() }
        })
        .collect();
    let narrow_truths: Vec<Option<Truth>> =
        narrow_rows.iter().map(|row| table.answer(&row.scores, &row.evidence)).collect();
    findings.pairs = ROWS;
    let n = graph.len();
    for method in Method::exact() {
        let options = Options { method, ..Options::default() };
        let Ok(engine) = Engine::compile(model.clone(), &options) else { continue };
        let block = Block::new(n, &scores).with_evidence(&evidence);
        let got = engine.run(&block, Want::default()).unwrap();
        let single = Block::new(n, &narrow).with_evidence(&evidence);
        let single = engine.run(&single, Want::default()).unwrap();
        for (at, row) in rows.iter().enumerate() {
            *findings.checked.entry((method.to_string(), row.kind)).or_default() += 1;
            findings.certified += usize::from(matches!(got.trust[at], Trust::Certified(_)));
            let double = fault(&got, at, row, truths[at].as_ref(), DOUBLE);
            let narrow_row = &narrow_rows[at];
            let narrow = fault(&single, at, narrow_row, narrow_truths[at].as_ref(), SINGLE);
            for (kind, fault) in [("f64", double), ("f32", narrow)] {
                if let Some(fault) = fault {
                    findings.wrong.push(format!(
                        "seed {seed}, row {at} ({:?}), {method} in {kind}: {fault}\n  {:?}\n  {:?}\n  {graph:?}",
                        row.kind, row.scores, row.evidence
                    ));
                }
            }
            if at % 10 == 0 && engine.plan().exact {
                let best = engine.best(&block, at, 1).unwrap();
                let size: f64 = row.scores.iter().map(|score| score.abs()).sum();
                let right = match (&truths[at], best.first()) {
                    (None, None) => true,
                    (Some(truth), Some(set)) => {
                        (set.log_weight - truth.best).abs() <= 1e-8 + 8.0 * f64::EPSILON * size
                    }
                    _ => false,
                };
                if !right {
                    findings.wrong.push(format!(
                        "seed {seed}, row {at} ({:?}), {method}: the best set {best:?}, but {:?}",
                        row.kind, truths[at]
                    ));
                }
            }
        }
    }
    findings
}

#[test]
fn exact_engines_tell_the_truth() {
    let pairs: usize = match std::env::var("PHEX_TRUTH") {
        Ok(pairs) => pairs.parse().unwrap(),
        Err(_) => 10_000,
    };
    let graphs = pairs.div_ceil(ROWS) as u64;
    let found = (0..graphs).into_par_iter().map(check).reduce(Findings::default, Findings::and);
    println!("{} pairs of a graph and a row; rows answered, in f64 and f32 each:", found.pairs);
    for ((method, kind), count) in &found.checked {
        println!("  {method:10} {:12} {count:9}", format!("{kind:?}"));
    }
    println!("{} answers with a certified bound, {} wrong", found.certified, found.wrong.len());
    let mut by: BTreeMap<String, usize> = BTreeMap::new();
    for wrong in &found.wrong {
        let what = wrong.split_once(", row").unwrap().1.split_once(": ").unwrap().0;
        *by.entry(what.split_once(" (").unwrap().1.to_owned()).or_default() += 1;
    }
    let first: Vec<&str> = found.wrong.iter().take(6).map(String::as_str).collect();
    assert!(found.wrong.is_empty(), "{by:#?}\n{}", first.join("\n"));
    assert!(found.pairs * 10 >= pairs * 8, "too few graphs make a model: {}", found.pairs);
}
