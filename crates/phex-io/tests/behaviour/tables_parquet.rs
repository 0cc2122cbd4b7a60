//! Parquet files as other programs write them.
#![cfg(feature = "parquet")]
use std::sync::Arc;

use crate::common::{codes, read_bytes, read_evidence};
use arrow_array::types::{Float32Type, Int8Type};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int64Array, ListArray, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use parquet::arrow::ArrowWriter;
use phex_io::{Limits, ScoreReader, ScoreValues, TableFormat};

fn file(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    );
    let batch = batch.unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn columns_may_be_of_both_types_and_null() {
    let bytes = file(vec![
        ("id", Arc::new(Int64Array::from(vec![Some(7), None]))),
        ("b", Arc::new(Float64Array::from(vec![Some(0.1), None]))),
        ("ok", Arc::new(BooleanArray::from(vec![true, false]))),
        ("a", Arc::new(Float32Array::from(vec![1.5, 2.5]))),
        ("name", Arc::new(StringArray::from(vec!["x", "é"]))),
    ]);
    let keep = ["name", "id", "ok"];
    let rows = read_bytes(&bytes, TableFormat::Parquet, &["a", "b"], &keep).unwrap();
    let ScoreValues::F64(values) = rows.values else { panic!("doubles") };
    assert_eq!(values[..3], [1.5, 0.1, 2.5]);
    assert!(values[3].is_nan());
    assert_eq!(rows.kept, [["x", "é"], ["7", ""], ["true", "false"]]);
    let error = read_bytes(&bytes, TableFormat::Parquet, &["a", "b"], &keep[..2]).unwrap_err();
    assert!(error.to_string().contains("the column `ok` is not a label of the model"), "{error}");
}

#[test]
fn lists_have_an_entry_for_each_label() {
    let lists = |rows: Vec<Option<Vec<Option<f32>>>>| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
    };
    let rows = vec![Some(vec![Some(1.0), Some(2.0)]), None, Some(vec![None, Some(3.0)])];
    let ids = || -> ArrayRef { Arc::new(StringArray::from(vec!["x", "y", "z"])) };
    let bytes = file(vec![("scores", lists(rows)), ("id", ids())]);
    let rows = read_bytes(&bytes, TableFormat::Parquet, &["a", "b"], &["id"]).unwrap();
    let ScoreValues::F32(values) = rows.values else { panic!("single") };
    assert_eq!(values[..2], [1.0, 2.0]);
    assert!(values[2].is_nan() && values[3].is_nan() && values[4].is_nan());
    assert_eq!((values[5], rows.kept), (3.0, vec![vec!["x".into(), "y".into(), "z".into()]]));
    let error = read_bytes(&bytes, TableFormat::Parquet, &["a", "b", "c"], &["id"]).unwrap_err();
    assert!(
        error.to_string().contains("row 1 has 2 entries and the model has 3 labels"),
        "{error}"
    );

    let rows = vec![Some(vec![Some(1), Some(0), Some(-1)]), None, Some(vec![None, Some(1), None])];
    let list = Arc::new(ListArray::from_iter_primitive::<Int8Type, _, _>(rows));
    let bytes = file(vec![("evidence", list)]);
    let rows = read_evidence(&bytes, TableFormat::Parquet, &["a", "b", "c"]).unwrap();
    assert_eq!(codes(&rows.values), [1, 0, -1, -1, -1, -1, -1, 1, -1]);
}

