"""Ways to learn the strengths of a hierarchy in which some edges are wrong, tried on CIFAR-100.

Some classes stand under a random wrong parent in the graph; their rows keep the right one, and 90 % of
the rows are labelled only with it. A model is one leaf, at most one parent, and a cost w for a leaf
without its parent:

    p(leaf c, parent P) = exp(s_c + t_P - w_c [P is not the parent of c]) / Z,

summed over the 100 x 21 states, so that each way takes a few lines of PyTorch. What works best here is
what `phex train --learn-strengths relation` does; `lab experiment wrong-edges` measures it.

    python lab/trials/wrong_edges.py --data DATA
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

LEAVES, PARENTS = 100, 20
HARD = 60.0
GIVEN = 4.0  # u = 1
BATCH = 128


@dataclass
class Sample:
    """Features with a one, the leaf, its right parent, and whether the row is labelled with the leaf."""

    x: torch.Tensor
    leaf: torch.Tensor
    parent: torch.Tensor
    fine: torch.Tensor

    def __len__(self) -> int:
        return len(self.x)

    def pick(self, rows: torch.Tensor) -> Sample:
        return Sample(self.x[rows], self.leaf[rows], self.parent[rows], self.fine[rows])


def load(folder: Path, seed: int, wrong: int) -> tuple[Sample, Sample, torch.Tensor, np.ndarray]:
    """Training rows, test rows, the parent of each leaf in the graph, and which of them are wrong."""
    features = [
        np.load(folder / f"features_effnet_lite0_pca256_f16_{part}.npy").astype("f4")
        for part in ("train", "test")
    ]
    labels = [
        np.load(folder / f"labels_fine_{part}_uint8.npy").astype(int) for part in ("train", "test")
    ]
    right = np.zeros(LEAVES, int)
    for line in (folder / "labels.txt").read_text().splitlines():
        if line[:1].isdigit():
            fine, _, coarse, _ = line.split()
            right[int(fine)] = int(coarse)
    random = np.random.default_rng(seed)
    rows = np.concatenate([random.permutation(np.where(labels[0] == c)[0])[:100] for c in range(LEAVES)])
    fine = np.tile(np.arange(100) >= 90, LEAVES)
    graph = right.copy()
    moved = random.permutation(LEAVES)[:wrong]
    for leaf in moved:
        graph[leaf] = random.choice([p for p in range(PARENTS) if p != right[leaf]])
    mean, deviation = features[0][rows].mean(0), features[0][rows].std(0)

    def sample(x: np.ndarray, y: np.ndarray, is_fine: np.ndarray) -> Sample:
        x = np.hstack([(x - mean) / deviation, np.ones((len(x), 1), "f4")])
        return Sample(*(torch.tensor(a) for a in (x, y, right[y], is_fine)))

    test = sample(features[1], labels[1], np.ones(len(labels[1]), bool))
    return (
        sample(features[0][rows], labels[0][rows], fine),
        test,
        torch.tensor(graph),
        np.isin(np.arange(LEAVES), moved),
    )


@dataclass
class Problem:
    train: Sample
    test: Sample
    graph: torch.Tensor
    wrong: np.ndarray

    def states(self, z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        """Log-weights of rows x leaves x (parents and none)."""
        t = torch.cat([z[:, LEAVES:], torch.zeros(len(z), 1)], 1)
        satisfied = torch.zeros(LEAVES, PARENTS + 1, dtype=torch.bool)
        satisfied[torch.arange(LEAVES), self.graph] = True
        cost = torch.where(satisfied, torch.zeros(()), w[:, None].expand(-1, PARENTS + 1))
        return z[:, :LEAVES, None] + t[:, None, :] - cost[None]

    def loss(self, z: torch.Tensor, w: torch.Tensor, rows: Sample) -> torch.Tensor:
        states, at = self.states(z, w), torch.arange(len(z))
        by_leaf, by_parent = states[at, rows.leaf].logsumexp(1), states[at, :, rows.parent].logsumexp(1)
        return (states.flatten(1).logsumexp(1) - torch.where(rows.fine, by_leaf, by_parent)).mean()

    def fit(
        self,
        w: torch.Tensor,
        epochs: int,
        rows: Sample | None = None,
        start: torch.Tensor | None = None,
        learn: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """A linear head by AdamW and a cosine, and the strengths, which are learned with it or stay."""
        torch.manual_seed(0)
        rows = rows or self.train
        head = torch.zeros(rows.x.shape[1], LEAVES + PARENTS) if start is None else start.clone()
        head.requires_grad_(True)
        w = w.clone().requires_grad_(learn)
        optimiser = torch.optim.AdamW([head], lr=1e-3, weight_decay=1e-4)
        strengths = torch.optim.Adam([w], lr=0.03, betas=(0.9, 0.99)) if learn else None
        steps, step = epochs * -(-len(rows) // BATCH), 0
        for _ in range(epochs):
            for part in torch.randperm(len(rows)).split(BATCH):
                for group in optimiser.param_groups:
                    group["lr"] = 5e-4 * (1 + np.cos(np.pi * step / steps))
                batch = rows.pick(part)
                loss = self.loss(batch.x @ head, w, batch)
                optimiser.zero_grad()
                if strengths:
                    strengths.zero_grad()
                loss.backward()
                optimiser.step()
                if strengths:
                    strengths.step()
                    w.data.clamp_(min=0)
                step += 1
        return head.detach(), w.detach()

    def held_out(
        self,
        parts: list[tuple[torch.Tensor, Sample]],
        start: float,
        offsets: bool = False,
        scales: bool = False,
    ) -> torch.Tensor:
        """Strengths by the likelihood of rows under the scores of heads that have not seen them."""
        w = torch.full((LEAVES,), start, requires_grad=True)
        offset = torch.zeros(LEAVES + PARENTS, requires_grad=offsets)
        scale = torch.zeros(2, requires_grad=scales)
        optimiser = torch.optim.Adam([p for p in (w, offset, scale) if p.requires_grad], lr=0.1)
        z = torch.cat([rows.x @ head for head, rows in parts])
        rows = Sample(
            *(
                torch.cat([getattr(rows, name) for _, rows in parts])
                for name in ("x", "leaf", "parent", "fine")
            )
        )
        random = torch.Generator().manual_seed(0)
        for step in range(300):
            for group in optimiser.param_groups:
                group["lr"] = 0.1 * (1 - step / 300)
            part = torch.randint(len(z), (512,), generator=random)
            factor = torch.cat([scale[0].exp().expand(LEAVES), scale[1].exp().expand(PARENTS)])
            loss = (
                self.loss(z[part] * factor + offset, w, rows.pick(part))
                + 0.5e-5 * ((w - GIVEN) ** 2).sum()
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            w.data.clamp_(min=0)
        return w.detach()

    def show(
        self, name: str, head: torch.Tensor, w: torch.Tensor, learned: torch.Tensor | None = None
    ) -> None:
        best = torch.cat(
            [self.states(x @ head, w).logsumexp(2).argmax(1) for x in self.test.x.split(1000)]
        )
        cells = [name, f"{100 * (best == self.test.leaf).float().mean():.1f}", "", ""]
        if learned is not None and self.wrong.any():
            a, b = learned.numpy()[self.wrong], learned.numpy()[~self.wrong]
            area = np.mean(a[:, None] < b) + 0.5 * np.mean(a[:, None] == b)
            cells[2:] = [
                f"{area:.3f}",
                f"{a.mean():.1f} ({a.max():.1f}), {b.mean():.1f} ({b.min():.1f})",
            ]
        print("| " + " | ".join(cells) + " |", flush=True)


def moved(problem: Problem, parts: list[tuple[torch.Tensor, Sample]], w: torch.Tensor) -> Problem:
    """Leaves without a strength go to the parent that explains their rows best, by heads that have not
    seen them."""
    graph = problem.graph.clone()
    for leaf in torch.nonzero(w == 0).flatten().tolist():
        z = [rows.x[rows.fine & (rows.leaf == leaf)] @ head for head, rows in parts]
        graph[leaf] = torch.cat(z)[:, LEAVES:].log_softmax(1).sum(0).argmax()
    return replace(problem, graph=graph)


def dropped(w: torch.Tensor) -> torch.Tensor:
    """Strengths below half of their median become 0."""
    return torch.where(w < w.median() / 2, torch.zeros(()), w)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder that has cifar100/")
    parser.add_argument("--wrong", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for wrong in arguments.wrong:
        problem = Problem(*load(arguments.data / "cifar100", 0, wrong))
        rows = problem.train
        free, given = torch.zeros(LEAVES), torch.full((LEAVES,), GIVEN)
        known = torch.where(torch.tensor(problem.wrong), 0.0, GIVEN)
        print(f"\n{wrong} wrong edges\n\n| way | top-1 | ROC | wrong (largest), right (smallest) |")
        print("|---|---:|---:|---:|")
        for name, w in (
            ("hard", torch.full((LEAVES,), HARD)),
            ("u = 1", given),
            ("wrong edges known: w = 0", known),
        ):
            problem.show(name, *problem.fit(w, 15))
        head, w = problem.fit(given, 15, learn=True)
        problem.show("learned with the weights", head, w, w)
        apart, _ = problem.fit(free, 5)
        problem.show("known, from a head trained apart", *problem.fit(known, 10, start=apart))
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))
        halves = [rows.pick(half) for half in order.chunk(2)]

        def heads(w: torch.Tensor, epochs: int = 10) -> list[tuple[torch.Tensor, Sample]]:
            return [(problem.fit(w, epochs, halves[1 - at])[0], halves[at]) for at in (0, 1)]  # noqa: B023

        def tried(name: str, w: torch.Tensor, use: torch.Tensor) -> None:
            problem.show(name, *problem.fit(use, 10, start=apart), learned=w)  # noqa: B023

        w = problem.held_out(heads(given), GIVEN)
        tried("other rows, heads trained with the relations", w, w)
        parts = heads(free)
        w = problem.held_out(parts, GIVEN)
        tried("other rows, heads trained apart", w, w)
        w = problem.held_out(parts, GIVEN, offsets=True)
        tried("… and offsets", w, w)
        again = [
            (problem.fit(w, 6, halves[1 - at], head)[0], own) for at, (head, own) in enumerate(parts)
        ]
        both = problem.held_out(parts, GIVEN, offsets=True, scales=True)
        tried("… and offsets and scales", both, both)
        w = problem.held_out(again, GIVEN, offsets=True)
        tried("… and offsets, a second round", w, w)
        w = problem.held_out(parts, GIVEN / 4, offsets=True)
        tried("… and offsets, from u = 0.25", w, w)
        tried("… and offsets, from u = 0.25, below half the median dropped", w, dropped(w))
        right = moved(problem, parts, dropped(w))
        hard = torch.full((LEAVES,), HARD)
        right.show("… and moved to another parent, hard", *right.fit(hard, 10, start=apart))


if __name__ == "__main__":
    main()
