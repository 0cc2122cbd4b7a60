"""A whole network on CIFAR-100 images, most of them labelled with their parent alone.

ResNet-9 is trained from scratch with `phex.torch` as a user would: a head, a sampler and a loss. A
share of the training images keeps only one of the 20 parents. Methods:

- softmax on the images labelled with a class;
- sums of leaves: a softmax whose parents are sums of their classes;
- HEX: hard relations, a linear last layer that starts at zero, batches as usual;
- pHEX: as in the paper, one class on, soft hierarchy, soft exclusion between parents;
- the recipe, hard and soft: `RelationHead` and `LeafBatchSampler`.

Every method has the same number of trials (six, or the first `--trials`). The first seed runs all of
them, validation images choose one for each method and fraction, and the other seeds run that one. Runs
are kept in a journal, so that the same command continues after an interruption. At the end, or with
`--summary-only`, the script writes a table in Markdown.

    python lab/python/cifar_images.py --out runs/cifar_images

`--jobs 4` makes four runs at a time on one GPU. `--minutes` starts no run after so long.

It needs Pillow, and a GPU for runs of a reasonable length. It looks for `cifar100_images` and `cifar100`
in `PHEX_DATA`, then in `../shared/data`.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import phex
from phex.torch import LeafBatchSampler, RelationHead, RelationLayer, RelationLoss

ROOT = Path(__file__).resolve().parents[2]
#: Images in a tile, and the side of an image.
TILE, SIDE = 16, 32


@dataclass
class Images:
    """Images of classes under parents. Training images are shuffled once and for all."""

    train: Tensor
    train_class: Tensor
    test: Tensor
    test_class: Tensor
    classes: list[str]
    parent_of: list[str]

    @property
    def parents(self) -> list[str]:
        """The parents, in the order in which they occur first."""
        return list(dict.fromkeys(self.parent_of))


@dataclass(frozen=True)
class Trial:
    """Settings that differ between the trials of a method."""

    rate: float
    share: float = 0.0
    u: float | None = None

    def __str__(self) -> str:
        soft = "" if self.u is None else f", u = {self.u:g}"
        share = "" if self.share == 0.0 else f", a share of {self.share:g} with classes"
        return f"rate {self.rate:g}{share}{soft}"


@dataclass(frozen=True)
class Method:
    """A method, and what it tries."""

    name: str
    #: `class`, `sums` or `relations`.
    loss: str
    trials: tuple[Trial, ...]
    #: Whether the head scales inner scores, as the recipe says.
    scaled: bool = False


STRENGTHS = (0.3, 1.0, 3.0)
#: The number of trials of each method.
TRIALS = 6


def _methods() -> tuple[Method, ...]:
    """The methods, what matters most first. The first trials of each are the most promising."""
    plain = tuple(Trial(rate) for rate in (0.05, 0.2, 0.1, 0.02, 0.01, 0.4))
    mixed = tuple(Trial(rate, share) for rate in (0.2, 0.1, 0.05) for share in (0.0, 0.25))
    shared = tuple(Trial(rate, share) for rate in (0.2, 0.1, 0.05) for share in (0.25, 0.1))
    soft = tuple(Trial(rate, 0.0, u) for rate in (0.2, 0.05) for u in STRENGTHS)
    both = tuple(Trial(rate, 0.25, u) for rate in (0.2, 0.05) for u in STRENGTHS)
    return (
        Method("the recipe, hard", "relations", shared, scaled=True),
        Method("sums of leaves", "sums", mixed),
        Method("HEX", "relations", plain),
        Method("pHEX, the best of three strengths", "relations", soft),
        Method("the recipe, soft", "relations", both, scaled=True),
        Method("softmax, images with a class", "class", plain),
    )


METHODS = _methods()


def relations(images: Images, u: float | None) -> phex.Graph:
    """Classes under parents: hard, or with these strengths as in the paper."""
    builder = phex.GraphBuilder()
    strength = None if u is None else f"u={u}"
    for name in images.classes:
        builder.label(name)
    for parent in images.parents:
        members = [n for n, p in zip(images.classes, images.parent_of, strict=True) if p == parent]
        builder.hierarchy(f"{parent} (parent)", members, strength)
    if u is None:
        return builder.single_label().build()
    builder.exclusion([f"{parent} (parent)" for parent in images.parents], strength)
    return builder.one_of("class", images.classes).build()


# Data.


def data_folder() -> Path:
    """Where data sets are."""
    return Path(os.environ.get("PHEX_DATA", ROOT.parent / "shared" / "data"))


def _tiles(path: Path) -> Iterator[NDArray[np.uint8]]:
    """The images of each tile of a file: WebP files one after another, with the bytes of each."""
    from PIL import Image

    with np.load(path) as parts:
        data, sizes = parts["data"].tobytes(), parts["sizes"].tolist()
    start = 0
    for size in sizes:
        with Image.open(io.BytesIO(data[start : start + size])) as image:
            tile = np.asarray(image.convert("RGB"))
        start += size
        if tile.shape != (TILE * SIDE, TILE * SIDE, 3):
            raise SystemExit(f"{path}: a tile has the shape {tile.shape}")
        yield tile.reshape(TILE, SIDE, TILE, SIDE, 3).transpose(0, 2, 1, 3, 4).reshape(-1, SIDE, SIDE, 3)


def load(folder: Path) -> Images:
    """CIFAR-100, with its 20 parents."""
    pixels = folder / "cifar100_images"
    names = (pixels / "classes.txt").read_text().split()
    rows = [line.split("\t") for line in (folder / "cifar100" / "labels.txt").read_text().splitlines()]
    parent = {row[1]: row[3] for row in rows if len(row) >= 4}
    classes = [name for name in names if name in parent]
    if len(classes) != len(parent):
        raise SystemExit(f"{pixels / 'classes.txt'} and {folder / 'cifar100' / 'labels.txt'} differ")

    def part(files: list[str], labels: str) -> tuple[Tensor, Tensor]:
        known = np.load(pixels / labels).astype(np.int64)
        tiles = [tile for file in files for tile in _tiles(pixels / file)]
        stacked = np.concatenate(tiles)[: len(known)]
        if len(stacked) != len(known):
            raise SystemExit(f"{pixels}: {len(stacked)} images and {len(known)} labels")
        return torch.from_numpy(stacked).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(known)

    train, train_class = part(["train_0.npz", "train_1.npz"], "labels_train.npy")
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    test, test_class = part(["test.npz"], "labels_test.npy")
    return Images(
        train[order], train_class[order], test, test_class, classes, [parent[name] for name in classes]
    )


# The network.


class Residual(nn.Module):
    """Two convolutions beside the identity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_block(width, width), _block(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


def _block(before: int, after: int, pool: bool = False) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(before, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []))


