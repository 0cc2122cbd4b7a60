//! UAI problems: marginals and partition functions against the reference answers.

use phex::graph::LabelId;
use phex::infer::{Block, Budget, Engine, Options, Want};
use phex::model::{Model, OneOfGroup, Relation};
use phex::testkit::RandomGraph;
use phex_io::{
    UaiState, parse_uai, parse_uai_model, read_uai_marginals, read_uai_model, read_uai_partition,
    uai_to_string,
};

/// The logarithm of the partition function and the marginals.
fn answer(model: Model) -> (f64, Vec<f64>) {
    let scores = vec![0.0; model.len()];
    let engine = Engine::compile(model, &Options::default()).unwrap();
    let posterior = engine.run(&Block::new(scores.len(), &scores), Want::default()).unwrap();
    (posterior.log_partition[0], posterior.marginals)
}

#[test]
fn every_problem_loads_and_small_ones_have_their_reference_answers() {
    let Some(folder) = phex::testkit::data("uai") else { return };
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "uai"));
    files.sort();
    assert!(files.len() >= 19, "{files:?}");
    let mut solved = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let beside = |ending: &str| folder.join(format!("{name}.uai{ending}"));
        let read = read_uai_model(&path).unwrap();
        let evidence = read.read_evidence(&beside(".evid")).unwrap();
        let log10 = read_uai_partition(&beside(".PR")).unwrap();
        let expected = read_uai_marginals(&beside(".MAR")).unwrap();
        assert_eq!(expected.len(), read.variables.len(), "{name}");
        // What an unoptimised test can do in seconds, planning included; the rest only loads.
        if !["Grids", "Segmentation", "Promedus"].iter().any(|easy| name.starts_with(easy)) {
            continue;
        }
        let budget = Budget { operations: 3e8, ..Budget::default() };
        let options = Options { budget, ..Options::default() };
        let engine = match Engine::compile(read.model.clone(), &options) {
            Ok(engine) => engine,
            Err(error) => {
                eprintln!("{name}: {error}");
                continue;
            }
        };
        let n = read.model.len();
        let scores = vec![0.0; n];
        let block = Block::new(n, &scores).with_evidence(&evidence);
        let posterior = engine.run(&block, Want::default()).unwrap();
        let found = posterior.log_partition[0] / std::f64::consts::LN_10;
        // Six digits are printed.
        let printed = 0.51 * 10f64.powf(log10.abs().log10().floor() - 5.0);
        assert!((found - log10).abs() <= printed, "{name}: log10 Z is {found}, not {log10}");
        let marginals = read.marginals(&posterior.marginals);
        for (variable, (found, expected)) in marginals.iter().zip(&expected).enumerate() {
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 1e-4,
                    "{name}: x{variable}: {found}, {expected}"
                );
            }
        }
        solved.push(name);
    }
    eprintln!("solved: {solved:?}");
    assert_eq!(solved.len(), 11, "grids, segmentations and Promedus: {solved:?}");
}

#[test]
fn faults_have_a_line() {
    let fault = |text: &str| parse_uai(text.as_bytes(), "m.uai").unwrap_err().to_string();
    assert!(fault("").contains("the file ends"), "{}", fault(""));
    assert!(fault("MARKOV\n1\n0\n").contains("m.uai:3"));
    assert!(fault("MARKOV\n1\n9999999\n").contains("m.uai:3"));
    assert!(fault("MARKOV\n1\n2\n1\n1 0\n2 0.5 -1\n").contains("m.uai:6"));
    assert!(fault("MARKOV\n99999999999\n").contains("m.uai:2"));
    assert!(fault("MARKOV\n1\n3\n1\n1 0\n3 0 0 0\n").contains("no state is possible"));
    let wide = "MARKOV\n3\n20 20 20\n1\n3 0 1 2\n8000 1\n";
    assert!(fault(wide).contains("m.uai:6") && fault(wide).contains("4096"), "{}", fault(wide));
    let twice = "MARKOV\n2\n3 3\n2\n1 0\n1 0\n3 1 0 0\n3 0 1 1\n";
    assert!(fault(twice).contains("m.uai:8: no state of variable 0"), "{}", fault(twice));
}

#[test]
fn a_forbidden_state_is_forbidden() {
    let model =
        parse_uai(b"MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n2\n0 1\n4\n1 2\n3 4\n", "m.uai").unwrap();
    let (log_partition, marginals) = answer(model);
    assert_eq!(marginals[0], 1.0);
    assert!((marginals[1] - 4.0 / 7.0).abs() < 1e-12);
    assert!((log_partition - 7f64.ln()).abs() < 1e-12);
    for (table, on) in [("0 3", 1.0), ("3 0", 0.0)] {
        let text = format!("MARKOV\n1\n2\n1\n1 0\n2 {table}\n");
        let (log_partition, marginals) = answer(parse_uai(text.as_bytes(), "m.uai").unwrap());
        assert_eq!(marginals[0], on);
        assert!((log_partition - 3f64.ln()).abs() < 1e-12);
    }
}

/// A number in [0, 1) from a place: the tests need variety, not randomness.
fn noise(seed: usize) -> f64 {
    (seed as f64 * 12.9898).sin().abs() * 43_758.545_3 % 1.0
}

