//! Targets in every form in which people have them, against what the rows say.
use std::path::PathBuf;

use crate::common::{names, npy};
use phex::graph::{GraphBuilder, RelationGraph};
use phex::infer::Evidence;
use phex_io::{
    Dataset, DatasetOptions, Error, Format, LabelForm, ReadOptions, TargetOptions, TargetSource,
    Targets, Unlisted, graph_of_arff, parse_graph, read_dataset, read_label_names,
};

/// animal > dog > puppy, animal > cat, plant.
fn graph() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    for label in ["animal", "dog", "puppy", "cat", "plant"] {
        builder.label(label);
    }
    builder.hierarchy("animal", "dog", None).hierarchy("dog", "puppy", None);
    builder.hierarchy("animal", "cat", None);
    builder.build().unwrap()
}

fn column(name: &str, form: LabelForm) -> TargetOptions {
    TargetOptions { form, ..TargetOptions::new(TargetSource::Column(name.into())) }
}

fn read_files(files: &[(&str, &[u8])], targets: TargetOptions) -> Result<Dataset, Error> {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.path().join(name)).collect();
    for ((_, content), path) in files.iter().zip(&paths) {
        std::fs::write(path, content).unwrap();
    }
    let mut targets = targets;
    if let TargetSource::Files { paths: others, .. } = &mut targets.source {
        *others = paths[1..].to_vec();
    }
    let options = DatasetOptions { targets: Some(targets), ..DatasetOptions::default() };
    read_dataset(&paths[..1], &options, Some(&graph()))
}

fn read(name: &str, content: &str, targets: TargetOptions) -> Result<Targets, Error> {
    Ok(read_files(&[(name, content.as_bytes())], targets)?.targets.unwrap())
}

fn message(name: &str, content: &str, targets: TargetOptions) -> String {
    read(name, content, targets).unwrap_err().to_string()
}

/// Each row as text: on `+`, off `-`, unknown `.`.
fn rows(targets: &Targets) -> Vec<String> {
    let mut values = vec![Evidence::Unknown; targets.labels()];
    (0..targets.rows())
        .map(|row| {
            targets.fill(row, &mut values);
            assert_eq!(targets.evidence(row), values);
            let sign = |value: &Evidence| match value {
                Evidence::On => '+',
                Evidence::Off => '-',
                Evidence::Unknown => '.',
            };
            values.iter().map(sign).collect()
        })
        .collect()
}

#[test]
fn one_column_of_names() {
    let csv = "x,is\n1,dog\n2,\n3, plant\n4,?\n";
    let targets = read("a.csv", csv, column("is", LabelForm::Name)).unwrap();
    assert_eq!(rows(&targets), [".+...", ".....", "....+", "....."]);
    let error = message("a.csv", "x,is\n1,dgo\n", column("is", LabelForm::Name));
    let expected = "a.csv:2: column `is`: `dgo` is not a label of the graph; did you mean `dog`?";
    assert!(error.ends_with(expected), "{error}");
    assert!(message("a.csv", csv, column("are", LabelForm::Name)).contains("no column is named"));
    let options = DatasetOptions {
        targets: Some(column("is", LabelForm::Name)),
        ..DatasetOptions::default()
    };
    let error = read_dataset(&["a.csv".into()], &options, None).unwrap_err();
    assert!(error.to_string().contains("targets need a graph"), "{error}");
}

