"""Arrays of any shape, type and layout: answers depend on their numbers alone, errors are clear."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import named, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import phex

MODELS = {
    "family": named()["soft-tree"].compile("family"),
    "junction": named()["dag"].compile("junction"),
    "states": named()["hard-tree"].compile("states"),
    "star": named()["star"].compile("star"),
    "brute": named()["groups"].compile("brute"),
    "lbp": named()["soft-tree"].compile("lbp"),
    "forest-bp": named()["soft-tree"].compile("forest-bp"),
    "gibbs": named()["soft-tree"].compile("gibbs", sweeps=5, burn_in=2, chains=32),
    "mean-field": named()["dag"].compile("mean-field"),
    "trw": named()["dag"].compile("trw"),
}
# Drawn scores may all lie between 0 and 1.
pytestmark = pytest.mark.filterwarnings("ignore::phex.FinishedWarning")
DTYPES = st.sampled_from([np.float32, np.float64])
METHODS = st.sampled_from(sorted(MODELS))
settings.register_profile("phex", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("phex")


@st.composite
def tables(draw: st.DrawFn, rows: st.SearchStrategy[int] | None = None) -> tuple[phex.Model, np.ndarray]:
    """A model and rows of scores for it."""
    model = MODELS[draw(METHODS)]
    shape = (draw(rows if rows is not None else st.integers(0, 40)), len(model))
    dtype = draw(DTYPES)
    values = st.floats(-30, 30, width=16)
    return model, draw(arrays.arrays(dtype, shape, elements=values, fill=values))


def misaligned(table: np.ndarray) -> np.ndarray:
    """The same numbers one byte off their place."""
    memory = np.zeros(table.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(table.tobytes(), np.uint8)
    return memory.view(table.dtype).reshape(table.shape)


def wide(table: np.ndarray) -> np.ndarray:
    """Every other column of a larger array."""
    large = np.full((table.shape[0], 2 * table.shape[1]), np.nan, table.dtype)
    large[:, ::2] = table
    return large[:, ::2]


def padded(table: np.ndarray) -> np.ndarray:
    """The first columns of a larger array."""
    large = np.full((table.shape[0], table.shape[1] + 3), np.nan, table.dtype)
    large[:, :-3] = table
    return large[:, :-3]


def frozen(table: np.ndarray) -> np.ndarray:
    copy = table.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS = {
    "fortran": np.asfortranarray,
    "rows reversed": lambda table: table[::-1].copy()[::-1],
    "columns reversed": lambda table: table[:, ::-1].copy()[:, ::-1],
    "every other column": wide,
    "every other row": lambda table: np.repeat(table, 2, axis=0)[::2],
    "first columns": padded,
    "misaligned": misaligned,
    "read-only": frozen,
    "other byte order": lambda table: table.astype(table.dtype.newbyteorder()),
    "subclass": lambda table: table.view(type("Named", (np.ndarray,), {})),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(given_table=tables())
def test_layout_does_not_matter(layout: str, given_table: tuple[phex.Model, np.ndarray]) -> None:
    model, table = given_table
    view = LAYOUTS[layout](table)
    expected, found = model.marginals(table), model.marginals(view)
    assert found.shape == table.shape
    if layout == "other byte order" and table.dtype == np.float32:
        # Not a type of the engines: answered in doubles, as other numbers are.
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, atol=1e-4)
        return
    assert found.dtype == table.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.log_partition(view), model.log_partition(table))


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) - {"other byte order"}))
def test_layout_of_evidence_does_not_matter(layout: str) -> None:
    model = MODELS["junction"]
    rng = np.random.default_rng(1)
    known = np.where(rng.random((9, len(model))) < 0.2, 1, -1).astype(np.int8)
    scores = rng.normal(size=known.shape)
    if layout == "every other column":
        view = np.repeat(known, 2, axis=1)[:, ::2]
    elif layout == "first columns":
        view = np.hstack([known, known])[:, : len(model)]
    else:
        view = LAYOUTS[layout](known)
    np.testing.assert_array_equal(model.marginals(scores, view), model.marginals(scores, known))


@given(given_table=tables(rows=st.integers(1, 150)), size=st.sampled_from([1, 7, 64]))
def test_batches_do_not_matter(given_table: tuple[phex.Model, np.ndarray], size: int) -> None:
    model, table = given_table
    parts = [model.marginals(table[at : at + size]) for at in range(0, len(table), size)]
    np.testing.assert_array_equal(np.concatenate(parts), model.marginals(table))
    totals = [model.log_partition(table[at : at + size]) for at in range(0, len(table), size)]
    np.testing.assert_array_equal(np.concatenate(totals), model.log_partition(table))


@given(given_table=tables())
def test_the_input_is_left_alone(given_table: tuple[phex.Model, np.ndarray]) -> None:
    model, table = given_table
    before = table.copy()
    marginals = model.marginals(table)
    np.testing.assert_array_equal(table, before)
    assert not np.shares_memory(marginals, table)
    assert marginals.flags.writeable
    assert marginals.flags.c_contiguous
    assert ((marginals >= 0) & (marginals <= 1)).all()


@pytest.mark.parametrize("method", sorted(MODELS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_rows(method: str, dtype: type) -> None:
    model = MODELS[method]
    none = np.zeros((0, len(model)), dtype)
    found = model.marginals(none)
    assert (found.shape, found.dtype) == ((0, len(model)), dtype)
    assert model.log_partition(none).shape == (0,)
    assert len(model.infer(none, entropy=True, expectations=True)) == 0
    if model.plan.exact:
        assert model.map(none).shape == (0, len(model))
        assert model.top_k(none, 3) == []
        assert model.sample(none, 2).shape == (0, 2, len(model))
    losses, gradient = model.loss_and_grad(none, np.zeros((0, len(model)), np.int8))
    assert (losses.shape, gradient.shape, gradient.dtype) == ((0,), (0, len(model)), dtype)


@given(
    given_table=tables(rows=st.integers(1, 20)),
    bad=st.sampled_from([np.nan, np.inf, -np.inf]),
    where=st.tuples(st.integers(0, 1000), st.integers(0, 1000)),
)
def test_bad_scores_are_named(given_table, bad: float, where: tuple[int, int]) -> None:
    model, table = given_table
    row, column = where[0] % table.shape[0], where[1] % table.shape[1]
    good = model.infer(table).marginals
    table[row, column] = bad
    message = f"row {row}: the score of `{model.labels[column]}` is NaN, infinite or beyond ±1e30"
    for call in (model.marginals, model.log_partition):
        with pytest.raises(phex.InputError) as caught:
            call(table)
        assert str(caught.value) == message
    # `infer` answers the others, as if the row was not there.
    found = model.infer(table)
    others = np.arange(len(table)) != row
    np.testing.assert_array_equal(found.marginals[others], good[others])
    assert np.isnan(found.marginals[row]).all()
    assert found.status[row] == "bad-score"


@given(shape=arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7), dtype=DTYPES)
def test_wrong_shapes_are_refused(shape: tuple[int, ...], dtype: type) -> None:
    model = MODELS["family"]
    table = np.zeros(shape, dtype)
    fits = len(shape) in (1, 2) and shape[-1] == len(model)
    for call in (model.marginals, model.log_partition, model.map, model.infer, model.sample):
        if fits:
            call(table)
        else:
            with pytest.raises(phex.InputError, match=r"dimensions|rows have \d+ scores"):
                call(table)


@given(
    known=arrays.arrays(
        st.sampled_from([np.int8, np.int64, np.float64]), (2, 5), elements=st.integers(-100, 100)
    )
)
def test_evidence_has_three_values(known: np.ndarray) -> None:
    model = MODELS["family"]
    wrong = np.argwhere((known < -1) | (known > 1))
    if not len(wrong):
        assert np.isfinite(model.log_partition(np.zeros((2, 5)), known)).all()
        return
    row, column = wrong[0]
    with pytest.raises(phex.InputError) as caught:
        model.marginals(np.zeros((2, 5)), known)
    assert str(caught.value).startswith(f"row {row}, `{model.labels[column]}`: ")


@pytest.mark.parametrize(
    "value", [np.array([["a"] * 5]), np.array([[None] * 4 + ["x"]]), "text", [[1, 2], [3]]], ids=str
)
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"numbers|inhomogeneous|dimensions"):
        MODELS["family"].marginals(value)


@given(seed=st.integers(0, 2**32), low=st.floats(-200, 200), rows=st.integers(1, 5))
@settings(max_examples=100)
def test_identities_of_random_models(seed: int, low: float, rows: int) -> None:
    graph = random_graph(seed)
    model = graph.compile()
    scores = np.random.default_rng(seed).normal(low, 3.0, (rows, len(graph)))
    marginals = model.marginals(scores)
    assert (marginals >= 0).all()
    assert (marginals <= 1 + 1e-12).all()
    for group in graph.one_of.values():
        at = [graph.index(label) for label in group]
        np.testing.assert_allclose(marginals[:, at].sum(axis=1), 1.0, atol=1e-9)
    for parent, child, strength in graph.hierarchy:
        if strength.is_hard:
            gap = marginals[:, graph.index(child)] - marginals[:, graph.index(parent)]
            assert (gap <= 1e-9).all()
    # Conditioning on a label splits the sum over states in two.
    on, off = (model.log_partition(scores, {graph.labels[0]: value}) for value in (1, 0))
    total = model.log_partition(scores)
    np.testing.assert_allclose(np.logaddexp(on, off), total, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(np.exp(on - total), marginals[:, 0], atol=1e-9)
