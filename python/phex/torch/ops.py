"""The operators `phex::marginals` and `phex::relation_loss`, with their derivatives.

Logits are (…, labels) in float32 or float64, `evidence` is int8 of the same shape. `relations` is a key
of `phex.torch.relations`. No output shares memory with an input or with another output.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phex._core import DIFFERENCE_STEP, SCORE_LIMIT, CudaEngine, Engine, Gradients, contradiction
from phex._types import EvidenceCodes, Float64, Scores
from phex.errors import InputError
from phex.tables import read_weights
from phex.torch import cuda
from phex.torch.relations import Relations, find

__all__ = ["array_of", "marginals", "once", "relation_loss", "tensor_of"]

#: Rows that are moved at a time, so that memory stays small.
_CHUNK = 256

_warned = False


def array_of(tensor: Tensor) -> Any:
    """The numbers of a tensor: in place if it is contiguous in CPU memory, else a copy."""
    global _warned
    if tensor.device.type != "cpu" and not _warned:
        _warned = True
        warnings.warn(
            f"no engine on {tensor.device.type} can handle these relations: tensors are copied to the "
            "CPU and back",
            stacklevel=2,
        )
    return tensor.detach().cpu().contiguous().numpy()


def tensor_of(array: Any, like: Tensor) -> Tensor:
    """Numbers as a tensor of the type and on the device of another."""
    return torch.from_numpy(array).to(like)


def _rows(tensor: Tensor) -> Any:
    return array_of(tensor).reshape(-1, tensor.shape[-1])


def _engine(relations: Relations, strengths: Tensor | None) -> Engine:
    return relations.engine(None if strengths is None else array_of(strengths.to(torch.float64)))


def _on_device(relations: Relations, strengths: Tensor | None, logits: Tensor) -> CudaEngine | None:
    """The engine on the GPU of the logits, if they are on one and it has a kernel."""
    if strengths is not None or not logits.is_cuda:
        return None
    return cuda.engine_of(relations.engine(None), logits)


def _check_scores(scores: Scores, relations: Relations) -> None:
    bad = ~(np.abs(scores) <= SCORE_LIMIT)
    if bad.any():
        row, label = (int(at) for at in np.argwhere(bad)[0])
        raise InputError(
            f"row {row}, `{relations.labels[label]}`: the logit is {scores[row, label]}, but must be "
            f"finite and within ±{SCORE_LIMIT:g}; has training diverged? Lower the learning rate or clip"
        )


def _check_losses(found: Gradients, evidence: EvidenceCodes, relations: Relations) -> None:
    bad = np.flatnonzero(np.isposinf(found.losses))
    if len(bad):
        row = int(bad[0])
        raise InputError(contradiction(row, relations.labels, evidence[row].tolist()))


class _Once(torch.autograd.Function):
    """Passes a first derivative on, and raises if it is differentiated again."""

    @staticmethod
    def forward(ctx: Any, derivative: Tensor, *inputs: Tensor) -> Tensor:
        """Returns the derivative; it depends on the inputs, so that autograd calls `backward`."""
        return derivative.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Raises, because there is no second derivative."""
        raise RuntimeError(
            "phex has no second derivatives of relation layers, losses and reconciling: "
            "take gradients without create_graph=True, or detach them"
        )


def once(derivative: Tensor | None, inputs: tuple[Tensor | None, ...]) -> Tensor | None:
    """A first derivative that raises if it is differentiated again."""
    if derivative is None or not torch.is_grad_enabled():
        return derivative
    anchors = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
    passed: Tensor = _Once.apply(derivative, *anchors)
    return passed


@torch.library.custom_op(
    "phex::marginals",
    mutates_args=(),
    schema="(Tensor logits, Tensor? evidence, Tensor? strengths, str relations) -> Tensor",
)
def marginals(
    logits: Tensor, evidence: Tensor | None, strengths: Tensor | None, relations: str
) -> Tensor:
    """The probability of each label, in the shape and type of the logits."""
    compiled = find(relations)
    device = _on_device(compiled, strengths, logits)
    if device is not None:
        return cuda.marginals(device, logits, evidence)
    scores = _rows(logits)
    _check_scores(scores, compiled)
    engine = _engine(compiled, strengths)
    found = engine.marginals(scores, None if evidence is None else _rows(evidence))
    return tensor_of(found, logits).reshape(logits.shape)


