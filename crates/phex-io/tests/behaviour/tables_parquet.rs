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

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A file with this footer and no data.
fn with_footer(footer: &[u8]) -> Vec<u8> {
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", footer, &length, b"PAR1"].concat()
}

#[test]
fn a_footer_that_claims_much_is_refused() {
    let refused = |bytes: &[u8], expected: &str| {
        let error = read_bytes(bytes, TableFormat::Parquet, &["a"], &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    // 2³¹ − 1 row groups; a group with as many children; a list of truth values, which take no bytes.
    let groups = "504152311502193c48017315040015082500180172001508250018016100160019fcffffffff07002400000050415231";
    refused(&bytes_of(groups), "its footer has a list that is longer than the rest");
    let children = "504152311502193c48017315feffffff0f00150825001801720015082500180161001600190c002300000050415231";
    refused(&bytes_of(children), "its footer has a group with more children than the schema has");
    let truths = "504152311502193c480173150400150825001801720015082500180161001600190c0928f1ffffffff0719f1ffffffff07002e00000050415231";
    refused(&bytes_of(truths), "its footer has a list that is longer than the rest");
    // Groups in groups, 5000 deep.
    let mut deep = b"\x15\x02\x19\xfc\x89\x27".to_vec();
    deep.extend(b"\x35\0\x18\x01g\x15\x02\0".repeat(5000));
    deep.extend(b"\x15\x08\x25\0\x18\x01x\0\x16\0\x19\x0c\0");
    refused(&with_footer(&deep), "its footer has groups that are too deep");
    // A binary field where the library reads a number: it would go on in the middle of the text.
    refused(
        &with_footer(b"\x18\x05\x19\xfc\xff\xff\x07\0"),
        "its footer has a field of the wrong type",
    );
    refused(&with_footer(&b"\x1c".repeat(5000)), "its footer has");
    refused(&with_footer(b"\xcb\x05\x88\x01\0"), "its footer has a field of an unknown type");
    let mut long = with_footer(b"\0");
    let at = long.len() - 8;
    long[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(&long, "its footer claims 4294967295 bytes");
    long[at..at + 4].copy_from_slice(&999u32.to_le_bytes());
    refused(&long, "its footer is longer than the file");
    refused(b"PAR1PAR", "too short");
}

#[test]
fn a_dictionary_does_not_multiply_without_bound() {
    use arrow_array::types::Int32Type;
    let text = "x".repeat(400 << 10);
    let texts = |rows: usize| -> ArrayRef {
        let keys = arrow_array::Int32Array::from(vec![0; rows]);
        let values = StringArray::from(vec![text.as_str()]);
        Arc::new(arrow_array::DictionaryArray::<Int32Type>::new(keys, Arc::new(values)))
    };
    let scores = |rows: usize| -> ArrayRef { Arc::new(Float32Array::from(vec![1.0; rows])) };
    let read = |rows: usize| {
        let bytes = file(vec![("a", scores(rows)), ("name", texts(rows))]);
        assert!(bytes.len() < 4 << 20, "{}", bytes.len());
        read_bytes(&bytes, TableFormat::Parquet, &["a"], &["name"])
    };
    assert_eq!(read(50).unwrap().kept[0].len(), 50);
    let error = read(8000).unwrap_err().to_string();
    assert!(error.contains("values that take more than 1 GiB in a few thousand rows"), "{error}");
}

/// A number as Parquet's headers write it, and where the next one starts.
fn varint(bytes: &[u8], at: usize) -> (u64, usize) {
    let length = 1 + bytes[at..].iter().position(|byte| byte & 0x80 == 0).unwrap();
    let parts = bytes[at..at + length].iter().enumerate();
    (parts.fold(0, |all, (place, byte)| all | u64::from(byte & 0x7f) << (7 * place)), at + length)
}

/// Makes a number the largest even one of as many bytes, which stands for a positive number.
fn enlarge(bytes: &mut [u8], at: usize) {
    let (_, end) = varint(bytes, at);
    bytes[at..end - 1].fill(0xff);
    bytes[at] &= 0xfe;
    bytes[end - 1] = 0x7f;
}

/// Files of both codecs, whose pages claim to unpack to more, or to hold more values, than they do.
#[test]
fn real_pages_that_claim_more_are_refused() {
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let folder = tempfile::tempdir().unwrap();
    let values = (0..30_000).map(|at| (at % 7 > 0).then_some((at % 100) as f32));
    let column: ArrayRef = Arc::new(Float32Array::from_iter(values));
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let mut pages = 0;
    for codec in [Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for dictionary in [false, true] {
                let builder = WriterProperties::builder().set_writer_version(version);
                let builder = builder.set_compression(codec).set_dictionary_enabled(dictionary);
                let plain = builder.set_encoding(parquet::basic::Encoding::PLAIN).build();
                let mut writer =
                    ArrowWriter::try_new(Vec::new(), batch.schema(), Some(plain)).unwrap();
                writer.write(&batch).unwrap();
                let good = writer.into_inner().unwrap();
                let read = |bytes: &[u8]| read_bytes(bytes, TableFormat::Parquet, &["a"], &[]);
                assert!(read(&good).is_ok(), "{codec:?} {version:?} {dictionary}");
                let path = folder.path().join("good.parquet");
                std::fs::write(&path, &good).unwrap();
                let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
                let chunk = file.metadata().row_group(0).column(0);
                let all = (chunk.uncompressed_size() as u64) << 1;
                let starts = [chunk.dictionary_page_offset(), Some(chunk.data_page_offset())];
                for start in starts.into_iter().flatten() {
                    let context = format!("{codec:?} {version:?} {dictionary} at {start}");
                    // The kind of the page, its unpacked size, its size; then a struct that starts with its values.
                    let size = varint(&good, start as usize + 1).1 + 1;
                    let packed = varint(&good, size).1 + 1;
                    let count = varint(&good, packed).1 + 2;
                    assert!(
                        [size, packed, count].iter().all(|&at| good[at - 1] == 0x15),
                        "{context}"
                    );
                    let mut larger = good.clone();
                    enlarge(&mut larger, size);
                    let error = read(&larger).err().map(|error| error.to_string());
                    let error = error.unwrap_or_default();
                    assert!(
                        error.contains("unpacks to more than is allowed"),
                        "{context}: {error}"
                    );
                    // The footer says so as well.
                    let footer = good.len() - 8 - {
                        let length = good[good.len() - 8..good.len() - 4].try_into().unwrap();
                        u32::from_le_bytes(length) as usize
                    };
                    let mut said = 0;
                    for at in footer..good.len() - 12 {
                        if good[at] == 0x16 && varint(&good, at + 1).0 == all {
                            enlarge(&mut larger, at + 1);
                            said += 1;
                        }
                    }
                    assert!(said > 0, "{context}");
                    // Snappy has its own length, and what follows it is not read.
                    if let Ok(rows) = read(&larger) {
                        let bits = |rows: phex_io::ScoreRows| match rows.values {
                            ScoreValues::F32(values) => {
                                values.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
                            }
                            ScoreValues::F64(_) => panic!("single"),
                        };
                        assert_eq!(bits(rows), bits(read(&good).unwrap()), "{context}");
                    }
                    let mut more = good.clone();
                    enlarge(&mut more, count);
                    assert!(read(&more).is_err(), "{context}");
                    pages += 1;
                }
            }
        }
    }
    assert_eq!(pages, 12);
}
