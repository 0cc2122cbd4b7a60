//! Reading files of data into features and targets.

use std::path::{Path, PathBuf};

use phex::graph::{LabelId, RelationGraph};
use phex::infer::Evidence;

use super::feature_columns::{CellFault, GrowingColumn, assemble};
use super::labels::{ClassLabels, LabelReader};
use super::roles::{ColumnRole, roles};
use super::{
    Dataset, DatasetOptions, FeatureKind, FeatureSchema, Features, TargetOptions, TargetSource,
    Unseen, target_files,
};
use crate::Error;
use crate::files::input::display_name;
use crate::files::text::shown;
use crate::tables::cursor::{BlockValue, ColumnType, RecordCell, RecordCursor};

/// Reads files with the same columns, one after another; `-` is standard input. Targets need the
/// graph whose labels they name.
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
/// When a file cannot be read or is damaged, columns are missing or differ between files, a cell has
/// an invalid value, a label is not in the graph, or a limit is exceeded.
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
        (Some(_), None) => return Err(wrong("targets need a graph, whose labels they name")),
        (Some(targets), Some(graph)) => {
            Some((targets, graph, LabelReader::new(graph, targets, options.limits.values)?))
        }
    };
    let mut features = GrowingDataset::new(options);
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
                return Err(wrong(&format!(
                    "there are {rows} rows of features and {found} of targets"
                )));
            }
        }
        targets = Some(labels.targets);
    }
    features.finish(options, targets)
}

/// Reads the features of a file in pieces, so that memory does not grow with its rows. The columns are
/// those of a schema, because what a column is shows only in its last row.
///
/// ```
/// use phex_io::{DatasetOptions, FeatureReader, read_dataset};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("animals.csv");
/// std::fs::write(&path, "weight,fur\n7.5,long\n3,short\n1,none\n")?;
/// let schema = read_dataset(&[path.clone()], &DatasetOptions::default(), None)?.schema;
/// let options = DatasetOptions { schema: Some(schema), ..DatasetOptions::default() };
/// let mut reader = FeatureReader::open(&path, &options)?;
/// let mut rows = Vec::new();
/// while let Some(piece) = reader.next_rows(2)? {
///     rows.push(piece.rows());
/// }
/// assert_eq!(rows, [2, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FeatureReader {
    file: FileRows,
    rows: GrowingDataset,
    options: DatasetOptions,
}

impl FeatureReader {
    /// Opens a file; `-` is standard input. Targets are not read.
    ///
    /// # Errors
    /// As [`read_dataset`]; also when the options have no schema.
    pub fn open(path: &Path, options: &DatasetOptions) -> Result<FeatureReader, Error> {
        if options.schema.is_none() || options.targets.is_some() {
            let message =
                String::from("pieces need the schema of the features, and have no targets");
            return Err(Error::Table { path: display_name(path), message });
        }
        let mut rows = GrowingDataset::new(options);
        let file = rows.open(path, options, &None)?;
        Ok(FeatureReader { file, rows, options: options.clone() })
    }

    /// The next rows, at most so many; `None` after the last. Their unseen categories are in
    /// [`FeatureReader::unseen`].
    ///
    /// # Errors
    /// As [`read_dataset`].
    pub fn next_rows(&mut self, most: usize) -> Result<Option<Dataset>, Error> {
        while self.rows.rows < most.max(1)
            && self.rows.row(&mut self.file, &self.options, &mut None)?
        {}
        match self.rows.rows {
            0 => Ok(None),
            _ => self.rows.take_rows().finish(&self.options, None).map(Some),
        }
    }

    /// Categories that the schema does not have, in the rows that were read.
    pub fn unseen(&self) -> Vec<Unseen> {
        let columns = self.rows.columns.iter().zip(self.rows.names.iter().flatten());
        columns.filter_map(|(column, name)| column.unseen(name)).collect()
    }
}

/// The reader of targets, with its options and its graph.
type Reader<'g> = Option<(&'g TargetOptions, &'g RelationGraph, LabelReader<'g>)>;

/// A data set that is not complete yet.
struct GrowingDataset {
    /// The names of the feature columns, once they are known.
    names: Option<Vec<String>>,
    columns: Vec<GrowingColumn>,
    kept: Vec<Vec<String>>,
    kept_bytes: usize,
    rows: usize,
    /// Columns that number the rows.
    ignored: Vec<String>,
}

/// A file whose rows are being read.
struct FileRows {
    cursor: RecordCursor,
    roles: Vec<ColumnRole>,
    labels: RowLabels,
}

impl GrowingDataset {
    fn new(options: &DatasetOptions) -> GrowingDataset {
        let of = |schema: &FeatureSchema| schema.columns.iter().map(|c| c.name.clone()).collect();
        GrowingDataset {
            names: options.features.clone().or_else(|| options.schema.as_ref().map(of)),
            columns: Vec::new(),
            kept: vec![Vec::new(); options.keep.len()],
            kept_bytes: 0,
            rows: 0,
            ignored: Vec::new(),
        }
    }

