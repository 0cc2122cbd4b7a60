//! Ising models: round trips, meanings, hostile files.

use phex::model::{Ising, Model};
use phex::testkit::RandomGraph;
use phex_io::{
    Format, IsingFormat, ReadOptions, ising_to_string, parse_graph, parse_ising, parse_samples,
    parse_uai, read_ising, write_ising,
};
use proptest::prelude::*;

const WRITTEN: [IsingFormat; 3] = [IsingFormat::Coo, IsingFormat::Bqm, IsingFormat::Qubo];

fn ising() -> impl Strategy<Value = Ising> {
    let name = prop_oneof![Just(String::from("vartype=BINARY")), "[a-c\"\\\\\n#; 0-9é]{0,4}"];
    let value = prop_oneof![-8.0..8.0f64, Just(0.0), Just(1e-7), -1e9..1e9f64];
    (1..7usize).prop_flat_map(move |n| {
        let names = prop::collection::hash_set(name.clone(), n).prop_map(|set| set.into_iter());
        let names = prop_oneof![
            names.prop_map(Iterator::collect::<Vec<_>>),
            Just((0..n).map(|at| at.to_string()).collect())
        ];
        let fields = prop::collection::vec(value.clone(), n);
        let pairs = prop::collection::btree_map((0..n, 0..n), value.clone(), 0..10);
        (names, fields, pairs, value.clone()).prop_map(|(names, h, pairs, offset)| {
            let j = pairs.into_iter().filter(|((a, b), _)| a < b).map(|((a, b), j)| (a, b, j));
            Ising { names, h, j: j.collect(), offset }
        })
    })
}

fn states(n: usize) -> impl Iterator<Item = Vec<bool>> {
    (0..1usize << n).map(move |code| (0..n).map(|at| code >> at & 1 == 1).collect())
}

proptest! {
    #[test]
    fn every_form_keeps_energies_and_names(ising in ising()) {
        for format in WRITTEN {
            let text = ising_to_string(&ising, format).unwrap();
            let again = parse_ising(text.as_bytes(), "m", format).unwrap();
            prop_assert_eq!(&again.names, &ising.names, "{}\n{}", format, text);
            let couplings = ising.j.iter().map(|(_, _, j)| j);
            let size: f64 = 1.0
                + ising.offset.abs()
                + ising.h.iter().chain(couplings).map(|value| value.abs()).sum::<f64>();
            for state in states(ising.h.len()) {
                let (found, expected) = (again.energy(&state), ising.energy(&state));
                prop_assert!((found - expected).abs() <= 1e-12 * size, "{}\n{}", format, text);
            }
            if format != IsingFormat::Qubo {
                prop_assert_eq!(&again, &ising, "spins are kept bit by bit");
            }
        }
    }

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn arbitrary_text(text in "[\\[\\]{}\"=:,.#pqubocSPIN0-3 \n-]{0,120}") {
        read_as_everything(text.as_bytes());
    }

    #[test]
    fn mutated_files(place in any::<usize>(), other in any::<usize>(), byte in 0..128u8) {
        for text in GOOD {
            let mut bytes = text.as_bytes().to_vec();
            let place = place % bytes.len();
            bytes[place] = byte;
            read_as_everything(&bytes);
            bytes.drain(place.min(other % bytes.len())..place);
            read_as_everything(&bytes);
        }
    }
}

const GOOD: [&str; 7] = [
    "# vartype=SPIN\n# phex offset 2\n# phex name 1 \"b\"\n0 0 1.5\n0 1 -2e-3\n",
    "c phex offset 1\nc phex name 1 \"dog\"\np qubo 0 3 2 1\n0 0 -1\n2 2 1\n0 2 2.5\n",
    "3 2\n1 1 5\n1 3 -2\n",
    r#"{"type": "BinaryQuadraticModel", "version": {"bqm_schema": "3.0.0"}, "use_bytes": false,
"variable_labels": ["a", 1, ["t", 1]], "variable_type": "BINARY", "offset": 1.0,
"linear_biases": [2.0, 1.0, 4.5], "quadratic_biases": [2.0, -8], "quadratic_head": [0, 1],
"quadratic_tail": [1, 2]}"#,
    r#"{"type": "SampleSet", "version": {"sampleset_schema": "3.2.0"}, "num_variables": 2,
