"""Sum-product LBP in numpy: log-odds in f32, layout [message, row], sums by a sparse matrix.

Messages e < m go a→b, messages m + e go b→a, so the opposite message is the other half: only
the beliefs are gathered. Rows are cut into tiles that fit the cache.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix

from problem import F32, I64, Problem, split_group

TILE = 1 << 20  # numbers in the message array of one tile
Rows = Callable[[F32], F32]


def tile_rows(messages: int) -> int:
    """A power of two so that messages × rows is about TILE."""
    return max(1, 1 << (TILE // messages).bit_length() - 1)


def incidence(target: I64, n: int) -> csr_matrix:
    """[n, len(target)]: sums messages at their targets."""
    count = len(target)
    return csr_matrix((np.ones(count, np.float32), (target, np.arange(count))), (n, count))


def in_tiles(run: Rows, tile: int) -> Rows:
    """Rows in, marginals out; `run` works on [n, rows of a tile]."""

    def rows(logits: F32) -> F32:
        parts = [
            run(np.ascontiguousarray(logits[i : i + tile].T)).T for i in range(0, len(logits), tile)
        ]
        return np.concatenate(parts)

    return rows


class Pairs:
    """The messages along pairwise edges between binary labels."""

    def __init__(self, edges: I64, j: F32, n: int) -> None:
        """Edges [m, 2] with coupling j, over n labels."""
        a, b = edges.T
        self.m = len(j)
        self.source = np.concatenate([a, b])
        self.sums = incidence(np.concatenate([b, a]), n)
        self.tanh = np.tanh(-np.concatenate([j, j]))[:, None]

    def update(self, belief: F32, message: F32, out: F32) -> None:
        """out = 2 atanh(tanh(−J) tanh((belief − opposite message) / 2))."""
        m = self.m
        np.take(belief, self.source, axis=0, out=out, mode="clip")
        out[:m] -= message[m:]
        out[m:] -= message[:m]
        out *= np.float32(0.5)
        np.tanh(out, out=out)
        out *= self.tanh
        np.arctanh(out, out=out)
        out *= np.float32(2.0)


def sigmoid(x: F32) -> F32:
    """P(+1) of log-odds, in place."""
    np.multiply(x, np.float32(0.5), out=x)
    np.tanh(x, out=x)
    x += np.float32(1.0)
    x *= np.float32(0.5)
    return x


def build_binary(problem: Problem) -> Rows:
    """All labels binary."""
    pairs = Pairs(problem.edges, problem.j, problem.n)

    def run(theta: F32) -> F32:
        message = np.zeros((2 * pairs.m, theta.shape[1]), np.float32)
        new = np.empty_like(message)
        belief = theta
        for _ in range(problem.iterations):
            pairs.update(belief, message, new)
            message, new = new, message
            belief = pairs.sums @ message
            belief += theta
        return sigmoid(belief)

    return in_tiles(run, tile_rows(2 * pairs.m))


def log_cosh(x: F32) -> F32:
    """log 2cosh(x), without overflow."""
    x = np.abs(x)
    return x + np.log1p(np.exp(-2 * x))


def build_group(problem: Problem) -> Rows:
    """With a one-of node. Structured: a table equals its background but at the label's edges.

    The message of label b to state s is log 2cosh(f_bs + η_b/2); f_bs = c_b unless (b, s) is an
    edge, so only the differences to the background are kept, and sums over the other states are
    the total less the edges'. Same messages as with k×2 tables, at a cost of O(edges).
    """
    part = split_group(problem)
    n, k = len(part.binary), len(problem.group)
    pairs = Pairs(part.edges, part.j, n)
    table, state = np.nonzero(part.weight)
    background = part.weight.sum(1, keepdims=True)
    field = part.field[table, state][:, None]
    to_state, to_table = incidence(state, k), incidence(table, len(part.table_of))

    def run(theta: F32) -> F32:
        theta_b = np.ascontiguousarray(theta[part.binary])
        theta_g = theta[problem.group] + part.unary[:, None]
        message = np.zeros((2 * pairs.m, theta.shape[1]), np.float32)
        new = np.empty_like(message)
        diff = np.zeros((len(state), theta.shape[1]), np.float32)
        from_g = np.zeros((len(part.table_of), theta.shape[1]), np.float32)
        belief_b, belief_g = theta_b, theta_g
        for _ in range(problem.iterations):
            half = (belief_b[part.table_of] - from_g) * np.float32(0.5)
            weight = np.exp(belief_g - belief_g.max(0))
            at_edge = weight[state]
            rest = np.maximum(weight.sum(0) - to_table @ at_edge, 0)
            at_edge = at_edge * np.exp(-diff)
            up = np.exp(background) * rest + to_table @ (at_edge * np.exp(field))
            down = np.exp(-background) * rest + to_table @ (at_edge * np.exp(-field))
            from_g = np.log(up / down)
            diff = log_cosh(field + half[table]) - log_cosh(background + half)[table]
            pairs.update(belief_b, message, new)
            message, new = new, message
            belief_b = theta_b + pairs.sums @ message
            belief_b[part.table_of] += from_g
            belief_g = theta_g + to_state @ diff
        result = np.empty_like(theta)
        weight = np.exp(belief_g - belief_g.max(0))
        result[problem.group] = weight / weight.sum(0)
        result[part.binary] = sigmoid(belief_b)
        return result

    return in_tiles(run, tile_rows(2 * pairs.m + 4 * len(state)))


def build(problem: Problem) -> Rows:
    """log-odds [rows, n] → P(+1) [rows, n]."""
    return build_group(problem) if len(problem.group) else build_binary(problem)