    /// Adds the rows of a file.
    fn read(
        &mut self,
        path: &Path,
        options: &DatasetOptions,
        reader: &mut Reader<'_>,
    ) -> Result<(), Error> {
        let mut rows = self.open(path, options, reader)?;
        while self.row(&mut rows, options, reader)? {}
        Ok(())
    }

    /// Opens a file whose rows are to be added.
    fn open(
        &mut self,
        path: &Path,
        options: &DatasetOptions,
        reader: &Reader<'_>,
    ) -> Result<FileRows, Error> {
        let mut cursor = RecordCursor::open(path, options.format, &options.limits)?;
        let graph = reader.as_ref().map(|(_, graph, _)| *graph);
        let roles = roles(&cursor, options, graph, &mut self.names, &mut self.ignored)?;
        let needs: Vec<_> = roles.iter().map(|role| role.need()).collect();
        self.match_columns(&cursor, &roles, options)?;
        cursor.select(&needs)?;
        let labels = RowLabels::new(&cursor, &roles, reader);
        Ok(FileRows { cursor, roles, labels })
    }

    /// Adds the next row, if there is one.
    fn row(
        &mut self,
        FileRows { cursor, roles, labels }: &mut FileRows,
        options: &DatasetOptions,
        reader: &mut Reader<'_>,
    ) -> Result<bool, Error> {
        if !cursor.next()? {
            return Ok(false);
        }
        self.rows += 1;
        if self.rows.saturating_mul(self.columns.len()) > options.limits.values {
            return Err(too_much(cursor, options, "values"));
        }
        for (column, &role) in roles.iter().enumerate() {
            let done: Result<(), CellFault> = match role {
                ColumnRole::Unused => Ok(()),
                ColumnRole::Feature(feature) => self.columns[feature].push(cursor.cell(column)),
                ColumnRole::Kept(kept) => {
                    let text = kept_text(cursor.cell(column));
                    self.kept_bytes += text.len();
                    self.kept[kept].push(text);
                    Ok(())
                }
                ColumnRole::Label(label) => {
                    let cell = cursor.cell(column);
                    labels.label(label, cell, reader).map_err(CellFault::from)
                }
                ColumnRole::Target => {
                    labels.target(cursor.cell(column), reader).map_err(CellFault::from)
                }
            };
            done.map_err(|fault| cell_error(cursor, column, fault))?;
        }
        // A compressed file may repeat a long text many times.
        if self.kept_bytes > options.limits.text_bytes() {
            let (path, limit) = (cursor.path().to_owned(), options.limits.text_bytes());
            return Err(Error::TooMuchData { path, what: "bytes of kept text", limit });
        }
        labels.end(reader).map_err(|message| cursor.error(labels.column, message))?;
        if reader.as_ref().is_some_and(|(_, _, reader)| reader.is_full()) {
            return Err(too_much(cursor, options, "labels of rows"));
        }
        Ok(true)
    }

    /// The rows so far, as a set of their own.
    fn take_rows(&mut self) -> GrowingDataset {
        GrowingDataset {
            names: self.names.clone(),
            columns: self.columns.iter_mut().map(GrowingColumn::take_rows).collect(),
            kept: self.kept.iter_mut().map(std::mem::take).collect(),
            kept_bytes: std::mem::take(&mut self.kept_bytes),
            rows: std::mem::take(&mut self.rows),
            ignored: std::mem::take(&mut self.ignored),
        }
    }

