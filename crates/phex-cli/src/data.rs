//! Data sets from the command line, and notes on them for the user.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use phex_io::{Dataset, DatasetFormat, DatasetOptions, FeatureKind, FeatureSchema, Unseen};
use phex_train::LabelSettings;

use crate::args::{DataArguments, LabelArguments};

/// The label settings that flags give.
pub(crate) fn label_settings(arguments: &LabelArguments) -> anyhow::Result<LabelSettings> {
    let names = arguments.label_names.as_deref().map(phex_io::read_label_names).transpose()?;
    Ok(LabelSettings {
        column: arguments.label_column.clone(),
        format: arguments.label_format,
        separator: arguments.separator.clone(),
        names,
        unlisted: arguments.unlisted,
        ancestors: arguments.ancestors,
        files: !arguments.label_file.is_empty(),
    })
}

impl LabelArguments {
    /// The files that are read.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.label_file.iter().chain(&self.label_names)
    }
}

impl DataArguments {
    /// How to read the files, with a schema if there is one.
    pub(crate) fn options(&self, schema: Option<FeatureSchema>) -> anyhow::Result<DatasetOptions> {
        let format = self.data_format.as_deref().map(str::parse::<DatasetFormat>).transpose();
        Ok(DatasetOptions {
            format: format.map_err(anyhow::Error::msg)?,
            drop: self.drop.clone(),
            keep: self.keep.clone(),
            schema,
            ..DatasetOptions::default()
        })
    }

    /// The files; at least one is required.
    pub(crate) fn files(&self) -> anyhow::Result<&[PathBuf]> {
        if self.data.is_empty() {
            bail!("--data FILE is missing: a table of features, one example per row");
        }
        Ok(&self.data)
    }
}

/// Categories that the training data did not have.
pub(crate) fn unseen(unseen: &[Unseen]) -> Vec<String> {
    let say = |unseen: &Unseen| {
        format!(
            "the column `{}` has {} cells with categories that the training data did not have, such \
             as `{}`; they count as missing",
            unseen.column, unseen.count, unseen.first
        )
    };
    unseen.iter().map(say).collect()
}

/// Columns that are no features because they number the rows.
pub(crate) fn ignored(data: &Dataset) -> Vec<String> {
    let say = |name: &String| match name.as_str() {
        "" => String::from(
            "the first column has no name and looks like an index, so it is not a feature; a name makes it a feature",
        ),
        name => format!(
            "the column `{name}` looks like an index, so it is not a feature; --keep {name:?} copies it to the output, \
             --drop {name:?} silences this, and --features or another name makes it a feature"
        ),
    };
    data.ignored.iter().map(say).collect()
}

/// Columns that are categories although most of their texts are numbers.
pub(crate) fn almost_numbers(schema: &FeatureSchema) -> Vec<String> {
    let mut notes = Vec::new();
    for column in &schema.columns {
        let FeatureKind::Nominal { values } = &column.kind else { continue };
        let is_number = |text: &&String| text.parse::<f64>().is_ok_and(f64::is_finite);
        let numbers = values.iter().filter(is_number).count();
        let text = values.iter().find(|text| !is_number(text));
        if let Some(text) = text.filter(|_| 2 * numbers >= values.len()) {
            notes.push(format!(
                "the column `{}` is read as categories, because `{text}` is not a number; leave cells \
                 without a number empty, or write `?`",
                column.name
            ));
        }
    }
    notes
}

/// The targets of a data set that was read with them.
pub(crate) fn targets(data: &Dataset) -> anyhow::Result<&phex_io::Targets> {
    data.targets.as_ref().context("the data have no labels")
}
