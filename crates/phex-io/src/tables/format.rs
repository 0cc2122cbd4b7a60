//! The formats of tables: their names, and how to recognise them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A file format of tables. `docs/reference/tables.md` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableFormat {
    /// Text separated by commas, with a header.
    Csv,
    /// Text separated by tabs, with a header.
    Tsv,
    /// A NumPy array, without column names.
    Npy,
    /// Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// Every format, in the order of the documentation.
    pub const ALL: [TableFormat; 4] =
        [TableFormat::Csv, TableFormat::Tsv, TableFormat::Npy, TableFormat::Parquet];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TableFormat::Csv => "csv",
            TableFormat::Tsv => "tsv",
            TableFormat::Npy => "npy",
            TableFormat::Parquet => "parquet",
        }
    }

    /// The names of all formats, separated by commas.
    pub fn names() -> String {
        TableFormat::ALL.map(TableFormat::name).join(", ")
    }

    /// The format that the name of a file implies.
    ///
    /// ```
    /// use phex_io::TableFormat;
    /// assert_eq!(TableFormat::from_path("scores.NPY".as_ref()), Some(TableFormat::Npy));
    /// assert_eq!(TableFormat::from_path("scores".as_ref()), None);
    /// ```
    pub fn from_path(path: &Path) -> Option<TableFormat> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "csv" => TableFormat::Csv,
            "tsv" | "tab" => TableFormat::Tsv,
            "npy" => TableFormat::Npy,
            "parquet" | "pq" => TableFormat::Parquet,
            _ => return None,
        })
    }

    /// The format that the first bytes of a file imply: npy and Parquet files have marks, and a line
    /// of text is TSV if it has tabs, else CSV.
    ///
    /// ```
    /// use phex_io::TableFormat;
    /// assert_eq!(TableFormat::from_content(b"\x93NUMPY\x01\x00"), Some(TableFormat::Npy));
    /// assert_eq!(TableFormat::from_content(b"dog\tcat\n"), Some(TableFormat::Tsv));
    /// assert_eq!(TableFormat::from_content(b"PK\x03\x04\x00\x00"), None);
    /// ```
    pub fn from_content(start: &[u8]) -> Option<TableFormat> {
        if start.starts_with(NPY_MAGIC) {
            return Some(TableFormat::Npy);
        }
        if start.starts_with(PARQUET_MAGIC) {
            return Some(TableFormat::Parquet);
        }
        let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
        if line.is_empty() || line.iter().any(|&byte| byte < b' ' && !b"\t\r".contains(&byte)) {
            return None;
        }
        Some(if line.contains(&b'\t') { TableFormat::Tsv } else { TableFormat::Csv })
    }
}

/// The first bytes of an npy file.
pub(super) const NPY_MAGIC: &[u8] = b"\x93NUMPY";
/// The first bytes of a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

impl fmt::Display for TableFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TableFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<TableFormat, String> {
        let found = TableFormat::ALL.into_iter().find(|format| format.name() == name);
        let known = TableFormat::names;
        found.ok_or_else(|| format!("`{name}` is not a table format; the formats are {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for format in TableFormat::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(TableFormat::from_path(format!("x.{format}").as_ref()), Some(format));
        }
        assert!("xlsx".parse::<TableFormat>().unwrap_err().contains("csv, tsv, npy, parquet"));
        assert_eq!(TableFormat::from_content(b""), None);
        assert_eq!(TableFormat::from_content(b"dog\r\n1\r\n"), Some(TableFormat::Csv));
        assert_eq!(TableFormat::from_content(b"PAR1\x15"), Some(TableFormat::Parquet));
    }
}
