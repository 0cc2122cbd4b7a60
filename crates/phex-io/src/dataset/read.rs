//! Reading: files to features and targets.

use std::path::{Path, PathBuf};

use phex::graph::{LabelId, RelationGraph};

use super::columns::{Column, assemble};
use super::labels::{Classes, LabelReader};
use super::roles::{Role, roles};
use super::table::{Cell, Declared, Table};
use super::{
    Dataset, DatasetOptions, FeatureKind, FeatureSchema, Features, TargetOptions, TargetSource,
    target_files,
};
use crate::Error;
use crate::input::display_name;
use crate::text::shown;
use phex::infer::Evidence;

/// Reads files of the same columns, one after another: `-` is standard input. The graph is needed
/// where targets are asked for.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex_io::{DatasetOptions, TargetOptions, TargetSource, read_dataset};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("animals.csv");
/// std::fs::write(&path, "weight,fur,is\n7.5,long,dog\n?,short,cat\n")?;
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
/// let graph = builder.build()?;
///
/// let targets = Some(TargetOptions::new(TargetSource::Column("is".into())));
/// let options = DatasetOptions { targets, ..DatasetOptions::default() };
/// let data = read_dataset(&[path], &options, Some(&graph))?;
/// assert_eq!(data.features.names, ["weight", "fur=long", "fur=short"]);
/// assert_eq!(data.features.row(0), [7.5, 1.0, 0.0]);
/// assert_eq!(data.targets.expect("targets").row(1).listed[0].label, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When a file cannot be read or is damaged, columns are missing or differ between files, a cell
/// holds what it may not, a label is not in the graph, or a limit is broken.
pub fn read_dataset(
    paths: &[PathBuf],
    options: &DatasetOptions,
    graph: Option<&RelationGraph>,
) -> Result<Dataset, Error> {
    let path = paths.first().map_or_else(String::new, |path| display_name(path));
    let wrong = |message: &str| Error::Table { path: path.clone(), message: message.to_owned() };
    if paths.is_empty() {
        return Err(wrong("no file was given"));
    }
    let mut reader = match (&options.targets, graph) {
        (None, _) => None,
        (Some(_), None) => return Err(wrong("targets need a graph whose labels they are")),
        (Some(targets), Some(graph)) => {
            Some((targets, graph, LabelReader::new(graph, targets, options.max_values)?))
        }
    };
    let names = |schema: &FeatureSchema| schema.columns.iter().map(|c| c.name.clone()).collect();
    let mut features = Growing {
        names: options.features.clone().or_else(|| options.schema.as_ref().map(names)),
        columns: Vec::new(),
        kept: vec![Vec::new(); options.keep.len()],
        kept_bytes: 0,
        rows: 0,
    };
    for path in paths {
        features.read(path, options, &mut reader)?;
    }
    let mut targets = None;
    if let Some((wanted, graph, mut labels)) = reader {
        if let TargetSource::Files { paths, column } = &wanted.source {
            for path in paths {
                let column = column.as_deref();
                target_files::read(path, column, options, wanted, graph, &mut labels)?;
            }
            let (found, rows) = (labels.targets.rows(), features.rows);
            if found != rows {
                return Err(wrong(&format!("{rows} rows of features and {found} of targets")));
            }
        }
        targets = Some(labels.targets);
    }
    features.finish(options, targets)
}

/// Targets in the making, with what they need.
type Reader<'g> = Option<(&'g TargetOptions, &'g RelationGraph, LabelReader<'g>)>;

/// Columns in the making.
struct Growing {
    /// The names of the columns, once they are known.
    names: Option<Vec<String>>,
    columns: Vec<Column>,
    kept: Vec<Vec<String>>,
    kept_bytes: usize,
    rows: usize,
}

