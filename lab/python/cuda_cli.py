"""`phex infer --device cuda` against the CPU on small graphs: `python cuda_cli.py PHEX`."""

from __future__ import annotations

import csv
import random
import subprocess
import sys
import tempfile
from pathlib import Path

TREE = """
exclude = "siblings"
[[hierarchy]]
parent = "animal"
children = ["mammal", "bird", "fish"]
{soft}
[[hierarchy]]
parent = "mammal"
children = ["dog", "cat", "antelope", "whale"]
[[hierarchy]]
parent = "dog"
children = ["husky", "poodle"]
{soft}
[[hierarchy]]
parent = "bird"
children = ["penguin", "eagle"]
"""
LABELS = ["animal", "mammal", "bird", "fish", "dog", "cat"]
LABELS += ["antelope", "whale", "husky", "poodle", "penguin", "eagle"]
DAG = """
[[hierarchy]]
parent = "pet"
children = ["dog", "cat"]
strength = { u = 0.2 }
"""
TASKS = [
    ("soft", ["--method", "family"]),
    ("hard", ["--method", "family"]),
    ("hard", ["--method", "states"]),
    ("dag", ["--method", "blocks"]),
    ("soft", ["--method", "lbp", "--schedule", "flooding"]),
    ("dag", ["--method", "lbp", "--schedule", "flooding"]),
]
TOLERANCE = 1e-6


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def main(phex: str) -> int:
    """Prints the largest difference of each task; 1 where one is too large."""
    soft = TREE.format(soft="strength = { u = 0.4 }")
    graphs = {"soft": soft, "hard": TREE.format(soft=""), "dag": soft + DAG}
    generator = random.Random(1)
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for graph, text in graphs.items():
            labels = LABELS + (["pet"] if graph == "dag" else [])
            (folder / f"{graph}.toml").write_text(text)
            rows = [[f"{generator.gauss(0, 2):.4f}" for _ in labels] for _ in range(200)]
            lines = [",".join(row) for row in [labels, *rows]]
            (folder / f"{graph}.csv").write_text("\n".join(lines) + "\n")
        for graph, options in TASKS:
            answers = []
            for device in ("cpu", "cuda"):
                out = folder / f"{device}.csv"
                command = [phex, "infer", f"{folder}/{graph}.toml", "--scores", f"{folder}/{graph}.csv"]
                command += ["-o", str(out), "--device", device, *options]
                subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
                answers.append(read(out))
            pairs = zip(answers[0][1:], answers[1][1:], strict=True)
            cells = [(float(a), float(b)) for x, y in pairs for a, b in zip(x, y, strict=True)]
            worst = max(abs(a - b) for a, b in cells)
            failed |= not worst <= TOLERANCE
            task = " ".join([graph, *options])
            print(f"{task:40} {len(cells)} numbers, largest difference {worst:.1e}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
