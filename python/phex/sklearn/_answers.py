"""The shared part of the estimators: from marginals to the answers that scikit-learn expects."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from phex._core import Graph, decide
from phex._types import Flags, Float64
from phex.errors import InputError
from phex.sklearn._targets import Targets, read_targets

__all__ = ["RelationAnswers", "candidates"]

DECISIONS = ("auto", "best", "back-off", "threshold", "consistent")


def candidates(graph: Graph, classes: Any, given: NDArray[np.intp] | None) -> list[int]:
    """The labels from which one is chosen."""
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
                f"classes is {classes!r}; it must be 'leaves', 'all', the name of a one-of group or a "
                "list of labels"
            )
        return [place[label] for label in graph.one_of[classes]]
    unknown = [name for name in classes if name not in place]
    if unknown or not len(classes):
        raise InputError(f"classes: `{unknown[0]}` is not a label" if unknown else "classes are empty")
    return [place[name] for name in classes]


class RelationAnswers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predictions and scores of an estimator that gives a probability to every label of a graph.

    Estimators have the parameters `classes`, `decide`, `threshold` and `unlisted`, and define
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
            raise InputError(f"decide is {self.decide!r}; it must be one of {', '.join(DECISIONS)}")
        if not 0.0 <= self.threshold <= 1.0:
            raise InputError(f"threshold is {self.threshold}, but must be between 0 and 1")

    def _set_labels(self, targets: Targets, chosen: list[int] | None = None) -> None:
        """Sets labels and classes; `chosen` are the classes if the parameter names none."""
        self.labels_ = targets.values
        self.multilabel_ = targets.given is None
        if self.multilabel_:
            self._columns = np.arange(len(targets.values))
            self.classes_ = targets.values
            return
        if self.decide in ("threshold", "consistent"):
            raise InputError(
                f"decide is {self.decide!r}, which answers with sets of labels, but y has one label per "
                "row; use 'best' or 'back-off', or give y as a table or as lists"
            )
        if self.classes is not None or chosen is None:
            chosen = candidates(targets.graph, self.classes, targets.given)
        if self.decide == "back-off" and self.classes is None:
            chosen = candidates(targets.graph, "all", None)
        # Sorted, because metrics of scikit-learn assume it.
        self._columns = np.array(sorted(chosen, key=lambda at: targets.values[at]), dtype=np.intp)
        self.classes_ = targets.values[self._columns]

    def predict_proba(self, X: Any) -> Float64:
        """The probability of each of `classes_`: rows × classes.

        Each is the probability that its label is on. They sum to one if the relations say that exactly
        one of the classes is on: without relations, or with a one-of group of the classes.
        """
        marginals = self.predict_marginals(X)
        return marginals[:, self._columns]

    def decision_function(self, X: Any) -> Float64:
        """The log-odds of `predict_proba`; with two classes, only those of the second."""
        p = self.predict_proba(X)
        tiny = np.finfo(np.float64).tiny
        with np.errstate(divide="ignore"):
            odds: Float64 = np.log(np.maximum(p, tiny)) - np.log(np.maximum(1.0 - p, tiny))
        return odds[:, 1] if not self.multilabel_ and p.shape[1] == 2 else odds

    def _rule(self) -> str:
        """The decision, as the core reads it."""
        rule: dict[str, Any]
        match self.decide:
            case "auto" | "threshold":
                rule = {"by": "threshold", "at": self.threshold}
            case "back-off":
                rule = {"by": "back-off", "confidence": self.threshold}
            case "best":
                among = candidates(self.graph_, self.classes, None)
                rule = {"by": "best", "among": {"labels": [self.graph_.labels[at] for at in among]}}
            case _:
                raise InputError(f"decide is {self.decide!r}, which marginals alone cannot answer")
        return json.dumps(rule)

    def _sets(self, X: Any) -> Flags:
        if self.decide == "consistent":
            return self._consistent(X)
        return decide(self.graph_, self.predict_marginals(X), self._rule())[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """One label per row, or rows × labels (1 on, 0 off) if `y` had sets of labels.

        The parameter `decide` sets the rule.
        """
        check_is_fitted(self)
        if self.multilabel_:
            return self._sets(X).astype(np.int_)
        marginals = self.predict_marginals(X)
        best = self._columns[marginals[:, self._columns].argmax(axis=1)]
        if self.decide == "back-off":
            chosen = decide(self.graph_, marginals, self._rule())[1]
            best = np.where(chosen < 0, best, chosen)
        return np.asarray(self.labels_[best])

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The fraction of rows that are predicted correctly.

        With one label per row, a prediction is correct if it is the given label or lies below it: `dog`
        is correct for a row labelled `pet`. With sets, a prediction is correct if it agrees with every
        known label of the row. If all labels are known, this is the accuracy of scikit-learn.
        """
        predicted = self.predict(X)
        if self.multilabel_:
            evidence = read_targets(y, self.graph_, self.unlisted).evidence
            right = ((evidence == predicted) | (evidence == -1)).all(axis=1)
        else:
            truth = column_or_1d(y)
            right = predicted == truth
            place = {value: at for at, value in enumerate(self.labels_.tolist())}
            labels = self.graph_.labels
            for row in np.flatnonzero(~right):
                at = place.get(truth[row])
                above = self.graph_.ancestors(labels[place[predicted[row]]])
                right[row] = at is not None and labels[at] in above
        return float(
            np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight))
        )
