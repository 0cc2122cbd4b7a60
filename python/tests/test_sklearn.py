"""The classifier of `phex.sklearn`: training, answers, and its place in scikit-learn."""

from __future__ import annotations

import json
import pickle
import subprocess
import warnings
from pathlib import Path
from typing import Any

import animals
import numpy as np
import pytest
from command import command_line

import phex

pytest.importorskip("sklearn")

import joblib
import pandas
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from phex.sklearn import RelationClassifier, label_matrix


@pytest.fixture(scope="module")
def trained() -> tuple[RelationClassifier, np.ndarray, np.ndarray]:
    X, y = animals.rows(400, 0)
    return RelationClassifier(animals.graph(), random_state=0).fit(X, y), X, y


def test_without_relations_it_is_a_softmax() -> None:
    X, y = animals.rows(400, 0, noise=3.0)
    classifier = RelationClassifier(weight_decay=0.0, learning_rate=0.03, random_state=0).fit(X, y)
    p = classifier.predict_proba(X)
    logits = classifier.decision_logits(X).astype(np.float64)
    softmax = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert np.allclose(p, softmax / softmax.sum(axis=1, keepdims=True), atol=1e-12)
    assert np.allclose(p.sum(axis=1), 1.0, atol=1e-12)
    # The same optimum as that of another solver.
    peer = LogisticRegression(C=np.inf, max_iter=2000).fit(X, y)
    assert abs(log_loss(y, p) - log_loss(y, peer.predict_proba(X))) < 0.002
    assert classifier.classes_.tolist() == sorted(animals.LEAVES)
    assert np.array_equal(classifier.predict(X), classifier.classes_[p.argmax(axis=1)])


def test_two_classes_have_one_decision() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], np.array(["ash", "elm"])[y[y > 0] - 1]
    classifier = RelationClassifier(random_state=0).fit(X, y)
    decision = classifier.decision_function(X)
    logits = classifier.decision_logits(X).astype(np.float64)
    assert np.allclose(decision, logits[:, 1] - logits[:, 0], atol=1e-9)
    assert np.array_equal(classifier.predict(X) == "elm", decision > 0)


def test_coarse_rows_help() -> None:
    X, y = animals.rows(1500, 1, idle=40)
    few = animals.coarse(y, 0.95, 2)
    fine = few == y
    test, truth = animals.rows(1000, 3, idle=40)
    kinds = animals.coarse(truth, 1.0, 0)
    graph = animals.taxonomy()
    both = RelationClassifier(graph, random_state=0).fit(X, few)
    alone = RelationClassifier(graph, random_state=0).fit(X[fine], few[fine])
    assert both.score(test, kinds) > alone.score(test, kinds) + 0.05
    assert both.score(test, truth) > alone.score(test, truth) - 0.03


def test_marginals_agree_with_hard_relations(trained: tuple) -> None:
    classifier, X, _ = trained
    p = dict(zip(classifier.labels_, classifier.predict_marginals(X).T, strict=True))
    for parent, child, _ in classifier.graph_.hierarchy:
        assert (p[child] <= p[parent] + 1e-9).all()
    assert (p["dog"] + p["cat"] <= p["pet"] + 1e-9).all()
    # The same as what the command line would say, which answers in singles.
    singles = classifier.head_.probabilities(X.astype(np.float32))
    assert np.allclose(classifier.predict_marginals(X), singles, atol=1e-5)


def test_classes_are_leaves_a_group_or_chosen(trained: tuple) -> None:
    classifier, X, y = trained
    assert classifier.classes_.tolist() == sorted(animals.LEAVES)
    best = classifier.predict_proba(X).argmax(axis=1)
    assert np.array_equal(classifier.predict(X), classifier.classes_[best])
    kinds = RelationClassifier(animals.graph(), classes=["wild", "pet"], random_state=0).fit(X, y)
    assert kinds.classes_.tolist() == ["pet", "wild"]
    builder = phex.GraphBuilder().hierarchy("dog", "puppy").one_of("kind", ["dog", "cat"])
    grouped = RelationClassifier(builder.build(), epochs=2).fit(X, np.where(X[:, 0] > 0, "dog", "cat"))
    assert grouped.classes_.tolist() == ["cat", "dog"]
    assert np.allclose(grouped.predict_proba(X).sum(axis=1), 1.0)
    named = RelationClassifier(builder.build(), epochs=2, classes="kind").fit(X, ["puppy"] * len(X))
    assert named.classes_.tolist() == ["cat", "dog"]


