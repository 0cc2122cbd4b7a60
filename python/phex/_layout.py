"""Where the labels of a drawn graph stand, and which of them are marked as exclusive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from phex._core import Graph, Strength

__all__ = ["Exclusive", "Layout", "exclusive_sets"]

_GAP = 0.35
"""Room between the families of two roots, in rows."""


@dataclass(frozen=True)
class Exclusive:
    """Labels of which any two exclude each other."""

    labels: tuple[str, ...]
    strength: Strength
    siblings: bool
    """Whether they stand under one parent, or are all roots."""


@dataclass
class Layout:
    """A layer and a row for each label: general labels left, special ones right."""

    layer: dict[str, int]
    row: dict[str, float] = field(default_factory=dict)
    parent: dict[str, str | None] = field(default_factory=dict)
    """The parent beside whom a label stands; `None` for roots."""
    height: float = 0.0
    """Rows in all."""

    @classmethod
    def of(cls, graph: Graph) -> Layout:
        """Leaves stand in rows of their own, other labels at the middle of those beside them."""
        layout = cls(_layers(graph))
        family: dict[str | None, list[str]] = {None: []}
        for label in graph.labels:
            # The nearest parent keeps edges short; among those, the one with the fewest children has
            # the least to gather.
            parents = graph.parents(label)
            nearest = min(
                parents, key=lambda at: (-layout.layer[at], len(graph.children(at))), default=None
            )
            layout.parent[label] = nearest
            family.setdefault(nearest, []).append(label)
        for root in family[None]:
            if layout.row and (root in family or layout._ends_family()):
                layout.height += _GAP
            layout._place(root, family)
        return layout

    def _ends_family(self) -> bool:
        last = next(reversed(self.row))
        return self.parent[last] is not None

    def _place(self, root: str, family: dict[str | None, list[str]]) -> None:
        # Without recursion: hierarchies may be deeper than the interpreter's stack.
        stack: list[tuple[str, bool]] = [(root, False)]
        middle: dict[str, float] = {}
        while stack:
            label, seen = stack.pop()
            children = family.get(label, [])
            if not children:
                middle[label] = self.height
                self.height += 1.0
            elif seen:
                middle[label] = (middle[children[0]] + middle[children[-1]]) / 2
            else:
                stack.append((label, True))
                stack.extend((child, False) for child in reversed(children))
                continue
            self.row[label] = middle[label]


def _layers(graph: Graph) -> dict[str, int]:
    """The longest way from a root to each label."""
    layer = dict.fromkeys(graph.roots, 0)
    waiting = {label: len(graph.parents(label)) for label in graph.labels}
    ready = list(graph.roots)
    while ready:
        label = ready.pop()
        for child in graph.children(label):
            layer[child] = max(layer.get(child, 0), layer[label] + 1)
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    return layer


def exclusive_sets(graph: Graph, layout: Layout) -> list[Exclusive]:
    """The declared exclusions and the minimal pairs of the rule, as few sets."""
    found = [
        Exclusive(tuple(labels), strength, _are_siblings(labels, layout))
        for labels, strength, _ in graph.exclusions
    ]
    if graph.rule is not None:
        rule, strength = graph.rule
        for labels in _cover(_rule_pairs(graph, rule), graph.labels, layout):
            found.append(Exclusive(labels, strength, _are_siblings(labels, layout)))
    return found


def _are_siblings(labels: Iterable[str], layout: Layout) -> bool:
    return len({layout.parent[label] for label in labels}) == 1


def _rule_pairs(graph: Graph, rule: str) -> set[frozenset[str]]:
    """The pairs that the rule charges for: those with no exclusive pair above them."""
    above: dict[str, set[str]] = {}
    for label in sorted(graph.labels, key=_layers(graph).__getitem__):
        above[label] = {label}.union(*(above[parent] for parent in graph.parents(label)))
    below: dict[str, set[str]] = {label: set() for label in graph.labels}
    for label, ancestors in above.items():
        for ancestor in ancestors:
            below[ancestor].add(label)
    pairs = set()
    for a, b in combinations(graph.labels, 2):
        if rule == "not-subsumed":
            exclusive = a not in above[b] and b not in above[a]
        else:
            exclusive = below[a].isdisjoint(below[b])
        if rule == "siblings":
            exclusive = exclusive and not set(graph.parents(a)).isdisjoint(graph.parents(b))
        if exclusive:
            pairs.add(frozenset((a, b)))
    if rule == "siblings":
        return pairs

    def is_minimal(pair: frozenset[str]) -> bool:
        a, b = pair
        higher = (frozenset((up, over)) for up in above[a] for over in above[b])
        return all(other == pair or other not in pairs for other in higher)

    return {pair for pair in pairs if is_minimal(pair)}


def _cover(pairs: set[frozenset[str]], labels: list[str], layout: Layout) -> list[tuple[str, ...]]:
    """Sets of siblings that hold every pair of siblings; the other pairs as they are."""
    order = {label: at for at, label in enumerate(labels)}
    sets: list[tuple[str, ...]] = []
    left = set(pairs)
    for pair in sorted(pairs, key=lambda pair: sorted(order[label] for label in pair)):
        if pair not in left:
            continue
        members = sorted(pair, key=order.__getitem__)
        if _are_siblings(members, layout):
            for label in labels:
                new = label not in members and all(frozenset((label, m)) in pairs for m in members)
                if new and _are_siblings((label, members[0]), layout):
                    members.append(label)
        left.difference_update(map(frozenset, combinations(members, 2)))
        sets.append(tuple(sorted(members, key=order.__getitem__)))
    return sets
