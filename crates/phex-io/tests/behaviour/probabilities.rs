//! Tables of finished probabilities, and weights of labels.

use std::fs;

use phex::infer::ScoreForm;
use phex_io::{ScoreOptions, ScoreReader, ScoreValues, read_label_weights};

use crate::common::{names, npy};

/// The values of a table of the labels `a` and `b`, or the error.
fn read(name: &str, bytes: &[u8]) -> Result<ScoreValues, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let text = |error: phex_io::Error| {
        error.to_string().replace(&format!("{}/", folder.path().display()), "")
    };
    let options = ScoreOptions { form: ScoreForm::Probabilities, ..ScoreOptions::default() };
    let mut reader = ScoreReader::open_with(&path, &names(&["a", "b"]), &options).map_err(text)?;
    let mut last = None;
    while let Some(rows) = reader.next_rows(1).map_err(text)? {
        last = Some(rows.values);
    }
    Ok(last.unwrap())
}

#[test]
fn probabilities_in_range_are_read() {
    assert_eq!(read("p.csv", b"b,a\n1,0\n0.25,1e-300\n"), Ok(ScoreValues::F64(vec![1e-300, 0.25])));
    let one: Vec<u8> = [0.5_f32, 1.0].iter().flat_map(|p| p.to_le_bytes()).collect();
    assert_eq!(read("p.npy", &npy("<f4", "(1, 2)", &one)), Ok(ScoreValues::F32(vec![0.5, 1.0])));
}

#[test]
fn anything_else_is_located() {
    let error = read("p.csv", b"a,b\n\n0.5,0.5\n0.5,1.5\n").unwrap_err();
    assert_eq!(
        error,
        "p.csv:4: column `b`: the cell is `1.5`; a probability is a number from 0 to 1"
    );
    for cell in ["-0.1", "nan", "inf", "x", "1.0000001"] {
        let error = read("p.csv", format!("a,b\n0,1\n{cell},0\n").as_bytes()).unwrap_err();
        assert!(error.starts_with("p.csv:3: column `a`: the cell is"), "{error}");
    }
    let values = [0.5_f32, 0.5, f32::NAN, 0.5];
    let bytes: Vec<u8> = values.iter().flat_map(|p| p.to_le_bytes()).collect();
    let error = read("p.npy", &npy("<f4", "(2, 2)", &bytes)).unwrap_err();
    assert!(error.starts_with("p.npy: row 2, column `a`: the cell is NaN"), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
fn nulls_are_no_probabilities() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, RecordBatch};

    let column =
        |values: &[Option<f64>]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("a", column(&[Some(0.5), Some(0.5), None]), true),
        ("b", column(&[Some(0.5), Some(1.0), Some(0.0)]), true),
    ])
    .unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let error = read("p.parquet", &bytes).unwrap_err();
    assert!(error.starts_with("p.parquet: row 3, column `a`: the cell is empty"), "{error}");
}

#[test]
fn weights_of_labels_default_to_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.tsv");
    fs::write(&path, "label\tweight\nb\t2.5\n").unwrap();
    assert_eq!(read_label_weights(&path, &names(&["a", "b"])).unwrap(), [1.0, 2.5]);
    for (text, part) in [
        ("label\tweight\nB\t1\n", "w.tsv:2: column `label`: `B` is not a label of the graph"),
        ("label\tweight\na\t-1\n", "w.tsv:2: column `weight`: the cell is `-1`"),
        ("label\tweight\na\tinf\n", "a weight is a number above 0"),
        ("label\tweight\na\t\n", "the cell is ``"),
        ("label\tweight\na\t1\na\t1\n", "w.tsv:3: column `label`: `a` has a weight already"),
        ("label\nb\n", "the columns `label` and `weight`, but this table has `label`"),
        ("", "w.tsv: the table has no header"),
    ] {
        fs::write(&path, text).unwrap();
        let error = read_label_weights(&path, &names(&["a", "b"])).unwrap_err().to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
}
