"""Gradients of reconciled tensors, by finite differences."""

from __future__ import annotations

import json

import numpy as np
import pytest

import phex

torch = pytest.importorskip("torch")

DAG = phex.GraphBuilder().hierarchy("a", "c").hierarchy("b", ["c", "d"])
GRAPHS: dict[str, phex.Graph] = {
    "pool": phex.GraphBuilder().hierarchy("a", ["b", "c"]).hierarchy("b", "d").build(),
    "closure": DAG.build(),
    "family": phex.GraphBuilder().hierarchy("a", ["b", "c"]).exclude("siblings").build(),
    "newton": phex.GraphBuilder()
    .hierarchy("a", "c")
    .hierarchy("b", ["c", "d"])
    .exclusion(["a", "d", "e"])
    .build(),
    "soft": phex.GraphBuilder()
    .hierarchy("a", ["b"], phex.Strength.w(0.7))
    .exclusion(["b", "c"], phex.Strength.w(1.2))
    .hierarchy("c", ["d"])
    .build(),
    "categorical": phex.GraphBuilder()
    .hierarchy("a", ["c", "d"])
    .hierarchy("b", ["e"])
    .single_label()
    .build(),
}
#: Iterations end where differences are no longer disturbed.
TIGHT = {"tolerance": 1e-13, "passes": 2000}


def rows_of(graph: phex.Graph, seed: int) -> torch.Tensor:
    """Logits of a few rows."""
    draw = np.random.default_rng(seed).normal(0.0, 1.5, size=(6, len(graph)))
    return torch.tensor(draw, dtype=torch.float64)


def heads(graph: phex.Graph, logits: torch.Tensor) -> torch.Tensor:
    """A distribution over the roots, and one over the leaves."""
    p = torch.empty_like(logits)
    for level in (graph.roots, graph.leaves):
        columns = [graph.index(label) for label in level]
        p[:, columns] = torch.softmax(logits[:, columns], dim=1)
    return p