"num_rows": 2, "sample_data": {"type": "array", "data": [[1], [2]], "use_bytes": false},
"sample_packed": true, "vectors": {"energy": {"data": [7.5, 5], "use_bytes": false}},
"variable_labels": ["a", "b"], "variable_type": "SPIN", "info": {}}"#,
    ",a,b,energy,num_occurrences\n0,1,-1,2.5,3\n1,-1,-1,0,1\n",
    "MARKOV\n3\n2 3 2\n2\n2 0 1\n3 2 1 0\n6 1 2 3 4 0 6\n12 1 2 3 4 5 6 7 8 9 0 1 2\nc phex name 0 \"a\"\n",
];

fn read_as_everything(bytes: &[u8]) {
    for format in IsingFormat::ALL {
        let _ = parse_ising(bytes, "x", format);
    }
    let _ = parse_samples(bytes, "x", &["a", "b"].map(String::from));
    let _ = parse_uai(bytes, "x");
}

#[test]
fn good_files_are_good() {
    for (at, format) in
        [IsingFormat::Coo, IsingFormat::Qubo, IsingFormat::Sparse].iter().enumerate()
    {
        parse_ising(GOOD[at].as_bytes(), "x", *format).unwrap();
    }
    let bqm = parse_ising(GOOD[3].as_bytes(), "x", IsingFormat::Bqm).unwrap();
    assert_eq!(bqm.names, ["a", "1", "[\"t\",1]"]);
    assert!((bqm.energy(&[true, true, false]) - 6.0).abs() < 1e-12, "2 + 1 + 2 + 1");
    let names = ["a", "b"].map(String::from);
    let packed = parse_samples(GOOD[4].as_bytes(), "x", &names).unwrap();
    assert_eq!(packed[0].state, [true, false]);
    assert_eq!((packed[1].state.as_slice(), packed[1].energy), (&[false, true][..], Some(5.0)));
    let table = parse_samples(GOOD[5].as_bytes(), "x", &names).unwrap();
    assert_eq!((table[0].occurrences, table[0].energy), (3, Some(2.5)));
    parse_uai(GOOD[6].as_bytes(), "x").unwrap();
}

#[test]
fn the_forms_mean_what_they_say() {
    // Minimise 5 x1 − 4 x1 x3.
    let sparse = parse_ising(GOOD[2].as_bytes(), "m.sparse", IsingFormat::Sparse).unwrap();
    assert_eq!(sparse.names, ["1", "2", "3"]);
    assert_eq!(sparse.energy(&[true, false, true]), 1.0);
    assert_eq!(sparse.energy(&[false, false, false]), 0.0);
    // The edges 1–2 of weight 3 and 2–3 of weight −1; the energy is minus the cut.
    let cut = parse_ising(b"3 2\n1 2 3\n2 3 -1\n", "m.mc", IsingFormat::MaxCut).unwrap();
    assert_eq!(cut.energy(&[true, false, false]), -3.0);
    assert_eq!(cut.energy(&[true, false, true]), -2.0);
    let qubo = parse_ising(GOOD[1].as_bytes(), "m.qubo", IsingFormat::Qubo).unwrap();
    assert_eq!(qubo.names, ["0", "dog", "2"]);
    assert_eq!(qubo.energy(&[true, true, true]), 1.0 - 1.0 + 1.0 + 2.5);
    // Variables that do not occur do not exist, as in dimod.
    let coo =
        parse_ising(b"#vartype: BINARY\n7 7 2\n7 2 1\n7 2 1\n", "m", IsingFormat::Coo).unwrap();
    assert_eq!(coo.names, ["2", "7"]);
    assert_eq!(coo.energy(&[true, true]), 4.0);
}

