//! Tables that describe a hierarchy: their form, which the header shows, and their rows.
//!
//! | header                                     | form                                   |
//! |--------------------------------------------|----------------------------------------|
//! | `relation`, or `parent` and `child`        | edge list ([`super::edges`])           |
//! | `id`, `parent_id`, `name` or similar       | one row per label ([`parents`])        |
//! | `kingdom`, …, `species`; `level1`, `level2` | one column per level ([`levels`])      |
//! | `path`, `breadcrumb`, `lineage`, …         | path lines in a column ([`path_column`]) |

pub(super) mod levels;
pub(super) mod parents;
pub(super) mod path_column;
mod write;

use std::collections::HashMap;

use super::tree::value::{Located, MAX_VALUES, Value, read_json};
use crate::files::csv::CsvRecords;
use crate::files::text::{SourceText, shown};
use crate::{Error, Format};

pub(super) use write::{write_levels, write_parents};

/// A column name as it is compared: letters and digits in lower case, without a prefix such as
/// `dwc:`.
pub(super) fn normal(name: &str) -> String {
    let name = name.trim().trim_start_matches('\u{feff}');
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
    name.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The delimiter of a table: the one that its first line has most of, else the given one.
pub(super) fn delimiter(source: &SourceText<'_>, format: Format) -> u8 {
    let usual = if format == Format::Tsv { b'\t' } else { b',' };
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let count = |delimiter: u8| first.bytes().filter(|&byte| byte == delimiter).count();
    let others = [b'\t', b',', b';', b'|'].into_iter().filter(|&other| count(other) > 0);
    if count(usual) > 0 { usual } else { others.max_by_key(|&other| count(other)).unwrap_or(usual) }
}

/// What a header says that its table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableKind {
    Edges,
    Parents,
    Levels,
    Path,
    Unknown,
}

pub(super) fn kind(header: &[String]) -> TableKind {
    let names: Vec<String> = header.iter().map(|name| normal(name)).collect();
    let starts = |start: &str| names.iter().any(|name| name.starts_with(start));
    if starts("relation") || (starts("parent") && starts("child")) {
        TableKind::Edges
    } else if parents::Columns::find(&names).is_some() {
        TableKind::Parents
    } else if levels::Columns::find(&names).is_some() {
        TableKind::Levels
    } else if path_column::Columns::find(&names).is_some() {
        TableKind::Path
    } else {
        TableKind::Unknown
    }
}

/// The format that a table has, by its header; the given one where the header says nothing.
pub(super) fn form(source: &SourceText<'_>, format: Format) -> Format {
    let delimiter = delimiter(source, format);
    let Ok(mut records) = CsvRecords::of_text(source, delimiter) else { return format };
    if !records.next().unwrap_or(false) {
        return format;
    }
    let header: Vec<String> = records.cells().iter().map(str::to_owned).collect();
    match kind(&header) {
        TableKind::Parents => Format::Parents,
        TableKind::Levels => Format::Levels,
        TableKind::Path => Format::Paths,
        TableKind::Edges | TableKind::Unknown => format,
    }
}

/// Whether the text starts with a header that says what its table is, and its delimiter.
pub(super) fn has_header(text: &str) -> Option<Format> {
    let source = SourceText { name: "", text };
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let tabs = first.contains('\t');
    if !tabs && !first.contains([',', ';', '|']) {
        return None;
    }
    let usual = if tabs { Format::Tsv } else { Format::Csv };
    let form = form(&source, usual);
    (form != usual).then_some(form)
}

/// Rows of cells under a header.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) header: Vec<String>,
    /// The line of the header.
    pub(super) line: usize,
    pub(super) rows: Vec<(usize, Vec<String>)>,
}

