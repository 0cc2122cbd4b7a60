//! NumPy's archives: zip files with one array in each member, of which tables have one.
//!
//! ```text
//! member … member, directory, end        end: 22 bytes and a comment, 20 more before it if sizes are large
//! ```
//!
//! Only the directory at the end says what the archive holds. Its claims are compared with the length of the file
//! before anything is read. Cost: O(directory).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use flate2::CrcReader;

/// Bytes of the end of an archive, with the longest comment, and of the mark of large sizes before it.
const END: u64 = 22 + 0xffff + 20;
/// Bytes of a directory; one of more than this has many arrays.
const DIRECTORY: u64 = 1 << 16;
/// Arrays that are named if there are several.
const NAMED: usize = 4;

/// The only array of an archive.
#[derive(Debug)]
pub(super) struct NpzMember {
    /// Whether it is packed.
    pub(super) deflated: bool,
    /// Where its bytes start in the file, and how many there are.
    pub(super) start: u64,
    pub(super) size: u64,
    /// The checksum of its unpacked bytes.
    pub(super) checksum: u32,
}

/// A number of the archive, little-endian.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)))
}

/// What is wrong with an archive.
pub(super) enum NpzFault {
    Read(io::Error),
    Message(String),
}

impl From<io::Error> for NpzFault {
    fn from(error: io::Error) -> NpzFault {
        NpzFault::Read(error)
    }
}

fn damaged<T>() -> Result<T, NpzFault> {
    Err(NpzFault::Message(String::from("the archive is damaged or incomplete")))
}