#[test]
fn faults_say_where_and_what() {
    let fault =
        |text: &str, format| parse_ising(text.as_bytes(), "m", format).unwrap_err().to_string();
    let cases = [
        (IsingFormat::Coo, "0 0 1\n", "m:1: the vartype is missing"),
        (IsingFormat::Coo, "# vartype=SPIN\n\n0 1\n", "m:3: `0 1` should be two variables"),
        (IsingFormat::Coo, "# vartype=SPIN\n0 1 nan\n", "m:2: `nan` should be a finite number"),
        (IsingFormat::Coo, "# vartype=INTEGER\n", "m:1: the vartype `INTEGER`"),
        (
            IsingFormat::Coo,
            "# vartype=SPIN\n# phex name 0 \"a\"\n# phex name 1 \"a\"\n",
            "named `a`",
        ),
        (IsingFormat::Qubo, "0 0 1\n", "m:1: the line `p qubo"),
        (IsingFormat::Qubo, "p qubo 0 2 1 0\n2 2 1\n", "m:2: variable 2 is not below the 2"),
        (IsingFormat::Qubo, "p qubo 0 2 1 1\n1 1 1\n", "m:2: the `p` line promises"),
        (IsingFormat::Qubo, "p qubo 0 99999999999 0 0\n", "m:1: `p qubo 0` is followed by"),
        (
            IsingFormat::Sparse,
            "2 2\n1 2 3\n",
            "m:2: the header promises 2 terms and the file has 1",
        ),
        (IsingFormat::Sparse, "2 1\n0 2 3\n", "m:2: variables are numbered from 1 to 2"),
        (IsingFormat::MaxCut, "x\n", "m:1: `x` should be the number of variables"),
        (IsingFormat::Bqm, "{\n\"type\": 3}", "m:2: this is not a binary quadratic model"),
        (IsingFormat::Sparse, "2 2\n1 1 1e308\n1 1 1e308\n", "not finite, or is too large"),
        (IsingFormat::MaxCut, "2 1\n1 2 9223372036854775808\n", "not finite, or is too large"),
    ];
    for (format, text, expected) in cases {
        let found = fault(text, format);
        assert!(found.contains(expected), "{found}");
    }
    let bytes = GOOD[3].replace("\"use_bytes\": false", "\"use_bytes\": true");
    assert!(fault(&bytes, IsingFormat::Bqm).contains("use_bytes=False"));
    let old = GOOD[3].replace("3.0.0", "1.0.0");
    assert!(fault(&old, IsingFormat::Bqm).contains("the schema is `1.0.0`"));
}

#[test]
fn samples_are_of_this_model() {
    let names = ["dog", "cat"].map(String::from);
    let fault = |text: &str| parse_samples(text.as_bytes(), "s", &names).unwrap_err().to_string();
    assert!(fault("dog,cow\n1,0\n").contains("a variable `cow`, which is not a label"));
    assert!(fault("dog\n1\n").contains("no variable `cat`"));
    assert!(fault("dog,dog,cat\n1,0,1\n").contains("two variables are named `dog`"));
    assert!(fault("dog,cat\n1,0\n1,-1\n").contains("s:3: column `cat`"));
    assert!(fault("dog,cat\n1,2\n").contains("s:2"));
    assert!(fault("dog,cat\n1\n").contains("s:2: the row has 1 cells and the header has 2"));
    // A model that went out by numbers comes back by numbers.
    let samples = parse_samples(b"1,0\n0,1\n", "s", &names).unwrap();
    assert_eq!(samples[0].state, [true, false]);
}

#[test]
fn files_are_found_by_name_and_content() {
    let folder = tempfile::tempdir().unwrap();
    let ising = parse_ising(GOOD[0].as_bytes(), "x", IsingFormat::Coo).unwrap();
    for name in ["m.coo", "m.bqm.json", "m.qubo"] {
        let path = folder.path().join(name);
        write_ising(&ising, &path, None).unwrap();
        assert_eq!(read_ising(&path, None).unwrap().names, ising.names);
    }
    let path = folder.path().join("m.json");
    write_ising(&ising, &path, Some(IsingFormat::Bqm)).unwrap();
    assert_eq!(IsingFormat::of_file(&path), Some(IsingFormat::Bqm));
    assert_eq!(read_ising(&path, None).unwrap(), ising);
    std::fs::write(&path, "{\"labels\": [\"a\"]}").unwrap();
    assert_eq!(IsingFormat::of_file(&path), None);
    let error = write_ising(&ising, &folder.path().join("m.sparse"), None).unwrap_err();
    assert!(error.to_string().contains("write one of coo, bqm, qubo"), "{error}");
    let error = read_ising(&folder.path().join("m.xyz"), None).unwrap_err();
    assert!(error.to_string().contains("give one of coo"), "{error}");
}

