"""What the defaults of training achieve, beside `LogisticRegression()`.

`python lab/python/defaults.py [DATA]`: accuracy in % and log-loss of the leaves on test rows. Image
features are those of CIFAR-100 and Tiny-ImageNet, 10,000 training rows drawn with three seeds. In the
coarse rows, nine in ten of each class have the parent in its place.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import phex
from phex.sklearn import RelationClassifier

ROWS = 10_000
COARSE = 0.9
SEEDS = 3


class Draw(NamedTuple):
    """Training rows of a seed, test rows, and the parent of each class where there is a taxonomy."""

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    parent: dict[str, str]
    graph: phex.Graph | None


def images(folder: Path, seed: int, test: str, edges: list[tuple[str, str]], names: list[str]) -> Draw:
    """As many rows of each class, in a random order."""
    stem = "features_effnet_lite0_pca256_f16"
    labels = "labels_fine_{}_uint8.npy" if (folder / "labels.txt").exists() else "labels_{}_uint8.npy"
    kinds = np.array(names)
    target = np.load(folder / labels.format("train"))
    rng = np.random.default_rng(seed)
    each = ROWS // len(names)
    chosen = [rng.choice(np.flatnonzero(target == at), each, replace=False) for at in range(len(names))]
    order = rng.permutation(np.concatenate(chosen))
    builder = phex.GraphBuilder()
    for parent, child in edges:
        builder.hierarchy(parent, child)
    return Draw(
        (np.load(folder / f"{stem}_train.npy")[order].astype(np.float32), kinds[target[order]]),
        (
            np.load(folder / f"{stem}_{test}.npy").astype(np.float32),
            kinds[np.load(folder / labels.format(test))],
        ),
        {child: parent for parent, child in reversed(edges)},
        builder.single_label().build(),
    )


def cifar(data: Path, seed: int) -> Draw:
    rows = [line.split() for line in (data / "cifar100" / "labels.txt").read_text().splitlines()]
    rows = [row for row in rows if len(row) >= 4 and row[0].isdigit()]
    edges = [(row[3], row[1]) for row in rows]
    return images(data / "cifar100", seed, "test", edges, [row[1] for row in rows])


def tiny(data: Path, seed: int) -> Draw:
    folder = data / "tiny_imagenet"
    with (folder / "hierarchy_edges.tsv").open(newline="") as file:
        edges = [(row[0], row[1]) for row in list(csv.reader(file, delimiter="\t"))[1:]]
    return images(folder, seed, "val", edges, (folder / "wnids_sorted.txt").read_text().split())


def table(load: Callable[..., Any]) -> Callable[[Path, int], Draw]:
    def draw(_: Path, seed: int) -> Draw:
        features, target = load(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(target))
        cut = len(target) * 7 // 10
        parts = [(features[part], target[part]) for part in (order[:cut], order[cut:])]
        return Draw(parts[0], parts[1], {}, None)

    return draw


def score(model: Any, test: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
    p = model.predict_proba(test[0])
    right = model.classes_[p.argmax(axis=1)] == test[1]
    return 100 * float(right.mean()), float(log_loss(test[1], p, labels=model.classes_))


def coarse(draw: Draw, seed: int) -> list[tuple[float, float]]:
    features, target = draw.train
    fine = np.zeros(len(target), dtype=bool)
    for name in np.unique(target):
        rows = np.flatnonzero(target == name)
        fine[rows[: round((1 - COARSE) * len(rows))]] = True
    known = np.where(fine, target, np.array([draw.parent[name] for name in target]))
    peer = LogisticRegression().fit(features[fine], target[fine])
    ours = RelationClassifier(draw.graph, random_state=seed).fit(features, known)
    unscaled = RelationClassifier(draw.graph, inner_scale=1.0, random_state=seed).fit(features, known)
    return [score(model, draw.test) for model in (peer, ours, unscaled)]


def fine(draw: Draw, seed: int) -> list[tuple[float, float]]:
    peer = LogisticRegression().fit(*draw.train)
    return [
        score(model, draw.test)
        for model in (peer, RelationClassifier(random_state=seed).fit(*draw.train))
    ]


def main() -> None:
    data = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    print("| rows | `LogisticRegression()` | `RelationClassifier` | inner scores unscaled |")
    print("|---|---:|---:|---:|")
    cases = [("CIFAR-100", cifar, coarse), ("CIFAR-100", cifar, fine)]
    cases += [("Tiny-ImageNet", tiny, coarse), ("Tiny-ImageNet", tiny, fine)]
    sets = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
    cases += [(name, table(load), fine) for name, load in {**sets, "digits": load_digits}.items()]
    for name, draw, way in cases:
        found = np.mean([way(draw(data, seed), seed) for seed in range(SEEDS)], axis=0)
        cells = [f"{right:.1f}, {loss:.2f}" for right, loss in found]
        cells += [""] * (3 - len(cells))
        kind = ", 90 % coarse" if way is coarse else ""
        print(f"| {name}{kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
