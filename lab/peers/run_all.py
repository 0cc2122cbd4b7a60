"""Run peers on problems and print a table: run_all.py PROBLEM... --out DIR --venv V --pgmax-venv G

Every run is a process of its own, on one core; a run that fails or passes its limit is a dash.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
PEERS = ["numpy", "torch", "torch-compile", "pgmax"]


def lbp(args: argparse.Namespace, problem: Path, peer: str, batch: int) -> str:
    """One cell: best (median) ms per row."""
    out = args.out / f"lbp-{problem.stem}-{peer}-{batch}.json"
    venv = args.pgmax_venv if peer == "pgmax" else args.venv
    command = [venv / "bin/python", HERE / "lbp_peers.py", problem, out, "--peer", peer]
    command += ["--batch", str(batch), "--budget", str(args.budget), "--cpu", str(args.cpu)]
    try:
        subprocess.run(command, check=True, timeout=3 * args.budget + 120)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"{peer} {problem.stem} batch {batch}: {error}")
        return "–"
    report = json.loads(out.read_text())
    return f"{report['ms_per_row_best']:.3g} ({report['ms_per_row_median']:.3g})"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--venv", type=Path, default=Path(".venv-peers"))
    parser.add_argument("--pgmax-venv", type=Path, default=Path(".venv-pgmax"))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--batches", type=int, nargs="+", help="instead of the problem's own")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds a cell, roughly")
    parser.add_argument("--cpu", type=int, default=0, help="the core to run on")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    lines = ["| problem | peer | batch | ms per row, best (median) |", "|---|---|---|---|"]
    for problem in args.problems:
        head = json.loads(problem.read_text())
        for peer in args.peers:
            for batch in args.batches or head["batches"]:
                cell = lbp(args, problem, peer, batch)
                lines.append(f"| {head['name']} | {peer} | {batch} | {cell} |")
        if not head.get("group"):
            out = args.out / f"gibbs-{problem.stem}.json"
            command = [args.venv / "bin/python", HERE / "gibbs_peer.py", problem, out]
            subprocess.run([*command, "--cpu", str(args.cpu)], check=True)
            report = json.loads(out.read_text())
            for kind in ("gibbs", "metropolis"):
                cell = f"{report[kind]['ns_per_update']:.3g} ns an update"
                lines.append(
                    f"| {head['name']} | dwave-samplers, {kind} | {head['reads']} | {cell} |"
                )
    print("\n".join(lines))
    (args.out / "table.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
