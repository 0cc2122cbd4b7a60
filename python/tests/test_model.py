"""Engines against all 2ⁿ states: marginals, log-partitions, best sets, samples, losses, gradients."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from graphs import named, random_graph, random_rows
from oracle import Oracle

import phex

GRAPHS = named()
EXACT = ["auto", "exact", "paths", "star", "count", "family", "states", "junction", "brute"]
SEEDS = range(25)


def exact_models(graph: phex.Graph) -> list[phex.Model]:
    """The graph compiled by every exact engine that can handle it."""
    models = []
    for method in EXACT:
        try:
            models.append(graph.compile(method))
        except phex.EngineError:
            continue
    return models


def every_graph() -> list[phex.Graph]:
    return [*GRAPHS.values(), *(random_graph(seed) for seed in SEEDS)]


@pytest.mark.parametrize("graph", every_graph(), ids=str)
def test_exact_engines_are_exact(graph: phex.Graph) -> None:
    oracle = Oracle(graph)
    scores, known = random_rows(graph, 6, seed=1)
    models = exact_models(graph)
    assert {"junction", "brute"} <= {model.plan.method for model in models}
    for model in models:
        assert model.plan.exact
        for evidence in (None, known):
            marginals = model.marginals(scores, evidence)
            np.testing.assert_allclose(marginals, oracle.marginals(scores, evidence), atol=1e-12)
            total = oracle.log_partition(scores, evidence)
            np.testing.assert_allclose(model.log_partition(scores, evidence), total, atol=1e-11)
            single = model.marginals(scores.astype(np.float32), evidence)
            assert single.dtype == np.float32
            np.testing.assert_allclose(single, marginals, atol=5e-6)


def test_every_exact_engine_took_some_graph() -> None:
    taken = {model.plan.method for graph in every_graph() for model in exact_models(graph)}
    # `count` takes dense semantics only, which the oracle does not have.
    assert taken == {"paths", "star", "family", "states", "junction", "brute"}


def test_dense_semantics_agree_across_engines() -> None:
    graph = (
        phex.GraphBuilder()
        .hierarchy("animal", ["dog", "cat"], "w=1")
        .hierarchy("dog", ["puppy", "hound"], "w=1")
        .exclude("no-common-descendant", "u=0.5")
        .semantics("dense")
        .build()
    )
    scores = np.random.default_rng(0).normal(0, 2, (5, len(graph)))
    answers = {m.plan.method: m.marginals(scores) for m in exact_models(graph)}
    assert "count" in answers
    for found in answers.values():
        np.testing.assert_allclose(found, answers["brute"], atol=1e-12)


def test_certified_engines_keep_their_word() -> None:
    builder = phex.GraphBuilder().hierarchy("animal", list("abcdefgh"), "w=1")
    graph = builder.exclude("siblings", "w=3").build()
    model = graph.compile(cap=3)
    assert (model.plan.exact, model.plan.approximate) == (False, False)
    scores, known = random_rows(graph, 6, seed=2)
    for evidence in (None, known):
        found = model.infer(scores, evidence)
        gap = np.abs(found.marginals - Oracle(graph).marginals(scores, evidence)).max(axis=1)
        assert (gap <= found.error + 1e-12).all()
        assert (found.error < 1).all()
    with pytest.raises(phex.EngineError, match="is not exact on this model"):
        model.map(scores)


@pytest.mark.parametrize(
    ("method", "options", "tolerance"),
    [
        ("lbp", {"tolerance": 1e-9, "iterations": 1000}, 0.05),
        ("lbp", {"groups": "pairs", "schedule": "flooding", "damping": 0.5, "iterations": 1000}, 0.05),
        ("forest-bp", {}, 0.02),
        ("gibbs", {"sweeps": 2000}, 0.02),
        ("mean-field", {}, 0.2),
        ("trw", {}, 0.2),
    ],
)
def test_approximate_engines_come_close(
    method: str, options: dict[str, object], tolerance: float
) -> None:
    graph = GRAPHS["soft-tree"]
    scores, known = random_rows(graph, 8, seed=3)
    model = graph.compile(method, **options)
    assert not model.plan.exact
    assert model.plan.approximate
    for evidence in (None, known):
        found = model.infer(scores, evidence)
        # `trw` stops when its bound stands, often before its marginals do.
        assert found.converged.all() or method == "trw"
        assert np.isnan(found.error).all()
        assert np.abs(found.marginals - Oracle(graph).marginals(scores, evidence)).max() < tolerance


def test_messages_are_exact_on_trees() -> None:
    graph = phex.GraphBuilder().hierarchy("a", ["b", "c"], "w=1").hierarchy("c", ["d"], "u=1").build()
    scores, known = random_rows(graph, 8, seed=4)
    model = graph.compile("lbp", tolerance=1e-12, iterations=1000)
    expected = Oracle(graph).marginals(scores, known)
    np.testing.assert_allclose(model.marginals(scores, known), expected, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_hold_the_log_partition(seed: int) -> None:
    graph = random_graph(seed)
    scores, _ = random_rows(graph, 4, seed)
    found = graph.compile("lbp").infer(scores, bounds=True)
    total = Oracle(graph).log_partition(scores)
    assert found.bounds.shape == (4, 2)
    assert (found.bounds[:, 0] <= total + 1e-9).all()
    assert (found.bounds[:, 1] >= total - 1e-9).all()


@pytest.mark.parametrize("graph", every_graph(), ids=str)
def test_best_sets_are_ordered_and_complete(graph: phex.Graph) -> None:
    oracle = Oracle(graph)
    scores, known = random_rows(graph, 3, seed=5)
    for model in exact_models(graph):
        for evidence in (None, known):
            everything = oracle.best(scores, 2 ** len(graph), evidence)
            for k in (1, 3, 2 ** len(graph) + 1):
                found = model.top_k(scores, k, evidence)
                assert len(found) == len(scores)
                for sets, wanted in zip(found, everything, strict=True):
                    count = min(k, len(wanted.on))
                    assert sets.on.shape == (count, len(graph))
                    assert sets.on.dtype == np.bool_
                    best = wanted.log_probability[:count]
                    np.testing.assert_allclose(sets.log_probability, best, atol=1e-9)
                    assert (np.diff(sets.log_probability) <= 1e-12).all()
                    assert len({tuple(state) for state in sets.on.tolist()}) == count
            # Scores are continuous: there are no ties for the first place.
            np.testing.assert_array_equal(
                model.map(scores, evidence), [wanted.on[0] for wanted in everything]
            )


def test_all_sets_have_probability_one() -> None:
    graph = GRAPHS["groups"]
    scores, _ = random_rows(graph, 2, seed=6)
    for sets in graph.compile().top_k(scores, 2 ** len(graph)):
        assert np.exp(sets.log_probability).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", GRAPHS)
def test_annealing_finds_the_best_sets(name: str) -> None:
    graph = GRAPHS[name]
    scores, known = random_rows(graph, 3, seed=7)
    model, oracle = graph.compile("anneal"), Oracle(graph)
    for evidence in (None, known):
        wanted = [best.on[0] for best in oracle.best(scores, 1, evidence)]
        np.testing.assert_array_equal(model.map(scores, evidence), wanted)
        weights = oracle.log_weights(scores, evidence).max(axis=1)
        found = [sets.log_probability[0] for sets in model.top_k(scores, 2, evidence)]
        np.testing.assert_allclose(found, weights, atol=1e-9)
    with pytest.raises(phex.EngineError, match="best label sets, not probabilities"):
        model.marginals(scores)


@pytest.mark.parametrize("name", ["soft-tree", "dag", "groups", "one-of-leaves"])
def test_samples_have_the_frequencies_of_states(name: str) -> None:
    graph = GRAPHS[name]
    oracle, count = Oracle(graph), 20_000
    scores, known = random_rows(graph, 2, seed=8)
    for evidence in (None, known):
        samples = graph.compile().sample(scores, count, evidence, seed=3)
        assert samples.shape == (2, count, len(graph))
        assert samples.dtype == np.bool_
        codes = samples @ (1 << np.arange(len(graph)))
        for row, expected in zip(codes, oracle.probabilities(scores, evidence), strict=True):
            found = np.bincount(row, minlength=len(expected)) / count
            # Five standard deviations, and a few draws of states that are hardly ever seen.
            bound = 5 * np.sqrt(expected * (1 - expected) / count) + 5 / count
            assert (np.abs(found - expected) <= bound).all()
            assert (found[expected == 0] == 0).all()


def test_samples_depend_on_the_seed_alone() -> None:
    model = GRAPHS["dag"].compile()
    scores, _ = random_rows(model.graph, 2, seed=9)
    first = model.sample(scores, 50, seed=1)
    np.testing.assert_array_equal(first, model.sample(scores, 50, seed=1))
    assert (first != model.sample(scores, 50, seed=2)).any()
    assert model.sample(scores, 0).shape == (2, 0, len(model))


@pytest.mark.parametrize("graph", every_graph()[::2], ids=str)
def test_infer_answers_everything(graph: phex.Graph) -> None:
    oracle = Oracle(graph)
    scores, known = random_rows(graph, 3, seed=10)
    model = graph.compile()
    found = model.infer(scores, known, entropy=True, expectations=True)
    assert len(found) == 3
    assert found.status == ["answered"] * 3
    assert found.doubt == [None] * 3
    assert found.converged.all()
    np.testing.assert_array_equal(found.error, np.zeros(3))
    np.testing.assert_allclose(found.entropy, oracle.entropy(scores, known), atol=1e-9)
    np.testing.assert_allclose(found.marginals, oracle.marginals(scores, known), atol=1e-12)
    plain = model.infer(scores, known)
    np.testing.assert_array_equal(plain.marginals, model.marginals(scores, known))
    np.testing.assert_array_equal(plain.log_partition, model.log_partition(scores, known))
    assert (plain.entropy, plain.expectations, plain.bounds, plain.standard_errors) == (None,) * 4


def test_rows_without_an_answer_have_a_status() -> None:
    model = phex.GraphBuilder().exclusion(["dog", "cat"]).build().compile()
    scores = np.array([[0.0, 0.0], [np.nan, 0.0], [0.0, 0.0]])
    found = model.infer(scores, [[-1, -1], [-1, -1], [1, 1]])
    assert found.status == ["answered", "bad-score", "impossible"]
    np.testing.assert_array_equal(np.isnan(found.marginals).all(axis=1), [False, True, True])
    assert model.log_partition([[0.0, 0.0]], {"dog": 1, "cat": 1}).tolist() == [-np.inf]
    for call in (model.marginals, model.map, model.sample):
        with pytest.raises(phex.InputError, match="row 0: no legal label set"):
            call([[0.0, 0.0]], evidence={"dog": 1, "cat": 1})


def test_a_model_knows_itself() -> None:
    model = GRAPHS["soft-tree"].compile("junction")
    assert len(model) == 5
    assert repr(model) == "<Model of 5 labels by `junction` (exact)>"
    assert model.plan.why == "requested"
    assert model.plan.operations > 0
    assert model.plan.bytes >= 0
    refused = GRAPHS["dag"].compile("auto").plan.refused
    assert all(len(pair) == 2 for pair in refused)
    again = pickle.loads(pickle.dumps(model))
    assert again.plan.method == "junction"
    scores, _ = random_rows(model.graph, 3, seed=11)
    np.testing.assert_array_equal(again.marginals(scores), model.marginals(scores))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "magic"}, "`magic` is not a method"),
        ({"dampin": 0.5}, "`dampin` is not an option"),
        ({"damping": 1.0}, "damping is 1, but must be 0 or more and below 1"),
        ({"iterations": 0}, "iterations is 0, but must be 1 to 1,000,000"),
        ({"tolerance": -1.0}, "tolerance is -1, but must be 0 or more"),
        ({"chains": 0}, "chains is 0, but must be 1 to 1,000,000"),
        ({"hottest": 1.0}, "hottest is 1, but must be between 0 and 1"),
        ({"schedule": "sometimes"}, "sometimes"),
        ({"groups": "apart"}, "apart"),
        ({"operations": float("nan")}, "operations is NaN, but must be a number above 0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], text: str) -> None:
    with pytest.raises(phex.InputError) as caught:
        GRAPHS["free"].compile(**options)
    assert text in str(caught.value)


def test_a_former_name_of_an_engine_warns() -> None:
    with pytest.warns(FutureWarning, match="`blocks` is now called `forest-bp`") as caught:
        model = GRAPHS["soft-tree"].compile("blocks")
    assert caught[0].filename == __file__
    assert model.plan.method == "forest-bp"


def test_engines_that_do_not_take_a_graph_say_why() -> None:
    reason = r"\n  star: it needs exactly one one-of group; this graph has none"
    with pytest.raises(phex.EngineError, match=reason):
        GRAPHS["soft-tree"].compile("star")
    with pytest.raises(phex.EngineError, match=r"\n  states: some relations are soft"):
        GRAPHS["soft-tree"].compile("states")


def test_engines_over_budget_refuse() -> None:
    with pytest.raises(phex.EngineError, match="junction: "):
        GRAPHS["dag"].compile("junction", operations=1.0)
    with pytest.raises(phex.EngineError, match="best label sets, samples"):
        GRAPHS["dag"].compile("lbp").sample(np.zeros((1, len(GRAPHS["dag"]))))
