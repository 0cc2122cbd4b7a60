//! Tables with one column per level: `kingdom,…,species`, `level1,level2`, `category,subcategory`.
//!
//! Each row is a path from the root. Ranks of biology are ordered by rank, numbered columns by
//! number, and others as in the file. A level that is empty in a row is skipped. If the first level
//! is empty in more than half of the rows, empty cells stand for repetitions of the row above, and
//! are filled in. If the last name is repeated to the end of a row, the repetitions are padding. If
//! there is a column `X_id` beside a column `X`, it has the ids of that level.

use super::Records;
use crate::Error;
use crate::files::text::SourceText;
use crate::graphs::path_tree::{PathNames, PathTree, SEPARATOR};
use crate::graphs::sink::GraphSink;

/// Ranks, from the top.
const RANKS: [&str; 45] = [
    "lifeform",
    "domain",
    "superkingdom",
    "realm",
    "kingdom",
    "subkingdom",
    "infrakingdom",
    "superphylum",
    "phylum",
    "division",
    "subphylum",
    "infraphylum",
    "superclass",
    "class",
    "subclass",
    "infraclass",
    "superorder",
    "order",
    "suborder",
    "infraorder",
    "parvorder",
    "superfamily",
    "family",
    "subfamily",
    "supertribe",
    "tribe",
    "subtribe",
    "supergenus",
    "genus",
    "subgenus",
    "genericname",
    "section",
    "species",
    "scientificname",
    "specificepithet",
    "speciesepithet",
    "subspecies",
    "infraspecificepithet",
    "variety",
    "varietas",
    "form",
    "forma",
    "cultivar",
    "breed",
    "strain",
];
/// Levels of other taxonomies. They come in the order of the columns.
const LEVELS: [&str; 33] = [
    "sector",
    "supersegment",
    "segment",
    "department",
    "division",
    "industrygroup",
    "industry",
    "subindustry",
    "maincategory",
    "supercategory",
    "topcategory",
    "category",
    "subcategory",
    "subsubcategory",
    "maingroup",
    "supergroup",
    "group",
    "subgroup",
    "superclass",
    "class",
    "subclass",
    "family",
    "brick",
    "type",
    "subtype",
    "topic",
    "subtopic",
    "theme",
    "coarse",
    "coarselabel",
    "fine",
    "finelabel",
    "chapter",
];
/// What columns with numbers are called.
const NUMBERED: [&str; 20] = [
    "",
    "level",
    "lvl",
    "lev",
    "l",
    "tier",
    "depth",
    "category",
    "cat",
    "categorylevel",
    "label",
    "taxon",
    "rank",
    "y",
    "h",
    "hierarchy",
    "class",
    "group",
    "node",
    "labellevel",
];
/// Columns with names for people.
const TITLES: [&str; 4] = ["commonname", "vernacularname", "englishname", "displayname"];

/// A level: the column of its names, and that of its ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    name: usize,
    id: Option<usize>,
}

/// The columns of a table, from the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::graphs) struct Columns {
    levels: Vec<Level>,
    title: Option<usize>,
}

impl Columns {
    /// The levels by the normalised names of the columns, if there are two or more.
    pub(in crate::graphs) fn find(names: &[String]) -> Option<Columns> {
        let levels = ranks(names).or_else(|| numbered(names)).or_else(|| listed(names))?;
        let title = names.iter().position(|name| TITLES.contains(&name.as_str()));
        Some(Columns { levels, title })
    }

    /// Every column with a name, as it stands.
    fn all(names: &[String]) -> Columns {
        let named = names.iter().enumerate().filter(|(_, name)| !name.is_empty());
        Columns { levels: named.map(|(name, _)| Level { name, id: None }).collect(), title: None }
    }
}

/// The column of the ids that belong to a column of names.
fn ids_of(names: &[String], name: &str) -> Option<usize> {
    let stem = name.strip_suffix("name").unwrap_or(name);
    ["id", "code", "key"].iter().find_map(|end| {
        names
            .iter()
            .position(|other| *other == format!("{name}{end}") || *other == format!("{stem}{end}"))
    })
}

fn level(names: &[String], name: usize) -> Level {
    Level { name, id: ids_of(names, &names[name]) }
}

fn two_or_more(levels: Vec<Level>) -> Option<Vec<Level>> {
    (levels.len() >= 2).then_some(levels)
}

