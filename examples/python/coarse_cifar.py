"""Fine classes from coarse labels: CIFAR-100 with nine rows in ten relabelled to their superclass.

    python examples/python/coarse_cifar.py --seeds 3 --out coarse_cifar.json

A network with one hidden layer learns 100 fine classes under 20 coarse ones from features of the images.
One training row in ten has its fine class; the others only say that an orchid is a flower. Three methods
train the same network from the same weights, with the same optimiser and the same number of steps:

- cross-entropy on the fine rows, because it cannot use the others;
- cross-entropy on all rows, where the probability of a coarse class is the sum over its fine ones;
- `RelationLoss` on all rows: each fine class is below its coarse one, and one class of each level is on.

A tenth of the fine rows is held out. Every run keeps the epoch that names most of them correctly.

A coarse row does not say which of its fine classes is right. With random weights, coarse rows would
confirm whichever fine class happens to be ahead, and the few fine rows would have to undo that. So the
last layer starts at zero: coarse rows raise all of their fine classes equally until a fine row tells
them apart. With one fine row in ten, both starts learn equally well. With one in a hundred (`--fraction
0.99`, with and without `--start random`), zero is far better.

If each row has one class, sums over fine classes are the same model as these relations, and do as well.
A graph does the same for any relations and any known labels.

The features are not part of this project. They are read from the folder `cifar100` in `PHEX_DATA`, or in
`shared/data` beside the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import phex
from phex.torch import RelationLayer, RelationLoss

METHODS = ("cross-entropy, fine rows", "cross-entropy, sums over all rows", "relations, all rows")


@dataclass
class Data:
    """Rows of features with the fine class of each, and how classes are named."""

    train: Tensor
    train_fine: Tensor
    test: Tensor
    test_fine: Tensor
    fine: list[str]
    coarse: list[str]
    coarse_of: Tensor
    """The coarse class of each fine one."""


def data_folder() -> Path:
    """The folder of the features, which may not exist."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("PHEX_DATA", beside)) / "cifar100"


