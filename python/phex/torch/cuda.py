"""Tensors on a GPU: engines that run there, on the current stream, without copies and without waiting.

Outputs and working memory are tensors, so PyTorch's allocator, streams and CUDA graphs know of them.
Because nothing waits, no row can raise: a logit that is not finite and evidence that contradicts hard
relations make NaN (a joint loss: infinity), and a gradient of 0. Kernels are compiled when a number of
rows is first seen; capture a CUDA graph after one call with the same shape.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import torch
from torch import Tensor

from phex._core import CudaEngine, Engine
from phex.errors import EngineError, InputError

__all__ = ["covariance", "engine_of", "loss", "marginals"]

_lock = threading.Lock()
#: The engine on each device, or None where it has no kernel, by the identity of the engine, which it
#: keeps alive.
_engines: OrderedDict[tuple[int, int], tuple[Engine, CudaEngine | None]] = OrderedDict()
#: Engines that are kept on devices.
_KEPT = 16


def engine_of(engine: Engine, tensor: Tensor) -> CudaEngine | None:
    """The engine on the device of a tensor; None where it has no kernel: tensors are copied then."""
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
    """The tensor, where it is on the device of the logits: on another its address means nothing."""
    if tensor.device != logits.device:
        raise InputError(
            f"the {name} are on `{tensor.device}`, the logits on `{logits.device}`; move them there"
        )
    return tensor


def _known(known: Tensor | None, like: Tensor) -> Tensor | None:
    if known is None:
        return None
    return _rows(_beside(known, like, "targets or evidence").expand(like.shape))


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _enqueue(engine: CudaEngine, task: str, tensors: list[Tensor | None], like: Tensor) -> None:
    rows, double = len(like), like.dtype == torch.float64
    workspace = torch.empty(engine.bytes(task, rows, double), dtype=torch.uint8, device=like.device)
    stream = torch.cuda.current_stream(like.device).cuda_stream
    addresses = [_address(tensor) for tensor in tensors]
    addresses += [0] * (6 - len(addresses))
    place = (workspace.data_ptr(), workspace.numel())
    engine.enqueue(task, addresses, rows, double, place, stream)


def marginals(engine: CudaEngine, logits: Tensor, known: Tensor | None) -> Tensor:
    """The probability of each label, NaN in rows without an answer."""
    scores, evidence = _rows(logits), _known(known, logits)
    found = torch.empty_like(scores)
    log_partition = torch.empty(len(scores), dtype=torch.float64, device=scores.device)
    status = torch.empty(len(scores), dtype=torch.int32, device=scores.device)
    if len(scores):
        _enqueue(engine, "infer", [scores, evidence, found, log_partition, status], scores)
    return found.reshape(logits.shape)


def loss(
    engine: CudaEngine, logits: Tensor, known: Tensor, weights: Tensor | None, name: str
) -> tuple[Tensor, Tensor]:
    """The weighted loss of each row, and the gradient of their sum by the logits."""
    scores, evidence = _rows(logits), _known(known, logits)
    weight = None
    if weights is not None:
        weight = _beside(weights, logits, "weights").detach().to(scores.dtype).reshape(-1).contiguous()
    losses = torch.empty(len(scores), dtype=scores.dtype, device=scores.device)
    gradient = torch.empty_like(scores)
    status = torch.empty(len(scores), dtype=torch.int32, device=scores.device)
    if len(scores):
        _enqueue(engine, name, [scores, evidence, weight, losses, gradient, status], scores)
    return losses.reshape(logits.shape[:-1]), gradient.reshape(logits.shape)


def covariance(engine: CudaEngine, logits: Tensor, slopes: Tensor, known: Tensor | None) -> Tensor:
    """From the gradient by the marginals to that by the logits."""
    scores, evidence = _rows(logits), _known(known, logits)
    slope = _rows(_beside(slopes, logits, "slopes").to(scores.dtype))
    gradient = torch.empty_like(scores)
    status = torch.empty(len(scores), dtype=torch.int32, device=scores.device)
    if len(scores):
        _enqueue(engine, "covariance", [scores, evidence, slope, gradient, status], scores)
    return gradient.reshape(logits.shape)