fn ranks(names: &[String]) -> Option<Vec<Level>> {
    // Two of these may also be columns of anything else.
    const TELLING: [&str; 6] = ["kingdom", "phylum", "family", "genus", "species", "order"];
    let telling = TELLING.iter().filter(|rank| names.iter().any(|name| name == *rank)).count();
    if telling < 2 {
        return None;
    }
    let column = |rank: &&str| names.iter().position(|name| name == *rank);
    let full = ["species", "scientificname"].iter().any(|rank| column(rank).is_some());
    let found = RANKS.iter().filter(|rank| {
        // With the whole name of the species, its parts say nothing more.
        let part = ["specificepithet", "speciesepithet", "genericname"].contains(*rank);
        !(full && part)
    });
    let mut found: Vec<usize> = found.filter_map(column).collect();
    if let (Some(species), Some(whole)) = (column(&"species"), column(&"scientificname")) {
        // Either may be the other with its author.
        found.retain(|&at| at != whole || at == species);
    }
    two_or_more(found.into_iter().map(|at| level(names, at)).collect())
}

/// `level1`, `level2_name`: the same words around different numbers.
fn numbered(names: &[String]) -> Option<Vec<Level>> {
    let split = |name: &str| -> Option<(String, u32, String)> {
        let start = name.find(|char: char| char.is_ascii_digit())?;
        let end = name[start..]
            .find(|char: char| !char.is_ascii_digit())
            .map_or(name.len(), |n| start + n);
        Some((name[..start].to_owned(), name[start..end].parse().ok()?, name[end..].to_owned()))
    };
    let mut found: Vec<(u32, usize)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let Some((word, number, rest)) = split(name) else { continue };
        let named = ["", "name", "label", "title", "desc", "description"].contains(&rest.as_str());
        if NUMBERED.contains(&word.as_str()) && named {
            if found.iter().any(|&(other, _)| other == number) {
                continue;
            }
            found.push((number, at));
        }
    }
    found.sort_unstable();
    // Bare numbers are also the columns of a matrix: they count from 0 or 1 and are all there is.
    let bare = found.iter().all(|&(_, at)| names[at].bytes().all(|byte| byte.is_ascii_digit()));
    if bare {
        let counts = found.iter().enumerate().all(|(at, &(number, _))| {
            number as usize == at + found[0].0 as usize && found[0].0 <= 1
        });
        let others = names.iter().filter(|name| !name.is_empty()).count() > found.len();
        if !counts || others || found.len() > 20 {
            return None;
        }
    }
    two_or_more(found.into_iter().map(|(_, at)| level(names, at)).collect())
}

fn listed(names: &[String]) -> Option<Vec<Level>> {
    let found = names.iter().enumerate().filter(|(_, name)| {
        let stem = name.strip_suffix("name").filter(|stem| !stem.is_empty()).unwrap_or(name);
        LEVELS.contains(&stem)
    });
    two_or_more(found.map(|(at, _)| level(names, at)).collect())
}

pub(in crate::graphs) fn read(
    source: &SourceText<'_>,
    table: &Records,
    names: PathNames,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let header = table.names();
    let columns = Columns::find(&header).unwrap_or_else(|| Columns::all(&header));
    let Some(first) = columns.levels.first() else {
        return Err(source.error(table.line, "the table has no columns"));
    };
    let used = |at: usize| {
        columns.title == Some(at)
            || columns.levels.iter().any(|level| level.name == at || level.id == Some(at))
    };
    let unused: Vec<usize> =
        (0..header.len()).filter(|&at| !used(at) && !header[at].is_empty()).collect();
    if !unused.is_empty() {
        let levels = table.shown(columns.levels.iter().map(|level| level.name));
        let message = format!("the levels are {levels}; not read: {}", table.shown(unused));
        sink.note(table.line, message)?;
    }
    let empty = table.rows.iter().filter(|(_, row)| is_empty(&row[first.name])).count();
    let fill = 2 * empty > table.rows.len();
    if fill {
        let message = "cells that are empty before the first name of a row repeat the row above";
        sink.note(table.line, message)?;
    }
    let mut tree = PathTree::new(source, SEPARATOR);
    let mut same_ids = true;
    let mut above: Vec<Option<u32>> = vec![None; columns.levels.len()];
    for (line, row) in &table.rows {
        same_ids &= add(&mut tree, &columns, row, *line, fill, &mut above)?;
    }
    if !same_ids {
        tree.forget_ids();
        sink.note(table.line, "the same place has several ids; labels are named without them")?;
    }
    tree.declare(names, sink)
}

