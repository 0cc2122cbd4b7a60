//! What each column of a file is for.

use std::collections::{HashMap, HashSet};

use phex::graph::RelationGraph;

use super::table::{Declared, Table, Wanted};
use super::{DatasetOptions, TargetSource};
use crate::Error;

/// The use of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Unused,
    /// The feature column with this number.
    Feature(usize),
    /// The kept column with this number.
    Kept(usize),
    /// On, off or unknown for this label.
    Label(u32),
    /// The labels of the row.
    Target,
}

impl Role {
    /// How its cells are wanted.
    pub(super) fn wanted(self) -> Wanted {
        match self {
            Role::Unused => Wanted::Nothing,
            Role::Feature(_) | Role::Label(_) => Wanted::Values,
            Role::Kept(_) | Role::Target => Wanted::Texts,
        }
    }
}

/// The role of each column of a file. `features` are the names of the feature columns once they
/// are known: a first file without a schema sets them.
pub(super) fn roles(
    table: &Table,
    options: &DatasetOptions,
    graph: Option<&RelationGraph>,
    features: &mut Option<Vec<String>>,
) -> Result<Vec<Role>, Error> {
    let (path, names) = (table.path(), table.names());
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
    let mut set = |column: usize, role: Role| match roles[column].replace(role) {
        None => Ok(()),
        Some(_) => Err(wrong(column, String::from("is asked for in two ways"))),
    };
    match options.targets.as_ref().map(|targets| &targets.source) {
        None | Some(TargetSource::Files { .. }) => {}
        Some(TargetSource::Column(name)) => set(find(name)?, Role::Target)?,
        Some(TargetSource::Hierarchical) => set(hierarchical(table)?, Role::Target)?,
        Some(TargetSource::Matrix) => {
            let labels = names.iter().map(|name| graph.and_then(|graph| graph.id(name)));
            let mut any = false;
            for (column, label) in labels.enumerate() {
                if let Some(label) = label {
                    set(column, Role::Label(label.0))?;
                    any = true;
                }
            }
            if !any {
                let message = String::from("no column is named as a label of the graph");
                return Err(Error::Table { path: path.to_owned(), message });
            }
        }
    }
    for (kept, name) in options.keep.iter().enumerate() {
        set(find(name)?, Role::Kept(kept))?;
    }
    // New data need not have what was left out of the training data.
    for name in options
        .drop
        .iter()
        .filter(|name| options.schema.is_none() || index.contains_key(name.as_str()))
    {
        set(find(name)?, Role::Unused)?;
    }
    let chosen = features.is_some();
    let wanted = match features.take() {
        Some(names) => names,
        None => {
            let rest = (0..names.len()).filter(|&column| {
                let no_feature = matches!(table.declared(column), Declared::Hierarchical(_));
                roles[column].is_none() && !no_feature
            });
            rest.map(|column| names[column].clone()).collect()
        }
    };
    // None at all may be asked for, where only labels are wanted.
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
            return Err(wrong(column, String::from("is asked for in two ways")));
        }
        if name.trim().is_empty() {
            // As pandas writes its index: a number of the row is no feature.
            let message = "has no name; name it, or leave it out with --drop \"\"";
            return Err(wrong(column, message.to_owned()));
        }
        if let Declared::Other(kind) = table.declared(column) {
            return Err(wrong(
                column,
                format!(
                    "is of type {kind} and no feature; leave it out with --drop {name:?} or pass \
                     it through with --keep {name:?}"
                ),
            ));
        }
        if let Declared::Hierarchical(_) = table.declared(column) {
            return Err(wrong(column, String::from("is hierarchical and no feature")));
        }
        roles[column] = Some(Role::Feature(feature));
    }
    // Without a choice every column counts, so that files of other columns do not pass as more of
    // the same.
    let open = options.schema.is_none() && options.features.is_none();
    let more = |column: &usize| {
        roles[*column].is_none() && !matches!(table.declared(*column), Declared::Hierarchical(_))
    };
    if let Some(column) = (0..names.len()).find(more).filter(|_| chosen && open) {
        return Err(wrong(column, String::from("is not in the files before this one")));
    }
    *features = Some(wanted);
    Ok(roles.into_iter().map(|role| role.unwrap_or(Role::Unused)).collect())
}

/// The hierarchical attribute of a file.
fn hierarchical(table: &Table) -> Result<usize, Error> {
    let columns = 0..table.names().len();
    let mut found =
        columns.filter(|&column| matches!(table.declared(column), Declared::Hierarchical(_)));
    let wrong =
        |message: &str| Error::Table { path: table.path().to_owned(), message: message.to_owned() };
    let first = found.next().ok_or_else(|| wrong("the file has no hierarchical attribute"))?;
    match found.next() {
        Some(_) => Err(wrong("the file has two hierarchical attributes; name a column")),
        None => Ok(first),
    }
}
