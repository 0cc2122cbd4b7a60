"""To and from networkx and dimod."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import named, random_graph, random_rows
from oracle import Oracle

import phex

networkx = pytest.importorskip("networkx")
dimod = pytest.importorskip("dimod")
GRAPHS = named()


def everything(graph: phex.Graph) -> list[object]:
    """The content of a graph; edges are sorted, because networkx keeps them by parent."""
    edges = sorted((parent, child, str(strength)) for parent, child, strength in graph.hierarchy)
    names = (graph.labels, graph.titles, graph.semantics)
    return [*names, edges, graph.exclusions, graph.one_of, graph.rule]


@pytest.mark.parametrize("graph", [*GRAPHS.values(), *map(random_graph, range(20))], ids=str)
def test_networkx_and_back_says_the_same(graph: phex.Graph) -> None:
    again = phex.from_networkx(phex.to_networkx(graph))
    assert everything(again) == everything(graph)
    assert again.is_equivalent(graph)


def test_networkx_keeps_titles_exclusions_groups_rule_and_semantics() -> None:
    graph = (
        phex.GraphBuilder()
        .label("animal", "an animal")
        .hierarchy("animal", ["dog", "cat", "cow"], "w=1")
        .exclusion(["dog", "cow"], "q=0.5")
        .exclusion(["dog", "cat", "cow"], "u=0.25", name="species")
        .one_of("place", ["indoors", "outdoors"])
        .exclude("siblings", "w=0.125")
        .semantics("dense")
        .build()
    )
    digraph = phex.to_networkx(graph)
    assert digraph.nodes["animal"] == {"title": "an animal"}
    assert digraph.edges["animal", "dog"] == {"relation": "hierarchy", "strength": "w=1"}
    assert digraph.graph == {
        "semantics": "dense",
        "exclusions": [
            (["dog", "cow"], "q=0.5", None),
            (["dog", "cat", "cow"], "u=0.25", "species"),
        ],
        "one_of": {"place": ["indoors", "outdoors"]},
        "rule": ("siblings", "w=0.125"),
    }
    assert phex.from_networkx(digraph) == graph


def test_plain_networkx_graphs_are_hierarchies() -> None:
    digraph = networkx.DiGraph([(1, 2), (1, 3)])
    digraph.add_edge(2, 3, relation="exclusion", strength="u=1")
    graph = phex.from_networkx(digraph)
    assert graph.labels == ["1", "2", "3"]
    assert [edge[:2] for edge in graph.hierarchy] == [("1", "2"), ("1", "3")]
    assert graph.exclusions == [(["2", "3"], phex.Strength("u=1"), None)]


def test_other_relations_are_refused() -> None:
    digraph = networkx.DiGraph()
    digraph.add_edge("wheel", "car", relation="part-of")
    with pytest.raises(phex.InputError, match="from `wheel` to `car` has the relation `part-of`"):
        phex.from_networkx(digraph)


def test_cycles_are_found() -> None:
    with pytest.raises(phex.GraphError, match="cycle"):
        phex.from_networkx(networkx.DiGraph([("a", "b"), ("b", "a")]))


def spins(sample: dict[str, int], labels: list[str]) -> list[bool]:
    return [sample[label] > 0 for label in labels]


@pytest.mark.parametrize("seed", range(8))
def test_ground_states_are_the_best_label_sets(seed: int) -> None:
    graph = random_graph(seed)
    model, oracle = graph.compile(), Oracle(graph)
    for row in random_rows(graph, 3, seed)[0]:
        bqm = phex.to_bqm(model, row)
        assert set(bqm.variables) == set(graph.labels)
        answer = dimod.ExactSolver().sample(bqm)
        assert spins(answer.first.sample, graph.labels) == model.map(row).tolist()
        # The energy is minus the log-weight, so that exp(-E) are the weights of legal states.
        energies = {tuple(spins(s, graph.labels)): e for s, e in answer.data(["sample", "energy"])}
        for state, weight in zip(oracle.on, oracle.log_weights(row)[0], strict=True):
            if np.isfinite(weight):
                assert energies[tuple(state.tolist())] == pytest.approx(-weight, abs=1e-9)


def test_hard_relations_cost_what_is_asked_for() -> None:
    model = phex.GraphBuilder().exclusion(["dog", "cat"]).build().compile()
    bqm = phex.to_bqm(model, [0.0, 0.0], hard=5.0)
    both, none = (bqm.energy({"dog": value, "cat": value}) for value in (1, -1))
    assert both - none == pytest.approx(5.0)


def test_an_energy_is_of_one_row() -> None:
    model = GRAPHS["free"].compile()
    with pytest.raises(phex.InputError, match="there are 2 rows; give one"):
        phex.to_bqm(model, np.zeros((2, 3)))
    with pytest.raises(phex.InputError, match="rows have 2 scores, but the model has 3 labels"):
        phex.to_bqm(model, [0.0, 0.0])
