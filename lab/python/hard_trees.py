"""Hard taxonomies beside the softmax of PyTorch over the same columns: CPU time per row, on one thread.

The tree is ImageNet's, where each label keeps its first parent: 1860 labels, of which 1000 are leaves.
The table goes to standard output.

    python -P lab/python/hard_trees.py ../shared/data/imagenet/ilsvrc2012_hierarchy_edges.tsv
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import phex

#: Seconds of CPU that each case takes at least.
LEAST = 0.5


def tree(edges: Path, *, one_leaf: bool) -> phex.Graph:
    """The hard tree, whose labels exclude each other unless one is above the other."""
    builder, parents, seen = phex.GraphBuilder(), set(), set()
    for line in edges.read_text(encoding="utf-8").splitlines()[1:]:
        parent, child = line.split("\t")
        if child not in seen:
            seen.add(child)
            parents.add(parent)
            builder.hierarchy(parent, [child])
    builder.exclude("no-common-descendant")
    if one_leaf:
        builder.one_of("leaf", sorted(seen - parents))
    return builder.build()


def per_row(call: Callable[[], object], rows: int) -> float:
    """Microseconds of CPU per row: the least mean of ten series of calls."""
    call()
    best, calls = float("inf"), 1
    while True:
        start = time.process_time()
        for _ in range(calls):
            call()
        seconds = time.process_time() - start
        if seconds >= LEAST / 10:
            break
        calls *= 2
    for _ in range(10):
        start = time.process_time()
        for _ in range(calls):
            call()
        best = min(best, time.process_time() - start)
    return 1e6 * best / (calls * rows)


def main() -> None:
    """Prints a row per graph, precision and batch."""
    torch.set_num_threads(1)
    phex.set_threads(1)
    random = np.random.default_rng(0)
    print("| case | engine | precision | batch | µs per row | softmax | ratio |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for case, one_leaf in (("hard tree", False), ("hard tree, one of 1000 leaves", True)):
        model = tree(Path(sys.argv[1]), one_leaf=one_leaf).compile()
        for dtype in (np.float32, np.float64):
            for batch in (1, 64, 4096):
                scores = random.normal(size=(batch, len(model))).astype(dtype)
                tensor = torch.from_numpy(scores)
                ours = per_row(lambda model=model, x=scores: model.marginals(x), batch)
                theirs = per_row(lambda x=tensor: torch.softmax(x, dim=1), batch)
                print(
                    f"| {case} | {model.plan.method} | {np.dtype(dtype).name} | {batch} | {ours:.2f} "
                    f"| {theirs:.2f} | {ours / theirs:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
