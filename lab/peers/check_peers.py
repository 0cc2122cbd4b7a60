"""All LBP peers agree after 20 iterations: check_peers.py --venv PEERS --pgmax-venv PGMAX"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import make_problem
from lbp_peers import PEERS
from problem import save

HERE = Path(__file__).parent
TOLERANCE = 1e-4


def main() -> None:
    """Command line; exits with 1 when two peers differ by more than TOLERANCE."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--pgmax-venv", type=Path, required=True)
    args = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("small", "small-group"):
            problem = make_problem.make(kind, rows=8, coupling=0.15, seed=1)
            path = Path(folder) / f"{kind}.json"
            save(problem, path)
            found = {}
            for peer in PEERS:
                out = Path(folder) / f"{kind}.{peer}.json"
                venv = args.pgmax_venv if peer == "pgmax" else args.venv
                command = [venv / "bin/python", HERE / "lbp_peers.py", path, out]
                subprocess.run([*command, "--peer", peer, "--batch", "8"], check=True)
                found[peer] = np.array(json.loads(out.read_text())["marginals"])
            for peer, marginals in found.items():
                gap = np.abs(marginals - found["numpy"]).max()
                exact = np.abs(marginals - problem.reference).max()
                print(f"{kind} {peer}: {gap:.1e} from numpy, {exact:.1e} from the exact marginals")
                worst = max(worst, float(gap))
    sys.exit(worst > TOLERANCE)


if __name__ == "__main__":
    main()