def test_back_off_answers_as_exactly_as_it_is_sure(trained: tuple) -> None:
    _, X, y = trained
    careful = RelationClassifier(animals.graph(), decide="back-off", threshold=0.9, random_state=0)
    careful.fit(X, y)
    assert careful.classes_.tolist() == sorted(animals.graph().labels)
    p = careful.predict_marginals(X)
    place = {label: at for at, label in enumerate(careful.labels_)}
    answers = careful.predict(X)
    chosen = np.array([place[label] for label in answers])
    reached = p[np.arange(len(X)), chosen] >= 0.9
    assert reached.all()
    graph = animals.graph()
    for row, answer in enumerate(answers[:100]):
        assert not any(p[row, place[child]] >= 0.9 for child in graph.children(answer))
    assert len(set(answers)) > len(animals.LEAVES)


@pytest.mark.parametrize("decide", ["threshold", "best", "back-off", "consistent"])
def test_sets_are_closed_upwards(decide: str) -> None:
    X, y = animals.rows(300, 5)
    graph = animals.graph()
    known = label_matrix(y, graph, unlisted="off")
    classifier = RelationClassifier(graph, decide=decide, random_state=0).fit(X, known)
    sets = classifier.predict(X)
    assert sets.shape == known.shape
    for parent, child, _ in graph.hierarchy:
        assert (sets[:, graph.index(parent)] >= sets[:, graph.index(child)]).all()
    # A threshold counts rows of which no leaf is sure as wrong.
    assert classifier.score(X, known) > 0.5
    assert classifier.score(X, known) == accuracy_score(known, sets)


def test_forms_of_y_say_the_same() -> None:
    X, y = animals.rows(120, 6)
    graph = animals.graph()
    matrix = label_matrix(y, graph, unlisted="off")
    frame = pandas.DataFrame(matrix, columns=graph.labels)[graph.labels[::-1]]
    reference = RelationClassifier(graph, epochs=3, random_state=0).fit(X, matrix)
    forms = [[[leaf] for leaf in y], frame, matrix.astype(float), matrix.tolist(), matrix.astype(bool)]
    for form in forms:
        other = RelationClassifier(graph, epochs=3, random_state=0).fit(X, form)
        assert np.array_equal(other.predict_proba(X), reference.predict_proba(X))


def test_unknown_entries_are_no_evidence() -> None:
    X, y = animals.rows(200, 7)
    graph = animals.graph()
    names = RelationClassifier(graph, epochs=3, random_state=0).fit(X, y)
    table = np.full((len(y), len(graph)), np.nan)
    table[np.arange(len(y)), [graph.index(leaf) for leaf in y]] = 1.0
    unknown = RelationClassifier(graph, epochs=3, random_state=0).fit(X, table)
    assert np.array_equal(names.predict_marginals(X), unknown.predict_marginals(X))
    minus = RelationClassifier(graph, epochs=3, random_state=0).fit(X, np.nan_to_num(table, nan=-1))
    assert np.array_equal(minus.predict_marginals(X), unknown.predict_marginals(X))


def test_score_takes_what_lies_below(trained: tuple) -> None:
    classifier, X, y = trained
    assert classifier.score(X, y) == accuracy_score(y, classifier.predict(X))
    assert classifier.score(X, np.full(len(y), "animal")) == 1.0
    assert classifier.score(X, animals.coarse(y, 0.5, 0)) >= classifier.score(X, y)
    weights = (classifier.predict(X) == y).astype(float)
    assert classifier.score(X, y, sample_weight=weights) == 1.0


