"""A compiled model: from scores to consistent probabilities, label sets, losses and gradients."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from phex._core import (
    SCORE_LIMIT,
    Engine,
    Graph,
    Plan,
    Posterior,
    bad_score,
    to_logits,
    unscored,
)
from phex._types import EvidenceCodes, Flags, Float64
from phex.errors import FinishedWarning, InputError
from phex.tables import Rows, evidence_codes, read_scores, read_weights

__all__ = ["LabelSets", "Model", "ScoreForm"]


ScoreForm = Literal["logits", "probabilities", "log-probabilities"]
"""What the numbers of a classifier are."""


class LabelSets(NamedTuple):
    """The most probable label sets of a row, best first."""

    on: Flags
    """Whether each label is on: sets × labels."""
    log_probability: Float64
    """The log-probability of each set, or its log-weight if the engine is not exact."""


class Model:
    """The model that a graph defines, compiled by one engine.

    `Graph.compile` makes it. Scores (`logits`) are rows × labels: a numpy array, nested lists, or a data
    frame of pandas or polars, whose columns are found by the names of the labels. Evidence and targets
    are 1 or True (on), 0 or False (off), -1 or NaN (unknown).

    float32 input gives float32 output, and float64 gives float64. Arrays that are stored row by row are
    not copied. The interpreter lock is released, and rows are distributed over `phex.threads()` threads.
    The answer for a row depends neither on the number of threads nor on the other rows.

    Args:
        graph: The labels and their relations.
        method: `auto`, `exact`, or an engine by its name: `family`, `junction`, `lbp` and so on.
        **options: `operations` per row and `memory` in MiB that the engine may use; `search`, the steps
            that finding it may take; `cap`, `seed`; `schedule`, `groups`, `damping`, `iterations`,
            `tolerance` of message passing; `chains`, `burn_in`, `sweeps`, `temperatures`, `hottest`,
            `check` of sampling.

    >>> import phex
    >>> graph = phex.GraphBuilder().exclusion(["dog", "cat"]).build()
    >>> model = graph.compile()
    >>> model.marginals([0.0, 0.0]).round(3)
    array([0.333, 0.333])
    >>> model.marginals([0.0, 0.0], evidence={"dog": False})
    array([0. , 0.5])
    """

    def __init__(self, graph: Graph, method: str = "auto", **options: Any) -> None:
        self.graph = graph
        self.labels: list[str] = graph.labels
        self._options = {"method": method, **options}
        self._engine = Engine(graph, **self._options)

    @property
    def plan(self) -> Plan:
        """The engine that was chosen, why, and what it costs."""
        return self._engine.plan

    def _read(self, logits: Any, evidence: Any) -> tuple[Rows, EvidenceCodes | None]:
        rows = read_scores(logits, self.labels)
        return rows, self._codes(evidence, rows.values.shape[0])

    def _codes(self, evidence: Any, rows: int) -> EvidenceCodes | None:
        if isinstance(evidence, Mapping):
            row = [-1] * len(self.labels)
            for label, value in evidence.items():
                row[self.graph.index(label)] = -1 if value is None else value
            evidence = row
        return evidence_codes(evidence, rows, self.labels)

    def marginals(
        self,
        logits: Any,
        evidence: Any = None,
        *,
        columns: Sequence[str] | None = None,
        missing: float | None = None,
        input: ScoreForm | None = None,
    ) -> Any:
        r"""The probability of each label.

        Args:
            logits: Rows × labels, or one row.
            evidence: Known labels: rows × labels, one row for all, or a dictionary.
            columns: The labels that the columns of `logits` are, in their order. Data frames name
                theirs.
            missing: The score of labels without a column. If the graph says that exactly one leaf is on,
                labels above leaves need none: the leaves keep their softmax, and the others are its
                sums.
            input: What the values are: `logits`, `probabilities` or `log-probabilities`. Probabilities
                are one softmax if exactly one leaf is on, only leaves have columns and the rows sum to
                1; otherwise each is a sigmoid. Probabilities below 1e-13 count as 1e-13.

        Returns:
            Probabilities in the form of the logits.

        Raises:
            InputError: A score is NaN or infinite, or no legal state agrees with the evidence. `infer`
                answers the other rows.

        Warns:
            FinishedWarning: All scores are between 0 and 1, and `input` is not given. They may be
                finished probabilities, which `phex.reconcile` makes consistent.

        >>> import phex
        >>> pairs = "parent,child\nanimal,dog\nanimal,cat\nvehicle,car\nvehicle,bus\n"
        >>> graph = phex.GraphBuilder.parse(pairs, "csv").single_label().build()
        >>> model = graph.compile()
        >>> p = model.marginals([3.0, 0.0, 0.0, 0.0], columns=["dog", "cat", "car", "bus"])
        >>> {label: round(float(p[graph.index(label)]), 3) for label in ["dog", "vehicle"]}
        {'dog': 0.87, 'vehicle': 0.087}
        """
        fill: Sequence[float | None] = ()
        if columns is not None or not isinstance(logits, np.ndarray):
            fill = unscored(self.graph) if missing is None else [missing] * len(self.labels)
        rows = read_scores(logits, self.labels, columns, fill)
        codes = self._codes(evidence, rows.values.shape[0])
        if input is not None and input != "logits":
            given = rows.given or [True] * len(self.labels)
            rows.values = to_logits(self.graph, rows.values, given, input)
        elif input is None and rows.looks_finished():
            warnings.warn(
                "all scores are between 0 and 1, as finished probabilities are, but scores are logits: "
                "say `input='probabilities'` or `input='logits'`; `phex.reconcile` makes finished "
                "probabilities consistent",
                FinishedWarning,
                stacklevel=2,
            )
        return rows.restore(self._engine.marginals(rows.values, codes), self.labels)

    def _marginals(self, logits: Float64) -> Float64:
        """The probability of each label, for logits that are computed here."""
        return self._engine.marginals(logits, None)

    def log_partition(self, logits: Any, evidence: Any = None) -> Any:
        """The log-partition of each row: minus infinity if no legal state agrees with the evidence.

        >>> import phex
        >>> model = phex.GraphBuilder().exclusion(["dog", "cat"]).build().compile()
        >>> float(np.exp(model.log_partition([0.0, 0.0])).round(9))
        3.0
        """
        rows, codes = self._read(logits, evidence)
        return rows.restore_rows(self._engine.log_partition(rows.values, codes))

    def infer(
        self,
        logits: Any,
        evidence: Any = None,
        *,
        expectations: bool = False,
        entropy: bool = False,
        standard_errors: bool = False,
        bounds: bool = False,
    ) -> Posterior:
        """All results at once, with the status and the diagnosis of each row.

        A row without an answer is NaN, and `status` gives the reason. It does not raise.
        """
        rows, codes = self._read(logits, evidence)
        return self._engine.run(
            rows.values,
            codes,
            expectations=expectations,
            entropy=entropy,
            standard_errors=standard_errors,
            bounds=bounds,
        )

    def map(self, logits: Any, evidence: Any = None) -> Any:
        """The most probable label set of each row: True where a label is on.

        >>> import phex
        >>> model = phex.GraphBuilder().hierarchy("dog", "puppy").build().compile()
        >>> model.map([[-1.0, 3.0], [-3.0, 1.0]])
        array([[ True,  True],
               [False, False]])
        """
        rows, codes = self._read(logits, evidence)
        return rows.restore(self._engine.map(rows.values, codes), self.labels)

    def top_k(self, logits: Any, k: int, evidence: Any = None) -> list[LabelSets]:
        """The `k` most probable label sets of each row, best first; fewer if fewer exist.

        >>> import phex
        >>> model = phex.GraphBuilder().exclusion(["dog", "cat"]).build().compile()
        >>> sets = model.top_k([[2.0, 1.0]], k=2)[0]
        >>> sets.on
        array([[ True, False],
               [False,  True]])
        >>> np.exp(sets.log_probability).round(3)
        array([0.665, 0.245])
        """
        if k < 1:
            raise InputError(f"k is {k}, but must be 1 or more")
        rows, codes = self._read(logits, evidence)
        found = self._engine.best(rows.values, codes, k)
        if not self.plan.exact:
            return [LabelSets(on, weights) for on, weights in found]
        total = self._engine.log_partition(rows.values.astype(np.float64), codes)
        return [LabelSets(on, weights - z) for (on, weights), z in zip(found, total, strict=True)]

    def sample(self, logits: Any, count: int = 1, evidence: Any = None, seed: int = 0) -> Flags:
        """Label sets drawn from the distribution of each row: rows × count × labels."""
        if count < 0 or not 0 <= seed < 2**64:
            raise InputError(f"count is {count} and seed {seed}; both must be 0 or more")
        rows, codes = self._read(logits, evidence)
        return self._engine.sample(rows.values, codes, count, seed)

    def loss_and_grad(
        self,
        logits: Any,
        targets: Any,
        weights: ArrayLike | None = None,
        *,
        loss: str = "joint",
    ) -> tuple[Any, Any]:
        """The loss of each row, and the gradient of their weighted sum by the logits.

        `joint` is minus the log-probability of all known labels together, and `marginal` the sum over
        single labels. A row whose targets break hard relations has an infinite loss and a gradient of
        zero. A row without known labels has a loss and a gradient of zero.

        >>> import phex
        >>> model = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).build().compile()
        >>> losses, gradient = model.loss_and_grad([[0.0, 0.0, 0.0]], [[1, -1, -1]])
        >>> losses.round(3)
        array([0.223])
        >>> gradient.round(3)
        array([[-0.2, -0.1, -0.1]])
        """
        rows = read_scores(logits, self.labels)
        codes = self._codes(targets, rows.values.shape[0])
        if codes is None:
            raise InputError("targets are needed: 1 (on), 0 (off) or -1 (unknown)")
        weight = None if weights is None else read_weights(weights, rows.values.shape[0])
        found = self._engine.gradients(rows.values, codes, weight, loss=loss)
        if "bad-score" in found.status:
            row = found.status.index("bad-score")
            label = int(np.argmin(np.abs(rows.values[row]) <= SCORE_LIMIT))
            raise InputError(bad_score(row, self.labels[label]))
        return rows.restore_rows(found.losses), rows.restore(found.logits, self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        kind = "exact" if self.plan.exact else "not exact"
        return f"<Model of {len(self)} labels by `{self.plan.method}` ({kind})>"

    def _repr_html_(self) -> str:
        plan = self.plan
        rows = [
            ("labels", str(len(self))),
            ("engine", f"{plan.method} ({'exact' if plan.exact else 'not exact'})"),
            ("why", plan.why),
            ("operations per row", f"{plan.operations:.1e}"),
            ("memory", f"{plan.bytes / 2**20:.1f} MiB"),
            *((f"not {name}", why) for name, why in plan.refused),
        ]
        left = 'style="text-align:left;vertical-align:top"'
        cells = (f"<tr><th {left}>{escape(a)}</th><td {left}>{escape(b)}</td></tr>" for a, b in rows)
        return f"<table><tbody>{''.join(cells)}</tbody></table>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _compile, (self.graph, self._options)


def _compile(graph: Graph, options: dict[str, Any]) -> Model:
    """For pickle, which compiles the model again when it is loaded."""
    return Model(graph, **options)
