//! Data sets from the command line, and where their labels are.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use phex_io::{
    Dataset, DatasetFormat, DatasetOptions, FeatureKind, FeatureSchema, LabelForm, TargetOptions,
    TargetSource, Unlisted,
};
use serde::{Deserialize, Serialize};

use crate::args::{DataArguments, LabelArguments, LabelFormat, UnlistedLabels};

/// The key under which a model remembers where its labels were.
const KEY: &str = "labels";

/// Where labels are, as a model remembers it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LabelSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<LabelFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    separator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlisted: Option<UnlistedLabels>,
    ancestors: bool,
    /// Whether they were in other files.
    files: bool,
}

impl LabelSettings {
    /// What flags say, on top of what is known.
    pub(crate) fn of(
        arguments: &LabelArguments,
        known: LabelSettings,
    ) -> anyhow::Result<LabelSettings> {
        let names = match &arguments.label_names {
            Some(path) => Some(phex_io::read_label_names(path)?),
            None => known.names,
        };
        let places = arguments.label_column.is_some() || !arguments.label_file.is_empty();
        Ok(LabelSettings {
            column: arguments.label_column.clone().or(known.column),
            // Another place is another form, unless that is given too.
            format: arguments.label_format.or(known.format.filter(|_| !places)),
            separator: arguments.separator.clone().or(known.separator),
            names,
            unlisted: arguments.unlisted.or(known.unlisted),
            ancestors: arguments.ancestors || known.ancestors,
            files: !arguments.label_file.is_empty() || known.files,
        })
    }

    /// What a model remembers.
    pub(crate) fn remembered(config: &serde_json::Map<String, serde_json::Value>) -> LabelSettings {
        let written = config.get(KEY).cloned();
        written.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default()
    }

    /// Has a model remember it.
    pub(crate) fn remember(
        &self,
        config: &mut serde_json::Map<String, serde_json::Value>,
    ) -> anyhow::Result<()> {
        config.insert(KEY.to_owned(), serde_json::to_value(self)?);
        Ok(())
    }

    /// How to read the labels of data, from these other files where there are any.
    pub(crate) fn targets(
        &self,
        data: &[PathBuf],
        files: &[PathBuf],
    ) -> anyhow::Result<TargetOptions> {
        let is_arff = |path: &PathBuf| DatasetFormat::from_path(path) == Some(DatasetFormat::Arff);
        let source = match (self.format, &self.column, files.is_empty()) {
            (Some(LabelFormat::Hierarchical), None, true) => TargetSource::Hierarchical,
            (Some(LabelFormat::Hierarchical), ..) => bail!(
                "--label-format hierarchical is for the attribute of an ARFF file; leave out \
                 --label-column and --label-file"
            ),
            (Some(LabelFormat::Matrix), Some(_), _) => bail!(
                "--label-format matrix takes a column for each label; leave out --label-column"
            ),
            (_, column, false) => {
                TargetSource::Files { paths: files.to_vec(), column: column.clone() }
            }
            (_, None, true) if self.files => {
                bail!("--label-file FILE is missing: the model was trained with labels in one")
            }
            (_, Some(column), true) => TargetSource::Column(column.clone()),
            (Some(LabelFormat::Matrix), None, true) => TargetSource::Matrix,
            (Some(_), None, true) => {
                bail!("--label-column COLUMN or --label-file FILE is missing: where the labels are")
            }
            (None, None, true) if data.first().is_some_and(is_arff) => TargetSource::Hierarchical,
            (None, None, true) => TargetSource::Matrix,
        };
        let mut targets = TargetOptions::new(source);
        targets.form = match self.format {
            Some(LabelFormat::Id) => LabelForm::Id,
            Some(LabelFormat::List) => LabelForm::List,
            _ => LabelForm::Name,
        };
        targets.separator.clone_from(&self.separator);
        targets.names.clone_from(&self.names);
        targets.unlisted = match self.unlisted {
            Some(UnlistedLabels::Off) => Unlisted::Off,
            _ => Unlisted::Unknown,
        };
        targets.ancestors = self.ancestors;
        Ok(targets)
    }
}

impl DataArguments {
    /// How to read the files, as a schema says where there is one.
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

    /// The files, of which there must be one.
    pub(crate) fn files(&self) -> anyhow::Result<&[PathBuf]> {
        if self.data.is_empty() {
            bail!("--data FILE is missing: a table of features, an example a row");
        }
        Ok(&self.data)
    }
}

/// Says which categories the training data did not have.
pub(crate) fn unseen(data: &Dataset) -> Vec<String> {
    let say = |unseen: &phex_io::Unseen| {
        format!(
            "the column `{}` has {} cells of categories that the training data did not have, such \
             as `{}`; they count as missing",
            unseen.column, unseen.count, unseen.first
        )
    };
    data.unseen.iter().map(say).collect()
}

/// Says which columns are categories though most of their texts are numbers.
pub(crate) fn almost_numbers(schema: &FeatureSchema) -> Vec<String> {
    let mut notes = Vec::new();
    for column in &schema.columns {
        let FeatureKind::Nominal { values } = &column.kind else { continue };
        let is_number = |text: &&String| text.parse::<f64>().is_ok_and(f64::is_finite);
        let numbers = values.iter().filter(is_number).count();
        let text = values.iter().find(|text| !is_number(text));
        if let Some(text) = text.filter(|_| 2 * numbers >= values.len()) {
            notes.push(format!(
                "the column `{}` is read as categories, for `{text}` is no number; cells without \
                 one are empty or `?`",
                column.name
            ));
        }
    }
    notes
}

/// The targets of a data set that was asked for them.
pub(crate) fn targets(data: &Dataset) -> anyhow::Result<&phex_io::Targets> {
    data.targets.as_ref().context("the data have no labels")
}