def resnet9(head: nn.Module, width: int) -> nn.Module:
    """ResNet-9: eight convolutions and the head. `width` is that of the first convolution."""
    body = nn.Sequential(
        _block(3, width),
        _block(width, 2 * width, pool=True),
        Residual(2 * width),
        _block(2 * width, 4 * width, pool=True),
        _block(4 * width, 8 * width, pool=True),
        Residual(8 * width),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
    )
    return nn.Sequential(body, head)


def zero_start(features: int, outputs: int) -> nn.Linear:
    """A linear layer that starts at zero, as all methods do."""
    layer = nn.Linear(features, outputs)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


# Training.


@dataclass
class Task:
    """The images of a fraction and a seed: which are labelled with their parent alone."""

    images: Images
    fraction: float
    seed: int
    validation: int
    parent: Tensor = field(init=False)
    is_coarse: Tensor = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.images.train) - self.validation
        place = {name: at for at, name in enumerate(self.images.parents)}
        self.parent = torch.tensor([place[name] for name in self.images.parent_of])
        generator = torch.Generator().manual_seed(1000 + self.seed)
        coarse = torch.randperm(count, generator=generator)[: round(self.fraction * count)]
        self.is_coarse = torch.zeros(count, dtype=torch.bool)
        self.is_coarse[coarse] = True

    @property
    def training(self) -> slice:
        """The first images; the last are for validation."""
        return slice(0, len(self.is_coarse))

    def targets(self, graph: phex.Graph) -> Tensor:
        """What is known of the training images, as phex reads it: 1 on, -1 unknown."""
        known = torch.full((len(self.is_coarse), len(graph)), -1, dtype=torch.int8)
        classes = torch.tensor([graph.index(name) for name in self.images.classes])
        parents = torch.tensor([graph.index(f"{name} (parent)") for name in self.images.parents])
        of = self.images.train_class[self.training]
        label = torch.where(self.is_coarse, parents[self.parent[of]], classes[of])
        known[torch.arange(len(known)), label] = 1
        return known


