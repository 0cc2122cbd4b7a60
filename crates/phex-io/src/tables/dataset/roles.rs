//! The role of each column of a file of data.

use std::collections::{HashMap, HashSet};

use phex::graph::RelationGraph;

use super::{DatasetOptions, TargetSource};
use crate::Error;
use crate::tables::cursor::{ColumnNeed, ColumnType, RecordCursor};
use crate::tables::index_column::is_index;

/// The role of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnRole {
    Unused,
    /// The feature column with this index.
    Feature(usize),
    /// The kept column with this index.
    Kept(usize),
    /// On, off or unknown for this label.
    Label(u32),
    /// The labels of the row.
    Target,
}

impl ColumnRole {
    /// How its cells are needed.
    pub(super) fn need(self) -> ColumnNeed {
        match self {
            ColumnRole::Unused => ColumnNeed::Nothing,
            ColumnRole::Feature(_) | ColumnRole::Label(_) => ColumnNeed::Values,
            ColumnRole::Kept(_) | ColumnRole::Target => ColumnNeed::Texts,
        }
    }
}

/// The role of each column of a file. `features` are the names of the feature columns; the first file
/// sets them if there is neither a choice nor a schema. Columns that number the rows become features only by
/// choice; otherwise `ignored` gets their names.
pub(super) fn roles(
    cursor: &RecordCursor,
    options: &DatasetOptions,
    graph: Option<&RelationGraph>,
    features: &mut Option<Vec<String>>,
    ignored: &mut Vec<String>,
) -> Result<Vec<ColumnRole>, Error> {
    let (path, names) = (cursor.path(), cursor.names());
    let mut index = HashMap::with_capacity(names.len());
    for (column, name) in names.iter().enumerate() {
        if index.insert(name.as_str(), column).is_some() {
            let column = name.clone();
            return Err(Error::DuplicateColumn { path: path.to_owned(), column });
        }
    }
    let find = |name: &String| {
        let missing =
            || Error::MissingColumn { path: path.to_owned(), column: name.clone(), count: 1 };
        index.get(name.as_str()).copied().ok_or_else(missing)
    };
    let wrong = |column: usize, message: String| Error::Column {
        path: path.to_owned(),
        column: names[column].clone(),
        message,
    };
    let mut roles = vec![None; names.len()];
    let mut set = |column: usize, role: ColumnRole| match roles[column].replace(role) {
        None => Ok(()),
        Some(_) => Err(wrong(column, String::from("is requested for two purposes"))),
    };
    match options.targets.as_ref().map(|targets| &targets.source) {
        None | Some(TargetSource::Files { .. }) => {}
        Some(TargetSource::Column(name)) => set(find(name)?, ColumnRole::Target)?,
        Some(TargetSource::Hierarchical) => set(hierarchical(cursor)?, ColumnRole::Target)?,
        Some(TargetSource::Matrix) => {
            let labels = names.iter().map(|name| graph.and_then(|graph| graph.id(name)));
            let mut any = false;
            for (column, label) in labels.enumerate() {
                if let Some(label) = label {
                    set(column, ColumnRole::Label(label.0))?;
                    any = true;
                }
            }
            if !any {
                let message = String::from("no column has the name of a label of the graph");
                return Err(Error::Table { path: path.to_owned(), message });
            }
        }
    }
    for (kept, name) in options.keep.iter().enumerate() {
        set(find(name)?, ColumnRole::Kept(kept))?;
    }
    // New data may lack columns that were left out of the training data.
    for name in options
        .drop
        .iter()
        .filter(|name| options.schema.is_none() || index.contains_key(name.as_str()))
    {
        set(find(name)?, ColumnRole::Unused)?;
    }
    let chosen = features.is_some();
    let wanted = match features.take() {
        Some(names) => names,
        None => {
            let rest = (0..names.len()).filter(|&column| {
                let is_hierarchical =
                    matches!(cursor.column_type(column), ColumnType::Hierarchical(_));
                roles[column].is_none() && !is_hierarchical && !is_index(&names[column], column)
            });
            rest.map(|column| names[column].clone()).collect()
        }
    };
    // An empty list of features is allowed, for targets without features.
    let none = options.features.as_ref().is_some_and(Vec::is_empty);
    if wanted.is_empty() && !none {
        let message = String::from("no column is left for features");
        return Err(Error::Table { path: path.to_owned(), message });
    }
    let mut seen = HashSet::new();
    let missing: Vec<&String> = wanted.iter().filter(|name| find(name).is_err()).collect();
    if let Some(&first) = missing.first() {
        let (column, count) = (first.clone(), missing.len());
        return Err(Error::MissingColumn { path: path.to_owned(), column, count });
    }
    for (feature, name) in wanted.iter().enumerate() {
        let column = find(name)?;
        if !seen.insert(column) || roles[column].is_some() {
            return Err(wrong(column, String::from("is requested for two purposes")));
        }
        if name.trim().is_empty() {
            return Err(Error::UnnamedFeature { path: path.to_owned() });
        }
        if let ColumnType::Other | ColumnType::Lists(_) | ColumnType::Hierarchical(_) =
            cursor.column_type(column)
        {
            let kind = cursor.type_name(column).to_owned();
            return Err(Error::NotAFeature { path: path.to_owned(), column: name.clone(), kind });
        }
        roles[column] = Some(ColumnRole::Feature(feature));
    }
    // Without a choice every column counts, so that a file with other columns is not taken for more
    // of the same data.
    let open = options.schema.is_none() && options.features.is_none();
    if open {
        let index = (0..names.len())
            .filter(|&column| roles[column].is_none() && is_index(&names[column], column));
        for name in index.map(|column| names[column].clone()) {
            if !ignored.contains(&name) {
                ignored.push(name);
            }
        }
    }
    let more = |column: &usize| {
        roles[*column].is_none()
            && !is_index(&names[*column], *column)
            && !matches!(cursor.column_type(*column), ColumnType::Hierarchical(_))
    };
    if let Some(column) = (0..names.len()).find(more).filter(|_| chosen && open) {
        return Err(wrong(column, String::from("is not in the files before this one")));
    }
    *features = Some(wanted);
    Ok(roles.into_iter().map(|role| role.unwrap_or(ColumnRole::Unused)).collect())
}

/// The hierarchical attribute of a file.
fn hierarchical(cursor: &RecordCursor) -> Result<usize, Error> {
    let columns = 0..cursor.names().len();
    let mut found =
        columns.filter(|&column| matches!(cursor.column_type(column), ColumnType::Hierarchical(_)));
    let wrong = |message: &str| Error::Table {
        path: cursor.path().to_owned(),
        message: message.to_owned(),
    };
    let first = found.next().ok_or_else(|| wrong("the file has no hierarchical attribute"))?;
    match found.next() {
        Some(_) => Err(wrong("the file has two hierarchical attributes; name a column")),
        None => Ok(first),
    }
}
