//! The header of an npy file: a Python dictionary after a few bytes.
//!
//! ```text
//! \x93NUMPY 1 0 <length> {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
//! ```

use std::io::Read;

use super::format::NPY_MAGIC;
use super::{Number, cell};

/// How long a header may be: NumPy refuses longer ones of structured types, which are not read
/// here at all.
const MAX_HEADER: usize = 64 * 1024;

/// The type of the items, in the order of bytes of almost all machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    F2,
    F4,
    F8,
    I1,
    I2,
    I4,
    I8,
    U1,
    U2,
    U4,
    U8,
    Bool,
}

impl Item {
    fn from_descr(descr: &str) -> Result<Item, String> {
        let (order, kind) = descr.split_at_checked(1).unwrap_or(("", descr));
        let item = match kind {
            "f2" => Item::F2,
            "f4" => Item::F4,
            "f8" => Item::F8,
            "i1" => Item::I1,
            "i2" => Item::I2,
            "i4" => Item::I4,
            "i8" => Item::I8,
            "u1" => Item::U1,
            "u2" => Item::U2,
            "u4" => Item::U4,
            "u8" => Item::U8,
            "b1" => Item::Bool,
            _ => {
                return Err(format!(
                    "items of type `{}` are not read; save array.astype('float32')",
                    descr.escape_debug()
                ));
            }
        };
        if item.size() > 1 && order != "<" {
            return Err(format!(
                "the items are big-endian (`{}`); save array.astype('<{kind}')",
                descr.escape_debug()
            ));
        }
        Ok(item)
    }

    /// How many bytes an item has.
    pub(crate) fn size(self) -> usize {
        match self {
            Item::I1 | Item::U1 | Item::Bool => 1,
            Item::F2 | Item::I2 | Item::U2 => 2,
            Item::F4 | Item::I4 | Item::U4 => 4,
            Item::F8 | Item::I8 | Item::U8 => 8,
        }
    }

    /// The type of numbers that scores of this type become; none for those that are no scores.
    pub(crate) fn number(self) -> Option<Number> {
        match self {
            Item::F2 | Item::F4 => Some(Number::F32),
            Item::F8 => Some(Number::F64),
            _ => None,
        }
    }

    /// The value of an item, from as many bytes as it has.
    #[inline]
    pub(crate) fn value(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Item::F4, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (Item::F8, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            (Item::F2, &[a, b]) => cell::half_to_f64(u16::from_le_bytes([a, b])),
            (Item::I1, &[a]) => f64::from(a as i8),
            (Item::U1 | Item::Bool, &[a]) => f64::from(a),
            (Item::I2, &[a, b]) => f64::from(i16::from_le_bytes([a, b])),
            (Item::U2, &[a, b]) => f64::from(u16::from_le_bytes([a, b])),
            (Item::U4, &[a, b, c, d]) => f64::from(u32::from_le_bytes([a, b, c, d])),
            (Item::U8, &[a, b, c, d, e, f, g, h]) => {
                u64::from_le_bytes([a, b, c, d, e, f, g, h]) as f64
            }
            (Item::I4, &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
            (Item::I8, &[a, b, c, d, e, f, g, h]) => {
                i64::from_le_bytes([a, b, c, d, e, f, g, h]) as f64
            }
            _ => f64::NAN,
        }
    }
}

/// What an npy file says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) item: Item,
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    /// Whether the array has one dimension, which is then a single column.
    pub(crate) flat: bool,
    /// How many bytes come before the items.
    pub(crate) length: u64,
}

