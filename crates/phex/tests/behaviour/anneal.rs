//! Annealing against brute force, through the public interface.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use phex::Error;
use phex::anneal::{
    AnnealMethod, AnnealOptions, AnnealOutcome, Builder, Cooling, CoolingShape, Problem, Quantum,
    Tabu, anneal, best,
};
use phex::graph::{ExclusionRule, GraphBuilder, Semantics, Strength};
use phex::infer::{self, Block, Engine, Evidence};
use phex::model::{Ising, Model, Relation};
use phex::testkit::{Random, RandomGraph};

const METHODS: [AnnealMethod; 4] = [
    AnnealMethod::Simulated,
    AnnealMethod::Quantum,
    AnnealMethod::Tabu,
    AnnealMethod::SimulatedTabu,
];

fn bits(state: u32, n: usize) -> Vec<bool> {
    (0..n).map(|at| state >> at & 1 == 1).collect()
}

fn random_ising(n: usize, seed: u64) -> Ising {
    let mut random = Random::new(seed);
    let density = [0.2, 0.5, 1.0][seed as usize % 3];
    let mut j = Vec::new();
    for a in 0..n {
        for b in a + 1..n {
            if random.next() < density {
                j.push((a, b, random.normal()));
            }
        }
    }
    let h = (0..n).map(|_| random.normal()).collect();
    Ising { names: (0..n).map(|at| at.to_string()).collect(), h, j, offset: random.normal() }
}

#[test]
fn every_method_finds_the_ground_state_of_small_ising_problems() {
    for seed in 0..30 {
        let n = 2 + seed as usize % 11;
        let ising = random_ising(n, seed);
        let energies = (0..1 << n).map(|state| ising.energy(&bits(state, n)));
        let least = energies.fold(f64::INFINITY, f64::min);
        let problem = Problem::from_ising(&ising).unwrap();
        for method in METHODS {
            let options = AnnealOptions { method, keep: 5, seed, ..AnnealOptions::default() };
            let outcome = anneal(&problem, &options);
            let found = outcome.solutions[0].energy;
            assert!((found - least).abs() < 1e-9, "{method:?} {seed}: {found} {least}");
            assert!((1..=outcome.restarts).contains(&outcome.reached), "{outcome:?}");
            for solution in &outcome.solutions {
                assert!((ising.energy(&solution.state) - solution.energy).abs() < 1e-9);
                assert!((problem.energy(&solution.state) - solution.energy).abs() < 1e-9);
            }
            for pair in outcome.solutions.windows(2) {
                assert!(pair[0].energy <= pair[1].energy && pair[0].state != pair[1].state);
            }
        }
    }
}

/// A random form with everything: pairs, counters, one-of groups, fixed variables; and its energy,
/// read from the definition (infinite when not allowed).
fn random_form(n: usize, seed: u64) -> (Builder, impl Fn(&[bool]) -> f64) {
    let mut random = Random::new(seed);
    let linear: Vec<f64> = (0..n).map(|_| random.normal()).collect();
    let mut pairs = Vec::new();
    for a in 0..n {
        for b in a + 1..n {
            if random.next() < 0.4 {
                pairs.push((a, b, random.normal()));
            }
        }
    }
    let mut draw = |share: f64| (0..n).filter(|_| random.next() < share).collect::<Vec<usize>>();
    let counters: Vec<(Vec<usize>, f64)> = [0.7, 2.0].map(|cost| (draw(0.5), cost)).to_vec();
    let size = 2 + seed as usize % 3;
    let groups: Vec<Vec<usize>> =
        vec![(0..size).collect(), (size..2 * size).filter(|at| *at < n).collect()];
    let fixed: Vec<(usize, bool)> = if seed.is_multiple_of(2) {
        vec![(n - 1, seed.is_multiple_of(4)), (0, seed.is_multiple_of(6))]
    } else {
        Vec::new()
    };
    let mut builder = Builder::new(n);
    builder.constant(0.25);
    linear.iter().enumerate().for_each(|(at, &value)| {
        builder.linear(at, value);
    });
    pairs.iter().for_each(|&(a, b, value)| {
        builder.pair(b, a, value);
    });
    counters.iter().for_each(|(members, cost)| {
        builder.counter(members, *cost);
    });
    groups.iter().for_each(|group| {
        builder.one_of(group);
    });
    fixed.iter().for_each(|&(at, on)| {
        builder.fix(at, on);
    });
    let energy = move |x: &[bool]| {
        let one = |group: &Vec<usize>| group.iter().filter(|&&at| x[at]).count() == 1;
        if !groups.iter().all(one) || fixed.iter().any(|&(at, on)| x[at] != on) {
            return f64::INFINITY;
        }
        let linear: f64 = (0..n).filter(|&at| x[at]).map(|at| linear[at]).sum();
        let pairs: f64 = pairs.iter().filter(|pair| x[pair.0] && x[pair.1]).map(|p| p.2).sum();
        let counted = counters.iter().map(|(members, cost)| {
            let m = members.iter().filter(|&&at| x[at]).count() as f64;
            cost * m * (m - 1.0) / 2.0
        });
        0.25 + linear + pairs + counted.sum::<f64>()
    };
    (builder, energy)
}

