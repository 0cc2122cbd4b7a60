//! Tables in other containers: gzip, Zstandard, archives of NumPy, Fortran order, semicolons.

use std::fs;
use std::io::{Cursor, Write as _};

use phex_io::{Limits, ScoreOptions, ScoreReader, ScoreRows, ScoreValues, TableFormat};

use crate::common::{archive, gzip, names, npy, read_all};

const CSV: &[u8] = b"b,a\n1.5,2\n-1,0.25\n";

fn expected() -> ScoreValues {
    ScoreValues::F64(vec![2.0, 1.5, 0.25, -1.0])
}

/// The rows of a file, read as a file and as a stream.
fn read(name: &str, bytes: &[u8]) -> Result<ScoreRows, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let (labels, limits) = (names(&["a", "b"]), Limits::default());
    let text = |error: phex_io::Error| error.to_string();
    let file = ScoreReader::open(&path, None, &labels, &[], &limits)
        .and_then(|mut reader| read_all(&mut reader, 3))
        .map_err(text);
    let stream = Cursor::new(bytes.to_vec());
    let stream = ScoreReader::from_reader(stream, name, None, &labels, &[], &limits)
        .and_then(|mut reader| read_all(&mut reader, 3))
        .map_err(text);
    match (&file, &stream) {
        (Ok(file), Ok(stream)) => assert_eq!(file, stream, "{name}"),
        _ => assert!(file.is_err() && stream.is_err(), "{name}: {file:?} {stream:?}"),
    }
    file
}

/// An array of three rows and two columns, row after row and column after column.
fn orders() -> (Vec<u8>, Vec<u8>) {
    let bytes = |values: [f32; 6]| -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    };
    let rows = npy("<f4", "(3, 2)", &bytes([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let columns = npy("<f4", "(3, 2)", &bytes([1.0, 3.0, 5.0, 2.0, 4.0, 6.0]));
    let columns = String::from_utf8_lossy(&columns[10..columns.len() - 24])
        .replace("False", "True ")
        .into_bytes()
        .into_iter()
        .chain(columns[columns.len() - 24..].iter().copied());
    (rows.clone(), rows[..10].iter().copied().chain(columns).collect())
}

#[test]
fn packed_tables_are_read() {
    for name in ["s.csv.gz", "s.gz", "s"] {
        assert_eq!(read(name, &gzip(CSV)).unwrap().values, expected(), "{name}");
    }
    let (rows, _) = orders();
    let found = read("s.npy.gz", &gzip(&rows)).unwrap();
    assert_eq!(found.values, ScoreValues::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    #[cfg(feature = "zstd")]
    {
        let packed = zstd::encode_all(CSV, 3).unwrap();
        for name in ["s.csv.zst", "s"] {
            assert_eq!(read(name, &packed).unwrap().values, expected(), "{name}");
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn packed_parquet_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.parquet");
    let rows = ScoreRows { count: 2, values: expected(), kept: vec![] };
    crate::common::write(&path, TableFormat::Parquet, &names(&["a", "b"]), &[], &rows);
    let packed = gzip(&fs::read(&path).unwrap());
    assert_eq!(read("s.parquet.gz", &packed).unwrap().values, expected());
}

#[test]
fn arrays_in_fortran_order_are_read() {
    let (rows, columns) = orders();
    let expected = read("s.npy", &rows).unwrap();
    assert_eq!(read("s.npy", &columns).unwrap(), expected);
    assert_eq!(read("s.npy.gz", &gzip(&columns)).unwrap(), expected);
    let short = &columns[..columns.len() - 1];
    assert!(read("s.npy", short).unwrap_err().contains("claims 3 rows"));
    let long = [columns.as_slice(), &[0]].concat();
    assert!(read("s.npy", &long).is_err());
}

#[test]
fn an_archive_of_one_array_is_read() {
    let (rows, columns) = orders();
    let expected = read("s.npy", &rows).unwrap();
    for packed in [false, true] {
        for array in [&rows, &columns] {
            let bytes = archive(&[("scores.npy", array)], packed);
            for name in ["s.npz", "s"] {
                assert_eq!(read(name, &bytes).unwrap(), expected, "{packed} {name}");
            }
        }
    }
    let two = archive(&[("x.npy", &rows), ("y.npy", &rows)], false);
    let error = read("s.npz", &two).unwrap_err();
    assert!(error.contains("2 arrays (`x.npy`, `y.npy`)"), "{error}");
    let error = read("s.npz", &archive(&[("x.csv", CSV)], false)).unwrap_err();
    assert!(error.contains("holds `x.csv` and not an array"), "{error}");
    assert!(read("s.npz", &archive(&[], false)).unwrap_err().contains("is empty"));
}

#[test]
fn semicolons_separate_cells_where_programs_write_decimal_commas() {
    let found = read("s.csv", b"b;a\n1,5;2\n-1;0,25\n").unwrap();
    assert_eq!(found.values, expected());
    assert_eq!(
        read("s.csv", b"\xef\xbb\xbfb;a\r\n1.5;2\r\n-1;0.25\r\n").unwrap().values,
        expected()
    );
    let error = read("s.csv", b"b,a\n\"1,5\",2\n").unwrap_err();
    assert!(error.contains("the cell is `1,5`"), "{error}");
}

#[test]
fn lists_of_names_may_be_packed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.txt.gz");
    fs::File::create(&path).unwrap().write_all(&gzip(b"a\nb\n")).unwrap();
    assert_eq!(phex_io::read_label_names(&path).unwrap(), ["a", "b"]);
}

#[test]
fn arrays_by_name_get_scores_for_labels_without_a_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.npy");
    fs::write(&path, orders().0).unwrap();
    let options = ScoreOptions {
        names: Some(names(&["c", "a"])),
        missing: vec![None, Some(-7.0), None],
        ..ScoreOptions::default()
    };
    let mut reader = ScoreReader::open_with(&path, &names(&["a", "b", "c"]), &options).unwrap();
    assert_eq!(reader.missing().collect::<Vec<_>>(), [1]);
    assert!(!reader.is_by_position());
    let rows = read_all(&mut reader, 2).unwrap();
    let expected = vec![2.0, -7.0, 1.0, 4.0, -7.0, 3.0, 6.0, -7.0, 5.0];
    assert_eq!(rows.values, ScoreValues::F32(expected));
}
