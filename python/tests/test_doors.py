"""The command line, scikit-learn and PyTorch learn the same from the data of the demo.

CI runs the demo before the tests and names its folder in `PHEX_DEMO`, so that it trains once.
"""

from __future__ import annotations

import os
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

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from phex.sklearn import RelationClassifier  # noqa: E402
from phex.torch import LeafBatchSampler, RelationHead, RelationLayer, RelationLoss  # noqa: E402


def run(folder: Path, *arguments: str) -> None:
    subprocess.run([command_line(), *arguments], check=True, capture_output=True, cwd=folder)


def by_pytorch(graph: phex.Graph, x: Any, labels: list[str], test: Any) -> np.ndarray:
    """A linear head with the loop of docs/how-to/pytorch.md, and the recipe's learning rate."""
    torch.manual_seed(0)
    targets = torch.full((len(x), len(graph)), -1)
    targets[torch.arange(len(x)), torch.tensor([graph.index(label) for label in labels])] = 1
    head, loss = RelationHead(x.shape[1], graph), RelationLoss(graph)
    epochs, rate = 20, 1e-3 * (256 / x.shape[1]) ** 0.5
    optimiser = torch.optim.AdamW(head.parameters(), lr=rate)
    batches = LeafBatchSampler(targets, 64, graph=graph)
    loader = DataLoader(TensorDataset(x, targets), batch_sampler=batches)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for inputs, known in loader:
            optimiser.zero_grad()
            loss(head(inputs), known).backward()
            optimiser.step()
        schedule.step()
    with torch.no_grad():
        return RelationLayer(graph)(head(test)).numpy()


def test_every_door_learns_the_same_from_the_data_of_the_demo(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    if done := os.environ.get("PHEX_DEMO"):
        shutil.copytree(done, folder)
    else:
        run(tmp_path, "demo", "--out", "demo")
    # As in the README.
    run(folder, "train", "animals.toml", "--data", "train.csv", "--label-column", "is", "--out", "mine")
    run(folder, "predict", "mine", "--data", "test.csv", "--out", "p.csv")
    graph = phex.Graph.load(folder / "animals.toml")
    train, test = (pandas.read_csv(folder / f"{name}.csv") for name in ("train", "test"))
    x, labels = train.drop(columns="is"), list(train["is"])
    unseen, truth = test.drop(columns="is"), np.array(test["is"])
    assert 0.04 < np.isin(labels, graph.leaves).mean() < 0.06, "few rows name the animal"

    mean, deviation = x.mean(), x.std(ddof=0)
    standard = [
        torch.tensor(((part - mean) / deviation).to_numpy(), dtype=torch.float32) for part in (x, unseen)
    ]
    classifier = RelationClassifier(graph, random_state=0).fit(x, labels)
    found = {
        "command line": pandas.read_csv(folder / "p.csv")[graph.labels].to_numpy(),
        "scikit-learn": classifier.predict_marginals(unseen),
        "PyTorch": by_pytorch(graph, standard[0], labels, standard[1]),
    }
    leaves = [graph.index(leaf) for leaf in graph.leaves]
    right = {}
    for door, p in found.items():
        assert np.allclose(p[:, leaves].sum(axis=1), 1.0, atol=1e-4), door
        right[door] = float((np.array(graph.leaves)[p[:, leaves].argmax(axis=1)] == truth).mean())
    # The standard error of a difference is at most 0.015, and each door draws its own validation rows.
    assert max(right.values()) - min(right.values()) < 0.045, right
    assert min(right.values()) > 0.55, right
