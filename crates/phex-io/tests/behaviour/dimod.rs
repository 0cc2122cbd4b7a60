//! Models and samples to and from the real `dimod` and `dwave-samplers`.
//!
//! `PHEX_PYTHON` names an interpreter that has them; `make unit` makes one.

use std::path::Path;
use std::process::Command;

use phex::model::{Ising, Model};
use phex::testkit::{HierarchyShape, RandomGraph, RandomStrengths};
use phex_io::{read_ising, read_samples, write_ising};
use serde_json::{Value, json};

/// A model of 40 labels, so that packed samples need two numbers.
fn model() -> (Model, Ising) {
    let shape = HierarchyShape::Dag;
    let graph = RandomGraph {
        shape,
        exclusions: 60,
        strengths: RandomStrengths::Soft,
        ..RandomGraph::new(40, 3)
    };
    let model = Model::new(&graph.draw()).unwrap();
    let scores: Vec<f64> = (0..40).map(|at| (f64::from(at) * 1.7).sin() * 3.0).collect();
    let mut ising = model.to_ising(&scores, None).unwrap();
    // Names that are hard to write; dimod looks for `vartype` in comments.
    ising.names[0] = String::from("a vartype=BINARY, \"quoted\"\n#");
    ising.names[1] = String::from("Straße; 0");
    // A spin that nothing touches.
    ising.names.push(String::from("alone"));
    ising.h.push(0.0);
    (model, ising)
}

/// Some states of `n` spins.
fn states(n: usize) -> Vec<Vec<bool>> {
    let bit = |row: usize, at: usize| (row * 2_654_435_761 + at * 40_503 * (row + 1)) >> 7 & 1 == 1;
    (0..50).map(|row| (0..n).map(|at| bit(row, at)).collect()).collect()
}

fn energies(ising: &Ising, states: &[Vec<bool>]) -> Vec<f64> {
    states.iter().map(|state| ising.energy(state)).collect()
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
            "{what}: {found} {expected}"
        );
    }
}

fn exchange(folder: &Path, ising: &Ising, states: &[Vec<bool>]) -> bool {
    let Some(python) = std::env::var_os("PHEX_PYTHON") else {
        phex::testkit::skip("PHEX_PYTHON names no interpreter with dimod; `make unit` makes one");
        return false;
    };
    write_ising(ising, &folder.join("phex.coo"), None).unwrap();
    write_ising(ising, &folder.join("phex.bqm.json"), None).unwrap();
    let bits: Vec<Vec<u8>> =
        states.iter().map(|state| state.iter().map(|&on| u8::from(on)).collect()).collect();
    let asked = json!({
        "names": ising.names,
        "states": bits,
        "energies": energies(ising, states),
        "offset": ising.offset,
    });
    std::fs::write(folder.join("states.json"), asked.to_string()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/exchange.py");
    let output = Command::new(python).arg(script).arg(folder).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    true
}

#[test]
fn energies_and_samples_are_the_same_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (_, ising) = model();
    let states = states(ising.names.len());
    if !exchange(folder.path(), &ising, &states) {
        return;
    }

    let expected = energies(&ising, &states);
    for name in ["spin.bqm.json", "binary.bqm.json"] {
        let theirs = read_ising(&file(name), None).unwrap();
        // dimod may write variables in another order.
        let place = |name: &String| ising.names.iter().position(|ours| ours == name).unwrap();
        let places: Vec<usize> = theirs.names.iter().map(place).collect();
        let states: Vec<Vec<bool>> =
            states.iter().map(|state| places.iter().map(|&at| state[at]).collect()).collect();
        assert_close(&energies(&theirs, &states), &expected, name);
    }
    let odd = read_ising(&file("odd.bqm.json"), None).unwrap();
    assert_eq!(odd.names, ["a", "[\"t\",1]"]);
    assert!((odd.energy(&[true, true]) - 2.75).abs() < 1e-12);
    for name in ["spin.coo", "binary.coo"] {
        // dimod drops variables without terms, and so has one fewer.
        let theirs = read_ising(&file(name), None).unwrap();
        let states: Vec<Vec<bool>> = states.iter().map(|state| state[..40].to_vec()).collect();
        let text = std::fs::read_to_string(file(&format!("{name}.energies"))).unwrap();
        let expected: Vec<f64> = serde_json::from_str(&text).unwrap();
        assert_close(&energies(&theirs, &states), &expected, name);
    }

    for (name, count) in
        [("packed.json", 20), ("plain.json", 20), ("spins.csv", 20), ("bits.csv", 20)]
    {
        let samples = read_samples(&file(name), &ising.names).unwrap();
        assert_eq!(samples.iter().map(|sample| sample.occurrences).sum::<u64>(), count, "{name}");
        for sample in samples {
            let energy = sample.energy.unwrap();
            assert_close(&[ising.energy(&sample.state)], &[energy], name);
        }
    }
    for sample in read_samples(&file("numbered.json"), &ising.names).unwrap() {
        let energy = sample.energy.unwrap() + ising.offset;
        assert_close(&[ising.energy(&sample.state)], &[energy], "numbered.json");
    }
    let packed: Value =
        serde_json::from_str(&std::fs::read_to_string(file("packed.json")).unwrap()).unwrap();
    assert_eq!(packed["sample_packed"], true);
}
