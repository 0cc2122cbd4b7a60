"""phex from Python beside its peers: python lab/python/peers.py [--quick] [--out FOLDER]

The same models and rows, on one thread of one core. Each round runs every implementation once, phex first.
A ratio is that of the best CPU times of a round; the median of all rounds counts. By wall-clock time, long
calls suffer more than short ones if others use the core, which would flatter phex. Errors of marginals are
against phex's exact ones in double precision. pgmpy is also exact and runs one row; the others are loopy
belief propagation, 20 iterations by flooding without damping.

`make peers` makes the environments of the peers (lab/peers/README.md); that of pgmpy is made by
`python3 -m venv V && V/bin/pip install -r lab/python/requirements-pgmpy.txt`. A peer without an environment
is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import overhead
from models import ROOT, Case, cifar, small
from report import machine, markdown
from timing import measure, one_thread

import phex

PAPER = {"schedule": "flooding", "groups": "pairs", "damping": 0.0, "iterations": 20, "tolerance": 0.0}
OURS = {"phex exact": {}, "phex lbp": {"method": "lbp"}, "phex lbp as peers": {"method": "lbp", **PAPER}}
PEERS = {
    "numpy": "peers",
    "torch": "peers",
    "torch-compile": "peers",
    "pgmax": "pgmax",
    "pgmpy": "pgmpy",
}
NAMES = {
    "numpy": "numpy LBP",
    "torch": "torch LBP",
    "torch-compile": "torch LBP, compiled",
    "pgmax": "PGMax",
    "pgmpy": "pgmpy, exact",
}

Run = dict[str, object]


def ours(case: Case, options: dict[str, object], batch: int, repetitions: int) -> Run:
    """One of phex's engines, timed as the peers are."""
    model = case.graph.compile(**options)
    rows = case.scores[:batch]
    marginals, times = measure(lambda: model.marginals(rows), repetitions, 10.0)
    return {
        "ms": 1e3 * times["median_s"] / batch,
        "cpu_ms": 1e3 * times["best_cpu_s"] / batch,
        "cpu_over_wall": times["cpu_over_wall"],
        "p": marginals,
    }


def theirs(args: argparse.Namespace, problem: Path, peer: str, batch: int) -> Run:
    """A peer in a process of its own."""
    venv = getattr(args, f"{PEERS[peer]}_venv")
    python = venv / "bin/python"
    if not python.exists():
        return {"missing": f"no {python}"}
    out = problem.with_suffix(f".{peer}-{batch}.out.json")
    if peer == "pgmpy":
        command = [python, ROOT / "lab/python/peer_pgmpy.py", problem, out]
    else:
        command = [python, ROOT / "lab/peers/lbp_peers.py", problem, out, "--peer", peer]
        command += ["--batch", str(batch), "--keep", str(batch)]
    command += ["--cpu", str(args.cpu), "--budget", str(args.budget)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if run.returncode != 0:
        return {"missing": (run.stderr.strip().splitlines() or ["it failed"])[-1]}
    report = json.loads(out.read_text())
    return {
        "ms": report["ms_per_row_median"],
        "cpu_ms": 1e3 * report["best_cpu_s"] / batch,
        "cpu_over_wall": report["cpu_over_wall"],
        "p": np.array(report["marginals"]),
        "versions": report["versions"],
    }


def compare(args: argparse.Namespace, case: Case, folder: Path) -> list[Run]:
    """Every implementation on a model, in rounds."""
    problem = case.write(folder, args.repetitions)
    exact = case.graph.compile("exact").marginals(case.scores.astype(np.float64))
    jobs: list[tuple[str, int, Callable[[], Run]]] = []
    for batch in (1, 256):
        for name, options in OURS.items():
            jobs.append(
                (name, batch, lambda o=options, b=batch: ours(case, o, b, 10 * args.repetitions))
            )
    for peer in args.peers:
        for batch in (1,) if peer == "pgmpy" else (256,) if args.quick else (1, 256):
            jobs.append((NAMES[peer], batch, lambda p=peer, b=batch: theirs(args, problem, p, b)))
    rounds: list[list[Run]] = []
    for number in range(args.rounds):
        print(f"{case.name}: round {number + 1} of {args.rounds}", flush=True)
        rounds.append([job() for _, _, job in jobs])
    names = [(name, batch) for name, batch, _ in jobs]
    found = []
    for at, (name, batch) in enumerate(names):
        runs = [runs[at] for runs in rounds]
        row: Run = {"model": case.name, "implementation": name, "batch": batch}
        missing = next((run["missing"] for run in runs if "missing" in run), None)
        if missing is not None:
            found.append({**row, "missing": missing})
            continue
        error = np.abs(np.asarray(runs[0]["p"], dtype=np.float64) - exact[: len(runs[0]["p"])])
        row["ms_per_row"] = median(run["ms"] for run in runs)
        row["cpu_ms_per_row"] = min(run["cpu_ms"] for run in runs)
        for key, size in (("times_phex", 256), ("times_phex_same_batch", batch)):
            base = [runs[names.index(("phex exact", size))]["cpu_ms"] for runs in rounds]
            row[key] = median(run["cpu_ms"] / ours for run, ours in zip(runs, base, strict=True))
        row["max_error"], row["mean_error"] = float(error.max()), float(error.mean())
        row["cpu_over_wall"] = median(run["cpu_over_wall"] for run in runs)
        if "versions" in runs[0]:
            row["versions"] = runs[0]["versions"]
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, batch 256, no torch.compile")
    parser.add_argument("--out", type=Path, default=ROOT / "target/lab/python", help="a folder")
    parser.add_argument("--peers-venv", type=Path, default=ROOT / ".venv-peers")
    parser.add_argument("--pgmax-venv", type=Path, default=ROOT / ".venv-pgmax")
    parser.add_argument("--pgmpy-venv", type=Path, default=ROOT / ".venv-pgmpy")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), help="instead of all")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds that a peer may repeat")
    parser.add_argument("--cpu", type=int, default=0, help="the core to run on")
    args = parser.parse_args()
    args.rounds, args.repetitions = (1, 5) if args.quick else (3, 10)
    if args.peers is None:
        args.peers = [peer for peer in PEERS if not (args.quick and peer == "torch-compile")]
    one_thread(args.cpu)
    phex.set_threads(1)
    cases = [cifar(), small()]
    with tempfile.TemporaryDirectory() as folder:
        results: Run = {
            "command": "python lab/python/peers.py" + (" --quick" if args.quick else ""),
            "machine": {"processor": machine(), "cores": os.cpu_count(), "version": phex.__version__},
            "models": {case.name: f"{case.what}, u = 0.5, siblings exclude" for case in cases},
            "overhead": overhead.measure(cases[0], Path(folder), 2 if args.quick else 10),
            "rows": [row for case in cases for row in compare(args, case, Path(folder))],
        }
    args.out.mkdir(parents=True, exist_ok=True)
    raw = json.dumps(results, indent=2) + "\n"
    (args.out / "result.json").write_text(raw, encoding="utf-8")
    text = markdown(results)
    (args.out / "result.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
