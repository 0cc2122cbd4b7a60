"""Reads every form of `y` as evidence of each label."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from phex._core import Graph, GraphBuilder
from phex._types import EvidenceCodes
from phex.errors import InputError
from phex.tables import evidence_codes

__all__ = ["Targets", "label_matrix", "read_relations", "read_targets"]


class Targets(NamedTuple):
    """Evidence of labels, and the form of `y`."""

    graph: Graph
    evidence: EvidenceCodes
    """Rows × labels: 1 on, 0 off, -1 unknown."""
    values: NDArray[Any]
    """The value in `y` of each label of the graph: its name, or a number."""
    given: NDArray[np.intp] | None
    """The label of each row if `y` has one per row; None if it has sets."""


def read_relations(relations: Any) -> Graph | None:
    """The graph of a parameter, which is a graph, the path of a file, or None."""
    if relations is None or isinstance(relations, Graph):
        return relations
    if isinstance(relations, (str, PathLike)):
        return Graph.load(fspath(relations))
    raise InputError(
        f"relations are a phex.Graph, the path of a file or None, not {type(relations).__name__}"
    )


def _is_sequence(entry: Any) -> bool:
    return isinstance(entry, (list, tuple, set, frozenset))


def _lists(y: Any) -> list[list[str]] | None:
    """Rows of names, or None; rows of numbers are a table."""
    if hasattr(y, "columns") or not hasattr(y, "__len__") or getattr(y, "ndim", 1) != 1:
        return None
    rows = list(y)
    if not rows or not all(_is_sequence(row) for row in rows):
        return None
    if not any(isinstance(name, str) for row in rows for name in row) and any(map(len, rows)):
        return None
    for at, row in enumerate(rows):
        odd = [name for name in row if not isinstance(name, str)]
        if odd:
            raise InputError(f"row {at}: {odd[0]!r} is not the name of a label")
    return [sorted(row) if isinstance(row, (set, frozenset)) else list(row) for row in rows]


def _table(y: Any) -> Any | None:
    """The table, or None: a data frame, or a two-dimensional array with more than one column."""
    if hasattr(y, "toarray"):
        return np.asarray(y.toarray())
    if hasattr(y, "columns") and hasattr(y, "to_numpy"):
        return y
    array = np.asarray(y)
    return array if array.ndim == 2 and array.shape[1] > 1 else None


def _place(graph: Graph) -> dict[str, int]:
    return {label: at for at, label in enumerate(graph.labels)}


def _find(place: dict[str, int], name: str, row: int) -> int:
    at = place.get(name)
    if at is None:
        near = difflib.get_close_matches(name, place, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        raise InputError(f"row {row}: `{name}` is not a label of the graph{hint}")
    return at


def _fill(graph: Graph, rows: Sequence[Iterable[int]], unlisted: str) -> EvidenceCodes:
    evidence = np.full((len(rows), len(graph)), -1, dtype=np.int8)
    if unlisted == "unknown":
        for row, labels in enumerate(rows):
            evidence[row, list(labels)] = 1
        return evidence
    place = _place(graph)
    implied = {
        label: [label, *(place[name] for name in graph.ancestors(graph.labels[label]))]
        for label in set().union(*rows)
    }
    evidence[:] = 0
    for row, labels in enumerate(rows):
        for label in labels:
            evidence[row, implied[label]] = 1
    return evidence


def _names(values: Iterable[Any]) -> list[str]:
    """Names for labels of any type: their texts, if these are valid names."""
    names = [str(value) for value in values]
    if len(set(names)) == len(names) and all(name and name.isprintable() for name in names):
        return names
    return [f"class {at}" for at in range(len(names))]


def _free(names: Sequence[str]) -> Graph:
    builder = GraphBuilder()
    for name in names:
        builder.label(name)
    return builder.build()


def _read_lists(rows: list[list[str]], graph: Graph | None, unlisted: str) -> Targets:
    if graph is None:
        graph = _free(sorted({name for row in rows for name in row}))
    place = _place(graph)
    listed = [[_find(place, name, at) for name in row] for at, row in enumerate(rows)]
    evidence = _fill(graph, listed, "off" if unlisted == "auto" else unlisted)
    return Targets(graph, evidence, np.array(graph.labels), None)


def _read_table(y: Any, graph: Graph | None) -> Targets:
    framed = hasattr(y, "columns")
    if graph is None:
        graph = _free([str(name) for name in (y.columns if framed else range(y.shape[1]))])
        values = np.array(graph.labels) if framed else np.arange(len(graph))
    else:
        values = np.array(graph.labels)
    read = evidence_codes(y, len(y), graph.labels)
    assert read is not None
    evidence = np.ascontiguousarray(read)
    if evidence.shape[1] != len(graph):
        raise InputError(
            f"y has {evidence.shape[1]} columns, and the graph has {len(graph)} labels; give a column "
            "for each label, in the order of `graph.labels`, or a data frame with their names"
        )
    bad = np.argwhere((evidence < -1) | (evidence > 1))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"y, row {row}, label `{graph.labels[column]}`: the entry is neither 1 (on), 0 (off) nor "
            "-1 or NaN (unknown)"
        )
    return Targets(graph, evidence, values, None)


def _read_names(y: Any, graph: Graph | None, unlisted: str, classes: Any) -> Targets:
    single = column_or_1d(y, warn=True)
    assert_all_finite(single, input_name="y")
    check_classification_targets(single)
    if graph is None:
        values, given = np.unique(single, return_inverse=True)
        if classes is not None:
            values = np.asarray(classes)
            unseen = np.setdiff1d(single, values)
            if len(unseen):
                raise InputError(f"y has the class {unseen[0]!r}, which the estimator does not know")
            given = np.searchsorted(values, single)
        names = _names(values)
        graph = GraphBuilder().one_of("class", names).build()
    else:
        if single.dtype.kind in "biufc":
            raise InputError(
                "y has numbers, and the labels of a graph have names; give names, or a table of "
                "rows × labels (1 on, 0 off, -1 unknown)"
            )
        place, values = _place(graph), np.array(graph.labels)
        if single.dtype == object:
            values = values.astype(object)
        given = np.array([_find(place, str(name), at) for at, name in enumerate(single)], dtype=np.intp)
    evidence = _fill(graph, [[label] for label in given], "unknown" if unlisted == "auto" else unlisted)
    return Targets(graph, evidence, values, given)


def read_targets(y: Any, graph: Graph | None, unlisted: str = "auto", classes: Any = None) -> Targets:
    """The evidence in `y` of the labels of a graph; without one, of the labels that occur in `y`.

    `classes` are the classes of an estimator that was trained elsewhere; `y` need not have all of them.
    """
    if unlisted not in ("auto", "unknown", "off"):
        raise InputError(f"unlisted is {unlisted!r}; it must be 'auto', 'unknown' or 'off'")
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    lists = _lists(y)
    if lists is not None:
        return _read_lists(lists, graph, unlisted)
    table = _table(y)
    if table is not None:
        return _read_table(table, graph)
    return _read_names(y, graph, unlisted, classes)


def label_matrix(y: Any, relations: Any, *, unlisted: str = "auto") -> EvidenceCodes:
    """The evidence in `y`, as a matrix: 1 on, 0 off, -1 unknown.

    Cross-validation of scikit-learn accepts such a matrix, but neither lists of names nor NaN.

    Args:
        y: One name per row, a list of names per row, or rows × labels.
        relations: A graph, or the path of a graph file.
        unlisted: The state of labels that a row does not name: `unknown`, or `off` (labels above the
            named ones are on). `auto` is `unknown` for one name per row, and `off` for lists.

    >>> import phex
    >>> graph = phex.GraphBuilder().hierarchy("pet", ["dog", "cat"]).build()
    >>> label_matrix([["dog"], ["pet"], []], graph)
    array([[1, 1, 0],
           [1, 0, 0],
           [0, 0, 0]], dtype=int8)
    >>> label_matrix(["dog", "pet"], graph)
    array([[-1,  1, -1],
           [ 1, -1, -1]], dtype=int8)
    """
    graph = read_relations(relations)
    if graph is None:
        raise InputError("relations are needed: a phex.Graph, or the path of a file")
    return read_targets(y, graph, unlisted).evidence
