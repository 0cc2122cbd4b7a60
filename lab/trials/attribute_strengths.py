"""Ways to learn the strengths between classes and attributes, tried on unseen classes.

One of the classes is on. Attribute a costs w_a if it is off and the class has it, and also if it is on
and the class does not have it. Given the class the attributes are independent, so that with scores s

    log p(class) = Σ_a log(e^{s_a - on} + e^{-off}) + const.

A linear head gives the scores; it is trained on the class of each row. The prediction is the most
probable unseen class, and the result is the mean accuracy of these classes. Every line chooses its
learning rate, and one its u, on one fold of seen classes.

    python lab/trials/attribute_strengths.py --data DATA --set awa
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import softplus

BATCH, EPOCHS = 128, 2
ROWS = 200  # at most, per class
STARTS = 0.3  # u from which strengths are learned
CLASS_FOLDS = 4
APY_NOISE = 0.84  # each attribute then has an area of 0.8 under the ROC curve

# The costs of an attribute that is on, and off: classes x attributes.
Costs = tuple[torch.Tensor, torch.Tensor]


@dataclass
class Source:
    """Rows, their classes, graded predicates, and the unseen classes of each fold."""

    x: np.ndarray
    y: np.ndarray
    graded: np.ndarray
    threshold: float
    folds: list[np.ndarray]
    others: list[list[np.ndarray]]

    @property
    def has(self) -> torch.Tensor:
        return torch.tensor(self.graded > self.threshold, dtype=torch.float32)


def load(name: str, folder: Path, rng: np.random.Generator) -> Source:
    folder = folder / name
    if name == "apy":
        names = (folder / "class_names.txt").read_text().split()
        lines = [
            line.split()
            for file in ("apascal_train", "apascal_test", "ayahoo_test")
            for line in (folder / f"{file}.txt").read_text().splitlines()
        ]
        y = np.array([names.index(line[1]) for line in lines])
        x = np.array([line[6:] for line in lines], dtype=np.float32)
        graded = np.array([x[y == c].mean(0) for c in range(len(names))])
        order = rng.permutation(20)
        folds, others = [np.arange(20, 32)] * 5, [list(np.array_split(order, 5))] * 5
        return Source(x, y, graded, graded.mean(), folds, others)
    feature = {"awa": "features_hellinger_pca512_f16.npy", "cub": "features_effnet_lite0_1280_f16.npy"}
    x = np.load(folder / feature[name]).astype(np.float32)
    y = np.load(folder / "labels_uint8.npy").astype(int).ravel()
    table = {
        "awa": "predicate-matrix-continuous.txt",
        "cub": "class_attribute_labels_continuous.txt",
    }[name]
    graded = np.loadtxt(folder / table) / 100
    graded = np.where(graded < 0, graded[graded >= 0].mean(), graded)
    classes = len(graded)
    official: list[np.ndarray] = []
    if name == "awa":
        listed = [line.split()[-1] for line in (folder / "classes.txt").read_text().splitlines()]
        test = (folder / "testclasses.txt").read_text().split()
        official = [np.array([listed.index(one) for one in test])]
    free = rng.permutation([c for c in range(classes) if not any(c in fold for fold in official)])
    folds = official + list(np.array_split(free, 5 - len(official)))
    others = [[fold for at, fold in enumerate(folds) if at != test] for test in range(5)]
    return Source(x, y, graded, graded.mean(), folds, others)


def log_weights(s: torch.Tensor, costs: Costs) -> torch.Tensor:
    """Rows x classes, up to a constant of each row."""
    on, off = costs
    return (softplus(s[:, None] - on + off) - off).sum(2)


def tied(s: torch.Tensor, has: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The same for binary predicates and costs w: of the attributes that a class has, and has not."""
    with_it, without = softplus(s + w[0]) - w[0], softplus(s - w[1])
    return with_it @ has.T + without @ (1 - has).T


@dataclass
class Split:
    """Seen and unseen classes with their rows, scaled by those of the seen ones."""

    x: torch.Tensor
    y: torch.Tensor
    test_x: torch.Tensor
    test_y: torch.Tensor
    seen: np.ndarray
    unseen: np.ndarray
    has: torch.Tensor


def split(source: Source, seen: np.ndarray, unseen: np.ndarray, name: str, seed: int) -> Split:
    rng = np.random.default_rng(seed)
    x = source.x + APY_NOISE * rng.normal(size=source.x.shape) if name == "apy" else source.x
    rows = np.concatenate([rng.permutation(np.where(source.y == c)[0])[:ROWS] for c in seen])
    test = np.where(np.isin(source.y, unseen))[0]
    mean, deviation = x[rows].mean(0), x[rows].std(0)
    deviation = np.sqrt((deviation**2).mean()) if name == "awa" else np.maximum(deviation, 1e-6)

    def scaled(at: np.ndarray) -> torch.Tensor:
        return torch.tensor(
            np.hstack([(x[at] - mean) / deviation, np.ones((len(at), 1))]), dtype=torch.float32
        )

    y, test_y = torch.tensor(source.y[rows]), torch.tensor(source.y[test])
    return Split(scaled(rows), y, scaled(test), test_y, seen, unseen, source.has)


