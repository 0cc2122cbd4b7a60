//! What the tests share.
#![allow(dead_code)]

use std::path::Path;

use phex::infer::Evidence;
use phex_io::{
    Error, EvidenceReader, EvidenceRows, Limits, Precision, ScoreReader, ScoreRows, ScoreValues,
    ScoreWriter, TableFormat,
};

pub fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The codes of evidence: 1 on, 0 off, -1 unknown.
pub fn codes(evidence: &[Evidence]) -> Vec<i8> {
    evidence.iter().map(|value| value.code()).collect()
}

/// The forms that this build has.
pub fn formats() -> Vec<TableFormat> {
    let has = |format: &TableFormat| cfg!(feature = "parquet") || *format != TableFormat::Parquet;
    TableFormat::ALL.into_iter().filter(has).collect()
}

/// All rows of a table, read in batches.
pub fn read_all(reader: &mut ScoreReader, batch: usize) -> Result<ScoreRows, Error> {
    let mut all: Option<ScoreRows> = None;
    while let Some(mut rows) = reader.next_rows(batch)? {
        assert!(rows.count <= batch);
        let Some(all) = &mut all else {
            all = Some(rows);
            continue;
        };
        all.count += rows.count;
        match (&mut all.values, &mut rows.values) {
            (ScoreValues::F32(all), ScoreValues::F32(more)) => all.append(more),
            (ScoreValues::F64(all), ScoreValues::F64(more)) => all.append(more),
            _ => panic!("the type of the numbers changed"),
        }
        all.kept.iter_mut().zip(&mut rows.kept).for_each(|(all, more)| all.append(more));
    }
    let none = match reader.precision() {
        Precision::F32 => ScoreValues::F32(vec![]),
        Precision::F64 => ScoreValues::F64(vec![]),
    };
    Ok(all.unwrap_or(ScoreRows { count: 0, values: none, kept: vec![] }))
}

pub fn read_bytes(
    bytes: &[u8],
    format: TableFormat,
    labels: &[&str],
    keep: &[&str],
) -> Result<ScoreRows, Error> {
    let bytes = std::io::Cursor::new(bytes.to_vec());
    let (labels, keep, limits) = (names(labels), names(keep), Limits::default());
    let mut reader = ScoreReader::from_reader(bytes, "s", Some(format), &labels, &keep, &limits)?;
    read_all(&mut reader, 1000)
}

pub fn read_evidence(
    bytes: &[u8],
    format: TableFormat,
    labels: &[&str],
) -> Result<EvidenceRows, Error> {
    let bytes = std::io::Cursor::new(bytes.to_vec());
    let (labels, limits) = (names(labels), Limits::default());
    let mut reader = EvidenceReader::from_reader(bytes, "e", Some(format), &labels, &[], &limits)?;
    let rows = reader.next_rows(usize::MAX)?;
    Ok(rows.unwrap_or(EvidenceRows { count: 0, values: vec![], kept: vec![] }))
}

pub fn write(
    path: &Path,
    format: TableFormat,
    labels: &[String],
    kept: &[String],
    rows: &ScoreRows,
) {
    let number = rows.values.precision();
    let mut writer = ScoreWriter::create(path, format, labels, kept, number).unwrap();
    writer.write_rows(rows).unwrap();
    writer.finish().unwrap();
}

/// An npy file.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// Bytes packed with gzip.
pub fn gzip(content: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A zip file as NumPy writes it: sizes of members are 8 bytes long.
pub fn archive(members: &[(&str, &[u8])], packed: bool) -> Vec<u8> {
    use std::io::Write as _;
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(content).unwrap();
        let data = if packed { encoder.finish().unwrap() } else { content.to_vec() };
        let mut checksum = flate2::Crc::new();
        checksum.update(content);
        let start = out.len() as u64;
        let sizes = [content.len() as u64, data.len() as u64];
        let mut common = Vec::new();
        for value in [45, 0, if packed { 8 } else { 0 }, 0, 0x21] {
            common.extend(u16::to_le_bytes(value));
        }
        common.extend(checksum.sum().to_le_bytes());
        common.extend([0xff; 8]);
        common.extend((name.len() as u16).to_le_bytes());
        let extra = |values: &[u64]| {
            let mut extra = vec![1, 0];
            extra.extend((values.len() as u16 * 8).to_le_bytes());
            extra.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            extra
        };
        let local = extra(&sizes);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend((local.len() as u16).to_le_bytes());
        out.extend(name.bytes());
        out.extend(local);
        out.extend(data);
        let central = extra(&[sizes[0], sizes[1], start]);
        directory.extend(b"PK\x01\x02\x2d\x00");
        directory.extend(&common);
        directory.extend((central.len() as u16).to_le_bytes());
        directory.extend([0; 10]);
        directory.extend([0xff; 4]);
        directory.extend(name.bytes());
        directory.extend(central);
    }
    let (start, count) = (out.len() as u32, members.len() as u16);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    out
}
