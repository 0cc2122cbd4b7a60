//! Where the labels of data files are and how they are written.
//!
//! A model remembers these settings under the key `labels` of its `config.json`, so that evaluation
//! finds the labels of other files in the same way. [`phex_io`] reads the files.

use std::path::PathBuf;
use std::str::FromStr;

use phex_io::{DatasetFormat, LabelForm, TargetOptions, TargetSource, Unlisted};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::Error;

/// The key under which a model remembers its settings.
const KEY: &str = "labels";

/// How labels are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelFormat {
    /// The name of one label.
    Name,
    /// The number of one label.
    Id,
    /// Names with a separator between them; `!name` is off.
    List,
    /// One column per label: 1 on, 0 off, empty unknown.
    Matrix,
    /// The hierarchical attribute of ARFF files.
    Hierarchical,
}

impl LabelFormat {
    /// All names.
    pub const NAMES: &'static [&'static str] = &["name", "id", "list", "matrix", "hierarchical"];
}

impl FromStr for LabelFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<LabelFormat, String> {
        match text {
            "name" => Ok(LabelFormat::Name),
            "id" => Ok(LabelFormat::Id),
            "list" => Ok(LabelFormat::List),
            "matrix" => Ok(LabelFormat::Matrix),
            "hierarchical" => Ok(LabelFormat::Hierarchical),
            _ => {
                let names = LabelFormat::NAMES.join(", ");
                Err(format!("`{text}` is not a label format: write one of {names}"))
            }
        }
    }
}

/// Reads the state of labels that a row does not list: `unknown` or `off`.
///
/// # Errors
/// When the text is neither.
pub fn read_unlisted(text: &str) -> Result<Unlisted, String> {
    match text {
        "unknown" => Ok(Unlisted::Unknown),
        "off" => Ok(Unlisted::Off),
        _ => Err(format!("`{text}`: unlisted labels are `unknown` or `off`")),
    }
}

/// Where labels are and how they are written; `None` leaves a setting to the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelSettings {
    /// The column that has the labels of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// How labels are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<LabelFormat>,
    /// The text between the names of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// The labels that numbers stand for, from 0; the graph's order if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// The state of labels that a row does not list. If `None`, they are unknown, but off in the hierarchical
    /// attribute of ARFF files, which lists all labels of a row by convention.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_unlisted",
        deserialize_with = "parse_unlisted"
    )]
    pub unlisted: Option<Unlisted>,
    /// Whether labels above one that is on are on as well.
    pub ancestors: bool,
    /// Whether the labels are in separate files.
    pub files: bool,
}

fn write_unlisted<S: Serializer>(
    value: &Option<Unlisted>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value
        .map(|unlisted| if unlisted == Unlisted::Off { "off" } else { "unknown" })
        .serialize(serializer)
}

fn parse_unlisted<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Unlisted>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    text.map(|text| read_unlisted(&text).map_err(de::Error::custom)).transpose()
}

impl LabelSettings {
    /// These settings, with those of a model where these leave one open.
    pub fn or(self, model: LabelSettings) -> LabelSettings {
        // Labels in another place may have another format.
        let moved = self.column.is_some() || self.files;
        LabelSettings {
            column: self.column.or(model.column),
            format: self.format.or(model.format.filter(|_| !moved)),
            separator: self.separator.or(model.separator),
            names: self.names.or(model.names),
            unlisted: self.unlisted.or(model.unlisted),
            ancestors: self.ancestors || model.ancestors,
            files: self.files || model.files,
        }
    }

    /// The settings that a model remembers in its configuration.
    pub fn of_model(config: &Map<String, Value>) -> LabelSettings {
        let written = config.get(KEY).cloned();
        written.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default()
    }

    /// Makes a model remember these settings.
    ///
    /// # Errors
    /// When they cannot be written as JSON.
    pub fn remember(&self, config: &mut Map<String, Value>) -> Result<(), Error> {
        let value = serde_json::to_value(self)
            .map_err(|error| Error::Model { message: error.to_string() })?;
        config.insert(String::from(KEY), value);
        Ok(())
    }

    /// How to read the labels of data, from separate files if there are any.
    ///
    /// # Errors
    /// [`Error::Labels`] when the settings do not say where the labels are.
    pub fn target_options(
        &self,
        data: &[PathBuf],
        files: &[PathBuf],
    ) -> Result<TargetOptions, Error> {
        let is_arff = |path: &PathBuf| DatasetFormat::from_path(path) == Some(DatasetFormat::Arff);
        let wrong = |message| Err(Error::Labels { message });
        let source = match (self.format, &self.column, files.is_empty()) {
            (Some(LabelFormat::Hierarchical), None, true) => TargetSource::Hierarchical,
            (Some(LabelFormat::Hierarchical), ..) => {
                return wrong(
                    "the label format `hierarchical` is for the attribute of an ARFF file; give \
                     neither a label column nor label files",
                );
            }
            (Some(LabelFormat::Matrix), Some(_), _) => {
                return wrong(
                    "the label format `matrix` has one column per label; give no label column",
                );
            }
            (_, column, false) => {
                TargetSource::Files { paths: files.to_vec(), column: column.clone() }
            }
            (_, None, true) if self.files => {
                return wrong(
                    "the model was trained with labels in separate files; give such files",
                );
            }
            (_, Some(column), true) => TargetSource::Column(column.clone()),
            (Some(LabelFormat::Matrix), None, true) => TargetSource::Matrix,
            (Some(_), None, true) => {
                return wrong("the labels are missing; give a label column or label files");
            }
            (None, None, true) if data.first().is_some_and(is_arff) => TargetSource::Hierarchical,
            (None, None, true) => TargetSource::Matrix,
        };
        let unlisted = match source {
            TargetSource::Hierarchical => Unlisted::Off,
            _ => Unlisted::Unknown,
        };
        let mut targets = TargetOptions::new(source);
        targets.form = match self.format {
            Some(LabelFormat::Id) => LabelForm::Id,
            Some(LabelFormat::List) => LabelForm::List,
            _ => LabelForm::Name,
        };
        targets.separator.clone_from(&self.separator);
        targets.names.clone_from(&self.names);
        targets.unlisted = self.unlisted.unwrap_or(unlisted);
        targets.ancestors = self.ancestors;
        Ok(targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_remembers_its_settings_unless_they_change() {
        let settings = LabelSettings {
            column: Some(String::from("is")),
            format: Some(LabelFormat::List),
            unlisted: Some(Unlisted::Off),
            ..LabelSettings::default()
        };
        let mut config = Map::new();
        settings.remember(&mut config).unwrap();
        assert_eq!(config["labels"]["unlisted"], "off");
        let read = LabelSettings::of_model(&config);
        assert_eq!(read, settings);
        let moved = LabelSettings { files: true, ..LabelSettings::default() }.or(read);
        assert_eq!((moved.format, moved.unlisted), (None, Some(Unlisted::Off)));
        let error = moved.target_options(&[], &[]);
        // The column of a table is found again, and the files are not asked for.
        assert!(error.is_ok());
        let lost = LabelSettings { column: None, ..moved };
        let error = lost.target_options(&[], &[]).unwrap_err();
        assert!(error.to_string().contains("separate files"), "{error}");
    }
}
