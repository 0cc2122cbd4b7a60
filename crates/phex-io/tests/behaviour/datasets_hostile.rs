//! Data sets and bundles from strangers: errors, never panics, and memory within limits.
use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{names, npy};
use phex::graph::{GraphBuilder, RelationGraph};
use phex_io::{
    Dataset, DatasetOptions, Error, LabelForm, Limits, TargetOptions, TargetSource, Tensor,
    graph_of_arff, read_dataset, read_tensors, write_tensors,
};
use proptest::prelude::*;

fn graph() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "a/b", None).label("c");
    builder.build().unwrap()
}

const CSV: &[u8] = b"x,c,is\n1.5,red,a\n?,\"blue, dark\",a/b\n,NA,\n";
const ARFF: &[u8] = b"% x\n@relation 'r s'\n@attribute x real\n@attribute c {z,'y y'}\n\
    @attribute is hierarchical a,a/b,c\n@data\n1,z,a@c\n?,'y y',?\n{0 2, 2 a/b}\n";
const DAG: &[u8] =
    b"@attribute x real\n@attribute is hierarchical root/a,root/c,a/b\n@data\n1,a@c\n";

/// Files of every form, with where their labels are.
fn samples() -> Vec<(&'static str, Vec<u8>, TargetOptions)> {
    let column = TargetOptions::new(TargetSource::Column("is".into()));
    let list = TargetOptions { form: LabelForm::List, ..column.clone() };
    let hierarchical = TargetOptions::new(TargetSource::Hierarchical);
    let ids = TargetOptions {
        form: LabelForm::Id,
        ..TargetOptions::new(TargetSource::Column("f1".into()))
    };
    let array = npy("<f2", "(3, 2)", &[0, 60, 0, 60, 0, 60, 0, 0, 0, 60, 0, 0]);
    vec![
        ("x.csv", CSV.to_vec(), column),
        ("x.csv", CSV.to_vec(), list),
        ("x.csv", b"a,x,c\n1,2,0\n?,3,on\n".to_vec(), TargetOptions::new(TargetSource::Matrix)),
        ("x.arff", ARFF.to_vec(), hierarchical.clone()),
        ("x.arff", DAG.to_vec(), hierarchical),
        ("x.npy", array, ids),
    ]
}

fn read(
    folder: &Path,
    name: &str,
    bytes: &[u8],
    targets: &TargetOptions,
) -> Result<Dataset, Error> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    let limits = Limits { values: 1 << 16, ..Limits::default() };
    let targets = Some(targets.clone());
    let options = DatasetOptions { targets, limits, ..DatasetOptions::default() };
    if name.ends_with("arff") {
        // Whatever graph the bytes declare.
        if let Ok(Ok(graph)) = graph_of_arff(&path).map(|builder| builder.build()) {
            return read_dataset(&[path], &options, Some(&graph));
        }
    }
    read_dataset(&[path], &options, Some(&graph()))
}

#[test]
fn samples_are_good() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, targets) in samples() {
        let data = read(folder.path(), name, &bytes, &targets).unwrap();
        assert!(data.rows() > 0 && !data.targets.unwrap().entries().is_empty(), "{name}");
    }
}

#[test]
fn claims_are_held_to_limits() {
    let folder = tempfile::tempdir().unwrap();
    // Few bytes that stand for many values: sparse rows of many attributes.
    let mut text = String::new();
    (0..2000).for_each(|i| text += &format!("@attribute a{i} real\n"));
    text += "@data\n";
    text += &"{}\n".repeat(2000);
    let path = folder.path().join("x.arff");
    std::fs::write(&path, &text).unwrap();
    let options = DatasetOptions {
        limits: Limits { values: 1 << 20, ..Limits::default() },
        ..DatasetOptions::default()
    };
    let error = read_dataset(std::slice::from_ref(&path), &options, None).unwrap_err().to_string();
    assert!(error.contains("more than the 1048576 values allowed"), "{error}");
    // A path of very many levels.
    std::fs::write(&path, format!("@attribute c hierarchical a{}\n@data\n", "/a".repeat(100_000)))
        .unwrap();
    assert!(graph_of_arff(&path).unwrap_err().to_string().contains("more than 100 levels"));
    // A cycle of edges ends, and the graph reports it.
    std::fs::write(
        &path,
        "@attribute c hierarchical root/a,a/b,b/a\n@attribute x real\n@data\nb,1\n",
    )
    .unwrap();
    assert!(graph_of_arff(&path).unwrap().build().is_err());
    let mut flat = GraphBuilder::new();
    flat.label("a").label("b");
    let targets = Some(TargetOptions::new(TargetSource::Hierarchical));
    let options = DatasetOptions { targets, ..DatasetOptions::default() };
    let data = read_dataset(&[path], &options, Some(&flat.build().unwrap())).unwrap();
    assert_eq!(data.targets.unwrap().row(0).listed.len(), 2);
}

#[test]
fn targets_are_held_to_limits() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, text) = (folder.path().join("x.csv"), folder.path().join("t.txt"));
    std::fs::write(&csv, format!("x,is\n{}", "1,a\n".repeat(100))).unwrap();
    std::fs::write(&text, "a\n".repeat(100)).unwrap();
    let files = TargetSource::Files { paths: vec![text], column: None };
    for source in [TargetSource::Column("is".into()), files] {
        let targets = Some(TargetOptions::new(source));
        let features = Some(names(&["x"]));
        let limits = Limits { values: 100, ..Limits::default() };
        let options = DatasetOptions { targets, features, limits, ..Default::default() };
        assert!(read_dataset(std::slice::from_ref(&csv), &options, Some(&graph())).is_ok());
        std::fs::write(&csv, format!("x,is\n{}", "1,a\n".repeat(100))).unwrap();
        let options = DatasetOptions { limits: Limits { values: 99, ..limits }, ..options };
        let error = read_dataset(std::slice::from_ref(&csv), &options, Some(&graph())).unwrap_err();
        assert!(matches!(error, Error::TooMuchData { .. }), "{error}");
    }
}

