"""The models that phex and its peers are compared on, and the problem files that peers read."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import phex

ROOT = Path(__file__).parents[2]
# The files of the peers: the form of problems, and how time is measured.
sys.path.insert(0, str(ROOT / "lab/peers"))

from problem import Problem, save  # noqa: E402

ROWS = 256
STRENGTH = "u=0.5"


@dataclass
class Case:
    """A graph with rows of scores."""

    name: str
    what: str
    graph: phex.Graph
    scores: NDArray[np.float32]

    def write(self, folder: Path, repetitions: int) -> Path:
        """The Ising form of the graph as a problem file of lab/peers."""
        model = self.graph.compile()
        energy = phex.to_bqm(model, np.zeros(len(self.graph)))
        place = {label: at for at, label in enumerate(self.graph.labels)}
        field = np.array([energy.linear[label] for label in self.graph.labels])
        pairs = [(place[a], place[b], j) for (a, b), j in energy.quadratic.items() if j != 0.0]
        problem = Problem(
            name=self.name,
            n=len(self.graph),
            edges=np.array([pair[:2] for pair in pairs], dtype=np.int64),
            j=np.array([pair[2] for pair in pairs], dtype=np.float32),
            # A score is on for y = 1: it adds score · (1 + y) / 2 to the log-weight.
            h=(field - self.scores / 2.0).astype(np.float32),
            group=np.zeros(0, dtype=np.int64),
            reference=np.zeros((0, len(self.graph)), dtype=np.float32),
            repetitions=repetitions,
        )
        path = folder / f"{self.name}.json"
        save(problem, path)
        return path


def tree(pairs: list[tuple[str, str]]) -> phex.Graph:
    """Parents and children, soft, with siblings that exclude each other."""
    builder = phex.GraphBuilder()
    for parent, child in pairs:
        builder.hierarchy(parent, child, STRENGTH)
    return builder.exclude("siblings", STRENGTH).build()


def scores(graph: phex.Graph) -> NDArray[np.float32]:
    """Rows of scores as a classifier has them: a few labels on, most off."""
    return np.random.default_rng(1).normal(-1.0, 2.0, (ROWS, len(graph))).astype(np.float32)


def cifar() -> Case:
    """The 100 fine under the 20 coarse labels of CIFAR-100, or a tree of that shape."""
    data = Path(os.environ.get("PHEX_DATA", ROOT.parent / "shared/data"))
    table = data / "cifar100/labels.txt"
    if table.exists():
        lines = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()]
        pairs = sorted((coarse, fine) for _, fine, _, coarse in lines)
        what = "the labels of CIFAR-100: 20 × 5 in two levels"
    else:
        pairs = [(f"coarse {a}", f"fine {a}.{b}") for a in range(20) for b in range(5)]
        what = "a tree of 20 × 5 in two levels (no CIFAR-100 found)"
    graph = tree(pairs)
    return Case("cifar", what, graph, scores(graph))


def small() -> Case:
    """Three levels of 16 labels."""
    families = [(f"family {a}", f"label {a}.{b}") for a in range(3) for b in range(4)]
    graph = tree([*(("all", f"family {a}") for a in range(3)), *families])
    return Case("small", "a tree of 1 + 3 + 12 labels in three levels", graph, scores(graph))