#[test]
fn every_method_takes_groups_counters_and_fixed_variables() {
    for seed in 0..40 {
        let n = 8 + seed as usize % 4;
        let (builder, energy) = random_form(n, seed);
        let problem = builder.build().unwrap();
        let least = (0..1 << n).map(|x| energy(&bits(x, n))).fold(f64::INFINITY, f64::min);
        for method in METHODS {
            let options = AnnealOptions { method, seed, ..AnnealOptions::default() };
            let outcome = anneal(&problem, &options);
            let found = &outcome.solutions[0];
            assert!((found.energy - least).abs() < 1e-9, "{method:?} {seed}: {found:?} {least}");
            assert!((energy(&found.state) - found.energy).abs() < 1e-9);
        }
    }
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    let (builder, energy) = random_form(11, 3);
    let problem = builder.build().unwrap();
    let least = (0..1 << 11).map(|x| energy(&bits(x, 11))).fold(f64::INFINITY, f64::min);
    let wide = Problem::from_ising(&random_ising(60, 5)).unwrap();
    let deep = anneal(&wide, &AnnealOptions { restarts: 256, ..AnnealOptions::default() })
        .solutions[0]
        .energy;
    for method in METHODS {
        for (problem, target) in [(&problem, None), (&problem, Some(least)), (&wide, Some(deep))] {
            let options =
                AnnealOptions { method, target, keep: 3, sweeps: 30, ..AnnealOptions::default() };
            let run = |threads: usize| -> AnnealOutcome {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| anneal(problem, &options))
            };
            assert_eq!(run(1), run(3), "{method:?} {target:?}");
        }
    }
}

/// Legal sets and the weights of the best, from the exact engine.
fn compare(model: &Model, scores: &[f64], evidence: &[Evidence], seed: u64) -> bool {
    let options = infer::Options { method: infer::Method::Brute, ..infer::Options::default() };
    let brute = Engine::compile(model.clone(), &options).unwrap();
    let block = Block::new(model.len(), scores).with_evidence(evidence);
    let expected = brute.best(&block, 0, 3).unwrap();
    let found = best(model, scores, evidence, 3, &AnnealOptions::default(), seed).unwrap();
    assert_eq!(found.is_empty(), expected.is_empty(), "{seed} {model:?} {evidence:?}");
    let Some(first) = found.first() else { return false };
    let scale = scores.iter().fold(1.0, |most: f64, score| most.max(score.abs()));
    assert!(
        (first.log_weight - expected[0].log_weight).abs() < 1e-8 * scale,
        "{seed}: {first:?} {expected:?} {model:?} {scores:?} {evidence:?}"
    );
    for set in &found {
        assert_eq!(model.log_weight(scores, &set.on), set.log_weight);
        assert!(set.log_weight > f64::NEG_INFINITY);
        for (known, &on) in evidence.iter().zip(&set.on) {
            assert!(*known == Evidence::Unknown || (*known == Evidence::On) == on);
        }
    }
    assert!(found.windows(2).all(|pair| pair[0].log_weight >= pair[1].log_weight));
    true
}

