"""Graphs: built, read, written, compared, checked."""

from __future__ import annotations

import json
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command import command_line
from data_files import data_file
from graphs import named, random_graph
from oracle import Oracle

import phex

ROOT = Path(__file__).parents[2]
BROKEN = ROOT / "crates/phex-cli/examples/animals-broken.toml"
GRAPHS = named()
ELSEWHERE = {"sh", "uai", "coo", "bqm", "qubo", "sparse", "samples"}
"""Fences of docs/reference/formats.md that are not label graphs."""


def examples() -> list[tuple[str, str]]:
    """The examples of docs/reference/formats.md that are label graphs."""
    pieces = (ROOT / "docs/reference/formats.md").read_text(encoding="utf-8").split("```")[1::2]
    return [(name, text) for name, text in (p.split("\n", 1) for p in pieces) if name not in ELSEWHERE]


EXAMPLES = examples()


def test_builder_collects_labels_in_order() -> None:
    builder = phex.GraphBuilder()
    builder.label("cat", title="domestic cat").hierarchy("animal", ["dog", "cat"])
    assert len(builder) == 3
    assert repr(builder) == "<GraphBuilder of 3 labels>"
    graph = builder.build()
    assert graph.labels == ["cat", "animal", "dog"]
    assert graph.titles == ["domestic cat", None, None]
    assert [graph.index(label) for label in graph.labels] == [0, 1, 2]
    assert "dog" in graph
    assert "cow" not in graph
    assert (graph.roots, graph.leaves) == (["animal"], ["cat", "dog"])
    assert (graph.parents("dog"), graph.children("animal")) == (["animal"], ["dog", "cat"])


def test_builder_keeps_strengths_and_groups() -> None:
    graph = (
        phex.GraphBuilder()
        .defaults("w=2", exclusion="q=0.5")
        .hierarchy("animal", "dog")
        .hierarchy("animal", "cat", phex.Strength.u(0.5))
        .exclusion(["dog", "cat", "cow"], name="species")
        .one_of("place", ["indoors", "outdoors"])
        .exclude("siblings", "hard")
        .build()
    )
    assert graph.hierarchy == [
        ("animal", "dog", phex.Strength("w=2")),
        ("animal", "cat", phex.Strength("u=0.5")),
    ]
    assert graph.exclusions == [(["dog", "cat", "cow"], phex.Strength("q=0.5"), "species")]
    assert graph.one_of == {"place": ["indoors", "outdoors"]}
    assert graph.rule == ("siblings", phex.Strength.hard())
    assert graph.semantics == "sparse"
    assert not graph.is_hard
    assert graph.with_strengths(hierarchy="hard", exclusion="hard").is_hard


def test_closed_labels_are_all_there_are() -> None:
    builder = phex.GraphBuilder().label("dog").label("cat").close_labels().exclusion(["dog", "cta"])
    with pytest.raises(phex.GraphError, match="did you mean `cat`"):
        builder.build()


@pytest.mark.parametrize(
    ("text", "cost", "factor"),
    [("hard", np.inf, 0.0), ("w=2", 2.0, np.exp(-2.0)), ("u=0.5", 2.0, np.exp(-2.0)), ("q=1", 0.0, 1.0)],
)
def test_strengths_have_three_units(text: str, cost: float, factor: float) -> None:
    strength = phex.Strength(text)
    assert (strength.cost, strength.factor) == pytest.approx((cost, factor))
    assert strength.is_hard == np.isinf(cost)
    assert str(strength) == text
    assert pickle.loads(pickle.dumps(strength)) == strength
    assert hash(phex.Strength(text)) == hash(strength)


@pytest.mark.parametrize("text", ["u=-1", "q=1.5", "w=nan", "strong", "u"])
def test_strengths_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(phex.InputError):
        phex.Strength(text)


