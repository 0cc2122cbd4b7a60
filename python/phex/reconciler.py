"""Finished probabilities made consistent, and never worse."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from copy import copy
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phex._core import Graph, ReconcilePlan, best_sets
from phex._core import Reconciler as Core
from phex._types import Flags, Float64
from phex.errors import InputError
from phex.tables import Rows, evidence_codes, read_scores

__all__ = ["Reconciled", "Reconciler", "reconcile"]

#: A row that was left as it was with a smaller violation is as good as consistent.
ROUNDING = 1e-9


class Reconciled(NamedTuple):
    """Consistent probabilities, and what is guaranteed about each row."""

    probabilities: Any
    """The probability of each label, in the form of the input."""
    gain: Float64
    """By how much the loss of each row falls at least, whatever its legal truth, in nats."""
    gap: Float64
    """By how much it could fall more at most."""
    violation: Float64
    """The largest violation of a relation by each row of the output: 0, or rounding."""
    input_violation: Float64
    """The largest violation of a relation by each row of the input."""
    passes: NDArray[np.uint32]
    """How many passes each row took: 0 for rows that were consistent."""
    trust: list[str]
    """`exact`, `certified`, or `approximate` for rows that did not converge and stayed as they were."""
    error: Float64
    """How far a probability is from the best one at most; NaN if that is not known."""

    @property
    def unchanged(self) -> Flags:
        """Which rows were consistent, and came back bit for bit."""
        same: Flags = self.passes == 0
        return same


def _weights(weights: Any, graph: Graph) -> Float64 | None:
    """One weight per label."""
    if weights is None:
        return None
    if hasattr(weights, "items") and not isinstance(weights, Mapping):
        weights = dict(weights.items())
    if isinstance(weights, Mapping):
        given = np.ones(len(graph))
        for label, weight in weights.items():
            given[graph.index(label)] = weight
        return given
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (len(graph),):
        raise InputError(
            f"weights have the shape {array.shape}; give one for each of {len(graph)} labels"
        )
    return np.ascontiguousarray(array)


def _is_tensor(value: Any) -> bool:
    """Whether a value is a tensor, without importing PyTorch."""
    return type(value).__module__.partition(".")[0] == "torch"


class Reconciler:
    """A graph compiled for making finished probabilities consistent.

    The probabilities of a classifier that was not trained through relations have seen the evidence
    already, and `Model.marginals` would count it twice. A reconciler moves them as little as possible,
    in such a way that **no legal truth makes any row worse**: whichever legal label set is the true one,
    the log loss of the row falls by at least its `gain`.

    Probabilities are rows × labels: a numpy array, nested lists, a data frame of pandas or polars, whose
    columns are found by the names of the labels, or a tensor of PyTorch, whose answer has a gradient.
    Probabilities of exactly 0 and 1 are allowed. In a row that changes, they count as logits of ±30
    (±15 in float32), because their loss would be infinite otherwise.

    Args:
        graph: The labels and their relations, or the path of a graph file.
        loss: The loss that must not get worse: `log`, `brier` (only for hierarchies), or `categorical`
            for softmax heads, whose labels are one-of groups.
        weights: How much each label counts in the loss: one number per label, or a dictionary by name,
            in which missing labels have the weight 1.
        tolerance: Iterative engines stop when no relation is violated by more.
        passes: Iterative engines stop after this many passes if nothing is worse by then.
        engine: Use this engine wherever it fits, for comparisons; the cheapest one handles the rest.

    >>> import phex
    >>> graph = phex.GraphBuilder().hierarchy("animal", "dog").build()
    >>> answer = phex.Reconciler(graph).run([[0.2, 0.7], [0.9, 0.5]])
    >>> answer.probabilities.round(3)
    array([[0.433, 0.433],
           [0.9  , 0.5  ]])
    >>> answer.gain.round(3)  # The second row was consistent.
    array([0.292, 0.   ])
    """

    def __init__(
        self,
        graph: Graph | str | PathLike[str],
        *,
        loss: str = "log",
        weights: Mapping[str, float] | ArrayLike | None = None,
        tolerance: float | None = None,
        passes: int | None = None,
        engine: str | None = None,
    ) -> None:
        self.graph = graph if isinstance(graph, Graph) else Graph.load(graph)
        self.labels: list[str] = self.graph.labels
        self._options: dict[str, Any] = {
            "loss": loss,
            "weights": _weights(weights, self.graph),
            "tolerance": tolerance,
            "passes": passes,
            "engine": engine,
        }
        self._core = Core(self.graph, **self._options)

    @property
    def plan(self) -> ReconcilePlan:
        """Which engine handles which part of the graph, and why."""
        return self._core.plan

    def run(self, p: Any, *, logits: bool = False) -> Reconciled:
        """Makes rows consistent, and says what is guaranteed about each.

        Args:
            p: Rows × labels, or one row.
            logits: Whether these are logits. They keep the digits that probabilities near 1 lose.

        Raises:
            InputError: A value is not a probability, a column is missing, or the rows are one softmax
                over labels that do not exclude each other.
        """
        if _is_tensor(p):
            from phex.torch.reconcile import reconcile_tensor

            return self._told(reconcile_tensor(self._core, p, logits))
        rows = self._read(p)
        found = self._core.run(rows.values, logits=logits)
        return self._told(
            Reconciled(
                rows.restore(found.probabilities, self.labels),
                found.gain,
                found.gap,
                found.violation,
                found.input_violation,
                found.passes,
                found.trust,
                found.error,
            )
        )

    def best_sets(self, q: Any) -> Any:
        """The best legal label set of each row of reconciled probabilities: True for labels that are on.

        That is the legal set with the lowest log loss, plus the cost of the soft relations that it
        breaks. Thresholds need not find it: a one-of group may have no label above 0.5.

        Args:
            q: The probabilities that `run` found, in any form that `run` accepts.

        >>> import phex
        >>> graph = phex.GraphBuilder().one_of("kind", ["cat", "dog", "owl"]).build()
        >>> reconciler = phex.Reconciler(graph)
        >>> q = reconciler.run([0.4, 0.5, 0.3]).probabilities
        >>> reconciler.best_sets(q)
        array([False,  True, False])
        """
        if _is_tensor(q):
            from phex.torch.reconcile import best_tensor

            return best_tensor(self.graph, q)
        rows = read_scores(q, self.labels)
        return rows.restore(best_sets(self.graph, rows.values), self.labels)

    def fit(
        self,
        p: Any,
        truth: Any,
        *,
        logits: bool = False,
        forms: Iterable[str] | None = None,
        folds: int | None = None,
        noise: float | None = None,
        rows: int | None = None,
    ) -> Reconciler:
        """A reconciler that trusts each level as much as labelled rows show it deserves.

        Temperatures and weights of levels are fitted to the log loss of held-out rows, and
        cross-validation chooses how many of them are free. The classifier must not have seen these rows.
        The guarantee then holds against the calibrated probabilities, not against those that are given.

        Args:
            p: The probabilities of the held-out rows.
            truth: Their labels: 1 or True is on, 0 or False is off, -1 or NaN is unknown. Rows whose
                truth breaks the relations are left out and counted in `report`.
            logits: Whether `p` holds logits.
            forms: The forms of the fit to choose from, by name; None is all that fit the graph.
            folds: The number of parts for cross-validation; 5 by default.
            noise: The smallest form within this many standard errors of the best is chosen; 1 by
                default.
            rows: The largest number of rows that are used; 20,000 by default.
        """
        read = self._read(p)
        codes = evidence_codes(truth, read.values.shape[0], self.labels)
        if codes is None:
            raise InputError("the truth is needed: 1 (on), 0 (off) or -1 (unknown)")
        chosen = None if forms is None else list(forms)
        fitted = copy(self)
        fitted._core = self._core.fit(
            read.values, codes, logits=logits, forms=chosen, folds=folds, noise=noise, rows=rows
        )
        return fitted

    @property
    def parameters(self) -> dict[str, Any] | None:
        """What `fit` found: its form, and the temperature, bias and weight of each level."""
        text = self._core.parameters
        return None if text is None else json.loads(text)

    @property
    def report(self) -> dict[str, Any] | None:
        """What `fit` saw: the candidates with their held-out losses, and the rows that it left out."""
        found = self._core.report
        return None if found is None else json.loads(found[0])

    def _read(self, p: Any) -> Rows:
        """Rows of values. Raises with advice if exactly the leaves have columns."""
        leaves = self.graph.leaves
        names = getattr(p, "columns", None)
        rows = None
        if names is not None:
            only = {str(name) for name in names} == set(leaves)
        else:
            rows = read_scores(p, self.labels)
            only = rows.values.shape[1] == len(leaves)
        if only and len(leaves) < len(self):
            raise InputError(
                "only the leaves have columns, and every label needs one; if the classifier decides "
                "between the leaves, build the graph with single_label() and use `Model.marginals` "
                "with `columns` and, for probabilities, `input='probabilities'`"
            )
        return rows or read_scores(p, self.labels)

    def _told(self, answer: Reconciled) -> Reconciled:
        """Warns of rows that did not converge."""
        left = np.flatnonzero((np.array(answer.trust) == "approximate") & (answer.violation > ROUNDING))
        if len(left):
            warnings.warn(
                f"{len(left)} rows did not converge and were left as they were, so they are not "
                f"consistent (the first is row {left[0]})",
                RuntimeWarning,
                stacklevel=3,
            )
        return answer

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        engines = ", ".join(f"`{name}`" for name in self.plan.engines) or "no engine"
        return f"<Reconciler of {len(self)} labels by {engines}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _compile, (self.graph, self._options, self._core.parameters)

    def __copy__(self) -> Reconciler:
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        return same


def _compile(graph: Graph, options: dict[str, Any], parameters: str | None) -> Reconciler:
    """For pickle, which compiles the reconciler again when it is loaded."""
    made = Reconciler(graph, **options)
    if parameters is not None:
        made._core = Core.restore(graph, parameters, options["tolerance"], options["passes"])
    return made


def reconcile(
    graph: Graph | str | PathLike[str], p: Any, *, logits: bool = False, **options: Any
) -> Any:
    """Makes finished probabilities consistent with a graph, in the form in which they are given.

    For every row, the log loss is at most what it was, whichever legal label set is the true one.
    `Reconciler` compiles the graph once for many calls, and says by how much each row improves.

    Args:
        graph: The labels and their relations, or the path of a graph file.
        p: Rows × labels, or one row: an array, a data frame, or a tensor of PyTorch.
        logits: Whether these are logits.
        **options: `loss`, `weights`, `tolerance`, `passes` and `engine` of `Reconciler`.

    >>> import phex
    >>> graph = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).exclude("siblings").build()
    >>> phex.reconcile(graph, [0.5, 0.6, 0.4]).round(3)
    array([0.671, 0.424, 0.247])
    """
    return Reconciler(graph, **options).run(p, logits=logits).probabilities
