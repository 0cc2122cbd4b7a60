//! The claims of a Parquet file, checked before the library believes them.
//!
//! Footers and page headers are structs of Thrift's compact protocol. The library makes room for as many row groups and
//! children as a footer claims, goes as deep as its schema, and believes that each known field has the type that it should
//! have. So this walk comes first. It follows the same rules as the library, with the types of all known fields:
//!
//! - A list has at most as many items as bytes follow, and every item is really there.
//! - Structs and schemas are at most [`DEEPEST`] deep, and the children of a schema are its elements.
//! - The names of all columns with the groups that they are in take at most [`NAME_BYTES`].
//! - A page lies in its column chunk and unpacks to at most [`PAGE_BYTES`], and all pages of a chunk to at most as much as
//!   the footer says. Large pages are at most [`RATIO`] times as large as their compressed form.
//!
//! Time is O(bytes of the footer), memory O(depth).

/// How deep structs and schemas may be.
const DEEPEST: usize = 64;
/// How many bytes the footer may have.
pub(super) const FOOTER_BYTES: u64 = 64 << 20;
/// How many bytes the names of all columns may have, each with the names of its groups.
const NAME_BYTES: u64 = 64 << 20;
/// How many bytes a page may unpack to.
const PAGE_BYTES: i64 = 256 << 20;
/// How many values a page may have.
const PAGE_VALUES: i64 = 1 << 26;
/// Pages of up to this many bytes may be compressed by any factor, and larger ones by [`RATIO`].
const SMALL_PAGE: i64 = 16 << 20;
const RATIO: i64 = 1000;
/// How many bytes the header of a page may have.
const HEADER_BYTES: usize = 1 << 20;

/// The type of a field.
enum Shape {
    Bool,
    Byte,
    /// Whole numbers of 16, 32 and 64 bits.
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Shape),
    Struct(&'static Fields),
    /// A field of encrypted files.
    Encrypted,
}

/// The fields of a struct by their numbers. Others are skipped by the type that they claim.
type Fields = [(i64, Shape)];

use Shape::{Binary, Bool, Byte, Double, Encrypted, I16, I32, I64, List, Struct};

const KEY_VALUE: &Fields = &[(1, Binary), (2, Binary)];
const TIME: &Fields = &[(1, Bool), (2, Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))];
const EMPTY: Shape = Struct(&[]);
const LOGICAL_TYPE: &Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, I32), (2, I32)])),
    (6, EMPTY),
    (7, Struct(TIME)),
    (8, Struct(TIME)),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, I32)])),
];
const NAME: i64 = 4;
const CHILDREN: i64 = 5;
const SCHEMA_ELEMENT: &Fields = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (NAME, Binary),
    (CHILDREN, I32),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (10, Struct(LOGICAL_TYPE)),
];
const STATISTICS: &Fields = &[
    (1, Binary),
    (2, Binary),
    (3, I64),
    (4, I64),
    (5, Binary),
    (6, Binary),
    (7, Bool),
    (8, Bool),
    (9, I64),
];
const BOX: &Fields = &[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
];
const COLUMN: &Fields = &[
    (1, I32),
    (2, List(&I32)),
    (3, List(&Binary)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (8, List(&Struct(KEY_VALUE))),
    (9, I64),
    (10, I64),
    (11, I64),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(&[(1, I32), (2, I32), (3, I32)]))),
    (14, I64),
    (15, I32),
    (16, Struct(&[(1, I64), (2, List(&I64)), (3, List(&I64))])),
    (17, Struct(&[(1, Struct(BOX)), (2, List(&I32))])),
];
const CHUNK: &Fields = &[
    (1, Binary),
    (2, I64),
    (3, Struct(COLUMN)),
    (4, I64),
    (5, I32),
    (6, I64),
    (7, I32),
    (8, Encrypted),
    (9, Encrypted),
];
const ROW_GROUP: &Fields = &[
    (1, List(&Struct(CHUNK))),
    (2, I64),
    (3, I64),
    (4, List(&Struct(&[(1, I32), (2, Bool), (3, Bool)]))),
    (5, I64),
    (6, I64),
    (7, I16),
];
const SCHEMA: i64 = 2;
const FOOTER: &Fields = &[
    (1, I32),
    (SCHEMA, List(&Struct(SCHEMA_ELEMENT))),
    (3, I64),
    (4, List(&Struct(ROW_GROUP))),
    (5, List(&Struct(KEY_VALUE))),
    (6, Binary),
    (7, List(&Struct(&[(1, EMPTY), (2, EMPTY)]))),
    (8, Encrypted),
    (9, Encrypted),
];
const HEADER: &Fields = &[
    (1, I32),
    (UNPACKED, I32),
    (PACKED, I32),
    (4, I32),
    (5, Struct(&[(VALUES, I32), (2, I32), (3, I32), (4, I32), (5, Struct(STATISTICS))])),
    (6, EMPTY),
    (7, Struct(&[(VALUES, I32), (2, I32), (3, Bool)])),
    (8, Struct(V2)),
];
const UNPACKED: i64 = 2;
const PACKED: i64 = 3;
const VALUES: i64 = 1;
const V2: &Fields = &[
    (VALUES, I32),
    (2, I32),
    (3, I32),
    (4, I32),
    (5, I32),
    (6, I32),
    (7, Bool),
    (8, Struct(STATISTICS)),
];

