"""Time a spin update of dwave-samplers at fixed beta = 1: gibbs_peer.py PROBLEM OUT.json"""

from __future__ import annotations

import argparse
import json
from functools import partial
from importlib.metadata import version
from pathlib import Path

from timing import measure, one_thread


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, default=4, help="rows whose marginals are estimated")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds a timing, roughly")
    parser.add_argument("--cpu", type=int, help="the core to run on")
    args = parser.parse_args()
    one_thread(args.cpu)
    import numpy as np
    from dimod import BinaryQuadraticModel
    from dwave.samplers import SimulatedAnnealingSampler

    from problem import F32, load

    problem = load(args.problem)
    if len(problem.group):
        parser.error("the sampler has no one-of groups")
    sampler = SimulatedAnnealingSampler()
    pairs = {(a, b): float(w) for (a, b), w in zip(problem.edges.tolist(), problem.j, strict=True)}

    def model(row: int) -> BinaryQuadraticModel:
        return BinaryQuadraticModel(dict(enumerate(problem.h[row].tolist())), pairs, "SPIN")

    def sample(bqm: BinaryQuadraticModel, sweeps: int, criteria: str) -> F32:
        found = sampler.sample(
            bqm,
            num_reads=problem.reads,
            beta_schedule_type="custom",
            beta_schedule=np.ones(sweeps),
            num_sweeps_per_beta=1,
            proposal_acceptance_criteria=criteria,
            seed=1,
        )
        order = np.argsort(np.array(list(found.variables)))
        spins: F32 = (found.record.sample[:, order] > 0).mean(0, dtype=np.float32)
        return spins

    report: dict[str, object] = {
        "peer": "dwave-samplers",
        "problem": problem.name,
        "reads": problem.reads,
        "sweeps": problem.sweeps,
        "versions": {name: version(name) for name in ("dwave-samplers", "dimod", "numpy")},
    }
    first = model(0)
    for criteria in ("Gibbs", "Metropolis"):
        # Twice the sweeps less once: what is left is sweeps, without setting up and reading out.
        whole, times = measure(
            partial(sample, first, problem.sweeps, criteria), problem.repetitions, args.budget
        )
        _, double = measure(
            partial(sample, first, 2 * problem.sweeps, criteria), problem.repetitions, args.budget
        )
        updates = problem.n * problem.sweeps * problem.reads
        rows = [whole] + [
            sample(model(row), problem.sweeps, criteria)
            for row in range(1, min(args.rows, len(problem.h)))
        ]
        result = {
            "ns_per_update": 1e9 * (double["best_s"] - times["best_s"]) / updates,
            "ns_per_update_with_setup": 1e9 * times["best_s"] / updates,
            "ns_per_update_with_setup_median": 1e9 * times["median_s"] / updates,
            "ms_per_row": 1e3 * times["best_s"],
            **times,
            "marginals": [row.tolist() for row in rows],
        }
        known = min(len(problem.reference), len(rows))
        if known:
            error = np.abs(np.array(rows[:known]) - problem.reference[:known])
            result["mean_error"] = float(error.mean())
            result["max_error"] = float(error.max())
        report[criteria.lower()] = result
        print(
            f"dwave-samplers {criteria} {problem.name}: {result['ns_per_update']:.3g} ns an update "
            f"({result['ns_per_update_with_setup']:.3g} with set-up, "
            f"mean error {result.get('mean_error', 'not known')})"
        )
    args.out.write_text(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
