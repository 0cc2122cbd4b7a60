//! What is wanted from files of data.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::FeatureSchema;
use crate::format::SNIFFED;
use crate::{Error, TableFormat, TableLimits};

/// A form of files of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DatasetFormat {
    /// A table, as for scores.
    Table(TableFormat),
    /// Typed attributes and rows, as Weka and Clus write them.
    Arff,
}

impl DatasetFormat {
    /// The form that the name of a file shows.
    ///
    /// ```
    /// use phex_io::{DatasetFormat, TableFormat};
    /// assert_eq!(DatasetFormat::from_path("x.arff".as_ref()), Some(DatasetFormat::Arff));
    /// let npy = DatasetFormat::Table(TableFormat::Npy);
    /// assert_eq!(DatasetFormat::from_path("x.npy".as_ref()), Some(npy));
    /// ```
    pub fn from_path(path: &Path) -> Option<DatasetFormat> {
        let arff = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("arff"));
        if arff {
            return Some(DatasetFormat::Arff);
        }
        TableFormat::from_path(path).map(DatasetFormat::Table)
    }

    /// The form of a file that can be looked at twice, by its name or its first bytes.
    pub(super) fn of_file(path: &Path) -> Result<Option<DatasetFormat>, Error> {
        use std::io::Read;
        let shown = DatasetFormat::from_path(path);
        let failed = |source| Error::Read { path: path.display().to_string(), source };
        if shown.is_some() || crate::input::is_standard(path) {
            return Ok(shown);
        }
        let file = std::fs::File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Ok(None);
        }
        let mut start = Vec::new();
        file.take(SNIFFED as u64).read_to_end(&mut start).map_err(failed)?;
        if crate::Format::from_content(&start) == Some(crate::Format::Arff) {
            return Ok(Some(DatasetFormat::Arff));
        }
        // Text may be a table or not: that depends on what is wanted.
        let binary = TableFormat::from_content(&start)
            .filter(|format| matches!(format, TableFormat::Npy | TableFormat::Parquet));
        Ok(binary.map(DatasetFormat::Table))
    }
}

impl fmt::Display for DatasetFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatasetFormat::Table(table) => table.fmt(f),
            DatasetFormat::Arff => f.write_str("arff"),
        }
    }
}

impl FromStr for DatasetFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<DatasetFormat, String> {
        match name.parse::<TableFormat>() {
            Ok(table) => Ok(DatasetFormat::Table(table)),
            Err(_) if name == "arff" => Ok(DatasetFormat::Arff),
            Err(_) => {
                let known = TableFormat::names();
                Err(format!("`{name}` is not a form of data; the forms are {known}, arff"))
            }
        }
    }
}

/// What labels mean that a row does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Unlisted {
    /// Nothing is known of them: an open world.
    #[default]
    Unknown,
    /// They are off: a closed world. What is listed is first closed upwards along the hierarchy.
    Off,
}

/// How the cells of one column, or the lines of a file, name labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LabelForm {
    /// The name of one label.
    #[default]
    Name,
    /// The number of one label, from 0: in [`TargetOptions::names`], else in the graph.
    Id,
    /// Names with a separator between them; `!name` says that a label is off.
    List,
}

/// Where labels are found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetSource {
    /// The hierarchical attribute of the ARFF files. The classes above one in the attribute are on
    /// with it.
    Hierarchical,
    /// One column, in the form of [`TargetOptions::form`].
    Column(String),
    /// Every column that is named as a label: on, off or unknown.
    Matrix,
    /// Other files, whose rows are those of the features in order. An npy file of one dimension
    /// has the numbers of labels, one of two dimensions is a matrix in the order of the labels.
    /// A CSV, TSV or Parquet file has a column of that name, or is a matrix when none is given.
    /// Any other file is text, a row a line, in the form of [`TargetOptions::form`].
    Files {
        /// The files.
        paths: Vec<PathBuf>,
        /// The column of a table.
        column: Option<String>,
    },
}

/// How to read targets.
#[derive(Debug, Clone)]
pub struct TargetOptions {
    /// Where they are.
    pub source: TargetSource,
    /// How one cell names labels.
    pub form: LabelForm,
    /// What is between names of a list. Default: `@` in ARFF files and `;` in others.
    pub separator: Option<String>,
    /// The labels that numbers stand for: the name with number 0 first. Default: those of the
    /// graph.
    pub names: Option<Vec<String>>,
    /// What labels mean that are not listed. Default: unknown.
    pub unlisted: Unlisted,
    /// Whether labels above one that is on are on too. Default: no, except where unlisted labels
    /// are off.
    pub ancestors: bool,
}

impl TargetOptions {
    /// The defaults for a place where targets are.
    pub fn new(source: TargetSource) -> TargetOptions {
        TargetOptions {
            source,
            form: LabelForm::Name,
            separator: None,
            names: None,
            unlisted: Unlisted::Unknown,
            ancestors: false,
        }
    }
}

/// How to read data. The default takes every column as a feature.
#[derive(Debug, Clone)]
pub struct DatasetOptions {
    /// The form of the files. `None`: by their names, else by their content.
    pub format: Option<DatasetFormat>,
    /// The columns that are features. `None`: those of the schema, else all that are nothing else.
    pub features: Option<Vec<String>>,
    /// The columns that are left out.
    pub drop: Vec<String>,
    /// The columns that are passed through as text.
    pub keep: Vec<String>,
    /// Where targets are. `None`: there are none.
    pub targets: Option<TargetOptions>,
    /// What columns became in the training data. `None`: it is learned.
    pub schema: Option<FeatureSchema>,
    /// How many categories a column may have where they are learned. Default: 1000.
    pub max_categories: usize,
    /// How many values the features, and how many labels the targets, may have in all. Default:
    /// 2^30, which is 4 GiB.
    pub max_values: usize,
    /// Limits of the tables.
    pub limits: TableLimits,
}

impl Default for DatasetOptions {
    fn default() -> DatasetOptions {
        DatasetOptions {
            format: None,
            features: None,
            drop: Vec::new(),
            keep: Vec::new(),
            targets: None,
            schema: None,
            max_categories: 1000,
            max_values: 1 << 30,
            limits: TableLimits::default(),
        }
    }
}