Score = Callable[[Tensor], Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]


def objective(
    task: Task, method: Method, trial: Trial, features: int, device: torch.device
) -> tuple[nn.Module, Loss, Score]:
    """The head, the loss of some training images, and the scores of the classes."""
    of = task.images.train_class[task.training].to(device)
    if method.loss == "relations":
        graph = relations(task.images, trial.u)
        # Of the engines that are exact here, these have kernels for GPUs.
        kind = "auto" if device.type == "cpu" else "states" if trial.u is None else "family"
        loss = RelationLoss(graph, method=kind)
        layer, targets = RelationLayer(loss), task.targets(graph).to(device)
        # The recipe scales inner scores in taxonomies, and a graph with soft relations is not one.
        taxonomy = relations(task.images, None)
        if taxonomy.labels != graph.labels:
            raise RuntimeError("the hard and the soft graph have other labels")
        head = RelationHead(features, taxonomy, inner_scale=None if method.scaled else 1.0)
        columns = torch.tensor([graph.index(name) for name in task.images.classes], device=device)
        return (
            head,
            lambda logits, rows: loss(logits, targets[rows]),
            lambda logits: layer(logits)[:, columns],
        )
    head_of_classes = zero_start(features, len(task.images.classes))
    parent, is_coarse = task.parent.to(device), task.is_coarse.to(device)

    def sums(logits: Tensor, rows: Tensor) -> Tensor:
        log_p = logits.float().log_softmax(-1)
        same = parent[None, :] == parent[of[rows]][:, None]
        of_parent = log_p.masked_fill(~same, -torch.inf).logsumexp(-1)
        of_class = log_p.gather(-1, of[rows][:, None])[:, 0]
        return -torch.where(is_coarse[rows], of_parent, of_class).mean()

    def classes(logits: Tensor, rows: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits.float(), of[rows])

    return head_of_classes, sums if method.loss == "sums" else classes, lambda logits: logits


def batches(task: Task, method: Method, trial: Trial, size: int, seed: int) -> LeafBatchSampler:
    """The batches of a method: those of the images with a class, or of all."""
    has_class = ~task.is_coarse
    mask = has_class[has_class] if method.loss == "class" else has_class
    size = max(1, min(size, len(mask)))
    return LeafBatchSampler(mask, size, share=trial.share, drop_last=True, seed=seed)


def augmented(images: Tensor, generator: torch.Generator) -> Tensor:
    """Images moved by up to four pixels and mirrored at random, one move per batch."""
    shift = torch.randint(-4, 5, (2,), generator=generator).tolist()
    padded = nn.functional.pad(images, (4, 4, 4, 4), mode="reflect")
    top, left = 4 + shift[0], 4 + shift[1]
    moved = padded[:, :, top : top + SIDE, left : left + SIDE]
    mirror = torch.rand(len(images), generator=generator).to(images.device) < 0.5
    return torch.where(mirror[:, None, None, None], moved.flip(-1), moved)


def normalised(images: Tensor) -> Tensor:
    """Numbers from -1 to 1."""
    return images.float() / 127.5 - 1.0


@torch.no_grad()
def accuracy(network: nn.Module, score: Score, images: Tensor, classes: Tensor, size: int) -> float:
    """The share of images whose most probable class is right, in %."""
    network.eval()
    right = 0
    for part, truth in zip(images.split(size), classes.split(size), strict=True):
        found = score(network(normalised(part)).float()).argmax(-1)
        right += int((found == truth.to(found.device)).sum())
    return 100.0 * right / max(len(images), 1)


@dataclass(frozen=True)
class Setting:
    """What all runs have in common. Journals of other settings are refused."""

    epochs: int = 16
    batch: int = 512
    width: int = 64
    decay: float = 5e-4
    validation: int = 5000


