"""The problem file: a JSON header with raw little-endian arrays next to it (see README.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
FORMAT = "phex-peers-1"


@dataclass
class Problem:
    """p(y) ∝ exp(−Σ J y_a y_b − Σ h_i y_i), y = ±1; exactly one label of `group` is +1."""

    name: str
    n: int
    edges: I64  # [m, 2]
    j: F32  # [m]
    h: F32  # [rows, n]
    group: I64  # [k]; empty without a one-of group
    reference: F32  # [r, n], P(y = +1) of the first r rows; r may be 0
    iterations: int = 20
    damping: float = 0.0
    repetitions: int = 5
    batches: list[int] = field(default_factory=lambda: [1, 64, 256])
    reads: int = 64
    sweeps: int = 200

    def logits(self, batch: int) -> F32:
        """The first `batch` rows (repeated when there are fewer) as log-odds −2h, [batch, n]."""
        rows = np.arange(batch) % len(self.h)
        return np.ascontiguousarray(-2.0 * self.h[rows], dtype=np.float32)


@dataclass
class Split:
    """A problem with a one-of group: group node, binary labels, and the tables between them."""

    binary: I64  # labels outside the group, in order: position = new index
    edges: I64  # [m, 2] edges between binary labels, in new indices
    j: F32
    unary: F32  # [k] log-potential that edges inside the group give its states
    table_of: I64  # [t] the binary label (new index) of each table
    weight: F32  # [t, k]: J of the pair (label, state), 0 without an edge
    field: F32  # [t, k]: the table's log-potential is field[t, s] · y, Σ_s J_s − 2 J_s


def split_group(problem: Problem) -> Split:
    """Edges of one binary label to labels of the group become one k×2 table."""
    k = len(problem.group)
    state = np.full(problem.n, -1)
    state[problem.group] = np.arange(k)
    binary = np.flatnonzero(state < 0)
    index = np.full(problem.n, -1)
    index[binary] = np.arange(len(binary))
    a, b = problem.edges.T
    inside = (state[a] >= 0) & (state[b] >= 0)
    outside = (state[a] < 0) & (state[b] < 0)
    cross = ~inside & ~outside
    unary = np.zeros(k)
    for end in (a, b):  # the pair's term is −J if either is on, else +J
        np.add.at(unary, state[end[inside]], 2.0 * problem.j[inside])
    grouped = np.where(state[a] >= 0, a, b)[cross]
    other = index[np.where(state[a] >= 0, b, a)[cross]]
    table_of, table = np.unique(other, return_inverse=True)
    weight = np.zeros((len(table_of), k))  # J of (binary, state)
    np.add.at(weight, (table, state[grouped]), problem.j[cross])
    fields = weight.sum(1, keepdims=True) - 2.0 * weight  # −Σ_a J_a (2[a = s] − 1)
    return Split(
        binary=binary,
        edges=index[problem.edges[outside]],
        j=problem.j[outside],
        unary=unary.astype(np.float32),
        table_of=table_of,
        weight=weight.astype(np.float32),
        field=fields.astype(np.float32),
    )


def load(path: Path) -> Problem:
    """Read a header and its arrays."""
    head = json.loads(path.read_text())
    if head["format"] != FORMAT:
        raise ValueError(f"{path}: format {head['format']!r}, expected {FORMAT!r}")

    def array(key: str, dtype: str) -> NDArray[np.generic]:
        name = head.get(key)
        return np.fromfile(path.parent / name, dtype) if name else np.zeros(0, dtype)

    n = int(head["n"])
    return Problem(
        name=head["name"],
        n=n,
        edges=array("edges", "<u4").astype(np.int64).reshape(-1, 2),
        j=array("j", "<f4").astype(np.float32),
        h=array("h", "<f4").astype(np.float32).reshape(-1, n),
        group=array("group", "<u4").astype(np.int64),
        reference=array("reference", "<f4").astype(np.float32).reshape(-1, n),
        **{
            key: head[key]
            for key in ("iterations", "damping", "repetitions", "batches", "reads", "sweeps")
            if key in head
        },
    )


def save(problem: Problem, path: Path) -> None:
    """Write a header and its arrays next to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head: dict[str, object] = {"format": FORMAT, "name": problem.name, "n": problem.n}
    arrays = {
        "edges": problem.edges.astype("<u4"),
        "j": problem.j.astype("<f4"),
        "h": problem.h.astype("<f4"),
        "group": problem.group.astype("<u4"),
        "reference": problem.reference.astype("<f4"),
    }
    for key, values in arrays.items():
        if values.size:
            head[key] = f"{path.stem}.{key}.bin"
            values.tofile(path.parent / f"{path.stem}.{key}.bin")
    for key in ("iterations", "damping", "repetitions", "batches", "reads", "sweeps"):
        head[key] = getattr(problem, key)
    path.write_text(json.dumps(head, indent=1) + "\n")