#[test]
fn worlds_and_ancestors() {
    let csv = "x,is\n1,puppy\n2,\n3,plant\n";
    let names = column("is", LabelForm::Name);
    let closed = TargetOptions { unlisted: Unlisted::Off, ..names.clone() };
    // The second row lists nothing, so it is not closed.
    assert_eq!(rows(&read("a.csv", csv, closed).unwrap()), ["+++--", ".....", "----+"]);
    let upwards = TargetOptions { ancestors: true, ..names.clone() };
    assert_eq!(rows(&read("a.csv", csv, upwards.clone()).unwrap()), ["+++..", ".....", "....+"]);
    let listed = read("a.csv", csv, names).unwrap();
    assert_eq!((listed.entries().len(), listed.offsets()), (2, &[0, 1, 1, 2][..]));
    // An empty list is complete, a question mark is not.
    let list = TargetOptions { form: LabelForm::List, unlisted: Unlisted::Off, ..upwards.clone() };
    let csv = "x,is\n1,\n2,?\n3,cat\n";
    assert_eq!(rows(&read("a.csv", csv, list.clone()).unwrap()), ["-----", ".....", "+--+-"]);
    let error = message("a.csv", "x,is\n1,puppy;!animal\n", list);
    assert!(error.contains("`dog` is on, and its ancestor `animal` is off"), "{error}");
}

#[test]
fn one_column_of_numbers() {
    let csv = "x,is\n1,2\n2,4.0\n3,-1\n4,\n5,nan\n";
    let ids = column("is", LabelForm::Id);
    let expected = ["..+..", "....+", ".....", ".....", "....."];
    assert_eq!(rows(&read("a.csv", csv, ids.clone()).unwrap()), expected);
    for bad in ["5", "1.5", "-2", "dog", "inf", "1e300"] {
        let error = message("a.csv", &format!("x,is\n1,{bad}\n"), ids.clone());
        assert!(error.contains("is not the number of a label; there are 5 labels"), "{error}");
    }
    let named = TargetOptions { names: Some(names(&["cat", "dog"])), ..ids.clone() };
    let csv = "x,is\n1,1\n2,0\n";
    assert_eq!(rows(&read("a.csv", csv, named.clone()).unwrap()), [".+...", "...+."]);
    assert!(message("a.csv", "x,is\n1,2\n", named).contains("there are 2 names"));
    let wrong = TargetOptions { names: Some(names(&["cat", "dgo"])), ..ids };
    let error = message("a.csv", csv, wrong);
    assert!(error.contains("number 1: `dgo` is not a label of the graph; did you mean"), "{error}");
}

#[test]
fn names_of_numbers_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.txt");
    std::fs::write(&path, "\u{feff}cat\r\n big dog \n\n").unwrap();
    assert_eq!(read_label_names(&path).unwrap(), ["cat", "big dog"]);
    std::fs::write(&path, "cat\n\ndog\n").unwrap();
    assert_eq!(read_label_names(&path).unwrap_err().line(), Some(3));
}

#[test]
fn lists_in_one_column() {
    let csv = "x,are\n1,dog;!plant\n2,\n3, cat ;; dog;cat\n";
    let list = column("are", LabelForm::List);
    let expected = [".+..-", ".....", ".+.+."];
    assert_eq!(rows(&read("a.csv", csv, list.clone()).unwrap()), expected);
    let bars = TargetOptions { separator: Some("|".into()), ..list.clone() };
    assert_eq!(rows(&read("a.csv", &csv.replace(';', "|"), bars).unwrap()), expected);
    let arff = "@attribute x real\n@attribute are string\n@data\n1,dog@!plant\n2,?\n3,'cat@dog'\n";
    assert_eq!(rows(&read("a.arff", arff, list.clone()).unwrap()), expected);
    let error = message("a.csv", "x,are\n1,dog;!dog\n", list.clone());
    assert!(error.contains("the label `dog` is both on and off"), "{error}");
    assert!(message("a.csv", "x,are\n1,dog;!cot\n", list).contains("`cot` is not a label"));
}

