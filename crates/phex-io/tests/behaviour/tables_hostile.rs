//! Tables from strangers: nothing panics, and memory follows what is there and not what is claimed.
use std::fs;
use std::io::{self, Read};

use crate::common::{
    archive, formats, gzip, names, npy, read_all, read_bytes, read_evidence, write,
};
use phex_io::{Error, Limits, ScoreReader, ScoreRows, ScoreValues, TableFormat};
use proptest::prelude::*;

#[test]
fn an_array_that_claims_much_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let labels = names(&["a", "b"]);
    for rows in ["1000000000000", "18446744073709551615"] {
        let bytes = npy("<f8", &format!("({rows}, 2)"), &[0; 64]);
        fs::write(&path, &bytes).unwrap();
        let error = ScoreReader::open(&path, None, &labels, &[], &Limits::default());
        assert!(error.unwrap_err().to_string().contains("claims"), "{rows}");
        // A stream has no length: what is there is read, and then it ends too early.
        let error = read_bytes(&bytes, TableFormat::Npy, &["a", "b"], &[]).unwrap_err();
        assert!(error.to_string().contains("claims"), "{error}");
    }
    // All rows are requested at once; this takes no more memory than the file has.
    let stream = io::Cursor::new(npy("<f8", "(1000000000000, 2)", &[0; 64]));
    let mut reader =
        ScoreReader::from_reader(stream, "s", None, &labels, &[], &Limits::default()).unwrap();
    assert!(reader.next_rows(usize::MAX).is_err());
    let long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}";
    let error = read_bytes(long, TableFormat::Npy, &["a"], &[]).unwrap_err().to_string();
    assert!(error.contains("claims 4294967295 bytes"), "{error}");
}

#[test]
fn rows_of_text_have_a_limit() {
    let limits = Limits { record_bytes: 100, ..Limits::default() };
    let labels = names(&["a", "b"]);
    let read = |start: &'static [u8], endless: u8| {
        let stream = start.chain(io::repeat(endless));
        let reader =
            ScoreReader::from_reader(stream, "s", Some(TableFormat::Csv), &labels, &[], &limits);
        reader.and_then(|mut reader| reader.next_rows(10)).unwrap_err()
    };
    assert!(matches!(read(b"", b'x'), Error::LineTooLong { line: 1, .. }));
    assert!(matches!(read(b"a,b\n1,", b'1'), Error::LineTooLong { line: 2, limit: 100, .. }));
    assert!(matches!(read(b"a,b\n1,2\n1,\"", b'\n'), Error::LineTooLong { line: 3, .. }));
    let exact = format!("a,b\n1,{}\n", "1".repeat(98));
    let stream = io::Cursor::new(exact.into_bytes());
    let mut reader = ScoreReader::from_reader(stream, "s", None, &labels, &[], &limits).unwrap();
    assert_eq!(reader.next_rows(10).unwrap().unwrap().count, 1);
}

/// A good file of each form, with its kept columns.
fn samples() -> Vec<(TableFormat, Vec<&'static str>, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let labels = names(&["a", "b, \"c\"", "é"]);
    formats()
        .into_iter()
        .map(|format| {
            let keep = if format == TableFormat::Npy { vec![] } else { vec!["id"] };
            let values: Vec<f32> = (0..60).map(|i| i as f32 / 7.0).collect();
            let column: Vec<String> = (0..20).map(|i| format!("x{i},")).collect();
            let kept = vec![column; keep.len()];
            let rows = ScoreRows { count: 20, values: ScoreValues::F32(values), kept };
            let path = folder.path().join(format!("s.{format}"));
            write(&path, format, &labels, &names(&keep), &rows);
            (format, keep, fs::read(path).unwrap())
        })
        .collect()
}

fn read(bytes: &[u8], format: TableFormat, keep: &[&str]) -> Result<ScoreRows, Error> {
    let _ = read_evidence(bytes, format, &["a", "b, \"c\"", "é"]);
    read_bytes(bytes, format, &["a", "b, \"c\"", "é"], keep)
}

#[test]
fn cut_files_are_refused() {
    for (format, keep, bytes) in samples() {
        assert_eq!(read(&bytes, format, &keep).unwrap().count, 20, "{format}");
        let text = matches!(format, TableFormat::Csv | TableFormat::Tsv);
        for length in 0..bytes.len() {
            let result = read(&bytes[..length], format, &keep);
            assert!(text || result.is_err(), "{format} cut to {length} bytes");
        }
    }
}

