"""Tensors on a GPU: engines run there on the current stream, without copies and without waiting.

Outputs and working memory are tensors, so PyTorch's allocator, streams and CUDA graphs manage them.
Because nothing waits, no row can raise an error. A row with a logit that is not finite is NaN, and so is
a row whose evidence contradicts hard relations (its loss is infinite); its gradient is 0. Kernels are
compiled at the first call with a number of rows: call once with the same shape before you capture a CUDA
graph.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypedDict

import torch
from torch import Tensor

from phex._core import CudaEngine, Engine
from phex.errors import EngineError, InputError

__all__ = ["covariance", "engine_of", "loss", "marginals"]

_lock = threading.Lock()
#: The engine on each device, or None if it has no kernel, by the identity of the engine, which is kept
#: alive here.
_engines: OrderedDict[tuple[int, int], tuple[Engine, CudaEngine | None]] = OrderedDict()
#: How many engines are kept on devices.
_KEPT = 16


class _Call(TypedDict):
    """The arguments that every method of `CudaEngine` needs."""

    rows: int
    double: bool
    workspace: tuple[int, int]
    stream: int


def engine_of(engine: Engine, tensor: Tensor) -> CudaEngine | None:
    """The engine on the device of a tensor; None if it has no kernel, so that tensors are copied."""
    if tensor.device.type != "cuda":
        return None
    ordinal = tensor.device.index if tensor.device.index is not None else torch.cuda.current_device()
    name = (id(engine), ordinal)
    with _lock:
        found = _engines.get(name)
        if found is not None and found[0] is engine:
            return found[1]
        try:
            ours: CudaEngine | None = CudaEngine(engine, ordinal)
        except EngineError:
            ours = None
        _engines[name] = (engine, ours)
        while len(_engines) > _KEPT:
            _engines.popitem(last=False)
        return ours


def _rows(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1, tensor.shape[-1]).contiguous()


def _beside(tensor: Tensor, logits: Tensor, name: str) -> Tensor:
    """The tensor, which must be on the device of the logits, because its address is passed on."""
    if tensor.device != logits.device:
        raise InputError(
            f"the {name} are on `{tensor.device}`, the logits on `{logits.device}`; move them there"
        )
    return tensor


def _evidence(evidence: Tensor, logits: Tensor) -> Tensor:
    return _rows(_beside(evidence, logits, "targets or evidence").expand(logits.shape))


def _status(scores: Tensor) -> Tensor:
    return torch.empty(len(scores), dtype=torch.int32, device=scores.device)


def _workspace(size: int, scores: Tensor) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, device=scores.device)


def _is_double(scores: Tensor) -> bool:
    return scores.dtype == torch.float64


def _call(scores: Tensor, workspace: Tensor) -> _Call:
    return {
        "rows": len(scores),
        "double": _is_double(scores),
        "workspace": (workspace.data_ptr(), workspace.numel()),
        "stream": torch.cuda.current_stream(scores.device).cuda_stream,
    }


def marginals(engine: CudaEngine, logits: Tensor, evidence: Tensor | None) -> Tensor:
    """The probability of each label; NaN in rows without an answer."""
    scores = _rows(logits)
    codes = None if evidence is None else _evidence(evidence, logits)
    found, status = torch.empty_like(scores), _status(scores)
    log_partition = torch.empty(len(scores), dtype=torch.float64, device=scores.device)
    if len(scores):
        workspace = _workspace(engine.infer_bytes(len(scores), _is_double(scores)), scores)
        engine.infer(
            scores=scores.data_ptr(),
            evidence=None if codes is None else codes.data_ptr(),
            marginals=found.data_ptr(),
            log_partition=log_partition.data_ptr(),
            status=status.data_ptr(),
            **_call(scores, workspace),
        )
    return found.reshape(logits.shape)


def loss(
    engine: CudaEngine, logits: Tensor, evidence: Tensor, weights: Tensor | None, name: str
) -> tuple[Tensor, Tensor]:
    """The weighted loss of each row (`joint` or `marginal`), and the gradient of their sum."""
    scores, codes = _rows(logits), _evidence(evidence, logits)
    weight = None
    if weights is not None:
        weight = _beside(weights, logits, "weights").detach().to(scores.dtype).reshape(-1).contiguous()
    losses = torch.empty(len(scores), dtype=scores.dtype, device=scores.device)
    gradient, status = torch.empty_like(scores), _status(scores)
    if len(scores):
        joint = name == "joint"
        size = engine.joint_loss_bytes if joint else engine.marginal_loss_bytes
        workspace = _workspace(size(len(scores), _is_double(scores)), scores)
        enqueue = engine.joint_loss if joint else engine.marginal_loss
        enqueue(
            scores=scores.data_ptr(),
            evidence=codes.data_ptr(),
            weights=None if weight is None else weight.data_ptr(),
            losses=losses.data_ptr(),
            gradient=gradient.data_ptr(),
            status=status.data_ptr(),
            **_call(scores, workspace),
        )
    return losses.reshape(logits.shape[:-1]), gradient.reshape(logits.shape)


def covariance(engine: CudaEngine, logits: Tensor, slopes: Tensor, evidence: Tensor | None) -> Tensor:
    """The gradient by the logits, from that by the marginals."""
    scores = _rows(logits)
    codes = None if evidence is None else _evidence(evidence, logits)
    slope = _rows(_beside(slopes, logits, "slopes").to(scores.dtype))
    gradient, status = torch.empty_like(scores), _status(scores)
    if len(scores):
        workspace = _workspace(engine.covariance_bytes(len(scores)), scores)
        engine.covariance(
            scores=scores.data_ptr(),
            evidence=None if codes is None else codes.data_ptr(),
            slopes=slope.data_ptr(),
            gradient=gradient.data_ptr(),
            status=status.data_ptr(),
            **_call(scores, workspace),
        )
    return gradient.reshape(logits.shape)
