//! Tables with one row per label that names its parent: `id,parent_id,name` in any order and under
//! similar names, Darwin Core's `taxonID`, `parentNameUsageID`, `scientificName`, and JSON records.
//!
//! The parent column is recognised by its name. If its cells refer to ids, the ids are the labels and
//! the names their titles. If more cells are found in the name column, the names are the labels. A
//! parent that is empty, `0`, `-1`, `NULL`, … or the label itself makes a root. A
//! cell may hold several parents, separated by `|`, `;` or commas. Synonyms, whose
//! `acceptedNameUsageID` is another label, and obsolete rows are skipped and counted.

use std::collections::HashSet;

use super::Records;
use crate::Error;
use crate::files::text::{SourceText, shown};
use crate::graphs::sink::GraphSink;

/// Names of parent columns, best first. What starts or ends with `parent` comes after them.
const PARENTS: [&str; 19] = [
    "parentnameusageid",
    "parentid",
    "parentcode",
    "parentkey",
    "parenttaxid",
    "parenttaxonid",
    "parent",
    "parents",
    "parentids",
    "parentname",
    "parentnameusage",
    "broader",
    "broaderid",
    "supercategory",
    "supercategoryid",
    "subclassof",
    "isa",
    "hypernym",
    "belongsto",
];
/// Names of id columns, best first.
const IDS: [&str; 17] = [
    "id",
    "taxonid",
    "taxid",
    "code",
    "key",
    "identifier",
    "wnid",
    "uid",
    "uuid",
    "labelid",
    "categoryid",
    "classid",
    "nodeid",
    "conceptid",
    "termid",
    "iri",
    "uri",
];
/// Names of name columns, best first.
const NAMES: [&str; 21] = [
    "name",
    "title",
    "label",
    "preferredlabel",
    "preflabel",
    "canonicalname",
    "scientificname",
    "displayname",
    "taxonname",
    "categoryname",
    "classname",
    "labelname",
    "nodename",
    "category",
    "class",
    "taxon",
    "term",
    "node",
    "words",
    "description",
    "commonname",
];
/// Cells that say that there is no parent, unless a label has that id.
const NONE: [&str; 12] =
    ["0", "-1", "null", "none", "nan", "na", "n/a", "nil", "\\n", "root", "#", "-"];

/// The positions of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::graphs) struct Columns {
    parent: usize,
    key: usize,
    name: Option<usize>,
    accepted: Option<usize>,
    obsolete: Option<usize>,
}

impl Columns {
    /// The columns by their normalised names, if one of them names parents.
    pub(in crate::graphs) fn find(names: &[String]) -> Option<Columns> {
        let at = |name: &str| names.iter().position(|other| other == name);
        let first = |wanted: &[&str]| wanted.iter().find_map(|name| at(name));
        let like_parent = |name: &&String| {
            name.starts_with("parent") || name.ends_with("parent") || name.ends_with("parentid")
        };
        let parent =
            first(&PARENTS).or_else(|| names.iter().find(like_parent).and_then(|name| at(name)))?;
        // `parent_category` belongs to `category`.
        let stem = names[parent].replacen("parent", "", 1);
        let other = |found: usize| (found != parent).then_some(found);
        let ending = |endings: &[&str]| {
            let found = names.iter().enumerate().find(|(index, name)| {
                *index != parent
                    && !like_parent(name)
                    && name.as_str() != "acceptednameusageid"
                    && endings.iter().any(|ending| name.ends_with(ending))
            });
            found.map(|(index, _)| index)
        };
        let by_stem = if stem.is_empty() || stem == names[parent] { None } else { at(&stem) };
        let id = by_stem
            .or_else(|| first(&IDS))
            .and_then(other)
            .or_else(|| ending(&["id", "code", "key"]));
        let name = first(&NAMES).and_then(other).or_else(|| ending(&["name", "label"]));
        let key = id.or(name).or_else(|| (0..names.len()).find(|&index| index != parent))?;
        let name = name.filter(|&name| name != key);
        let accepted = at("acceptednameusageid");
        let obsolete = first(&["obsolete", "isobsolete", "deprecated"]);
        Some(Columns { parent, key, name, accepted, obsolete })
    }
}