#[test]
fn any_other_byte_is_no_panic() {
    for (format, keep, bytes) in samples() {
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                let _ = read(&bytes, format, &keep);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn mutated_files_are_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..8)
    ) {
        for (format, keep, mut bytes) in samples() {
            for (at, byte, kind) in &changes {
                let at = at.index(bytes.len());
                match kind {
                    0 | 1 => bytes[at] = *byte,
                    2 => bytes.insert(at, *byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            let _ = read(&bytes, format, &keep);
        }
    }

    #[test]
    fn noise_is_no_panic(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in formats() {
            let _ = read(&noise, format, &[]);
        }
        let array = [b"\x93NUMPY\x01\x00".as_slice(), &noise].concat();
        let _ = read(&array, TableFormat::Npy, &[]);
    }
}

#[test]
fn long_tables_are_read_in_pieces() {
    // An endless table: only the requested rows are read.
    struct Endless(u64);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let row = b"0.5,1.5\n";
            let length = buffer.len() / row.len() * row.len();
            buffer[..length].chunks_exact_mut(row.len()).for_each(|out| out.copy_from_slice(row));
            self.0 += length as u64;
            Ok(length)
        }
    }
    let labels = names(&["a", "b"]);
    let stream = b"a,b\n".chain(Endless(0));
    let mut reader =
        ScoreReader::from_reader(stream, "s", None, &labels, &[], &Limits::default()).unwrap();
    for _ in 0..100 {
        let rows = reader.next_rows(1000).unwrap().unwrap();
        assert_eq!((rows.count, rows.values.len()), (1000, 2000));
    }
    let stream = npy("<f4", "(1000, 2)", &[0; 8000]);
    let mut reader = ScoreReader::from_reader(
        io::Cursor::new(stream),
        "s",
        None,
        &labels,
        &[],
        &Limits::default(),
    )
    .unwrap();
    assert_eq!(read_all(&mut reader, 7).unwrap().count, 1000);
}

/// The error of reading a stream to its end, with small limits.
fn refused(bytes: Vec<u8>, limits: &Limits) -> String {
    let labels = names(&["a", "b"]);
    let stream = io::Cursor::new(bytes);
    let reader = ScoreReader::from_reader(stream, "s", None, &labels, &[], limits);
    reader.and_then(|mut reader| read_all(&mut reader, 1000)).unwrap_err().to_string()
}

#[test]
fn packed_bombs_are_refused() {
    let rows = [b"a,b\n".to_vec(), b"0,0\n".repeat(1 << 20)].concat();
    let bomb = gzip(&rows);
    assert!(bomb.len() < rows.len() / 500);
    let few = Limits { file_bytes: 1 << 16, unpacked_ratio: 100, ..Limits::default() };
    assert!(refused(bomb.clone(), &few).contains("more than is allowed"));
    let small = Limits { unpacked_bytes: 1 << 16, ..Limits::default() };
    assert!(refused(bomb, &small).contains("more than is allowed"));
    // A line without an end breaks the limit of records, whatever it is packed in.
    let line = [b"a,b\n".to_vec(), vec![b'1'; 1 << 20]].concat();
    let limits = Limits { record_bytes: 1 << 10, ..Limits::default() };
    assert!(refused(gzip(&line), &limits).starts_with("s:2: the line has more than"));
    // Only one layer is unpacked.
    let twice = gzip(&gzip(b"a,b\n0,0\n"));
    assert!(refused(twice, &Limits::default()).contains("neither the name nor the content"));
    let zeros = npy("<f8", "(1000000000000, 2)", &vec![0; 1 << 20]);
    assert!(refused(gzip(&zeros), &Limits::default()).contains("claims 1000000000000 rows"));
    #[cfg(feature = "zstd")]
    {
        let bomb = zstd::encode_all(rows.as_slice(), 19).unwrap();
        assert!(refused(bomb, &few).contains("more than is allowed"));
    }
    let member = archive(&[("x.npy", &npy("<f8", "(65536, 2)", &vec![0; 1 << 20]))], true);
    assert!(refused(member, &few).contains("more than is allowed"));
}

#[test]
fn archives_and_columns_that_claim_much_are_refused() {
    let array = npy("<f4", "(3, 2)", &[0; 24]);
    let claims = npy("<f4", "(1000000000000, 2)", &[0; 24]);
    for packed in [false, true] {
        let error = refused(archive(&[("x.npy", &claims)], packed), &Limits::default());
        assert!(error.contains("claims 1000000000000 rows"), "{error}");
    }
    let fortran = |shape: &str| {
        let text = String::from_utf8(npy("<f4", shape, &[])[10..].to_vec()).unwrap();
        let text = text.replace("False", "True ");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.bytes());
        bytes.extend([0; 24]);
        bytes
    };
    for shape in ["(1000000000000, 2)", "(2, 1000000000000)", "(4294967296, 4294967296)"] {
        let error = refused(fortran(shape), &Limits::default());
        assert!(error.contains("claims") || error.contains("columns"), "{shape}: {error}");
    }
    // Each byte of an archive is changed, and each end is cut off: an error or the same rows, and never a panic.
    let good = archive(&[("x.npy", &array)], false);
    let read = |bytes: Vec<u8>| {
        let labels = names(&["a", "b"]);
        let stream = io::Cursor::new(bytes);
        let limits = Limits::default();
        let reader = ScoreReader::from_reader(stream, "s", None, &labels, &[], &limits);
        reader.and_then(|mut reader| read_all(&mut reader, 1000)).ok()
    };
    let rows = read(good.clone()).unwrap();
    for at in 0..good.len() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= change;
            assert!(read(bytes).is_none_or(|found| found == rows), "byte {at} ^ {change}");
        }
        assert!(read(good[..at].to_vec()).is_none(), "{at} bytes");
    }
}
