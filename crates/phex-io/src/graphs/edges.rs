//! Edge lists: one relation per row, separated by commas (CSV) or tabs (TSV).
//!
//! ```csv
//! relation,a,b,strength
//! hierarchy,animal,dog,
//! hierarchy,animal,cat,u=0.5
//! exclusion,dog,cat,hard
//! one_of,species,dog,
//! one_of,species,cat,
//! ```
//!
//! Columns are found by name. In place of `strength`, one column `q`, `u` or `w` may hold the number
//! alone. An empty cell means the default strength, which is hard unless a row `default` says
//! otherwise.
//!
//! | relation          | a                                       | b                 |
//! |-------------------|-----------------------------------------|-------------------|
//! | `hierarchy`       | the parent                              | the child         |
//! | `exclusion`       | a label                                 | a label           |
//! | `one_of`          | the name of the group                   | a label of it     |
//! | `exclusion_group` | the name of the group                   | a label of it     |
//! | `label`           | a label                                 | its title, or empty |
//! | `exclude`         | an exclusion rule                       | empty             |
//! | `semantics`       | `sparse` or `dense`                     | empty             |
//! | `default`         | `all`, `hierarchy` or `exclusion`       | empty             |
//!
//! The rows of a group need not be adjacent. A group with the key `#1`, `#2`, … has no name, and one
//! with the key `#1 birds` is named `birds`; so groups without names, or with equal names, stay
//! apart. Rows `label`, if there are any, list all labels in order.
//!
//! A table with a column that starts with `parent` and one that starts with `child` is a list of
//! hierarchy edges.

use std::collections::HashMap;

use csv::StringRecord;
use phex::graph::{Defaults, ExclusionRule, Semantics, Strength};

use super::sink::GraphSink;
use crate::Error;
use crate::files::csv::CsvRecords;
use crate::files::text::{SourceText, shown};

const RELATIONS: &str =
    "hierarchy, exclusion, one_of, exclusion_group, label, exclude, semantics, default";

/// The unit of a column of strengths: cells name their own, or all have the same.
#[derive(Clone, Copy)]
enum StrengthUnit {
    Named,
    Fixed(fn(f64) -> Strength),
}

/// The positions of the columns.
struct EdgeColumns {
    /// `None`: every row is a hierarchy edge.
    relation: Option<usize>,
    a: usize,
    b: usize,
    strength: Option<(usize, StrengthUnit)>,
    count: usize,
}

impl EdgeColumns {
    fn find(
        source: &SourceText<'_>,
        line: usize,
        header: &StringRecord,
    ) -> Result<EdgeColumns, Error> {
        let names: Vec<String> = header.iter().map(|cell| cell.trim().to_lowercase()).collect();
        let pairs = !names.iter().any(|name| name == "relation");
        let (mut relation, mut a, mut b, mut strength) = (None, None, None, None);
        for (index, name) in names.iter().enumerate() {
            let twice = match name.as_str() {
                "relation" => relation.replace(index).is_some(),
                "a" if !pairs => a.replace(index).is_some(),
                "b" if !pairs => b.replace(index).is_some(),
                name if pairs && name.starts_with("parent") => a.replace(index).is_some(),
                name if pairs && name.starts_with("child") => b.replace(index).is_some(),
                "strength" => strength.replace((index, StrengthUnit::Named)).is_some(),
                "q" => strength.replace((index, StrengthUnit::Fixed(Strength::Q))).is_some(),
                "u" => strength.replace((index, StrengthUnit::Fixed(Strength::U))).is_some(),
                "w" => strength.replace((index, StrengthUnit::Fixed(Strength::W))).is_some(),
                _ => {
                    let message = format!(
                        "unknown column {}: an edge list has the columns `relation`, `a`, `b` and \
                         at most one of `strength`, `q`, `u`, `w`, or the columns `parent` and \
                         `child`; for a class × attribute table give the format `matrix`",
                        shown(name)
                    );
                    return Err(source.error(line, message));
                }
            };
            if twice {
                let what = if matches!(name.as_str(), "strength" | "q" | "u" | "w") {
                    "second column with a strength"
                } else {
                    "second column"
                };
                return Err(source.error(line, format!("{what}: {}", shown(name))));
            }
        }
        let wanted = if pairs { ("parent", "child") } else { ("a", "b") };
        let missing = |name| source.error(line, format!("the column `{name}` is missing"));
        Ok(EdgeColumns {
            relation,
            a: a.ok_or_else(|| missing(wanted.0))?,
            b: b.ok_or_else(|| missing(wanted.1))?,
            strength,
            count: names.len(),
        })
    }
}