    /// Creates the columns, or compares them with those of the files before.
    fn match_columns(
        &mut self,
        cursor: &RecordCursor,
        roles: &[ColumnRole],
        options: &DatasetOptions,
    ) -> Result<(), Error> {
        let features = roles.iter().filter(|role| matches!(role, ColumnRole::Feature(_))).count();
        let mut made: Vec<Option<GrowingColumn>> = (0..features).map(|_| None).collect();
        for (column, &role) in roles.iter().enumerate() {
            let ColumnRole::Feature(feature) = role else { continue };
            let name = &cursor.names()[column];
            let given = options.schema.as_ref().map(|schema| {
                schema.columns.iter().find(|given| given.name == *name).ok_or_else(|| {
                    let message = String::from("is not in the schema of the training data");
                    Error::Column { path: cursor.path().to_owned(), column: name.clone(), message }
                })
            });
            let new = match (given.transpose()?, cursor.column_type(column)) {
                (Some(given), _) => GrowingColumn::known(&given.kind, false),
                (None, ColumnType::Number(_)) => GrowingColumn::known(&FeatureKind::Numeric, true),
                (None, ColumnType::Nominal(values)) => {
                    let kind = FeatureKind::Nominal { values: values.to_vec() };
                    GrowingColumn::known(&kind, true)
                }
                (None, declared) => {
                    let numbers = declared == ColumnType::Untyped;
                    GrowingColumn::learned(numbers, options.limits.categories)
                }
            };
            match self.columns.get(feature) {
                Some(old) if !old.is_like(&new) => {
                    let message = String::from("has another type in the files before this one");
                    let (path, column) = (cursor.path().to_owned(), name.clone());
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

    /// The complete data set.
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
        if schema.width().saturating_mul(self.rows) > options.limits.values {
            let (path, limit) = (String::from("the data set"), options.limits.values);
            return Err(Error::TooMuchData { path, what: "values", limit });
        }
        // The name of each category repeats the name of its column.
        if schema.name_bytes() > options.limits.text_bytes() {
            let (path, limit) = (String::from("the data set"), options.limits.text_bytes());
            return Err(Error::TooMuchData { path, what: "bytes of names", limit });
        }
        let values = assemble(columns, self.rows);
        let (columns, names) = (schema.width(), schema.names());
        let features = Features { names, rows: self.rows, columns, values };
        let kept = options.keep.iter().cloned().zip(self.kept).collect();
        Ok(Dataset { features, schema, targets, kept, unseen, ignored: self.ignored })
    }
}

/// How the cells of a file become targets.
struct RowLabels {
    classes: Option<ClassLabels>,
    separator: String,
    /// The first column with targets, for messages about a whole row.
    column: usize,
    /// Whether a row has one cell per label.
    matrix: bool,
}

impl RowLabels {
    fn new(cursor: &RecordCursor, roles: &[ColumnRole], reader: &Reader<'_>) -> RowLabels {
        let is_label =
            |role: &ColumnRole| matches!(role, ColumnRole::Target | ColumnRole::Label(_));
        let column = roles.iter().position(is_label).unwrap_or(0);
        let matrix = roles.iter().any(|role| matches!(role, ColumnRole::Label(_)));
        let mut labels = RowLabels { classes: None, separator: String::new(), column, matrix };
        if let Some((targets, graph, _)) = reader {
            labels.separator = separator(targets, cursor);
            let declared = cursor.column_type(column);
            if let (ColumnType::Hierarchical(hierarchy), ColumnRole::Target) =
                (declared, roles[column])
            {
                labels.classes = Some(ClassLabels::new(hierarchy, graph));
            }
        }
        labels
    }

    fn target(&mut self, cell: RecordCell<'_>, reader: &mut Reader<'_>) -> Result<(), String> {
        let Some((targets, _, reader)) = reader else { return Ok(()) };
        match &mut self.classes {
            Some(classes) => reader.classes(cell, &self.separator, classes),
            None => reader.row(cell, targets.form, &self.separator),
        }
    }

    fn label(
        &self,
        label: u32,
        cell: RecordCell<'_>,
        reader: &mut Reader<'_>,
    ) -> Result<(), String> {
        let Some((_, _, reader)) = reader else { return Ok(()) };
        let value = match cell {
            RecordCell::Missing => Some(Evidence::Unknown),
            RecordCell::Number(number) => Evidence::from_number(number),
            RecordCell::Text(text) => Evidence::from_text(text),
            RecordCell::List(_) => None,
        };
        match value {
            None => {
                let what = match cell {
                    RecordCell::Text(text) => shown(text),
                    other => kept_text(other),
                };
                Err(format!("the cell is {what}; {}", <Evidence as BlockValue>::EXPECTED))
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

/// The separator between the names of a list.
pub(super) fn separator(targets: &TargetOptions, cursor: &RecordCursor) -> String {
    let usual = if matches!(cursor, RecordCursor::Arff(_)) { "@" } else { ";" };
    targets.separator.as_deref().filter(|text| !text.is_empty()).unwrap_or(usual).to_owned()
}

fn kept_text(cell: RecordCell<'_>) -> String {
    match cell {
        RecordCell::Missing => String::new(),
        RecordCell::Number(number) => number.to_string(),
        RecordCell::Text(text) => text.to_owned(),
        RecordCell::List(items) => items.join(";"),
    }
}

/// The error of a cell.
fn cell_error(cursor: &RecordCursor, column: usize, fault: CellFault) -> Error {
    match fault {
        CellFault::Message(message) => cursor.error(column, message),
        CellFault::TooManyCategories { text, limit } => {
            Error::TooManyCategories { location: cursor.location(column), text, limit }
        }
    }
}

fn too_much(cursor: &RecordCursor, options: &DatasetOptions, what: &'static str) -> Error {
    Error::TooMuchData { path: cursor.path().to_owned(), what, limit: options.limits.values }
}
