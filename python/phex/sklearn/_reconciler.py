"""Consistent probabilities of any classifier, which are never worse than its own."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_is_fitted

from phex._core import Graph, best_sets
from phex._types import Flags, Float64
from phex.reconciler import Reconciled, Reconciler
from phex.sklearn._answers import RelationAnswers
from phex.sklearn._classifier import read_weights
from phex.sklearn._scores import answers_with_sets, read_probabilities
from phex.sklearn._targets import read_relations, read_targets
from phex.sklearn._wrapped import WrappedEstimator

__all__ = ["RelationReconciler"]


class RelationReconciler(WrappedEstimator, RelationAnswers):
    """Makes the probabilities of a classifier consistent with relations, and never worse.

    Whichever legal label set is the true one, the log loss of every row is at most that of the
    classifier: `reconcile` says by how much it falls at least. Nothing is fitted unless `calibrate` is
    set: then held-out rows show how far the probabilities of each level can be trusted.

    Pass a trained estimator as `FrozenEstimator(estimator)`. Any other estimator is cloned and trained.

    - Sets of labels: `predict_proba` gives the probability of each output, as an array or as a list of
      arrays, as trees and forests return them. Outputs are the labels of the graph in order, or
      `labels`.
    - One label per row: the classes share one distribution, and the probability of a label is the sum of
      those of the classes at or below it. Such sums are consistent already, so that they stay as they
      are; `RelationCalibrator` infers other labels from the classes.

    Args:
        estimator: A classifier with `predict_proba`.
        relations: A `phex.Graph`, or the path of a graph file. With None, nothing changes.
        labels: The names of the estimator's outputs, if it answers with sets of other labels than those
            of the graph, or in another order. Labels without an output have the probability 0.
        loss: `log`, `brier` or `categorical`, as in `phex.Reconciler`.
        weights: How much each label counts in the loss, as in `phex.Reconciler`.
        calibrate: Whether to fit temperatures and weights of levels to held-out rows, as
            `phex.Reconciler.fit` does. With a frozen estimator these are all rows of `fit`. The
            guarantee then holds against the calibrated probabilities.
        cv: The number of folds, or a splitter of scikit-learn, for an estimator that is not frozen.
        unlisted: As in `RelationClassifier`.
        classes: As in `RelationClassifier`; None: the classes of the estimator.
        decide: As in `RelationClassifier`.
        threshold: As in `RelationClassifier`.

    Attributes:
        estimator_: The fitted classifier.
        graph_: The relations.
        reconciler_: The compiled `phex.Reconciler`; None without relations.
        classes_: The labels of the columns of `predict_proba`.
        labels_: All labels, in the order of the graph; the columns of `predict_marginals`.
        multilabel_: Whether `y` had sets of labels.

    >>> import numpy as np, phex
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multioutput import MultiOutputClassifier
    >>> from phex.sklearn import RelationReconciler
    >>> graph = phex.GraphBuilder().hierarchy("pet", ["dog", "cat"]).exclude("siblings").build()
    >>> X = np.random.default_rng(0).normal(size=(90, 2))
    >>> y = np.column_stack([X[:, 0] > -1, X[:, 0] > 0.5, X[:, 0] + X[:, 1] < -0.3]).astype(int)
    >>> y[:, 2] &= y[:, 0] & ~y[:, 1]
    >>> estimator = MultiOutputClassifier(LogisticRegression())
    >>> reconciled = RelationReconciler(estimator, graph).fit(X, y)
    >>> pet, dog, cat = reconciled.predict_marginals(X).T
    >>> bool((dog + cat <= pet).all())
    True
    >>> bool((reconciled.reconcile(X).gain >= -1e-12).all())
    True
    """

    def __init__(
        self,
        estimator: Any,
        relations: Graph | str | PathLike[str] | None = None,
        *,
        labels: Any = None,
        loss: str = "log",
        weights: Mapping[str, float] | ArrayLike | None = None,
        calibrate: bool = False,
        cv: Any = 5,
        unlisted: str = "auto",
        classes: Any = None,
        decide: str = "auto",
        threshold: float = 0.5,
    ) -> None:
        self.estimator = estimator
        self.relations = relations
        self.labels = labels
        self.loss = loss
        self.weights = weights
        self.calibrate = calibrate
        self.cv = cv
        self.unlisted = unlisted
        self.classes = classes
        self.decide = decide
        self.threshold = threshold

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Trains the estimator, unless it is frozen.

        Args:
            X: What the estimator takes.
            y: The labels of each row.
            sample_weight: The weight of each row in training, if the estimator has this parameter.

        Raises:
            InputError: The estimator, `y` or a parameter cannot be used.
        """
        self._check_decision()
        X, y = indexable(X, y)
        frozen = isinstance(self.estimator, FrozenEstimator)
        seen = getattr(self.estimator, "classes_", None) if frozen and self.relations is None else None
        targets = read_targets(y, read_relations(self.relations), self.unlisted, seen)
        self.graph_ = targets.graph
        self._column_of = {value: at for at, value in enumerate(targets.values.tolist())}
        weights = read_weights(sample_weight, len(targets.evidence))
        if frozen:
            self.estimator_ = self.estimator
            self._scores_sets = answers_with_sets(self.estimator_, _safe_indexing(X, [0]))
            self._find_columns(targets.graph, getattr(self.estimator_, "classes_", None))
            held_out = self._table(self.estimator_, X) if self.calibrate else None
        else:
            held_out = self._train(X, targets, weights, held_out=self.calibrate)
        chosen = None
        if not self._scores_sets:
            chosen = [self._column_of[value] for value in np.asarray(self.estimator_.classes_).tolist()]
        self._set_labels(targets, chosen)
        self.reconciler_ = None
        if self.relations is not None:
            self.reconciler_ = Reconciler(self.graph_, loss=self.loss, weights=self.weights)
            if self.calibrate:
                self.reconciler_ = self.reconciler_.fit(held_out, targets.evidence)
        self._pass_on_features()
        return self

    def _table(self, estimator: Any, X: Any) -> Float64:
        """The probability of each label, before it is reconciled."""
        p, classes = read_probabilities(estimator, X, self._scores_sets)
        columns = self._columns_of(p, classes)
        table = np.zeros((len(p), self._width))
        if classes is None:
            table[:, columns] = p
            return table
        names = self.graph_.labels
        for at, column in enumerate(columns):
            above = [self.graph_.index(label) for label in self.graph_.ancestors(names[column])]
            table[:, [column, *above]] += p[:, [at]]
        # Sums of rounded numbers may exceed 1.
        return np.minimum(table, 1.0)

    def reconcile(self, X: Any) -> Reconciled:
        """The probability of each label (rows × `labels_`), and what is guaranteed about each row."""
        check_is_fitted(self)
        p = self._table(self.estimator_, X)
        if self.reconciler_ is not None and (self._scores_sets or self.calibrate):
            return self.reconciler_.run(p)
        zeros, rows = np.zeros(len(p)), len(p)
        passes = np.zeros(rows, dtype=np.uint32)
        return Reconciled(p, zeros, zeros, zeros, zeros, passes, ["exact"] * rows, zeros)

    def predict_marginals(self, X: Any) -> Float64:
        """The probability of each label of the graph: rows × `labels_`."""
        p: Float64 = self.reconcile(X).probabilities
        return p

    def _consistent(self, X: Any) -> Flags:
        return best_sets(self.graph_, self.predict_marginals(X))
