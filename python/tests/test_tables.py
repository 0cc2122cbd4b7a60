"""Forms of input: arrays of every type, lists, single rows, data frames."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import named, random_rows

import phex

GRAPH = named()["groups"]
MODEL = GRAPH.compile()
SCORES, KNOWN = random_rows(GRAPH, 4, seed=1)
MARGINALS = MODEL.marginals(SCORES)
CONDITIONAL = MODEL.marginals(SCORES, KNOWN)
ORDER = np.random.default_rng(2).permutation(len(GRAPH))
NAMES = [GRAPH.labels[at] for at in ORDER]


def same(found: object, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_types_of_numbers() -> None:
    whole = np.rint(SCORES)
    expected = MODEL.marginals(whole)
    for kind in (np.int8, np.int32, np.int64, object):
        found = MODEL.marginals(whole.astype(kind))
        assert found.dtype == np.float64
        same(found, expected)
    single = MODEL.marginals(whole.astype(np.float32))
    assert single.dtype == np.float32
    half = MODEL.marginals(whole.astype(np.float16))
    assert half.dtype == np.float32
    same(half, single)
    same(MODEL.marginals(whole.tolist()), expected)
    same(MODEL.marginals(tuple(map(tuple, whole.astype(int).tolist()))), expected)
    same(MODEL.marginals(SCORES > 0), MODEL.marginals((SCORES > 0).astype(float)))


def test_a_single_row_is_answered_by_one() -> None:
    row = SCORES[0]
    same(MODEL.marginals(row), MARGINALS[0])
    same(MODEL.marginals(row.tolist()), MARGINALS[0])
    same(MODEL.map(row), MODEL.map(SCORES)[0])
    assert MODEL.map(row).shape == (len(GRAPH),)
    assert np.ndim(MODEL.log_partition(row)) == 0
    assert MODEL.log_partition(row) == MODEL.log_partition(SCORES)[0]
    same(MODEL.marginals(row, KNOWN[0]), CONDITIONAL[0])
    assert MODEL.sample(row, 7).shape == (1, 7, len(GRAPH))


def test_forms_of_evidence() -> None:
    same(MODEL.marginals(SCORES, KNOWN.tolist()), CONDITIONAL)
    for kind in (np.int64, np.float32, np.float64, object):
        same(MODEL.marginals(SCORES, KNOWN.astype(kind)), CONDITIONAL)
    same(MODEL.marginals(SCORES, np.where(KNOWN < 0, np.nan, KNOWN)), CONDITIONAL)
    words = {
        label: value for label, value in zip(GRAPH.labels, KNOWN[0].tolist(), strict=True) if value >= 0
    }
    one_for_all = MODEL.marginals(SCORES, np.broadcast_to(KNOWN[0], SCORES.shape))
    same(MODEL.marginals(SCORES, words), one_for_all)
    same(MODEL.marginals(SCORES, {label: bool(value) for label, value in words.items()}), one_for_all)
    same(
        MODEL.marginals(SCORES, {**words, **dict.fromkeys(set(GRAPH.labels) - set(words))}), one_for_all
    )
    same(MODEL.marginals(SCORES, KNOWN[0]), one_for_all)
    same(MODEL.marginals(SCORES, KNOWN[:1]), one_for_all)
    same(MODEL.marginals(SCORES, {}), MARGINALS)
    legal = MODEL.map(SCORES)
    same(MODEL.marginals(SCORES, legal), legal.astype(float))


def test_pandas_frames_by_the_names_of_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SCORES[:, ORDER], columns=NAMES, index=list("wxyz"))
    found = MODEL.marginals(frame)
    assert isinstance(found, pandas.DataFrame)
    assert list(found.columns) == GRAPH.labels
    assert list(found.index) == list("wxyz")
    same(found, MARGINALS)
    evidence = pandas.DataFrame(KNOWN[:, ORDER], columns=NAMES).replace(-1, np.nan)
    same(MODEL.marginals(frame, evidence), CONDITIONAL)
    same(MODEL.map(frame), MODEL.map(SCORES))
    losses, gradient = MODEL.loss_and_grad(frame, evidence)
    plain_losses, plain_gradient = MODEL.loss_and_grad(SCORES, KNOWN)
    same(losses, plain_losses)
    same(gradient, plain_gradient)
    assert list(gradient.columns) == GRAPH.labels
    assert (MODEL.marginals(frame.astype("float32")).dtypes == np.float32).all()


def test_polars_frames_by_the_names_of_columns() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(SCORES[:, ORDER], schema=NAMES)
    found = MODEL.marginals(frame)
    assert isinstance(found, polars.DataFrame)
    assert found.columns == GRAPH.labels
    same(found, MARGINALS)
    evidence = polars.DataFrame(
        [[None if value < 0 else int(value) for value in KNOWN[:, at]] for at in ORDER], schema=NAMES
    )
    same(MODEL.marginals(frame, evidence), CONDITIONAL)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_that_do_not_fit_are_named(library: str) -> None:
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({label: SCORES[:, at] for at, label in enumerate(GRAPH.labels)})
    dropped = frame.drop(columns=["cat"]) if library == "pandas" else frame.drop("cat")
    with pytest.raises(phex.InputError, match="the scores: there is no column for the label `cat`"):
        MODEL.marginals(dropped)
    with pytest.raises(phex.InputError, match="the evidence: there is no column for the label `cat`"):
        MODEL.marginals(SCORES, dropped)
    more = frame.assign(row=0.0) if library == "pandas" else frame.with_columns(row=0.0)
    with pytest.raises(phex.InputError, match="the column `row` is not a label of the graph; drop it"):
        MODEL.marginals(more)
    words = frame.assign(cat="x") if library == "pandas" else frame.with_columns(cat=frames.lit("x"))
    with pytest.raises(phex.InputError, match="scores must be numbers"):
        MODEL.marginals(words)


def test_columns_that_stand_twice_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((1, len(GRAPH) + 1)), columns=[*GRAPH.labels, "cat"])
    with pytest.raises(phex.InputError, match="the column `cat` occurs twice"):
        MODEL.marginals(frame)


@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        ({"cow": 1}, "the graph has no label `cow`"),
        ({"cat": 2}, "row 0, `cat`"),
        ({"cat": 0.3}, "row 0, `cat`"),
        ({"cat": -2}, "row 0, `cat`"),
        (np.full((3, len(GRAPH)), -1), "there are 4 rows of scores and 3 of evidence"),
        (np.full((4, 2), -1), "2"),
        (np.zeros((1, 4, len(GRAPH))), "the evidence has 3 dimensions"),
        (np.array([["on"] * len(GRAPH)], dtype=object), "the evidence must be 1, 0, -1 or NaN"),
    ],
)
def test_wrong_evidence_is_named(evidence: object, text: str) -> None:
    with pytest.raises(phex.InputError) as caught:
        MODEL.marginals(SCORES, evidence)
    assert text in str(caught.value)


def test_a_pandas_row_is_found_by_its_names() -> None:
    pandas = pytest.importorskip("pandas")
    row = pandas.DataFrame(SCORES[:, ORDER], columns=NAMES).iloc[0]
    same(MODEL.marginals(row), MARGINALS[0])


def test_masked_entries_of_evidence_are_unknown() -> None:
    masked = np.ma.masked_array(np.where(KNOWN < 0, 1, KNOWN), KNOWN < 0)
    same(MODEL.marginals(SCORES, masked), CONDITIONAL)
    with pytest.raises(phex.InputError, match="masked"):
        MODEL.marginals(np.ma.masked_array(SCORES, KNOWN < 0))


def test_nullable_columns_of_evidence() -> None:
    pandas = pytest.importorskip("pandas")
    columns = {
        label: pandas.array([None if value < 0 else value for value in KNOWN[:, at]], dtype="Int8")
        for at, label in enumerate(GRAPH.labels)
    }
    same(MODEL.marginals(SCORES, pandas.DataFrame(columns)), CONDITIONAL)


@pytest.mark.parametrize("kind", ["U1", complex, "M8[s]"])
def test_what_are_no_real_numbers_is_refused(kind: object) -> None:
    table = np.zeros(SCORES.shape, kind)
    with pytest.raises(phex.InputError, match="must be numbers"):
        MODEL.marginals(table)
    with pytest.raises(phex.InputError, match="1, 0, -1 or NaN"):
        MODEL.marginals(SCORES, table)


def test_more_sets_than_there_are_can_be_asked_for() -> None:
    legal = MODEL.graph.count_states()
    assert len(MODEL.top_k(SCORES[0], 10**9)[0].on) == legal
