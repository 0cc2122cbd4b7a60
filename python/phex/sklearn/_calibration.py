"""Finds the temperature, biases and strengths that make the known labels most likely.

This differs from `fit` of the core's `reconcile`, which searches a grid of parameters per level for the
best *reconciled* probabilities, and chooses a form by cross-validation. Here the likelihood is that of
inference; it is smooth in one bias per label and in the strengths, so L-BFGS follows its gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize  # type: ignore[import-untyped]

from phex._core import Engine, Graph, Strengths, contradiction
from phex._types import EvidenceCodes, Float64
from phex.errors import InputError

__all__ = ["Calibration", "Search", "calibrate"]

LOG_TEMPERATURE = (-5.0, 5.0)
LARGEST_FACTOR = 100.0
LARGEST_BIAS = 30.0


class Calibration(NamedTuple):
    """The result: logits are scores divided by the temperature, plus the bias of their label."""

    graph: Graph
    temperature: float
    bias: Float64
    loss: float
    """The mean loss of the rows."""


class Search(NamedTuple):
    """The rows that calibrate, and the parameters to search for."""

    scores: Float64
    evidence: EvidenceCodes
    weights: Float64
    loss: str
    temperature: float | None
    """`None` if it is searched for."""
    biased: bool


class _Objective:
    """The mean loss of the rows as a function of log-temperature, biases and factors on costs."""

    def __init__(self, search: Search, graph: Graph, tuned: bool) -> None:
        self.search, self.graph = search, graph
        self.strengths = Strengths(graph, "kind") if tuned else None
        self.engine = None if tuned else Engine(graph)
        self.parts = [search.temperature is None, len(graph) if search.biased else 0]
        factors = [] if self.strengths is None else self.strengths.values.tolist()
        self.start = np.array([0.0] * sum(self.parts) + factors)
        self.bounds = [LOG_TEMPERATURE] * self.parts[0] + [(-LARGEST_BIAS, LARGEST_BIAS)] * self.parts[1]
        self.bounds += [(0.0, LARGEST_FACTOR)] * len(factors)

    def read(self, point: Float64) -> tuple[float, Float64, Graph]:
        """Temperature, biases and graph of a point."""
        first, second = self.parts[0], sum(self.parts)
        temperature = self.search.temperature
        bias = point[first:second] if self.search.biased else np.zeros(len(self.graph))
        graph = self.graph if self.strengths is None else self.strengths.graph(point[second:])
        return float(np.exp(point[0])) if temperature is None else temperature, bias, graph

    def __call__(self, point: Float64) -> tuple[float, Float64]:
        search = self.search
        temperature, bias, graph = self.read(point)
        found = (self.engine or Engine(graph)).gradients(
            search.scores / temperature + bias,
            search.evidence,
            search.weights,
            loss=search.loss,
            costs=self.strengths is not None,
        )
        for row in np.flatnonzero(~np.isfinite(found.losses))[:1].tolist():
            raise InputError(contradiction(row, graph.labels, search.evidence[row].tolist()))
        total = float(search.weights @ found.losses)
        slopes: list[float] = []
        if search.temperature is None:
            slopes.append(-float((found.logits * search.scores).sum()) / temperature)
        if search.biased:
            # Without rows a bias stays at 0, and few rows move it little.
            total += 0.5 * float(bias @ bias)
            slopes += (found.logits.sum(axis=0) + bias).tolist()
        if self.strengths is not None:
            assert found.costs is not None
            slopes += self.strengths.gradient(found.costs).tolist()
        rows = float(search.weights.sum())
        return total / rows, np.array(slopes) / rows

    def solve(self) -> Calibration:
        """The most likely point."""
        point, loss = self.start, 0.0
        if len(point):
            best = minimize(self, point, jac=True, method="L-BFGS-B", bounds=self.bounds)
            point, loss = best.x, float(best.fun)
        else:
            loss = self(point)[0]
        temperature, bias, graph = self.read(point)
        return Calibration(graph, temperature, bias, loss)


def calibrate(graph: Graph, search: Search, strength: Any) -> Calibration:
    """Temperature, biases and strengths, as far as they are searched for."""
    if strength is None:
        return _Objective(search, graph, tuned=False).solve()
    if isinstance(strength, str) and strength == "tune":
        return _Objective(search, graph, tuned=True).solve()
    grid = isinstance(strength, (list, tuple))
    if grid and not strength:
        raise InputError("strength is an empty list; give strengths such as ['hard', 'u=1']")
    found, refused = [], None
    for one in strength if grid else [strength]:
        changed = graph.with_strengths(hierarchy=one, exclusion=one)
        try:
            found.append(_Objective(search, changed, tuned=False).solve())
        except InputError as error:
            # Hard relations may forbid a row that soft ones allow.
            refused = error
    if not found and refused is not None:
        raise refused
    return min(found, key=lambda one: one.loss)
