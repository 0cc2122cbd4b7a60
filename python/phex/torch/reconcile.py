"""Reconciling tensors, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from phex._core import Graph, best_sets
from phex._core import Reconciled as Found
from phex._core import Reconciler as Core
from phex.errors import InputError
from phex.reconciler import Reconciled
from phex.torch.ops import array_of, once, tensor_of

__all__ = ["best_tensor", "reconcile_tensor"]


class _Reconcile(torch.autograd.Function):
    """Reconciled probabilities of rows, as a function of the rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, core: Core, found: Found, logits: bool) -> Tensor:
        """The probabilities that `core` found for these rows."""
        probabilities = tensor_of(found.probabilities, rows)
        ctx.save_for_backward(rows, probabilities)
        ctx.core, ctx.logits = core, logits
        return probabilities

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """The derivatives with respect to the rows."""
        rows, probabilities = ctx.saved_tensors
        upstream = array_of(gradient)
        bad = ~np.isfinite(upstream)
        if bad.any():
            row, label = (int(at) for at in np.argwhere(bad)[0])
            raise InputError(
                f"row {row}: the gradient by the reconciled probability in column {label} is "
                f"{upstream[row, label]}; keep logarithms of probabilities away from 0"
            )
        values, answer = array_of(rows), array_of(probabilities)
        found = ctx.core.gradient(values, answer, upstream, logits=ctx.logits)
        return once(tensor_of(found, rows), (gradient, rows)), None, None, None


def best_tensor(graph: Graph, q: Tensor) -> Tensor:
    """The best legal label set of each row of reconciled probabilities, in the shape of the tensor."""
    rows = array_of(q.double().reshape(-1, q.shape[-1]))
    return torch.from_numpy(best_sets(graph, rows)).reshape(q.shape).to(q.device)


def reconcile_tensor(core: Core, p: Tensor, logits: bool) -> Reconciled:
    """The answer for a tensor of (…, labels); the probabilities are a tensor of the same shape."""
    if not p.is_floating_point() or p.ndim == 0:
        raise InputError(f"probabilities are floating-point numbers of (…, labels), not {p.dtype}")
    # Half precision is too coarse near 0 and 1.
    wide = p.float() if p.dtype in (torch.float16, torch.bfloat16) else p
    rows = wide.reshape(-1, p.shape[-1])
    found = core.run(array_of(rows), logits=logits)
    if rows.requires_grad and torch.is_grad_enabled():
        probabilities: Tensor = _Reconcile.apply(rows, core, found, logits)
    else:
        probabilities = tensor_of(found.probabilities, rows)
    return Reconciled(
        probabilities.reshape(p.shape),
        found.gain,
        found.gap,
        found.violation,
        found.input_violation,
        found.passes,
        found.trust,
        found.error,
    )