def test_same_seed_same_bits() -> None:
    X, y = animals.rows(200, 8)
    make = lambda seed: RelationClassifier(animals.graph(), hidden=(16,), dropout=0.2, random_state=seed)  # noqa: E731
    first, again, other = (make(seed).fit(X, y).predict_proba(X) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_weights_of_rows() -> None:
    X, y = animals.rows(200, 9)
    graph = animals.graph()
    fit = lambda weights: RelationClassifier(graph, random_state=0).fit(X, y, sample_weight=weights)  # noqa: E731
    kept = np.arange(len(y)) % 2 == 0
    half = RelationClassifier(graph, random_state=0).fit(X[kept], y[kept])
    assert np.array_equal(fit(kept.astype(float)).predict_proba(X), half.predict_proba(X))
    assert np.allclose(fit(np.full(len(y), 7.0)).predict_proba(X), fit(None).predict_proba(X))
    with pytest.raises(phex.InputError, match="row 3: -1"):
        fit(np.where(np.arange(len(y)) == 3, -1.0, 1.0))


def test_weights_of_classes() -> None:
    X, y = animals.rows(300, 10, noise=3.0)
    graph = animals.graph()
    plain = RelationClassifier(graph, random_state=0).fit(X, y)
    heavy = RelationClassifier(graph, class_weight={"cat": 20.0}, random_state=0).fit(X, y)
    assert (heavy.predict(X) == "cat").sum() > 1.5 * (plain.predict(X) == "cat").sum()
    rare = np.r_[np.flatnonzero(y != "cat"), np.flatnonzero(y == "cat")[:6]]
    balanced = RelationClassifier(graph, class_weight="balanced", random_state=0).fit(X[rare], y[rare])
    without = RelationClassifier(graph, random_state=0).fit(X[rare], y[rare])
    assert (balanced.predict(X) == "cat").sum() > (without.predict(X) == "cat").sum()
    with pytest.raises(phex.InputError, match="'cow' is not a class"):
        RelationClassifier(graph, class_weight={"cow": 2.0}).fit(X, y)


def test_strengths_are_set_and_learned() -> None:
    X, y = animals.rows(200, 11)
    soft = RelationClassifier(animals.graph(), strength="u=0.5", epochs=5, random_state=0).fit(X, y)
    assert {strength.cost for _, _, strength in soft.graph_.hierarchy} == {2.0}
    assert not soft.graph_.is_hard
    learned = RelationClassifier(
        animals.graph("u=0.5"), learn_strengths="kind", epochs=5, random_state=0
    ).fit(X, label_matrix(y, animals.graph(), unlisted="off"))
    assert {strength.cost for _, _, strength in learned.graph_.hierarchy} != {2.0}


def test_settings_reach_the_trainer() -> None:
    X, y = animals.rows(100, 12)
    classifier = RelationClassifier(
        animals.graph(),
        hidden=[12],
        norm="layer",
        schedule="linear",
        warm_up=2,
        epochs=3,
        validation_fraction=0.2,
        patience=5,
        settings={"optimiser": {"average": 0.9, "rule": {"kind": "sgd", "momentum": 0.5}}},
        random_state=0,
    ).fit(X, y)
    config = json.loads(classifier.head_.config)
    assert config["head"]["hidden"] == [12]
    assert config["head"]["norm"] == "layer"
    assert config["optimiser"]["average"] == 0.9
    assert config["optimiser"]["rule"] == {"kind": "sgd", "momentum": 0.5}
    assert config["optimiser"]["schedule"]["kind"] == "linear"
    assert [stage["rows"] for stage in config["stages"]] == ["most-specific", "all"]
    assert len(classifier.history_) == classifier.n_iter_ == 5
    assert all("validation_loss" in record for record in classifier.history_)
    with pytest.raises(ValueError, match="averag"):
        RelationClassifier(settings={"optimiser": {"averag": 0.9}}).fit(X, y)


def test_rows_that_know_a_leaf_go_first_where_some_do() -> None:
    X, y = animals.rows(100, 12)
    coarse = np.where(np.arange(100) % 5 == 0, y, "animal")

    def stages(y: np.ndarray, **parameters: Any) -> list[tuple[str, int]]:
        classifier = RelationClassifier(animals.graph(), random_state=0, **parameters)
        config = json.loads(classifier.fit(X, y).head_.config)
        return [(stage["rows"], stage["epochs"]) for stage in config["stages"]]

    assert stages(coarse, epochs=2) == [("most-specific", 5), ("all", 2)]
    assert stages(coarse, epochs=2, warm_up=0) == stages(y, epochs=2) == [("all", 2)]
    given = {"stages": [{"name": "alone", "epochs": 3}]}
    assert stages(coarse, settings=given) == [("all", 3)]
    assert stages(coarse, epochs=2, settings=given) == [("all", 2)]


def test_missing_features_stand_at_their_mean() -> None:
    X, y = animals.rows(200, 13)
    holes = X.copy()
    holes[::3, 2] = np.nan
    classifier = RelationClassifier(animals.graph(), random_state=0).fit(holes, y)
    filled = np.where(np.isnan(holes), np.nanmean(holes.astype(np.float32), axis=0), holes)
    assert np.allclose(
        classifier.predict_marginals(holes), classifier.predict_marginals(filled), atol=1e-5
    )


def test_pandas_names_are_kept_and_checked() -> None:
    X, y = animals.rows(100, 14)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    classifier = RelationClassifier(animals.graph(), random_state=0).fit(frame, pandas.Series(y))
    assert classifier.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame[list("fedcba")])


