"""Sum-product LBP in torch, eager or compiled: log-odds in f32, layout [message, row].

The update is log((t e + 1) / (e + t)), e = exp(cavity log-odds), t = exp(−2J): on CPU faster
than tanh and atanh. Sums: a sparse CSR product (eager), index_add (compiled).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from peer_numpy import tile_rows
from problem import F32, I64, Problem, Split, split_group

Rows = Callable[[F32], F32]
LIMIT = 40.0  # log-odds are clamped to ±LIMIT before exp
warnings.filterwarnings("ignore", message="Sparse")


class Pairs:
    """The messages along pairwise edges between binary labels."""

    def __init__(self, edges: I64, j: F32, n: int) -> None:
        """Edges [m, 2] with coupling j, over n labels."""
        a, b = edges.T
        target = np.concatenate([b, a])
        self.m = len(j)
        self.source = torch.from_numpy(np.concatenate([a, b]))
        self.target = torch.from_numpy(target)
        self.t = torch.from_numpy(np.exp(-2.0 * np.concatenate([j, j])))[:, None]
        self.one = torch.ones(1)
        start = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=n))])
        order = np.argsort(target, kind="stable")
        self.sums = torch.sparse_csr_tensor(
            torch.from_numpy(start),
            torch.from_numpy(order),
            torch.ones(2 * self.m),
            (n, 2 * self.m),
        )

    def eager(self, theta: Tensor, belief: Tensor, message: Tensor) -> tuple[Tensor, Tensor]:
        """One iteration, in place as far as it goes."""
        e = belief.index_select(0, self.source)
        e[: self.m] -= message[self.m :]
        e[self.m :] -= message[: self.m]
        e.clamp_(-LIMIT, LIMIT).exp_()
        new = torch.addcmul(self.one, e, self.t)
        e += self.t
        new.div_(e).log_()
        return torch.addmm(theta, self.sums, new), new

    def pure(self, theta: Tensor, belief: Tensor, message: Tensor) -> tuple[Tensor, Tensor]:
        """The same iteration without writes, for torch.compile."""
        opposite = torch.cat([message[self.m :], message[: self.m]])
        e = torch.exp(torch.clamp(belief[self.source] - opposite, -LIMIT, LIMIT))
        new = torch.log((self.t * e + 1) / (e + self.t))
        return theta.index_add(0, self.target, new), new


def build_binary(problem: Problem, compiled: bool) -> Callable[[Tensor], Tensor]:
    """All labels binary."""
    pairs = Pairs(problem.edges, problem.j, problem.n)
    step = torch.compile(pairs.pure, dynamic=False) if compiled else pairs.eager

    def run(theta: Tensor) -> Tensor:
        message = torch.zeros(2 * pairs.m, theta.shape[1])
        belief = theta
        for _ in range(problem.iterations):
            belief, message = step(theta, belief, message)
        return torch.sigmoid(belief)

    return run


def build_group(problem: Problem, part: Split, compiled: bool) -> Callable[[Tensor], Tensor]:
    """With a one-of node: dense k×2 tables, as for any pairwise model; layout [row, table, k]."""
    pairs = Pairs(part.edges, part.j, len(part.binary))
    field = torch.from_numpy(part.field)  # log-potential field · y
    unary = torch.from_numpy(part.unary)
    table_of, binary = torch.from_numpy(part.table_of), torch.from_numpy(part.binary)
    group = torch.from_numpy(problem.group)
    pair_step = pairs.pure if compiled else pairs.eager

    def tables(belief_g: Tensor, to_g: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
        cavity = belief_g[:, None, :] - to_g
        from_g = torch.logsumexp(cavity + field, 2) - torch.logsumexp(cavity - field, 2)
        x = (field + half[:, :, None]).abs()
        to_g = x + torch.log1p(torch.exp(-2 * x))  # log 2cosh
        return from_g, to_g - to_g.amax(2, keepdim=True)

    def step(
        theta_b: Tensor, theta_g: Tensor, belief_b: Tensor, belief_g: Tensor, message: Tensor,
        from_g: Tensor, to_g: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        half = 0.5 * (belief_b[table_of].T - from_g)
        from_g, to_g = tables(belief_g, to_g, half)
        belief_b, message = pair_step(theta_b, belief_b, message)
        belief_b = belief_b.index_add(0, table_of, from_g.T)
        return belief_b, theta_g + to_g.sum(1), message, from_g, to_g

    once = torch.compile(step, dynamic=False) if compiled else step

    def run(theta: Tensor) -> Tensor:
        rows = theta.shape[1]
        theta_b, theta_g = theta[binary].contiguous(), theta[group].T + unary
        from_g, to_g = torch.zeros(rows, len(table_of)), torch.zeros(rows, *field.shape)
        state: tuple[Tensor, ...] = (theta_b, theta_g, torch.zeros(2 * pairs.m, rows), from_g, to_g)
        for _ in range(problem.iterations):
            state = once(theta_b, theta_g, *state)
        result = torch.empty_like(theta)
        result[binary] = torch.sigmoid(state[0])
        result[group] = torch.softmax(state[1], 1).T
        return result

    return run


def build(problem: Problem, compiled: bool) -> Rows:
    """log-odds [rows, n] → P(+1) [rows, n]."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    if len(problem.group):
        part = split_group(problem)
        run, tile = build_group(problem, part, compiled), tile_rows(part.field.size)
    else:
        run, tile = build_binary(problem, compiled), tile_rows(2 * len(problem.j))

    def rows(logits: F32) -> F32:
        theta = torch.from_numpy(logits)
        parts = [run(theta[i : i + tile].T.contiguous()).T for i in range(0, len(logits), tile)]
        return torch.cat(parts).numpy()

    return rows