impl Header {
    /// Reads the header, and no further.
    pub(crate) fn read(reader: &mut impl Read) -> Result<Header, String> {
        let mut take = |count: usize| -> Result<Vec<u8>, String> {
            let mut bytes = vec![0; count];
            let cut = |error| format!("the header of the npy file cannot be read: {error}");
            reader.read_exact(&mut bytes).map_err(cut)?;
            Ok(bytes)
        };
        let start = take(NPY_MAGIC.len() + 2)?;
        if !start.starts_with(NPY_MAGIC) {
            return Err(String::from("this is no npy file: it does not start with \\x93NUMPY"));
        }
        let version = start[NPY_MAGIC.len()];
        let size = match version {
            1 => 2,
            2 | 3 => 4,
            _ => {
                return Err(format!("version {version} of npy files is not known; save version 1"));
            }
        };
        let length = take(size)?.iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte));
        if length > MAX_HEADER {
            return Err(format!("the header of the npy file claims {length} bytes"));
        }
        let text = take(length)?;
        let text = std::str::from_utf8(&text)
            .map_err(|_| String::from("the header of the npy file is not text"))?;
        let mut header = Header::parse(text)?;
        header.length = (start.len() + size + length) as u64;
        Ok(header)
    }

    /// Refuses an array of one dimension.
    pub(crate) fn table(self) -> Result<Header, String> {
        if self.flat { Err(dimensions(1)) } else { Ok(self) }
    }

    /// How many bytes the file has in all.
    pub(crate) fn size(&self) -> Result<u64, String> {
        let (rows, columns) = (self.rows, self.columns);
        let items = rows.checked_mul(columns).and_then(|n| n.checked_mul(self.item.size() as u64));
        let all = items.and_then(|bytes| bytes.checked_add(self.length));
        all.ok_or_else(|| format!("the header claims {rows} rows of {columns} numbers"))
    }

    /// Compares what is claimed with the size of the file, where that is known.
    pub(crate) fn check(&self, size: Option<u64>) -> Result<(), String> {
        let (rows, columns, bytes) = (self.rows, self.columns, self.size()?);
        match size.filter(|&size| size != bytes) {
            None => Ok(()),
            Some(size) => Err(format!(
                "the header claims {rows} rows of {columns} numbers, {bytes} bytes in all, and \
                 the file has {size}: it is damaged or cut"
            )),
        }
    }

    /// Reads the dictionary.
    fn parse(text: &str) -> Result<Header, String> {
        let mut parser = Parser { rest: text };
        let (mut item, mut fortran, mut shape) = (None, None, None);
        parser.expect("{")?;
        while !parser.skip("}") {
            let key = parser.string()?;
            parser.expect(":")?;
            match key {
                "descr" if parser.rest.trim_start().starts_with('[') => {
                    return Err(String::from(
                        "the items are structured; save a plain array of numbers, a column a label",
                    ));
                }
                "descr" => item = Some(Item::from_descr(parser.string()?)?),
                "fortran_order" => fortran = Some(parser.boolean()?),
                "shape" => shape = Some(parser.shape()?),
                _ => return Err(format!("the npy header has a key `{}`", key.escape_debug())),
            }
            if !parser.skip(",") {
                parser.expect("}")?;
                break;
            }
        }
        if !parser.rest.trim().is_empty() {
            return Err(parser.unexpected("the end"));
        }
        let (Some(item), Some(fortran), Some(shape)) = (item, fortran, shape) else {
            return Err(String::from("the npy header lacks `descr`, `fortran_order` or `shape`"));
        };
        let (rows, columns, flat) = match *shape.as_slice() {
            [rows] => (rows, 1, true),
            [rows, columns] => (rows, columns, false),
            _ => return Err(dimensions(shape.len())),
        };
        if fortran && rows > 1 && columns > 1 {
            return Err(String::from(
                "the array is in Fortran order; save numpy.ascontiguousarray(array)",
            ));
        }
        Ok(Header { item, rows, columns, flat, length: 0 })
    }
}

fn dimensions(count: usize) -> String {
    format!("the array has {count} dimensions; a table has two, rows and columns")
}

/// The little of Python that a header has.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip(&mut self, mark: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        if self.skip(mark) { Ok(()) } else { Err(self.unexpected(mark)) }
    }

    fn unexpected(&self, expected: &str) -> String {
        let found: String = self.rest.trim_start().chars().take(20).collect();
        format!("the npy header has `{}` where {expected} should be", found.escape_debug())
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let rest = self.rest.trim_start();
        let quote = if rest.starts_with('"') { '"' } else { '\'' };
        let text = rest.strip_prefix(quote).and_then(|rest| rest.split_once(quote));
        let (text, rest) = text.ok_or_else(|| self.unexpected("a text in quotes"))?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        if self.skip("True") {
            Ok(true)
        } else if self.skip("False") {
            Ok(false)
        } else {
            Err(self.unexpected("True or False"))
        }
    }

    fn shape(&mut self) -> Result<Vec<u64>, String> {
        self.expect("(")?;
        let mut shape = Vec::new();
        while !self.skip(")") {
            let rest = self.rest.trim_start();
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let size = rest[..digits].parse().map_err(|_| self.unexpected("a number"))?;
            shape.push(size);
            self.rest = &rest[digits..];
            // Python 2 wrote long numbers so.
            self.skip("L");
            if !self.skip(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }   \n";
        let expected = Header { item: Item::F4, rows: 3, columns: 2, flat: false, length: 0 };
        assert_eq!(Header::parse(text).unwrap(), expected);
        let text = "{\"shape\":(3L,2L),'fortran_order':False,'descr':'|b1'}";
        let expected = Header { item: Item::Bool, rows: 3, columns: 2, flat: false, length: 0 };
        assert_eq!(Header::parse(text).unwrap(), expected);
    }

    #[test]
    fn one_dimension_is_no_table() {
        let header = Header::parse("{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}");
        let header = header.unwrap();
        assert_eq!((header.rows, header.columns, header.item), (3, 1, Item::U2));
        assert!(header.table().unwrap_err().contains("1 dimensions"));
        assert_eq!(Item::U4.value(&[0, 0, 0, 0x80]), 2f64.powi(31));
    }

    #[test]
    fn other_arrays_are_refused_with_help() {
        let cases = [
            ("'<f4', 'fortran_order': True, 'shape': (3, 2)", "numpy.ascontiguousarray"),
            ("'>f4', 'fortran_order': False, 'shape': (3, 2)", "astype('<f4')"),
            ("'<c8', 'fortran_order': False, 'shape': (3, 2)", "`<c8` are not read"),
            ("'<f4', 'fortran_order': False, 'shape': (3, 2, 1)", "3 dimensions"),
            ("'<f4', 'fortran_order': False, 'shape': (-3, 2)", "where a number should be"),
            ("'<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2)", "a number"),
            ("'<f4', 'fortran_order': maybe, 'shape': (3, 2)", "True or False"),
            ("[('a', '<f4')], 'fortran_order': False, 'shape': (3,)", "structured"),
            ("'é', 'fortran_order': False, 'shape': (3, 2)", "are not read"),
            ("'<f4'", "lacks"),
        ];
        for (rest, expected) in cases {
            let error = Header::parse(&format!("{{'descr': {rest}}}")).unwrap_err();
            assert!(error.contains(expected), "{rest}: {error}");
        }
    }
}
