"""Trains the classifiers of `lab experiment reconcile` and writes their logits of unseen rows.

Training rows are split by the seed: 65 % train, 15 % choose the L2 strength and the epoch, and 20 % are
held out to fit the parameters of reconciling. Test rows are those of the data set. Heads do not know the
relations:

- `lr`: independent logistic regressions, or one softmax regression per level;
- `mlp`: one hidden layer of 128 units with dropout, and a sigmoid per label.

It writes `labels.txt`, `edges.tsv` (parent, child), and for the held-out rows (`fit`) and the test rows
the logits and truths as npy, one column per label. For softmax heads, a logit is that of a probability.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
HELD_OUT, VALIDATION = 0.2, 0.15
EPOCHS, PATIENCE, BATCH = 150, 6, 128
CLIP = 14.0


@dataclass
class DataSet:
    """Features and labels of training and test rows."""

    labels: list[str]
    edges: list[tuple[str, str]]
    features: Float32
    truths: NDArray[np.uint8]
    test_features: Float32
    test_truths: NDArray[np.uint8]
    heads: list[NDArray[np.intp]]
    """The columns of each softmax head; empty for sigmoids."""


def read_arff(path: Path) -> tuple[list[tuple[str, str]], list[str], list[list[str]], list[str]]:
    """The types of features, the entries of the class hierarchy, the rows, and their classes."""
    kinds: list[tuple[str, str]] = []
    hierarchy: list[str] = []
    rows: list[list[str]] = []
    classes: list[str] = []
    in_data = False
    for line in path.read_text().splitlines():
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if in_data:
            *values, last = text.split(",")
            rows.append([value.strip() for value in values])
            classes.append(last.strip())
        elif text.lower().startswith("@data"):
            in_data = True
        elif text.lower().startswith("@attribute"):
            _, name, kind = text.split(None, 2)
            if kind.lower().startswith("hierarchical"):
                hierarchy = [entry.strip() for entry in kind.split(None, 1)[1].split(",")]
            else:
                kinds.append((name, kind))
    return kinds, hierarchy, rows, classes


def numbers(kinds: list[tuple[str, str]], rows: list[list[str]]) -> Float32:
    """Numeric features, and one column per category of the others. A missing number is NaN."""
    columns: list[Float32] = []
    for at, (_, kind) in enumerate(kinds):
        values = [row[at] for row in rows]
        if kind.startswith("{"):
            names = [name.strip() for name in kind.strip("{}").split(",")]
            columns += [np.array([value == name for value in values], np.float32) for name in names]
        else:
            columns.append(
                np.array([np.nan if value == "?" else float(value) for value in values], np.float32)
            )
    return np.stack(columns, axis=1)


def hmc(folder: Path, name: str) -> DataSet:
    """A hierarchical multi-label set: a tree of paths, or edges of the Gene Ontology."""
    ontology = name.endswith("_GO")
    inside = folder / "hmc" / name
    if inside.is_dir():
        training = [inside / f"{name}.train.arff", inside / f"{name}.valid.arff"]
        test = inside / f"{name}.test.arff"
    else:
        small = (folder / "hmc" / f"{name}_train.arff").exists()
        training = [folder / "hmc" / f"{name}_{'train' if small else 'Train'}.arff"]
        test = folder / "hmc" / f"{name}_{'test' if small else 'Test'}.arff"
    parts = [read_arff(path) for path in [*training, test]]
    kinds, hierarchy = parts[0][0], parts[0][1]
    edges: list[tuple[str, str]] = []
    names: dict[str, int] = {}
    parents: dict[str, set[str]] = {}

    def add(label: str) -> None:
        names.setdefault(label, len(names))
        parents.setdefault(label, set())

    for entry in hierarchy:
        if ontology:
            parent, child = entry.split("/")
            add(child)
            if parent != "root":
                add(parent)
                edges.append((parent, child))
                parents[child].add(parent)
        else:
            steps = entry.split("/")
            for depth in range(1, len(steps) + 1):
                label = "/".join(steps[:depth])
                if label not in names:
                    add(label)
                    if depth > 1:
                        parent = "/".join(steps[: depth - 1])
                        edges.append((parent, label))
                        parents[label].add(parent)

    def truths(classes: list[str]) -> NDArray[np.uint8]:
        found = np.zeros((len(classes), len(names)), np.uint8)
        for row, text in enumerate(classes):
            agenda = text.split("@")
            while agenda:
                label = agenda.pop()
                if label in names and not found[row, names[label]]:
                    found[row, names[label]] = 1
                    agenda += parents[label]
        return found

    count = len(training)
    return DataSet(
        list(names),
        edges,
        np.concatenate([numbers(kinds, part[2]) for part in parts[:count]]),
        np.concatenate([truths(part[3]) for part in parts[:count]]),
        numbers(kinds, parts[-1][2]),
        truths(parts[-1][3]),
        [],
    )


KINDS: dict[str, Callable[[int], bool]] = {
    "even": lambda digit: digit % 2 == 0,
    "prime": lambda digit: digit in (2, 3, 5, 7),
    "below five": lambda digit: digit < 5,
    "has a loop": lambda digit: digit in (0, 6, 8, 9),
}


def digits(_: Path, __: str) -> DataSet:
    """Handwritten digits with kinds of digits above them: exactly one digit is on."""
    from sklearn.datasets import load_digits

    loaded: Any = load_digits()
    x, y = loaded.data.astype(np.float32), loaded.target
    labels = [*KINDS, *(str(digit) for digit in range(10))]
    edges = [(kind, str(digit)) for kind, holds in KINDS.items() for digit in range(10) if holds(digit)]
    truths = np.array(
        [
            [holds(digit) for holds in KINDS.values()] + [digit == other for other in range(10)]
            for digit in y.tolist()
        ],
        np.uint8,
    )
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:600], order[600:]
    return DataSet(labels, edges, x[train], truths[train], x[test], truths[test], [])


def cifar(folder: Path, name: str) -> DataSet:
    """CIFAR-100 features with a fine and a coarse softmax head; the name ends in the number of rows."""
    inside = folder / "cifar100"
    lines = (inside / "labels.txt").read_text().splitlines()
    fields = [line.split() for line in lines if line[:1].isdigit()]
    coarse_of = np.array([int(field[2]) for field in fields])
    coarse_names = {int(field[2]): f"{field[3]}*" for field in fields}
    labels = [coarse_names[at] for at in range(20)] + [field[1] for field in fields]
    edges = [(f"{field[3]}*", field[1]) for field in fields]

    def load(part: str) -> tuple[Float32, NDArray[np.uint8]]:
        x = np.load(inside / f"features_effnet_lite0_pca256_f16_{part}.npy").astype(np.float32)
        y = np.load(inside / f"labels_fine_{part}_uint8.npy").astype(int)
        truths = np.zeros((len(y), 120), np.uint8)
        truths[np.arange(len(y)), coarse_of[y]] = 1
        truths[np.arange(len(y)), 20 + y] = 1
        return x, truths

    (x, truths), (test_x, test_truths) = load("train"), load("test")
    rows = int(name.rsplit("-", 1)[1])
    # The held-out rows come on top.
    order = np.random.default_rng(0).permutation(len(x))[: int(rows / (1 - HELD_OUT))]
    heads = [np.arange(20), np.arange(20, 120)]
    return DataSet(labels, edges, x[order], truths[order], test_x, test_truths, heads)


def standardised(train: Float32, *others: Float32) -> list[torch.Tensor]:
    """Features with mean 0 and deviation 1 on the training rows, clipped to ±5; missing ones are 0."""
    mean = np.nan_to_num(np.nanmean(train, axis=0))
    spread = np.nan_to_num(np.nanstd(train, axis=0))
    spread[spread < 1e-6] = 1.0
    return [
        torch.from_numpy(np.clip(np.nan_to_num((x - mean) / spread), -5, 5)) for x in (train, *others)
    ]


def loss_of(logits: torch.Tensor, truths: torch.Tensor, softmax: bool) -> torch.Tensor:
    """The mean loss per row."""
    if softmax:
        return torch.nn.functional.cross_entropy(logits, truths.argmax(dim=1))
    return (
        torch.nn.functional.binary_cross_entropy_with_logits(logits, truths, reduction="none")
        .sum(dim=1)
        .mean()
    )


def train(
    x: list[torch.Tensor], y: list[torch.Tensor], hidden: int, decay: float, softmax: bool, seed: int
) -> tuple[float, torch.nn.Module]:
    """The weights of the best epoch on validation rows, and its loss."""
    torch.manual_seed(seed)
    inputs, outputs = x[0].shape[1], y[0].shape[1]
    last = torch.nn.Linear(hidden or inputs, outputs)
    model: torch.nn.Module = last
    if hidden:
        model = torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Dropout(0.3), last
        )
    share = y[0].float().mean(dim=0).clamp(1e-3, 1 - 1e-3)
    with torch.no_grad():
        if not hidden:
            last.weight.zero_()
        last.bias.copy_(share.log() if softmax else torch.logit(share))
    slow = [p for name, p in model.named_parameters() if name.endswith("weight")]
    free = [p for name, p in model.named_parameters() if name.endswith("bias")]
    groups = [{"params": slow, "weight_decay": decay}, {"params": free, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=1e-3 if hidden else 3e-3)
    generator = torch.Generator().manual_seed(seed)
    best, state, waited = float("inf"), model.state_dict(), 0
    for _ in range(EPOCHS):
        model.train()
        for rows in torch.randperm(len(x[0]), generator=generator).split(BATCH):
            optimiser.zero_grad()
            loss_of(model(x[0][rows]), y[0][rows].float(), softmax).backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            found = float(loss_of(model(x[1]), y[1].float(), softmax))
        if found < best:
            best, waited = found, 0
            state = {name: value.clone() for name, value in model.state_dict().items()}
        else:
            waited += 1
            if waited > PATIENCE:
                break
    model.load_state_dict(state)
    model.eval()
    return best, model


def answers(
    x: list[torch.Tensor], y: list[torch.Tensor], kind: str, softmax: bool, seed: int
) -> list[Float32]:
    """The logits of held-out and test rows, by the head that is best on validation rows."""
    hidden = 128 if kind == "mlp" else 0
    decays = [1e-2] if hidden else [0.03, 0.3]
    _, model = min(
        (train(x[:2], y, hidden, decay, softmax, seed) for decay in decays), key=lambda found: found[0]
    )
    with torch.no_grad():
        found = [model(rows) for rows in x[2:]]
    if softmax:
        logs = [torch.log_softmax(rows.double(), dim=1) for rows in found]
        found = [rows - torch.log(-torch.expm1(rows).clamp(max=-1e-12)) for rows in logs]
    return [rows.clamp(-CLIP, CLIP).float().numpy() for rows in found]


def run(name: str, kind: str, seed: int, data: Path, out: Path) -> None:
    """Trains, and writes the files of a run; `labels.txt` is written last."""
    read = digits if name == "digits" else cifar if name.startswith("cifar") else hmc
    found = read(data, name)
    rows = np.random.default_rng(seed).permutation(len(found.features))
    held = int(len(rows) * HELD_OUT)
    validation = int(len(rows) * VALIDATION)
    parts = [rows[held + validation :], rows[held : held + validation], rows[:held]]
    x = standardised(*(found.features[part] for part in parts), found.test_features)
    columns = found.heads or [np.arange(len(found.labels))]
    pieces = []
    for head in columns:
        y = [torch.from_numpy(found.truths[part][:, head]) for part in parts[:2]]
        pieces.append(answers(x, y, kind, bool(found.heads), seed))
    logits = [np.concatenate(list(side), axis=1) for side in zip(*pieces, strict=True)]
    out.mkdir(parents=True, exist_ok=True)
    for side, values, truths in zip(
        ("fit", "test"), logits, (found.truths[parts[2]], found.test_truths), strict=True
    ):
        np.save(out / f"{side}_logits.npy", values)
        np.save(out / f"{side}_truths.npy", truths.astype(np.int8))
    (out / "edges.tsv").write_text("".join(f"{parent}\t{child}\n" for parent, child in found.edges))
    unfinished = out / "labels.unfinished"
    unfinished.write_text("".join(f"{label}\n" for label in found.labels))
    os.replace(unfinished, out / "labels.txt")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--set", required=True, help="the data set: a folder of hmc, digits, or cifar100-ROWS"
    )
    parser.add_argument("--model", choices=["lr", "mlp"], required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the files of this run")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    run(chosen.set, chosen.model, chosen.seed, chosen.data, chosen.out)


if __name__ == "__main__":
    main()