Weights = Callable[[torch.Tensor, np.ndarray], torch.Tensor]


def train(
    part: Split,
    weights: Weights,
    rate: float,
    rows: torch.Tensor | None = None,
    learned: torch.Tensor | None = None,
    classes: np.ndarray | None = None,
) -> torch.Tensor:
    """A head by Adam; `learned` strengths are changed with it."""
    torch.manual_seed(0)
    x, y = (part.x, part.y) if rows is None else (part.x[rows], part.y[rows])
    classes = np.concatenate([part.seen, part.unseen]) if classes is None else classes
    place = torch.full((len(part.has),), -1)
    place[torch.tensor(classes)] = torch.arange(len(classes))
    head = torch.zeros(x.shape[1], part.has.shape[1], requires_grad=True)
    size = torch.ones(x.shape[1], 1)
    size[-1] = (x.shape[1] - 1) ** 0.5
    optimiser = torch.optim.Adam([head], lr=rate)
    strengths = torch.optim.Adam([learned], lr=0.05, betas=(0.9, 0.99)) if learned is not None else None
    for step, batch in enumerate(
        batch for _ in range(EPOCHS) for batch in torch.randperm(len(x)).split(BATCH)
    ):
        log = weights(x[batch] @ (head * size), classes)
        loss = (log.logsumexp(1) - log[torch.arange(len(batch)), place[y[batch]]]).mean()
        optimiser.zero_grad()
        if learned is not None:
            learned.grad = None
        loss.backward()
        optimiser.step()
        if strengths is not None and learned is not None and step % 10 == 9:
            strengths.step()
            learned.data.clamp_(min=0)
    return (head * size).detach()