impl Records {
    /// Reads a table of text, or records of JSON.
    pub(super) fn read(source: &SourceText<'_>) -> Result<Records, Error> {
        if source.text.trim_start().starts_with(['[', '{']) {
            return Records::of_json(source);
        }
        let mut records = CsvRecords::of_text(source, delimiter(source, Format::Csv))?;
        let mut table = Records { header: Vec::new(), line: 1, rows: Vec::new() };
        if !records.next()? {
            return Ok(table);
        }
        table.header = records.cells().iter().map(|cell| cell.trim().to_owned()).collect();
        table.line = records.line();
        let width = table.header.len();
        while records.next()? {
            let cells = records.cells();
            if cells.iter().skip(width).any(|cell| !cell.trim().is_empty()) {
                let message = format!("the row has more than the {width} cells of the header");
                return Err(records.error(message));
            }
            let mut row: Vec<String> =
                cells.iter().take(width).map(|c| c.trim().to_owned()).collect();
            row.resize(width, String::new());
            table.rows.push((records.line(), row));
        }
        Ok(table)
    }

    /// Records of JSON: a list of maps. The header has all keys in the order of their first mention.
    fn of_json(source: &SourceText<'_>) -> Result<Records, Error> {
        let list = read_json(source, source.text)?;
        let mut table = Records { header: Vec::new(), line: 1, rows: Vec::new() };
        let mut columns: HashMap<&str, usize> = HashMap::new();
        let mut values = 0;
        for item in list.items() {
            let mut row = vec![String::new(); table.header.len()];
            let mut line = item.line;
            for (at, (key, value)) in item.entries().iter().enumerate() {
                line = if at == 0 { key.line } else { line };
                let Some(key) = key.scalar() else { continue };
                let column = *columns.entry(key).or_insert_with(|| {
                    table.header.push(key.to_owned());
                    table.header.len() - 1
                });
                let cell = match &value.value {
                    Value::List(items) => {
                        let parts: Vec<&str> = items.iter().filter_map(Located::scalar).collect();
                        parts.join("|")
                    }
                    _ => value.scalar().unwrap_or_default().trim().to_owned(),
                };
                if row.len() <= column {
                    row.resize(column + 1, String::new());
                }
                row[column] = cell;
            }
            values += table.header.len();
            if values > MAX_VALUES {
                return Err(source.error(line, format!("more than {MAX_VALUES} cells")));
            }
            table.rows.push((line, row));
        }
        let width = table.header.len();
        if table.rows.len().saturating_mul(width) > MAX_VALUES {
            return Err(source.error(1, format!("more than {MAX_VALUES} cells")));
        }
        table.rows.iter_mut().for_each(|(_, row)| row.resize(width, String::new()));
        Ok(table)
    }

    /// The header, normalised.
    pub(super) fn names(&self) -> Vec<String> {
        self.header.iter().map(|name| normal(name)).collect()
    }

    /// The names of columns, quoted, for messages.
    pub(super) fn shown(&self, columns: impl IntoIterator<Item = usize>) -> String {
        let names: Vec<String> = columns.into_iter().map(|at| shown(&self.header[at])).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_tables_are() {
        let cases = [
            ("relation,a,b", TableKind::Edges),
            ("parent_wnid,child_wnid", TableKind::Edges),
            ("id,parent_id,name", TableKind::Parents),
            ("name,parent", TableKind::Parents),
            ("taxonID,parentNameUsageID,scientificName,kingdom,family", TableKind::Parents),
            ("Class ID,Preferred Label,Parents", TableKind::Parents),
            ("kingdom,phylum,class", TableKind::Levels),
            ("level1,level2,level3", TableKind::Levels),
            ("0,1,2", TableKind::Levels),
            ("category_id,category,subcategory_id,subcategory", TableKind::Levels),
            ("id,path", TableKind::Path),
            ("Feature ID,Taxon,Confidence", TableKind::Path),
            ("class,furry,swims", TableKind::Unknown),
            ("dog,cat", TableKind::Unknown),
        ];
        for (header, expected) in cases {
            let header: Vec<String> = header.split(',').map(str::to_owned).collect();
            assert_eq!(kind(&header), expected, "{header:?}");
        }
    }

    #[test]
    fn delimiters_are_found() {
        for (text, format, expected) in [
            ("a;b;c\n", Format::Csv, b';'),
            ("a,b;c\n", Format::Csv, b','),
            ("a,b\n", Format::Tsv, b','),
            ("a\n", Format::Tsv, b'\t'),
        ] {
            assert_eq!(delimiter(&SourceText { name: "", text }, format), expected, "{text}");
        }
    }
}