/// A relation in the order of the file.
enum EdgeItem {
    Hierarchy(String, String, Option<Strength>),
    Exclusion(String, String, Option<Strength>),
    Group { one_of: bool, name: Option<String>, labels: Vec<String>, strength: Option<Strength> },
}

/// One row.
struct EdgeRow<'r> {
    source: &'r SourceText<'r>,
    line: usize,
    cells: &'r StringRecord,
    columns: &'r EdgeColumns,
}

impl<'r> EdgeRow<'r> {
    fn error(&self, message: String) -> Error {
        self.source.error(self.line, message)
    }

    fn required(&self, index: usize, what: &str) -> Result<&'r str, Error> {
        match self.cells.get(index).map(str::trim) {
            None | Some("") => Err(self.error(format!("the cell for {what} is empty"))),
            Some(cell) => Ok(cell),
        }
    }

    fn a(&self, what: &str) -> Result<&'r str, Error> {
        self.required(self.columns.a, what)
    }

    fn b(&self, what: &str) -> Result<&'r str, Error> {
        self.required(self.columns.b, what)
    }

    fn strength(&self) -> Result<Option<Strength>, Error> {
        let Some((index, unit)) = self.columns.strength else { return Ok(None) };
        let cell = self.cells.get(index).unwrap_or_default().trim();
        if cell.is_empty() {
            return Ok(None);
        }
        match unit {
            _ if cell.eq_ignore_ascii_case("hard") => Ok(Some(Strength::Hard)),
            StrengthUnit::Named => {
                Strength::parse(cell).map(Some).map_err(|fault| self.error(fault))
            }
            StrengthUnit::Fixed(unit) => match cell.parse() {
                Ok(number) => Ok(Some(unit(number))),
                Err(_) => Err(self.error(format!("{} is not a number or `hard`", shown(cell)))),
            },
        }
    }
}

/// The name that the key of a group stands for: none for `#1`, `birds` for `#1 birds`.
fn group_name(key: &str) -> Option<&str> {
    let Some(rest) = key.strip_prefix('#') else { return Some(key) };
    let name = rest.trim_start_matches(|char: char| char.is_ascii_digit());
    match name.strip_prefix(' ') {
        _ if name.len() == rest.len() => Some(key),
        Some(name) => Some(name),
        None if name.is_empty() => None,
        None => Some(key),
    }
}

/// The relations of a file. They are declared at the end, because the defaults and the labels come
/// first and may stand anywhere.
#[derive(Default)]
struct EdgeList {
    labels: Vec<(usize, String, Option<String>)>,
    items: Vec<(usize, EdgeItem)>,
    groups: HashMap<(bool, String), usize>,
    defaults: Option<(usize, Defaults)>,
}

