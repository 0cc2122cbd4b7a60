//! Data sets: features and targets, read from files into memory.
//!
//! [`read_dataset`] takes files of the same columns, one after another, in any [`DatasetFormat`]:
//! each column is a feature, part of the [`Targets`], kept as text, or dropped, as
//! [`DatasetOptions`] say. Text columns become one column for each category; the
//! [`FeatureSchema`] remembers which, so that new data get the same columns as the training data.
//! Targets are sparse: what a row says of labels, checked against the graph. [`graph_of_arff`]
//! reads the graph that an ARFF file declares. Cost: one pass over the files; memory for twice the
//! features. `docs/datasets.md` describes the forms.

mod columns;
mod features;
mod labels;
mod options;
mod read;
mod roles;
mod table;
mod table_arff;
mod table_csv;
mod table_npy;
#[cfg(feature = "parquet")]
mod table_parquet;
mod target_files;
mod targets;

use std::path::Path;

use phex::graph::GraphBuilder;

pub use features::{FeatureColumn, FeatureKind, FeatureSchema, Features, Unseen};
pub use labels::read_label_names;
pub use options::{
    DatasetFormat, DatasetOptions, LabelForm, TargetOptions, TargetSource, Unlisted,
};
pub use read::read_dataset;
pub use targets::{Target, TargetRow, Targets};

use crate::arff::Header;
use crate::formats::arff;
use crate::input::display_name;
use crate::lines::Lines;
use crate::sink::Sink;
use crate::tables::source::Source;
use crate::{Error, ReadOptions, TableFormat, TableLimits};

/// Features, and what is known of labels, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The numbers.
    pub features: Features,
    /// What the features were made of.
    pub schema: FeatureSchema,
    /// What is known of labels, where that was asked for.
    pub targets: Option<Targets>,
    /// The columns that are passed through: a name, and a text for each row.
    pub kept: Vec<(String, Vec<String>)>,
    /// Categories that the given schema does not have: empty without one.
    pub unseen: Vec<Unseen>,
}

impl Dataset {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.features.rows
    }

    /// Adds the rows of another set, such as those for validation to those for training.
    ///
    /// # Errors
    /// When the other set has other columns, other labels, or targets where this one has none.
    pub fn append(&mut self, other: Dataset) -> Result<(), Error> {
        let wrong = |column: &str, message: &str| {
            let (column, message) = (column.to_owned(), message.to_owned());
            Err(Error::Column { path: String::from("the added data set"), column, message })
        };
        if let Some((name, message)) = self.schema.difference(&other.schema) {
            return wrong(&name, &message);
        }
        let names = |set: &Dataset| set.kept.iter().map(|(name, _)| name.clone()).collect();
        let (ours, theirs): (Vec<String>, Vec<String>) = (names(self), names(&other));
        if let Some(name) = ours.iter().find(|name| !theirs.contains(name)) {
            return wrong(name, "is kept in one of the two sets only");
        }
        if let Some(name) = theirs.iter().find(|name| !ours.contains(name)) {
            return wrong(name, "is kept in one of the two sets only");
        }
        match (&mut self.targets, other.targets) {
            (None, None) => {}
            (Some(targets), Some(more)) if targets.labels() == more.labels() => {
                targets.append(&more);
            }
            (Some(_), Some(_)) => return wrong("targets", "has another number of labels"),
            _ => return wrong("targets", "is there in one of the two sets only"),
        }
        self.features.rows += other.features.rows;
        self.features.values.extend_from_slice(&other.features.values);
        for (name, mut texts) in other.kept {
            if let Some((_, all)) = self.kept.iter_mut().find(|(ours, _)| *ours == name) {
                all.append(&mut texts);
            }
        }
        for more in other.unseen {
            match self.unseen.iter_mut().find(|unseen| unseen.column == more.column) {
                Some(unseen) => unseen.count += more.count,
                None => self.unseen.push(more),
            }
        }
        Ok(())
    }
}

/// The graph of the hierarchical class attribute of an ARFF file, whose rows are not read.
///
/// # Errors
/// When the file cannot be read, is no ARFF file or has no such attribute.
pub fn graph_of_arff(path: &Path) -> Result<GraphBuilder, Error> {
    let name = display_name(path);
    let header = Header::read(&mut open_lines(path, &TableLimits::default())?)?;
    let mut sink = Sink::new(&ReadOptions::default());
    sink.source(&name);
    arff::fill(&header, &name, &mut sink)?;
    let line = header.attributes.last().map_or(1, |attribute| attribute.line);
    sink.finish(line)
}

/// A text file, or standard input for `-`, line by line.
fn open_lines(path: &Path, limits: &TableLimits) -> Result<Lines, Error> {
    // Any form of text does: the lines are all that is wanted.
    let source = Source::open(path, Some(TableFormat::Csv))?;
    Ok(Lines::new(source.name.clone(), source.into_stream(), limits.max_line))
}
