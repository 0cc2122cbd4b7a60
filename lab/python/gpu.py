"""Rows per second on one GPU, against PyTorch and PGMax, and the cost of a training step.

`python lab/python/gpu.py EDGES.tsv [--rows 1 256 4096 16384 65536]`: a table of parents and children
with a header, such as that of ILSVRC2012. LBP is 20 iterations of flooding; peers do the same.
Times are medians on rows that are already on the device, with synchronisation.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

import phex
from phex._core import CudaEngine, Engine
from phex.torch import RelationLoss

ITERATIONS = 20
BYTES_A_SECOND = 4.3e12  # A copy on an H200, read and written.
SPECIAL_A_CYCLE = 16  # Special functions of a multiprocessor.
MULTIPLY_ADDS_A_CYCLE = 128  # In single precision.


def graph(path: str, tree: bool, leaves: bool, u: float) -> phex.Graph:
    builder = phex.GraphBuilder()
    seen: set[str] = set()
    with open(path, newline="") as file:
        for parent, child in list(csv.reader(file, delimiter="\t"))[1:]:
            if not tree or child not in seen:
                builder.hierarchy(parent, child, strength=phex.Strength.u(u))
            seen.add(child)
    builder.exclude("siblings", strength=phex.Strength.u(u))
    if leaves:
        builder.one_of("leaves", "leaves")
    return builder.build()


def timed(work, least: float = 0.2) -> float:
    """The median time of a call, after warming up."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    times, start = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - start < least and len(times) < 200):
        before = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def ours(engine: CudaEngine, logits: torch.Tensor):
    """A pass on preallocated memory."""
    rows = len(logits)
    found = torch.empty_like(logits)
    log_partition = torch.empty(rows, dtype=torch.float64, device="cuda")
    status = torch.empty(rows, dtype=torch.int32, device="cuda")
    memory = torch.empty(engine.infer_bytes(rows, False), dtype=torch.uint8, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream

    def work() -> None:
        engine.infer(
            scores=logits.data_ptr(),
            evidence=None,
            marginals=found.data_ptr(),
            log_partition=log_partition.data_ptr(),
            status=status.data_ptr(),
            rows=rows,
            double=False,
            workspace=(memory.data_ptr(), memory.numel()),
            stream=stream,
        )

    return work, found


def multiply_adds(relations: phex.Graph) -> int:
    """What the counts of a tree need: a family of k has k (k + 1) / 2 cells, 2 each up and 6 down."""
    children = Counter(parent for parent, _, _ in relations.hierarchy)
    return sum(8 * k * (k + 1) // 2 for k in children.values())


def siblings(relations: phex.Graph) -> set[tuple[str, str]]:
    """Children of one parent without a common descendant: what the rule excludes."""
    children: dict[str, list[str]] = {}
    for parent, child, _ in relations.hierarchy:
        children.setdefault(parent, []).append(child)
    below: dict[str, set[str]] = {}

    def collect(name: str) -> set[str]:
        if name not in below:
            below[name] = {name}.union(*(collect(child) for child in children.get(name, [])))
        return below[name]

    families = (sorted(family) for family in children.values())
    pairs = ((a, b) for family in families for at, a in enumerate(family) for b in family[at + 1 :])
    return {(a, b) for a, b in pairs if not collect(a) & collect(b)}


class TorchLbp(torch.nn.Module):
    """The same iterations in PyTorch: log-odds of messages, gathered and added by label."""

    def __init__(self, relations: phex.Graph) -> None:
        super().__init__()
        index = {name: at for at, name in enumerate(relations.labels)}
        pairs = [(index[p], index[c], 0) for p, c, _ in relations.hierarchy]
        pairs += [(index[a], index[b], 1) for a, b in siblings(relations)]
        self.pairs = len(pairs)
        sender = [p[0] for p in pairs] + [p[1] for p in pairs]
        receiver = [p[1] for p in pairs] + [p[0] for p in pairs]
        self.register_buffer("sender", torch.tensor(sender, device="cuda"))
        self.register_buffer("receiver", torch.tensor(receiver, device="cuda"))
        cost = torch.tensor([0.2 if p[2] == 0 else -0.2 for p in pairs] * 2, device="cuda")
        self.register_buffer("cost", cost)

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        messages = logits.new_zeros(len(logits), 2 * self.pairs)
        for _ in range(ITERATIONS):
            belief = logits.index_add(1, self.receiver, messages)
            cavity = belief[:, self.sender] - messages.roll(self.pairs, 1)
            messages = torch.logaddexp(-self.cost, cavity) - torch.nn.functional.softplus(
                cavity - self.cost
            )
        return torch.sigmoid(logits.index_add(1, self.receiver, messages))


def table(path: str, sizes: list[int]) -> None:
    device = torch.cuda.get_device_properties(0)
    clock = 1.98e9
    special = device.multi_processor_count * SPECIAL_A_CYCLE * clock
    arithmetic = device.multi_processor_count * MULTIPLY_ADDS_A_CYCLE * clock
    message = {
        "schedule": "flooding",
        "groups": "pairs",
        "iterations": ITERATIONS,
        "tolerance": 0.0,
        "damping": 0.0,
    }
    cases = [
        ("family", graph(path, True, False, 0.5), {"method": "family"}),
        ("family, one-of", graph(path, True, True, 0.5), {"method": "family"}),
        ("lbp", graph(path, False, False, 0.1), {"method": "lbp", **message}),
    ]
    print(f"{device.name}, PyTorch {torch.__version__}")
    print(f"{'what':24} {'rows':>7} {'ms':>9} {'M rows/s':>9} {'of limit':>34} {'error':>9}")
    for name, relations, options in cases:
        engine = Engine(relations, **options)
        gpu = CudaEngine(engine, 0)
        labels = len(relations.labels)
        few = np.random.default_rng(0).uniform(-4, 2, (16, labels)).astype(np.float32)
        truth = engine.marginals(few.astype(np.float64), None)
        work, found = ours(gpu, torch.from_numpy(few).cuda())
        work()
        error = float(np.abs(found.cpu().numpy() - truth).max())
        edges = TorchLbp(relations).pairs if name == "lbp" else 0
        for rows in sizes:
            logits = torch.empty(rows, labels, device="cuda").uniform_(-4, 2)
            seconds = timed(ours(gpu, logits)[0])
            rate = rows / seconds
            if edges:
                limit = f"{100 * rate * edges * ITERATIONS / special:6.2f} % functions"
            else:
                needed = 100 * rate * multiply_adds(relations) / arithmetic
                moved = 100 * rate * 8 * labels / BYTES_A_SECOND
                limit = f"{moved:.2f} % bandwidth, {needed:.2f} % arithmetic"
            print(f"{name:24} {rows:7} {seconds * 1e3:9.3f} {rate / 1e6:9.3f} {limit:>34} {error:9.1e}")
    relations = cases[2][1]
    eager = TorchLbp(relations)
    compiled = torch.compile(eager)
    for name, work in [("lbp, PyTorch eager", eager), ("lbp, torch.compile", compiled)]:
        for rows in sizes:
            part = min(rows, 8192)
            logits = torch.empty(part, len(relations.labels), device="cuda").uniform_(-4, 2)
            with torch.no_grad():
                seconds = timed(partial(work, logits)) * rows / part
            print(f"{name:24} {rows:7} {seconds * 1e3:9.3f} {rows / seconds / 1e6:9.3f}")
    pgmax(eager, len(relations.labels), sizes)


def pgmax(lbp: TorchLbp, labels: int, sizes: list[int]) -> None:
    """The same pairs and iterations by PGMax, in 32-bit log-probabilities."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))
    try:
        import jax
        import peer_pgmax
        from problem import Problem
    except ImportError as error:
        print(f"lbp, PGMax: not installed ({error})")
        return
    ends = torch.stack([lbp.sender, lbp.receiver], 1)[: lbp.pairs].cpu().numpy()
    strengths = -0.5 * lbp.cost[: lbp.pairs].cpu().numpy()
    none = np.zeros((0, labels), np.float32)
    problem = Problem("imagenet", labels, ends, strengths, none, np.zeros(0, np.int64), none)
    run = peer_pgmax.on_device(problem)
    few = np.random.default_rng(0).uniform(-4, 2, (4, labels)).astype(np.float32)
    with torch.no_grad():
        expected = lbp(torch.from_numpy(few).cuda()).cpu().numpy()
    difference = float(np.abs(np.asarray(run(few)) - expected).max())
    for rows in sizes:
        part = min(rows, 1024)
        logits = jax.random.uniform(jax.random.key(0), (part, labels), minval=-4, maxval=2)
        seconds = timed(lambda given=logits: run(given).block_until_ready()) * rows / part
        print(
            f"{'lbp, PGMax':24} {rows:7} {seconds * 1e3:9.3f} {rows / seconds / 1e6:9.3f}"
            f" (PyTorch: {difference:.1e} away)"
        )


def step(
    network: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    images: torch.Tensor,
    half: bool,
    objective: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    targets: torch.Tensor,
) -> None:
    """A step of training."""
    optimiser.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16, enabled=half):
        logits = network(images)
    objective(logits.float(), targets).backward()
    optimiser.step()


def training(path: str) -> None:
    """A step of ResNet-18 with the loss, and with cross-entropy."""
    from torchvision.models import resnet18

    relations = graph(path, True, True, 0.5)
    labels = len(relations.labels)
    loss = RelationLoss(relations, method="family")
    leaves = [relations.labels.index(name) for name in relations.one_of["leaves"]]
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        network = resnet18(num_classes=labels).cuda().to(memory_format=torch.channels_last)
        optimiser = torch.optim.SGD(network.parameters(), lr=0.01)
        images = torch.randn(256, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
        chosen = torch.tensor(leaves, device="cuda")[torch.randint(len(leaves), (256,), device="cuda")]
        targets = torch.full((256, labels), -1, dtype=torch.int8, device="cuda")
        targets.scatter_(1, chosen.unsqueeze(1), 1)

        parts = (network, optimiser, images, precision == "bfloat16")
        plain = timed(partial(step, *parts, torch.nn.functional.cross_entropy, chosen), 2.0)
        with_relations = timed(partial(step, *parts, loss, targets), 2.0)
        print(
            f"training step, ResNet-18, 256 images, {precision}: cross-entropy {plain * 1e3:.2f} ms, "
            f"relations {with_relations * 1e3:.2f} ms ({100 * (with_relations / plain - 1):+.1f} %)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("edges")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 256, 4096, 16384, 65536])
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("skipped: no CUDA device")
    table(arguments.edges, arguments.rows)
    training(arguments.edges)


if __name__ == "__main__":
    main()
