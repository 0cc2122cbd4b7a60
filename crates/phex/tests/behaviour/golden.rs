//! Every exact engine has the numbers of `golden/marginals.json`, which `python/tests/golden.py` computed
//! by enumerating states; `python/tests/test_golden.py` reads the same file.

use phex::graph::RelationGraph;
use phex::infer::{Block, Engine, Evidence, Method, Options, RowStatus, Want};
use phex::model::Model;
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn known(value: &Value) -> Vec<Evidence> {
    let entry = |number: f64| match number {
        1.0 => Evidence::On,
        0.0 => Evidence::Off,
        _ => Evidence::Unknown,
    };
    numbers(value).into_iter().map(entry).collect()
}

/// Holds one engine to one row.
fn check(engine: &Engine, row: &Value, context: &str) {
    let (scores, evidence) = (numbers(&row["logits"]), known(&row["known"]));
    let block = Block::new(scores.len(), &scores).with_evidence(&evidence);
    let found = engine.run(&block, Want::default()).unwrap();
    let best = engine.best(&block, 0, 1).unwrap();
    if row["marginals"].is_null() {
        assert_eq!(found.status[0], RowStatus::Impossible, "{context}");
        assert_eq!(found.log_partition[0], f64::NEG_INFINITY, "{context}");
        assert!(best.is_empty(), "{context}");
        return;
    }
    assert_eq!(found.status[0], RowStatus::Answered, "{context}");
    for (got, expected) in found.marginals.iter().zip(numbers(&row["marginals"])) {
        assert!((got - expected).abs() <= 1e-12, "{context}: {got} is not {expected}");
    }
    let (got, expected) = (found.log_partition[0], row["log_partition"].as_f64().unwrap());
    assert!((got - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{context}: {got}");
    let on: Vec<f64> = best[0].on.iter().map(|&on| f64::from(u8::from(on))).collect();
    assert_eq!(on, numbers(&row["best"]), "{context}");
}

#[test]
fn engines_have_the_golden_numbers() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../golden/marginals.json")).unwrap();
    let mut checked = 0;
    for case in &cases {
        let graph: RelationGraph = serde_json::from_value(case["graph"].clone()).unwrap();
        let model = Model::new(&graph).unwrap();
        for method in Method::exact() {
            let options = Options { method, ..Options::default() };
            let Ok(engine) = Engine::compile(model.clone(), &options) else { continue };
            for (at, row) in case["rows"].as_array().unwrap().iter().enumerate() {
                check(&engine, row, &format!("{} by {method}, row {at}", case["name"]));
                checked += 1;
            }
        }
    }
    // Junction trees and brute force take every graph.
    assert!(checked >= 2 * 4 * cases.len(), "{checked} rows");
}