@pytest.mark.parametrize(("name", "text"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_examples_of_the_documentation_load(name: str, text: str, tmp_path: Path) -> None:
    parsed = phex.Graph.parse(text, name)
    assert len(parsed) >= 3
    path = tmp_path / "example"
    path.write_text(text, encoding="utf-8")
    assert phex.load(path, format=name) == parsed
    assert phex.Graph.parse(text.encode(), name) == parsed
    # What is read can be used.
    assert np.isfinite(parsed.compile().log_partition(np.zeros(len(parsed))))


def test_every_graph_format_has_an_example() -> None:
    read = {"toml", "json", "csv", "hxg", "outline", "obo", "turtle", "matrix", "arff"}
    assert read <= {name for name, _ in EXAMPLES}


def test_formats_are_found_by_name_and_companions_are_read(tmp_path: Path) -> None:
    (tmp_path / "graph.tsv").write_text("parent\tchild\nanimal\tdog\nanimal\tcat\n")
    (tmp_path / "labels.txt").write_text("cat\ndog\nanimal\n")
    graph = phex.load(tmp_path / "graph.tsv", labels=tmp_path / "labels.txt")
    assert graph.labels == ["cat", "dog", "animal"]
    (tmp_path / "matrix.txt").write_text("0 100\n50 100\n")
    (tmp_path / "classes.txt").write_text("1 dolphin\n2 otter\n")
    (tmp_path / "attributes.txt").write_text("1 furry\n2 swims\n")
    graph = phex.load(
        str(tmp_path / "matrix.txt"),
        rows=tmp_path / "classes.txt",
        columns=tmp_path / "attributes.txt",
        scale="w=2",
        one_of_classes=True,
    )
    assert list(graph.one_of.values()) == [["dolphin", "otter"]]
    costs = {(parent, child): strength.cost for parent, child, strength in graph.hierarchy}
    assert costs == {("swims", "dolphin"): 2.0, ("furry", "otter"): 1.0, ("swims", "otter"): 2.0}


def test_wordnet_needs_its_synsets() -> None:
    nouns = data_file("imagenet/wordnet3.0/data.noun")
    graph = phex.load(nouns, synsets=data_file("imagenet/imagenet_synsets.txt"))
    assert (len(graph), len(graph.leaves)) == (1860, 1000)
    assert graph.titles[0] == "tench, Tinca tinca"


@pytest.mark.parametrize("form", ["toml", "json", "csv", "tsv"])
@pytest.mark.parametrize("name", GRAPHS)
def test_save_and_load_is_the_same_graph(name: str, form: str, tmp_path: Path) -> None:
    graph = GRAPHS[name]
    path = tmp_path / f"graph.{form}"
    graph.save(path)
    assert phex.load(path) == graph
    assert phex.Graph.parse(graph.to_string(form), form) == graph
    graph.save(tmp_path / "unnamed", format=form)
    assert (tmp_path / "unnamed").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("form", ["hxg", "outline"])
def test_forms_without_room_refuse_and_say_why(form: str) -> None:
    graph = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).build()
    assert phex.Graph.parse(graph.to_string(form), form) == graph
    with pytest.raises(phex.FileError, match="cannot hold soft relations"):
        GRAPHS["soft-tree"].to_string(form)


@pytest.mark.parametrize("seed", range(10))
def test_equality_pickle_and_hash(seed: int) -> None:
    graph = random_graph(seed)
    again = phex.Graph.from_json(graph.to_json())
    assert graph == again
    assert hash(graph) == hash(again)
    assert pickle.loads(pickle.dumps(graph)) == graph
    other = random_graph(seed + 1000)
    assert graph != other
    assert graph != "graph"


def test_sparse_and_dense_forms_are_equivalent() -> None:
    graph = GRAPHS["hard-tree"]
    dense, sparse = graph.densify(), graph.sparsify()
    assert dense.is_equivalent(graph)
    assert sparse.is_equivalent(graph)
    assert len(sparse.hierarchy) <= len(graph.hierarchy) <= len(dense.hierarchy)
    other = phex.GraphBuilder()
    for label in graph.labels:
        other.label(label)
    assert not other.build().is_equivalent(graph)


@pytest.mark.parametrize("seed", range(20))
def test_states_are_the_legal_ones(seed: int) -> None:
    graph = random_graph(seed)
    legal = {tuple(state) for state in Oracle(graph).legal().tolist()}
    assert graph.count_states() == len(legal)
    assert {tuple(state) for state in graph.states().tolist()} == legal
    assert len(graph.states(limit=1)) == 1


def test_counts_are_integers_of_any_size() -> None:
    builder = phex.GraphBuilder()
    for label in range(200):
        builder.label(str(label))
    assert builder.build().count_states() == 2**200


def test_findings_are_objects_with_places() -> None:
    report = phex.GraphBuilder.load(BROKEN).check()
    assert (report.labels, report.errors, report.warnings) == (11, 4, 3)
    assert len(report) == len(report.findings) == 7
    assert not report.is_clean
    husky = next(f for f in report.of_kind("dead-label") if f.labels[0] == "husky")
    assert husky.severity == "error"
    assert husky.message == (
        "husky can never be on: husky is a dog, dog is a pet, pet excludes wild animal, "
        "husky is a wild animal"
    )
    assert [step.relation for step in husky.chain] == [
        "hierarchy",
        "hierarchy",
        "exclusion",
        "hierarchy",
    ]
    third = husky.chain[2]
    assert (third.a, third.b, third.text) == ("pet", "wild animal", "pet excludes wild animal")
    assert (third.file, third.line) == (str(BROKEN), 32)
    (unknown,) = report.of_kind("unknown-label")
    assert (unknown.file, unknown.line) == (str(BROKEN), 35)
    assert str(unknown).startswith(f"{BROKEN}:35: error: `wolff` is not a declared label")
    (cause,) = report.root_causes
    assert (cause.remove.text, cause.revives, cause.revived, cause.dead) == (
        "pet excludes wild animal",
        ["husky", "sled dog"],
        2,
        2,
    )
    html = report._repr_html_()
    assert html.count("<tr>") == 8
    assert "wolff" in html


def test_a_clean_graph_has_no_findings() -> None:
    report = phex.load(ROOT / "crates/phex-cli/examples/animals.toml").check()
    assert report.is_clean
    assert str(report) == "17 labels: nothing found\n"


def test_errors_have_the_report() -> None:
    with pytest.raises(phex.GraphError) as caught:
        phex.load(BROKEN)
    assert isinstance(caught.value, ValueError)
    assert {f.kind for f in caught.value.report.findings if f.severity == "error"} == {
        "unknown-label",
        "strength-out-of-range",
        "dead-label",
    }
    with pytest.raises(phex.GraphError) as caught:
        phex.GraphBuilder().hierarchy("a", "b").hierarchy("b", "a").build()
    assert caught.value.report.findings[0].kind == "hierarchy-cycle"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command_line(), *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_reports_are_those_of_the_command_line() -> None:
    report = phex.GraphBuilder.load(BROKEN).check()
    assert run("graph", "check", BROKEN).stdout == str(report)
    assert json.loads(run("graph", "check", BROKEN, "--json").stdout) == json.loads(report.to_json())


@pytest.mark.parametrize("kind", ["broken", "missing", "columns", "bad.json"])
def test_texts_of_errors_are_those_of_the_command_line(kind: str, tmp_path: Path) -> None:
    path = BROKEN if kind == "broken" else tmp_path / kind
    if kind == "columns":
        path = path.with_suffix(".csv")
        path.write_text("a,b\n1,2\n")
    elif kind == "bad.json":
        path.write_text("{")
    with pytest.raises(phex.PhexError) as caught:
        phex.load(path)
    assert isinstance(caught.value, phex.GraphError if kind == "broken" else phex.FileError)
    # Of a graph that is not one the command line names the file once more.
    again = f"{path}: " if kind == "broken" else ""
    assert run("graph", "show", path).stderr.strip() == f"phex: {again}{caught.value}".strip()


def test_files_that_cannot_be_read_are_os_errors(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"nothing\.toml: cannot be read: No such file"):
        phex.load(tmp_path / "nothing.toml")
    with pytest.raises(phex.FileError, match="obo files can be read only"):
        GRAPHS["free"].to_string("obo")
    with pytest.raises(phex.FileError, match=r"my\.csv:1: unknown column `a`"):
        phex.Graph.parse("a,b\n", "csv", name="my.csv")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: phex.GraphBuilder().exclude("cousins"), "cousins"),
        (lambda: phex.GraphBuilder().semantics("thick"), "thick"),
        (lambda: phex.GraphBuilder().one_of("leaf", "dog"), 'give a list of labels, or "leaves"'),
        (lambda: phex.Graph.parse("", "docx"), "`docx` is not a format"),
        (lambda: GRAPHS["free"].index("four"), "the graph has no label `four`"),
        (lambda: GRAPHS["free"].parents("four"), "the graph has no label `four`"),
        (lambda: GRAPHS["free"].svg({"four": 1.0}), "the graph has no label `four`"),
    ],
)
def test_wrong_words_are_named(call, text: str) -> None:
    with pytest.raises(phex.InputError) as caught:
        call()
    assert text in str(caught.value)


def test_pictures_name_every_label() -> None:
    graph = GRAPHS["soft-tree"]
    for picture in (graph.svg(), graph.svg({"dog": 0.5}), graph._repr_html_(), graph.to_string("dot")):
        assert all(label in picture for label in graph.labels)
    assert "<svg" in graph.svg()