fn read_at(file: &mut File, at: u64, size: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The place and size of the directory, and how many members it claims.
fn directory(file: &mut File, length: u64) -> Result<(u64, u64, u64), NpzFault> {
    let tail_start = length.saturating_sub(END);
    let tail = read_at(file, tail_start, END)?;
    let ends = (0..tail.len().saturating_sub(21)).rev();
    // The comment must reach to the end of the file.
    let found = ends.into_iter().find(|&at| {
        tail[at..].starts_with(b"PK\x05\x06")
            && number(&tail, at + 20, 2) == Some((tail.len() - at - 22) as u64)
    });
    let Some(at) = found else { return damaged() };
    let field = |offset, size| number(&tail, at + offset, size).unwrap_or(u64::MAX);
    let (count, size, start) = (field(10, 2), field(12, 4), field(16, 4));
    let mark = at.checked_sub(20).filter(|&mark| tail[mark..].starts_with(b"PK\x06\x07"));
    let Some(mark) = mark else { return Ok((start, size, count)) };
    let place = number(&tail, mark + 8, 8).unwrap_or(u64::MAX);
    let large = read_at(file, place.min(length), 56)?;
    if !large.starts_with(b"PK\x06\x06") {
        return damaged();
    }
    match (number(&large, 48, 8), number(&large, 40, 8), number(&large, 32, 8)) {
        (Some(start), Some(size), Some(count)) => Ok((start, size, count)),
        _ => damaged(),
    }
}

impl NpzMember {
    /// Finds the only array of an archive.
    pub(super) fn find(file: &mut File) -> Result<NpzMember, NpzFault> {
        let length = file.metadata()?.len();
        let (start, size, count) = directory(file, length)?;
        if start.checked_add(size).is_none_or(|end| end > length) {
            return damaged();
        }
        let entries = read_at(file, start, size.min(DIRECTORY))?;
        let mut names = Vec::new();
        let mut member = None;
        let mut at = 0;
        while at < entries.len() && names.len() <= NAMED {
            let Some((name, found, next)) = entry(&entries, at) else { break };
            names.push(name);
            (member, at) = (member.or(Some(found)), next);
        }
        let named = names.iter().take(NAMED).map(|name| format!("`{}`", name.escape_debug()));
        let named: Vec<String> = named.collect();
        match (member, count) {
            (Some(entry), 1) => entry.locate(file, length),
            (Some(_), _) => Err(NpzFault::Message(format!(
                "the archive has {count} arrays ({}{}), and a table is one: save it alone with numpy.save",
                named.join(", "),
                if count as usize > named.len() { ", …" } else { "" }
            ))),
            (None, 0) => Err(NpzFault::Message(String::from("the archive is empty"))),
            (None, _) => damaged(),
        }
    }
}

/// A member in the directory.
struct Entry {
    name: String,
    flags: u64,
    method: u64,
    checksum: u64,
    packed: u64,
    unpacked: u64,
    local: u64,
}

/// The name of a member, the member, and where the next one starts.
fn entry(directory: &[u8], at: usize) -> Option<(String, Entry, usize)> {
    if !directory.get(at..)?.starts_with(b"PK\x01\x02") {
        return None;
    }
    let field = |offset: usize, size: usize| number(directory, at + offset, size);
    let (name_size, extra_size) = (field(28, 2)? as usize, field(30, 2)? as usize);
    let name = directory.get(at + 46..at + 46 + name_size)?;
    let name = String::from_utf8_lossy(name).into_owned();
    let mut extra = directory.get(at + 46 + name_size..at + 46 + name_size + extra_size)?;
    let mut large = [field(24, 4)?, field(20, 4)?, field(42, 4)?];
    // Sizes that do not fit stand in a field of their own, in this order.
    while let (Some(kind), Some(size)) = (number(extra, 0, 2), number(extra, 2, 2)) {
        let content = extra.get(4..4 + size as usize)?;
        if kind == 1 {
            let mut place = 0;
            for value in large.iter_mut().filter(|value| **value == 0xffff_ffff) {
                *value = number(content, place, 8)?;
                place += 8;
            }
        }
        extra = &extra[4 + size as usize..];
    }
    let [unpacked, packed, local] = large;
    let (flags, method, checksum) = (field(8, 2)?, field(10, 2)?, field(16, 4)?);
    let next = at + 46 + name_size + extra_size + field(32, 2)? as usize;
    let found = Entry { name: name.clone(), flags, method, checksum, packed, unpacked, local };
    Some((name, found, next))
}

impl Entry {
    /// Where the bytes are: after a header that repeats what the directory says.
    fn locate(self, file: &mut File, length: u64) -> Result<NpzMember, NpzFault> {
        let message = |text: String| Err(NpzFault::Message(text));
        if !self.name.ends_with(".npy") {
            let name = self.name.escape_debug();
            return message(format!("the archive holds `{name}` and not an array of NumPy"));
        }
        if self.flags & 1 == 1 || !matches!(self.method, 0 | 8) {
            return message(String::from(
                "the archive is encrypted or packed in an unknown way; save it with numpy.savez",
            ));
        }
        let header = read_at(file, self.local.min(length), 30)?;
        let sizes = (number(&header, 26, 2), number(&header, 28, 2));
        let (Some(name), Some(extra), true) = (sizes.0, sizes.1, header.starts_with(b"PK\x03\x04"))
        else {
            return damaged();
        };
        let start = self.local + 30 + name + extra;
        let deflated = self.method == 8;
        if start.checked_add(self.packed).is_none_or(|end| end > length)
            || (!deflated && self.packed != self.unpacked)
        {
            return damaged();
        }
        let checksum = self.checksum as u32;
        Ok(NpzMember { deflated, start, size: self.packed, checksum })
    }
}

/// Bytes whose checksum is compared at their end.
pub(super) struct CheckedBytes<R: Read> {
    reader: CrcReader<R>,
    checksum: u32,
}

impl<R: Read> CheckedBytes<R> {
    pub(super) fn new(reader: R, checksum: u32) -> CheckedBytes<R> {
        CheckedBytes { reader: CrcReader::new(reader), checksum }
    }
}

impl<R: Read> Read for CheckedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        if count == 0 && !buffer.is_empty() && self.reader.crc().sum() != self.checksum {
            return Err(io::Error::other("its checksum is wrong: the archive is damaged"));
        }
        Ok(count)
    }
}
