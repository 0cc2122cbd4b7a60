//! The builder, for Python.

use std::path::PathBuf;

use phex::graph::{self, Defaults, ExclusionRule, Semantics};
use phex_io::{Format, ReadOptions};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::graph::Graph;
use crate::options::named;
use crate::report::Report;
use crate::strength::StrengthLike;

/// Collects labels and relations by name, in any order.
///
/// It never fails. `check()` reports all mistakes at once, and `build()` raises if the graph cannot be
/// used.
///
/// >>> import phex
/// >>> builder = phex.GraphBuilder()
/// >>> builder.hierarchy("animal", ["dog", "cat"]).exclude("siblings")
/// <GraphBuilder of 3 labels>
/// >>> builder.build().labels
/// ['animal', 'dog', 'cat']
#[pyclass(module = "phex")]
#[derive(Debug, Default)]
pub(crate) struct GraphBuilder(pub(crate) graph::GraphBuilder);

/// One name or several.
#[derive(FromPyObject)]
enum Names {
    One(String),
    Several(Vec<String>),
}

/// Further files of a graph, and how to read it.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) format: Option<String>,
    pub(crate) synsets: Option<PathBuf>,
    pub(crate) labels: Option<PathBuf>,
    pub(crate) rows: Option<PathBuf>,
    pub(crate) columns: Option<PathBuf>,
    pub(crate) scale: Option<StrengthLike>,
    pub(crate) one_of_classes: bool,
}

impl Reading {
    /// Reads a file.
    pub(crate) fn read(
        self,
        py: Python<'_>,
        path: PathBuf,
    ) -> Result<graph::GraphBuilder, Failure> {
        let options = ReadOptions {
            format: self.format.as_deref().map(format).transpose()?,
            synsets: self.synsets,
            labels: self.labels,
            rows: self.rows,
            columns: self.columns,
            matrix_scale: self.scale.map(StrengthLike::read).transpose()?,
            one_of_classes: self.one_of_classes,
            ..ReadOptions::default()
        };
        Ok(py.detach(|| phex_io::read_graph(&path, &options))?)
    }
}

/// Builds a graph. Its error has all findings of a check, not only those that make it unusable.
pub(crate) fn build(builder: &graph::GraphBuilder) -> Result<graph::RelationGraph, phex::Error> {
    builder.build().map_err(|error| match error {
        phex::Error::Graph { .. } => phex::Error::Graph { report: Box::new(builder.check()) },
        other => other,
    })
}

/// A format by its name.
pub(crate) fn format(name: &str) -> Result<Format, Failure> {
    name.parse().map_err(Failure::Input)
}

/// Text of a known format.
pub(crate) fn parse(text: &[u8], format: &str, name: &str) -> Result<graph::GraphBuilder, Failure> {
    let format = self::format(format)?;
    Ok(phex_io::parse_graph(text, name, format, &ReadOptions::default())?)
}

/// Text, or its bytes.
#[derive(FromPyObject)]
pub(crate) enum Text {
    Words(String),
    Bytes(Vec<u8>),
}

impl Text {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Text::Words(words) => words.as_bytes(),
            Text::Bytes(bytes) => bytes,
        }
    }
}

fn optional(strength: Option<StrengthLike>) -> Result<Option<graph::Strength>, Failure> {
    strength.map(StrengthLike::read).transpose()
}