impl EdgeList {
    fn add(&mut self, row: &EdgeRow<'_>, sink: &mut GraphSink) -> Result<(), Error> {
        let strength = row.strength()?;
        let relation = match row.columns.relation {
            Some(index) => row.required(index, "the relation")?,
            None => "hierarchy",
        };
        match relation {
            "hierarchy" => {
                let (parent, child) = (row.a("the parent")?, row.b("the child")?);
                let edge = EdgeItem::Hierarchy(parent.to_owned(), child.to_owned(), strength);
                self.items.push((row.line, edge));
            }
            "exclusion" => {
                let (a, b) = (row.a("the first label")?, row.b("the second label")?);
                self.items
                    .push((row.line, EdgeItem::Exclusion(a.to_owned(), b.to_owned(), strength)));
            }
            "one_of" => self.member(row, true, strength)?,
            "exclusion_group" => self.member(row, false, strength)?,
            "label" => {
                let title = row.cells.get(row.columns.b).filter(|title| !title.trim().is_empty());
                let name = row.a("the label")?.to_owned();
                self.labels.push((row.line, name, title.map(str::to_owned)));
            }
            "exclude" => {
                let name = row.a("the rule")?;
                let rule = ExclusionRule::ALL.into_iter().find(|rule| rule.name() == name);
                let rule = rule.ok_or_else(|| {
                    let known: Vec<_> = ExclusionRule::ALL.iter().map(|rule| rule.name()).collect();
                    let known = known.join(", ");
                    row.error(format!("unknown rule {}; the rules are {known}", shown(name)))
                })?;
                sink.at(row.line)?.exclusion_rule(rule, strength);
            }
            "semantics" => {
                let semantics = match row.a("the semantics")? {
                    "sparse" => Semantics::Sparse,
                    "dense" => Semantics::Dense,
                    other => {
                        let message = format!("{} is neither `sparse` nor `dense`", shown(other));
                        return Err(row.error(message));
                    }
                };
                sink.at(row.line)?.semantics(semantics);
            }
            "default" => {
                let (_, defaults) =
                    self.defaults.get_or_insert_with(|| (row.line, Defaults::default()));
                match row.a("the kind of relation")? {
                    "all" => defaults.strength = strength,
                    "hierarchy" => defaults.hierarchy = strength,
                    "exclusion" => defaults.exclusion = strength,
                    other => {
                        let kinds = "`all`, `hierarchy` or `exclusion`";
                        return Err(row.error(format!("{} is not {kinds}", shown(other))));
                    }
                }
            }
            other => {
                let message =
                    format!("unknown relation {}: it is one of {RELATIONS}", shown(other));
                return Err(row.error(message));
            }
        }
        Ok(())
    }

    fn member(
        &mut self,
        row: &EdgeRow<'_>,
        one_of: bool,
        strength: Option<Strength>,
    ) -> Result<(), Error> {
        let (key, label) = (row.a("the name of the group")?, row.b("the label")?);
        let name = if one_of { Some(key) } else { group_name(key) };
        let index = *self.groups.entry((one_of, key.to_owned())).or_insert_with(|| {
            let name = name.map(str::to_owned);
            self.items.push((row.line, EdgeItem::Group { one_of, name, labels: vec![], strength }));
            self.items.len() - 1
        });
        if let (first, EdgeItem::Group { labels, strength: agreed, .. }) = &mut self.items[index] {
            // A one-of group is always hard: an empty cell says the same as `hard`.
            let hard = |s: &Option<Strength>| s.is_none_or(Strength::is_hard);
            let same = *agreed == strength || (one_of && hard(agreed) && hard(&strength));
            if !same {
                let message = format!(
                    "the group {} has another strength in line {first}; give all its rows the same",
                    shown(key)
                );
                return Err(row.error(message));
            }
            labels.push(label.to_owned());
        }
        Ok(())
    }
}

pub(super) fn read(
    source: &SourceText<'_>,
    delimiter: u8,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let mut records = CsvRecords::of_text(source, delimiter)?;
    if !records.next()? {
        return Ok(());
    }
    let columns = EdgeColumns::find(source, records.line(), records.cells())?;
    let mut collected = EdgeList::default();
    while records.next()? {
        let cells = records.cells();
        let row = EdgeRow { source, line: records.line(), cells, columns: &columns };
        if cells.iter().skip(columns.count).any(|cell| !cell.trim().is_empty()) {
            let count = columns.count;
            return Err(row.error(format!("the row has more than the {count} cells of the header")));
        }
        collected.add(&row, sink)?;
    }
    declare(collected, sink)
}

