"""The PyTorch modules under compile, autocast, data parallelism, pickles, and PyTorch's own checks."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import named, random_rows
from torch import distributed, nn

import phex
from phex.torch import RelationLayer, RelationLoss, ops, relations

GRAPHS = named()
GRAPH = GRAPHS["soft-tree"]


def rows(
    count: int, seed: int = 2, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, torch.Tensor]:
    scores, known = random_rows(GRAPH, count, seed)
    return torch.from_numpy(scores).to(dtype), torch.from_numpy(known)


class Network(nn.Module):
    """A head with relations: what people train."""

    def __init__(self, learn: str | None = None) -> None:
        super().__init__()
        self.head = nn.Linear(4, len(GRAPH))
        self.loss = RelationLoss(GRAPH, learn=learn)
        self.layer = RelationLayer(self.loss)

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.head(inputs)
        return self.loss(logits, targets), self.layer(logits)


def batch(count: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    _, known = rows(count)
    return torch.randn(count, 4, generator=generator), known


def network(learn: str | None = None) -> Network:
    torch.manual_seed(0)
    return Network(learn)


def gradients(module: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> list[torch.Tensor]:
    module.zero_grad()
    loss, probabilities = module(inputs, targets)
    (loss + probabilities.square().sum(-1).mean()).backward()
    return [parameter.grad.clone() for parameter in module.parameters()]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # opcheck's own.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_opcheck(dtype: torch.dtype) -> None:
    logits, known = rows(3, dtype=dtype)
    logits.requires_grad_()
    weights = torch.tensor([1.0, 0.5, 0.0])
    plain, learned = RelationLayer(GRAPH), RelationLayer(GRAPH, learn="kind").to(dtype)
    strengths = learned.strengths
    check = torch.library.opcheck
    for evidence in (None, known):
        check(ops.marginals, (logits, evidence, None, plain._key))
        check(ops.marginals, (logits, evidence, strengths, learned._key))
    for loss in ("joint", "marginal"):
        for total in (True, False):
            check(ops.relation_loss, (logits, known, weights, None, plain._key, loss, total, False))
            arguments = (logits, known, None, strengths, learned._key, loss, total, total)
            check(ops.relation_loss, arguments)
    inner, values = logits.detach(), strengths.detach()
    check(torch.ops.phex.marginals_backward, (inner, inner, known, values, learned._key, True))
    check(torch.ops.phex.marginals_backward, (inner, inner, None, None, plain._key, False))
    check(torch.ops.phex.strengths_gradient, (inner, known, weights, values, learned._key, "joint"))


@pytest.mark.filterwarnings("default::DeprecationWarning")  # PyTorch's own, on the first use of compile.
@pytest.mark.parametrize("learn", [None, "kind"])
def test_compiled_for_any_backend(learn: str | None) -> None:
    module = network(learn)
    for count in (8, 5, 1):
        inputs, targets = batch(count)
        expected = gradients(module, inputs, targets)
        compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
        for found, gradient in zip(gradients(compiled, inputs, targets), expected, strict=True):
            torch.testing.assert_close(found, gradient)
    # Strengths that have changed are seen by what was compiled before.
    if learn:
        inputs, targets = batch()
        with torch.no_grad():
            module.loss.strengths.mul_(2.0)
        torch.testing.assert_close(compiled(inputs, targets)[0], module(inputs, targets)[0])
    torch.compiler.reset()


@pytest.mark.skipif(shutil.which("c++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.filterwarnings("default")  # Inductor's own.
def test_compiled_by_inductor() -> None:
    module = network("kind")
    inputs, targets = batch()
    expected = gradients(module, inputs, targets)
    found = gradients(torch.compile(module, fullgraph=True), inputs, targets)
    for gradient, other in zip(found, expected, strict=True):
        torch.testing.assert_close(gradient, other)
    torch.compiler.reset()


@pytest.mark.filterwarnings("default::DeprecationWarning")
def test_errors_pass_through_compiled_code() -> None:
    loss = torch.compile(RelationLoss(GRAPHS["hard-tree"]), backend="aot_eager", fullgraph=True)
    logits, targets = torch.zeros(2, 5), torch.full((2, 5), -1)
    assert loss(logits, targets).item() == 0.0
    targets[1, 1:3] = 1
    with pytest.raises(phex.InputError, match="row 1"):
        loss(logits, targets)
    torch.compiler.reset()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_and_answered_in_single(dtype: torch.dtype) -> None:
    logits, known = rows(4, dtype=dtype)
    logits.requires_grad_()
    layer, loss = RelationLayer(GRAPH), RelationLoss(GRAPH)
    probabilities, value = layer(logits), loss(logits, known)
    assert probabilities.dtype == value.dtype == torch.float32
    assert torch.equal(probabilities, layer(logits.detach().float()))
    assert torch.equal(value, loss(logits.detach().float(), known))
    (probabilities.sum() + value).backward()
    assert logits.grad.dtype == dtype


def test_autocast() -> None:
    module = network()
    inputs, targets = batch()
    exact, _ = module(inputs, targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module.head(inputs).dtype == torch.bfloat16
        value, probabilities = module(inputs, targets)
    assert value.dtype == probabilities.dtype == torch.float32
    torch.testing.assert_close(value, exact, atol=0.05, rtol=0.0)
    value.backward()
    assert module.head.weight.grad.dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        doubles, known = rows(2)
        assert module.layer(doubles).dtype == torch.float64
        assert module.loss(doubles, known).dtype == torch.float64


def test_copies_pickles_and_lifetime() -> None:
    module = network()
    inputs, targets = batch()
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    for twin in (
        copy.deepcopy(module),
        pickle.loads(pickle.dumps(module)),
        torch.load(file, weights_only=False),
    ):
        for found, expected in zip(twin(inputs, targets), module(inputs, targets), strict=True):
            assert torch.equal(found, expected)
        # Equal modules share one engine.
        assert twin.layer._relations is module.layer._relations


def test_relations_go_with_their_last_module() -> None:
    graph = phex.GraphBuilder().hierarchy("a graph", "of no other test").build()
    logits = torch.zeros(1, 2, requires_grad=True)
    layer = RelationLayer(graph)
    key, answer = layer._key, layer(logits)
    del layer
    gc.collect()
    answer.sum().backward()
    assert logits.grad is not None
    del answer
    gc.collect()
    with pytest.raises(phex.InputError, match="is gone"):
        relations.find(key)


def test_engines_of_old_strengths_are_dropped() -> None:
    loss = RelationLoss(GRAPH, learn="scale")
    logits, known = rows(2)
    for value in range(5):
        with torch.no_grad():
            loss.strengths.fill_(float(value))
        loss(logits, known)
    assert len(loss._relations._engines) == 2
    engine = loss._relations.engine(np.array([4.0]))
    loss(logits, known)
    assert loss._relations.engine(np.array([4.0])) is engine


@pytest.mark.filterwarnings("ignore:no engine on:UserWarning")
def test_data_parallel() -> None:
    # It passes through without devices, and splits batches over those that there are.
    module = network("kind").to("cuda" if torch.cuda.is_available() else "cpu")
    inputs, targets = (tensor.to(module.head.weight.device) for tensor in batch())
    found = gradients(nn.DataParallel(module), inputs, targets)
    for gradient, expected in zip(found, gradients(module, inputs, targets), strict=True):
        torch.testing.assert_close(gradient, expected)
    replica = module._replicate_for_data_parallel()
    assert replica.loss._key == module.loss._key


def _train(rank: int, address: str, folder: str, module: Network) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    module = nn.parallel.DistributedDataParallel(module)
    inputs, targets = batch()
    found = gradients(module, inputs[rank::2], targets[rank::2])
    torch.save(found, Path(folder) / f"{rank}.pt")
    # Threads of gloo may still want the interpreter while it ends, which ends the process by
    # SIGABRT ("terminate called without an active exception"): leave without that ending.
    os._exit(0)


def test_distributed_data_parallel(tmp_path: Path) -> None:
    # The module is sent to the processes, which compile its relations there.
    module = network("kind")
    expected = gradients(module, *batch())
    module.zero_grad()
    address = (tmp_path / "rendezvous").as_uri()
    torch.multiprocessing.spawn(_train, args=(address, str(tmp_path), module), nprocs=2)
    for rank in range(2):
        for gradient, other in zip(torch.load(tmp_path / f"{rank}.pt"), expected, strict=True):
            torch.testing.assert_close(gradient, other)


def test_contiguous_tensors_are_not_copied() -> None:
    logits, _ = rows(3)
    assert ops.array_of(logits).ctypes.data == logits.data_ptr()
    assert ops.array_of(logits.t()).ctypes.data != logits.data_ptr()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_cuda_is_copied_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "_warned", False)
    module = network("kind").cuda()
    inputs, targets = (tensor.cuda() for tensor in batch())
    with pytest.warns(UserWarning, match="cuda are copied"):
        found = gradients(module, inputs, targets)
    expected = gradients(network("kind"), *batch())
    for gradient, other in zip(found, expected, strict=True):
        assert gradient.is_cuda
        torch.testing.assert_close(gradient.cpu(), other, rtol=1e-4, atol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradients(module, inputs, targets)