fn safetensors(folder: &Path) -> Vec<u8> {
    let path = folder.join("good.safetensors");
    let tensors = BTreeMap::from([
        ("weights".to_owned(), Tensor::f32(&[2, 3], vec![1., 2., 3., 4., 5., 6.])),
        ("bias".to_owned(), Tensor::f64(&[3], vec![0.5; 3])),
    ]);
    let metadata = BTreeMap::from([("step".to_owned(), "7".to_owned())]);
    write_tensors(&path, &tensors, &metadata).unwrap();
    std::fs::read(path).unwrap()
}

fn read_safetensors(folder: &Path, bytes: &[u8]) -> Result<usize, Error> {
    let path = folder.join("x.safetensors");
    std::fs::write(&path, bytes).unwrap();
    read_tensors(&path).map(|(tensors, _)| tensors.len())
}

#[test]
fn damaged_tensors_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = safetensors(folder.path());
    assert_eq!(read_safetensors(folder.path(), &good).unwrap(), 2);
    for length in 0..good.len() {
        assert!(read_safetensors(folder.path(), &good[..length]).is_err(), "cut to {length}");
    }
    let file = |header: &str, data: &[u8]| {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
    };
    let huge = (1u64 << 40).to_le_bytes().to_vec();
    let end = u64::MAX;
    let cases = [
        (huge, "claims 1099511627776 bytes, and 1 MiB"),
        (file("{}", b"x"), "damaged"),
        (file("[1]", b""), "the header"),
        (file("", b""), "the header"),
        (file(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, &[0; 4]), "not inside"),
        (file(r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, &[0; 8]), "damaged"),
        (
            file(
                &format!(r#"{{"a":{{"dtype":"U8","shape":[{end}],"data_offsets":[0,{end}]}}}}"#),
                b"",
            ),
            "not inside",
        ),
        (
            file(r#"{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}"#, &[0; 2]),
            "is of type BF16, which is not read",
        ),
        (file(&format!("{{\"{}\":1}}", "a".repeat(1 << 20)), b""), "1 MiB is allowed"),
    ];
    for (bytes, expected) in cases {
        let error = read_safetensors(folder.path(), &bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Numbers, text, lists of text and a column of another type.
#[cfg(feature = "parquet")]
fn parquet() -> Vec<u8> {
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, Date32Array, Float32Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut texts = Vec::new();
    for row in 0..40 {
        lists.append_value((0..row % 4).map(|item| Some(["a", "c", "!a/b"][item % 3])));
        texts.push(["red", "green", "blue"][row % 3]);
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new(Float32Array::from_iter_values((0..40).map(|x| x as f32)))),
        ("color", Arc::new(StringArray::from(texts))),
        ("is", Arc::new(lists.finish())),
        ("day", Arc::new(Date32Array::from_iter_values(0..40))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

#[cfg(feature = "parquet")]
#[test]
fn damaged_parquet_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let targets = Some(TargetOptions::new(TargetSource::Column("is".into())));
    let drop = names(&["day"]);
    let options = DatasetOptions {
        targets,
        drop,
        limits: Limits { values: 1 << 16, ..Limits::default() },
        ..Default::default()
    };
    let (good, graph) = (parquet(), graph());
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        read_dataset(std::slice::from_ref(&path), &options, Some(&graph))
    };
    let data = read(&good).unwrap();
    assert_eq!((data.rows(), data.features.columns), (40, 4));
    for at in 0..good.len() {
        for change in [0x01, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= change;
            let _ = read(&bytes);
        }
    }
    for length in (0..good.len()).step_by(7) {
        assert!(read(&good[..length]).is_err(), "cut to {length}");
    }
}

fn mutate(bytes: &mut Vec<u8>, changes: &[(prop::sample::Index, u8, u8)]) {
    for (at, byte, kind) in changes {
        if bytes.is_empty() {
            return;
        }
        let at = at.index(bytes.len());
        match kind {
            0 | 1 => bytes[at] = *byte,
            2 => bytes.insert(at, *byte),
            _ => drop(bytes.remove(at)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn mutated_files_are_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..8),
        letters in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::sample::select(b"',\"{}@/?%\n!\\ 0".to_vec()), 0u8..4), 1..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes, targets) in samples() {
            for changes in [&changes, &letters] {
                let mut bytes = bytes.clone();
                mutate(&mut bytes, changes);
                let _ = read(folder.path(), name, &bytes, &targets);
            }
        }
        let mut bytes = safetensors(folder.path());
        mutate(&mut bytes, &changes);
        let _ = read_safetensors(folder.path(), &bytes);
    }

    #[test]
    fn noise_is_no_panic(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        for (name, _, targets) in samples() {
            let _ = read(folder.path(), name, &noise, &targets);
        }
        let _ = read_safetensors(folder.path(), &noise);
        let header = [&(noise.len() as u64).to_le_bytes()[..], &noise].concat();
        let _ = read_safetensors(folder.path(), &header);
    }
}
