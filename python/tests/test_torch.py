"""The PyTorch layer and loss: values against all 2ⁿ states, derivatives against differences, errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphs import named, random_graph, random_rows
from oracle import Oracle
from torch.autograd import gradcheck

import phex
from phex.torch import RelationLayer, RelationLoss

GRAPHS = named()
SEEDS = range(8)


def tensors(graph: phex.Graph, rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    scores, known = random_rows(graph, rows, seed)
    return torch.from_numpy(scores).requires_grad_(), torch.from_numpy(known)


def animals() -> phex.Graph:
    return phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).exclude("siblings").build()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", GRAPHS)
def test_layer_answers_as_the_model_does(name: str, dtype: torch.dtype) -> None:
    graph = GRAPHS[name]
    logits, known = tensors(graph, 5, 3)
    logits = logits.detach().to(dtype)
    layer, model = RelationLayer(graph), graph.compile()
    np.testing.assert_array_equal(layer(logits).numpy(), model.marginals(logits.numpy()))
    with_evidence = layer(logits, known)
    assert with_evidence.dtype == dtype
    np.testing.assert_array_equal(with_evidence.numpy(), model.marginals(logits.numpy(), known.numpy()))


@pytest.mark.parametrize("seed", SEEDS)
def test_derivative_of_the_layer(seed: int) -> None:
    graph = random_graph(seed)
    logits, known = tensors(graph, 2, seed)
    layer = RelationLayer(graph)
    np.testing.assert_allclose(
        layer(logits).detach(), Oracle(graph).marginals(logits.detach()), atol=1e-11
    )
    assert gradcheck(layer, (logits,), atol=1e-7)
    assert gradcheck(lambda at: layer(at, known), (logits,), atol=1e-7)


@pytest.mark.parametrize("loss", ["joint", "marginal"])
@pytest.mark.parametrize("seed", SEEDS)
def test_derivative_of_the_loss(seed: int, loss: str) -> None:
    graph = random_graph(seed)
    logits, targets = tensors(graph, 3, seed)
    weights = torch.tensor([1.0, 0.0, 2.5])
    losses = RelationLoss(graph, loss, reduction="none")
    expected = Oracle(graph).losses(logits.detach().numpy(), targets.numpy(), loss)
    np.testing.assert_allclose(losses(logits, targets).detach(), expected, atol=1e-11)
    assert gradcheck(lambda at: losses(at, targets), (logits,), atol=1e-7)
    assert gradcheck(lambda at: losses(at, targets, weights=weights), (logits,), atol=1e-7)
    for reduction in ("mean", "sum"):
        summed = RelationLoss(graph, loss, reduction)
        assert gradcheck(lambda at: summed(at, targets, weights=weights), (logits,), atol=1e-7)  # noqa: B023


@pytest.mark.parametrize("loss", ["joint", "marginal"])
def test_loss_is_that_of_the_model(loss: str) -> None:
    graph = GRAPHS["groups"]
    logits, targets = tensors(graph, 4, 1)
    weights = torch.tensor([1.0, 2.0, 0.0, 0.5])
    expected, gradient = graph.compile().loss_and_grad(
        logits.detach().numpy(), targets.numpy(), weights.numpy(), loss=loss
    )
    total = RelationLoss(graph, loss, "sum")(logits, targets, weights=weights)
    assert total.item() == pytest.approx(expected @ weights.numpy(), abs=1e-12)
    total.backward()
    np.testing.assert_array_equal(logits.grad.numpy(), gradient)
    mean = RelationLoss(graph, loss)(logits, targets, weights=weights)
    assert mean.item() == pytest.approx(total.item() / 4)


def test_targets_of_every_type_and_masks() -> None:
    loss = RelationLoss(animals(), reduction="none")
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    known = torch.tensor([[1, -1, 0], [1, 1, 0], [-1, -1, -1]])
    expected = loss(logits, known)
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.bfloat16):
        assert torch.equal(loss(logits, known.to(dtype)), expected)
    missing = known.double()
    missing[known == -1] = torch.nan
    assert torch.equal(loss(logits, missing), expected)
    for on in (known == 1, (known == 1).to(torch.uint8)):
        assert torch.equal(loss(logits, on, mask=known >= 0), expected)
    assert expected[2] == 0.0
    per_label = torch.tensor([True, False, False])
    only_first = torch.where(per_label, known, -1)
    assert torch.equal(loss(logits, known, mask=per_label), loss(logits, only_first))


def test_shapes_are_restored() -> None:
    graph = GRAPHS["soft-tree"]
    layer, loss = RelationLayer(graph), RelationLoss(graph, reduction="none")
    logits, known = tensors(graph, 12, 5)
    logits = logits.detach()
    flat, losses = layer(logits, known), loss(logits, known)
    cube, cube_known = logits.reshape(2, 3, 2, -1), known.reshape(2, 3, 2, -1)
    assert torch.equal(layer(cube, cube_known), flat.reshape(cube.shape))
    assert torch.equal(loss(cube, cube_known), losses.reshape(2, 3, 2))
    weights = torch.arange(12.0)
    weighted = loss(cube, cube_known, weights=weights.reshape(2, 3, 2))
    torch.testing.assert_close(weighted, (losses * weights).reshape(2, 3, 2))
    assert torch.equal(layer(logits[0], known[0]), flat[0])
    assert torch.equal(loss(logits[0], known[0]), losses[0])
    # One row of evidence for all, and one for each of the first dimension.
    assert torch.equal(layer(logits, known[0]), layer(logits, known[0].expand_as(logits)))
    assert torch.equal(
        layer(cube, cube_known[:, :1, :1]), layer(cube, cube_known[:, :1, :1].expand_as(cube))
    )


def test_any_strides() -> None:
    graph = GRAPHS["soft-tree"]
    layer, loss = RelationLayer(graph), RelationLoss(graph, reduction="none")
    logits, known = tensors(graph, 6, 2)
    plain = logits.detach()
    columns = plain.t().contiguous().t().requires_grad_()
    wide = torch.zeros(12, 2 * len(graph), dtype=torch.float64)
    wide[::2, ::2] = plain
    assert not columns.is_contiguous()
    for strided in (columns, wide[::2, ::2]):
        assert torch.equal(layer(strided), layer(plain))
        assert torch.equal(loss(strided, known.t().contiguous().t()), loss(plain, known))
    (layer(columns)[:, 0].sum() + loss(columns, known).sum()).backward()
    (layer(logits)[:, 0].sum() + loss(logits, known).sum()).backward()
    assert torch.equal(columns.grad, logits.grad)


def test_inputs_are_read_in_place_and_left_alone() -> None:
    graph = GRAPHS["soft-tree"]
    logits, known = tensors(graph, 4, 2)
    logits = logits.detach()
    before = logits.clone()
    answer = RelationLayer(graph)(logits, known)
    assert torch.equal(logits, before)
    answer.zero_()
    assert torch.equal(logits, before)


def test_no_rows() -> None:
    graph = GRAPHS["groups"]
    logits = torch.zeros(0, len(graph), requires_grad=True)
    assert RelationLayer(graph)(logits).shape == logits.shape
    targets = torch.zeros(0, len(graph), dtype=torch.int64)
    assert RelationLoss(graph, reduction="none")(logits, targets).shape == (0,)
    mean = RelationLoss(graph)(logits, targets)
    assert mean.item() == 0.0
    (mean + RelationLayer(graph)(logits).sum()).backward()
    assert logits.grad.shape == logits.shape
    assert RelationLayer(graph)(torch.zeros(2, 0, len(graph))).shape == (2, 0, len(graph))


def test_rows_without_an_answer_are_named() -> None:
    graph = animals()
    loss, layer = RelationLoss(graph), RelationLayer(graph)
    logits, targets = torch.zeros(3, 3), torch.full((3, 3), -1)
    targets[1] = torch.tensor([-1, 1, 1])
    with pytest.raises(phex.InputError, match=r"row 1 \(dog, cat\) contradicts the hard relations"):
        loss(logits, targets)
    with pytest.raises(phex.InputError, match="row 1: no legal label set"):
        layer(logits, targets)
    # What the message advises.
    assert loss(logits, targets, weights=torch.tensor([1.0, 0.0, 1.0])).item() == 0.0
    assert RelationLoss(graph, "marginal")(logits, targets).item() > 0.0
    soft = graph.with_strengths(exclusion="w=5")
    assert RelationLoss(soft)(logits, targets).item() > 1.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 2e30])
def test_bad_logits_are_named(bad: float) -> None:
    graph = animals()
    logits, targets = torch.zeros(3, 3), torch.full((3, 3), -1)
    logits[2, 1] = bad
    for work in (lambda: RelationLoss(graph)(logits, targets), lambda: RelationLayer(graph)(logits)):
        with pytest.raises(phex.InputError, match=r"row 2, `dog`: the logit is"):
            work()


@pytest.mark.parametrize("value", [2, -2, 255, 0.3, float("inf")])
def test_targets_that_say_nothing(value: float) -> None:
    targets = torch.tensor([[-1, -1, -1], [-1, value, -1]])
    with pytest.raises(phex.InputError, match="row 1, `dog`"):
        RelationLoss(animals())(torch.zeros(2, 3), targets)


def test_bad_shapes_types_and_options() -> None:
    graph = animals()
    loss, layer = RelationLoss(graph), RelationLayer(graph)
    logits, targets = torch.zeros(2, 3), torch.zeros(2, 3)
    with pytest.raises(phex.InputError, match="the 3 labels"):
        layer(torch.zeros(2, 4))
    with pytest.raises(phex.InputError, match="floating-point"):
        layer(torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(phex.InputError, match="the evidence has the shape"):
        layer(logits, torch.zeros(2))
    with pytest.raises(phex.InputError, match="the targets have the shape"):
        loss(logits, torch.tensor([0, 1]))
    with pytest.raises(phex.InputError, match="the mask is"):
        loss(logits, targets, mask=torch.ones(2, 3))
    with pytest.raises(phex.InputError, match="the weights have the shape"):
        loss(logits, targets, weights=torch.ones(3))
    with pytest.raises(phex.InputError, match="row 1: the weight is -1"):
        loss(logits, targets, weights=torch.tensor([1.0, -1.0]))
    with pytest.raises(phex.InputError, match="detach"):
        loss(logits, targets, weights=torch.ones(2, requires_grad=True))
    with pytest.raises(phex.InputError, match="`reduction` is 'max'"):
        RelationLoss(graph, reduction="max")
    with pytest.raises(phex.InputError, match="`loss` is 'l2'"):
        RelationLoss(graph, loss="l2")
    with pytest.raises(phex.InputError, match="compiled already"):
        RelationLayer(graph.compile(), method="brute")
    with pytest.raises(phex.InputError, match="give a graph or a model"):
        RelationLayer(["dog"])
    with pytest.raises(phex.InputError):
        RelationLayer(graph, wrong_option=1)


def test_second_derivatives_are_refused() -> None:
    graph = GRAPHS["soft-tree"]
    logits, targets = tensors(graph, 2, 1)
    layer, loss = RelationLayer(graph), RelationLoss(graph)
    for value in (layer(logits)[:, 0].sum(), loss(logits, targets), loss(logits, targets) ** 2):
        (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
        with pytest.raises(RuntimeError, match="phex has no second derivatives"):
            gradient.square().sum().backward()
    assert torch.autograd.grad(loss(logits, targets), logits)[0].requires_grad is False


def test_gradients_that_are_no_numbers() -> None:
    graph = animals()
    logits = torch.tensor([[0.0, 0.0, 0.0], [-2e4, -2e4, -2e4]], requires_grad=True)
    with pytest.raises(phex.InputError, match="row 1: the gradient by the marginal of `animal` is"):
        RelationLayer(graph)(logits).log().sum().backward()


def test_approximate_engines_train_by_the_loss_only() -> None:
    graph = GRAPHS["dag"]
    logits, targets = tensors(graph, 3, 1)
    layer = RelationLayer(graph, method="lbp")
    np.testing.assert_array_equal(
        layer(logits).detach(), graph.compile("lbp").marginals(logits.detach().numpy())
    )
    with pytest.raises(phex.EngineError, match="exact"):
        layer(logits).sum().backward()
    RelationLoss(graph, method="lbp")(logits, targets).backward()
    exact = torch.autograd.grad(RelationLoss(graph)(logits, targets), logits)[0]
    torch.testing.assert_close(logits.grad, exact, atol=0.05, rtol=0.0)
    # Samples know no log-partition, and have a gradient nevertheless.
    value = RelationLoss(graph, method="gibbs", seed=1)(logits, targets)
    assert value.isnan()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_from_a_model() -> None:
    graph = GRAPHS["hard-tree"]
    model = graph.compile("junction")
    layer = RelationLayer(model)
    assert layer._relations.engine(None) is model._engine
    assert layer.labels == graph.labels
    assert layer.graph() == graph
    assert layer.model().plan.method == "junction"
    assert repr(layer) == "RelationLayer(5 labels, method='junction')"
    assert "loss='joint', reduction='mean'" in repr(RelationLoss(graph))
