"""Turns the answers of a classifier into logits of the labels of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phex._types import Float64
from phex.errors import InputError

__all__ = ["Scores", "answers_with_sets", "read_logits", "read_probabilities"]


def answers_with_sets(estimator: Any, X: Any) -> bool:
    """Whether a fitted classifier answers with a set of labels per row, not with one label."""
    return np.asarray(estimator.predict(X)).ndim == 2


def _log_odds(p: NDArray[Any], floor: float) -> Float64:
    p = np.clip(p.astype(np.float64), floor, 1.0 - floor)
    odds: Float64 = np.log(p) - np.log1p(-p)
    return odds


def _on(p: NDArray[Any], classes: Any) -> NDArray[Any]:
    """The probability of 1 of one output among several; training may have seen only one value of it."""
    at = np.flatnonzero(np.asarray(classes) == 1)
    return p[:, at[0]] if len(at) else np.zeros(len(p), dtype=p.dtype)


class Scores:
    """The logits of a classifier, and their labels."""

    def __init__(self, logits: Float64, classes: NDArray[Any] | None, least: float) -> None:
        self.logits = logits
        self.classes = classes
        """The class of each column; None if each column is a separate output."""
        self.least = least
        """The score of a class that the classifier does not know."""


def _probabilities(estimator: Any, X: Any) -> Any | None:
    """The answer of `predict_proba`; None if there is only `decision_function`."""
    if not hasattr(estimator, "predict_proba"):
        return None
    try:
        return estimator.predict_proba(X)
    except AttributeError:
        # One-vs-rest has the method where a label that never varies is its first.
        if hasattr(estimator, "decision_function"):
            return None
        raise


def read_logits(estimator: Any, X: Any, sets: bool, floor: float) -> Scores:
    """The logits of a fitted classifier.

    With one label per row, they are the logarithms of the probabilities: if exactly one class is on,
    their softmax gives the same probabilities again. With sets, they are log-odds. A classifier without
    `predict_proba` uses its `decision_function`. No probability is nearer to 0 or 1 than `floor`, so
    that a certain but wrong answer does not have an infinite cost.
    """
    if not hasattr(estimator, "predict_proba") and not hasattr(estimator, "decision_function"):
        kind = type(estimator).__name__
        raise InputError(f"{kind} has neither predict_proba nor decision_function")
    p = _probabilities(estimator, X)
    least = float(np.log(floor))
    if sets and isinstance(p, list):
        columns = [_on(np.asarray(one), seen) for one, seen in zip(p, estimator.classes_, strict=True)]
        return Scores(_log_odds(np.column_stack(columns), floor), None, least)
    if sets and p is not None:
        return Scores(_log_odds(np.asarray(p), floor), None, least)
    classes = None if sets else np.asarray(estimator.classes_)
    if p is not None:
        logits = np.log(np.maximum(np.asarray(p, dtype=np.float64), floor))
        return Scores(logits, classes, least)
    scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if scores.ndim == 1 and not sets:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    return Scores(scores, classes, least)


def read_probabilities(estimator: Any, X: Any, sets: bool) -> tuple[Float64, NDArray[Any] | None]:
    """The probabilities of a fitted classifier, and the class of each column.

    The classes are None if each column is a separate output; trees and forests then answer with a list
    of arrays.
    """
    p = _probabilities(estimator, X)
    if p is None:
        kind = type(estimator).__name__
        raise InputError(f"{kind} has no predict_proba; CalibratedClassifierCV of scikit-learn adds it")
    if sets and isinstance(p, list):
        columns = [_on(np.asarray(one), seen) for one, seen in zip(p, estimator.classes_, strict=True)]
        return np.column_stack(columns).astype(np.float64), None
    table = np.asarray(p, dtype=np.float64)
    return table, None if sets else np.asarray(estimator.classes_)