#[test]
fn the_best_label_set_is_that_of_brute_force() {
    let mut answered = 0;
    for seed in 0..150 {
        let n = 3 + seed as usize % 8;
        let graph = RandomGraph::any(n, seed).draw();
        let Ok(model) = Model::new(&graph) else { continue };
        let mut random = Random::new(seed);
        let scale = [0.5, 3.0, 40.0][seed as usize % 3];
        let scores: Vec<f64> = (0..n).map(|_| random.normal() * scale).collect();
        let evidence: Vec<Evidence> = (0..n)
            .map(|_| match random.next() {
                p if seed.is_multiple_of(2) || p > 0.3 => Evidence::Unknown,
                p if p > 0.15 => Evidence::On,
                _ => Evidence::Off,
            })
            .collect();
        answered += u32::from(compare(&model, &scores, &evidence, seed));
    }
    assert!(answered > 60, "only {answered} had an answer");
}

#[test]
fn dense_semantics_and_tables_of_costs_are_taken() {
    let mut builder = GraphBuilder::new();
    for child in ["b", "c", "d"] {
        builder.hierarchy("a", child, Some(Strength::W(3.0)));
        builder.hierarchy(child, &format!("{child}1"), Some(Strength::W(3.0)));
    }
    builder.exclusion_rule(ExclusionRule::NotSubsumed, Some(Strength::W(2.0)));
    builder.semantics(Semantics::Dense);
    let dense = Model::new(&builder.build().unwrap()).unwrap();
    assert!(dense.dense().is_some());
    let hard = f64::INFINITY;
    let table = |a: u32, b: u32, costs| Relation::Pair {
        a: phex::graph::LabelId(a),
        b: phex::graph::LabelId(b),
        costs,
    };
    let relations = vec![
        table(0, 1, [[hard, 0.5], [-1.0, hard]]),
        table(1, 2, [[0.0, hard], [1.0, 0.0]]),
        table(2, 3, [[0.0, 1.0], [hard, 2.0]]),
    ];
    let names = ["p", "q", "r", "s"].map(str::to_owned).to_vec();
    let tables = Model::from_parts(names, vec![0.1; 4], 0.5, relations, Vec::new());
    for model in [dense, tables] {
        for seed in 0..10 {
            let mut random = Random::new(seed);
            let scores: Vec<f64> = (0..model.len()).map(|_| random.normal() * 3.0).collect();
            let mut evidence = vec![Evidence::Unknown; model.len()];
            evidence[seed as usize % model.len()] =
                [Evidence::On, Evidence::Unknown][seed as usize % 2];
            compare(&model, &scores, &evidence, seed);
        }
    }
}

#[test]
fn a_penalty_that_is_too_small_is_raised_and_nothing_illegal_comes_back() {
    let mut builder = GraphBuilder::new();
    for at in 0..6 {
        builder.hierarchy("top", &format!("leaf {at}"), None);
    }
    let model = Model::new(&builder.build().unwrap()).unwrap();
    // Six leaves want on, more together than their parent wants off.
    let scores: Vec<f64> = (0..7).map(|at| if at == 0 { -5.0 } else { 2.0 }).collect();
    let unknown = vec![Evidence::Unknown; 7];
    assert!(compare(&model, &scores, &unknown, 1));
    let small = AnnealOptions { penalty: Some(1e-3), ..AnnealOptions::default() };
    for set in best(&model, &scores, &unknown, 2, &small, 1).unwrap() {
        assert!(model.log_weight(&scores, &set.on).is_finite());
    }
    let mut contradiction = unknown;
    (contradiction[0], contradiction[1]) = (Evidence::Off, Evidence::On);
    assert!(best(&model, &scores, &contradiction, 1, &small, 1).unwrap().is_empty());
}

