"""Reconciling tensors. They carry no gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from phex._core import Reconciler as Core
from phex.errors import InputError
from phex.reconciler import Reconciled
from phex.torch.ops import array_of, tensor_of

__all__ = ["reconcile_tensor"]


def reconcile_tensor(core: Core, p: Tensor, logits: bool) -> Reconciled:
    """The answer for a tensor of (…, labels); the probabilities are a tensor of the same shape."""
    if not p.is_floating_point() or p.ndim == 0:
        raise InputError(f"probabilities are floating-point numbers of (…, labels), not {p.dtype}")
    if p.requires_grad:
        raise InputError("reconciled probabilities have no gradient; pass the tensor detached")
    # Half precision is too coarse near 0 and 1.
    wide = p.float() if p.dtype in (torch.float16, torch.bfloat16) else p
    rows = wide.reshape(-1, p.shape[-1])
    found = core.run(array_of(rows), logits=logits)
    return Reconciled(
        tensor_of(found.probabilities, rows).reshape(p.shape),
        found.gain,
        found.gap,
        found.violation,
        found.input_violation,
        found.passes,
        found.trust,
        found.error,
    )
