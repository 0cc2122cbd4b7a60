//! The header of an npy file: a few bytes, then a Python dictionary.
//!
//! ```text
//! \x93NUMPY 1 0 <length> {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
//! ```

use std::io::Read;

use super::npy_item::NpyItem;
use crate::tables::format::NPY_MAGIC;

/// How many bytes a header may have at most. Only structured types, which are not supported, have
/// longer ones.
const MAX_HEADER: usize = 64 * 1024;

/// The content of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NpyHeader {
    pub(super) item: NpyItem,
    pub(super) rows: u64,
    pub(super) columns: u64,
    /// Whether the array has one dimension; it is then read as a single column.
    pub(super) flat: bool,
    /// Whether the items stand column after column.
    pub(super) fortran: bool,
    /// The number of bytes before the items.
    pub(super) length: u64,
}

impl NpyHeader {
    /// Reads the header, and no further.
    pub(super) fn read(reader: &mut impl Read) -> Result<NpyHeader, String> {
        let mut take = |count: usize| -> Result<Vec<u8>, String> {
            let mut bytes = vec![0; count];
            let cut = |error| format!("the header of the npy file cannot be read: {error}");
            reader.read_exact(&mut bytes).map_err(cut)?;
            Ok(bytes)
        };
        let start = take(NPY_MAGIC.len() + 2)?;
        if !start.starts_with(NPY_MAGIC) {
            return Err(String::from("this is not an npy file: it does not start with \\x93NUMPY"));
        }
        let version = start[NPY_MAGIC.len()];
        let size = match version {
            1 => 2,
            2 | 3 => 4,
            _ => {
                return Err(format!("version {version} of npy files is unknown; save version 1"));
            }
        };
        let length = take(size)?.iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte));
        if length > MAX_HEADER {
            return Err(format!("the header of the npy file claims {length} bytes"));
        }
        let text = take(length)?;
        let text = std::str::from_utf8(&text)
            .map_err(|_| String::from("the header of the npy file is not text"))?;
        let mut header = NpyHeader::parse(text)?;
        header.length = (start.len() + size + length) as u64;
        Ok(header)
    }

    /// Refuses an array of one dimension.
    pub(super) fn check_dimensions(&self) -> Result<(), String> {
        if self.flat { Err(dimensions(1)) } else { Ok(()) }
    }

    /// The size of the whole file in bytes.
    fn size(&self) -> Result<u64, String> {
        let (rows, columns) = (self.rows, self.columns);
        let items = rows.checked_mul(columns).and_then(|n| n.checked_mul(self.item.size() as u64));
        let all = items.and_then(|bytes| bytes.checked_add(self.length));
        all.ok_or_else(|| format!("the header claims {rows} rows of {columns} numbers"))
    }

    /// Compares the claims with the size of the file, if that is known.
    pub(super) fn check(&self, size: Option<u64>) -> Result<(), String> {
        let (rows, columns, bytes) = (self.rows, self.columns, self.size()?);
        match size.filter(|&size| size != bytes) {
            None => Ok(()),
            Some(size) => Err(format!(
                "the header claims {rows} rows of {columns} numbers, {bytes} bytes in all, and \
                 the file has {size}: it is damaged or incomplete"
            )),
        }
    }

    /// Reads the dictionary.
    fn parse(text: &str) -> Result<NpyHeader, String> {
        let mut parser = HeaderParser { rest: text };
        let (mut item, mut fortran, mut shape) = (None, None, None);
        parser.expect("{")?;
        while !parser.skip("}") {
            let key = parser.string()?;
            parser.expect(":")?;
            match key {
                "descr" if parser.rest.trim_start().starts_with('[') => {
                    return Err(String::from(
                        "the items are structured; save a plain array of numbers, one column per label",
                    ));
                }
                "descr" => item = Some(NpyItem::from_descr(parser.string()?)?),
                "fortran_order" => fortran = Some(parser.boolean()?),
                "shape" => shape = Some(parser.shape()?),
                _ => {
                    return Err(format!(
                        "the npy header has the unknown key `{}`",
                        key.escape_debug()
                    ));
                }
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
        // Both orders are the same if there is one row or one column.
        let fortran = fortran && rows > 1 && columns > 1;
        Ok(NpyHeader { item, rows, columns, flat, fortran, length: 0 })
    }
}

fn dimensions(count: usize) -> String {
    format!("the array has {count} dimensions; a table has two, rows and columns")
}

/// Parses the subset of Python that headers use.
struct HeaderParser<'a> {
    rest: &'a str,
}

impl<'a> HeaderParser<'a> {
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
            // Python 2 wrote long numbers like this.
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
        let expected = NpyHeader {
            item: NpyItem::F4,
            rows: 3,
            columns: 2,
            flat: false,
            fortran: false,
            length: 0,
        };
        assert_eq!(NpyHeader::parse(text).unwrap(), expected);
        let text = "{\"shape\":(3L,2L),'fortran_order':False,'descr':'|b1'}";
        let expected = NpyHeader { item: NpyItem::Bool, ..expected };
        assert_eq!(NpyHeader::parse(text).unwrap(), expected);
    }

    #[test]
    fn the_order_matters_only_for_several_rows_and_columns() {
        for (shape, fortran) in [("(3, 2)", true), ("(1, 2)", false), ("(3, 1)", false)] {
            let text = format!("{{'descr': '<f4', 'fortran_order': True, 'shape': {shape}}}");
            assert_eq!(NpyHeader::parse(&text).unwrap().fortran, fortran, "{shape}");
        }
    }

    #[test]
    fn one_dimension_is_not_a_table() {
        let header = NpyHeader::parse("{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}");
        let header = header.unwrap();
        assert_eq!((header.rows, header.columns, header.item), (3, 1, NpyItem::U2));
        assert!(header.check_dimensions().unwrap_err().contains("1 dimensions"));
        assert_eq!(NpyItem::U4.value(&[0, 0, 0, 0x80]), 2f64.powi(31));
    }

    #[test]
    fn other_arrays_are_refused_with_help() {
        let cases = [
            ("'>f4', 'fortran_order': False, 'shape': (3, 2)", "astype('<f4')"),
            ("'<c8', 'fortran_order': False, 'shape': (3, 2)", "`<c8` are not supported"),
            ("'<f4', 'fortran_order': False, 'shape': (3, 2, 1)", "3 dimensions"),
            ("'<f4', 'fortran_order': False, 'shape': (-3, 2)", "where a number should be"),
            ("'<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2)", "a number"),
            ("'<f4', 'fortran_order': maybe, 'shape': (3, 2)", "True or False"),
            ("[('a', '<f4')], 'fortran_order': False, 'shape': (3,)", "structured"),
            ("'é', 'fortran_order': False, 'shape': (3, 2)", "are not supported"),
            ("'<f4'", "lacks"),
        ];
        for (rest, expected) in cases {
            let error = NpyHeader::parse(&format!("{{'descr': {rest}}}")).unwrap_err();
            assert!(error.contains(expected), "{rest}: {error}");
        }
    }
}
