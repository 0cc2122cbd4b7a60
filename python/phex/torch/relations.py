"""Compiled relations that operators find by a key.

Operators of PyTorch take tensors, numbers and texts, so they cannot be handed an engine. They are handed
a key instead: a hash of the graph and the options, the same in every process, so that copies and pickles
of a module, and equal modules, share one compiled engine. Modules hold their relations; this table does
not keep them alive.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections import OrderedDict
from typing import Any

from phex._core import Engine, Graph, Strengths
from phex._types import Float64
from phex.errors import InputError

__all__ = ["Relations", "compiled", "find"]

#: How many engines of learned strengths are kept, such as those of a network and of its average.
_KEPT = 2

_alive: weakref.WeakValueDictionary[str, Relations] = weakref.WeakValueDictionary()
_lock = threading.Lock()


class Relations:
    """A graph, its options and its engine; with learned strengths, the engine of the last values."""

    def __init__(self, key: str, graph: Graph, options: dict[str, Any], tie: str | None) -> None:
        self.key = key
        self.graph = graph
        self.options = options
        self.tie = tie
        self.labels: list[str] = graph.labels
        self.strengths = None if tie is None else Strengths(graph, tie)
        self._engines: OrderedDict[bytes, Engine] = OrderedDict()
        self._lock = threading.Lock()

    def engine(self, values: Float64 | None) -> Engine:
        """The engine with these strengths, or with those of the graph. Negative ones are 0."""
        name = b"" if values is None else values.tobytes()
        with self._lock:
            engine = self._engines.get(name)
            if engine is None:
                engine = Engine(self.at(values), **self.options)
                self._keep(name, engine)
            self._engines.move_to_end(name)
            return engine

    def at(self, values: Float64 | None) -> Graph:
        """The graph with these strengths, or as it was given."""
        if values is None or self.strengths is None:
            return self.graph
        return self.strengths.graph(values)

    def start(self, engine: Engine) -> None:
        """Uses an engine that is already compiled."""
        with self._lock:
            self._keep(b"", engine)

    def _keep(self, name: bytes, engine: Engine) -> None:
        self._engines[name] = engine
        while len(self._engines) > _KEPT:
            self._engines.popitem(last=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Relations:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return compiled, (self.graph, self.options, self.tie)


def compiled(
    graph: Graph, options: dict[str, Any], tie: str | None = None, engine: Engine | None = None
) -> Relations:
    """The relations of a graph, compiled unless an equal module has done so."""
    text = f"{sorted(options.items())!r}\n{tie}\n{graph.to_json()}"
    key = hashlib.sha256(text.encode()).hexdigest()[:32]
    with _lock:
        relations = _alive.get(key)
        if relations is None:
            relations = Relations(key, graph, options, tie)
            if engine is not None and tie is None:
                relations.start(engine)
            # An error of the engine is raised here, not in the first step of training.
            relations.engine(None if relations.strengths is None else relations.strengths.values)
            _alive[key] = relations
        return relations


def find(key: str) -> Relations:
    """The relations of a key."""
    relations = _alive.get(key)
    if relations is None:
        raise InputError(
            "the module whose relations this operation uses is gone, or was made in another process; "
            "keep the RelationLayer or RelationLoss for as long as anything traced from it runs"
        )
    return relations
