"""The calibrator of `phex.sklearn`: what comes back, what is fitted, and around which classifiers."""

from __future__ import annotations

import pickle
from typing import Any

import animals
import numpy as np
import pytest

import phex

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from phex.sklearn import RelationCalibrator, label_matrix

TRAINING = animals.rows(300, 0)
CALIBRATION = animals.rows(300, 1)
TEST = animals.rows(500, 2)


def marginals(calibrator: RelationCalibrator, X: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(calibrator.labels_, calibrator.predict_marginals(X).T, strict=True))


def check_consistent(calibrator: RelationCalibrator, X: np.ndarray) -> None:
    p = marginals(calibrator, X)
    for parent, child, _ in animals.graph().hierarchy:
        assert (p[child] <= p[parent] + 1e-9).all()
    for pair in (("husky", "poodle"), ("pet", "wild"), ("dog", "cat"), ("wolf", "fox")):
        assert (p[pair[0]] + p[pair[1]] <= 1.0 + 1e-9).all()


def test_probabilities_of_one_label_come_back() -> None:
    inner = LogisticRegression(max_iter=500).fit(*TRAINING)
    graph, frozen = animals.graph(), FrozenEstimator(inner)
    calibrator = RelationCalibrator(frozen, graph, temperature=1.0, floor=1e-300).fit(*CALIBRATION)
    X = TEST[0]
    assert np.allclose(calibrator.predict_proba(X), inner.predict_proba(X), rtol=1e-9, atol=1e-14)
    assert np.array_equal(calibrator.classes_, inner.classes_)
    assert np.array_equal(calibrator.predict(X), inner.predict(X))
    p = marginals(calibrator, X)
    assert np.allclose(p["animal"], 1.0)
    # What lies above is the sum of what lies below.
    assert np.allclose(p["wild"], p["wolf"] + p["fox"] + p["boar"])
    assert np.allclose(p["pet"], p["husky"] + p["poodle"] + p["cat"])
    check_consistent(calibrator, X)


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8),
    reason="scikit-learn has temperature scaling to compare with from 1.8 on",
)
def test_without_relations_it_is_temperature_scaling() -> None:
    inner = LogisticRegression(max_iter=500).fit(*animals.rows(60, 0, noise=3.0))
    X, y = animals.rows(300, 1, noise=3.0)
    ours = RelationCalibrator(FrozenEstimator(inner), floor=np.finfo(float).eps).fit(X, y)
    peer = CalibratedClassifierCV(FrozenEstimator(inner), method="temperature").fit(X, y)
    beta = peer.calibrated_classifiers_[0].calibrators[0].beta_
    assert ours.temperature_ == pytest.approx(1.0 / beta, rel=1e-3)
    assert np.allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-3)


def test_a_known_temperature_is_found() -> None:
    """Labels drawn at temperature 2.5, half of them known by their kind alone."""
    rng = np.random.default_rng(0)
    scores = rng.normal(0.0, 4.0, (4000, len(animals.LEAVES)))
    weight = np.exp(scores / 2.5)
    reached = np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)
    drawn = (rng.random((4000, 1)) < reached).argmax(axis=1)
    order = np.argsort(animals.LEAVES)
    inner = Fixed().fit(scores[:, order], np.array(animals.LEAVES)[order])
    y = animals.coarse(np.array(animals.LEAVES)[drawn], 0.5, 1)
    calibrator = RelationCalibrator(FrozenEstimator(inner), animals.graph()).fit(scores[:, order], y)
    assert calibrator.temperature_ == pytest.approx(2.5, rel=0.08)


