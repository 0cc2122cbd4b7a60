"""All 2ⁿ states of a graph in plain numpy: the answers that engines are held to.

It reads the relations from the graph and knows nothing of engines. Sparse semantics only: of a rule it
charges the pairs of `siblings`, and of `no-common-descendant` the minimal ones.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

import phex


class Best(NamedTuple):
    on: np.ndarray
    log_probability: np.ndarray


def log_sum(values: np.ndarray) -> np.ndarray:
    """log Σ exp over the last axis; minus infinity if it is empty."""
    top = values.max(axis=-1, keepdims=True)
    finite = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return (finite + np.log(np.exp(values - finite).sum(axis=-1, keepdims=True)))[..., 0]


def rule_pairs(graph: phex.Graph) -> list[tuple[str, str]]:
    """The pairs that the graph's rule charges for."""
    if graph.rule is None:
        return []
    below: dict[str, set[str]] = {}

    def descendants(label: str) -> set[str]:
        if label not in below:
            below[label] = {label}.union(*(descendants(child) for child in graph.children(label)))
        return below[label]

    def apart(a: str, b: str) -> bool:
        return not descendants(a) & descendants(b)

    def above(label: str) -> set[str]:
        return {other for other in graph.labels if label in descendants(other)}

    pairs = [pair for pair in combinations(graph.labels, 2) if apart(*pair)]
    if graph.rule[0] == "siblings":
        return [(a, b) for a, b in pairs if set(graph.parents(a)) & set(graph.parents(b))]
    assert graph.rule[0] == "no-common-descendant", graph.rule

    def minimal(a: str, b: str) -> bool:
        higher = ((x, y) for x in above(a) for y in above(b) if (x, y) != (a, b))
        return not any(apart(x, y) for x, y in higher)

    return [(a, b) for a, b in pairs if minimal(a, b)]


class Oracle:
    """Every state of a graph with its cost."""

    def __init__(self, graph: phex.Graph) -> None:
        assert graph.semantics == "sparse"
        n = len(graph)
        assert n <= 16, "2ⁿ states"
        self.graph = graph
        self.on = (np.arange(2**n)[:, np.newaxis] >> np.arange(n) & 1).astype(bool)
        cost = np.zeros(2**n)

        def charge(violations: np.ndarray, strength: phex.Strength) -> None:
            # Not a product: infinity times 0 is NaN.
            cost[violations > 0] += (violations * min(strength.cost, 1e300))[violations > 0]
            if strength.is_hard:
                cost[violations > 0] = np.inf

        column = {label: self.on[:, at] for at, label in enumerate(graph.labels)}
        for parent, child, strength in graph.hierarchy:
            charge((column[child] & ~column[parent]).astype(float), strength)
        for labels, strength, _ in graph.exclusions:
            count = np.sum([column[label] for label in labels], axis=0)
            charge(count * (count - 1) / 2.0, strength)
        for a, b in rule_pairs(graph):
            charge((column[a] & column[b]).astype(float), graph.rule[1])
        for labels in graph.one_of.values():
            cost[np.sum([column[label] for label in labels], axis=0) != 1] = np.inf
        self.cost = cost

    def legal(self) -> np.ndarray:
        """The states that break no hard relation: states × labels."""
        return self.on[np.isfinite(self.cost)]

    def log_weights(self, logits: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        """Rows × states; minus infinity if a state does not agree with the evidence."""
        logits = np.atleast_2d(np.asarray(logits, dtype=np.float64))
        weights = logits @ self.on.T - self.cost
        if known is not None:
            known = np.broadcast_to(np.atleast_2d(known), logits.shape)
            clash = (known[:, np.newaxis] == 1) & ~self.on | (known[:, np.newaxis] == 0) & self.on
            weights = np.where(clash.any(axis=2), -np.inf, weights)
        return weights

    def log_partition(self, logits: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        return log_sum(self.log_weights(logits, known))

    def probabilities(self, logits: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        """Rows × states."""
        weights = self.log_weights(logits, known)
        return np.exp(weights - log_sum(weights)[:, np.newaxis])

    def marginals(self, logits: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        return self.probabilities(logits, known) @ self.on

    def best(self, logits: np.ndarray, k: int, known: np.ndarray | None = None) -> list[Best]:
        """The `k` most probable states of each row."""
        weights = self.log_weights(logits, known)
        found = []
        for row, total in zip(weights, log_sum(weights), strict=True):
            order = np.argsort(-row, kind="stable")[: min(k, int(np.isfinite(row).sum()))]
            found.append(Best(self.on[order], row[order] - total))
        return found

    def losses(self, logits: np.ndarray, targets: np.ndarray, loss: str = "joint") -> np.ndarray:
        """Minus the log-probability of all targets of a row, or of each of them, summed."""
        total = self.log_partition(logits)
        if loss == "joint":
            return total - self.log_partition(logits, targets)
        summed = np.zeros(len(total))
        for label in range(targets.shape[1]):
            alone = np.full_like(targets, -1)
            alone[:, label] = targets[:, label]
            summed += total - self.log_partition(logits, alone)
        return summed

    def entropy(self, logits: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        p = self.probabilities(logits, known)
        return -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0), axis=1)
