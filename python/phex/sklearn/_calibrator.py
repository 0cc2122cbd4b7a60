"""Consistent, calibrated probabilities of any classifier."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_is_fitted

from phex._core import Graph
from phex._types import Flags, Float64
from phex.errors import InputError
from phex.model import Model
from phex.sklearn._answers import RelationAnswers
from phex.sklearn._calibration import Search, calibrate
from phex.sklearn._classifier import read_weights
from phex.sklearn._scores import answers_with_sets, read_logits
from phex.sklearn._targets import read_relations, read_targets
from phex.sklearn._wrapped import WrappedEstimator

__all__ = ["RelationCalibrator"]


def _with_one_of(graph: Graph, classes: list[int]) -> Graph:
    """The graph in which exactly one of the classes is on, if possible.

    It is not possible if a class lies above another, or is already in a group.
    """
    grouped = {label for members in graph.one_of.values() for label in members}
    names = [graph.labels[at] for at in classes]
    nested = any(not set(names).isdisjoint(graph.ancestors(name)) for name in names)
    if nested or grouped.intersection(names):
        return graph
    written = json.loads(graph.to_json())
    name = "classes of the estimator"
    written["one_of"] = [*written.get("one_of", []), {"name": name, "labels": names}]
    return Graph.from_json(json.dumps(written))


class RelationCalibrator(WrappedEstimator, RelationAnswers):
    """Makes the answers of a classifier consistent with relations, and calibrates them.

    The scores of the classifier, divided by a temperature, become logits of the labels of the graph, and
    exact inference turns them into a probability for every label. The temperature, the biases of labels
    and, if requested, the strengths of soft relations are those that make the known labels of
    calibration rows most likely.

    Pass a trained estimator as `FrozenEstimator(estimator)`. All rows of `fit` then calibrate it, and
    `y` may be coarser than the classes of the estimator (`RelationClassifier` describes its forms). Any
    other estimator is cloned and trained. The scores for calibration are then those of rows that were
    held out (`cv`), and the final estimator is trained on all rows whose label is a class, or on a table
    without unknown entries. The other rows are used for calibration only.

    How scores become logits:

    - One label per row: the logarithm of `predict_proba`, or else `decision_function`. A class is
      matched to the label of the same name. The classifier implies that exactly one of its classes is
      on; `one_of` adds this to the graph. If a class determines all other labels, as in a tree whose
      siblings exclude each other, then at temperature 1 the probabilities of the classifier do not
      change, and those of inner labels are sums of them.
    - Sets of labels: the log-odds of `predict_proba` (also as lists of arrays, as trees return them), or
      else `decision_function`. Outputs are the labels of the graph in order, or `labels`.
    - A label without an output has the score 0: even odds, before the relations apply.

    Args:
        estimator: A classifier with `predict_proba` or `decision_function`.
        relations: A `phex.Graph`, or the path of a graph file. With None, the only relation is that
            exactly one class is on (none for sets); this is temperature scaling.
        labels: The names of the estimator's outputs, if it answers with sets of other labels than those
            of the graph, or in another order.
        temperature: The divisor of scores; `fit` searches for it.
        bias: Whether to search for a bias of each label, with a normal prior of deviation 1 around 0.
            Outputs for sets are redundant (a husky is a dog is a pet), and relations add them up; biases
            correct this. `auto`: for sets, if the temperature is searched for.
        strength: The strength of all relations: `hard`, `u=0.5` and so on; a list, from which the most
            likely one is chosen; `tune` finds one factor on the costs of soft hierarchy and one on those
            of soft exclusion by gradient. None: as in the graph.
        one_of: Whether exactly one class is on, for an estimator that answers with one label. It has no
            effect if a class lies above another, or is in a one-of group of the graph.
        floor: The smallest probability that is accepted from `predict_proba`, and the smallest distance
            from 1.
        loss: `joint` or `marginal`: the likelihood of the known labels.
        cv: The number of folds, or a splitter of scikit-learn, for an estimator that is not frozen.
        unlisted: As in `RelationClassifier`.
        classes: As in `RelationClassifier`; None: the classes of the estimator.
        decide: As in `RelationClassifier`.
        threshold: As in `RelationClassifier`.

    Attributes:
        estimator_: The fitted classifier.
        temperature_: The divisor of its scores.
        bias_: The term that is then added for each label.
        graph_: The relations, with the strengths that were found.
        model_: The compiled relations.
        calibration_loss_: The mean loss of the calibration rows, with the prior of biases; of the
            training rows if there was nothing to search for.
        classes_: The labels of the columns of `predict_proba`.
        labels_: All labels, in the order of the graph; the columns of `predict_marginals`.
        multilabel_: Whether `y` had sets of labels.

    >>> import numpy as np, phex
    >>> from sklearn.linear_model import LogisticRegression
    >>> from phex.sklearn import RelationCalibrator
    >>> graph = phex.GraphBuilder().hierarchy("pet", ["dog", "cat"]).hierarchy("wild", "fox").build()
    >>> X = np.random.default_rng(0).normal(size=(90, 2))
    >>> y = np.array(["dog", "cat", "fox"])[(X @ [[1, 0, -1], [0, 1, -1]]).argmax(axis=1)]
    >>> calibrated = RelationCalibrator(LogisticRegression(), graph).fit(X, y)
    >>> p = dict(zip(calibrated.labels_, calibrated.predict_marginals(X).T))
    >>> np.allclose(p["dog"] + p["cat"] + p["fox"], 1.0)
    True
    >>> bool((p["pet"] >= p["dog"] + p["cat"] - 1e-9).all())
    True
    """

    def __init__(
        self,
        estimator: Any,
        relations: Graph | str | PathLike[str] | None = None,
        *,
        labels: Any = None,
        temperature: float | str = "fit",
        bias: bool | str = "auto",
        strength: Any = None,
        one_of: bool = True,
        floor: float = 1e-6,
        loss: str = "joint",
        cv: Any = 5,
        unlisted: str = "auto",
        classes: Any = None,
        decide: str = "auto",
        threshold: float = 0.5,
    ) -> None:
        self.estimator = estimator
        self.relations = relations
        self.labels = labels
        self.temperature = temperature
        self.bias = bias
        self.strength = strength
        self.one_of = one_of
        self.floor = floor
        self.loss = loss
        self.cv = cv
        self.unlisted = unlisted
        self.classes = classes
        self.decide = decide
        self.threshold = threshold

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Trains the estimator, unless it is frozen, and calibrates.

        Args:
            X: What the estimator takes.
            y: The known labels of each row.
            sample_weight: The weight of each row in calibration, and in training if the estimator has
                this parameter.

        Raises:
            InputError: The estimator, `y` or a parameter cannot be used, or hard relations forbid a row.
        """
        self._check_decision()
        if not 0.0 < self.floor < 0.5:
            raise InputError(f"floor is {self.floor}, but must be between 0 and 0.5")
        temperature = self._temperature()
        X, y = indexable(X, y)
        frozen = isinstance(self.estimator, FrozenEstimator)
        seen = getattr(self.estimator, "classes_", None) if frozen and self.relations is None else None
        targets = read_targets(y, read_relations(self.relations), self.unlisted, seen)
        self._column_of = {value: at for at, value in enumerate(targets.values.tolist())}
        weights = read_weights(sample_weight, len(targets.evidence))
        if frozen:
            self.estimator_ = self.estimator
            self._scores_sets = answers_with_sets(self.estimator_, _safe_indexing(X, [0]))
            self._find_columns(targets.graph, getattr(self.estimator_, "classes_", None))
            logits = self._table(self.estimator_, X)
        else:
            strengths = isinstance(self.strength, (list, tuple)) or self.strength == "tune"
            held_out = temperature is None or self._is_biased() or strengths
            logits = self._train(X, targets, weights, held_out)
        graph, chosen = targets.graph, None
        if not self._scores_sets:
            chosen = [self._column_of[value] for value in np.asarray(self.estimator_.classes_).tolist()]
            graph = _with_one_of(graph, chosen) if self.one_of else graph
        self._set_labels(targets, chosen)
        search = Search(
            logits,
            targets.evidence,
            np.ones(len(logits)) if weights is None else weights,
            self.loss,
            temperature,
            self._is_biased(),
        )
        found = calibrate(graph, search, self.strength)
        self.graph_, self.temperature_, self.bias_, self.calibration_loss_ = found
        self.model_ = Model(self.graph_)
        self._pass_on_features()
        return self

    def _temperature(self) -> float | None:
        if isinstance(self.temperature, str):
            if self.temperature != "fit":
                raise InputError(f"temperature is {self.temperature!r}; it must be 'fit' or a number")
            return None
        if not (self.temperature > 0 and np.isfinite(self.temperature)):
            raise InputError(f"temperature is {self.temperature}, but must be above 0")
        return float(self.temperature)

    def _is_biased(self) -> bool:
        if self.bias != "auto":
            return bool(self.bias)
        return self._scores_sets and self.temperature == "fit"

    def _table(self, estimator: Any, X: Any) -> Float64:
        """The scores of a fitted estimator in the columns of their labels."""
        scores = read_logits(estimator, X, self._scores_sets, self.floor)
        columns = self._columns_of(scores.logits, scores.classes)
        logits = np.zeros((len(scores.logits), self._width))
        logits[:, self._least] = scores.least
        logits[:, columns] = scores.logits
        return logits

    def _calibrated(self, X: Any) -> Float64:
        check_is_fitted(self)
        logits: Float64 = self._table(self.estimator_, X) / self.temperature_ + self.bias_
        return logits

    def predict_marginals(self, X: Any) -> Float64:
        """The probability of each label of the graph: rows × `labels_`. They do not sum to one."""
        logits = self._calibrated(X)
        answer: Float64 = self.model_._marginals(logits)
        return answer

    def _consistent(self, X: Any) -> Flags:
        logits = self._calibrated(X)
        answer: Flags = self.model_.map(logits)
        return answer
