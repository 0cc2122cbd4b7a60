"""Strengths of relations as a parameter of a network."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest
import torch
from graphs import named, random_graph, random_rows
from torch.autograd import gradcheck

import phex
from phex.torch import RelationLayer, RelationLoss

GRAPHS = named()
TIES = ["scale", "kind", "relation"]


def soft_graphs() -> list[phex.Graph]:
    graphs = [random_graph(seed) for seed in range(30)]
    soft = [graph for graph in graphs if any(not s.is_hard for _, _, s in graph.hierarchy)]
    return soft[:4]


def at(
    module: RelationLoss | RelationLayer, values: torch.Tensor, *inputs: torch.Tensor, **more: object
):
    """What a module answers with other strengths."""
    return torch.func.functional_call(module, {"strengths": values}, inputs, more)


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("graph", soft_graphs(), ids=range(4))
def test_derivative_by_strengths(graph: phex.Graph, tie: str) -> None:
    scores, known = map(torch.from_numpy, random_rows(graph, 3, 7))
    scores.requires_grad_()
    weights = torch.tensor([1.0, 0.5, 2.0])
    layer = RelationLayer(graph, learn=tie)
    values = (layer.strengths.detach().double() * 0.8 + 0.1).requires_grad_()
    assert gradcheck(lambda s, v: at(layer, v, s), (scores, values), atol=1e-6)
    assert gradcheck(lambda s, v: at(layer, v, s, known), (scores, values), atol=1e-6)
    for loss in ("joint", "marginal"):
        for reduction in ("mean", "none"):
            module = RelationLoss(graph, loss, reduction, learn=tie)
            work = lambda s, v: at(module, v, s, known, weights=weights)  # noqa: B023, E731
            assert gradcheck(work, (scores, values), atol=1e-6)


def test_values_are_those_of_the_graph() -> None:
    graph = GRAPHS["soft-tree"]
    loss = RelationLoss(graph, learn="kind")
    assert loss.strength_names == ["hierarchy", "exclusion"]
    assert loss.strengths.tolist() == [1.0, 1.0]
    assert loss.strengths.dtype == torch.float32
    scores, known = map(torch.from_numpy, random_rows(graph, 4, 2))
    torch.testing.assert_close(loss(scores, known), RelationLoss(graph)(scores, known))
    with torch.no_grad():
        loss.strengths.copy_(torch.tensor([2.0, 0.5]))
    changed = loss.graph()
    assert changed == phex.Strengths(graph, "kind").graph(np.array([2.0, 0.5]))
    torch.testing.assert_close(loss(scores, known), RelationLoss(changed)(scores, known))
    np.testing.assert_array_equal(
        RelationLayer(loss)(scores).detach().numpy(), loss.model().marginals(scores.numpy())
    )


def test_negative_strengths_count_as_none() -> None:
    graph = GRAPHS["soft-tree"]
    loss = RelationLoss(graph, learn="kind").double()
    scores, known = map(torch.from_numpy, random_rows(graph, 4, 2))
    with torch.no_grad():
        loss.strengths.copy_(torch.tensor([-1.0, 0.0]))
    loss(scores, known).backward()
    # Below 0 nothing changes; at 0 the slope is that from above.
    step, gradient = 1e-6, loss.strengths.grad.clone()
    up = at(loss, torch.tensor([0.0, step], dtype=torch.float64), scores, known)
    slope = (up - loss(scores, known)).item() / step
    assert gradient[0] == 0.0
    assert gradient[1].item() == pytest.approx(slope, rel=1e-4)
    loss.project_()
    assert loss.strengths.tolist() == [0.0, 0.0]
    loss.zero_grad()
    loss(scores, known).backward()
    assert loss.strengths.grad[0] != 0.0


def test_nothing_to_learn_and_bad_values() -> None:
    with pytest.raises(phex.InputError, match="every relation is hard"):
        RelationLoss(GRAPHS["hard-tree"], learn="kind")
    with pytest.raises(phex.InputError, match="tie"):
        RelationLoss(GRAPHS["soft-tree"], learn="all")
    loss = RelationLoss(GRAPHS["soft-tree"], learn="scale")
    with pytest.raises(phex.InputError, match="leave out `learn`"):
        RelationLayer(loss, learn="scale")
    with torch.no_grad():
        loss.strengths.fill_(torch.nan)
    with pytest.raises(phex.InputError, match="`scale` is NaN"):
        loss(torch.zeros(1, 5), torch.zeros(1, 5))


def test_state_copies_and_frozen_strengths() -> None:
    graph = GRAPHS["soft-tree"]
    loss = RelationLoss(graph, learn="kind")
    layer = RelationLayer(loss)
    assert layer.strengths is loss.strengths
    assert [name for name, _ in loss.named_parameters()] == ["strengths"]
    with torch.no_grad():
        loss.strengths.copy_(torch.tensor([2.0, 0.5]))
    other = RelationLoss(graph, learn="kind")
    other.load_state_dict(loss.state_dict())
    file = io.BytesIO()
    torch.save(loss, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    scores, known = map(torch.from_numpy, random_rows(graph, 4, 2))
    for twin in (other, copy.deepcopy(loss), loaded):
        assert torch.equal(twin(scores, known), loss(scores, known))
        assert twin.strengths is not loss.strengths
        assert twin.graph() == loss.graph()
    loss.requires_grad_(False)
    assert not loss(scores, known).requires_grad
    scores.requires_grad_()
    loss(scores, known).backward()
    assert loss.strengths.grad is None
    assert RelationLoss(graph).state_dict() == {}


def test_second_derivatives_by_strengths_are_refused() -> None:
    graph = GRAPHS["soft-tree"]
    scores, known = map(torch.from_numpy, random_rows(graph, 2, 2))
    for reduction in ("sum", "none"):
        loss = RelationLoss(graph, reduction=reduction, learn="kind")
        value = loss(scores, known).sum()
        (gradient,) = torch.autograd.grad(value, loss.strengths, create_graph=True)
        with pytest.raises(RuntimeError, match="phex has no second derivatives"):
            gradient.sum().backward()


def test_a_strength_is_recovered_from_samples() -> None:
    truth = (
        phex.GraphBuilder().hierarchy("dog", "puppy", "w=2.5").exclusion(["dog", "cat"], "w=1").build()
    )
    generator = np.random.default_rng(5)
    scores = generator.normal(0.0, 1.0, (4000, 3))
    states = truth.compile().sample(scores, seed=3)[:, 0]
    start = truth.with_strengths(hierarchy="w=1", exclusion="w=3")
    loss = RelationLoss(start, learn="relation").double()
    optimiser = torch.optim.LBFGS(loss.parameters(), line_search_fn="strong_wolfe")
    logits, targets = torch.from_numpy(scores), torch.from_numpy(states)

    def closure() -> float:
        optimiser.zero_grad()
        value = loss(logits, targets)
        value.backward()
        return value.item()

    optimiser.step(closure)
    loss.project_()
    assert loss.strength_names == ["dog > puppy", "dog | cat"]
    np.testing.assert_allclose(loss.strengths.detach(), [2.5, 1.0], atol=0.2)