#[test]
fn any_states_and_any_scope_agree_with_enumeration() {
    let mut compared = 0;
    for seed in 0..40 {
        // Some state of some table is 0, but not that of all variables in their last states.
        let states: Vec<usize> =
            (0..5).map(|at| 1 + (noise(seed * 7 + at) * 4.0) as usize).collect();
        let scopes: [&[usize]; 9] =
            [&[0], &[1], &[2], &[3, 1], &[0, 4], &[2, 0, 1], &[4, 3, 2], &[], &[3]];
        let mut tables: Vec<Vec<f64>> = Vec::new();
        for (factor, scope) in scopes.iter().enumerate() {
            let size: usize = scope.iter().map(|&variable| states[variable]).product();
            let entry = |at: usize| {
                let value = noise(seed * 1000 + factor * 100 + at);
                if value < 0.2 && at + 1 < size { 0.0 } else { 3.0 * value + 0.01 }
            };
            tables.push((0..size).map(entry).collect());
        }
        let mut text =
            format!("MARKOV 5 {states:?} {}", scopes.len()).replace(['[', ']', ','], " ");
        for scope in scopes {
            text += &format!("\n{} {scope:?}", scope.len()).replace(['[', ']', ','], " ");
        }
        for table in &tables {
            text += &format!("\n{} {table:?}", table.len()).replace(['[', ']', ','], " ");
        }
        let mut total = 0.0;
        let mut expected: Vec<Vec<f64>> = states.iter().map(|&k| vec![0.0; k]).collect();
        for code in 0..states.iter().product::<usize>() {
            let mut rest = code;
            let mut state = Vec::new();
            for &k in &states {
                state.push(rest % k);
                rest /= k;
            }
            let entry = |(scope, table): (&&[usize], &Vec<f64>)| {
                table[scope.iter().fold(0, |at, &v| at * states[v] + state[v])]
            };
            let weight: f64 = scopes.iter().zip(&tables).map(entry).product();
            total += weight;
            state.iter().enumerate().for_each(|(v, &s)| expected[v][s] += weight);
        }
        let read = parse_uai_model(text.as_bytes(), "m.uai").unwrap();
        for (variable, &k) in states.iter().enumerate() {
            assert_eq!(read.variables[variable].len(), k);
            let always = read.variables[variable][0] == UaiState::Always;
            assert_eq!(always, k == 1);
        }
        if read.model.is_empty() {
            continue;
        }
        compared += 1;
        let (log_partition, labels) = answer(read.model.clone());
        assert!((log_partition - total.ln()).abs() < 1e-9, "{seed}: {log_partition}\n{text}");
        for (found, expected) in read.marginals(&labels).iter().zip(&expected) {
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected / total).abs() < 1e-9, "{seed}: {found}\n{text}");
            }
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn written_models_are_the_same_distribution() {
    let mut compared = 0;
    for seed in 0..60 {
        let graph = RandomGraph::any(7, seed).draw();
        let Ok(model) = Model::new(&graph) else { continue };
        let scores: Vec<f64> =
            (0..7).map(|at| 4.0 * noise(seed as usize + 31 * at) - 2.0).collect();
        let engine = Engine::compile(model.clone(), &Options::default()).unwrap();
        let expected = engine.run(&Block::new(7, &scores), Want::default()).unwrap();
        let text = uai_to_string(&model, &scores).unwrap();
        let read = parse_uai_model(text.as_bytes(), "m.uai").unwrap();
        assert_eq!(&read.model.names()[..7], model.names(), "names are kept");
        let (log_partition, marginals) = answer(read.model);
        assert!((log_partition - expected.log_partition[0]).abs() < 1e-9, "{seed}\n{text}");
        for (found, expected) in marginals.iter().zip(&expected.marginals) {
            assert!((found - expected).abs() < 1e-9, "{seed}\n{text}");
        }
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn constants_pairs_and_groups_are_written() {
    let names: Vec<String> = ["a", "b b", "c\"\n", "d"].map(String::from).to_vec();
    let label = |at: usize| LabelId::from(at);
    let pair = Relation::Pair { a: label(0), b: label(1), costs: [[0.5, -1.0], [2.0, 0.0]] };
    let group = Relation::Group { labels: vec![label(0), label(1), label(3)], cost: 0.7 };
    let all = OneOfGroup { name: String::from("g"), labels: (0..4).map(label).collect() };
    let bias = vec![0.1, 0.2, 0.3, 0.4];
    let model = Model::from_parts(names.clone(), bias, 900.0, vec![pair, group], vec![all]);
    let text = uai_to_string(&model, &[1.0, 2.0, -3.0, 0.0]).unwrap();
    let read = parse_uai_model(text.as_bytes(), "m.uai").unwrap();
    assert_eq!(&read.model.names()[..4], names);
    let (found, expected) = (answer(read.model), {
        let engine = Engine::compile(model.clone(), &Options::default()).unwrap();
        engine.run(&Block::new(4, &[1.0, 2.0, -3.0, 0.0]), Want::default()).unwrap()
    });
    assert!((found.0 - expected.log_partition[0]).abs() < 1e-9);
    let far = uai_to_string(&model, &[-2000.0, 0.0, 0.0, 0.0]).unwrap_err().to_string();
    assert!(far.contains("the score of `a`") && far.contains("700"), "{far}");
}
