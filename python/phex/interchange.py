"""To and from other libraries: networkx graphs, dimod models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from phex._core import Graph, GraphBuilder
from phex.errors import InputError
from phex.model import Model
from phex.tables import read_scores

if TYPE_CHECKING:
    import dimod
    import networkx

__all__ = ["from_networkx", "to_bqm", "to_networkx"]


def from_networkx(digraph: networkx.DiGraph) -> Graph:
    """The relations that a networkx graph shows.

    An edge from parent to child is a hierarchy edge; one with `relation="exclusion"` joins labels that
    exclude each other. `strength` of an edge is a text such as `u=0.5`. The graph's own attributes
    `exclusions` (a list of `(labels, strength, name)`), `one_of` (a dictionary of labels by name),
    `rule` and `semantics` are what `to_networkx` writes. Nodes are labels, named by their text.

    >>> import networkx, phex
    >>> graph = phex.from_networkx(networkx.DiGraph([("animal", "dog"), ("animal", "cat")]))
    >>> graph.leaves
    ['dog', 'cat']
    """
    if not digraph.is_directed():
        raise InputError("the graph is undirected; give a DiGraph with edges from parent to child")
    builder = GraphBuilder()
    for node, attributes in digraph.nodes(data=True):
        builder.label(str(node), attributes.get("title"))
    for parent, child, attributes in digraph.edges(data=True):
        relation, strength = attributes.get("relation", "hierarchy"), attributes.get("strength")
        if relation == "hierarchy":
            builder.hierarchy(str(parent), str(child), strength)
        elif relation == "exclusion":
            builder.exclusion([str(parent), str(child)], strength)
        else:
            raise InputError(
                f"the edge from `{parent}` to `{child}` has the relation `{relation}`; "
                "it must be `hierarchy` or `exclusion`"
            )
    for labels, strength, name in digraph.graph.get("exclusions", []):
        builder.exclusion([str(label) for label in labels], strength, name=name)
    for name, labels in digraph.graph.get("one_of", {}).items():
        builder.one_of(name, [str(label) for label in labels])
    rule = digraph.graph.get("rule")
    if rule is not None:
        builder.exclude(*((rule,) if isinstance(rule, str) else rule))
    builder.semantics(digraph.graph.get("semantics", "sparse"))
    return builder.build()


def to_networkx(graph: Graph) -> networkx.DiGraph:
    """The labels and relations as a networkx graph. `from_networkx` reads the same relations from it.

    >>> import phex
    >>> graph = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"], "u=1").build()
    >>> phex.to_networkx(graph).edges["animal", "dog"]
    {'relation': 'hierarchy', 'strength': 'u=1'}
    """
    import networkx

    digraph = networkx.DiGraph(semantics=graph.semantics)
    for label, title in zip(graph.labels, graph.titles, strict=True):
        digraph.add_node(label, **({} if title is None else {"title": title}))
    for parent, child, strength in graph.hierarchy:
        digraph.add_edge(parent, child, relation="hierarchy", strength=str(strength))
    sets = [(labels, str(strength), name) for labels, strength, name in graph.exclusions]
    if sets:
        digraph.graph["exclusions"] = sets
    if graph.one_of:
        digraph.graph["one_of"] = graph.one_of
    if graph.rule is not None:
        digraph.graph["rule"] = (graph.rule[0], str(graph.rule[1]))
    return digraph


def to_bqm(model: Model, logits: Any, hard: float | None = None) -> dimod.BinaryQuadraticModel:
    """The energy of one row of scores as a dimod model: its ground state is the best label set.

    Hard relations cost `hard`. Without it, they cost enough that every best state is legal. This needs
    `phex[dimod]`.
    """
    import json

    import dimod

    rows = read_scores(logits, model.labels).values
    if rows.shape[0] != 1:
        raise InputError(
            f"there are {rows.shape[0]} rows; give one, because each row has its own energy"
        )
    text = model._engine.to_bqm(rows[0].astype(np.float64), hard)
    return dimod.BinaryQuadraticModel.from_serializable(json.loads(text))
