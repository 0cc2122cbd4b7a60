"""The projection of probabilities by cvxpy or scikit-learn: reconcile_peers.py PROBLEM.json OUT.json

PROBLEM.json has `n`, `peer` (osqp, clarabel, isotonic), `logits` (a file of raw f64 rows) and `rows`:
`members` sum to at most `parent` (1 where it is -1), or to exactly it if `equal`. OUT.json has CPU
seconds per row of the whole call and of the solver, and the probabilities.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from timing import one_thread

one_thread(None)

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy.sparse import csr_matrix  # noqa: E402

F64 = NDArray[np.float64]
Solve = Callable[[F64], tuple[F64, float | None]]


def matrix(n: int, rows: list[dict[str, Any]]) -> tuple[csr_matrix, F64]:
    """`A q ≤ b` for rows of a problem."""
    at, column, value = [], [], []
    for index, row in enumerate(rows):
        for member in row["members"]:
            at.append(index)
            column.append(member)
            value.append(1.0)
        if row["parent"] >= 0:
            at.append(index)
            column.append(row["parent"])
            value.append(-1.0)
    limit = np.array([1.0 if row["parent"] < 0 else 0.0 for row in rows])
    return csr_matrix((value, (at, column)), (len(rows), n)), limit


def by_cvxpy(n: int, rows: list[dict[str, Any]], solver: str) -> Solve:
    """One compiled problem; OSQP projects logits, CLARABEL probabilities."""
    import cvxpy as cp

    logits, x = cp.Parameter(n), cp.Variable(n)
    kinds = [[row for row in rows if row["equal"] == equal] for equal in (False, True)]
    limits = []
    for equal, part in zip((False, True), kinds, strict=True):
        if part:
            a, b = matrix(n, part)
            limits.append(a @ x == b if equal else a @ x <= b)
    if solver == "OSQP":
        problem = cp.Problem(cp.Minimize(cp.sum_squares(x) - 2 * logits @ x), limits)
        options = {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iter": 100_000}
    else:
        entropy = cp.sum(cp.entr(x)) + cp.sum(cp.entr(1 - x))
        problem = cp.Problem(cp.Minimize(-entropy - logits @ x), limits)
        options = {}

    def solve(row: F64) -> tuple[F64, float | None]:
        logits.value = row
        problem.solve(solver=solver, **options)
        found = x.value
        answer = 1 / (1 + np.exp(-found)) if solver == "OSQP" else found
        return answer, problem.solver_stats.solve_time

    return solve


def by_isotonic(rows: list[dict[str, Any]]) -> Solve:
    """A chain from the first label down."""
    from sklearn.isotonic import isotonic_regression

    if any(row["members"] != [row["parent"] + 1] for row in rows):
        raise SystemExit("isotonic regression needs a chain")

    def solve(row: F64) -> tuple[F64, float | None]:
        return 1 / (1 + np.exp(-isotonic_regression(row, increasing=False))), None

    return solve


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    problem = json.loads(args.problem.read_text())
    logits = np.fromfile(problem["logits"]).reshape(-1, problem["n"])
    peer = problem["peer"]
    solve = (
        by_isotonic(problem["rows"])
        if peer == "isotonic"
        else by_cvxpy(problem["n"], problem["rows"], peer.upper())
    )
    solve(logits[0])  # compiles
    calls, solvers, answers = [], [], []
    for row in logits:
        start = time.process_time()
        answer, seconds = solve(row)
        calls.append(time.process_time() - start)
        answers.append(answer)
        if seconds is not None:
            solvers.append(seconds)
    report = {
        "call": float(np.mean(calls)),
        "solver": float(np.mean(solvers)) if solvers else None,
        "probabilities": np.concatenate(answers).tolist(),
    }
    args.out.write_text(json.dumps(report))


if __name__ == "__main__":
    main()
