"""The cost of a call from Python beside the same call from Rust, measured in turns.

`lab bench overhead` has the same engine and the same rows. A line on its standard input makes it run some
calls and print the seconds of each. Then Python runs as many calls, and so on.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from models import ROOT, Case

import phex

CALLS = 30
BINARY = ROOT / "target/release/lab"


def seconds(call: Callable[[], object], count: int) -> list[float]:
    """The time of each of some calls, after one that does not count."""
    call()
    found = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return found


def measure(case: Case, folder: Path, rounds: int) -> dict[str, object]:
    """Microseconds of a call on all rows: Rust, the compiled module, and `Model`; and of one on none."""
    model = case.graph.compile()
    engine, scores = model._engine, case.scores
    none = scores[:0]
    report: dict[str, object] = {
        "model": case.name,
        "method": model.plan.method,
        "rows": len(scores),
        "labels": len(model),
        "calls": CALLS * rounds,
    }
    graph, table = folder / "overhead.graph.json", folder / "overhead.scores.bin"
    graph.write_text(case.graph.to_json(), encoding="utf-8")
    scores.tofile(table)
    command = [BINARY, "bench", "overhead", "--graph", graph, "--scores", table]
    pipe = subprocess.PIPE
    rust = (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        if BINARY.exists()
        else None
    )
    times: dict[str, list[list[float]]] = {"rust": [], "module": [], "model": [], "empty": []}
    missing = None
    try:
        for _ in range(rounds):
            if missing is None:
                missing = ask(rust, times["rust"], model.marginals(scores))
            times["module"].append(seconds(lambda: engine.marginals(scores), CALLS))
            times["model"].append(seconds(lambda: model.marginals(scores), CALLS))
            times["empty"].append(seconds(lambda: model.marginals(none), CALLS))
    finally:
        if rust is not None:
            rust.communicate()
    for name, found in times.items():
        if found:
            report[f"{name}_us"] = 1e6 * median([median(part) for part in found])
    if missing is None:
        # Of neighbours in time, then the median: what else runs on the machine weighs on both.
        ratios = [median(a) / median(b) for a, b in zip(times["model"], times["rust"], strict=True)]
        report["model_over_rust"] = median(ratios)
    else:
        report["rust_missing"] = missing
    report["threads"] = phex.threads()
    return report


def ask(
    rust: subprocess.Popen[str] | None, times: list[list[float]], marginals: np.ndarray
) -> str | None:
    """One round of Rust; says why there is none."""
    line = ""
    if rust is not None:
        try:
            rust.stdin.write(f"{CALLS}\n")
            rust.stdin.flush()
            line = rust.stdout.readline()
        except BrokenPipeError:
            # It has ended: an older one, which does not know the command.
            line = ""
    if not line:
        return "`lab bench overhead` did not answer; `cargo build --release -p lab` makes it"
    answer = json.loads(line)
    if answer["first_row"] != [float(value) for value in marginals[0]]:
        raise AssertionError("Rust and Python answer differently")
    times.append(answer["seconds"])
    return None
