"""Converts lists, arrays and data frames to rows × labels, and answers back to the same form.

Columns of a data frame are found by the names of the labels, in any order; the columns of an array are
in the order of the graph, unless a list names them. A data frame gets a data frame as its answer, and
one row gets one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phex._core import looks_finished, read_evidence
from phex._types import EvidenceCodes, Float64, Scores
from phex.errors import InputError

__all__ = ["Rows", "evidence_codes", "read_scores", "read_weights"]


class Rows:
    """Scores as a two-dimensional array, and how to return answers in their form."""

    __slots__ = ("_frame", "_single", "given", "values")

    def __init__(
        self,
        values: Scores,
        *,
        single: bool = False,
        frame: Any = None,
        given: list[bool] | None = None,
    ) -> None:
        self.values = values
        self.given = given
        """Which labels have a column; `None` for all."""
        self._single = single
        self._frame = frame

    def looks_finished(self) -> bool:
        """Whether all values that were given are between 0 and 1, and some are neither."""
        values = self.values if self.given is None else self.values[:, self.given]
        return looks_finished(values, values.shape[1])

    def restore(self, table: NDArray[Any], labels: Sequence[str]) -> Any:
        """An answer of rows × labels in the form of the scores."""
        if self._single:
            return table[0]
        if self._frame is None:
            return table
        if hasattr(self._frame, "iloc"):
            return type(self._frame)(table, index=self._frame.index, columns=list(labels))
        return type(self._frame)(table, schema=list(labels))

    def restore_rows(self, values: NDArray[Any]) -> Any:
        """An answer with one entry per row in the form of the scores."""
        return values[0] if self._single else values


def _named(
    value: Any,
    labels: Sequence[str],
    what: str,
    columns: Sequence[str] | None = None,
    fill: Sequence[float | None] = (),
) -> NDArray[Any] | None:
    """The values of columns with names, in the order of the labels; else `None`.

    Data frames and their rows have names, and `columns` gives them to everything. Labels without a
    column have the value that `fill` gives.
    """
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):
        names, table = [str(name) for name in value.columns], _numbers(value)
    elif hasattr(value, "index") and hasattr(value, "to_numpy"):
        names, table = [str(name) for name in value.index], _numbers(value)
        if columns is None and names == [str(at) for at in range(len(labels))]:
            return table
    elif columns is not None:
        names, table = [], np.asarray(value)
    else:
        return None
    if columns is not None:
        names = [str(name) for name in columns]
        if table.ndim == 0 or table.shape[-1] != len(names):
            found = 0 if table.ndim == 0 else table.shape[-1]
            raise InputError(f"{what} have {found} columns, and there are {len(names)} names for them")
    place = {name: at for at, name in enumerate(names)}
    if len(place) < len(names):
        twice = next(name for at, name in enumerate(names) if place[name] != at)
        raise InputError(f"{what}: the column `{twice}` occurs twice")
    known = set(labels)
    extra = next((name for name in names if name not in known), None)
    absent = [at for at, label in enumerate(labels) if label not in place]
    needed = [labels[at] for at in absent if not fill or fill[at] is None]
    if needed:
        others = f" and {len(needed) - 1} more" if len(needed) > 1 else ""
        raise InputError(f"{what}: there is no column for the label `{needed[0]}`{others}")
    if extra is not None:
        raise InputError(f"{what}: the column `{extra}` is not a label of the graph; drop it")
    if names == list(labels):
        return table
    if not absent:
        return table[..., [place[label] for label in labels]]
    if len(absent) == len(labels):
        raise InputError(f"{what}: no column is a label of the graph")
    wide = np.empty((*table.shape[:-1], len(labels)), table.dtype)
    for at, label in enumerate(labels):
        wide[..., at] = table[..., place[label]] if label in place else fill[at]
    return wide


def _numbers(frame: Any) -> NDArray[Any]:
    values = np.asarray(frame.to_numpy())
    if values.dtype == object and hasattr(frame, "iloc"):
        # Columns of pandas with missing values.
        try:
            return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            return values
    return values


def _array(
    value: Any,
    labels: Sequence[str],
    what: str,
    rule: str,
    columns: Sequence[str] | None = None,
    fill: Sequence[float | None] = (),
) -> NDArray[Any]:
    """Numbers of any form as an array; `rule` says which numbers are valid."""
    named = _named(value, labels, what, columns, fill)
    array = np.asarray(value) if named is None else named
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{what} {rule}: {error}") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} {rule}, not {array.dtype}")
    return array


def read_scores(
    value: Any,
    labels: Sequence[str],
    columns: Sequence[str] | None = None,
    fill: Sequence[float | None] = (),
) -> Rows:
    """Rows of scores: float32 and float64 stay as they are, other numbers become float64.

    `columns` names the columns, and `fill` has the score of each label that may lack one.
    """
    if (
        columns is None
        and type(value) is np.ndarray
        and value.ndim == 2
        and value.dtype in (np.float32, np.float64)
    ):
        return Rows(value if value.flags.aligned else value.copy())
    if isinstance(value, np.ma.MaskedArray):
        raise InputError("the scores are a masked array; every label needs a score")
    array = _array(value, labels, "the scores", "must be numbers", columns, fill)
    wanted = np.float32 if array.dtype in (np.float16, np.float32) else np.float64
    array = np.require(array, wanted, ["ALIGNED"])
    single = array.ndim == 1
    if single:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise InputError(f"scores have {array.ndim} dimensions; give rows × labels, or one row")
    frame = value if hasattr(value, "columns") else None
    names = columns
    if names is None and fill:
        names = getattr(value, "columns", getattr(value, "index", None))
    given = None
    if fill and names is not None and not callable(names):
        present = {str(name) for name in names}
        given = [label in present for label in labels]
        given = None if all(given) or not any(given) else given
    return Rows(array, single=single, frame=frame, given=given)


def evidence_codes(value: Any, rows: int, labels: Sequence[str]) -> EvidenceCodes | None:
    """Evidence: 1 or True is on, 0 or False is off, -1 or NaN or a masked entry is unknown.

    A single row, or an array of one row, applies to every row of scores.
    """
    if value is None:
        return None
    if isinstance(value, np.ma.MaskedArray):
        value = np.where(np.ma.getmaskarray(value), np.nan, value.data)
    array = _array(value, labels, "the evidence", "must be 1, 0, -1 or NaN")
    if array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise InputError(f"the evidence has {array.ndim} dimensions; give rows × labels")
    if array.dtype != np.int8 or not array.flags.aligned:
        # Plots have no labels. The engine rejects a wrong number of columns.
        width = array.shape[1]
        names = list(labels) if len(labels) == width else [f"column {at}" for at in range(width)]
        array = read_evidence(np.require(array, np.float64, ["ALIGNED"]), names)
    if array.shape[0] == 1 and rows != 1:
        array = np.ascontiguousarray(np.broadcast_to(array, (rows, array.shape[1])))
    return array


def read_weights(value: Any, rows: int) -> Float64:
    """A weight of 0 or more for each row."""
    try:
        weights = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"weights must be numbers: {error}") from None
    if weights.shape != (rows,):
        raise InputError(f"weights have the shape {weights.shape}; give one for each of {rows} rows")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"row {row}: the weight is {weights[row]}, but must be finite and 0 or more")
    return weights
