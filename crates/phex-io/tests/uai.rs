//! UAI problems: marginals and partition functions against the reference answers.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use phex::infer::{Block, Budget, Engine, Options, Want};
use phex_io::{parse_uai, read_uai, read_uai_evidence};

fn data() -> Option<PathBuf> {
    let root = match std::env::var_os("PHEX_DATA") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = root.join("uai");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: no data at {} (set PHEX_DATA)", path.display());
    None
}

/// The numbers of a reference file after its first word.
fn numbers(path: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect()
}

#[test]
fn binary_pairwise_problems_have_their_reference_answers() {
    let Some(folder) = data() else { return };
    let mut solved = Vec::new();
    for name in [
        "Grids_11",
        "Grids_12",
        "Grids_13",
        "Grids_14",
        "Segmentation_11",
        "Segmentation_12",
        "Segmentation_13",
        "DBN_11",
        "DBN_12",
        "DBN_13",
    ] {
        let file = |ending: &str| folder.join(format!("{name}.uai{ending}"));
        let model = read_uai(&file("")).unwrap();
        let n = model.len();
        let evidence = read_uai_evidence(&file(".evid"), n).unwrap();
        // What an unoptimised test can do in seconds.
        let budget = Budget { operations: 3e8, ..Budget::default() };
        let engine = match Engine::compile(model, &Options { budget, ..Options::default() }) {
            Ok(engine) => engine,
            Err(error) => {
                eprintln!("{name}: {error}");
                continue;
            }
        };
        let scores = vec![0.0; n];
        let block = Block::new(n, &scores).with_evidence(&evidence);
        let posterior = engine.run(&block, Want::default()).unwrap();
        let log10 = posterior.log_partition[0] / std::f64::consts::LN_10;
        let reference = std::fs::read_to_string(file(".PR")).unwrap();
        let printed = reference.split_whitespace().nth(1).unwrap();
        let digits = printed.split('.').nth(1).map_or(0, str::len);
        assert!(
            (log10 - printed.parse::<f64>().unwrap()).abs() <= 0.51 * 10f64.powi(-(digits as i32)),
            "{name}: log10 Z is {log10}, the reference is {printed}"
        );
        let reference = numbers(&file(".MAR"));
        for label in 0..n {
            // "2 p(0) p(1)" for each variable.
            let expected = reference[1 + 3 * label + 2];
            let got = posterior.marginals[label];
            assert!((got - expected).abs() < 1e-4, "{name}: x{label} is {got}, not {expected}");
        }
        solved.push(name);
    }
    eprintln!("solved: {solved:?}");
    assert!(solved.len() >= 4, "the grids at least: {solved:?}");
}

#[test]
fn faults_have_a_line() {
    let fault = |text: &str| parse_uai(text.as_bytes(), "m.uai").unwrap_err().to_string();
    assert!(fault("").contains("the file ends"), "{}", fault(""));
    assert!(fault("MARKOV\n1\n3\n").contains("m.uai:3"));
    assert!(fault("MARKOV\n3\n2 2 2\n1\n3 0 1 2\n").contains("only pairs"));
    assert!(fault("MARKOV\n1\n2\n1\n1 0\n2 0.5 -1\n").contains("m.uai:6"));
    assert!(fault("MARKOV\n99999999999\n").contains("m.uai:2"));
}

#[test]
fn a_forbidden_state_is_forbidden() {
    let model =
        parse_uai(b"MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n2\n0 1\n4\n1 2\n3 4\n", "m.uai").unwrap();
    let engine = Engine::compile(model, &Options::default()).unwrap();
    let posterior = engine.run(&Block::new(2, &[0.0f64, 0.0]), Want::default()).unwrap();
    assert_eq!(posterior.marginals[0], 1.0);
    assert!((posterior.marginals[1] - 4.0 / 7.0).abs() < 1e-12);
    assert!((posterior.log_partition[0] - 7f64.ln()).abs() < 1e-12);
}
