"""What phex raises: subclasses of `ValueError`, with the texts of the command line.

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
    "GraphError",
    "InputError",
    "PhexError",
    "TrainingError",
]


class PhexError(ValueError):
    """Everything that phex raises."""


class GraphError(PhexError):
    """The declarations are not a graph."""

    report: Report
    """Everything that was found. An error that comes from another process has only its text."""

    def __reduce__(self) -> tuple[type[GraphError], tuple[object, ...]]:
        return type(self), self.args


class FileError(PhexError, OSError):
    """A file cannot be read or written, or is not what it should be."""


class EngineError(PhexError):
    """No engine that was asked for takes the model, or it does not answer this question."""


class BudgetError(PhexError):
    """A question needs more work than allowed."""


class InputError(PhexError):
    """An array, a name or an option cannot be used."""


class TrainingError(PhexError):
    """Training cannot start or go on."""