#[test]
fn a_matrix_of_columns() {
    let matrix = TargetOptions::new(TargetSource::Matrix);
    let csv = "dog,x,plant\n1,7,0\n?,8,on\n,9,-1\n";
    let data = read_files(&[("a.csv", csv.as_bytes())], matrix.clone()).unwrap();
    assert_eq!(data.features.names, ["x"]);
    assert_eq!(data.features.values, [7., 8., 9.]);
    let expected = [".+..-", "....+", "....."];
    assert_eq!(rows(&data.targets.unwrap()), expected);
    let arff = "@attribute dog {0,1}\n@attribute x real\n@attribute plant {0,1}\n@data\n1,7,0\n\
                ?,8,1\n?,9,?\n";
    assert_eq!(rows(&read("a.arff", arff, matrix.clone()).unwrap()), expected);
    let error = message("a.csv", "dog,x\n2,1\n", matrix.clone());
    assert!(error.contains("a.csv:2: column `dog`: the cell is `2`; a cell is 1 (on)"), "{error}");
    let error = message("a.csv", "x,y\n2,1\n", matrix.clone());
    assert!(error.contains("no column has the name of a label"), "{error}");
    let upwards = TargetOptions { ancestors: true, ..matrix };
    let error = message("a.csv", "x,dog,animal\n1,1,1\n2,1,0\n", upwards);
    assert!(
        error.contains("a.csv:3: column `dog`: the label `dog` is on, and its ancestor `animal`"),
        "{error}"
    );
}

#[test]
fn files_of_their_own() {
    let files = |column: Option<&str>| {
        TargetOptions::new(TargetSource::Files { paths: vec![], column: column.map(str::to_owned) })
    };
    let x: &[u8] = b"x\n1\n2\n3\n";
    let read = |name: &str, content: &[u8], targets: TargetOptions| -> Result<Vec<String>, Error> {
        let data = read_files(&[("a.csv", x), (name, content)], targets)?;
        Ok(rows(&data.targets.unwrap()))
    };
    let expected = [".+...", ".....", "....+"];
    let flat = npy("<i2", "(3,)", &[1, 0, 255, 255, 4, 0]);
    assert_eq!(read("t.npy", &flat, files(None)).unwrap(), expected);
    let one = npy("|i1", "(3, 1)", &[1, 255, 4]);
    assert_eq!(read("t.npy", &one, files(None)).unwrap(), expected);
    let two = npy("|i1", "(3, 5)", &[255, 1, 255, 255, 0, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0]);
    assert_eq!(read("t.npy", &two, files(None)).unwrap(), [".+..-", ".....", "+----"]);
    assert_eq!(read("t.txt", b"dog\n\nplant\n", files(None)).unwrap(), expected);
    let ids = TargetOptions { form: LabelForm::Id, ..files(None) };
    assert_eq!(read("t.txt", b"1\r\n-1\r\n4", ids.clone()).unwrap(), expected);
    let list = TargetOptions { form: LabelForm::List, ..files(None) };
    assert_eq!(read("t.txt", b"dog;!cat\n?\nplant\n", list).unwrap(), [".+.-.", ".....", "....+"]);
    assert_eq!(read("t.csv", b"plant,dog\n?,1\n,\n1,?\n", files(None)).unwrap(), expected);
    assert_eq!(read("t.csv", b"n,is\n1,dog\n2,\n3,plant\n", files(Some("is"))).unwrap(), expected);
    let error = read("t.csv", b"n,is\n1,dgo\n", files(Some("is"))).unwrap_err().to_string();
    assert!(error.contains("t.csv:2: column `is`: `dgo` is not a label"), "{error}");
    let error = read("t.txt", b"1\n", ids.clone()).unwrap_err().to_string();
    assert!(error.contains("3 rows of features and 1 of targets"), "{error}");
    let error = read("t.txt", b"1\n9\n", ids).unwrap_err();
    assert_eq!(error.line(), Some(2));
    let error = read("t.npy", &npy("|u1", "(3,)", &[1, 7, 2]), files(None)).unwrap_err();
    assert!(error.to_string().contains("row 2, column `f0`: `7` is not the number"), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_lists_of_names() {
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, Float32Array, Int32Array, RecordBatch};
    use std::sync::Arc;
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("dog"), Some("!plant")]);
    lists.append_null();
    lists.append_value([] as [Option<&str>; 0]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new(Float32Array::from(vec![1., 2., 3.]))),
        ("are", Arc::new(lists.finish())),
        ("id", Arc::new(Int32Array::from(vec![Some(1), None, Some(4)]))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    std::fs::write(&path, bytes).unwrap();
    let read = |targets: TargetOptions, drop: &str| {
        let drop = names(&[drop]);
        let options = DatasetOptions { targets: Some(targets), drop, ..DatasetOptions::default() };
        let data = read_dataset(std::slice::from_ref(&path), &options, Some(&graph())).unwrap();
        assert_eq!(data.features.values, [1., 2., 3.]);
        rows(&data.targets.unwrap())
    };
    let closed = TargetOptions { unlisted: Unlisted::Off, ..column("are", LabelForm::List) };
    assert_eq!(read(closed, "id"), ["++---", ".....", "-----"]);
    assert_eq!(read(column("id", LabelForm::Id), "are"), [".+...", ".....", "....+"]);
}