def check(reconciler: phex.Reconciler, rows: torch.Tensor, *, logits: bool) -> None:
    def answer(values: torch.Tensor) -> torch.Tensor:
        q: torch.Tensor = reconciler.run(values, logits=logits).probabilities
        return q

    values = rows.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(answer, (values,), eps=1e-6, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_gradients_agree_with_differences(name: str, logits: bool, weighted: bool) -> None:
    graph = GRAPHS[name]
    weights = None
    if weighted:
        deep = dict.fromkeys(graph.leaves, 0.4)
        weights = deep if name == "categorical" else {graph.labels[0]: 2.5, graph.labels[-1]: 0.3}
    loss = "categorical" if name == "categorical" else "log"
    reconciler = phex.Reconciler(graph, loss=loss, weights=weights, **TIGHT)
    engine = "newton" if name == "soft" or (weighted and name == "family") else name
    assert reconciler.plan.engines == [engine]
    rows = rows_of(graph, 4)
    if not logits:
        rows = heads(graph, rows) if name == "categorical" else torch.sigmoid(rows)
    assert not reconciler.run(rows, logits=logits).unchanged.all()
    check(reconciler, rows, logits=logits)


def test_the_brier_score_has_gradients() -> None:
    reconciler = phex.Reconciler(GRAPHS["closure"], loss="brier")
    check(reconciler, torch.sigmoid(rows_of(reconciler.graph, 5)), logits=False)


def fitted(forms: list[str]) -> phex.Reconciler:
    graph = GRAPHS["family"]
    rng = np.random.default_rng(2)
    states = graph.states()
    truth = states[rng.integers(0, len(states), size=300)].astype(np.int8)
    scores = 3.0 * (2.0 * truth - 1.0 + rng.normal(0.0, 1.2, size=truth.shape))
    plain = phex.Reconciler(graph, **TIGHT)
    return plain.fit(scores, truth, logits=True, forms=forms, noise=0.0)


def test_gradients_go_through_fitted_parameters() -> None:
    for forms in (["levels-bias-trust"], ["levels-bias"], ["trust"]):
        reconciler = fitted(forms)
        assert reconciler.parameters is not None
        assert reconciler.parameters["form"] in [*forms, "identity"]
        rows = rows_of(reconciler.graph, 6)
        check(reconciler, rows, logits=True)
        check(reconciler, torch.sigmoid(rows), logits=False)


def test_fitted_inference_has_no_gradient() -> None:
    plain = fitted(["temperature"])
    assert plain.parameters is not None
    parameters = {**plain.parameters, "form": "infer"}
    plain._core = plain._core.restore(plain.graph, json.dumps(parameters), None, None)
    p = torch.full((2, 3), 0.6, requires_grad=True)
    q = plain.run(p).probabilities
    with pytest.raises(phex.InputError, match="no gradient: the fitted form `infer`"):
        q.sum().backward()


def test_types_and_shapes_are_those_of_the_input() -> None:
    graph = GRAPHS["family"]
    rows = torch.sigmoid(rows_of(graph, 7))
    upstream = torch.tensor([1.0, -0.5, 0.25], dtype=torch.float64)

    def gradient(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
        p = rows.to(dtype).reshape(shape).requires_grad_()
        (phex.reconcile(graph, p) * upstream.float()).sum().backward()
        assert p.grad is not None
        assert p.grad.dtype == dtype
        assert p.grad.shape == shape
        return p.grad.double().reshape(6, 3)

    expected = gradient(torch.float64, (6, 3))
    assert torch.allclose(gradient(torch.float32, (2, 3, 3)), expected, atol=1e-4)
    assert torch.allclose(gradient(torch.float16, (3, 2, 3)), expected, atol=2e-2)
    assert torch.allclose(gradient(torch.bfloat16, (6, 3)), expected, atol=1e-1)


def test_a_loss_trains_through_the_relations() -> None:
    """The loss of a row falls along minus its gradient."""
    graph = GRAPHS["newton"]
    reconciler = phex.Reconciler(graph, **TIGHT)
    truth = torch.tensor(graph.states()[3], dtype=torch.float64)
    logits = rows_of(graph, 8).requires_grad_()

    def loss() -> torch.Tensor:
        q = reconciler.run(logits, logits=True).probabilities
        return torch.nn.functional.binary_cross_entropy(q, truth.expand_as(q))

    before = loss()
    before.backward()
    assert logits.grad is not None
    with torch.no_grad():
        logits -= 0.5 * logits.grad
    assert loss().item() < before.item()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_has_no_derivative_is_said(bad: float) -> None:
    graph = GRAPHS["family"]
    p = torch.tensor([[0.5, 0.6, 0.4]], requires_grad=True)
    q = phex.reconcile(graph, p)
    with pytest.raises(phex.InputError, match="row 0: the gradient by the reconciled probability"):
        q.backward(torch.tensor([[0.0, bad, 0.0]]))
    values = torch.tensor([[0.5, 0.6, 0.4]], dtype=torch.float64, requires_grad=True)
    total = phex.reconcile(graph, values).square().sum()
    (first,) = torch.autograd.grad(total, values, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        first.sum().backward()


def test_tensors_without_a_gradient_stay_so() -> None:
    p = torch.tensor([[0.5, 0.6, 0.4]])
    assert not phex.reconcile(GRAPHS["family"], p).requires_grad
    with torch.no_grad():
        assert not phex.reconcile(GRAPHS["family"], p.requires_grad_()).requires_grad


def test_best_sets_of_tensors() -> None:
    graph = phex.GraphBuilder().one_of("kind", ["cat", "dog", "owl"]).build()
    reconciler = phex.Reconciler(graph)
    q = reconciler.run(torch.tensor([[[0.4, 0.5, 0.3], [0.9, 0.1, 0.2]]])).probabilities
    assert reconciler.best_sets(q).tolist() == [[[False, True, False], [True, False, False]]]
