//! Options for reading files of data.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::FeatureSchema;
use crate::files::input::{SNIFFED, is_standard};
use crate::{Error, Limits, TableFormat};

/// A file format of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DatasetFormat {
    /// A table, as for scores.
    Table(TableFormat),
    /// Typed attributes and rows, as Weka and Clus write them.
    Arff,
}

impl DatasetFormat {
    /// The format that the name of a file implies.
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

    /// The format of a file, by its name or its first bytes. Streams cannot be read twice and are not
    /// examined.
    pub(in crate::tables) fn of_file(path: &Path) -> Result<Option<DatasetFormat>, Error> {
        use std::io::Read;
        let implied = DatasetFormat::from_path(path);
        let failed = |source| Error::Read { path: path.display().to_string(), source };
        if implied.is_some() || is_standard(path) {
            return Ok(implied);
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
        // Text may be a table or a list of labels; the caller decides.
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
                Err(format!("`{name}` is not a format of data; the formats are {known}, arff"))
            }
        }
    }
}

/// The meaning of labels that a row does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Unlisted {
    /// They are unknown: an open world.
    #[default]
    Unknown,
    /// They are off: a closed world. The ancestors of listed labels are on.
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
    /// Names with a separator between them; `!name` means that a label is off.
    List,
}

/// Where the targets are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetSource {
    /// In the hierarchical attribute of the ARFF files. The ancestors of a class are on with it.
    Hierarchical,
    /// In one column, in the form of [`TargetOptions::form`].
    Column(String),
    /// In every column that has the name of a label: on, off or unknown.
    Matrix,
    /// In other files, with the same rows as the features. An npy file of one dimension holds the
    /// numbers of labels; one of two dimensions is a matrix in the order of the labels. A CSV, TSV
    /// or Parquet file has the given column, or is a matrix if none is given. Any other file is
    /// text with one row per line, in the form of [`TargetOptions::form`].
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
    /// The separator between names of a list. Default: `@` in ARFF files and `;` in others.
    pub separator: Option<String>,
    /// The names of the labels that numbers stand for, number 0 first. Default: the labels of the
    /// graph.
    pub names: Option<Vec<String>>,
    /// The meaning of labels that are not listed. Default: unknown.
    pub unlisted: Unlisted,
    /// Whether the ancestors of a label that is on are on as well. Default: only if unlisted labels
    /// are off.
    pub ancestors: bool,
}

impl TargetOptions {
    /// The defaults for a source of targets.
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

/// How to read data. By default every column is a feature.
#[derive(Debug, Clone, Default)]
pub struct DatasetOptions {
    /// The format of the files. `None`: the names of the files decide, then their content.
    pub format: Option<DatasetFormat>,
    /// The columns that are features. `None`: those of the schema, else all that have no other role.
    pub features: Option<Vec<String>>,
    /// The columns that are left out.
    pub drop: Vec<String>,
    /// The columns that are passed through as text.
    pub keep: Vec<String>,
    /// Where targets are. `None`: there are none.
    pub targets: Option<TargetOptions>,
    /// The features of the training data. `None`: they are learned.
    pub schema: Option<FeatureSchema>,
    /// How much the files may hold.
    pub limits: Limits,
}
