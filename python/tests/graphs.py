"""Graphs and rows for the tests: named ones that show a shape, and random ones of every shape."""

from __future__ import annotations

import numpy as np
from oracle import Oracle

import phex

STRENGTHS = ["hard", "w=0.7", "u=0.5", "q=0.2"]


def named() -> dict[str, phex.Graph]:
    """One graph of each shape that engines tell apart."""
    make = phex.GraphBuilder
    tree = lambda: make().hierarchy("animal", ["dog", "cat"]).hierarchy("dog", ["puppy", "hound"])  # noqa: E731
    return {
        "soft-tree": make()
        .hierarchy("animal", ["dog", "cat"], "u=0.5")
        .hierarchy("dog", ["puppy", "hound"], "w=1.5")
        .exclude("siblings", "q=0.3")
        .build(),
        "hard-tree": tree().exclude("siblings").build(),
        "free": make().label("one").label("two").label("three").build(),
        "dag": make()
        .hierarchy("pet", ["dog", "cat"])
        .hierarchy("mammal", ["dog", "cat"], "w=2")
        .hierarchy("wild", ["wolf"])
        .hierarchy("mammal", ["wolf"])
        .exclusion(["pet", "wild"], "u=0.25")
        .build(),
        "groups": tree()
        .exclusion(["puppy", "hound", "cat", "bird"], "w=0.8", name="kinds")
        .one_of("size", ["small", "large"])
        .hierarchy("small", ["puppy"], "q=0.4")
        .build(),
        "one-of-leaves": tree().one_of("leaf", "leaves").build(),
        "star": make()
        .one_of("class", ["otter", "dolphin", "eagle"])
        .hierarchy("furry", ["otter"], "w=3")
        .hierarchy("swims", ["otter", "dolphin"], "hard")
        .exclusion(["eagle", "swims"], "u=1")
        .build(),
        "rule": tree()
        .hierarchy("plant", ["tree", "moss"])
        .exclude("no-common-descendant", "w=1.2")
        .build(),
    }


def random_graph(seed: int) -> phex.Graph:
    """A graph of 2 to 8 labels with relations of every kind that has a legal state."""
    for attempt in range(100):
        rng = np.random.default_rng([seed, attempt])
        names = [f"label {at}" for at in range(rng.integers(2, 9))]
        builder = phex.GraphBuilder()
        for name in names:
            builder.label(name)
        for child in range(1, len(names)):
            for parent in rng.choice(child, size=min(child, int(rng.integers(0, 3))), replace=False):
                builder.hierarchy(names[parent], names[child], str(rng.choice(STRENGTHS)))
        for _ in range(rng.integers(0, 3)):
            members = rng.choice(names, size=int(rng.integers(2, min(4, len(names)) + 1)), replace=False)
            builder.exclusion(list(members), str(rng.choice(STRENGTHS)))
        if rng.random() < 0.4:
            builder.one_of("group", list(rng.choice(names, size=2, replace=False)))
        if rng.random() < 0.3:
            builder.exclude("siblings", str(rng.choice(STRENGTHS[1:])))
        try:
            return builder.build()
        except phex.GraphError:
            # A label excludes its own parent, or no state is legal: draw again.
            continue
    raise AssertionError(f"no graph for seed {seed}")


def random_rows(graph: phex.Graph, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and evidence of some labels, taken from legal states, so that there is an answer."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.0, 2.0, (rows, len(graph)))
    legal = Oracle(graph).legal()
    states = legal[rng.integers(0, len(legal), rows)].astype(np.int8)
    return scores, np.where(rng.random(scores.shape) < 0.3, states, -1).astype(np.int8)
