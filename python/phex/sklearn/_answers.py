"""What the estimators have in common: from marginals to what scikit-learn asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from phex._core import Graph
from phex._types import Flags, Float64
from phex.errors import InputError
from phex.sklearn._hierarchy import Hierarchy
from phex.sklearn._targets import Targets, read_targets

__all__ = ["RelationAnswers", "candidates"]

DECISIONS = ("auto", "best", "back-off", "threshold", "consistent")


def candidates(graph: Graph, classes: Any, given: NDArray[np.intp] | None) -> list[int]:
    """The labels among which one is chosen."""
    place = {label: at for at, label in enumerate(graph.labels)}
    if classes is None:
        seen = set() if given is None else {graph.labels[at] for at in np.unique(given)}
        groups = [members for members in graph.one_of.values() if seen and seen <= set(members)]
        return [place[label] for label in (groups[0] if groups else graph.leaves)]
    if isinstance(classes, str):
        if classes == "leaves":
            return [place[label] for label in graph.leaves]
        if classes == "all":
            return list(range(len(graph)))
        if classes not in graph.one_of:
            raise InputError(
                f"classes is {classes!r}; it has to be 'leaves', 'all', the name of a one-of group or a "
                "list of labels"
            )
        return [place[label] for label in graph.one_of[classes]]
    unknown = [name for name in classes if name not in place]
    if unknown or not len(classes):
        raise InputError(f"classes: `{unknown[0]}` is no label" if unknown else "classes are empty")
    return [place[name] for name in classes]


class RelationAnswers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predictions and scores of an estimator that gives a probability to every label of a graph.

    Estimators have the parameters `classes`, `decide`, `threshold` and `unlisted`, and say
    `predict_marginals` and `_consistent`.
    """

    classes: Any
    decide: str
    threshold: float
    unlisted: str

    graph_: Graph
    labels_: NDArray[Any]
    classes_: NDArray[Any]
    multilabel_: bool

    def predict_marginals(self, X: Any) -> Float64:
        """The probability of each label of the graph: rows × `labels_`."""
        raise NotImplementedError

    def _consistent(self, X: Any) -> Flags:
        """The most probable label set of each row that the relations allow."""
        raise NotImplementedError

    def _check_decision(self) -> None:
        if self.decide not in DECISIONS:
            raise InputError(f"decide is {self.decide!r}; it has to be one of {', '.join(DECISIONS)}")
        if not 0.0 <= self.threshold <= 1.0:
            raise InputError(f"threshold is {self.threshold}, and has to lie between 0 and 1")

    def _set_labels(self, targets: Targets, chosen: list[int] | None = None) -> None:
        """Fixes labels and classes; those `chosen` are the classes where the parameter names none."""
        self.labels_ = targets.values
        self.multilabel_ = targets.given is None
        if self.multilabel_:
            self._columns = np.arange(len(targets.values))
            self.classes_ = targets.values
            return
        if self.decide in ("threshold", "consistent"):
            raise InputError(
                f"decide is {self.decide!r}, which answers with sets of labels, and y has one label a "
                "row; use 'best' or 'back-off', or give y as a table or as lists"
            )
        if self.classes is not None or chosen is None:
            chosen = candidates(targets.graph, self.classes, targets.given)
        if self.decide == "back-off" and self.classes is None:
            chosen = candidates(targets.graph, "all", None)
        # Sorted, as metrics of scikit-learn take columns to be.
        self._columns = np.array(sorted(chosen, key=lambda at: targets.values[at]), dtype=np.intp)
        self.classes_ = targets.values[self._columns]

    def predict_proba(self, X: Any) -> Float64:
        """The probability of each of `classes_`: rows × classes.

        Each is the probability that its label is on. They sum to one in a row where the relations say
        that exactly one of the classes is on: without relations, or with a one-of group of the classes.
        """
        marginals = self.predict_marginals(X)
        return marginals[:, self._columns]

    def decision_function(self, X: Any) -> Float64:
        """The log-odds of `predict_proba`; of two classes, those of the second alone."""
        p = self.predict_proba(X)
        tiny = np.finfo(np.float64).tiny
        with np.errstate(divide="ignore"):
            odds: Float64 = np.log(np.maximum(p, tiny)) - np.log(np.maximum(1.0 - p, tiny))
        return odds[:, 1] if not self.multilabel_ and p.shape[1] == 2 else odds

    def _back_off(self, marginals: Float64) -> NDArray[np.intp]:
        """Of the labels that reach the threshold the deepest, then most probable; -1 if none does."""
        depths = np.where(marginals >= self.threshold, Hierarchy(self.graph_).depths(), -1)
        deepest = depths.max(axis=1, keepdims=True)
        chosen: NDArray[np.intp] = np.where(depths == deepest, marginals, -1.0).argmax(axis=1)
        return np.where(deepest[:, 0] < 0, -1, chosen)

    def _sets(self, X: Any) -> Flags:
        if self.decide == "consistent":
            return self._consistent(X)
        marginals = self.predict_marginals(X)
        if self.decide in ("auto", "threshold"):
            return marginals >= self.threshold
        if self.decide == "best":
            among = np.array(candidates(self.graph_, self.classes, None), dtype=np.intp)
            chosen = among[marginals[:, among].argmax(axis=1)]
        else:
            chosen = self._back_off(marginals)
        on = Hierarchy(self.graph_).closure(np.maximum(chosen, 0))
        on[chosen < 0] = False
        return on

    def predict(self, X: Any) -> NDArray[Any]:
        """A label a row; rows × labels (1 on, 0 off) where `y` had sets of labels.

        `decide` says how: see the parameters of the class.
        """
        check_is_fitted(self)
        if self.multilabel_:
            return self._sets(X).astype(np.int_)
        marginals = self.predict_marginals(X)
        best = self._columns[marginals[:, self._columns].argmax(axis=1)]
        if self.decide == "back-off":
            chosen = self._back_off(marginals)
            best = np.where(chosen < 0, best, chosen)
        return np.asarray(self.labels_[best])

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """How many rows are answered rightly.

        With a label a row, a prediction is right when it is the label given or lies below it: `dog` is
        right where `pet` is all that is known. With sets, when it agrees with all that is known of the
        row. Where everything is known to the last, this is the accuracy of scikit-learn.
        """
        predicted = self.predict(X)
        if self.multilabel_:
            known = read_targets(y, self.graph_, self.unlisted).known
            right = ((known == predicted) | (known == -1)).all(axis=1)
        else:
            truth = column_or_1d(y)
            right = predicted == truth
            place = {value: at for at, value in enumerate(self.labels_.tolist())}
            hierarchy = Hierarchy(self.graph_)
            for row in np.flatnonzero(~right):
                at = place.get(truth[row])
                right[row] = at is not None and at in hierarchy.above(place[predicted[row]])
        return float(
            np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight))
        )