@marginals.register_fake
def _(logits: Tensor, evidence: Tensor | None, strengths: Tensor | None, relations: str) -> Tensor:
    return logits.new_empty(logits.shape)


@torch.library.custom_op(
    "phex::marginals_backward",
    mutates_args=(),
    schema="(Tensor gradient, Tensor logits, Tensor? evidence, Tensor? strengths, str relations, "
    "bool by_strengths) -> (Tensor, Tensor)",
)
def _marginals_backward(
    gradient: Tensor,
    logits: Tensor,
    evidence: Tensor | None,
    strengths: Tensor | None,
    relations: str,
    by_strengths: bool,
) -> tuple[Tensor, Tensor]:
    """Turns the gradient by the marginals into those by the logits and, if requested, the strengths."""
    compiled = find(relations)
    device = _on_device(compiled, strengths, logits)
    if device is not None and device.exact:
        return cuda.covariance(device, logits, gradient, evidence), logits.new_empty(0)
    slopes, scores = _rows(gradient), _rows(logits)
    if not np.isfinite(slopes).all():
        row, label = (int(at) for at in np.argwhere(~np.isfinite(slopes))[0])
        raise InputError(
            f"row {row}: the gradient by the marginal of `{compiled.labels[label]}` is "
            f"{slopes[row, label]}; keep a logarithm of marginals away from 0, or use RelationLoss, "
            "which needs none"
        )
    codes = None if evidence is None else _rows(evidence)
    engine = _engine(compiled, strengths)
    product = engine.covariance_product(scores, slopes, codes)
    by_logits = tensor_of(product, logits).reshape(logits.shape)
    if strengths is None or compiled.strengths is None or not by_strengths:
        return by_logits, logits.new_empty(0)
    by_costs = _marginals_by_costs(engine, scores, slopes, codes)
    return by_logits, tensor_of(compiled.strengths.gradient(by_costs), strengths)


@_marginals_backward.register_fake
def _(
    gradient: Tensor,
    logits: Tensor,
    evidence: Tensor | None,
    strengths: Tensor | None,
    relations: str,
    by_strengths: bool,
) -> tuple[Tensor, Tensor]:
    slope = (
        torch.empty_like(strengths) if strengths is not None and by_strengths else logits.new_empty(0)
    )
    return logits.new_empty(logits.shape), slope


def _marginals_by_costs(
    engine: Engine, scores: Scores, slopes: Scores, evidence: EvidenceCodes | None
) -> Float64:
    """The gradient by the cost of each term: minus the change of its violations along the slopes."""
    total = np.zeros(engine.terms)
    for start in range(0, len(scores), _CHUNK):
        part = slice(start, start + _CHUNK)
        slope = slopes[part].astype(np.float64)
        most = np.abs(slope).max(axis=1, initial=0.0)
        step = DIFFERENCE_STEP * slope / np.where(most == 0.0, 1.0, most)[:, np.newaxis]
        codes = None if evidence is None else evidence[part]
        up, down = (
            engine.run(scores[part] + sign * step, codes, expectations=True).expectations
            for sign in (1.0, -1.0)
        )
        if up is not None and down is not None:
            total -= (most / (2.0 * DIFFERENCE_STEP)) @ (up - down)
    return total


def _marginals_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    logits, evidence, strengths, relations = inputs
    ctx.save_for_backward(logits, evidence, strengths)
    ctx.key = relations
    # Keeps the engine alive until the derivative is computed, even if the module is gone.
    ctx.relations = find(relations)