#[test]
fn hierarchical_attributes() {
    let tree = "@attribute x real\n@attribute class hierarchical b/c,b,a/x/y,a\n@data\n1,a/x/y@b\n\
                2,?\n3,b/c\n";
    let dag = "@attribute x real\n@attribute class hierarchical root/a,root/b,a/c,b/c,c/d\n@data\n\
               1,d\n2,root\n3,a@b\n";
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (tree, vec!["b/c", "b", "a/x/y", "a", "a/x"], ["-++++", ".....", "++---"]),
        (dag, vec!["a", "b", "c", "d"], ["++++", "----", "++--"]),
    ];
    for (text, labels, expected) in cases {
        let path = folder.path().join("x.arff");
        std::fs::write(&path, text).unwrap();
        let graph = graph_of_arff(&path).unwrap().build().unwrap();
        assert_eq!(graph.labels().iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), labels);
        let place = graph.hierarchy()[0].place.to_string();
        assert_eq!(place, format!("{}:2", path.display()));
        let parsed = parse_graph(text.as_bytes(), "x", Format::Arff, &ReadOptions::default());
        assert_eq!(parsed.unwrap().build().unwrap().hierarchy().len(), graph.hierarchy().len());
        let source = TargetSource::Hierarchical;
        let closed =
            TargetOptions { unlisted: Unlisted::Off, ..TargetOptions::new(source.clone()) };
        let read = |targets, graph: &RelationGraph| {
            let options = DatasetOptions { targets: Some(targets), ..DatasetOptions::default() };
            read_dataset(std::slice::from_ref(&path), &options, Some(graph))
        };
        let data = read(closed.clone(), &graph).unwrap();
        assert_eq!(rows(data.targets.as_ref().unwrap()), expected);
        assert_eq!(data.features.names, ["x"]);
        // The file itself says what is above what: a graph without relations has the same rows.
        let mut flat = GraphBuilder::new();
        for label in &labels {
            flat.label(label);
        }
        let flat = flat.build().unwrap();
        assert_eq!(read(closed, &flat).unwrap().targets, data.targets);
        let open = read(TargetOptions::new(source), &graph).unwrap().targets.unwrap();
        assert_eq!(rows(&open), expected.map(|row| row.replace('-', ".")));
    }
    let path = folder.path().join("x.arff");
    std::fs::write(&path, tree.replace("3,b/c", "3,b/d")).unwrap();
    let graph = graph_of_arff(&path).unwrap().build().unwrap();
    let targets = Some(TargetOptions::new(TargetSource::Hierarchical));
    let options = DatasetOptions { targets, ..DatasetOptions::default() };
    let error =
        read_dataset(std::slice::from_ref(&path), &options, Some(&graph)).unwrap_err().to_string();
    assert!(
        error.contains(":6: column `class`: the class `b/d` is not declared; did you mean"),
        "{error}"
    );
    std::fs::write(&path, "@attribute x real\n@data\n").unwrap();
    assert!(graph_of_arff(&path).unwrap_err().to_string().contains("no hierarchical attribute"));
    let error = read_dataset(&[path], &options, Some(&graph)).unwrap_err().to_string();
    assert!(error.contains("no hierarchical attribute"), "{error}");
}