#[test]
fn evidence_columns_may_be_missing() {
    let bytes = file(vec![
        ("c", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("a", Arc::new(Int64Array::from(vec![Some(0), Some(-1), Some(1)]))),
    ]);
    let rows = read_evidence(&bytes, TableFormat::Parquet, &["a", "b", "c"]).unwrap();
    assert_eq!(codes(&rows.values), [0, -1, 1, -1, -1, 0, 1, -1, -1]);
    let bytes = file(vec![("c", Arc::new(Float32Array::from(vec![1.0, 0.5])))]);
    let error = read_evidence(&bytes, TableFormat::Parquet, &["c"]).unwrap_err().to_string();
    assert!(error.starts_with("e: row 2, column `c`: the cell is 0.5"), "{error}");
}

#[test]
fn other_types_are_refused() {
    let message = |column: ArrayRef, keep: &[&str]| {
        let bytes = file(vec![("x", column), ("a", Arc::new(Float32Array::from(vec![1.0])))]);
        let labels = if keep.is_empty() { &["a", "x"][..] } else { &["a"] };
        read_bytes(&bytes, TableFormat::Parquet, labels, keep).unwrap_err().to_string()
    };
    let integers = message(Arc::new(Int64Array::from(vec![1])), &[]);
    assert!(integers.contains("`x` is of type Int64; scores are floating-point"), "{integers}");
    let times = message(Arc::new(TimestampMicrosecondArray::from(vec![1])), &["x"]);
    assert!(times.contains("text, numbers and booleans can be kept"), "{times}");
}

#[test]
fn row_groups_have_a_limit() {
    let bytes =
        file(vec![("a", Arc::new(Float32Array::from_iter_values((0..1000).map(|i| i as f32))))]);
    let (labels, bytes) = ([String::from("a")], std::io::Cursor::new(bytes));
    let limits = Limits { row_group_bytes: 100, ..Limits::default() };
    let error = ScoreReader::from_reader(bytes, "s", None, &labels, &[], &limits).unwrap_err();
    assert!(error.to_string().contains("write smaller row groups"), "{error}");
}

/// Files with what phex does not write itself: dictionaries, lists, nulls, both kinds of pages,
/// both codecs.
fn foreign() -> Vec<Vec<u8>> {
    use parquet::basic::Compression;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    let lists = (0..50).map(|i| match i % 5 {
        0 => None,
        _ => Some(vec![Some(i as f32), None, Some(0.5)]),
    });
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists));
    let ids = (0..50).map(|i| (i % 7 > 0).then(|| format!("name {}", i % 4)));
    let ids: ArrayRef = Arc::new(StringArray::from_iter(ids));
    let numbers = |step: i64| -> ArrayRef {
        Arc::new(Float64Array::from_iter((0..50).map(|i| (i % 9 > 0).then(|| (i / step) as f64))))
    };
    let lists = RecordBatch::try_from_iter([("id", ids.clone()), ("scores", lists)]).unwrap();
    let columns = [("b", numbers(1)), ("id", ids), ("a", numbers(9)), ("c", numbers(50))];
    let columns = RecordBatch::try_from_iter(columns).unwrap();
    let flags = (0..50).map(|i| (i % 9 > 0).then_some(i % 3 == 0));
    let flags: ArrayRef = Arc::new(BooleanArray::from_iter(flags));
    let integers: ArrayRef =
        Arc::new(Int64Array::from_iter((0..50).map(|i| (i % 4 > 0).then_some(i % 2))));
    let evidence = RecordBatch::try_from_iter([("a", flags), ("c", integers)]).unwrap();
    let mut files = Vec::new();
    for batch in [lists, columns, evidence] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for codec in [Compression::SNAPPY, Compression::UNCOMPRESSED] {
                let builder = WriterProperties::builder();
                let builder = builder.set_writer_version(version).set_compression(codec);
                let properties = builder.set_max_row_group_row_count(Some(20)).build();
                let mut writer =
                    ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
                writer.write(&batch).unwrap();
                files.push(writer.into_inner().unwrap());
            }
        }
    }
    files
}

/// How many rows a file has, as scores or else as evidence.
fn read(bytes: &[u8]) -> Result<usize, phex_io::Error> {
    let evidence = read_evidence(bytes, TableFormat::Parquet, &["a", "b", "c"]);
    let scores = read_bytes(bytes, TableFormat::Parquet, &["a", "b", "c"], &["id"]);
    scores.map(|rows| rows.count).or(evidence.map(|rows| rows.count))
}

#[test]
fn damaged_files_are_no_panic() {
    for bytes in foreign() {
        assert_eq!(read(&bytes).unwrap(), 50);
        for length in (0..bytes.len()).step_by(7) {
            assert!(read(&bytes[..length]).is_err(), "cut to {length} bytes");
        }
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                let _ = read(&bytes);
            }
        }
    }
}