/// Finds the parents of rows.
struct Resolved<'t> {
    /// The labels that have a row.
    known: HashSet<&'t str>,
    /// The parents that have none.
    strangers: HashSet<&'t str>,
    /// The first of them, with its line.
    stranger: Option<(usize, &'t str)>,
}

pub(in crate::graphs) fn read(
    source: &SourceText<'_>,
    table: &Records,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    if table.header.is_empty() {
        return Ok(());
    }
    let Some(mut columns) = Columns::find(&table.names()) else {
        let message = format!(
            "no column names the parent: the columns are {}; call one of them `parent`",
            table.shown(0..table.header.len())
        );
        return Err(source.error(table.line, message));
    };
    let rows = kept_rows(table, &columns, sink)?;
    by_name_or_id(&rows, &mut columns);
    let known: HashSet<&str> = rows.iter().map(|(_, row)| row[columns.key].as_str()).collect();
    let mut resolved = Resolved { known, strangers: HashSet::new(), stranger: None };
    for (line, row) in &rows {
        let key = row[columns.key].as_str();
        if key.is_empty() {
            let column = shown(&table.header[columns.key]);
            return Err(source.error(*line, format!("the cell of the column {column} is empty")));
        }
        let title = columns.name.map(|name| row[name].as_str()).filter(|title| !title.is_empty());
        sink.label_once(*line, key, title)?;
    }
    let mut edges = HashSet::new();
    for (line, row) in &rows {
        let key = row[columns.key].as_str();
        for parent in resolved.parents(*line, key, &row[columns.parent]) {
            if edges.insert((parent, key)) {
                sink.at(*line)?.hierarchy(parent, key, None);
            }
        }
    }
    if let Some((line, first)) = resolved.stranger {
        let message = match resolved.strangers.len() {
            1 => format!(
                "the parent {} has no row of its own; it is a label without a title",
                shown(first)
            ),
            count => format!(
                "{count} parents have no row of their own, such as {}; they are labels without a title",
                shown(first)
            ),
        };
        sink.note(line, message)?;
    }
    Ok(())
}

/// The rows without synonyms and obsolete ones.
fn kept_rows<'t>(
    table: &'t Records,
    columns: &Columns,
    sink: &mut GraphSink,
) -> Result<Vec<(usize, &'t [String])>, Error> {
    let (mut synonyms, mut obsolete) = (0, 0);
    let kept = table.rows.iter().filter(|(_, row)| {
        let synonym = columns.accepted.is_some_and(|at| {
            let accepted = row[at].as_str();
            !accepted.is_empty() && accepted != row[columns.key]
        });
        let old = columns
            .obsolete
            .is_some_and(|at| ["true", "1", "yes"].contains(&row[at].to_lowercase().as_str()));
        synonyms += usize::from(synonym);
        obsolete += usize::from(old && !synonym);
        !synonym && !old
    });
    let kept = kept.map(|(line, row)| (*line, row.as_slice())).collect();
    for (count, what) in [(synonyms, "synonyms"), (obsolete, "obsolete labels")] {
        if count > 0 {
            let rows = if count == 1 { "row" } else { "rows" };
            sink.note(table.line, format!("{count} {rows} of {what} skipped"))?;
        }
    }
    Ok(kept)
}

/// Makes the names the labels where parents are given by name.
fn by_name_or_id(rows: &[(usize, &[String])], columns: &mut Columns) {
    let Some(name) = columns.name else { return };
    let found = |column: usize| {
        let known: HashSet<&str> = rows.iter().map(|(_, row)| row[column].as_str()).collect();
        rows.iter().filter(|(_, row)| known.contains(whole(&row[columns.parent], &known))).count()
    };
    if found(name) > found(columns.key) {
        (columns.key, columns.name) = (name, None);
    }
}

/// The cell, or the whole number that it means: pandas writes `3.0` where a column has gaps.
fn whole<'t>(cell: &'t str, known: &HashSet<&str>) -> &'t str {
    match cell.strip_suffix(".0") {
        Some(number) if !known.contains(cell) && known.contains(number) => number,
        _ => cell,
    }
}