impl Growing {
    /// Adds the rows of a file.
    fn read(
        &mut self,
        path: &Path,
        options: &DatasetOptions,
        reader: &mut Reader<'_>,
    ) -> Result<(), Error> {
        let mut table = Table::open(path, options)?;
        let graph = reader.as_ref().map(|(_, graph, _)| *graph);
        let roles = roles(&table, options, graph, &mut self.names)?;
        let wanted: Vec<_> = roles.iter().map(|role| role.wanted()).collect();
        self.match_columns(&table, &roles, options)?;
        table.want(&wanted)?;
        let mut labels = Labels::new(&table, &roles, reader);
        while table.next()? {
            self.rows += 1;
            if self.rows.saturating_mul(self.columns.len()) > options.max_values {
                return Err(too_much(&table, options, "values"));
            }
            for (column, &role) in roles.iter().enumerate() {
                let done = match role {
                    Role::Unused => Ok(()),
                    Role::Feature(feature) => self.columns[feature].push(table.cell(column)?),
                    Role::Kept(kept) => {
                        let text = kept_text(table.cell(column)?);
                        self.kept_bytes += text.len();
                        self.kept[kept].push(text);
                        Ok(())
                    }
                    Role::Label(label) => labels.label(label, table.cell(column)?, reader),
                    Role::Target => labels.target(table.cell(column)?, reader),
                };
                done.map_err(|message| table.error(column, message))?;
            }
            // A packed file may say a long text many times.
            if self.kept_bytes > max_bytes(options) {
                let (path, limit) = (table.path().to_owned(), max_bytes(options));
                return Err(Error::TooMuchData { path, what: "bytes of kept text", limit });
            }
            labels.end(reader).map_err(|message| table.error(labels.column, message))?;
            if reader.as_ref().is_some_and(|(_, _, reader)| reader.is_full()) {
                return Err(too_much(&table, options, "labels of rows"));
            }
        }
        Ok(())
    }

    /// Makes the columns, or compares them with what the files before have.
    fn match_columns(
        &mut self,
        table: &Table,
        roles: &[Role],
        options: &DatasetOptions,
    ) -> Result<(), Error> {
        let features = roles.iter().filter(|role| matches!(role, Role::Feature(_))).count();
        let mut made: Vec<Option<Column>> = (0..features).map(|_| None).collect();
        for (column, &role) in roles.iter().enumerate() {
            let Role::Feature(feature) = role else { continue };
            let name = &table.names()[column];
            let given = options.schema.as_ref().map(|schema| {
                schema.columns.iter().find(|given| given.name == *name).ok_or_else(|| {
                    let message = String::from("is not in the schema of the training data");
                    Error::Column { path: table.path().to_owned(), column: name.clone(), message }
                })
            });
            let new = match (given.transpose()?, table.declared(column)) {
                (Some(given), _) => Column::known(&given.kind, false),
                (None, Declared::Number) => Column::known(&FeatureKind::Numeric, true),
                (None, Declared::Nominal(values)) => {
                    let kind = FeatureKind::Nominal { values: values.to_vec() };
                    Column::known(&kind, true)
                }
                (None, declared) => {
                    let numbers = declared == Declared::Unknown;
                    Column::learned(numbers, options.max_categories)
                }
            };
            match self.columns.get(feature) {
                Some(old) if !old.is_like(&new) => {
                    let message = String::from("has another type in the files before this one");
                    let (path, column) = (table.path().to_owned(), name.clone());
                    return Err(Error::Column { path, column, message });
                }
                _ => made[feature] = Some(new),
            }
        }
        if self.columns.is_empty() {
            self.columns = made.into_iter().flatten().collect();
        }
        Ok(())
    }

