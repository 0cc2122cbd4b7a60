"""Writes `crates/phex/tests/golden/marginals.json`: answers by enumeration, for tests of every language.

Run as `python python/tests/golden.py`. The numbers come from `oracle.py`, not from an engine.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from graphs import named, random_graph, random_rows
from oracle import Oracle

PATH = Path(__file__).parents[2] / "crates/phex/tests/golden/marginals.json"


def row(oracle: Oracle, logits: np.ndarray, known: np.ndarray) -> dict[str, object]:
    """One row of scores with its evidence and its answers; null if nothing is legal."""
    total = float(oracle.log_partition(logits, known)[0])
    legal = np.isfinite(total)
    best = oracle.best(logits, 1, known)[0].on
    return {
        "logits": logits.tolist(),
        "known": known.tolist(),
        "log_partition": total if legal else None,
        "marginals": oracle.marginals(logits, known)[0].tolist() if legal else None,
        "best": best[0].astype(int).tolist() if legal else None,
    }


def cases() -> list[dict[str, object]]:
    graphs = named() | {f"random-{seed}": random_graph(seed) for seed in range(12)}
    found = []
    for seed, (name, graph) in enumerate(graphs.items()):
        oracle = Oracle(graph)
        scores, known = random_rows(graph, 4, seed)
        scores[3] *= 10
        # Four digits, so that the file says exactly what was computed with.
        scores = scores.round(4)
        known[0] = -1
        rows = [row(oracle, *pair) for pair in zip(scores, known, strict=True)]
        if graph.one_of:
            impossible = np.full(len(graph), -1, dtype=np.int8)
            for label in next(iter(graph.one_of.values())):
                impossible[graph.index(label)] = 1
            rows.append(row(oracle, scores[0], impossible))
        found.append({"name": name, "graph": json.loads(graph.to_json()), "rows": rows})
    return found


def main() -> None:
    PATH.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(case) for case in cases())
    PATH.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
