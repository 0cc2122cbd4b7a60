//! The layout of pictures of graphs, for figures drawn by Python.

use phex::graph::LabelId;
use phex_report::{ExclusionMark, GraphLayout, MarkForm};
use pyo3::prelude::*;

use crate::graph::Graph;
use crate::strength::Strength;

/// Layers, rows and parents of all labels in their order, and the number of rows.
type LayoutColumns = (Vec<usize>, Vec<f64>, Vec<Option<String>>, usize);
/// Labels that exclude each other, their strength, the form of the mark, and its lane or number.
type MarkFields = (Vec<String>, Strength, &'static str, usize);

/// Where labels stand in a picture: the layer, the row and the parent of each, and the number of rows.
///
/// Roots are in layer 0; a label hangs below its deepest parent, `None` for roots.
#[pyfunction]
pub(crate) fn graph_layout(graph: &Graph) -> LayoutColumns {
    let GraphLayout { layers, rows, parents, height } = GraphLayout::new(&graph.0);
    let name = |id: Option<LabelId>| id.map(|id| graph.0.name(id).to_owned());
    (layers, rows, parents.into_iter().map(name).collect(), height)
}

/// The marks of exclusions in a picture: labels, strength, form and number.
///
/// The form is `bracket` (the number is its lane, from 0), `arc` (0) or `badge` (its number, from 1).
#[pyfunction]
pub(crate) fn exclusion_marks(graph: &Graph) -> Vec<MarkFields> {
    let layout = GraphLayout::new(&graph.0);
    let mark = |ExclusionMark { labels, strength, form }: ExclusionMark| {
        let labels = labels.into_iter().map(|id| graph.0.name(id).to_owned()).collect();
        let (form, number) = match form {
            MarkForm::Bracket { lane } => ("bracket", lane),
            MarkForm::Arc => ("arc", 0),
            MarkForm::Badge { number } => ("badge", number),
        };
        (labels, Strength(strength), form, number)
    };
    phex_report::exclusion_marks(&graph.0, &layout).into_iter().map(mark).collect()
}