def test_pipelines_and_searches() -> None:
    X, y = animals.rows(240, 15)
    y = animals.coarse(y, 0.3, 0)
    graph = animals.graph()
    pipeline = make_pipeline(StandardScaler(), RelationClassifier(graph, epochs=10, random_state=0))
    grid = {
        "relationclassifier__strength": ["hard", "u=1"],
        "relationclassifier__weight_decay": [0.0, 0.1],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    assert set(search.predict(X)) <= set(animals.LEAVES)
    known = label_matrix(y, graph)
    scores = cross_val_score(RelationClassifier(graph, epochs=10, random_state=0), X, known, cv=3)
    assert (scores > 0.3).all()


def test_clone_and_pickle(trained: tuple, tmp_path: Path) -> None:
    classifier, X, y = trained
    copy = clone(classifier)
    assert copy.get_params()["relations"] == classifier.relations
    assert np.array_equal(copy.fit(X, y).predict_marginals(X), classifier.predict_marginals(X))
    again = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(again.predict_marginals(X), classifier.predict_marginals(X))
    joblib.dump(classifier, tmp_path / "model")
    assert np.array_equal(joblib.load(tmp_path / "model").predict(X), classifier.predict(X))


def test_relations_from_a_file(tmp_path: Path) -> None:
    X, y = animals.rows(60, 16)
    animals.graph().save(tmp_path / "animals.toml")
    for path in (tmp_path / "animals.toml", str(tmp_path / "animals.toml")):
        assert RelationClassifier(path, epochs=1).fit(X, y).graph_ == animals.graph()
    with pytest.raises(phex.InputError, match="path of a file"):
        RelationClassifier(3).fit(X, y)


def test_folders_keep_everything(trained: tuple, tmp_path: Path) -> None:
    classifier, X, y = trained
    classifier.save(tmp_path / "one")
    again = RelationClassifier.load(tmp_path / "one")
    assert np.array_equal(again.predict_marginals(X), classifier.predict_marginals(X))
    assert np.array_equal(again.predict(X), classifier.predict(X))
    numbers, target = load_iris(return_X_y=True)
    frame = pandas.DataFrame(numbers, columns=list("abcd"))
    weighted = RelationClassifier(class_weight={0: 2.0, 1: 1.0}, hidden=(5,), epochs=4, random_state=1)
    weighted.fit(frame, target).save(tmp_path / "two")
    again = RelationClassifier.load(tmp_path / "two")
    assert again.get_params()["class_weight"] == {0: 2.0, 1: 1.0}
    assert again.classes_.dtype == weighted.classes_.dtype
    assert again.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(again.predict_proba(frame), weighted.predict_proba(frame))
    assert np.array_equal(
        clone(again).fit(frame, target).predict_proba(frame), again.predict_proba(frame)
    )
    known = label_matrix(y, animals.graph(), unlisted="off")
    sets = RelationClassifier(animals.graph(), epochs=2).fit(X, known)
    sets.save(tmp_path / "three")
    assert np.array_equal(RelationClassifier.load(tmp_path / "three").predict(X), sets.predict(X))


def test_the_command_line_trains_alike(tmp_path: Path) -> None:
    X, y = animals.rows(1200, 20)
    X = X.round(3).astype(np.float32)
    few = animals.coarse(y, 0.9, 2)
    builder = phex.GraphBuilder().hierarchy("animal", list(animals.KINDS))
    for kind, members in animals.KINDS.items():
        builder.hierarchy(kind, members)
    graph = builder.hierarchy("dog", ["husky", "poodle"]).single_label().build()
    graph.save(tmp_path / "animals.toml")
    columns = [f"x{at}" for at in range(X.shape[1])]
    frame = pandas.DataFrame(X, columns=columns)
    frame.assign(**{"is": few}).to_csv(tmp_path / "train.csv", index=False)
    arguments = ["train", "animals.toml", "--data", "train.csv", "--label-column", "is"]
    arguments += ["--out", "model"]
    subprocess.run([command_line(), *arguments], check=True, capture_output=True, cwd=tmp_path)
    by_command = RelationClassifier.load(tmp_path / "model")
    by_python = RelationClassifier(graph, random_state=0).fit(frame, few)

    def settings(classifier: RelationClassifier) -> dict[str, Any]:
        config = json.loads(classifier.head_.config)
        del config["seed"]
        return dict(config)

    assert settings(by_command) == settings(by_python)
    assert settings(by_python)["validation"]["fraction"] == 0.1
    test, truth = animals.rows(2000, 21)
    test = pandas.DataFrame(test.astype(np.float32), columns=columns)
    leaves = [graph.index(leaf) for leaf in graph.leaves]
    right = []
    for classifier in (by_command, by_python):
        p = classifier.predict_marginals(test)[:, leaves]
        assert np.allclose(p.sum(axis=1), 1.0, atol=1e-6)
        right.append((np.array(graph.leaves)[p.argmax(axis=1)] == truth).mean())
    # Each draws its own validation rows.
    assert abs(right[0] - right[1]) < 0.02
    assert min(right) > 0.7


@pytest.mark.parametrize("load", [load_iris, load_digits], ids=["iris", "digits"])
def test_defaults_are_as_good_as_a_logistic_regression(load: Any) -> None:
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) * 7 // 10], order[len(y) * 7 // 10 :]
    ours = RelationClassifier(random_state=0).fit(X[train], y[train])
    peer = LogisticRegression(max_iter=5000).fit(X[train], y[train])
    # Two standard errors of a difference on the 540 rows of digits, or one row of iris.
    less = max(0.01, 1 / len(test)) + 1e-9
    assert ours.score(X[test], y[test]) >= peer.score(X[test], y[test]) - less
    assert log_loss(y[test], ours.predict_proba(X[test])) < 0.2