/// Whether a cell says that its row has no such level.
pub(super) fn is_empty(cell: &str) -> bool {
    cell.is_empty() || ["nan", "none", "null", "na", "n/a"].contains(&cell.to_lowercase().as_str())
}

/// Adds the path of a row; false if a place has another id already.
fn add(
    tree: &mut PathTree<'_>,
    columns: &Columns,
    row: &[String],
    line: usize,
    fill: bool,
    above: &mut [Option<u32>],
) -> Result<bool, Error> {
    let name = |level: &Level| row[level.name].as_str();
    let empty = |level: &Level| is_empty(name(level));
    let filled: Vec<usize> =
        (0..columns.levels.len()).filter(|&at| !empty(&columns.levels[at])).collect();
    let Some((&first, &last)) = filled.first().zip(filled.last()) else { return Ok(true) };
    let mut node = if fill && first > 0 { above[first - 1] } else { None };
    // The last name may be repeated to the end of the row.
    let repeats = filled
        .iter()
        .rev()
        .take_while(|&&at| name(&columns.levels[at]) == name(&columns.levels[last]));
    let used = filled.len() + 1 - repeats.count();
    let mut same_ids = true;
    for &at in &filled[..used] {
        let level = &columns.levels[at];
        let new = tree.node(node, name(level), line)?;
        if let Some(id) = level.id.map(|id| row[id].as_str()).filter(|id| !id.is_empty()) {
            same_ids &= tree.identify(new, id);
        }
        node = Some(new);
        above[at..].fill(node);
    }
    if let (Some(title), Some(node)) = (columns.title.map(|at| row[at].as_str()), node)
        && !title.is_empty()
    {
        tree.entitle(node, title);
    }
    Ok(same_ids)
}

#[cfg(test)]
mod tests {
    use crate::{Format, PathNames, ReadOptions, parse_graph};
    use phex::graph::RelationGraph;

    fn read(text: &str, names: PathNames) -> RelationGraph {
        let options = ReadOptions { path_names: Some(names), ..ReadOptions::default() };
        let builder = parse_graph(text.as_bytes(), "g.csv", Format::Csv, &options).unwrap();
        builder.build().unwrap()
    }

    fn edges(text: &str) -> Vec<String> {
        let graph = read(text, PathNames::Short);
        let edges = graph.hierarchy().iter();
        edges.map(|e| format!("{}>{}", graph.name(e.parent), graph.name(e.child))).collect()
    }

    #[test]
    fn ranks_come_in_their_order() {
        let text = "species,genus,kingdom,count,common_name\nPuma concolor,Puma,Animalia,3,cougar\n\
                    Felis catus,Felis,Animalia,4,cat\n";
        assert_eq!(
            edges(text),
            ["Animalia>Puma", "Puma>Puma concolor", "Animalia>Felis", "Felis>Felis catus"]
        );
        let graph = read(text, PathNames::Short);
        assert_eq!(graph.labels()[2].title.as_deref(), Some("cougar"));
        assert_eq!(graph.labels()[2].place.line, Some(2));
    }

    #[test]
    fn ragged_padded_and_passed_over() {
        let text = "level1,level2,level3\na,b,c\na,,d\na,e,e\nf,f,f\n";
        assert_eq!(edges(text), ["a>b", "b>c", "a>d", "a>e"]);
    }

    #[test]
    fn cells_that_repeat_the_row_above() {
        let text = "Level 1,Level 2,Level 3\na,,\n,b,\n,,c\n,d,\n,,e\n";
        assert_eq!(edges(text), ["a>b", "b>c", "a>d", "d>e"]);
    }

    #[test]
    fn names_repeat_under_different_parents() {
        let text = "category,subcategory\nDogs,Toys\nCats,Toys\nCats,Food\n";
        assert_eq!(edges(text), ["Dogs>Dogs > Toys", "Cats>Cats > Toys", "Cats>Food"]);
        let merged = read(text, PathNames::Merged);
        assert_eq!((merged.len(), merged.hierarchy().len()), (4, 3));
    }

    #[test]
    fn levels_with_ids() {
        let text = "level1_id,level1_name,level2_id,level2_name\n1,Dogs,11,Toys\n2,Cats,21,Toys\n";
        assert_eq!(edges(text), ["1>11", "2>21"]);
        let graph = read(text, PathNames::Short);
        assert_eq!(graph.labels()[3].title.as_deref(), Some("Toys"));
    }

    #[test]
    fn columns_of_hiclass() {
        assert_eq!(edges("0,1,2\na,b,c\na,b,d\n"), ["a>b", "b>c", "b>d"]);
    }
}
