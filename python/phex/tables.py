"""From what people have (lists, arrays, data frames) to rows × labels, and back.

Columns of a data frame are found by the names of the labels, in any order; arrays have them in the
order of the graph. Answers come back in the form of what was given: a frame for a frame, one row for
one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phex._types import Known, Scores
from phex.errors import InputError

__all__ = ["Rows", "read_known", "read_scores"]


class Rows:
    """Scores as an array of two dimensions, and the way back."""

    __slots__ = ("_frame", "_single", "values")

    def __init__(self, values: Scores, *, single: bool = False, frame: Any = None) -> None:
        self.values = values
        self._single = single
        self._frame = frame

    def restore(self, table: NDArray[Any], labels: Sequence[str]) -> Any:
        """An answer of rows × labels in the form that the scores had."""
        if self._single:
            return table[0]
        if self._frame is None:
            return table
        if hasattr(self._frame, "iloc"):
            return type(self._frame)(table, index=self._frame.index, columns=list(labels))
        return type(self._frame)(table, schema=list(labels))

    def restore_rows(self, values: NDArray[Any]) -> Any:
        """An answer with an entry a row in the form that the scores had."""
        return values[0] if self._single else values


def _columns(frame: Any, labels: Sequence[str], what: str) -> NDArray[Any]:
    names = [str(name) for name in frame.columns]
    place = {name: at for at, name in enumerate(names)}
    if len(place) < len(names):
        twice = next(name for at, name in enumerate(names) if place[name] != at)
        raise InputError(f"{what}: the column `{twice}` stands there twice")
    missing = [label for label in labels if label not in place]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"{what}: there is no column for the label `{missing[0]}`{others}")
    if len(names) > len(labels):
        known = set(labels)
        extra = next(name for name in names if name not in known)
        raise InputError(f"{what}: the column `{extra}` is not a label of the graph; drop it")
    values = frame.to_numpy()
    if names == list(labels):
        return np.asarray(values)
    return np.asarray(values)[:, [place[label] for label in labels]]


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def read_scores(value: Any, labels: Sequence[str]) -> Rows:
    """Rows of scores: float32 and float64 stay as they are, other numbers become float64."""
    if type(value) is np.ndarray and value.ndim == 2 and value.dtype in (np.float32, np.float64):
        return Rows(value)
    frame = value if _is_frame(value) else None
    array = _columns(value, labels, "the scores") if frame is not None else np.asarray(value)
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    elif array.dtype not in (np.float32, np.float64):
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"scores have to be numbers: {error}") from None
    single = array.ndim == 1
    if single:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise InputError(f"scores have {array.ndim} dimensions; give rows × labels, or one row")
    return Rows(array, single=single, frame=frame)


def read_known(value: Any, rows: int, labels: Sequence[str]) -> Known | None:
    """What is known of labels: 1 or True on, 0 or False off, -1 or NaN unknown.

    A single row, or an array of one row, holds for every row of scores.
    """
    if value is None:
        return None
    array = _columns(value, labels, "what is known") if _is_frame(value) else np.asarray(value)
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"what is known has to be 1, 0, -1 or NaN: {error}") from None
    if array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise InputError(f"what is known has {array.ndim} dimensions; give rows × labels")
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1, array)
    if array.dtype != np.int8:
        small = np.clip(array, -2, 2).astype(np.int8)
        if array.dtype.kind == "f":
            # 0.3 is neither on nor off, and must not become 0.
            small[small != array] = 2
        array = small
    if array.shape[0] == 1 and rows != 1:
        array = np.ascontiguousarray(np.broadcast_to(array, (rows, array.shape[1])))
    return array
