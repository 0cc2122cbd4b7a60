"""The stubs say what was compiled, and what users write passes `mypy --strict`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

GOOD = """
import numpy as np
from numpy.typing import NDArray

import phex

builder = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"], "u=0.5").exclude("siblings")
graph: phex.Graph = builder.build()
model: phex.Model = graph.compile("auto", operations=1e9)
scores: NDArray[np.float32] = np.zeros((2, 3), dtype=np.float32)
posterior: phex.Posterior = model.infer(scores, {"dog": True}, entropy=True)
probable: list[phex.LabelSets] = model.top_k(scores, k=2)
costs: list[float] = [strength.cost for _, _, strength in graph.hierarchy]
first: str | None = graph.check().findings[0].file if len(graph.check()) else None
losses, gradient = model.loss_and_grad(scores, [[1, 0, -1], [0, 0, 0]])
try:
    phex.load("graph.toml", labels="labels.txt")
except phex.GraphError as error:
    kinds: list[str] = [finding.kind for finding in error.report.findings]
"""

BAD = """
import phex

phex.GraphBuilder().hierarchy("animal", 3)
phex.GraphBuilder().build().labels.upper()
phex.set_threads("two")
phex.Strength.w("2")
"""


def mypy(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "snippet.py"
    path.write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder), str(path)]
    # In another folder, so that the installed package is seen and not the configuration of this one.
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_the_stub_is_true() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "phex._core"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_good_code_passes(tmp_path: Path) -> None:
    run = mypy(GOOD, tmp_path)
    assert run.returncode == 0, run.stdout


def test_wrong_code_does_not(tmp_path: Path) -> None:
    run = mypy(BAD, tmp_path)
    lines = [line for line in run.stdout.splitlines() if "error:" in line]
    assert [int(line.split(":")[1]) for line in lines] == [4, 5, 6, 7], run.stdout
