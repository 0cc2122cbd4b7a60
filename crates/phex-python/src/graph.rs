//! The frozen graph, for Python.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use phex::graph::closure::Logic;
use phex::graph::{LabelId, RelationGraph, RelationKind};
use phex_report::{LabelValues, escape_markup, graph_picture, wants_picture};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::matrix;
use crate::builder::{Reading, Text, build, format, parse};
use crate::errors::Failure;
use crate::report::Report;
use crate::strength::{Strength, StrengthLike};

/// A notebook draws graphs of at most this many labels, and summarises larger ones.
const DRAWN: usize = 150;

/// Labels and the relations between them, checked and immutable.
///
/// >>> import phex
/// >>> graph = phex.Graph.parse("parent,child\nanimal,dog\nanimal,cat\n", "csv")
/// >>> graph.labels
/// ['animal', 'dog', 'cat']
/// >>> graph.count_states()
/// 5
/// >>> graph.compile().marginals([[0.0, 0.0, 0.0]])
/// array([[0.8, 0.4, 0.4]])
#[pyclass(frozen, module = "phex")]
#[derive(Debug, Clone)]
pub(crate) struct Graph(pub(crate) Arc<RelationGraph>);

impl Graph {
    pub(crate) fn new(graph: RelationGraph) -> Graph {
        Graph(Arc::new(graph))
    }

    fn names<'a>(&'a self, ids: impl IntoIterator<Item = &'a LabelId>) -> Vec<String> {
        ids.into_iter().map(|id| self.0.name(*id).to_owned()).collect()
    }

    fn id(&self, label: &str) -> Result<LabelId, Failure> {
        self.0.id(label).ok_or_else(|| {
            phex::Error::UnknownName { kind: "label", name: label.to_owned() }.into()
        })
    }

    fn summary(&self) -> String {
        let graph = &self.0;
        let mut parts = vec![format!("{} labels", graph.len())];
        let mut count = |number: usize, one: &str, many: &str| {
            if number > 0 {
                parts.push(format!("{number} {}", if number == 1 { one } else { many }));
            }
        };
        count(graph.hierarchy().len(), "hierarchy edge", "hierarchy edges");
        count(graph.exclusions().len(), "exclusion", "exclusions");
        count(graph.one_of().len(), "one-of group", "one-of groups");
        if let Some(rule) = graph.rule() {
            parts.push(format!("rule {}", rule.rule.name()));
        }
        parts.push(String::from(if graph.is_hard() { "hard" } else { "soft" }));
        parts.join(", ")
    }
}