impl<'t> Resolved<'t> {
    /// The parents of a row.
    fn parents(&mut self, line: usize, key: &str, cell: &'t str) -> Vec<&'t str> {
        let cell = whole(cell, &self.known);
        let none = |cell: &str| cell.is_empty() || NONE.contains(&cell.to_lowercase().as_str());
        if cell == key || (!self.known.contains(cell) && none(cell)) {
            return Vec::new();
        }
        if !self.known.contains(cell) {
            let several = |mark: char| -> Option<Vec<&'t str>> {
                let parts: Vec<&str> =
                    cell.split(mark).map(str::trim).filter(|p| !p.is_empty()).collect();
                let known = parts.iter().any(|part| self.known.contains(part));
                (parts.len() > 1 && known).then_some(parts)
            };
            if let Some(parts) = ['|', ';', ','].into_iter().find_map(several) {
                return parts.into_iter().filter(|part| *part != key).collect();
            }
            self.strangers.insert(cell);
            self.stranger.get_or_insert((line, cell));
        }
        vec![cell]
    }
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::{FindingKind, RelationGraph};

    fn read(text: &str) -> (RelationGraph, Vec<String>) {
        let options = ReadOptions::default();
        let builder = parse_graph(text.as_bytes(), "g.csv", Format::Csv, &options).unwrap();
        let (report, graph) = builder.check_and_build();
        let notes = report.of_kind(FindingKind::SourceNote);
        (graph.unwrap(), notes.map(|note| format!("{}: {}", note.place, note.message)).collect())
    }

    fn edges(graph: &RelationGraph) -> Vec<String> {
        let edge = |e: &phex::graph::Hierarchy| {
            format!("{}>{}", graph.name(e.parent), graph.name(e.child))
        };
        graph.hierarchy().iter().map(edge).collect()
    }

    #[test]
    fn ids_in_any_naming_and_order() {
        for text in [
            "id,parent_id,name\n1,,animal\n2,1,dog\n3,1,cat\n",
            "Name;ParentID;ID\nanimal;NULL;1\ndog;1;2\ncat;1;3\n",
            "label\tnode_parent\tnode_id\nanimal\t1\t1\ndog\t1\t2\ncat\t1\t3\n",
            "id,parent_id,name,size\n1,,animal,4\n2,1.0,dog,5\n3,1.0,cat,6\n",
            "taxonID,acceptedNameUsageID,parentNameUsageID,scientificName,kingdom\n1,,0,animal,A\n\
             2,2,1,dog,A\n3,,1,cat,A\n4,2,1,hound,A\n",
        ] {
            let (graph, _) = read(text);
            assert_eq!(edges(&graph), ["1>2", "1>3"], "{text}");
            assert_eq!(graph.labels()[1].title.as_deref(), Some("dog"), "{text}");
            assert_eq!(graph.hierarchy()[0].place.line, Some(3), "{text}");
        }
    }

    #[test]
    fn parents_by_name() {
        let (graph, _) = read("id,name,parent\n1,animal,\n2,dog,animal\n3,husky,dog\n");
        assert_eq!(edges(&graph), ["animal>dog", "dog>husky"]);
        let (graph, _) = read("category,parent_category\ndog,animal\nhusky,dog\n");
        assert_eq!(edges(&graph), ["animal>dog", "dog>husky"]);
    }

    #[test]
    fn several_parents_and_strangers() {
        let (graph, notes) = read("id,parents\na,\nb,a\nc,a|b\nd,x\n");
        assert_eq!(edges(&graph), ["a>b", "a>c", "b>c", "x>d"]);
        assert_eq!(
            notes,
            ["g.csv:5: the parent `x` has no row of its own; it is a label without a title"]
        );
        let (_, notes) =
            read("taxonID,acceptedNameUsageID,parentNameUsageID,scientificName\n1,,,a\n2,1,,b\n");
        assert_eq!(notes, ["g.csv:1: 1 row of synonyms skipped"]);
    }

    #[test]
    fn empty_ids_have_their_line() {
        let text = b"id,parent_id,name\n1,,a\n,1,b\n";
        let error = parse_graph(text, "g.csv", Format::Csv, &ReadOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "g.csv:3: the cell of the column `id` is empty");
    }
}
