"""The shared part of estimators around a classifier: training it, and the labels of its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import has_fit_parameter

from phex._core import Graph
from phex._types import Float64
from phex.errors import InputError
from phex.sklearn._answers import candidates
from phex.sklearn._targets import Targets

__all__ = ["WrappedEstimator"]


class WrappedEstimator:
    """An estimator around a classifier, which defines `_table`: its answers in the columns of labels."""

    estimator: Any
    labels: Any
    classes: Any
    cv: Any

    estimator_: Any
    _scores_sets: bool
    _column_of: dict[Any, int]

    def _table(self, estimator: Any, X: Any) -> Float64:
        """The answers of a fitted estimator in the columns of their labels."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags = inner.classifier_tags
        tags.no_validation = inner.no_validation
        return tags

    def _find_columns(self, graph: Graph, classes: Any) -> None:
        """The label of each score, and the labels that cannot be on because they have no score."""
        self._width = len(graph)
        self._least: list[int] = []
        if self._scores_sets:
            names = list(graph.labels if self.labels is None else self.labels)
            place = {label: at for at, label in enumerate(graph.labels)}
            unknown = [name for name in names if name not in place]
            if unknown:
                raise InputError(f"labels: `{unknown[0]}` is not a label of the graph")
            self._outputs = [place[name] for name in names]
            return
        values = np.asarray(classes).tolist()
        unknown = [value for value in values if value not in self._column_of]
        if unknown:
            raise InputError(
                f"the estimator has the class {unknown[0]!r}, which is not a label of the graph"
            )
        self._outputs = [self._column_of[value] for value in values]
        names = [graph.labels[at] for at in self._outputs]
        least = set(self._outputs)
        for members in graph.one_of.values():
            if set(members).intersection(names):
                least.update(graph.index(label) for label in members)
        self._least = sorted(least)

    def _columns_of(self, answers: NDArray[Any], classes: NDArray[Any] | None) -> list[int]:
        """The label of each column of the answers of an estimator."""
        columns = self._outputs
        if classes is not None:
            columns = [self._column_of[value] for value in classes.tolist()]
        if answers.ndim != 2 or answers.shape[1] != len(columns):
            raise InputError(
                f"the scores of the estimator have the shape {answers.shape}, and there are "
                f"{len(columns)} labels; name them with `labels`"
            )
        return columns

    def _pass_on_features(self) -> None:
        """Has the attributes of the fitted estimator that describe its features."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def _train(self, X: Any, targets: Targets, weights: Float64 | None, held_out: bool) -> Float64:
        """Trains the estimator on all rows, and returns the answers to them.

        If `held_out`, the answer to each row is that of an estimator that has not seen it.
        """
        evidence, given = targets.evidence, targets.given
        self._scores_sets = given is None
        rows = np.arange(len(evidence))
        if given is None:
            self._find_columns(targets.graph, None)
            y = evidence[:, self._outputs].astype(np.int_)
            if (y < 0).any():
                row = int(np.flatnonzero((y < 0).any(axis=1))[0])
                raise InputError(
                    f"row {row} has unknown labels, on which the estimator cannot be trained; train it "
                    "on other data, and give FrozenEstimator(estimator)"
                )
            usable = np.ones(len(y), dtype=np.bool_)
        else:
            y = targets.values[given]
            usable = np.isin(given, candidates(targets.graph, self.classes, given))
            if not usable.any():
                raise InputError("no row has a label that is one of the classes; see `classes`")
            self._find_columns(targets.graph, np.unique(y[usable]))
        takes_weights = weights is not None and has_fit_parameter(self.estimator, "sample_weight")

        def train(some: NDArray[np.intp]) -> Any:
            some = some[usable[some]]
            more = {"sample_weight": weights[some]} if weights is not None and takes_weights else {}
            return clone(self.estimator).fit(_safe_indexing(X, some), y[some], **more)

        self.estimator_ = train(rows)
        if not held_out:
            return self._table(self.estimator_, X)
        table = np.empty((len(rows), self._width))
        for some, others in check_cv(self.cv, y, classifier=given is not None).split(rows, y):
            table[others] = self._table(train(some), _safe_indexing(X, others))
        return table