#[test]
fn schedules_and_settings_can_be_given() {
    // A frustrated ring with fields: the triangle of one sign, closed by one odd coupling.
    let n = 12;
    let mut ising = random_ising(n, 2);
    ising.j = (0..n).map(|at| (at.min((at + 1) % n), at.max((at + 1) % n), -1.0)).collect();
    ising.j[3].2 = 1.0;
    ising.h.fill(0.05);
    let least = (0..1 << n).map(|x| ising.energy(&bits(x, n))).fold(f64::INFINITY, f64::min);
    let problem = Problem::from_ising(&ising).unwrap();
    let quantum = Quantum { slices: 6, temperature: Some(0.05), field: Some((3.0, 0.01)) };
    let tabu = Tabu { tenure: Some(3), stall: Some(50), kicks: 2 };
    for shape in [CoolingShape::Linear, CoolingShape::Geometric] {
        let schedule = Cooling { shape, beta: Some((0.1, 8.0)) };
        for method in METHODS {
            let options =
                AnnealOptions { method, schedule, quantum, tabu, ..AnnealOptions::default() };
            let found = anneal(&problem, &options).solutions[0].energy;
            assert!((found - least).abs() < 1e-9, "{method:?} {found} {least}");
        }
    }
}

#[test]
fn it_stops_when_told_and_takes_degenerate_input() {
    let problem = Problem::from_ising(&random_ising(12, 1)).unwrap();
    let stop = Some(Arc::new(AtomicBool::new(true)));
    let outcome = anneal(&problem, &AnnealOptions { stop, ..AnnealOptions::default() });
    assert!(outcome.interrupted && outcome.solutions.is_empty());
    for method in METHODS {
        let zero =
            AnnealOptions { method, restarts: 0, sweeps: 0, keep: 0, ..AnnealOptions::default() };
        assert_eq!(anneal(&problem, &zero).solutions.len(), 1);
        let none = Builder::new(0).build().unwrap();
        assert_eq!(anneal(&none, &zero).solutions[0].energy, 0.0);
        let flat = Builder::new(3).build().unwrap();
        assert_eq!(anneal(&flat, &zero).solutions[0].energy, 0.0);
        let mut large = Builder::new(2);
        large.linear(0, -1e300).linear(1, 1.0).pair(0, 1, -1e-300);
        let solution = &anneal(&large.build().unwrap(), &zero).solutions[0];
        assert_eq!(solution.state, [true, false], "{method:?}");
    }
    let mut bad = Builder::new(2);
    bad.pair(0, 1, f64::NAN);
    assert!(matches!(bad.build(), Err(Error::Quadratic { .. })));
    let mut twice = Builder::new(3);
    twice.one_of(&[0, 1]).one_of(&[1, 2]);
    assert!(matches!(twice.build(), Err(Error::Quadratic { .. })));
    let mut none = Builder::new(2);
    none.one_of(&[0, 1]).fix(0, false).fix(1, false);
    assert!(matches!(none.build(), Err(Error::NoLegalState)));
}

/// Proven optima of Biq Mac: files of lines `i j w`, `Σ w_ii x_i + 2 Σ w_ij x_i x_j`, and a maximum cut.
#[test]
fn proven_optima_are_reached() {
    let Some(folder) = phex::testkit::data("ising") else { return };
    let files = [
        ("beasley/bqp50-1.sparse", -2098.0),
        ("beasley/bqp100-1.sparse", -7970.0),
        ("gka/gka9b.sparse", -137.0),
        ("ising/t3g5_5555", -10_933_215.0),
    ];
    for (file, optimum) in files {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().unwrap());
        let n = numbers.next().unwrap() as usize;
        let numbers: Vec<f64> = numbers.skip(1).collect();
        let mut builder = Builder::new(n);
        for line in numbers.chunks_exact(3) {
            let (a, b, w) = (line[0] as usize - 1, line[1] as usize - 1, line[2]);
            if !file.ends_with(".sparse") {
                builder.linear(a, -w).linear(b, -w).pair(a, b, 2.0 * w);
            } else {
                builder.pair(a, b, if a == b { w } else { 2.0 * w });
            }
        }
        let options =
            AnnealOptions { restarts: 4096, target: Some(optimum), ..AnnealOptions::default() };
        let outcome = anneal(&builder.build().unwrap(), &options);
        assert_eq!(outcome.solutions[0].energy, optimum, "{file}");
    }
}