def load(folder: Path) -> Data:
    """Reads the features, standardised by the training rows."""

    def features(part: str) -> Tensor:
        table = np.load(folder / f"features_effnet_lite0_pca256_f16_{part}.npy")
        return torch.from_numpy(table.astype(np.float32))

    def classes(part: str) -> Tensor:
        return torch.from_numpy(np.load(folder / f"labels_fine_{part}_uint8.npy").astype(np.int64))

    lines = (folder / "labels.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and line[0].isdigit()]
    fine = {int(row[0]): (row[1], int(row[2])) for row in rows}
    coarse = {int(row[2]): row[3] for row in rows}
    train, test = features("train"), features("test")
    mean, deviation = train.mean(0), train.std()
    return Data(
        train=(train - mean) / deviation,
        train_fine=classes("train"),
        test=(test - mean) / deviation,
        test_fine=classes("test"),
        fine=[fine[at][0] for at in range(len(fine))],
        coarse=[coarse[at] for at in range(len(coarse))],
        coarse_of=torch.tensor([fine[at][1] for at in range(len(fine))]),
    )


def relations(data: Data) -> phex.Graph:
    """Coarse classes, then fine ones. One of each is on, and a fine class implies its coarse one."""
    builder = phex.GraphBuilder()
    # A name may stand on both levels.
    coarse = [f"any {name}" for name in data.coarse]
    for name in (*coarse, *data.fine):
        builder.label(name)
    for name, above in zip(data.fine, data.coarse_of.tolist(), strict=True):
        builder.hierarchy(coarse[above], name)
    return builder.one_of("coarse", coarse).one_of("fine", data.fine).build()


def network(inputs: int, outputs: int, settings: argparse.Namespace) -> nn.Sequential:
    """One hidden layer. The last layer starts at zero unless `--start random` is given."""
    last = nn.Linear(settings.hidden, outputs)
    if settings.start == "zero":
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    return nn.Sequential(
        nn.Linear(inputs, settings.hidden), nn.ReLU(), nn.Dropout(settings.dropout), last
    )


class Task:
    """The rows of one seed: which have their fine class, and which are held out."""

    def __init__(self, data: Data, settings: argparse.Namespace, seed: int) -> None:
        self.data, self.settings, self.seed = data, settings, seed
        self.graph = relations(data)
        self.loss, self.layer = RelationLoss(self.graph), RelationLayer(self.graph)
        rows = len(data.train)
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
        fine = order[round(rows * settings.fraction) :]
        held = max(len(fine) // 10, 1)
        self.held, self.fine, self.coarse = fine[:held], fine[held:], order[: rows - len(fine)]
        self.is_fine = torch.zeros(rows, dtype=torch.bool)
        self.is_fine[self.fine] = True

    def targets(self, rows: Tensor) -> Tensor:
        """What is known of each label: 1 on, -1 unknown. The relations say the rest."""
        known = torch.full((len(rows), len(self.graph)), -1, dtype=torch.int8)
        above = self.data.coarse_of[self.data.train_fine[rows]]
        known[torch.arange(len(rows)), above] = 1
        fine = self.is_fine[rows].nonzero()[:, 0]
        known[fine, len(self.data.coarse) + self.data.train_fine[rows[fine]]] = 1
        return known

    def fine_loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Cross-entropy of fine classes."""
        return functional.cross_entropy(logits[:, len(self.data.coarse) :], self.data.train_fine[rows])

    def summed_loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Cross-entropy where a coarse row has the probability of all fine classes below its own."""
        logs = logits[:, len(self.data.coarse) :].log_softmax(-1)
        fine = self.data.train_fine[rows]
        below = self.data.coarse_of == self.data.coarse_of[fine][:, None]
        of_coarse = logs.masked_fill(~below, -torch.inf).logsumexp(-1)
        of_fine = logs.gather(-1, fine[:, None])[:, 0]
        return -torch.where(self.is_fine[rows], of_fine, of_coarse).mean()

    def relation_loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """`RelationLoss` of the same rows."""
        loss: Tensor = self.loss(logits, self.targets(rows))
        return loss

    def probabilities(self, logits: Tensor, method: str) -> tuple[Tensor, Tensor]:
        """The probabilities of coarse and of fine classes."""
        count = len(self.data.coarse)
        if method == METHODS[2]:
            both = self.layer(logits)
            return both[:, :count], both[:, count:]
        fine = logits[:, count:].softmax(-1)
        coarse = torch.zeros(len(fine), count).index_add_(1, self.data.coarse_of, fine)
        return coarse, fine

    def train(self, method: str) -> dict[str, float]:
        """Accuracies of one method on the test rows."""
        settings, data = self.settings, self.data
        losses: tuple[Callable[[Tensor, Tensor], Tensor], ...]
        losses = (self.fine_loss, self.summed_loss, self.relation_loss)
        loss = losses[METHODS.index(method)]
        pool = self.fine if method == METHODS[0] else torch.cat([self.fine, self.coarse])
        torch.manual_seed(self.seed)
        model = network(data.train.shape[1], len(self.graph), settings)
        steps = settings.epochs * (-(-len(data.train) // settings.batch))
        optimiser = torch.optim.AdamW(model.parameters(), settings.rate, weight_decay=settings.decay)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.rate, total_steps=steps)
        generator = torch.Generator().manual_seed(self.seed)
        start, queue = time.perf_counter(), torch.empty(0, dtype=torch.int64)
        best, kept = -1.0, model.state_dict()
        for step in range(1, steps + 1):
            while len(queue) < settings.batch:
                queue = torch.cat([queue, pool[torch.randperm(len(pool), generator=generator)]])
            rows, queue = queue[: settings.batch], queue[settings.batch :]
            optimiser.zero_grad()
            loss(model(data.train[rows]), rows).backward()
            optimiser.step()
            schedule.step()
            if step * settings.epochs % steps < settings.epochs:
                _, held = self.accuracies(
                    model, method, data.train[self.held], data.train_fine[self.held]
                )
                if held >= best:
                    best = held
                    kept = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(kept)
        coarse, fine = self.accuracies(model, method, data.test, data.test_fine)
        return {"fine": fine, "coarse": coarse, "seconds": time.perf_counter() - start}

    @torch.no_grad()
    def accuracies(
        self, model: nn.Module, method: str, features: Tensor, fine: Tensor
    ) -> tuple[float, float]:
        """The percentages of rows whose coarse class and whose fine class are named correctly."""
        model.eval()
        by_coarse, by_fine = self.probabilities(model(features), method)
        model.train()
        is_coarse = by_coarse.argmax(-1) == self.data.coarse_of[fine]
        is_fine = by_fine.argmax(-1) == fine
        return 100.0 * is_coarse.float().mean().item(), 100.0 * is_fine.float().mean().item()


def arguments(values: list[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12, help="as many steps as passes over all rows")
    parser.add_argument("--hidden", type=int, default=512, help="units of the hidden layer")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each method")
    parser.add_argument("--threads", type=int, help="of PyTorch and of phex")
    parser.add_argument("--fraction", type=float, default=0.9, help="of the rows that are relabelled")
    parser.add_argument("--start", choices=("zero", "random"), default="zero", help="of the last layer")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--decay", type=float, default=0.01)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    return parser.parse_args(values)


def compare(data: Data, settings: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Every method with every seed."""
    results: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
    for seed in range(1, settings.seeds + 1):
        task = Task(data, settings, seed)
        for method in METHODS:
            result = task.train(method)
            results[method].append({"seed": seed, **result})
            print(
                f"seed {seed}  {method:<36}{result['fine']:>6.2f} %{result['seconds']:>8.1f} s",
                flush=True,
            )
    return results


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """Means and deviations over seeds."""

    def cell(runs: list[dict[str, float]], key: str) -> str:
        values = np.array([run[key] for run in runs])
        return f"{values.mean():.2f} ± {values.std(ddof=min(1, len(values) - 1)):.2f}"

    lines = [f"{'accuracy on the test rows, %':<36}{'fine':>14}{'coarse':>14}{'seconds':>10}"]
    for method, runs in results.items():
        seconds = np.mean([run["seconds"] for run in runs])
        lines.append(f"{method:<36}{cell(runs, 'fine'):>14}{cell(runs, 'coarse'):>14}{seconds:>10.0f}")
    return "\n".join(lines)


def main() -> int:
    """Runs the comparison."""
    settings = arguments()
    folder = data_folder()
    if not folder.is_dir():
        print(
            f"there are no CIFAR-100 features at {folder}: set PHEX_DATA to the folder above `cifar100`"
        )
        return 1
    if settings.threads:
        torch.set_num_threads(settings.threads)
        phex.set_threads(settings.threads)
    data = load(folder)
    plan = RelationLoss(relations(data)).model().plan
    print(f"{len(data.train)} rows, {settings.fraction:.0%} with their coarse class only; {plan.why}")
    results = compare(data, settings)
    print(table(results))
    if settings.out:
        given = {name: value for name, value in vars(settings).items() if name != "out"}
        text = json.dumps({"settings": given, "runs": results}, indent=2)
        settings.out.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
