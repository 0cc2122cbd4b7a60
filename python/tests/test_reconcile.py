"""Reconciling from Python: the guarantee by enumeration, the forms of input, and bad input."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import phex

ANIMALS = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).exclude("siblings").build()


def random_graph(rng: np.random.Generator) -> phex.Graph:
    """A forest of a few labels, with or without exclusions."""
    builder = phex.GraphBuilder()
    count = int(rng.integers(3, 8))
    for label in range(1, count):
        builder.hierarchy(f"l{rng.integers(0, label)}", f"l{label}")
    if rng.random() < 0.6:
        builder.exclude("siblings")
    return builder.build()


def log_loss(truth: np.ndarray, p: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(-np.where(truth, np.log(p), np.log1p(-p)).sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_legal_truth_makes_a_row_worse(dtype: type) -> None:
    rng = np.random.default_rng(3)
    checked = 0
    for _ in range(60):
        graph = random_graph(rng)
        logits = rng.normal(0.0, 3.0, size=(12, len(graph)))
        p = (1.0 / (1.0 + np.exp(-logits))).astype(dtype)
        answer = phex.Reconciler(graph).run(p)
        q = answer.probabilities
        assert q.dtype == dtype
        states = graph.states()
        for row in range(len(p)):
            for truth in states:
                before = log_loss(truth, p[row].astype(np.float64))
                after = log_loss(truth, q[row].astype(np.float64))
                assert after <= before - answer.gain[row] + 1e-9 * (1.0 + before)
                checked += 1
        assert (q[answer.unchanged] == p[answer.unchanged]).all()
        for parent, child, _ in graph.hierarchy:
            assert (q[:, graph.index(child)] <= q[:, graph.index(parent)]).all()
    assert checked > 5000


def test_the_answer_has_the_form_of_the_input() -> None:
    pandas = pytest.importorskip("pandas")
    table = np.array([[0.5, 0.6, 0.4], [0.9, 0.2, 0.3]])
    expected = phex.reconcile(ANIMALS, table)
    assert expected.shape == (2, 3)
    assert phex.reconcile(ANIMALS, table[0].tolist()) == pytest.approx(expected[0])
    frame = pandas.DataFrame(table[:, [2, 0, 1]], columns=["cat", "animal", "dog"], index=["x", "y"])
    answer = phex.reconcile(ANIMALS, frame)
    assert list(answer.columns) == ANIMALS.labels
    assert list(answer.index) == ["x", "y"]
    assert (answer.to_numpy() == expected).all()
    logits = np.log(table) - np.log1p(-table)
    assert phex.reconcile(ANIMALS, logits, logits=True) == pytest.approx(expected)
    assert (phex.reconcile(ANIMALS, np.asfortranarray(table)) == expected).all()
    assert phex.reconcile(ANIMALS, np.zeros((0, 3))).shape == (0, 3)


def test_a_graph_may_be_a_file(tmp_path: object) -> None:
    path = f"{tmp_path}/g.toml"
    ANIMALS.save(path)
    p = [0.5, 0.6, 0.4]
    assert (phex.reconcile(path, p) == phex.reconcile(ANIMALS, p)).all()


def test_a_compiled_reconciler_explains_itself_and_can_be_copied() -> None:
    reconciler = phex.Reconciler(ANIMALS, tolerance=1e-9)
    plan = phex.Reconciler(ANIMALS).plan
    assert plan.engines == ["family"]
    assert plan.hull
    assert plan.parts[0].labels == 3
    assert "family" in plan.text
    assert "family" in repr(plan)
    assert "3 labels" in repr(reconciler)
    p = [[0.5, 0.6, 0.4]]
    for other in (copy.deepcopy(reconciler), pickle.loads(pickle.dumps(reconciler))):
        assert (other.run(p).probabilities == reconciler.run(p).probabilities).all()


def test_weights_and_losses() -> None:
    graph = phex.GraphBuilder().hierarchy("animal", "dog").build()
    p = [0.2, 0.7]
    logit = np.log(p) - np.log1p(np.negative(p))
    mean = 1.0 / (1.0 + np.exp(-logit.mean()))
    assert phex.reconcile(graph, p) == pytest.approx([mean, mean])
    assert phex.reconcile(graph, p, loss="brier") == pytest.approx([0.45, 0.45])
    weighted = 1.0 / (1.0 + np.exp(-(logit @ [1.0, 3.0]) / 4.0))
    assert phex.reconcile(graph, p, weights={"dog": 3.0}) == pytest.approx([weighted, weighted])
    assert phex.reconcile(graph, p, weights=[1.0, 3.0]) == pytest.approx([weighted, weighted])


def test_zero_and_one_are_allowed() -> None:
    answer = phex.Reconciler(ANIMALS).run([[1.0, 1.0, 0.0], [0.0, 1.0, 0.5]])
    assert answer.unchanged.tolist() == [True, False]
    assert (answer.probabilities[0] == [1.0, 1.0, 0.0]).all()
    assert np.isfinite(answer.probabilities).all()
    assert np.isfinite(answer.gain).all()


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ([[0.5, 1.5, 0.1]], "row 0: 1.5 is not a probability of `dog`"),
        ([[0.5, 0.1, 0.1], [0.5, 0.5, -0.1]], "row 1: -0.1 is not a probability of `cat`"),
        ([[np.nan, 0.1, 0.1]], "row 0: NaN is not a probability of `animal`"),
        ([[0.5, 0.1]], r"only the leaves have columns.*single_label\(\)"),
        ([[0.5, 0.1, 0.1, 0.1]], "4"),
        (["x", "y", "z"], "must be numbers"),
        ([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.1, 0.1, 0.8]], "every row sums to 1 over all 3 labels"),
    ],
)
def test_bad_values_are_named(value: object, part: str) -> None:
    with pytest.raises(phex.InputError, match=part):
        phex.reconcile(ANIMALS, value)


def test_bad_options_and_columns_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(phex.InputError, match="no column for the label `cat`"):
        phex.reconcile(ANIMALS, pandas.DataFrame({"animal": [0.5], "dog": [0.5]}))
    leaves = pandas.DataFrame({"cat": [0.5], "dog": [0.5]})
    with pytest.raises(phex.InputError, match="only the leaves have columns"):
        phex.reconcile(ANIMALS, leaves)
    with pytest.raises(phex.InputError, match="only the leaves have columns"):
        phex.Reconciler(ANIMALS).fit(leaves, [[1, 1, 0]])
    with pytest.raises(phex.InputError, match="`dog` and `cat` exclude each other"):
        phex.Reconciler(ANIMALS, loss="brier")
    soft = phex.GraphBuilder().hierarchy("animal", "dog", phex.Strength.w(1.0)).build()
    with pytest.raises(phex.InputError, match="the Brier score needs hard relations"):
        phex.Reconciler(soft, loss="brier")
    with pytest.raises(phex.InputError, match="no relations"):
        phex.Reconciler(phex.GraphBuilder().label("dog").build())
    with pytest.raises(phex.InputError, match="`logg` is not a loss"):
        phex.Reconciler(ANIMALS, loss="logg")
    with pytest.raises(phex.InputError, match="weights have the shape"):
        phex.Reconciler(ANIMALS, weights=[1.0])
    with pytest.raises(phex.InputError, match="weight of a label is -1"):
        phex.Reconciler(ANIMALS, weights={"dog": -1.0})
    with pytest.raises(phex.InputError, match="no label `dgo`"):
        phex.Reconciler(ANIMALS, weights={"dgo": 1.0})


def test_marginals_points_finished_probabilities_here() -> None:
    model = ANIMALS.compile()
    with pytest.warns(phex.FinishedWarning, match="phex.reconcile"):
        model.marginals([[0.5, 0.6, 0.4]])
    model.marginals([[0.5, 0.6, -0.4]])


def test_tensors_keep_shape_and_type() -> None:
    torch = pytest.importorskip("torch")
    p = torch.rand(2, 4, 3)
    answer = phex.Reconciler(ANIMALS).run(p)
    assert answer.probabilities.shape == p.shape
    assert answer.probabilities.dtype == torch.float32
    assert answer.gain.shape == (8,)
    flat = phex.reconcile(ANIMALS, p.reshape(8, 3).numpy())
    assert (answer.probabilities.reshape(8, 3).numpy() == flat).all()
    half = phex.reconcile(ANIMALS, torch.rand(3).half())
    assert half.dtype == torch.float32
    with pytest.raises(phex.InputError, match="floating-point"):
        phex.reconcile(ANIMALS, torch.tensor([0, 1, 1]))


def test_labelled_rows_calibrate_the_levels() -> None:
    rng = np.random.default_rng(11)
    states = ANIMALS.states()
    truth = states[rng.integers(0, len(states), size=600)].astype(np.int8)
    # Overconfident by a factor of three.
    logits = 3.0 * (2.0 * truth - 1.0 + rng.normal(0.0, 1.2, size=truth.shape))
    p = 1.0 / (1.0 + np.exp(-logits))
    plain = phex.Reconciler(ANIMALS)
    assert plain.parameters is None
    assert plain.report is None
    fitted = plain.fit(p[:400], truth[:400])
    assert plain.parameters is None
    assert fitted.parameters is not None
    assert fitted.report is not None
    assert fitted.report["used"] == 400

    def loss(q: np.ndarray) -> float:
        return float(np.mean([log_loss(t, row) for t, row in zip(truth[400:], q, strict=True)]))

    expected = fitted.run(p[400:]).probabilities
    assert loss(expected) < loss(plain.run(p[400:]).probabilities) < loss(p[400:])
    again = pickle.loads(pickle.dumps(fitted)).run(p[400:]).probabilities
    assert again == pytest.approx(expected, abs=1e-12)
    # A dog that is a cat is illegal: it is left out and counted.
    illegal = truth[:400].copy()
    illegal[:7] = [1, 1, 1]
    report = plain.fit(p[:400], illegal, forms=["temperature"], folds=3).report
    assert report is not None
    assert report["illegal"]["rows"] == 7
    broken = truth[:400].copy()
    broken[5:] = [1, 1, 1]
    with pytest.raises(phex.InputError, match=r"395 rows break hard relations: .* \(395 rows\)"):
        plain.fit(p[:400], broken)
    softmax = np.full((400, 3), 1.0 / 3.0)
    softmax[:, 0], softmax[:, 1] = 0.2, 0.8 - 1.0 / 3.0
    with pytest.raises(phex.InputError, match="every row sums to 1 over all 3 labels"):
        plain.fit(softmax, truth[:400])
    with pytest.raises(phex.InputError, match="`heat` is not a form"):
        plain.fit(p[:400], truth[:400], forms=["heat"])


def random_rows(graph: phex.Graph, dtype: type) -> np.ndarray:
    logits = np.random.default_rng(len(graph)).normal(0.0, 3.0, size=(40, len(graph)))
    return (1.0 / (1.0 + np.exp(-logits))).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("engine", ["closure", "newton"])
def test_no_legal_truth_makes_a_row_of_a_dag_worse(engine: str, dtype: type) -> None:
    builder = phex.GraphBuilder().hierarchy("a", "c").hierarchy("b", ["c", "d"])
    graph = (builder if engine == "closure" else builder.exclusion(["a", "d", "e"])).build()
    reconciler = phex.Reconciler(graph)
    assert reconciler.plan.engines == [engine]
    p = random_rows(graph, dtype)
    answer = reconciler.run(p)
    q = answer.probabilities
    assert (answer.violation == 0.0).all()
    assert not answer.unchanged.all()
    for row in range(len(p)):
        for truth in graph.states():
            before = log_loss(truth, p[row].astype(np.float64))
            after = log_loss(truth, q[row].astype(np.float64))
            assert after <= before - answer.gain[row] + 1e-9 * (1.0 + before)


def test_soft_relations_cost_no_truth_more_than_it_pays() -> None:
    builder = phex.GraphBuilder().hierarchy("a", "b", phex.Strength.w(0.7))
    builder.exclusion(["b", "c"], phex.Strength.w(1.2)).hierarchy("c", "d")
    graph = builder.build()
    a, b, c, d = (graph.index(label) for label in "abcd")
    reconciler = phex.Reconciler(graph)
    assert reconciler.plan.engines == ["newton"]
    assert reconciler.plan.soft == 2
    p = random_rows(graph, np.float64)
    answer = reconciler.run(p)
    checked = 0
    for bits in range(16):
        truth = np.array([bool(bits >> at & 1) for at in range(4)])
        if truth[d] and not truth[c]:
            continue
        cost = 0.7 * (truth[b] and not truth[a]) + 1.2 * (truth[b] and truth[c])
        for row in range(len(p)):
            before, after = log_loss(truth, p[row]), log_loss(truth, answer.probabilities[row])
            assert after <= before - answer.gain[row] + cost + 1e-9 * (1.0 + before)
            checked += 1
    assert checked == 12 * len(p)


def test_no_path_makes_a_row_of_softmax_heads_worse() -> None:
    builder = phex.GraphBuilder().hierarchy("a", ["c", "d"]).hierarchy("b", "e")
    graph = builder.single_label().build()
    logits = np.random.default_rng(5).normal(0.0, 2.0, size=(40, len(graph)))
    p = np.empty_like(logits)
    for level in (graph.roots, graph.leaves):
        columns = [graph.index(label) for label in level]
        exp = np.exp(logits[:, columns])
        p[:, columns] = exp / exp.sum(axis=1, keepdims=True)
    reconciler = phex.Reconciler(graph, loss="categorical")
    assert reconciler.plan.engines == ["categorical"]
    answer = reconciler.run(p)
    for row in range(len(p)):
        for truth in graph.states():
            before, after = (-np.log(table[row][truth]).sum() for table in (p, answer.probabilities))
            assert after <= before - answer.gain[row] + 1e-9 * (1.0 + before)


def test_an_engine_is_used_where_it_fits() -> None:
    builder = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).exclude("siblings")
    graph = builder.hierarchy("red", "wine").build()
    plan = phex.Reconciler(graph, engine="pool").plan
    assert sorted(plan.engines) == ["family", "pool"]
    assert "`pool` is only for forests" in plan.text
    assert "is only" not in phex.Reconciler(graph).plan.text


def test_the_best_legal_sets() -> None:
    graph = phex.GraphBuilder().one_of("kind", ["cat", "dog", "owl"]).hierarchy("dog", "husky").build()
    reconciler = phex.Reconciler(graph)
    p = np.random.default_rng(3).uniform(0.05, 0.95, size=(30, len(graph)))
    q = reconciler.run(p).probabilities
    found = reconciler.best_sets(q)
    states = graph.states()
    for row, best in zip(q, found, strict=True):
        losses = [log_loss(truth, row) for truth in states]
        assert (states[int(np.argmin(losses))] == best).all()
    assert (reconciler.best_sets(q[0]) == found[0]).all()
    # On a hierarchy, they are the labels above one half.
    hierarchy = phex.GraphBuilder().hierarchy("a", ["b", "c"]).hierarchy("b", "d").build()
    reconciler = phex.Reconciler(hierarchy)
    q = reconciler.run(np.random.default_rng(4).uniform(0.05, 0.95, size=(30, 4))).probabilities
    assert (reconciler.best_sets(q) == (q > 0.5)).all()
    with pytest.raises(phex.InputError, match="row 0: 2 is not a probability of `a`"):
        reconciler.best_sets([2.0, 0.5, 0.5, 0.5])