def held_out(
    part: Split, parts: list[tuple[torch.Tensor, torch.Tensor, np.ndarray]], form: str, given: float
) -> torch.Tensor:
    """Strengths by the likelihood of rows under heads that have not seen them.

    Each part is a head, rows, and the classes to choose from.
    """
    attributes = part.has.shape[1]
    shape = {"kind": (2, 1), "attribute": (1, attributes), "both": (2, attributes)}[form]
    factor = torch.ones(shape, requires_grad=True)
    optimiser = torch.optim.Adam([factor], lr=0.05)
    data = []
    for head, rows, classes in parts:
        place = torch.full((len(part.has),), -1)
        place[torch.tensor(classes)] = torch.arange(len(classes))
        data.append((part.x[rows] @ head, place[part.y[rows]], part.has[classes]))
    count = sum(len(y) for _, y, _ in data)
    random = torch.Generator().manual_seed(0)
    for step in range(200):
        for group in optimiser.param_groups:
            group["lr"] = 0.05 * (1 - step / 200)
        loss = torch.zeros(())
        for s, y, has in data:
            some = torch.randint(len(y), (max(1, 512 * len(y) // count),), generator=random)
            log = tied(s[some], has, (given * factor).expand(2, attributes))
            loss = loss + (log.logsumexp(1) - log[torch.arange(len(some)), y[some]]).sum() / 512
        loss = loss + 1e-3 * ((factor - 1) ** 2).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        factor.data.clamp_(min=0)
    return (given * factor.detach()).expand(2, attributes).clone()


def accuracy(part: Split, head: torch.Tensor, weights: Weights) -> float:
    log = torch.cat([weights(x @ head, part.unseen) for x in part.test_x.split(500)])
    right = torch.tensor(part.unseen)[log.argmax(1)] == part.test_y
    return 100 * float(np.mean([right[part.test_y == c].float().mean() for c in part.unseen]))


class Methods:
    """How each line of the table is trained: its accuracy on the unseen classes of a split."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.graded = torch.tensor(source.graded, dtype=torch.float32)

    def constant(self, part: Split, rate: float, u: float) -> float:
        w = torch.full((2, part.has.shape[1]), 4 * u)
        weights: Weights = lambda s, classes: tied(s, part.has[classes], w)  # noqa: E731
        return accuracy(part, train(part, weights, rate), weights)

    def variable(self, part: Split, rate: float, u: float) -> float:
        costs = 4 * u * (1 - self.graded), 4 * u * self.graded
        weights: Weights = lambda s, classes: log_weights(s, (costs[0][classes], costs[1][classes]))  # noqa: E731
        return accuracy(part, train(part, weights, rate), weights)

    def together(self, part: Split, rate: float, form: str) -> float:
        attributes = part.has.shape[1]
        w = torch.full((2, 1 if form == "kind" else attributes), 4 * STARTS, requires_grad=True)
        weights: Weights = lambda s, classes: tied(s, part.has[classes], w.expand(2, attributes))  # noqa: E731
        head = train(part, weights, rate, learned=w)
        with torch.no_grad():
            return accuracy(part, head, weights)

    def folded(self, part: Split, rate: float, form: str, by_class: bool) -> float:
        given = torch.full((2, part.has.shape[1]), 4 * STARTS)
        start: Weights = lambda s, classes: tied(s, part.has[classes], given)  # noqa: E731
        order = torch.randperm(len(part.y), generator=torch.Generator().manual_seed(1))
        every = np.concatenate([part.seen, part.unseen])
        if by_class:
            folds = np.array_split(np.random.default_rng(1).permutation(part.seen), CLASS_FOLDS)
            inside = [torch.isin(part.y, torch.tensor(fold)) for fold in folds]
            parts = [
                (train(part, start, rate, (~rows).nonzero()[:, 0]), rows.nonzero()[:, 0], fold)
                for rows, fold in zip(inside, folds, strict=True)
            ]
        else:
            halves = order.chunk(2)
            parts = [(train(part, start, rate, halves[1 - at]), halves[at], every) for at in (0, 1)]
        w = held_out(part, parts, form, 4 * STARTS)
        weights: Weights = lambda s, classes: tied(s, part.has[classes], w)  # noqa: E731
        return accuracy(part, train(part, weights, rate), weights)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder that has awa/, cub/ and apy/"
    )
    parser.add_argument("--set", choices=["awa", "cub", "apy"], default="awa")
    parser.add_argument("--variable", type=float, nargs="*", default=[0.1, 0.3])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    source = load(arguments.set, arguments.data, np.random.default_rng(1))
    methods = Methods(source)
    rates = {"awa": [3e-4, 1e-3, 3e-3], "cub": [3e-4, 1e-3, 3e-3], "apy": [1e-3, 3e-3, 1e-2]}[
        arguments.set
    ]
    lines: dict[str, list[Callable[[Split, float], float]]] = {
        "constant, u = 15 (hard)": [lambda p, r: methods.constant(p, r, 15.0)],
        "constant, u = 0.3": [lambda p, r: methods.constant(p, r, 0.3)],
        "constant, u by validation": [
            lambda p, r, u=u: methods.constant(p, r, u)  # type: ignore[misc]
            for u in (0.05, 0.1, 0.3, 0.7, 15.0)
        ],
        "learned with the weights, by kind": [lambda p, r: methods.together(p, r, "kind")],
        "learned with the weights, by attribute": [lambda p, r: methods.together(p, r, "both")],
        "cross-fitted over rows, by kind": [lambda p, r: methods.folded(p, r, "kind", False)],
        "cross-fitted over rows, by attribute": [lambda p, r: methods.folded(p, r, "both", False)],
        "cross-fitted over classes, by kind": [lambda p, r: methods.folded(p, r, "kind", True)],
        "cross-fitted over classes, one per attribute": [
            lambda p, r: methods.folded(p, r, "attribute", True)
        ],
        "cross-fitted over classes, two per attribute": [
            lambda p, r: methods.folded(p, r, "both", True)
        ],
    }
    for u in arguments.variable:
        lines[f"variable (linear), u = {u}"] = [lambda p, r, u=u: methods.variable(p, r, u)]  # type: ignore[misc]
    found: dict[str, list[float]] = {name: [] for name in lines}
    for at, (unseen, others) in enumerate(zip(source.folds, source.others, strict=True)):
        check = split(source, np.concatenate(others[1:]), others[0], arguments.set, at)
        test = split(source, np.concatenate(others), unseen, arguments.set, at)
        for name, ways in lines.items():
            trials = [(way(check, rate), rate, way) for way in ways for rate in rates]
            _, rate, way = max(trials, key=lambda trial: trial[0])
            found[name].append(way(test, rate))
            print(f"fold {at + 1}, {name}: {found[name][-1]:.1f} (rate {rate})", flush=True)
    best = max(
        (name for name in found if name.startswith("constant")), key=lambda name: np.mean(found[name])
    )
    print(f"\n{arguments.set}\n\n| strengths | accuracy | against {best} |\n|---|---:|---:|")
    for name, values in found.items():
        gain = np.array(values) - found[best]
        error = [float(np.std(x, ddof=1) / len(x) ** 0.5) for x in (np.array(values), gain)]
        print(
            f"| {name} | {np.mean(values):.1f} ± {error[0]:.1f} | {gain.mean():+.1f} ± {error[1]:.1f} |"
        )


if __name__ == "__main__":
    main()
