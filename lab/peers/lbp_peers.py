"""Time flooding sum-product LBP of one peer: lbp_peers.py PROBLEM OUT.json --peer P --batch B"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from timing import measure, one_thread

PEERS = ["numpy", "torch", "torch-compile", "pgmax"]


def versions() -> dict[str, str]:
    """Versions of what is installed."""
    found = {}
    for name in ("numpy", "scipy", "torch", "pgmax", "jax", "jaxlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--budget", type=float, default=120.0, help="seconds, roughly")
    parser.add_argument("--keep", type=int, default=4, help="rows whose marginals are written")
    parser.add_argument("--cpu", type=int, help="the core to run on")
    args = parser.parse_args()
    one_thread(args.cpu)
    # Imported after the thread settings; only the chosen peer's libraries are installed.
    from problem import load

    problem = load(args.problem)
    if problem.damping != 0.0:
        parser.error("the peers run without damping")
    if args.peer == "pgmax":
        import peer_pgmax

        run = peer_pgmax.build(problem)
    elif args.peer == "numpy":
        import peer_numpy

        run = peer_numpy.build(problem)
    else:
        import peer_torch

        run = peer_torch.build(problem, compiled=args.peer == "torch-compile")
    logits = problem.logits(args.batch)
    marginals, times = measure(lambda: run(logits), problem.repetitions, args.budget)
    report = {
        "peer": args.peer,
        "problem": problem.name,
        "batch": args.batch,
        "iterations": problem.iterations,
        "ms_per_row_best": 1e3 * times["best_s"] / args.batch,
        "ms_per_row_median": 1e3 * times["median_s"] / args.batch,
        "cpu_ms_per_row_best": 1e3 * times["best_cpu_s"] / args.batch,
        **times,
        "versions": versions(),
        "marginals": marginals[: args.keep].tolist(),
    }
    args.out.write_text(json.dumps(report) + "\n")
    print(
        f"{args.peer} {problem.name} batch {args.batch}: "
        f"{report['ms_per_row_best']:.4g} ms per row (median {report['ms_per_row_median']:.4g}, "
        f"CPU {report['cpu_ms_per_row_best']:.4g}, first call {times['first_s']:.3g} s, "
        f"{times['repetitions']} repetitions, "
        f"cpu/wall {times['cpu_over_wall']:.2f})"
    )


if __name__ == "__main__":
    main()
