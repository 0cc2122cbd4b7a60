//! Labels, their ids, and the places where they were declared.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// The index of a label in its graph, and of its column in a table of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct LabelId(pub u32);

impl LabelId {
    /// The id as an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for LabelId {
    /// # Panics
    /// Above `u32::MAX`. No graph reaches this, because the builder counts labels in 32 bits.
    fn from(index: usize) -> LabelId {
        LabelId(u32::try_from(index).expect("label ids fit 32 bits"))
    }
}

/// A label: a unique name and, if the source has one, a title for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The unique name, as in score tables: `n02084071`.
    pub name: String,
    /// A readable form: `dog, domestic dog, Canis familiaris`.
    pub title: Option<String>,
    /// Where it was declared, or first used.
    pub place: SourceLocation,
}

impl fmt::Display for Label {
    /// Writes `dog (n02084071)`, or the name alone. Titles are cut at their first comma.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.short_title() {
            Some(title) if title != self.name => write!(f, "{title} ({})", self.name),
            _ => f.write_str(&self.name),
        }
    }
}

impl Label {
    /// The title up to its first comma, because `dog, domestic dog` is a list of synonyms.
    pub fn short_title(&self) -> Option<&str> {
        self.title.as_deref().map(|title| title.split(", ").next().unwrap_or(title))
    }
}

/// Where something was declared: a source and a line in it, both optional.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SourceLocation {
    /// The file, or another name for the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Arc<str>>,
    /// The line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl SourceLocation {
    /// Whether both source and line are unknown.
    pub fn is_unknown(&self) -> bool {
        self.source.is_none() && self.line.is_none()
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.source, self.line) {
            (Some(source), Some(line)) => write!(f, "{source}:{line}"),
            (Some(source), None) => f.write_str(source),
            (None, Some(line)) => write!(f, "line {line}"),
            (None, None) => f.write_str("(no place)"),
        }
    }
}
