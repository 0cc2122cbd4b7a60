"""Losses, gradients, covariances and learned strengths against all 2ⁿ states and differences."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import named, random_graph, random_rows
from oracle import Oracle

import phex
from phex._core import Engine

GRAPHS = named()
SEEDS = range(12)
STEP = 1e-5


def differences(loss, at: np.ndarray) -> np.ndarray:
    """Central differences of a function of an array."""
    gradient = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += STEP
        down[index] -= STEP
        gradient[index] = (loss(up) - loss(down)) / (2 * STEP)
    return gradient


@pytest.mark.parametrize("loss", ["joint", "marginal"])
@pytest.mark.parametrize("seed", SEEDS)
def test_losses_and_gradients(seed: int, loss: str) -> None:
    graph = random_graph(seed)
    oracle, model = Oracle(graph), graph.compile()
    scores, targets = random_rows(graph, 3, seed)
    weights = np.array([1.0, 0.25, 2.0])
    losses, gradient = model.loss_and_grad(scores, targets, weights, loss=loss)
    np.testing.assert_allclose(losses, oracle.losses(scores, targets, loss), atol=1e-11)
    slopes = differences(lambda at: weights @ oracle.losses(at, targets, loss), scores)
    np.testing.assert_allclose(gradient, slopes, atol=1e-8)
    single, single_gradient = model.loss_and_grad(scores.astype(np.float32), targets, weights, loss=loss)
    assert single.dtype == np.float64
    assert single_gradient.dtype == np.float32
    np.testing.assert_allclose(single, losses, atol=1e-4)
    np.testing.assert_allclose(single_gradient, gradient, atol=1e-4)


def test_the_joint_gradient_is_a_difference_of_marginals() -> None:
    model = GRAPHS["groups"].compile()
    scores, targets = random_rows(model.graph, 4, seed=1)
    _, gradient = model.loss_and_grad(scores, targets)
    expected = model.marginals(scores) - model.marginals(scores, targets)
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_rows_without_targets_and_impossible_ones() -> None:
    model = phex.GraphBuilder().exclusion(["dog", "cat"]).build().compile()
    losses, gradient = model.loss_and_grad(np.zeros((3, 2)), [[-1, -1], [1, 1], [1, 0]])
    assert losses.tolist()[:2] == [0.0, np.inf]
    assert losses[2] == pytest.approx(np.log(3))
    np.testing.assert_array_equal(gradient[:2], np.zeros((2, 2)))


def test_one_row_has_one_loss() -> None:
    model = GRAPHS["free"].compile()
    loss, gradient = model.loss_and_grad([0.0, 0.0, 0.0], {"one": 1})
    assert loss == pytest.approx(np.log(2))
    np.testing.assert_allclose(gradient, [-0.5, 0.0, 0.0])


def test_targets_and_scores_are_checked() -> None:
    model = GRAPHS["free"].compile()
    with pytest.raises(phex.InputError, match="targets are needed"):
        model.loss_and_grad(np.zeros((1, 3)), None)
    with pytest.raises(phex.InputError, match=r"row 1: the score of `.*` is NaN"):
        model.loss_and_grad([[0.0, 0.0, 0.0], [0.0, np.inf, 0.0]], np.ones((2, 3)))
    with pytest.raises(phex.PhexError, match="weights"):
        model.loss_and_grad(np.zeros((2, 3)), np.ones((2, 3)), weights=[1.0])
    with pytest.raises(phex.InputError, match="loss: unknown variant `hinge`"):
        model.loss_and_grad(np.zeros((1, 3)), np.ones((1, 3)), loss="hinge")


@pytest.mark.parametrize("seed", SEEDS)
def test_covariance_products(seed: int) -> None:
    graph = random_graph(seed)
    oracle, engine = Oracle(graph), Engine(graph)
    scores, known = random_rows(graph, 3, seed)
    vectors = np.random.default_rng(seed).normal(size=scores.shape)
    for evidence in (None, known):
        found = engine.covariance_product(scores, vectors, evidence)
        for row in range(3):
            p = oracle.probabilities(scores, evidence)[row]
            mean = p @ oracle.on
            covariance = (oracle.on * p[:, np.newaxis]).T @ oracle.on - np.outer(mean, mean)
            np.testing.assert_allclose(found[row], covariance @ vectors[row], atol=1e-11)


@pytest.mark.parametrize("tie", ["scale", "kind", "relation"])
@pytest.mark.parametrize("name", ["soft-tree", "dag", "groups", "rule"])
def test_gradients_by_strengths(name: str, tie: str) -> None:
    graph = GRAPHS[name]
    strengths = phex.Strengths(graph, tie)
    assert len(strengths.names) == len(strengths.values)
    scores, targets = random_rows(graph, 3, seed=2)
    found = Engine(graph).gradients(scores, targets, costs=True)
    # Rows of which nothing is known are left out of the work.
    wanted = np.where((targets >= 0).any(axis=1, keepdims=True), Oracle(graph).marginals(scores), 0.0)
    np.testing.assert_allclose(found.marginals, wanted, atol=1e-12)

    def loss(values: np.ndarray) -> float:
        return float(Oracle(strengths.graph(values)).losses(scores, targets).sum())

    slopes = differences(loss, strengths.values)
    np.testing.assert_allclose(strengths.gradient(found.costs), slopes, atol=1e-7)


def test_strengths_check_what_they_get() -> None:
    strengths = phex.Strengths(GRAPHS["soft-tree"])
    with pytest.raises(phex.PhexError, match="the parameters: 1 entries, but 2 are needed"):
        strengths.graph(np.ones(1))
    with pytest.raises(phex.PhexError, match="`exclusion` is NaN"):
        strengths.graph(np.array([1.0, np.nan]))
    with pytest.raises(phex.PhexError, match="no strength can be learned"):
        phex.Strengths(GRAPHS["hard-tree"])
