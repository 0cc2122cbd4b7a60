"""Write test problems: make_problem.py random|grid20|grid100|group|small|small-group OUT.json"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from problem import F32, I64, Problem, save


def random_edges(rng: np.random.Generator, n: int, count: int) -> I64:
    """`count` distinct pairs of different labels."""
    keys: set[tuple[int, int]] = set()
    while len(keys) < count:
        a, b = sorted(int(v) for v in rng.integers(0, n, 2))
        if a != b:
            keys.add((a, b))
    return np.array(sorted(keys), dtype=np.int64)


def grid_edges(side: int) -> I64:
    """The edges of a side × side grid."""
    label = np.arange(side * side).reshape(side, side)
    right = np.stack([label[:, :-1].ravel(), label[:, 1:].ravel()], 1)
    down = np.stack([label[:-1].ravel(), label[1:].ravel()], 1)
    return np.concatenate([right, down])


def group_edges(rng: np.random.Generator, k: int, binary: int, count: int) -> I64:
    """Every binary label touches the group; the rest of the edges avoid pairs inside it."""
    keys = {(int(rng.integers(0, k)), k + b) for b in range(binary)}
    while len(keys) < count:
        a, b = sorted(int(v) for v in rng.integers(0, k + binary, 2))
        if a != b and b >= k:
            keys.add((a, b))
    return np.array(sorted(keys), dtype=np.int64)


def enumerate_marginals(problem: Problem, rows: int) -> F32:
    """Exact P(y = +1) of small problems."""
    states = np.array(list(product([-1.0, 1.0], repeat=problem.n)))
    if len(problem.group):
        states = states[(states[:, problem.group] > 0).sum(1) == 1]
    a, b = problem.edges.T
    pair = (states[:, a] * states[:, b]) @ problem.j.astype(float)
    result = []
    for h in problem.h[:rows].astype(float):
        weight = np.exp(-pair - states @ h)
        result.append(weight @ (states > 0) / weight.sum())
    return np.array(result, dtype=np.float32)


def make(kind: str, rows: int, coupling: float, seed: int) -> Problem:
    """One of the named problems."""
    rng = np.random.default_rng(seed)
    group = np.zeros(0, dtype=np.int64)
    if kind == "random":
        n, edges = 1860, random_edges(rng, 1860, 6642)
    elif kind in ("grid20", "grid100"):
        side = int(kind.removeprefix("grid"))
        n, edges = side * side, grid_edges(side)
    elif kind == "group":
        n, edges, group = 1860, group_edges(rng, 1000, 860, 6642), np.arange(1000)
    elif kind == "small-group":
        n, edges = 14, random_edges(rng, 14, 24)
        group = np.array([1, 3, 4, 8, 13])
    else:
        n, edges = 12, random_edges(rng, 12, 18)
    j = rng.normal(0.0, coupling, len(edges)).astype(np.float32)
    h = rng.normal(0.0, 0.5, (rows, n)).astype(np.float32)
    none = np.zeros((0, n), dtype=np.float32)
    problem = Problem(kind, n, edges, j, h, group, none)
    if n <= 14:
        problem.reference = enumerate_marginals(problem, min(rows, 4))
    return problem


def main() -> None:
    """Command line."""
    kinds = ["random", "grid20", "grid100", "group", "small", "small-group"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--coupling", type=float, default=0.1, help="standard deviation of J")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    save(make(args.kind, args.rows, args.coupling, args.seed), args.out)


if __name__ == "__main__":
    main()
