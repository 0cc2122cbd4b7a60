use phex::infer::{Block, Engine, Method, Options, Want};
use phex::model::Model;

use super::*;

/// Three classes, two attributes; one predicate is missing.
fn predicates() -> Predicates {
    let names = |all: &[&str]| all.iter().map(|&name| String::from(name)).collect::<Vec<_>>();
    let graded = vec![Some(0.9), Some(0.1), Some(0.3), Some(0.7), None, Some(0.4)];
    Predicates::from_graded(names(&["dog", "cat", "cow"]), names(&["tail", "horns"]), graded)
}

const ALL: [PredicateStrengths; 5] = [
    PredicateStrengths::Hard,
    PredicateStrengths::Constant { u: 0.25 },
    PredicateStrengths::Variable { map: CostMap::Linear, u: 0.5 },
    PredicateStrengths::Variable { map: CostMap::Centred, u: 0.5 },
    PredicateStrengths::Variable { map: CostMap::Rank, u: 0.1 },
];

#[test]
fn a_violation_costs_what_the_matrix_says() {
    let predicates = predicates();
    // The mean is 0.48: a dog has a tail, a cat has horns.
    let hard = f64::INFINITY;
    assert_eq!(costs(&predicates, ALL[0])[..2], [[hard, 0.0], [0.0, hard]]);
    assert_eq!(costs(&predicates, ALL[1])[2..], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]);
    let close = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).abs() + (a[1] - b[1]).abs() < 1e-12;
    let linear = costs(&predicates, ALL[2]);
    assert!(close(linear[0], [1.8, 0.2]) && close(linear[1], [0.2, 1.8]));
    assert_eq!(linear[4], [0.0, 0.0]);
    let centred = costs(&predicates, ALL[3]);
    assert!(close(centred[2], [2.0 * 0.3 / 0.96, 2.0 - 2.0 * 0.3 / 0.96]));
    assert!(close(centred[3], [2.0 * (0.5 + 0.22 / 1.04), 2.0 * (0.5 - 0.22 / 1.04)]));
    let rank = costs(&predicates, ALL[4]);
    assert!(close(rank[0], [0.4 * 0.9, 0.4 * 0.1]) && close(rank[1], [0.4 * 0.1, 0.4 * 0.9]));
    // The same from the model: a state's weight is what its relations cost.
    for strengths in ALL {
        let costs = costs(&predicates, strengths);
        let model = Model::new(&graph(&predicates, &costs, &[2, 0]).unwrap()).unwrap();
        for (place, class) in [(0, 2), (1, 0)] {
            for attributes in 0..4usize {
                let mut state = [false, false, attributes & 1 > 0, attributes & 2 > 0];
                state[place] = true;
                let cell = |a: usize| costs[class * 2 + a][usize::from(state[2 + a])];
                let expected = -(cell(0) + cell(1));
                let found = model.log_weight(&[0.0; 4], &state);
                assert!(found == expected || (found - expected).abs() < 1e-12, "{strengths:?}");
            }
        }
    }
}

/// The posterior of unseen classes given that no seen one is on, by enumeration of all label sets, is that
/// of `star` on the graph of the unseen ones.
#[test]
fn unseen_classes_have_the_posterior_of_brute_force() {
    let predicates = predicates();
    let scores = [0.7, -0.4, 0.2, 1.3, -0.8];
    for strengths in ALL {
        let costs = costs(&predicates, strengths);
        let whole = graph(&predicates, &costs, &[0, 1, 2]).unwrap();
        let model = Model::new(&whole).unwrap();
        // Class 0 is seen; 1 and 2 are asked for.
        let mut weights = [0.0; 3];
        for bits in 0..32usize {
            let state: Vec<bool> = (0..5).map(|at| bits >> at & 1 > 0).collect();
            let on: Vec<usize> = (0..3).filter(|&class| state[class]).collect();
            if let [class] = on[..] {
                weights[class] += model.log_weight(&scores, &state).exp();
            }
        }
        let part = graph(&predicates, &costs, &[1, 2]).unwrap();
        let options = Options { method: Method::Star, ..Options::default() };
        let engine = Engine::compile(Model::new(&part).unwrap(), &options).unwrap();
        let found = engine.run(&Block::new(4, &scores[1..]), Want::default()).unwrap();
        let expected = weights[1] / (weights[1] + weights[2]);
        assert!((found.row(0)[0] - expected).abs() < 1e-12, "{strengths:?}");
        let whole = Engine::compile(model, &options).unwrap();
        let found = whole.run(&Block::new(5, &scores), Want::default()).unwrap();
        let total: f64 = weights.iter().sum();
        for (found, weight) in found.row(0).iter().zip(weights) {
            assert!((found - weight / total).abs() < 1e-12, "{strengths:?}");
        }
    }
}