class Fixed(LogisticRegression):
    """Answers with its features, as a network does that was trained elsewhere."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Fixed:
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        weight = np.exp(X - X.max(axis=1, keepdims=True))
        return weight / weight.sum(axis=1, keepdims=True)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[np.asarray(X).argmax(axis=1)]


def test_log_loss_falls() -> None:
    """Naive Bayes is far too sure of itself where features repeat each other."""
    repeat = lambda X: np.hstack([X] * 4)  # noqa: E731
    (X, y), (C, c), (T, t) = (animals.rows(300, seed, noise=2.0) for seed in (0, 1, 2))
    inner = GaussianNB().fit(repeat(X), y)
    calibrator = RelationCalibrator(FrozenEstimator(inner), animals.graph())
    calibrator.fit(repeat(C), animals.coarse(c, 0.5, 0))
    before, after = inner.predict_proba(repeat(T)), calibrator.predict_proba(repeat(T))
    assert log_loss(t, after) < log_loss(t, before) - 0.1
    assert calibrator.temperature_ > 1.5
    check_consistent(calibrator, repeat(T))


SETS = [
    OneVsRestClassifier(LogisticRegression(max_iter=500)),
    OneVsRestClassifier(LinearSVC()),
    MLPClassifier((16,), solver="lbfgs", max_iter=100, random_state=0),
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(20, random_state=0),
    KNeighborsClassifier(),
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Label 0 is present in all training examples")
@pytest.mark.parametrize("inner", SETS, ids=lambda inner: type(inner).__name__)
def test_sets_become_consistent_and_no_worse(inner: Any) -> None:
    graph = animals.graph()
    (X, y), (C, c), (T, t) = (animals.rows(250, seed, noise=1.5) for seed in (0, 1, 2))
    known = [label_matrix(names, graph, unlisted="off").astype(int) for names in (y, c, t)]
    inner = clone(inner).fit(X, known[0])
    calibrator = RelationCalibrator(FrozenEstimator(inner), graph).fit(C, known[1])
    check_consistent(calibrator, T)
    p = calibrator.predict_proba(T)
    assert p.shape == known[2].shape
    if "LinearSVC" not in repr(inner):
        raw = inner.predict_proba(T)
        raw = np.column_stack([one[:, -1] for one in raw]) if isinstance(raw, list) else raw

        def loss(q: np.ndarray) -> float:
            q = np.clip(q, 1e-6, 1 - 1e-6)
            return float(-np.log(np.where(known[2] == 1, q, 1 - q)).sum(axis=1).mean())

        assert loss(p) < loss(raw)


@pytest.mark.parametrize(
    "inner", [LinearSVC(), KNeighborsClassifier(), MLPClassifier((8,), solver="lbfgs", random_state=0)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_classifier_of_one_label(inner: Any) -> None:
    calibrator = RelationCalibrator(inner, animals.graph(), cv=3).fit(*TRAINING)
    check_consistent(calibrator, TEST[0])
    assert np.allclose(calibrator.predict_proba(TEST[0]).sum(axis=1), 1.0)
    assert calibrator.score(*TEST) > 0.7


def test_outputs_by_name() -> None:
    graph = animals.graph()
    labels = ["cat", "pet", "wild"]
    X, y = TRAINING
    columns = [graph.index(label) for label in labels]
    known = label_matrix(y, graph, unlisted="off")
    inner = OneVsRestClassifier(LogisticRegression()).fit(X, known[:, columns].astype(int))
    calibrator = RelationCalibrator(FrozenEstimator(inner), graph, labels=labels, temperature=1.0)
    p = calibrator.fit(X, known).predict_marginals(X)
    logits = np.zeros((len(X), len(graph)))
    q = inner.predict_proba(X)
    logits[:, columns] = np.log(q / (1 - q))
    assert np.allclose(p, graph.compile().marginals(logits))
    with pytest.raises(phex.InputError, match="name them with `labels`"):
        RelationCalibrator(FrozenEstimator(inner), graph).fit(X, known)
    with pytest.raises(phex.InputError, match="`cow` is not a label"):
        RelationCalibrator(FrozenEstimator(inner), graph, labels=["cow"]).fit(X, known)


def test_classes_that_were_never_seen_are_off() -> None:
    """A one-of group has a member that the classifier does not know: it must not take half of all."""
    graph = phex.GraphBuilder().one_of("class", [*animals.LEAVES, "cow"]).build()
    inner = LogisticRegression(max_iter=500).fit(*TRAINING)
    calibrator = RelationCalibrator(FrozenEstimator(inner), graph, temperature=1.0).fit(*CALIBRATION)
    p = marginals(calibrator, TEST[0])
    assert (p["cow"] <= 1e-6).all()
    assert np.allclose(calibrator.predict_proba(TEST[0]), inner.predict_proba(TEST[0]), atol=1e-5)


def test_strengths_are_tuned() -> None:
    """Rows drawn from a soft model: the factor on its costs is found again, and no other is likelier."""
    given = phex.GraphBuilder().hierarchy("a", ["b", "c"], "w=1").exclusion(["b", "c"], "w=1").build()
    true = given.with_strengths(hierarchy="w=3", exclusion="w=0.3")
    scores = np.random.default_rng(0).normal(0.0, 1.0, (6000, 3))
    known = true.compile().sample(scores, seed=1)[:, 0].astype(int)
    inner = Odds().fit(scores, known)
    calibrator = RelationCalibrator(FrozenEstimator(inner), given, strength="tune", temperature=1.0)
    calibrator.fit(scores, known)
    hierarchy = {strength.cost for _, _, strength in calibrator.graph_.hierarchy}.pop()
    exclusion = calibrator.graph_.exclusions[0][1].cost
    assert hierarchy == pytest.approx(3.0, rel=0.1)
    assert exclusion == pytest.approx(0.3, abs=0.15)
    grid = RelationCalibrator(
        FrozenEstimator(inner), given, strength=["hard", "w=3", "w=1", "w=0.1"], temperature=1.0
    ).fit(scores, known)
    assert calibrator.calibration_loss_ < grid.calibration_loss_
    assert not grid.graph_.is_hard
    both = RelationCalibrator(FrozenEstimator(inner), given, strength="tune").fit(scores, known)
    assert both.temperature_ == pytest.approx(1.0, rel=0.1)
    assert both.calibration_loss_ <= calibrator.calibration_loss_ + 1e-9
    hard = given.with_strengths(hierarchy="hard", exclusion="hard")
    with pytest.raises(phex.InputError, match="every relation is hard"):
        RelationCalibrator(FrozenEstimator(inner), hard, strength="tune").fit(scores, known)


class Odds(LogisticRegression):
    """Answers with its features as log-odds of sets."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Odds:
        self.classes_, self.n_features_in_ = np.arange(y.shape[1]), X.shape[1]
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        return (np.asarray(X) > 0).astype(int)


