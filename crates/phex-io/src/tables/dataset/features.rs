//! Features in memory, and the columns that they come from.

use serde::{Deserialize, Serialize};

/// Numbers, row after row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Features {
    /// The names of the features; one of a category is `name=category`.
    pub names: Vec<String>,
    /// How many rows there are.
    pub rows: usize,
    /// How many columns there are.
    pub columns: usize,
    /// The values, row after row. A missing number is NaN; a missing category is 0 in each of its
    /// columns. No value is infinite.
    pub values: Vec<f32>,
}

impl Features {
    /// The values of one row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }
}

/// What a column of a file becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FeatureKind {
    /// A number, unchanged.
    Numeric,
    /// One column per category: 1 where the cell is the category, else 0.
    Nominal {
        /// The categories, in order.
        values: Vec<String>,
    },
}

/// A column of a file that becomes features.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureColumn {
    /// Its name.
    pub name: String,
    /// What it becomes.
    #[serde(flatten)]
    pub kind: FeatureKind,
}

/// How columns of files become features. It is learned from training data, stored with the model
/// and applied to new data.
///
/// ```
/// use phex_io::FeatureSchema;
///
/// let json = r#"{"columns": [{"name": "weight", "kind": "numeric"},
///                            {"name": "fur", "kind": "nominal", "values": ["no", "yes"]}]}"#;
/// let schema: FeatureSchema = serde_json::from_str(json)?;
/// assert_eq!(schema.names(), ["weight", "fur=no", "fur=yes"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureSchema {
    /// The columns, in order.
    pub columns: Vec<FeatureColumn>,
}

impl FeatureSchema {
    /// How many features a row has.
    pub fn width(&self) -> usize {
        let width = |column: &FeatureColumn| match &column.kind {
            FeatureKind::Numeric => 1,
            FeatureKind::Nominal { values } => values.len(),
        };
        self.columns.iter().map(width).sum()
    }

    /// The names of the features.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for FeatureColumn { name, kind } in &self.columns {
            match kind {
                FeatureKind::Numeric => names.push(name.clone()),
                FeatureKind::Nominal { values } => {
                    names.extend(values.iter().map(|value| format!("{name}={value}")));
                }
            }
        }
        names
    }

    /// How many bytes the names of the features have.
    pub(super) fn name_bytes(&self) -> usize {
        let bytes = |column: &FeatureColumn| match &column.kind {
            FeatureKind::Numeric => column.name.len(),
            FeatureKind::Nominal { values } => {
                let all: usize = values.iter().map(String::len).sum();
                values.len().saturating_mul(column.name.len() + 1).saturating_add(all)
            }
        };
        self.columns.iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// The first column that differs in another schema, and how.
    pub(super) fn difference(&self, other: &FeatureSchema) -> Option<(String, String)> {
        for (index, ours) in self.columns.iter().enumerate() {
            let message = match other.columns.get(index) {
                None => String::from("is missing"),
                Some(theirs) if theirs.name != ours.name => {
                    format!("is missing where it should be: there is `{}`", theirs.name)
                }
                Some(theirs) => match (&ours.kind, &theirs.kind) {
                    (ours, theirs) if ours == theirs => continue,
                    (FeatureKind::Nominal { .. }, FeatureKind::Nominal { .. }) => {
                        String::from("has other categories")
                    }
                    (FeatureKind::Numeric, _) => String::from("holds text and not numbers"),
                    (_, _) => String::from("holds numbers and not categories"),
                },
            };
            return Some((ours.name.clone(), message));
        }
        let more = other.columns.get(self.columns.len())?;
        Some((more.name.clone(), String::from("is not in the first data set")))
    }
}

/// A column with categories that the schema does not have. Like missing values, they are 0 in each
/// column of the feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    /// The name of the column.
    pub column: String,
    /// How many cells have such a category.
    pub count: usize,
    /// The first such category.
    pub first: String,
}
