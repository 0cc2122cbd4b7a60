"""What `phex train` makes of the same rows with two graphs, and what it says about itself.

`python lab/python/two_graphs.py PHEX [DATA]`: 20 roots of CIFAR-100, of which nothing says that they
exclude each other (`exclude = "siblings"`), or with `single_label = true`. Features of 10,000 rows, 100
per class, of which 90 are labelled with the parent; a tenth of the rows for validation. Means of three
draws.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from defaults import COARSE, SEEDS, Draw, cifar

WORDS = {"siblings": 'exclude = "siblings"', "single_label": "single_label = true"}


def write(folder: Path, draw: Draw) -> None:
    features, target = draw.train
    labels = target.astype(object)
    for name in np.unique(target):
        rows = np.flatnonzero(target == name)
        labels[rows[round((1 - COARSE) * len(rows)) :]] = draw.parent[name]
    np.save(folder / "x.npy", features)
    np.save(folder / "test.npy", draw.test[0])
    (folder / "y.txt").write_text("\n".join(labels) + "\n")
    (folder / "truth.txt").write_text("\n".join(draw.test[1]) + "\n")
    families: dict[str, list[str]] = {}
    for child, parent in draw.parent.items():
        families.setdefault(parent, []).append(child)
    text = "".join(
        f"[[hierarchy]]\nparent = {json.dumps(parent)}\nchildren = {json.dumps(children)}\n"
        for parent, children in families.items()
    )
    for name, word in WORDS.items():
        (folder / f"{name}.toml").write_text(f"{word}\n{text}")


def phex(command: str, folder: Path, *arguments: str) -> dict[str, Any]:
    labels = ["--label-format", "name", "--json"]
    run = subprocess.run(
        [command, *arguments, *labels], check=False, capture_output=True, text=True, cwd=folder
    )
    if run.returncode:
        sys.exit(run.stderr)
    return dict(json.loads(run.stdout))


def measure(command: str, folder: Path, graph: str) -> tuple[list[float], str]:
    data = ["--data", "x.npy", "--label-file", "y.txt", "--validation-fraction", "0.1"]
    record = phex(command, folder, "train", f"{graph}.toml", *data, "--out", graph)
    test = ["--data", "test.npy", "--label-file", "truth.txt", "--top", "1"]
    found = phex(command, folder, "eval", graph, *test)
    last, again = ("worse" in (said.get("verdict") or "") for said in (record, found))
    assert last == again, "eval says the same as train"
    validation, (sums, _) = record["validation"], record["comparison"]["baselines"]
    numbers = [
        validation["average_precision"]["micro"],
        validation["f1"]["micro"],
        record["comparison"]["model"]["accuracy"],
        sums["accuracy"],
        found["classes"]["top"][0]["accuracy"],
    ]
    return numbers, "worse" if last else ""


def main() -> None:
    command = str(Path(sys.argv[1]).resolve())
    data = Path(sys.argv[2] if len(sys.argv) > 2 else "../shared/data")
    found: dict[str, list[list[float]]] = {name: [] for name in WORDS}
    said: dict[str, list[str]] = {name: [] for name in WORDS}
    # The draws of the other table are 0 to 2.
    for seed in range(SEEDS, 2 * SEEDS):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, cifar(data, seed))
            for graph in WORDS:
                numbers, verdict = measure(command, folder, graph)
                found[graph].append(numbers)
                said[graph].append(verdict)
    print(
        "| graph | AU(PRC) | F1 | accuracy | of sums of leaves | says that it is worse | test top-1, % |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for graph, draws in found.items():
        precision, f1, accuracy, sums, _ = np.mean(draws, axis=0)
        warned = f"{said[graph].count('worse')} of {SEEDS}"
        cells = f"{precision:.3f} | {f1:.3f} | {accuracy:.3f} | {sums:.3f} | {warned}"
        tops = [100 * draw[-1] for draw in draws]
        each = ", ".join(f"{top:.1f}" for top in tops)
        print(f"| `{WORDS[graph]}` | {cells} | **{np.mean(tops):.1f}** ({each}) |")


if __name__ == "__main__":
    main()
