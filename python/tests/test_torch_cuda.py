"""Relation layers and losses on tensors of a GPU: answers, no copies, streams and graphs."""

import warnings

import numpy as np
import pytest

import phex

torch = pytest.importorskip("torch")
from phex.torch import RelationLayer, RelationLoss  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def graph(one_of: bool = False, hard: bool = False) -> phex.Graph:
    builder = phex.GraphBuilder()
    strength = phex.Strength.hard() if hard else phex.Strength.w(2.0)
    builder.hierarchy("animal", ["dog", "cat", "bird"], strength=strength)
    builder.hierarchy("dog", ["puppy", "hound"], strength=strength)
    builder.exclude("siblings", strength=strength)
    if one_of:
        builder.one_of("species", ["dog", "cat", "bird"])
    return builder.build()


def batch(
    rows: int, labels: int, dtype: torch.dtype, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, labels, generator=generator, dtype=dtype)
    known = torch.randint(-1, 2, (rows, labels), generator=generator)
    known = torch.where(torch.rand(rows, labels, generator=generator) < 0.7, -1, known)
    # Of the species one at most is known to be on and none to be off: no one-of group is contradicted.
    known[:, 1:4] = -1
    known[::3, 2] = 1
    return logits, known


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("one_of", [False, True])
@pytest.mark.parametrize("loss", ["joint", "marginal"])
def test_losses_and_gradients_are_those_of_the_cpu(dtype, one_of, loss):
    relations = graph(one_of)
    module = RelationLoss(relations, loss=loss, reduction="sum")
    logits, known = batch(33, len(relations.labels), dtype)
    ours = logits.cuda().requires_grad_()
    theirs = logits.clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = module(ours, known.cuda())
    expected = module(theirs, known)
    value.backward()
    expected.backward()
    tolerance = 1e-3 if dtype == torch.float32 else 1e-6
    assert abs(value.item() - expected.item()) < tolerance * (1 + abs(expected.item()))
    assert torch.allclose(ours.grad.cpu(), theirs.grad, atol=tolerance)


@pytest.mark.parametrize("hard", [False, True])
def test_layer_and_its_derivative(hard):
    relations = graph(hard=hard)
    layer = RelationLayer(relations)
    logits, _ = batch(20, len(relations.labels), torch.float64, 1)
    ours, theirs = logits.cuda().requires_grad_(), logits.clone().requires_grad_()
    weights = torch.linspace(-1, 1, logits.numel(), dtype=torch.float64).reshape(logits.shape)
    (layer(ours) * weights.cuda()).sum().backward()
    (layer(theirs) * weights).sum().backward()
    assert torch.allclose(layer(ours).cpu(), layer(theirs), atol=1e-9)
    assert torch.allclose(ours.grad.cpu(), theirs.grad, atol=1e-6)


def test_rows_without_an_answer_are_nan_and_leave_the_others_alone():
    layer = RelationLayer(graph(hard=True))
    logits = torch.zeros(3, len(layer.labels), device="cuda")
    logits[1, 2] = float("nan")
    evidence = torch.full((3, len(layer.labels)), -1, dtype=torch.int8, device="cuda")
    evidence[2, 0], evidence[2, 1] = 0, 1  # A dog that is not an animal.
    found = layer(logits, evidence).cpu().numpy()
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1:]).all()


def test_current_stream_and_cuda_graph():
    module = RelationLoss(graph(), reduction="sum")
    logits, known = batch(64, len(module.labels), torch.float32)
    static, target = logits.cuda().requires_grad_(), known.to(torch.int8).cuda()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            static.grad = None
            module(static, target).backward()
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    static.grad = None
    with torch.cuda.graph(captured):
        value = module(static, target)
        value.backward()
    fresh, _ = batch(64, len(module.labels), torch.float32, 9)
    with torch.no_grad():
        static.copy_(fresh)
    captured.replay()
    torch.cuda.synchronize()
    again = fresh.clone().requires_grad_()
    expected = module(again, known)
    expected.backward()
    assert abs(value.item() - expected.item()) < 1e-3 * (1 + abs(expected.item()))
    assert torch.allclose(static.grad.cpu(), again.grad, atol=1e-4)


def test_compiled():
    module = RelationLoss(graph())
    logits, known = batch(16, len(module.labels), torch.float32)
    network = torch.nn.Linear(len(module.labels), len(module.labels)).cuda()

    def step(inputs, targets):
        return module(network(inputs), targets)

    expected = step(logits.cuda(), known.cuda())
    found = torch.compile(step, fullgraph=True)(logits.cuda(), known.cuda())
    assert torch.allclose(found, expected, atol=1e-5)


def test_engines_without_a_kernel_are_copied_with_a_warning():
    module = RelationLoss(graph(), method="junction")
    logits, known = batch(4, len(module.labels), torch.float32)
    value = module(logits.cuda(), known.cuda())
    assert value.is_cuda
    assert torch.isfinite(value)


def test_targets_on_the_cpu_are_refused_before_anything_runs():
    module = RelationLoss(graph(), method="family")
    logits, known = batch(4, len(module.labels), torch.float32)
    with pytest.raises(phex.InputError, match="move them there"):
        module(logits.cuda(), known)
    # The device still answers.
    assert torch.isfinite(module(logits.cuda(), known.cuda()))