#[pymethods]
impl GraphBuilder {
    #[new]
    fn new() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// Reads a file of any supported format: TOML, JSON, CSV, HXG, outlines, OBO, Turtle and others.
    #[staticmethod]
    #[pyo3(signature = (path, *, format=None, synsets=None, labels=None, rows=None, columns=None,
                        scale=None, one_of_classes=false))]
    #[allow(clippy::too_many_arguments)] // They are keywords.
    fn load(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        synsets: Option<PathBuf>,
        labels: Option<PathBuf>,
        rows: Option<PathBuf>,
        columns: Option<PathBuf>,
        scale: Option<StrengthLike>,
        one_of_classes: bool,
    ) -> Result<GraphBuilder, Failure> {
        let reading = Reading { format, synsets, labels, rows, columns, scale, one_of_classes };
        reading.read(py, path).map(GraphBuilder)
    }

    /// Reads text in a named format.
    #[staticmethod]
    #[pyo3(signature = (text, format, *, name="<text>"))]
    fn parse(text: Text, format: &str, name: &str) -> Result<GraphBuilder, Failure> {
        parse(text.bytes(), format, name).map(GraphBuilder)
    }

    /// Declares a label. The order of declaration is the order of the columns of scores.
    #[pyo3(signature = (name, title=None))]
    fn label<'py>(
        mut slf: PyRefMut<'py, Self>,
        name: &str,
        title: Option<&str>,
    ) -> PyRefMut<'py, Self> {
        slf.0.titled_label(name, title);
        slf
    }

    /// Declares that there are no other labels: any further name is an error.
    fn close_labels(mut slf: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        slf.0.close_labels();
        slf
    }

    /// The parent subsumes each of the children: whatever is a child is also a parent.
    #[pyo3(signature = (parent, children, strength=None))]
    fn hierarchy<'py>(
        mut slf: PyRefMut<'py, Self>,
        parent: &str,
        children: Names,
        strength: Option<StrengthLike>,
    ) -> Result<PyRefMut<'py, Self>, Failure> {
        let strength = optional(strength)?;
        match children {
            Names::One(child) => {
                slf.0.hierarchy(parent, &child, strength);
            }
            Names::Several(children) => children.iter().for_each(|child| {
                slf.0.hierarchy(parent, child, strength);
            }),
        }
        Ok(slf)
    }

    /// All pairs of these labels exclude each other.
    #[pyo3(signature = (labels, strength=None, *, name=None))]
    fn exclusion<'py>(
        mut slf: PyRefMut<'py, Self>,
        labels: Vec<String>,
        strength: Option<StrengthLike>,
        name: Option<&str>,
    ) -> Result<PyRefMut<'py, Self>, Failure> {
        let strength = optional(strength)?;
        slf.0.exclusion_group(name, labels.iter().map(String::as_str), strength);
        Ok(slf)
    }

    /// Exactly one of these labels is on; `"leaves"` means all leaves of the hierarchy.
    fn one_of<'py>(
        mut slf: PyRefMut<'py, Self>,
        name: &str,
        labels: Names,
    ) -> Result<PyRefMut<'py, Self>, Failure> {
        match labels {
            Names::One(word) if word == "leaves" => {
                slf.0.one_of_leaves(name);
            }
            Names::One(word) => {
                let message = format!("`{word}`: give a list of labels, or \"leaves\"");
                return Err(Failure::Input(message));
            }
            Names::Several(labels) => {
                slf.0.one_of(name, labels.iter().map(String::as_str), None);
            }
        }
        Ok(slf)
    }

    /// Pairs of labels exclude each other by a rule: `siblings`, `no-common-descendant`, `not-subsumed`.
    #[pyo3(signature = (rule, strength=None))]
    fn exclude<'py>(
        mut slf: PyRefMut<'py, Self>,
        rule: &str,
        strength: Option<StrengthLike>,
    ) -> Result<PyRefMut<'py, Self>, Failure> {
        let rule: ExclusionRule = named("rule", rule)?;
        slf.0.exclusion_rule(rule, optional(strength)?);
        Ok(slf)
    }

    /// Each thing is exactly one kind: labels without a common descendant exclude each other, and exactly
    /// one leaf is on.
    fn single_label(mut slf: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        slf.0.single_label();
        slf
    }

    /// Which violations a soft graph charges for: `sparse` (declared relations) or `dense` (all that follow).
    fn semantics<'py>(
        mut slf: PyRefMut<'py, Self>,
        semantics: &str,
    ) -> Result<PyRefMut<'py, Self>, Failure> {
        let semantics: Semantics = named("semantics", semantics)?;
        slf.0.semantics(semantics);
        Ok(slf)
    }

    /// Strengths for relations without one.
    #[pyo3(signature = (strength=None, *, hierarchy=None, exclusion=None))]
    fn defaults(
        mut slf: PyRefMut<'_, Self>,
        strength: Option<StrengthLike>,
        hierarchy: Option<StrengthLike>,
        exclusion: Option<StrengthLike>,
    ) -> Result<PyRefMut<'_, Self>, Failure> {
        let defaults = Defaults {
            strength: optional(strength)?,
            hierarchy: optional(hierarchy)?,
            exclusion: optional(exclusion)?,
        };
        slf.0.defaults(defaults);
        Ok(slf)
    }

    /// All mistakes in the declarations.
    fn check(&self, py: Python<'_>) -> Report {
        Report::new(py.detach(|| self.0.check()))
    }

    /// The frozen graph. Raises `GraphError`, which has the report, if the graph cannot be used.
    fn build(&self, py: Python<'_>) -> Result<Graph, Failure> {
        Ok(Graph::new(py.detach(|| build(&self.0))?))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("<GraphBuilder of {} labels>", self.0.len())
    }
}