def run(
    images: Images,
    setting: Setting,
    method: Method,
    trial: Trial,
    fraction: float,
    seed: int,
    device: torch.device,
) -> dict[str, float]:
    """Trains one network; accuracies on validation and test images, and seconds."""
    start = time.perf_counter()
    torch.manual_seed(seed)
    task = Task(images, fraction, seed, setting.validation)
    head, loss, score = objective(task, method, trial, 8 * setting.width, device)
    network = resnet9(head, setting.width).to(device, memory_format=torch.channels_last)
    sampler = batches(task, method, trial, setting.batch, seed)
    # All methods make the same number of steps, however long an epoch of their sampler is.
    total = setting.epochs * max(1, len(task.is_coarse) // setting.batch)
    optimiser = torch.optim.SGD(
        network.parameters(), lr=trial.rate, momentum=0.9, nesterov=True, weight_decay=setting.decay
    )
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, trial.rate, total_steps=total, pct_start=0.3)
    generator = torch.Generator().manual_seed(seed)
    rows_of = torch.arange(len(task.is_coarse))
    if method.loss == "class":
        rows_of = rows_of[~task.is_coarse]
    pixels = images.train[task.training]
    network.train()
    forever = itertools.chain.from_iterable(itertools.repeat(sampler))
    for batch in itertools.islice(forever, total):
        rows = rows_of[torch.tensor(batch)].to(device)
        inputs = augmented(normalised(pixels[rows]), generator)
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = network(inputs)
        loss(logits, rows).backward()
        optimiser.step()
        rate.step()
    held_out = slice(len(task.is_coarse), None)
    unseen, unseen_class = images.train[held_out], images.train_class[held_out]
    size = 2 * setting.batch
    return {
        "validation": accuracy(network, score, unseen, unseen_class, size),
        "test": accuracy(network, score, images.test, images.test_class, size),
        "seconds": time.perf_counter() - start,
    }


# The journal of runs.


class Journal:
    """Runs that are done, one JSON object per line. A line that was cut off is dropped."""

    def __init__(self, path: Path, setting: dict[str, Any]) -> None:
        self.path = path
        self.runs: dict[str, dict[str, Any]] = {}
        lines = path.read_text().splitlines() if path.exists() else []
        whole = []
        for line in lines:
            try:
                whole.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        if whole and whole[0].get("setting") != setting:
            raise SystemExit(f"{path} has runs with other settings; give another --out")
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = whole or [{"setting": setting}]
        part = path.with_suffix(".part")
        part.write_text("".join(json.dumps(entry) + "\n" for entry in kept))
        part.replace(path)
        for entry in kept[1:]:
            self.runs[entry["run"]] = entry

    def add(self, name: str, result: dict[str, Any]) -> None:
        """Keeps a run."""
        entry = {"run": name, **result}
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.runs[name] = entry


def run_name(method: Method, trial: Trial, fraction: float, seed: int) -> str:
    """The name of a run in the journal."""
    return f"{method.name} | {trial} | {fraction:g} | seed {seed}"


def best_trial(journal: Journal, method: Method, fraction: float) -> Trial | None:
    """The trial that did best on validation images with the first seed; None while one is missing."""
    found = [journal.runs.get(run_name(method, trial, fraction, 0)) for trial in method.trials]
    values = [entry["validation"] for entry in found if entry is not None]
    if len(values) < len(method.trials):
        return None
    return method.trials[int(np.argmax(values))]


@dataclass(frozen=True)
class Run:
    """A run that is to be made."""

    method: Method
    trial: Trial
    fraction: float
    seed: int

    @property
    def name(self) -> str:
        return run_name(self.method, self.trial, self.fraction, self.seed)


def missing(
    journal: Journal, fractions: list[float], seeds: int, methods: tuple[Method, ...]
) -> Iterator[Run]:
    """What the journal does not have yet and can be run now. Other seeds wait for all trials."""
    for method, fraction in itertools.product(methods, fractions):
        runs = [Run(method, trial, fraction, 0) for trial in method.trials]
        chosen = best_trial(journal, method, fraction)
        if chosen is not None:
            runs += [Run(method, chosen, fraction, seed) for seed in range(1, seeds)]
        yield from (run for run in runs if run.name not in journal.runs)


def compare(
    images: Images,
    setting: Setting,
    fractions: list[float],
    seeds: int,
    device: torch.device,
    journal: Journal,
    methods: tuple[Method, ...] = METHODS,
    jobs: int = 1,
    until: float = float("inf"),
) -> None:
    """Runs what the journal does not have yet, and starts none after `until` (`time.monotonic`)."""

    def add(made: Run, result: dict[str, float]) -> None:
        journal.add(made.name, result)
        found = f"validation {result['validation']:.1f}, test {result['test']:.1f}"
        print(f"{made.name}: {found}, {result['seconds']:.0f} s", flush=True)

    if jobs == 1:
        while time.monotonic() < until:
            next_run = next(missing(journal, fractions, seeds, methods), None)
            if next_run is None:
                return
            made = next_run
            add(made, run(images, setting, made.method, made.trial, made.fraction, made.seed, device))
        return
    context = torch.multiprocessing.get_context("spawn")
    running: dict[Future[dict[str, float]], Run] = {}
    with ProcessPoolExecutor(jobs, context, _start_worker, (images, setting, str(device))) as pool:
        while True:
            started = {made.name for made in running.values()}
            for next_run in missing(journal, fractions, seeds, methods):
                if len(running) >= jobs or time.monotonic() >= until:
                    break
                if next_run.name not in started:
                    running[pool.submit(_work, next_run)] = next_run
            if not running:
                return
            for finished in wait(running, return_when=FIRST_COMPLETED).done:
                add(running.pop(finished), finished.result())