def test_a_taxonomy_has_one_leaf_per_row_and_unrelated_roots_are_a_warning() -> None:
    X, y = animals.rows(300, 22)
    few = animals.coarse(y, 0.5, 3)

    def taxonomy() -> phex.GraphBuilder:
        builder = phex.GraphBuilder()
        for kind, members in animals.KINDS.items():
            builder.hierarchy(kind, members)
        return builder.hierarchy("dog", ["husky", "poodle"])

    with pytest.warns(UserWarning, match="2 roots are unrelated"):
        RelationClassifier(taxonomy().exclude("siblings").build(), epochs=1).fit(X, few)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = RelationClassifier(taxonomy().single_label().build(), random_state=0).fit(X, few)
    # A leaf has 4/3 labels above it on average.
    scale = json.loads(classifier.head_.config)["head"]["inner_scale"]
    assert scale == pytest.approx(0.1 / (4 / 3) ** 0.5)
    assert np.allclose(classifier.predict_proba(X).sum(axis=1), 1.0, atol=1e-6)


def test_the_command_line_reads_folders(trained: tuple, tmp_path: Path) -> None:
    classifier, X, _ = trained
    classifier.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    out = tmp_path / "p.npy"
    arguments = [
        "predict",
        str(tmp_path / "model"),
        "--data",
        str(tmp_path / "X.npy"),
        "--out",
        str(out),
    ]
    subprocess.run([command_line(), *arguments], check=True, capture_output=True)
    assert np.allclose(np.load(out), classifier.predict_marginals(X), atol=1e-5)


def test_messages_name_what_is_wrong() -> None:
    X, y = animals.rows(50, 17)
    graph = animals.graph()
    wrong = y.astype(object)
    wrong[7] = "huski"
    with pytest.raises(
        phex.InputError, match="row 7: `huski` is not a label of the graph; did you mean `husky`"
    ):
        RelationClassifier(graph).fit(X, wrong)
    with pytest.raises(phex.InputError, match="y has numbers"):
        RelationClassifier(graph).fit(X, np.arange(50) % 3)
    with pytest.raises(phex.InputError, match="3 columns, and the graph has 10 labels"):
        RelationClassifier(graph).fit(X, np.ones((50, 3)))
    table = label_matrix(y, graph).astype(float)
    table[4, 2] = 0.5
    with pytest.raises(phex.InputError, match=r"row 4, `wild`: 0\.5 is not valid evidence"):
        RelationClassifier(graph).fit(X, table)
    both = label_matrix(y, graph)
    both[5] = 1
    with pytest.raises(phex.TrainingError, match="5"):
        RelationClassifier(graph).fit(X, both)
    assert RelationClassifier(graph, loss="marginal", epochs=1).fit(X, both).n_iter_ == 1
    for parameter in (
        {"decide": "guess"},
        {"threshold": 2.0},
        {"unlisted": "none"},
        {"classes": "kinds"},
    ):
        with pytest.raises(phex.InputError, match=next(iter(parameter))):
            RelationClassifier(graph, **parameter).fit(X, y)
    with pytest.raises(phex.InputError, match="answers with sets"):
        RelationClassifier(graph, decide="consistent").fit(X, y)
    with pytest.warns(UserWarning, match="all labels will come out as on"):
        RelationClassifier(animals.graph(exclusive=False), epochs=1).fit(X, y)


def test_a_run_can_be_watched(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = animals.rows(50, 18)
    RelationClassifier(animals.graph(), epochs=3, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"train, epoch {at}" for at in (1, 2, 3)]