def test_rows_that_calibrate_were_not_trained_on() -> None:
    """A tree that knows its rows by heart is far too sure, which only left-out rows show."""
    X, y = animals.rows(300, 3, noise=2.5)
    T, t = animals.rows(500, 4, noise=2.5)
    tree = DecisionTreeClassifier(random_state=0)
    honest = RelationCalibrator(tree, animals.graph()).fit(X, y)
    by_heart = RelationCalibrator(FrozenEstimator(clone(tree).fit(X, y)), animals.graph()).fit(X, y)
    assert log_loss(t, honest.predict_proba(T)) < log_loss(t, by_heart.predict_proba(T)) - 1.0
    again = RelationCalibrator(tree, animals.graph(), cv=KFold(5, shuffle=True, random_state=0)).fit(
        X, y
    )
    assert again.temperature_ == pytest.approx(honest.temperature_, rel=0.3)


def test_coarse_rows_calibrate_but_do_not_train() -> None:
    X, y = animals.rows(300, 5)
    some = animals.coarse(y, 0.4, 0)
    calibrator = RelationCalibrator(LogisticRegression(max_iter=500), animals.graph()).fit(X, some)
    fine = some == y
    peer = LogisticRegression(max_iter=500).fit(X[fine], some[fine])
    assert np.array_equal(calibrator.estimator_.coef_, peer.coef_)
    known = label_matrix(some, animals.graph())
    with pytest.raises(phex.InputError, match="row 0 has unknown labels"):
        RelationCalibrator(LogisticRegression(), animals.graph()).fit(X, known)
    frozen = RelationCalibrator(FrozenEstimator(peer), animals.graph()).fit(X, known)
    assert frozen.multilabel_
    assert frozen.predict(X).shape == known.shape


def test_sets_are_trained_by_cross_fitting() -> None:
    graph = animals.graph()
    X, y = TRAINING
    calibrator = RelationCalibrator(RandomForestClassifier(10, random_state=0), graph, cv=3)
    calibrator.fit(X, [[leaf] for leaf in y])
    check_consistent(calibrator, TEST[0])
    assert calibrator.score(TEST[0], label_matrix(TEST[1], graph, unlisted="off")) > 0.4


def test_searches_pipelines_and_pickle() -> None:
    X, y = TRAINING
    calibrator = RelationCalibrator(LogisticRegression(max_iter=500), animals.graph(), cv=3)
    search = GridSearchCV(
        calibrator, {"estimator__C": [0.01, 1.0]}, cv=2, scoring="neg_log_loss", error_score="raise"
    ).fit(X, y)
    assert search.best_params_ == {"estimator__C": 1.0}
    pipeline = make_pipeline(StandardScaler(), calibrator).fit(X, y)
    again = pickle.loads(pickle.dumps(pipeline))
    assert np.array_equal(again.predict_proba(X), pipeline.predict_proba(X))
    assert np.array_equal(
        clone(calibrator).fit(X, y).predict_proba(X), calibrator.fit(X, y).predict_proba(X)
    )


def test_weights_count_rows() -> None:
    X, y = CALIBRATION
    inner = FrozenEstimator(LogisticRegression(max_iter=500).fit(*TRAINING))
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = RelationCalibrator(inner, animals.graph()).fit(X, y, sample_weight=weights)
    repeated = RelationCalibrator(inner, animals.graph()).fit(
        X.repeat(weights, axis=0), y.repeat(weights)
    )
    assert weighted.temperature_ == pytest.approx(repeated.temperature_, rel=1e-6)


def test_messages_name_what_is_wrong() -> None:
    X, y = CALIBRATION
    graph = animals.graph()
    inner = FrozenEstimator(LogisticRegression(max_iter=500).fit(*TRAINING))
    both = label_matrix(y, graph)
    both[4] = 1
    with pytest.raises(phex.InputError, match=r"row 4 .* contradicts the hard relations"):
        RelationCalibrator(inner, graph).fit(X, both)
    for parameter in (
        {"temperature": "hot"},
        {"temperature": -1.0},
        {"strength": []},
        {"floor": 0.0},
        {"decide": "guess"},
    ):
        with pytest.raises(phex.InputError, match=next(iter(parameter))):
            RelationCalibrator(inner, graph, **parameter).fit(X, y)
    other = phex.GraphBuilder().one_of("class", ["cat", "fox"]).build()
    with pytest.raises(phex.InputError, match="'boar', which is not a label"):
        RelationCalibrator(inner, other).fit(X, np.where(X[:, 0] > 0, "cat", "fox"))
