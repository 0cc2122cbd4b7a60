//! Data sets: features and targets, read from files into memory.
//!
//! [`read_dataset`] reads files with the same columns, one after another, in any [`DatasetFormat`].
//! [`DatasetOptions`] say whether a column is a feature, part of the [`Targets`], kept as text or
//! dropped. A column of text becomes one feature per category; the [`FeatureSchema`] records the
//! categories, so that new data get the same features as the training data. Targets are sparse and
//! checked against the graph. Cost: one pass over the files, and memory for twice the features.
//! [`FeatureReader`] reads new data in pieces, with the schema of a model.

mod feature_columns;
mod features;
mod labels;
mod options;
mod read;
mod roles;
mod target_files;
mod targets;

pub use features::{FeatureColumn, FeatureKind, FeatureSchema, Features, Unseen};
pub use labels::read_label_names;
pub use options::{
    DatasetFormat, DatasetOptions, LabelForm, TargetOptions, TargetSource, Unlisted,
};
pub use read::{FeatureReader, read_dataset};
pub use targets::{Target, TargetRow, Targets};

use crate::Error;

/// The features and the known labels of each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The features.
    pub features: Features,
    /// The columns that the features come from.
    pub schema: FeatureSchema,
    /// The known labels, if they were requested.
    pub targets: Option<Targets>,
    /// The columns that are passed through: a name, and one text per row.
    pub kept: Vec<(String, Vec<String>)>,
    /// Categories that the given schema does not have; empty without a schema.
    pub unseen: Vec<Unseen>,
    /// Columns that are no features because they number the rows, although nobody left them out.
    pub ignored: Vec<String>,
}

impl Dataset {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.features.rows
    }

    /// Adds the rows of another set, for example the validation data to the training data.
    ///
    /// # Errors
    /// When the columns or the labels of the sets differ, or only one of them has targets.
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
            return wrong(name, "is kept in only one of the two sets");
        }
        if let Some(name) = theirs.iter().find(|name| !ours.contains(name)) {
            return wrong(name, "is kept in only one of the two sets");
        }
        match (&mut self.targets, other.targets) {
            (None, None) => {}
            (Some(targets), Some(more)) if targets.labels() == more.labels() => {
                targets.append(&more);
            }
            (Some(_), Some(_)) => return wrong("targets", "has another number of labels"),
            _ => return wrong("targets", "exists in only one of the two sets"),
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
