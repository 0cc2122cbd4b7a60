"""The README's training, run as written, learns the same by every door from the data of the demo.

CI runs the demo before the tests and names its folder in `PHEX_DEMO`, so that it trains once.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import command_line

import phex

pandas = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
torch = pytest.importorskip("torch")

from phex.torch import RelationLayer  # noqa: E402

README = Path(__file__).resolve().parents[2] / "README.md"


def block(language: str, word: str) -> str:
    """The block of the README's code in this language that has this word."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [text for text in blocks if word in text]
    return str(found)


def run(folder: Path, *arguments: str) -> None:
    subprocess.run([command_line(), *arguments], check=True, capture_output=True, cwd=folder)


def in_python(graph: phex.Graph, X: Any, y: list[str]) -> dict[str, Any]:
    """What the README's Python makes of other rows than its own three."""
    text, replaced = re.subn(
        r"^X, y = .*$", "", block("python", "RelationClassifier"), flags=re.MULTILINE
    )
    assert replaced == 1
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 (the classifier draws its seed there)
    names = {"graph": graph, "X": X, "y": y}
    exec(compile(text, str(README), "exec"), names)
    return names


def test_every_door_learns_the_same_from_the_data_of_the_demo(tmp_path: Path) -> None:
    folder = tmp_path / "phex-demo"
    if done := os.environ.get("PHEX_DEMO"):
        shutil.copytree(done, folder)
    else:
        run(tmp_path, "demo")
    # `new.csv` has rows without labels.
    new = pandas.read_csv(folder / "test.csv").drop(columns="is")
    new.to_csv(folder / "new.csv", index=False)
    lines = block("sh", "phex train").splitlines()
    assert len(lines) == 3
    for line in lines:
        command, *arguments = shlex.split(line, comments=True)
        assert command == "phex"
        run(folder, *arguments)
    assert len((folder / "sets.csv").read_text().splitlines()) == 1 + len(new)
    run(folder, "predict", "model", "--data", "new.csv", "--out", "p.csv")
    graph = phex.Graph.load(folder / "animals.toml")
    train, test = (pandas.read_csv(folder / f"{name}.csv") for name in ("train", "test"))
    x, labels = train.drop(columns="is"), list(train["is"])
    unseen, truth = test.drop(columns="is"), np.array(test["is"])
    assert 0.04 < np.isin(labels, graph.leaves).mean() < 0.06, "few rows name the animal"

    mean, deviation = x.mean(), x.std(ddof=0)
    standard = [((part - mean) / deviation).to_numpy() for part in (x, unseen)]
    readme = in_python(graph, standard[0], labels)
    with torch.no_grad():
        by_pytorch = RelationLayer(graph)(readme["network"](torch.tensor(standard[1]).float())).numpy()
    found = {
        "command line": pandas.read_csv(folder / "p.csv")[graph.labels].to_numpy(),
        "scikit-learn": readme["classifier"].predict_marginals(standard[1]),
        "PyTorch": by_pytorch,
    }
    leaves = [graph.index(leaf) for leaf in graph.leaves]
    right = {}
    for door, p in found.items():
        assert np.allclose(p[:, leaves].sum(axis=1), 1.0, atol=1e-4), door
        right[door] = float((np.array(graph.leaves)[p[:, leaves].argmax(axis=1)] == truth).mean())
    # The standard error of a difference is at most 0.015, and each door draws its own validation rows.
    assert max(right.values()) - min(right.values()) < 0.045, right
    assert min(right.values()) > 0.55, right