fn declare(collected: EdgeList, sink: &mut GraphSink) -> Result<(), Error> {
    if let Some((line, defaults)) = collected.defaults {
        sink.at(line)?.defaults(defaults);
    }
    for (line, name, title) in &collected.labels {
        sink.label(*line, name, title.as_deref())?;
    }
    if !collected.labels.is_empty() {
        sink.at(1)?.close_labels();
    }
    for (line, item) in &collected.items {
        let builder = sink.at(*line)?;
        match item {
            EdgeItem::Hierarchy(parent, child, strength) => {
                builder.hierarchy(parent, child, *strength);
            }
            EdgeItem::Exclusion(a, b, strength) => {
                builder.exclusion(a, b, *strength);
            }
            EdgeItem::Group { one_of: false, name, labels, strength } => {
                let labels = labels.iter().map(String::as_str);
                builder.exclusion_group(name.as_deref(), labels, *strength);
            }
            EdgeItem::Group { one_of: true, name, labels, strength } => {
                let labels = labels.iter().map(String::as_str);
                builder.one_of(name.as_deref().unwrap_or_default(), labels, *strength);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::group_name;
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::{GraphBuilder, Strength};

    fn read(text: &str) -> Result<GraphBuilder, crate::Error> {
        parse_graph(text.as_bytes(), "g.csv", Format::Csv, &ReadOptions::default())
    }

    #[test]
    fn rows_become_relations_with_lines() {
        let text = "relation,a,b,strength\r\n\r\nhierarchy,animal,\"dog\",u=0.5\nhierarchy,animal,cat\n\
                    \n\none_of,species,dog,\nexclusion,dog,cat,hard\none_of,species,cat,\n";
        let graph = read(text).unwrap().build().unwrap();
        assert_eq!(graph.hierarchy()[0].strength, Strength::U(0.5));
        assert_eq!(graph.hierarchy()[0].place.line, Some(3));
        assert_eq!(graph.hierarchy()[1].place.line, Some(4));
        assert_eq!(graph.exclusions()[0].place.line, Some(8));
        assert_eq!(graph.one_of()[0].labels.len(), 2);
        assert_eq!(graph.one_of()[0].place.line, Some(7));
    }

    #[test]
    fn parent_and_child_columns_are_enough() {
        let graph = read("parent_wnid,child_wnid,q\na,b,0.1\n").unwrap().build().unwrap();
        assert_eq!(graph.hierarchy()[0].strength, Strength::Q(0.1));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let cases = [
            ("relation,a,c\n", "g.csv:1: unknown column `c`"),
            ("relation,a\n", "g.csv:1: the column `b` is missing"),
            ("relation,a,b,u,q\n", "g.csv:1: second column with a strength: `q`"),
            (
                "relation,a,b\nsubclass,x,y\n",
                "g.csv:2: unknown relation `subclass`: it is one of hier",
            ),
            ("relation,a,b\n\nhierarchy,x\n", "g.csv:3: the cell for the child is empty"),
            ("relation,a,b\nhierarchy,x,y,z\n", "g.csv:2: the row has more than"),
            ("relation,a,b,u\nhierarchy,x,y,much\n", "g.csv:2: `much` is not a number"),
            ("relation,a,b,strength\nhierarchy,x,y,z=2\n", "g.csv:2: `z=2` is not a strength"),
            ("relation,a,b,u\none_of,g,x,1\none_of,g,y,2\n", "g.csv:3: the group `g` has another"),
            ("relation,a,b\nexclude,sibling,\n", "g.csv:2: unknown rule `sibling`; the rules are"),
        ];
        for (text, start) in cases {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }

    #[test]
    fn numbered_groups_may_have_no_name() {
        assert_eq!(group_name("birds"), Some("birds"));
        assert_eq!(group_name("#12"), None);
        assert_eq!(group_name("#12 birds"), Some("birds"));
        assert_eq!(group_name("#birds"), Some("#birds"));
        assert_eq!(group_name("#1birds"), Some("#1birds"));
    }
}