/// What is wrong with the claims, as the end of "it has …".
type Checked<T> = Result<T, &'static str>;

/// Checks the claims of a footer.
pub(super) fn check_footer(footer: &[u8]) -> Checked<()> {
    let mut walk = Walk { data: footer, depth: 0 };
    let mut last = 0;
    while let Some((id, kind)) = walk.field(&mut last)? {
        if id == SCHEMA {
            walk.expect(kind, LIST)?;
            walk.schema()?;
        } else {
            walk.known(FOOTER, id, kind, &mut |_, _| ())?;
        }
    }
    Ok(())
}

/// The claims of a page's header.
#[derive(Debug, Default)]
struct PageClaims {
    /// Bytes of the header.
    header: u64,
    unpacked: i64,
    packed: i64,
    values: i64,
}

/// Checks all pages of a column chunk. `read` gives at most so many bytes from an offset on, and fewer at the end of the
/// chunk only.
pub(super) fn check_pages<B: AsRef<[u8]>, E>(
    length: u64,
    unpacked: u64,
    mut read: impl FnMut(u64, usize) -> Result<B, E>,
) -> Result<Checked<()>, E> {
    let (mut at, mut left) = (0, unpacked);
    while at < length {
        let page = match PageClaims::read(read(at, 1 << 10)?.as_ref()) {
            Ok(page) => page,
            // The header may hold long statistics.
            Err(_) => match PageClaims::read(read(at, HEADER_BYTES)?.as_ref()) {
                Ok(page) => page,
                Err(what) => return Ok(Err(what)),
            },
        };
        let PageClaims { header, unpacked, packed, values } = page;
        let room = length - at - header;
        if packed < 0 || packed as u64 > room {
            return Ok(Err("a page that is not inside its column"));
        }
        let bomb = unpacked > SMALL_PAGE && unpacked / RATIO > packed;
        if !(0..=PAGE_BYTES).contains(&unpacked) || unpacked as u64 > left || bomb {
            return Ok(Err("a page that unpacks to more than is allowed, or than the footer says"));
        }
        if !(0..=PAGE_VALUES).contains(&values) {
            return Ok(Err("a page with an impossible number of values"));
        }
        left -= unpacked as u64;
        at += header + packed as u64;
    }
    Ok(Ok(()))
}

impl PageClaims {
    fn read(data: &[u8]) -> Checked<PageClaims> {
        let mut walk = Walk { data, depth: 0 };
        let mut claims = PageClaims::default();
        let mut last = 0;
        while let Some((id, kind)) = walk.field(&mut last)? {
            let mut note = |inner: i64, value: i64| match (id, inner) {
                (UNPACKED, UNPACKED) => claims.unpacked = value,
                (PACKED, PACKED) => claims.packed = value,
                (5 | 7 | 8, VALUES) => claims.values = value,
                _ => {}
            };
            walk.known(HEADER, id, kind, &mut note)?;
        }
        claims.header = (data.len() - walk.data.len()) as u64;
        Ok(claims)
    }
}

/// Types on the wire.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const WHOLE: [u8; 3] = [4, 5, 6];
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// The bytes that are left, and how many structs and lists are open.
struct Walk<'d> {
    data: &'d [u8],
    depth: usize,
}