def _marginals_derivative(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    logits, evidence, strengths = ctx.saved_tensors
    wanted = bool(ctx.needs_input_grad[2])
    with torch.no_grad():
        by_logits, by_strengths = torch.ops.phex.marginals_backward(
            gradient, logits, evidence, strengths, ctx.key, wanted
        )
    inputs = (gradient, logits, strengths)
    return once(by_logits, inputs), None, once(by_strengths, inputs) if wanted else None, None


marginals.register_autograd(_marginals_derivative, setup_context=_marginals_context)


@torch.library.custom_op(
    "phex::relation_loss",
    mutates_args=(),
    schema="(Tensor logits, Tensor evidence, Tensor? weights, Tensor? strengths, str relations, "
    "str loss, bool total, bool by_strengths) -> (Tensor, Tensor, Tensor)",
)
def relation_loss(
    logits: Tensor,
    evidence: Tensor,
    weights: Tensor | None,
    strengths: Tensor | None,
    relations: str,
    loss: str,
    total: bool,
    by_strengths: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The weighted loss of each row, or their sum, with the gradients of the sum.

    Gradients are kept for the way back and carry no gradient themselves. That by the strengths is
    empty unless requested; `phex::strengths_gradient` has it for losses of single rows.
    """
    compiled = find(relations)
    device = _on_device(compiled, strengths, logits)
    if device is not None and (loss == "joint" or device.exact):
        there, by_logits = cuda.loss(device, logits, evidence, weights, loss)
        return there.sum() if total else there, by_logits, logits.new_empty(0)
    scores, codes = _rows(logits), _rows(evidence)
    _check_scores(scores, compiled)
    weight = None if weights is None else array_of(weights.to(torch.float64)).reshape(-1)
    if weight is not None:
        weight = read_weights(weight, len(scores))
    engine = _engine(compiled, strengths)
    found = engine.gradients(scores, codes, weight, loss=loss, costs=by_strengths)
    _check_losses(found, codes, compiled)
    losses = found.losses if weight is None else found.losses * weight
    value = tensor_of(np.asarray(losses.sum()) if total else losses, logits)
    by_logits = tensor_of(found.logits, logits).reshape(logits.shape)
    slope = logits.new_empty(0)
    if strengths is not None and compiled.strengths is not None and found.costs is not None:
        slope = tensor_of(compiled.strengths.gradient(found.costs), strengths)
    return value.reshape(() if total else logits.shape[:-1]), by_logits, slope


@relation_loss.register_fake
def _(
    logits: Tensor,
    evidence: Tensor,
    weights: Tensor | None,
    strengths: Tensor | None,
    relations: str,
    loss: str,
    total: bool,
    by_strengths: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    value = logits.new_empty(() if total else logits.shape[:-1])
    slope = (
        torch.empty_like(strengths) if strengths is not None and by_strengths else logits.new_empty(0)
    )
    return value, logits.new_empty(logits.shape), slope


@torch.library.custom_op(
    "phex::strengths_gradient",
    mutates_args=(),
    schema="(Tensor logits, Tensor evidence, Tensor weights, Tensor strengths, str relations, str loss) "
    "-> Tensor",
)
def _strengths_gradient(
    logits: Tensor, evidence: Tensor, weights: Tensor, strengths: Tensor, relations: str, loss: str
) -> Tensor:
    """The gradient by the strengths of a sum of losses with weights of either sign."""
    compiled = find(relations)
    weight = array_of(weights.to(torch.float64)).reshape(-1)
    engine = _engine(compiled, strengths)
    found = engine.gradients(_rows(logits), _rows(evidence), weight, loss=loss, costs=True)
    if compiled.strengths is None or found.costs is None:
        raise InputError("these relations have no strengths to learn")
    return tensor_of(compiled.strengths.gradient(found.costs), strengths)


@_strengths_gradient.register_fake
def _(
    logits: Tensor, evidence: Tensor, weights: Tensor, strengths: Tensor, relations: str, loss: str
) -> Tensor:
    return torch.empty_like(strengths)


def _loss_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    logits, evidence, weights, strengths, relations, loss, total, by_strengths = inputs
    _, by_logits, slope = output
    ctx.mark_non_differentiable(by_logits, slope)
    ctx.save_for_backward(logits, evidence, weights, strengths, by_logits, slope)
    ctx.key, ctx.loss, ctx.total, ctx.is_done = relations, loss, total, total and by_strengths
    ctx.relations = find(relations)


def _loss_derivative(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Any, ...]:
    logits, evidence, weights, strengths, by_logits, slope = ctx.saved_tensors
    inputs = (gradient, logits, strengths)
    by_strengths = None
    with torch.no_grad():
        if ctx.needs_input_grad[3] and ctx.is_done:
            by_strengths = slope * gradient.to(slope)
        elif ctx.needs_input_grad[3]:
            factor = gradient.expand(logits.shape[:-1])
            if weights is not None:
                factor = factor * weights.to(gradient)
            by_strengths = torch.ops.phex.strengths_gradient(
                logits, evidence, factor, strengths, ctx.key, ctx.loss
            )
        product = by_logits * (gradient if ctx.total else gradient.unsqueeze(-1))
    return once(product, inputs), None, None, once(by_strengths, inputs), None, None, None, None


relation_loss.register_autograd(_loss_derivative, setup_context=_loss_context)