#[test]
fn label_graphs_become_ising_models() {
    let dense = "semantics = \"dense\"\nexclude = { rule = \"siblings\", strength = { w = 1.5 } }\n\
        [defaults]\nstrength = { w = 2 }\n[[hierarchy]]\nparent = \"a\"\nchildren = [\"b\", \"c\"]\n\
        [[hierarchy]]\nparent = \"b\"\nchildren = [\"d\", \"e\"]\n";
    let dense = parse_graph(dense.as_bytes(), "g", Format::Toml, &ReadOptions::default()).unwrap();
    let dense = Model::new(&dense.build().unwrap()).unwrap();
    assert!(dense.dense().is_some());
    let drawn = (0..40).filter_map(|seed| Model::new(&RandomGraph::any(7, seed).draw()).ok());
    for model in drawn.chain([dense]) {
        let n = model.len();
        let scores: Vec<f64> = (0..n).map(|at| 5.0 * (at as f64 * 2.3).sin()).collect();
        let hard = model.hard_cost(&scores);
        let ising = model.to_ising(&scores, Some(hard)).unwrap();
        let weight = |state: &Vec<bool>| model.log_weight(&scores, state);
        for state in states(n).filter(|state| weight(state).is_finite()) {
            assert!((ising.energy(&state) + weight(&state)).abs() < 1e-9);
        }
        let lowest = states(n).min_by(|a, b| ising.energy(a).total_cmp(&ising.energy(b))).unwrap();
        assert!(weight(&lowest).is_finite(), "the best state is legal");
    }
}

/// Descends from many starts by single flips; the best energy found.
fn descend(ising: &Ising, starts: usize) -> f64 {
    let n = ising.h.len();
    let mut near = vec![Vec::new(); n];
    for &(a, b, j) in &ising.j {
        near[a].push((b, j));
        near[b].push((a, j));
    }
    let mut best = f64::INFINITY;
    let mut random = 88_172_645_463_325_252u64;
    for _ in 0..starts {
        let mut state: Vec<bool> = (0..n)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random & 1 == 1
            })
            .collect();
        loop {
            let spin = |at: usize| if state[at] { 1.0 } else { -1.0 };
            let gain = |at: usize| {
                let field: f64 = near[at].iter().map(|&(b, j)| j * spin(b)).sum();
                2.0 * spin(at) * (ising.h[at] + field)
            };
            let flip = (0..n).max_by(|&a, &b| gain(a).total_cmp(&gain(b))).unwrap();
            if gain(flip) <= 1e-9 {
                break;
            }
            state[flip] = !state[flip];
        }
        best = best.min(ising.energy(&state));
    }
    best
}

#[test]
fn real_files_have_their_known_optima() {
    let Some(folder) = phex::testkit::data("ising") else { return };
    let cases = [
        ("beasley/bqp50-1.sparse", None, -2098.0),
        ("beasley/bqp50-2.sparse", None, -3702.0),
        ("gka/gka1a.sparse", None, -3414.0),
        ("ising/t2g10_5555", Some(IsingFormat::MaxCut), -6_049_461.0),
    ];
    for (name, format, optimum) in cases {
        let ising = read_ising(&folder.join(name), format).unwrap();
        let best = descend(&ising, 3000);
        assert!(best >= optimum - 1e-6, "{name}: {best} is below the optimum {optimum}");
        // Plain descent does not solve the spin glass; it comes near.
        let near = if format.is_some() { 0.97 * optimum } else { optimum + 1e-6 };
        assert!(best <= near, "{name}: {best} is far above the optimum {optimum}");
    }
    for group in ["beasley", "gka"] {
        for file in std::fs::read_dir(folder.join(group)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "sparse") {
                read_ising(&path, None).unwrap();
            }
        }
    }
}