impl Walk<'_> {
    fn byte(&mut self) -> Checked<u8> {
        let (&first, rest) = self.data.split_first().ok_or("an end in the middle")?;
        self.data = rest;
        Ok(first)
    }

    fn skip(&mut self, count: u64) -> Checked<()> {
        let rest = usize::try_from(count).ok().and_then(|count| self.data.get(count..));
        self.data = rest.ok_or("a text that is longer than the rest")?;
        Ok(())
    }

    /// A number in seven bits per byte.
    fn number(&mut self) -> Checked<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number of more than 64 bits")
    }

    fn signed(&mut self) -> Checked<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// The number and the type of the next field of a struct; none at its end.
    fn field(&mut self, last: &mut i64) -> Checked<Option<(i64, u8)>> {
        let head = self.byte()?;
        let (step, kind) = (i64::from(head >> 4), head & 15);
        if kind == 0 {
            return Ok(None);
        }
        *last = if step == 0 { self.signed()? } else { *last + step };
        if !(0..=i64::from(i16::MAX)).contains(last) {
            return Err("a field with an impossible number");
        }
        Ok(Some((*last, kind)))
    }

    /// The type of the items of a list and how many there are.
    fn list(&mut self) -> Checked<(u8, u64)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.number()?,
            count => u64::from(count),
        };
        if count > self.data.len() as u64 {
            return Err("a list that is longer than the rest");
        }
        Ok((head & 15, count))
    }

    fn expect(&self, kind: u8, expected: u8) -> Checked<()> {
        if kind == expected { Ok(()) } else { Err("a field of the wrong type") }
    }

    /// A field of a struct with these fields. Whole numbers and the lengths of texts are noted.
    fn known(
        &mut self,
        fields: &'static Fields,
        id: i64,
        kind: u8,
        note: &mut dyn FnMut(i64, i64),
    ) -> Checked<()> {
        match fields.iter().find(|(known, _)| *known == id) {
            Some((_, shape)) => self.shaped(shape, kind, id, note),
            None => self.any(kind),
        }
    }

    fn shaped(
        &mut self,
        shape: &'static Shape,
        kind: u8,
        id: i64,
        note: &mut dyn FnMut(i64, i64),
    ) -> Checked<()> {
        match shape {
            Encrypted => Err("encrypted columns, which are not supported"),
            Bool => {
                if matches!(kind, TRUE | FALSE) {
                    Ok(())
                } else {
                    Err("a field of the wrong type")
                }
            }
            Byte => self.expect(kind, BYTE).and_then(|()| self.skip(1)),
            I16 | I32 | I64 => {
                let wire = match shape {
                    I16 => WHOLE[0],
                    I32 => WHOLE[1],
                    _ => WHOLE[2],
                };
                self.expect(kind, wire)?;
                note(id, self.signed()?);
                Ok(())
            }
            Double => self.expect(kind, DOUBLE).and_then(|()| self.skip(8)),
            Binary => {
                self.expect(kind, BINARY)?;
                let length = self.number()?;
                note(id, i64::try_from(length).unwrap_or(i64::MAX));
                self.skip(length)
            }
            List(item) => {
                self.expect(kind, LIST)?;
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| {
                    self.deeper(|walk| walk.shaped(item, kind, id, &mut |_, _| ()))
                })
            }
            Struct(fields) => {
                self.expect(kind, STRUCT)?;
                self.deeper(|walk| walk.fields(fields, note))
            }
        }
    }

    /// All fields of a struct.
    fn fields(&mut self, fields: &'static Fields, note: &mut dyn FnMut(i64, i64)) -> Checked<()> {
        let mut last = 0;
        while let Some((id, kind)) = self.field(&mut last)? {
            // Only the fields of this struct itself are noted.
            if kind == STRUCT {
                self.known(fields, id, kind, &mut |_, _| ())?;
            } else {
                self.known(fields, id, kind, note)?;
            }
        }
        Ok(())
    }

    /// A field that is not known.
    fn any(&mut self, kind: u8) -> Checked<()> {
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.skip(1),
            4..=6 => self.number().map(drop),
            DOUBLE => self.skip(8),
            BINARY => {
                let length = self.number()?;
                self.skip(length)
            }
            LIST | SET => {
                let (kind, count) = self.list()?;
                if count > 0 && matches!(kind, 0 | TRUE | FALSE) {
                    // The library skips these without reading any bytes, however many are claimed.
                    return Err("a list of truth values");
                }
                (0..count).try_for_each(|_| self.deeper(|walk| walk.any(kind)))
            }
            STRUCT => self.deeper(|walk| {
                let mut last = 0;
                while let Some((_, kind)) = walk.field(&mut last)? {
                    walk.any(kind)?;
                }
                Ok(())
            }),
            _ => Err("a field of an unknown type"),
        }
    }

    fn deeper(&mut self, inner: impl FnOnce(&mut Self) -> Checked<()>) -> Checked<()> {
        if self.depth == DEEPEST {
            return Err("too many structs inside one another");
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// The schema: a list of elements, each of which is followed by its children.
    fn schema(&mut self) -> Checked<()> {
        let (kind, count) = self.list()?;
        // The groups that are open: how many of their children are to come, and the bytes of their names.
        let mut open: Vec<(u64, u64)> = Vec::new();
        let mut name_bytes = 0;
        for at in 0..count {
            self.expect(kind, STRUCT)?;
            let (mut name, mut children) = (0, 0);
            self.deeper(|walk| {
                walk.fields(SCHEMA_ELEMENT, &mut |id, value| match id {
                    NAME => name = value,
                    CHILDREN => children = value,
                    _ => {}
                })
            })?;
            while open.last().is_some_and(|(children, _)| *children == 0) {
                open.pop();
            }
            let above = match open.last_mut() {
                Some((children, path)) => {
                    *children -= 1;
                    *path
                }
                None if at == 0 => 0,
                None => return Err("a column outside its schema"),
            };
            let path = above + name as u64;
            name_bytes += path;
            if name_bytes > NAME_BYTES {
                return Err("names of columns that are too long");
            }
            if children < 0 || children as u64 > count - at - 1 {
                return Err("a group with more children than the schema has");
            }
            if children > 0 {
                if open.len() == DEEPEST {
                    return Err("groups that are too deep");
                }
                open.push((children as u64, path));
            }
        }
        if open.iter().any(|(children, _)| *children > 0) {
            return Err("a group with more children than the schema has");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page with a header of these claims and so many bytes.
    fn page(unpacked: u32, packed: u32, values: u32, bytes: usize) -> Vec<u8> {
        let mut page = vec![0x15, 0];
        let mut number = |head: u8, value: u32| {
            page.push(head);
            let mut left = u64::from(value) << 1;
            while left > 0x7f {
                page.push(left as u8 | 0x80);
                left >>= 7;
            }
            page.push(left as u8);
        };
        number(0x15, unpacked);
        number(0x15, packed);
        number(0x2c, 0);
        page.pop();
        let mut rest = vec![0x15];
        let mut left = u64::from(values) << 1;
        while left > 0x7f {
            rest.push(left as u8 | 0x80);
            left >>= 7;
        }
        rest.push(left as u8);
        page.extend(rest);
        page.extend([0x15, 0, 0x15, 6, 0x15, 6, 0, 0]);
        page.extend(vec![0; bytes]);
        page
    }

    fn checked(chunk: &[u8], unpacked: u64) -> Checked<()> {
        let read = |at: u64, most: usize| {
            let rest = &chunk[at as usize..];
            Ok::<_, ()>(&rest[..most.min(rest.len())])
        };
        check_pages(chunk.len() as u64, unpacked, read).unwrap()
    }

    #[test]
    fn pages_keep_what_the_footer_says() {
        let good = page(80, 40, 10, 40);
        assert_eq!(checked(&good, 80), Ok(()));
        let two = [&good[..], &good].concat();
        assert_eq!(checked(&two, 160), Ok(()));
        let claims = |chunk: &[u8], unpacked: u64| checked(chunk, unpacked).unwrap_err();
        let more = "a page that unpacks to more than is allowed, or than the footer says";
        assert_eq!(claims(&two, 159), more);
        assert_eq!(claims(&page(1 << 31, 40, 10, 40), u64::MAX), more);
        assert_eq!(claims(&page(100 << 20, 40, 10, 40), u64::MAX), more, "a bomb");
        assert_eq!(claims(&page(80, 41, 10, 40), 80), "a page that is not inside its column");
        let values = "a page with an impossible number of values";
        assert_eq!(claims(&page(80, 40, 1_000_000_000, 40), 80), values);
        for end in 1..20 {
            assert!(checked(&good[..end], 80).is_err(), "{end}");
        }
    }
}
