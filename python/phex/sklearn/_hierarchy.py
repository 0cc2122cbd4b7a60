"""What lies above what: closures and depths along the hierarchy of a graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phex._core import Graph
from phex._types import Flags

__all__ = ["Hierarchy"]


class Hierarchy:
    """The hierarchy of a graph by the numbers of its labels; strengths do not count."""

    def __init__(self, graph: Graph) -> None:
        place = {label: at for at, label in enumerate(graph.labels)}
        self.size = len(place)
        self.parents: list[list[int]] = [[] for _ in place]
        self.children: list[list[int]] = [[] for _ in place]
        for parent, child, _ in graph.hierarchy:
            self.parents[place[child]].append(place[parent])
            self.children[place[parent]].append(place[child])
        self._above: dict[int, list[int]] = {}

    def above(self, label: int) -> list[int]:
        """A label and everything above it."""
        found = self._above.get(label)
        if found is None:
            seen, stack = {label}, [label]
            while stack:
                fresh = [at for at in self.parents[stack.pop()] if at not in seen]
                seen.update(fresh)
                stack.extend(fresh)
            found = self._above[label] = sorted(seen)
        return found

    def closure(self, labels: NDArray[np.intp]) -> Flags:
        """A row for each label: where it and everything above it is on."""
        on = np.zeros((len(labels), self.size), dtype=np.bool_)
        for row, label in enumerate(labels):
            on[row, self.above(int(label))] = True
        return on

    def depths(self) -> NDArray[np.intp]:
        """The longest way from a root to each label."""
        depths = np.zeros(self.size, dtype=np.intp)
        waiting = [len(parents) for parents in self.parents]
        ready = [at for at, count in enumerate(waiting) if not count]
        while ready:
            label = ready.pop()
            for child in self.children[label]:
                depths[child] = max(depths[child], depths[label] + 1)
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        return depths