_worker: tuple[Images, Setting, torch.device]


def _start_worker(images: Images, setting: Setting, device: str) -> None:
    """Moves the images to the device, once per process."""
    global _worker
    torch.set_num_threads(1)
    place = torch.device(device)
    images = replace(images, train=images.train.to(place), test=images.test.to(place))
    _worker = images, setting, place


def _work(made: Run) -> dict[str, float]:
    images, setting, device = _worker
    return run(images, setting, made.method, made.trial, made.fraction, made.seed, device)


def summary(
    journal: Journal,
    setting: Setting,
    fractions: list[float],
    seeds: int,
    where: str,
    methods: tuple[Method, ...] = METHODS,
) -> str:
    """The table, and which trial each method chose. Cells without all of their runs are dashes."""
    head = " | ".join(f"{100 * fraction:g} %" for fraction in fractions)
    lines = [
        "# Whole networks on CIFAR-100 images with coarse labels",
        "",
        f"Made by `lab/python/cifar_images.py` (phex {phex.__version__}, {where}).",
        "",
        f"ResNet-9 of width {setting.width}, {setting.epochs} epochs of SGD with one cycle, batches of "
        f"{setting.batch}. A share of the training images keeps only its parent. Every method had "
        f"{len(methods[0].trials)} trials on the first seed; {setting.validation} validation images "
        f"with their classes chose one. Top-1 accuracy on test images in %, mean ± deviation of {seeds} "
        "seeds.",
        "",
        f"| method | {head} |",
        "|---|" + "---:|" * len(fractions),
    ]
    chosen_lines = [f"| method | {head} |", "|---|" + "---|" * len(fractions)]
    for method in methods:
        cells, chosen_cells = [], []
        for fraction in fractions:
            trial = best_trial(journal, method, fraction)
            names = [] if trial is None else [run_name(method, trial, fraction, s) for s in range(seeds)]
            values = [journal.runs[name]["test"] for name in names if name in journal.runs]
            if trial is None or len(values) < seeds:
                cells.append("-")
                chosen_cells.append("-")
                continue
            deviation = f" ± {np.std(values, ddof=1):.1f}" if seeds > 1 else ""
            cells.append(f"{np.mean(values):.1f}{deviation}")
            chosen_cells.append(str(trial))
        lines.append(f"| {method.name} | " + " | ".join(cells) + " |")
        chosen_lines.append(f"| {method.name} | " + " | ".join(chosen_cells) + " |")
    return "\n".join([*lines, "", "## The trials that were chosen", "", *chosen_lines]) + "\n"


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the journal and the table")
    parser.add_argument("--fractions", default="0.5,0.9,0.95,0.99", help="shares of coarse images")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=TRIALS, help="trials of each method, at most 6")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no run after so long")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, value in asdict(Setting()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--summary-only", action="store_true", help="write the table of the runs so far")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> None:
    """Runs the comparison and writes the table."""
    args = arguments(given)
    setting = Setting(**{name: getattr(args, name) for name in asdict(Setting())})
    fractions = [float(text) for text in args.fractions.split(",")]
    device = torch.device(args.device)
    methods = tuple(replace(method, trials=method.trials[: args.trials]) for method in METHODS)
    journal = Journal(args.out / "runs.jsonl", {**asdict(setting), "methods": repr(methods)})
    if not args.summary_only:
        until = time.monotonic() + 60.0 * args.minutes
        images = load(data_folder())
        if args.jobs == 1:
            # All images fit into the memory of any GPU: 180 MB.
            images.train, images.test = images.train.to(device), images.test.to(device)
        compare(images, setting, fractions, args.seeds, device, journal, methods, args.jobs, until)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    text = summary(journal, setting, fractions, args.seeds, where, methods)
    (args.out / "cifar_images.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
