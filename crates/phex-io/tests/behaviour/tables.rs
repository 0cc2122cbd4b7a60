//! Tables: what is written is read back, in any form, order of columns and size of batches.
use std::fs;

use crate::common::{codes, formats, names, npy, read_all, read_bytes, read_evidence, write};
use phex_io::{
    EvidenceReader, Limits, Precision, ScoreReader, ScoreRows, ScoreValues, ScoreWriter,
    TableFormat,
};
use proptest::prelude::*;

/// ScoreValues equal bit by bit, except that all NaNs are one.
fn same(a: &ScoreValues, b: &ScoreValues) -> bool {
    match (a, b) {
        (ScoreValues::F32(a), ScoreValues::F32(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
        }
        (ScoreValues::F64(a), ScoreValues::F64(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
        }
        _ => false,
    }
}

fn rows() -> impl Strategy<Value = (Vec<String>, ScoreRows)> {
    let label = "[a-z ,\"\t\n\r'é猫#;]{1,6}";
    let labels = prop::collection::btree_set(label, 1..5);
    let shape = (labels, 0usize..20, any::<bool>(), 0usize..3);
    shape.prop_flat_map(|(labels, count, single, kept)| {
        let labels: Vec<String> = labels.into_iter().collect();
        let length = count * labels.len();
        let values = if single {
            prop::collection::vec(any::<f32>(), length).prop_map(ScoreValues::F32).boxed()
        } else {
            prop::collection::vec(any::<f64>(), length).prop_map(ScoreValues::F64).boxed()
        };
        let column = prop::collection::vec("[a-z,\"\n\ré ]{0,5}", count);
        let kept = prop::collection::vec(column, kept);
        (Just(labels), values, kept)
            .prop_map(move |(labels, values, kept)| (labels, ScoreRows { count, values, kept }))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tables_are_read_back((labels, rows) in rows(), seed in any::<usize>()) {
        let folder = tempfile::tempdir().unwrap();
        for format in formats() {
            let mut rows = rows.clone();
            if format == TableFormat::Npy {
                rows.kept.clear();
            }
            let kept: Vec<String> = (0..rows.kept.len()).map(|i| format!("KEPT {i}")).collect();
            let path = folder.path().join(format!("table.{format}"));
            write(&path, format, &labels, &kept, &rows);
            // Text is read as double; as single it is the same number again.
            let text = matches!(format, TableFormat::Csv | TableFormat::Tsv);
            let number = if text { Precision::F64 } else { rows.values.precision() };
            let expected = rows.values.clone();
            let back = |values: &ScoreValues| match (values, &expected) {
                (ScoreValues::F64(values), ScoreValues::F32(_)) => {
                    ScoreValues::F32(values.iter().map(|&value| value as f32).collect())
                }
                _ => values.clone(),
            };
            for batch in [1, 7, 1000] {
                let limits = Limits::default();
                let mut reader = ScoreReader::open(&path, None, &labels, &kept, &limits).unwrap();
                prop_assert_eq!(reader.format(), format);
                prop_assert_eq!(reader.precision(), number);
                let read = read_all(&mut reader, batch).unwrap();
                prop_assert_eq!(read.count, rows.count);
                prop_assert!(same(&back(&read.values), &expected), "{:?} {expected:?}", read.values);
                if rows.count > 0 {
                    prop_assert_eq!(&read.kept, &rows.kept);
                }
                prop_assert!(reader.next_rows(batch).unwrap().is_none(), "the end stays the end");
            }
            // Another order of the labels gives another order of the values.
            if format != TableFormat::Npy {
                let mut turned = labels.clone();
                turned.rotate_left(seed % labels.len());
                let limits = Limits::default();
                let mut reader = ScoreReader::open(&path, None, &turned, &kept, &limits).unwrap();
                let read = back(&read_all(&mut reader, 5).unwrap().values);
                for row in 0..rows.count {
                    for (at, label) in turned.iter().enumerate() {
                        let from = labels.iter().position(|other| other == label).unwrap();
                        let (at, from) = (row * labels.len() + at, row * labels.len() + from);
                        let one = |values: &ScoreValues, i: usize| match values {
                            ScoreValues::F32(values) => ScoreValues::F32(vec![values[i]]),
                            ScoreValues::F64(values) => ScoreValues::F64(vec![values[i]]),
                        };
                        prop_assert!(same(&one(&read, at), &one(&expected, from)));
                    }
                }
            }
        }
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), formats().len());
    }
}

#[test]
fn semicolons_in_the_name_of_the_only_label_separate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let labels = [String::from("a;b")];
    let rows = ScoreRows { count: 1, values: ScoreValues::F64(vec![0.5]), kept: Vec::new() };
    write(&path, TableFormat::Csv, &labels, &[], &rows);
    let mut reader = ScoreReader::open(&path, None, &labels, &[], &Limits::default()).unwrap();
    let read = read_all(&mut reader, 1).unwrap();
    assert!(same(&read.values, &rows.values), "{:?}", read.values);
}

#[test]
fn text_is_as_people_write_it() {
    let text = b"\xef\xbb\xbfid,\"b,\"\"c\"\"\",a\r\n\r\n\"x\ny\", 1.5 ,-inf\r\n,NaN,2e-3\n\n";
    let rows = read_bytes(text, TableFormat::Csv, &["a", "b,\"c\""], &["id"]).unwrap();
    assert_eq!(rows.kept, [["x\ny", ""]]);
    let ScoreValues::F64(values) = rows.values else { panic!("text is double") };
    assert_eq!(values[..3], [f64::NEG_INFINITY, 1.5, 2e-3]);
    assert!(values[3].is_nan());
    let rows = read_bytes(b"a\tb\n1\t2", TableFormat::Tsv, &["b", "a"], &[]).unwrap();
    assert_eq!(rows.values, ScoreValues::F64(vec![2.0, 1.0]));
}

#[test]
fn errors_in_text_have_a_place() {
    let message = |text: &str| {
        read_bytes(text.as_bytes(), TableFormat::Csv, &["dog", "cat"], &[]).unwrap_err().to_string()
    };
    let cases = [
        ("dog,cat\n\n1,2\n1,\n", "s:4: column `cat`: the cell is empty; a score is a number"),
        ("dog,cat\n1,2\nx,1\n", "s:3: column `dog`: the cell is `x`; a score is a number"),
        ("cat,dog\n1,2,3\n", "s:2: the row has 3 cells and the header has 2"),
        ("cat,dog\n1\n", "s:2: the row has 1 cells and the header has 2"),
        ("cat,dog\n\"1\"2,3\n", "s:2: there is text after the quote"),
        ("cat,dog\n\n\"1,3\n4,5\n", "s:3: a quote opens a cell and nothing closes it"),
        ("cat,dgo\n1,2\n", "s: the column `dgo` is not a label of the model; did you mean `dog`?"),
        ("cat,who,dog\n1,2,3\n", "s: the column `who` is not a label of the model"),
        ("cat\n1\n", "s: no column is named `dog`"),
        ("cat,dog,cat\n", "s: two columns are named `cat`"),
        ("", "s: the table has no header"),
        ("\n\n", "s: the table has no header"),
    ];
    for (text, expected) in cases {
        let message = message(text);
        assert!(message.contains(expected), "{text:?}: {message}");
    }
    let error = read_bytes(b"dog,cat\n1,\xff\n", TableFormat::Csv, &["dog", "cat"], &[]);
    assert_eq!(error.unwrap_err().line(), Some(2));
}

#[test]
fn halves_and_doubles_of_numpy_are_read() {
    let halves: Vec<u8> = [0x3c00u16, 0xc000, 0x3555, 0x7c00, 0x0001, 0x0000]
        .iter()
        .flat_map(|half| half.to_le_bytes())
        .collect();
    let rows = read_bytes(&npy("<f2", "(3, 2)", &halves), TableFormat::Npy, &["a", "b"], &[]);
    let expected = vec![1.0, -2.0, 0.333_251_95, f32::INFINITY, 5.960_464_5e-8, 0.0];
    assert_eq!(rows.unwrap().values, ScoreValues::F32(expected));
    let doubles: Vec<u8> = [0.1f64, 1e300].iter().flat_map(|x| x.to_le_bytes()).collect();
    let rows = read_bytes(&npy("<f8", "(1, 2)", &doubles), TableFormat::Npy, &["a", "b"], &[]);
    assert_eq!(rows.unwrap().values, ScoreValues::F64(vec![0.1, 1e300]));
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let message = |bytes: &[u8]| {
        read_bytes(bytes, TableFormat::Npy, &["a", "b"], &[]).unwrap_err().to_string()
    };
    let three = message(&npy("<f4", "(1, 3)", &[0; 12]));
    assert_eq!(three, "s: the table has 3 columns and the model has 2 labels");
    assert!(message(&npy("|i1", "(1, 2)", &[0; 2])).contains("astype('float32')"));
    assert!(message(&npy("<f4", "(1, 2)", &[0; 7])).contains("ends near row 1"));
    assert!(message(&npy("<f4", "(1, 2)", &[0; 9])).contains("more bytes follow"));
    assert!(message(&npy("<f4", "(0, 2)", &[0; 1])).contains("more bytes follow"));
    assert!(message(b"PK\x03\x04 and so on").contains("archive is damaged"));
    assert!(message(b"PAR1 and so on").contains("not an npy file"));
    let kept = read_bytes(&npy("<f4", "(0, 2)", &[]), TableFormat::Npy, &["a", "b"], &["id"]);
    assert!(kept.unwrap_err().to_string().contains("no column `id` can be kept"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.npy");
    let (labels, kept) = (names(&["a"]), names(&["id"]));
    let error = ScoreWriter::create(&path, TableFormat::Npy, &labels, &kept, Precision::F32);
    assert!(error.unwrap_err().to_string().contains("numbers only"));
}

#[test]
fn evidence_is_on_off_or_unknown() {
    let labels = ["a", "b", "c"];
    let text = b"c,a\n1,0\n,on\nFALSE,?\n-1,nan\n";
    let rows = read_evidence(text, TableFormat::Csv, &labels).unwrap();
    assert_eq!((rows.count, rows.values.len()), (4, 12));
    assert_eq!(codes(&rows.values), [0, -1, 1, 1, -1, -1, -1, -1, 0, -1, -1, -1]);
    use phex::infer::Evidence;
    assert_eq!(rows.values[..3], [Evidence::Off, Evidence::Unknown, Evidence::On]);
    let error = read_evidence(b"a\n1\n0.5\n", TableFormat::Csv, &labels).unwrap_err();
    assert!(error.to_string().starts_with("e:3: column `a`: the cell is `0.5`; a cell is 1 (on)"));

    let cases: [(&str, Vec<u8>); 5] = [
        ("|i1", vec![1, 0, 255]),
        ("<f4", [1f32, 0.0, f32::NAN].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("<f8", [1f64, 0.0, -1.0].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("<i8", [1i64, 0, -1].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("<i2", [1i16, 0, -1].iter().flat_map(|x| x.to_le_bytes()).collect()),
    ];
    for (descr, data) in cases {
        let rows = read_evidence(&npy(descr, "(1, 3)", &data), TableFormat::Npy, &labels);
        assert_eq!(codes(&rows.unwrap().values), [1, 0, -1], "{descr}");
    }
    let rows = read_evidence(&npy("|b1", "(1, 3)", &[1, 0, 1]), TableFormat::Npy, &labels);
    assert_eq!(codes(&rows.unwrap().values), [1, 0, 1]);
    let bytes = npy("|u1", "(2, 3)", &[1, 0, 1, 0, 255, 0]);
    let error = read_evidence(&bytes, TableFormat::Npy, &labels).unwrap_err().to_string();
    assert!(error.starts_with("e: row 2, column `b`: the cell is 255; a cell is 1"), "{error}");
    assert!(read_evidence(&npy("|u1", "(0, 2)", &[]), TableFormat::Npy, &labels).is_err());
}

#[test]
fn streams_show_their_form() {
    let labels = names(&["a", "b"]);
    let open = |bytes: Vec<u8>| {
        let bytes = std::io::Cursor::new(bytes);
        ScoreReader::from_reader(bytes, "s", None, &labels, &[], &Limits::default())
    };
    assert_eq!(open(b"a,b\n1,2\n".to_vec()).unwrap().format(), TableFormat::Csv);
    assert_eq!(open(b"b\ta\n1\t2\n".to_vec()).unwrap().format(), TableFormat::Tsv);
    let reader = open(npy("<f4", "(1, 2)", &[0; 8])).unwrap();
    assert_eq!((reader.format(), reader.rows()), (TableFormat::Npy, Some(1)));
    let error = open(b"\x7fELF\x00\x00\x00\x00\x00".to_vec()).unwrap_err().to_string();
    assert!(error.contains("csv, tsv, npy, parquet"), "{error}");
    assert!(open(Vec::new()).unwrap_err().to_string().contains("is empty"));
    let none = ScoreReader::from_reader(
        &b"a\n"[..],
        "s",
        Some(TableFormat::Csv),
        &[],
        &[],
        &Limits::default(),
    );
    assert!(none.unwrap_err().to_string().contains("no labels"));
}

#[test]
fn writers_that_do_not_finish_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let labels = names(&["a"]);
    let rows = ScoreRows { count: 2, values: ScoreValues::F32(vec![0.5, 0.25]), kept: vec![] };
    for format in formats() {
        let path = folder.path().join(format!("t.{format}"));
        fs::write(&path, "old").unwrap();
        let mut writer = ScoreWriter::create(&path, format, &labels, &[], Precision::F32).unwrap();
        writer.write_rows(&rows).unwrap();
        drop(writer);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        fs::remove_file(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{format}");
        let nowhere = folder.path().join("missing").join("t");
        assert!(ScoreWriter::create(&nowhere, format, &labels, &[], Precision::F32).is_err());
    }
}

#[test]
fn rows_of_another_shape_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, labels) = (folder.path().join("t.csv"), names(&["a", "b"]));
    let mut writer =
        ScoreWriter::create(&path, TableFormat::Csv, &labels, &[], Precision::F32).unwrap();
    let good = ScoreRows { count: 1, values: ScoreValues::F32(vec![0.5, 0.25]), kept: vec![] };
    writer.write_rows(&good).unwrap();
    assert!(writer.write_rows(&ScoreRows { count: 2, ..good.clone() }).is_err());
    let doubles = ScoreValues::F64(vec![0.5, 0.25]);
    assert!(writer.write_rows(&ScoreRows { values: doubles, ..good.clone() }).is_err());
    assert!(writer.write_rows(&ScoreRows { kept: vec![vec![]], ..good }).is_err());
    let twice = ScoreWriter::create(&path, TableFormat::Csv, &labels, &labels, Precision::F32);
    assert!(twice.unwrap_err().to_string().contains("two columns are named"));
}

#[test]
fn readers_and_writers_can_be_sent_to_threads() {
    fn check<T: Send>() {}
    check::<ScoreReader>();
    check::<EvidenceReader>();
    check::<ScoreWriter>();
}

#[test]
fn examples_of_the_documentation_can_be_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/tables.md");
    let text = fs::read_to_string(path).unwrap();
    let examples: Vec<&str> =
        text.split("```csv\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let labels = names(&["animal", "dog", "cat, black"]);
    let (keep, limits) = (names(&["id"]), Limits::default());
    let bytes = |at: usize| std::io::Cursor::new(examples[at].as_bytes().to_vec());
    let scores = ScoreReader::from_reader(bytes(0), "d", None, &labels, &keep, &limits);
    assert_eq!(scores.unwrap().next_rows(9).unwrap().unwrap().count, 2);
    let evidence = EvidenceReader::from_reader(bytes(1), "d", None, &labels, &keep, &limits);
    let rows = evidence.unwrap().next_rows(9).unwrap().unwrap();
    assert_eq!(codes(&rows.values), [-1, 1, -1, 1, 0, -1]);
    for format in TableFormat::ALL {
        assert!(text.contains(&format!("`{format}`")), "{format}");
    }
}