#[pymethods]
impl Graph {
    /// Reads a file of any supported format: TOML, JSON, CSV, HXG, outlines, OBO, Turtle and others.
    ///
    /// Raises `FileError` if it cannot be read, and `GraphError` if it is not a valid graph.
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
    ) -> Result<Graph, Failure> {
        let reading = Reading { format, synsets, labels, rows, columns, scale, one_of_classes };
        let builder = reading.read(py, path)?;
        Ok(Graph::new(py.detach(|| build(&builder))?))
    }

    /// Reads text in a named format.
    #[staticmethod]
    #[pyo3(signature = (text, format, *, name="<text>"))]
    fn parse(text: Text, format: &str, name: &str) -> Result<Graph, Failure> {
        Ok(Graph::new(build(&parse(text.bytes(), format, name)?)?))
    }

    /// Reads the output of `to_json`.
    #[staticmethod]
    fn from_json(text: &str) -> Result<Graph, Failure> {
        Ok(Graph::new(build(&parse(text.as_bytes(), "json", "<json>")?)?))
    }

    /// The graph as JSON.
    fn to_json(&self) -> Result<String, Failure> {
        self.to_string("json")
    }

    /// The graph as text in a format: `toml`, `json`, `csv`, `outline`, `dot`, `svg` and others.
    fn to_string(&self, format: &str) -> Result<String, Failure> {
        if format == "svg" {
            return Ok(graph_picture(&self.0, None));
        }
        Ok(phex_io::graph_to_string(&self.0, self::format(format)?)?)
    }

    /// Writes a file, in the given format or the one that its name shows.
    #[pyo3(signature = (path, *, format=None))]
    fn save(&self, path: PathBuf, format: Option<&str>) -> Result<(), Failure> {
        if wants_picture(format, &path) {
            return Ok(phex_io::write_text(&path, &graph_picture(&self.0, None))?);
        }
        let format = format.map(self::format).transpose()?;
        Ok(phex_io::write_graph(&self.0, &path, format)?)
    }

    /// The names of the labels, in the order of the columns of scores.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.0.labels().iter().map(|label| label.name.clone()).collect()
    }

    /// The readable title of each label, or `None`.
    #[getter]
    fn titles(&self) -> Vec<Option<String>> {
        self.0.labels().iter().map(|label| label.title.clone()).collect()
    }

    /// Parent, child and strength of each hierarchy edge.
    #[getter]
    fn hierarchy(&self) -> Vec<(String, String, Strength)> {
        let name = |id: LabelId| self.0.name(id).to_owned();
        let edges = self.0.hierarchy().iter();
        edges.map(|edge| (name(edge.parent), name(edge.child), Strength(edge.strength))).collect()
    }

    /// Labels, strength and name of each exclusion edge or group.
    #[getter]
    fn exclusions(&self) -> Vec<(Vec<String>, Strength, Option<String>)> {
        let sets = self.0.exclusions().iter();
        sets.map(|set| (self.names(&set.labels), Strength(set.strength), set.name.clone()))
            .collect()
    }

    /// The labels of each one-of group, of which exactly one is on.
    #[getter]
    fn one_of<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        let groups = PyDict::new(py);
        for group in self.0.one_of() {
            groups.set_item(&group.name, self.names(&group.labels))?;
        }
        Ok(groups)
    }

    /// The exclusion rule and its strength, or `None`.
    #[getter]
    fn rule(&self) -> Option<(&'static str, Strength)> {
        self.0.rule().map(|rule| (rule.rule.name(), Strength(rule.strength)))
    }

    /// `sparse` or `dense`.
    #[getter]
    fn semantics(&self) -> &'static str {
        match self.0.semantics() {
            phex::graph::Semantics::Sparse => "sparse",
            phex::graph::Semantics::Dense => "dense",
        }
    }

    /// Whether every relation is hard.
    #[getter]
    fn is_hard(&self) -> bool {
        self.0.is_hard()
    }

    /// The labels without parents.
    #[getter]
    fn roots(&self) -> Vec<String> {
        self.names(&self.0.roots().collect::<Vec<_>>())
    }

    /// The labels without children.
    #[getter]
    fn leaves(&self) -> Vec<String> {
        self.names(&self.0.leaves().collect::<Vec<_>>())
    }

    /// The column of a label.
    fn index(&self, label: &str) -> Result<usize, Failure> {
        Ok(self.id(label)?.index())
    }

    /// The direct parents of a label.
    fn parents(&self, label: &str) -> Result<Vec<String>, Failure> {
        Ok(self.names(self.0.topology().parents(self.id(label)?)))
    }

    /// The labels above a label, nearest first.
    fn ancestors(&self, label: &str) -> Result<Vec<String>, Failure> {
        Ok(self.names(&self.0.topology().ancestors(self.id(label)?)))
    }

    /// The direct children of a label.
    fn children(&self, label: &str) -> Result<Vec<String>, Failure> {
        Ok(self.names(self.0.topology().children(self.id(label)?)))
    }

    /// Findings: labels that can never be on, and warnings.
    fn check(&self, py: Python<'_>) -> Report {
        Report::new(py.detach(|| self.0.check()))
    }

    /// The fewest relations with the same legal states.
    fn sparsify(&self, py: Python<'_>) -> Result<Graph, Failure> {
        Ok(Graph::new(py.detach(|| self.0.sparsify())?))
    }

    /// All relations that follow.
    fn densify(&self, py: Python<'_>) -> Result<Graph, Failure> {
        Ok(Graph::new(py.detach(|| self.0.densify())?))
    }

    /// Whether both graphs allow the same states.
    fn is_equivalent(&self, py: Python<'_>, other: &Graph) -> Result<bool, Failure> {
        Ok(py.detach(|| self.0.is_equivalent(&other.0))?)
    }

    /// The number of legal label sets: those that break no hard relation.
    fn count_states<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let count = py.detach(|| Logic::hard(&self.0).count_states())?;
        // Passed as digits, because there may be thousands of them.
        let int = py.get_type::<pyo3::types::PyInt>();
        Ok(int.call1((count.to_str_radix(16), 16))?)
    }

    /// The legal label sets, at most `limit` of them: sets × labels.
    #[pyo3(signature = (limit=1000))]
    fn states<'py>(&self, py: Python<'py>, limit: usize) -> Result<Bound<'py, PyAny>, Failure> {
        let logic = Logic::hard(&self.0);
        let (mut values, mut rows) = (Vec::new(), 0);
        for state in logic.legal_states().take(limit) {
            let start = values.len();
            values.resize(start + self.0.len(), false);
            state.iter().for_each(|label| values[start + label.index()] = true);
            rows += 1;
        }
        matrix(py, values, rows, self.0.len())
    }

    /// The same relations with other strengths: of the hierarchy, of exclusions, or both.
    #[pyo3(signature = (*, hierarchy=None, exclusion=None))]
    fn with_strengths(
        &self,
        hierarchy: Option<StrengthLike>,
        exclusion: Option<StrengthLike>,
    ) -> Result<Graph, Failure> {
        let hierarchy = hierarchy.map(StrengthLike::read).transpose()?;
        let exclusion = exclusion.map(StrengthLike::read).transpose()?;
        let changed = self.0.map_strengths(|kind, strength| match kind {
            RelationKind::Hierarchy => hierarchy.unwrap_or(strength),
            RelationKind::Exclusion => exclusion.unwrap_or(strength),
        });
        Ok(Graph::new(changed?))
    }

    /// The model that this graph defines, compiled for inference: a `phex.Model`.
    ///
    /// `method="auto"` uses an exact engine if one fits the budget, and otherwise an approximate one.
    /// The options are those of `phex.Model`.
    #[pyo3(signature = (method="auto", **options))]
    fn compile<'py>(
        slf: &Bound<'py, Self>,
        method: &str,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let options = match options {
            Some(options) => options.copy()?,
            None => PyDict::new(py),
        };
        options.set_item("method", method)?;
        py.import("phex.model")?.getattr("Model")?.call((slf,), Some(&options))
    }

    /// A picture as SVG text; `values` (a number from 0 to 1 for each label) colours it.
    #[pyo3(signature = (values=None, *, caption="value"))]
    fn svg(&self, values: Option<HashMap<String, f64>>, caption: &str) -> Result<String, Failure> {
        let Some(values) = values else { return Ok(graph_picture(&self.0, None)) };
        let mut numbers = vec![f64::NAN; self.0.len()];
        for (label, value) in &values {
            numbers[self.id(label)?.index()] = *value;
        }
        let values = LabelValues { name: caption, values: &numbers, range: (0.0, 1.0) };
        Ok(graph_picture(&self.0, Some(&values)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __contains__(&self, label: &str) -> bool {
        self.0.id(label).is_some()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Graph>() else { return false };
        match (self.to_json(), other.get().to_json()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.labels().hash(&mut hasher);
        self.0.hierarchy().len().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let read = slf.get_type().getattr("from_json")?;
        let text = slf.get().to_json()?;
        Ok((read, PyTuple::new(slf.py(), [text])?))
    }

    fn __repr__(&self) -> String {
        format!("<Graph: {}>", self.summary())
    }

    /// A picture for notebooks, or one line for a large graph.
    fn _repr_html_(&self) -> String {
        let summary = self.summary();
        let summary = escape_markup(&summary);
        if self.0.len() > DRAWN {
            return format!("<p>Graph of {summary}; <code>Graph.svg()</code> draws it</p>");
        }
        graph_picture(&self.0, None)
    }
}
