"""Reconciling tensors, with gradients.

The gradient of the output by the input is computed on the rows again: with `V = diag q (1 - q)` and the
relations `A` that hold with equality, it is `I - Aᵀ(A V Aᵀ)⁻¹A V` in logits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from phex._core import Reconciler as Core
from phex.errors import InputError
from phex.reconciler import Reconciled
from phex.torch.ops import array_of, once, tensor_of

__all__ = ["reconcile_tensor"]


class _Reconcile(torch.autograd.Function):
    """Consistent probabilities of rows, whose gradient is that of the projection."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, core: Core, logits: bool, kept: list[Any]) -> Tensor:
        """Runs the rows; the other results are added to `kept`."""
        found = core.run(array_of(rows), logits=logits)
        kept.append(found)
        ctx.save_for_backward(rows)
        ctx.core, ctx.logits = core, logits
        return tensor_of(found.probabilities, rows)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        """Turns the gradient by the output into that by the input."""
        (rows,) = ctx.saved_tensors
        with torch.no_grad():
            by_rows = ctx.core.gradient(array_of(rows), array_of(upstream), logits=ctx.logits)
        return once(tensor_of(by_rows, rows), (upstream, rows)), None, None, None


def reconcile_tensor(core: Core, p: Tensor, logits: bool) -> Reconciled:
    """The answer for a tensor of (…, labels); the probabilities are a tensor of the same shape."""
    if not p.is_floating_point() or p.ndim == 0:
        raise InputError(f"probabilities are floating-point numbers of (…, labels), not {p.dtype}")
    # Half precision is too coarse near 0 and 1.
    wide = p.float() if p.dtype in (torch.float16, torch.bfloat16) else p
    kept: list[Any] = []
    rows = wide.reshape(-1, p.shape[-1])
    q = _Reconcile.apply(rows, core, logits, kept)
    (found,) = kept
    return Reconciled(
        q.reshape(p.shape),
        found.gain,
        found.gap,
        found.violation,
        found.input_violation,
        found.passes,
        found.trust,
        found.error,
    )
