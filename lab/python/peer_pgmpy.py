"""Time exact marginals of one row by pgmpy: peer_pgmpy.py PROBLEM OUT.json

A junction tree, calibrated; every label's marginal is read from the belief of the smallest clique that
has it. pgmpy has no batches: factors are made anew for each row, which is in the time.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from timing import measure, one_thread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds, roughly")
    parser.add_argument("--cpu", type=int, help="the core to run on")
    args = parser.parse_args()
    one_thread(args.cpu)
    warnings.simplefilter("ignore")
    import networkx
    import numpy as np
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagation
    from pgmpy.models import DiscreteMarkovNetwork
    from problem import load

    problem = load(args.problem)
    edges, nodes = problem.edges.tolist(), range(problem.n)
    # Its junction trees are of connected networks only: factors of ones join the parts.
    parts = [min(part) for part in networkx.connected_components(networkx.Graph(edges))]
    joins = list(pairwise(sorted(parts)))

    def row() -> list[float]:
        network = DiscreteMarkovNetwork([*edges, *joins])
        factors = [DiscreteFactor(pair, [2, 2], np.ones(4)) for pair in joins]
        for (a, b), j in zip(edges, problem.j.astype(float), strict=True):
            factors.append(DiscreteFactor([a, b], [2, 2], np.exp([-j, j, j, -j])))
        for node, h in zip(nodes, problem.h[0].astype(float), strict=True):
            factors.append(DiscreteFactor([node], [2], np.exp([h, -h])))
        network.add_factors(*factors)
        tree = BeliefPropagation(network)
        tree.calibrate()
        beliefs = sorted(tree.get_clique_beliefs().items(), key=lambda item: -len(item[0]))
        best = {node: (clique, belief) for clique, belief in beliefs for node in clique}
        found = []
        for node in nodes:
            clique, belief = best[node]
            others = [other for other in clique if other != node]
            alone = belief.marginalize(others, inplace=False) if others else belief
            found.append(float(alone.values[1] / alone.values.sum()))
        return found

    marginals, times = measure(row, problem.repetitions, args.budget)
    report = {
        "peer": "pgmpy",
        "batch": 1,
        "ms_per_row_best": 1e3 * times["best_s"],
        "ms_per_row_median": 1e3 * times["median_s"],
        **times,
        "versions": {name: version(name) for name in ("pgmpy", "numpy")},
        "marginals": [marginals],
    }
    args.out.write_text(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
