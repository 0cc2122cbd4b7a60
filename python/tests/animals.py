"""Generated rows of animals, for tests of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

import phex

KINDS = {"pet": ["dog", "cat"], "wild": ["wolf", "fox", "boar"]}
LEAVES = ["husky", "poodle", "cat", "wolf", "fox", "boar"]


def graph(strength: str | None = None, *, exclusive: bool = True) -> phex.Graph:
    """An animal is a pet or wild, a pet a dog or a cat, a dog a husky or a poodle."""
    builder = phex.GraphBuilder().hierarchy("animal", list(KINDS), strength)
    for kind, animals in KINDS.items():
        builder.hierarchy(kind, animals, strength)
    builder.hierarchy("dog", ["husky", "poodle"], strength)
    if exclusive:
        builder.exclude("siblings", strength)
    return builder.build()


def taxonomy() -> phex.Graph:
    """The same animals, each of which is exactly one leaf."""
    builder = phex.GraphBuilder().hierarchy("animal", list(KINDS))
    for kind, animals in KINDS.items():
        builder.hierarchy(kind, animals)
    return builder.hierarchy("dog", ["husky", "poodle"]).single_label().build()


def rows(count: int, seed: int, noise: float = 1.0, idle: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features around the centre of a leaf, near to those of its kind, and the leaf.

    `idle` features more say nothing.
    """
    centre = np.random.default_rng(99)
    kinds = {kind: centre.normal(0.0, 2.0, 6) for kind in KINDS}
    above = {
        "husky": "pet",
        "poodle": "pet",
        "cat": "pet",
        "wolf": "wild",
        "fox": "wild",
        "boar": "wild",
    }
    centres = np.array([kinds[above[leaf]] + centre.normal(0.0, 1.2, 6) for leaf in LEAVES])
    rng = np.random.default_rng(seed)
    leaf = rng.integers(0, len(LEAVES), count)
    X = np.hstack([centres[leaf] + rng.normal(0.0, noise, (count, 6)), rng.normal(size=(count, idle))])
    return X, np.array(LEAVES)[leaf]


def coarse(y: np.ndarray, part: float, seed: int) -> np.ndarray:
    """The same labels, of which a part knows the kind alone."""
    kind: dict[str, Any] = {leaf: kind for kind, leaves in KINDS.items() for leaf in leaves}
    kind |= {"husky": "dog", "poodle": "dog"}
    hidden = np.random.default_rng(seed).random(len(y)) < part
    return np.where(hidden, np.array([kind[leaf] for leaf in y]), y)
