"""Scores as people have them: leaves only, probabilities, columns in another order."""

from __future__ import annotations

import numpy as np
import pytest

import phex

PAIRS = "parent,child\nanimal,dog\nanimal,cat\nvehicle,car\nvehicle,bus\n"
GRAPH = phex.GraphBuilder.parse(PAIRS, "csv").single_label().build()
MODEL = GRAPH.compile()
LEAVES = ["bus", "dog", "cat", "car"]
ROW = np.array([[0.0, 3.0, -1.0, 0.5]])


def place(label: str) -> int:
    return GRAPH.index(label)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores)
    return powers / powers.sum(axis=-1, keepdims=True)


def test_leaves_are_enough_for_a_single_label_graph() -> None:
    p = MODEL.marginals(ROW, columns=LEAVES)
    expected = softmax(ROW)
    np.testing.assert_allclose(p[:, [place(label) for label in LEAVES]], expected, atol=1e-12)
    np.testing.assert_allclose(p[0, place("vehicle")], expected[0, [0, 3]].sum(), atol=1e-12)
    np.testing.assert_array_equal(MODEL.marginals(ROW[0], columns=LEAVES), p[0])
    single = MODEL.marginals(ROW.astype(np.float32), columns=LEAVES)
    assert single.dtype == np.float32


def test_data_frames_name_their_leaves() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROW, columns=LEAVES)
    p = MODEL.marginals(frame)
    assert list(p.columns) == GRAPH.labels
    np.testing.assert_array_equal(p.to_numpy(), MODEL.marginals(ROW, columns=LEAVES))
    with pytest.raises(phex.InputError, match="no column for the label `cat`"):
        MODEL.marginals(frame.drop(columns="cat"))
    row = frame.iloc[0]
    np.testing.assert_array_equal(MODEL.marginals(row), p.to_numpy()[0])


def test_other_graphs_need_a_score_for_every_label() -> None:
    loose = phex.GraphBuilder.parse(PAIRS, "csv").build().compile()
    with pytest.raises(phex.InputError, match="no column for the label `animal` and 1 more"):
        loose.marginals(ROW, columns=LEAVES)
    wide = np.zeros((1, 6))
    wide[:, [place(label) for label in LEAVES]] = ROW
    wide[:, [place("animal"), place("vehicle")]] = -2.0
    found = loose.marginals(ROW, columns=LEAVES, missing=-2.0)
    np.testing.assert_array_equal(found, loose.marginals(wide))


def test_wrong_columns_are_explained() -> None:
    with pytest.raises(phex.InputError, match="have 4 columns, and there are 3 names"):
        MODEL.marginals(ROW, columns=LEAVES[:3])
    with pytest.raises(phex.InputError, match="`dog` occurs twice"):
        MODEL.marginals(ROW, columns=["bus", "dog", "dog", "car"])
    with pytest.raises(phex.InputError, match="no column for the label `cat`"):
        MODEL.marginals(ROW, columns=["bus", "dog", "cta", "car"])
    with pytest.raises(phex.InputError, match="the column `cta` is not a label"):
        MODEL.marginals(ROW, columns=["bus", "dog", "cta", "car"], missing=0.0)
    with pytest.raises(phex.InputError, match="no column is a label"):
        MODEL.marginals(np.empty((1, 0)), columns=[], missing=0.0)


def test_probabilities_become_logits() -> None:
    p = softmax(ROW)
    expected = MODEL.marginals(ROW, columns=LEAVES)
    found = MODEL.marginals(p, columns=LEAVES, input="probabilities")
    np.testing.assert_allclose(found, expected, atol=1e-12)
    found = MODEL.marginals(np.log(p), columns=LEAVES, input="log-probabilities")
    np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.warns(phex.FinishedWarning, match="input='probabilities'"):
        MODEL.marginals(p, columns=LEAVES)
    MODEL.marginals(p, columns=LEAVES, input="logits")
    with pytest.raises(phex.InputError, match="is not a probability of `dog`"):
        MODEL.marginals(ROW, columns=LEAVES, input="probabilities")
    with pytest.raises(phex.InputError, match="kind of scores"):
        MODEL.marginals(p, columns=LEAVES, input="percent")  # type: ignore[arg-type]


def test_sigmoids_become_logits() -> None:
    loose = phex.GraphBuilder.parse(PAIRS, "csv").build().compile()
    p = np.array([[0.9, 0.8, 0.5, 0.1, 0.3, 0.25]])
    found = loose.marginals(p, input="probabilities")
    np.testing.assert_allclose(found, loose.marginals(np.log(p / (1 - p))), atol=1e-12)
