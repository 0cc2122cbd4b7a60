"""The errors of phex: subclasses of `ValueError`, with the texts of the command line.

>>> import phex
>>> builder = phex.GraphBuilder().hierarchy("dog", "dog")
>>> try:
...     builder.build()
... except phex.GraphError as error:
...     print(error.report.findings[0].kind)
self-relation
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phex._core import Report

__all__ = [
    "BudgetError",
    "EngineError",
    "FileError",
    "FinishedWarning",
    "GraphError",
    "InputError",
    "PhexError",
    "TrainingError",
]


class PhexError(ValueError):
    """The base class of all errors of phex."""


class GraphError(PhexError):
    """The declarations are not a graph."""

    report: Report
    """All findings. An error from another process has only its text."""

    def __reduce__(self) -> tuple[type[GraphError], tuple[object, ...]]:
        return type(self), self.args


class FileError(PhexError, OSError):
    """A file cannot be read or written, or its content is not valid."""


class EngineError(PhexError):
    """No requested engine can handle the model, or the engine cannot answer this question."""


class BudgetError(PhexError):
    """A computation would exceed its budget."""


class InputError(PhexError):
    """An array, a name or an option cannot be used."""


class TrainingError(PhexError):
    """Training cannot start or continue."""


class FinishedWarning(UserWarning):
    """Scores look like finished probabilities, which `phex.reconcile` makes consistent."""