    /// The finished set.
    fn finish(
        self,
        options: &DatasetOptions,
        targets: Option<super::Targets>,
    ) -> Result<Dataset, Error> {
        let names = self.names.unwrap_or_default();
        let (mut columns, mut unseen) = (Vec::new(), Vec::new());
        for (column, name) in self.columns.into_iter().zip(&names) {
            let (column, values, more) = column.finish(name);
            columns.push((column, values));
            unseen.extend(more);
        }
        let schema =
            FeatureSchema { columns: columns.iter().map(|(column, _)| column.clone()).collect() };
        if schema.width().saturating_mul(self.rows) > options.max_values {
            let (path, limit) = (String::from("the data set"), options.max_values);
            return Err(Error::TooMuchData { path, what: "values", limit });
        }
        // Each category has the name of its column before it.
        if schema.name_bytes() > max_bytes(options) {
            let (path, limit) = (String::from("the data set"), max_bytes(options));
            return Err(Error::TooMuchData { path, what: "bytes of names", limit });
        }
        let values = assemble(columns, self.rows);
        let (columns, names) = (schema.width(), schema.names());
        let features = Features { names, rows: self.rows, columns, values };
        let kept = options.keep.iter().cloned().zip(self.kept).collect();
        Ok(Dataset { features, schema, targets, kept, unseen })
    }
}

/// What the cells of a file say of labels.
struct Labels {
    classes: Option<Classes>,
    separator: String,
    /// The first column that has to do with labels, for messages on a whole row.
    column: usize,
    /// Whether rows are made of several cells.
    matrix: bool,
}

impl Labels {
    fn new(table: &Table, roles: &[Role], reader: &Reader<'_>) -> Labels {
        let is_label = |role: &Role| matches!(role, Role::Target | Role::Label(_));
        let column = roles.iter().position(is_label).unwrap_or(0);
        let matrix = roles.iter().any(|role| matches!(role, Role::Label(_)));
        let mut labels = Labels { classes: None, separator: String::new(), column, matrix };
        if let Some((targets, graph, _)) = reader {
            labels.separator = separator(targets, table);
            let declared = table.declared(column);
            if let (Declared::Hierarchical(hierarchy), Role::Target) = (declared, roles[column]) {
                labels.classes = Some(Classes::new(hierarchy, graph));
            }
        }
        labels
    }

    fn target(&mut self, cell: Cell<'_>, reader: &mut Reader<'_>) -> Result<(), String> {
        let Some((targets, _, reader)) = reader else { return Ok(()) };
        match &mut self.classes {
            Some(classes) => reader.classes(cell, &self.separator, classes),
            None => reader.row(cell, targets.form, &self.separator),
        }
    }

    fn label(&self, label: u32, cell: Cell<'_>, reader: &mut Reader<'_>) -> Result<(), String> {
        let Some((_, _, reader)) = reader else { return Ok(()) };
        let value = match cell {
            Cell::Missing => Some(Evidence::Unknown),
            Cell::Number(number) => Evidence::from_number(number),
            Cell::Text(text) => Evidence::from_text(text),
            Cell::List(_) => None,
        };
        match value {
            None => {
                let what = match cell {
                    Cell::Text(text) => shown(text),
                    other => kept_text(other),
                };
                Err(format!(
                    "the cell is {what}; {}",
                    <Evidence as crate::tables::cell::Cell>::EXPECTED
                ))
            }
            Some(value) => match value.is_on() {
                Some(on) => reader.add(LabelId(label), on),
                None => Ok(()),
            },
        }
    }

    /// Ends the row of a matrix.
    fn end(&self, reader: &mut Reader<'_>) -> Result<(), String> {
        match reader {
            Some((_, _, reader)) if self.matrix => reader.finish(true),
            _ => Ok(()),
        }
    }
}

/// What is between the names of a list.
pub(super) fn separator(targets: &TargetOptions, table: &Table) -> String {
    let usual = if table.is_arff() { "@" } else { ";" };
    targets.separator.as_deref().filter(|text| !text.is_empty()).unwrap_or(usual).to_owned()
}

fn kept_text(cell: Cell<'_>) -> String {
    match cell {
        Cell::Missing => String::new(),
        Cell::Number(number) => number.to_string(),
        Cell::Text(text) => text.to_owned(),
        Cell::List(items) => items.join(";"),
    }
}

/// How many bytes texts may have: as many as the features.
fn max_bytes(options: &DatasetOptions) -> usize {
    options.max_values.saturating_mul(size_of::<f32>())
}

fn too_much(table: &Table, options: &DatasetOptions, what: &'static str) -> Error {
    Error::TooMuchData { path: table.path().to_owned(), what, limit: options.max_values }
}
