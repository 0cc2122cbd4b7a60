//! Tables with the path from the root in one column: `id,path`, breadcrumbs, lineages.

use super::Records;
use crate::Error;
use crate::files::text::{SourceText, shown};
use crate::graphs::path_tree::{PathNames, PathTree};
use crate::graphs::paths;
use crate::graphs::sink::GraphSink;

/// Names of path columns, best first.
const PATHS: [&str; 17] = [
    "path",
    "fullpath",
    "categorypath",
    "breadcrumb",
    "breadcrumbs",
    "lineage",
    "hierarchy",
    "taxonomy",
    "taxon",
    "higherclassification",
    "googleproductcategory",
    "taxonpath",
    "treepath",
    "namepath",
    "ancestry",
    "classification",
    "categorytree",
];
/// Names of id columns, best first.
const IDS: [&str; 8] =
    ["id", "categoryid", "taxonid", "nodeid", "code", "key", "labelid", "googleid"];

/// The positions of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::graphs) struct Columns {
    path: usize,
    id: Option<usize>,
}

impl Columns {
    /// The columns by their normalised names, if one has paths.
    pub(in crate::graphs) fn find(names: &[String]) -> Option<Columns> {
        let at = |wanted: &str| names.iter().position(|name| name == wanted);
        let path = PATHS.iter().find_map(|name| at(name))?;
        Some(Columns { path, id: IDS.iter().find_map(|name| at(name)).filter(|&id| id != path) })
    }
}

pub(in crate::graphs) fn read(
    source: &SourceText<'_>,
    table: &Records,
    names: PathNames,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let Some(columns) = Columns::find(&table.names()) else {
        let message = "no column has paths: call one of them `path`";
        return Err(source.error(table.line, message));
    };
    let column: Vec<&str> = table.rows.iter().map(|(_, row)| row[columns.path].as_str()).collect();
    let separator = paths::separator_of_paths(&column.join("\n"));
    let mut tree = PathTree::new(source, separator);
    let mut same_ids = true;
    for (line, row) in &table.rows {
        let Some(node) = paths::add(&mut tree, &row[columns.path], separator, *line)? else {
            let name = shown(&table.header[columns.path]);
            return Err(source.error(*line, format!("the cell of the column {name} is empty")));
        };
        if let Some(id) = columns.id.map(|at| row[at].as_str()).filter(|id| !id.is_empty()) {
            same_ids &= tree.identify(node, id);
        }
    }
    // Then the ids are those of things that have these labels.
    if !same_ids {
        tree.forget_ids();
        sink.note(table.line, "the same path has several ids; labels are named without them")?;
    }
    tree.declare(names, sink)
}
