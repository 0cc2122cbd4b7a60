"""The golden numbers of the Rust tests (`crates/phex/tests/behaviour/golden.rs`), from Python."""

from __future__ import annotations

import json

import golden
import numpy as np
import pytest
from data_files import data_file

import phex

CASES = json.loads(golden.PATH.read_text(encoding="utf-8"))
EXACT = ["paths", "star", "count", "family", "states", "junction", "brute"]


def models(case: dict) -> list[phex.Model]:
    graph = phex.Graph.from_json(json.dumps(case["graph"]))
    found = []
    for method in EXACT:
        try:
            found.append(graph.compile(method))
        except phex.EngineError:
            continue
    return found


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_every_engine_has_the_golden_numbers(case: dict) -> None:
    rows = case["rows"]
    scores = np.array([row["logits"] for row in rows])
    known = np.array([row["known"] for row in rows], dtype=np.int8)
    legal = np.array([row["marginals"] is not None for row in rows])
    marginals = np.array([row["marginals"] for row in rows if row["marginals"] is not None])
    total = np.array([-np.inf if row["log_partition"] is None else row["log_partition"] for row in rows])
    best = np.array([row["best"] for row in rows if row["best"] is not None], dtype=bool)
    for model in models(case):
        found = model.infer(scores, known)
        assert found.status == ["answered" if fine else "impossible" for fine in legal]
        np.testing.assert_allclose(found.marginals[legal], marginals, rtol=0, atol=1e-12)
        np.testing.assert_allclose(model.log_partition(scores, known), total, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(model.map(scores[legal], known[legal]), best)


def test_the_file_is_what_the_oracle_says() -> None:
    for written, computed in zip(CASES, golden.cases(), strict=True):
        assert (written["name"], written["graph"]) == (computed["name"], computed["graph"])
        for old, new in zip(written["rows"], computed["rows"], strict=True):
            assert {key: old[key] for key in ("logits", "known", "best")} == {
                key: new[key] for key in ("logits", "known", "best")
            }
            if old["marginals"] is None:
                assert new["marginals"] is None
            else:
                np.testing.assert_allclose(old["marginals"], new["marginals"], atol=1e-13)


def test_the_imagenet_hierarchy_is_the_one_of_the_rust_tests() -> None:
    edges = data_file("imagenet/ilsvrc2012_hierarchy_edges.tsv")
    graph = phex.load(edges, labels=data_file("imagenet/ilsvrc2012_hierarchy_nodes.tsv"))
    assert (len(graph), len(graph.hierarchy), len(graph.leaves)) == (1860, 1937, 1000)
    assert (graph.labels[0], graph.titles[0]) == ("n02119789", "kit fox, Vulpes macrotis")
