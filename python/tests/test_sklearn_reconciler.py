"""`RelationReconciler` around the classifiers of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import phex
from phex.sklearn import RelationReconciler

GRAPH = (
    phex.GraphBuilder()
    .hierarchy("animal", ["dog", "cat"])
    .hierarchy("dog", ["husky", "poodle"])
    .exclude("siblings")
    .build()
)


def animals(rows: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Features, and a table of labels that obeys the relations."""
    rng = np.random.default_rng(7)
    kinds = ["husky", "poodle", "cat", "animal", None]
    given = rng.integers(0, len(kinds), size=rows)
    centres = np.array([[2.0, 2.0], [2.0, -2.0], [-2.0, 0.0], [0.0, 3.0], [0.0, -3.0]])
    X = centres[given] + rng.normal(0.0, 1.5, size=(rows, 2))
    y = np.zeros((rows, len(GRAPH)), dtype=int)
    for row, kind in enumerate(given):
        name = kinds[kind]
        if name is not None:
            y[row, [GRAPH.index(label) for label in [name, *GRAPH.ancestors(name)]]] = 1
    return X, y


def log_loss(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return -np.where(y == 1, np.log(p), np.log1p(-p)).sum(axis=1)


@pytest.mark.parametrize(
    "estimator",
    [
        MultiOutputClassifier(LogisticRegression()),
        RandomForestClassifier(20, min_samples_leaf=3, random_state=0),
        make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=2000, random_state=0)),
    ],
)
def test_every_row_is_at_least_as_good_as_before(estimator: object) -> None:
    X, y = animals()
    raw = clone(estimator).fit(X[:160], y[:160])
    reconciled = RelationReconciler(FrozenEstimator(raw), GRAPH).fit(X[:160], y[:160])
    p = raw.predict_proba(X[160:])
    if isinstance(p, list):
        p = np.column_stack([one[:, 1] for one in p])
    answer = reconciled.reconcile(X[160:])
    q = reconciled.predict_marginals(X[160:])
    assert (q == answer.probabilities).all()
    before, after = log_loss(y[160:], p), log_loss(y[160:], q)
    inner = ((p > 1e-9) & (p < 1.0 - 1e-9)).all(axis=1)
    assert inner.sum() > 20
    assert (after <= before - answer.gain + 1e-6)[inner].all()
    # A forest that learns from legal rows is consistent already.
    assert answer.input_violation.max() < 1e-9 or (after < before - 1e-3).any()
    trained = RelationReconciler(estimator, GRAPH).fit(X[:160], y[:160])
    assert trained.predict_marginals(X[160:]) == pytest.approx(q, abs=1e-6)


def test_decisions_are_legal_sets() -> None:
    X, y = animals()
    estimator = MultiOutputClassifier(LogisticRegression())
    for decide in ("auto", "consistent"):
        sets = RelationReconciler(estimator, GRAPH, decide=decide).fit(X, y).predict(X)
        legal = {state.tobytes() for state in GRAPH.states()}
        assert all(row.astype(bool).tobytes() in legal for row in sets)
    scores = cross_val_score(RelationReconciler(estimator, GRAPH), X, y, cv=3)
    assert scores.mean() > 0.4


def test_outputs_may_be_some_labels_in_another_order() -> None:
    X, y = animals()
    names = list(reversed(GRAPH.labels))
    order = [GRAPH.index(name) for name in names]
    estimator = MultiOutputClassifier(LogisticRegression())
    expected = RelationReconciler(estimator, GRAPH).fit(X, y).predict_marginals(X)
    raw = clone(estimator).fit(X, y[:, order])
    frozen = RelationReconciler(FrozenEstimator(raw), GRAPH, labels=names).fit(X, y)
    assert frozen.predict_marginals(X) == pytest.approx(expected, abs=1e-9)


def test_one_label_per_row_sums_up() -> None:
    X, _ = animals()
    y = np.where(X[:, 0] > 1.0, np.where(X[:, 1] > 0.0, "husky", "poodle"), "cat")
    reconciled = RelationReconciler(LogisticRegression(), GRAPH).fit(X, y)
    p = dict(zip(reconciled.labels_, reconciled.predict_marginals(X).T, strict=True))
    raw = LogisticRegression().fit(X, y)
    assert np.allclose(np.column_stack([p[name] for name in raw.classes_]), raw.predict_proba(X))
    assert np.allclose(p["dog"], p["husky"] + p["poodle"])
    assert np.allclose(p["animal"], 1.0)
    assert (reconciled.predict(X) == raw.predict(X)).all()
    assert reconciled.score(X, y) > 0.9


def test_what_cannot_be_used_is_explained() -> None:
    X, y = animals()
    with pytest.raises(phex.InputError, match="has no predict_proba"):
        RelationReconciler(MultiOutputClassifier(LinearSVC()), GRAPH).fit(X, y)
    unknown = y.astype(float)
    unknown[3, 1] = np.nan
    with pytest.raises(phex.InputError, match="row 3 has unknown labels"):
        RelationReconciler(MultiOutputClassifier(LogisticRegression()), GRAPH).fit(X, unknown)
    with pytest.raises(phex.InputError, match="`logg` is not a loss"):
        RelationReconciler(MultiOutputClassifier(LogisticRegression()), GRAPH, loss="logg").fit(X, y)


@pytest.mark.parametrize("frozen", [False, True])
def test_held_out_rows_calibrate(frozen: bool) -> None:
    X, y = animals(600)
    estimator = RandomForestClassifier(20, random_state=0)
    train, held_out, test = slice(0, 200), slice(200, 400), slice(400, 600)
    if frozen:
        raw = clone(estimator).fit(X[train], y[train])
        fitted = RelationReconciler(FrozenEstimator(raw), GRAPH, calibrate=True)
        fitted.fit(X[held_out], y[held_out])
    else:
        fitted = RelationReconciler(estimator, GRAPH, calibrate=True, cv=3).fit(X[:400], y[:400])
    plain = RelationReconciler(FrozenEstimator(fitted.estimator_), GRAPH).fit(X[train], y[train])
    assert fitted.reconciler_.report["rows"] == (200 if frozen else 400)
    before = log_loss(y[test], plain.predict_marginals(X[test])).mean()
    after = log_loss(y[test], fitted.predict_marginals(X[test])).mean()
    assert after < before
