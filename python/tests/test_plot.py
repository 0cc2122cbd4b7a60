"""Pictures: what is drawn, counted by the marks of the artists, and the numbers in titles."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: phex[plot]")
matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402

import phex  # noqa: E402
import phex.plot  # noqa: E402
from phex._core import exclusion_marks  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def pets(rule: str = "siblings", strength: str | None = None) -> phex.Graph:
    builder = phex.GraphBuilder()
    builder.hierarchy("animal", ["dog", "cat", "bird"]).hierarchy("dog", ["husky", "poodle"])
    builder.hierarchy("pet", ["husky", "goldfish"], "u=0.3")
    return builder.exclude(rule, strength).build()


def marked(ax: Any, gid: str) -> list[Any]:
    return [artist for artist in (*ax.patches, *ax.texts) if artist.get_gid() == gid]


def test_a_graph_is_drawn_with_a_box_a_label_and_a_line_an_edge() -> None:
    graph = pets()
    ax = phex.plot.graph(graph)
    assert len(marked(ax, "label")) == len(graph)
    assert len(marked(ax, "hierarchy")) == len(graph.hierarchy)
    assert set(graph.labels) <= {text.get_text() for text in ax.texts}
    soft = [line for line in marked(ax, "hierarchy") if line.get_linestyle() not in ("-", "solid")]
    assert len(soft) == 2
    # dog, cat, bird; husky, poodle; and an arc of husky and goldfish, two children of pet.
    assert (len(marked(ax, "bracket")), len(marked(ax, "arc"))) == (2, 1)


def test_legends_say_what_is_there_and_nothing_else() -> None:
    texts = {text.get_text() for text in phex.plot.graph(pets()).texts}
    assert {"is a", "is also a", "exclude each other", "soft"} <= texts
    plain = phex.GraphBuilder().hierarchy("dog", "puppy").build()
    assert [text.get_text() for text in phex.plot.graph(plain).texts] == ["dog", "puppy", "is a"]


def test_groups_across_families_are_numbered_and_one_of_groups_named() -> None:
    builder = (
        phex.GraphBuilder().hierarchy("a", ["b", "c"]).hierarchy("d", ["e"]).label("in").label("out")
    )
    builder.exclusion(["b", "e", "in"], "u=1").one_of("place", ["in", "out"])
    ax = phex.plot.graph(builder.build())
    assert [badge.get_text() for badge in marked(ax, "badge")] == ["1", "1", "1"]
    assert "one of: place" in {text.get_text() for text in ax.texts}


def test_dead_labels_are_struck_out() -> None:
    builder = phex.GraphBuilder().hierarchy("dog", "seadog").hierarchy("fish", "seadog")
    ax = phex.plot.graph(builder.exclusion(["dog", "fish"]).build())
    assert len(marked(ax, "dead")) == 1
    assert "can never be on" in {text.get_text() for text in ax.texts}


def test_values_stand_in_the_boxes_and_colour_them() -> None:
    graph = pets()
    ax = phex.plot.graph(graph, {"dog": 0.25, "cat": 1.0, "bird": float("nan")})
    texts = [text.get_text() for text in ax.texts]
    assert {"dog  0.25", "cat  1.00", "bird"} <= set(texts)
    colours = {box.get_facecolor() for box in marked(ax, "label")}
    assert len(colours) == 3
    row = graph.compile().marginals(np.zeros(len(graph)))
    assert f"animal  {row[0]:.2f}" in [text.get_text() for text in phex.plot.graph(graph, row).texts]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"wolf": 0.5}, "`wolf` is not a label"),
        ({"dog": 1.5}, "the value of `dog` is 1.5"),
        ([0.5], "there are 8 labels"),
    ],
)
def test_values_are_checked(values: Any, message: str) -> None:
    with pytest.raises(phex.InputError, match=message):
        phex.plot.graph(pets(), values)


def test_large_graphs_are_sent_to_svg() -> None:
    graph = phex.GraphBuilder().hierarchy("root", [f"leaf {at}" for at in range(200)]).build()
    with pytest.raises(phex.InputError, match=r"201 labels.*Graph\.svg"):
        phex.plot.graph(graph)


@pytest.mark.parametrize("size", [1, 12, 60])
def test_boxes_and_texts_do_not_overlap(size: int) -> None:
    random = np.random.default_rng(size)
    builder = phex.GraphBuilder().label("label 0")
    for at in range(1, size):
        builder.hierarchy(f"label {random.integers(at)}", f"label {at}")
        if at % 7 == 6:
            builder.hierarchy(f"label {random.integers(at - 3)}", f"label {at}")
    ax = phex.plot.graph(builder.exclude("siblings").build())
    ax.figure.draw_without_rendering()
    boxes = [box.get_window_extent() for box in marked(ax, "label")]
    texts = [text.get_window_extent() for text in ax.texts if text.get_text().startswith("label")]
    assert len(boxes) == len(texts) == size
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert all(box.x0 <= text.x0 and text.x1 <= box.x1 for box, text in zip(boxes, texts, strict=True))
    frame = ax.figure.bbox
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 for box in boxes)


@pytest.mark.parametrize("rule", ["siblings", "no-common-descendant"])
@pytest.mark.parametrize("seed", range(8))
def test_the_marks_of_a_rule_mean_the_same_as_the_rule(rule: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    edges = [(int(random.integers(at)), at) for at in range(2, 14)]
    edges += [(int(random.integers(at)), at) for at in range(5, 14, 4)]
    given, drawn = phex.GraphBuilder(), phex.GraphBuilder()
    for builder in (given, drawn):
        for at in range(14):
            builder.label(str(at))
        for parent, child in sorted(set(edges)):
            builder.hierarchy(str(parent), str(child))
    graph = given.exclude(rule).build()
    for labels, *_ in exclusion_marks(graph):
        drawn.exclusion(labels)
    assert drawn.build().is_equivalent(graph)


def test_axes_given_are_drawn_into_and_nothing_else_changes() -> None:
    figure, axes = plt.subplots(1, 3)
    before, settings = plt.get_fignums(), dict(matplotlib.rcParams)
    assert phex.plot.graph(pets(), ax=axes[0]) is axes[0]
    assert phex.plot.reliability([[0.5]], [[1]], ax=axes[1]) is axes[1]
    assert phex.plot.strength_curve(["u=1"], [0.5], ax=axes[2]) is axes[2]
    assert (plt.get_fignums(), dict(matplotlib.rcParams)) == (before, settings)
    figure.canvas.draw()


def test_own_figures_leave_the_current_axes_alone() -> None:
    _, current = plt.subplots()
    ax = phex.plot.graph(pets())
    assert ax is not current
    assert not current.patches


def test_the_calibration_error_is_that_by_hand() -> None:
    probabilities = [[0.1, 0.3], [0.3, 0.9], [0.6, 1.0]]
    targets = [[0, 1], [0, 1], [-1, 0]]
    # Two bins: 0.1, 0.3, 0.3 with one of three on; 0.9 and 1.0 with one of two.
    below, above = abs(0.7 / 3 - 1 / 3), abs(0.95 - 0.5)
    ax = phex.plot.reliability(probabilities, targets, bins=2)
    assert ax.get_title() == f"ECE {(3 * below + 2 * above) / 5:.4f}: 5 entries, 2 bins"
    points = next(line for line in ax.lines if line.get_label() == "bins")
    np.testing.assert_allclose(points.get_xydata(), [[0.7 / 3, 1 / 3], [0.95, 0.5]])
    assert [text.get_text() for text in ax.texts] == ["3", "2"]


def test_calibration_reads_frames_by_name_and_unknown_targets() -> None:
    probabilities = pd.DataFrame({"dog": [0.2, 0.8], "cat": [0.5, 0.1]})
    targets = pd.DataFrame({"cat": [np.nan, 0.0], "dog": [0.0, 1.0]})
    ax = phex.plot.reliability(probabilities, targets, bins=10)
    assert ax.get_title() == f"ECE {(0.2 + 0.2 + 0.1) / 3:.4f}: 3 entries, 10 bins"
    plain = phex.plot.reliability(probabilities.to_numpy(), [[0, -1], [1, 0]], bins=10)
    assert plain.get_title() == ax.get_title()


def test_a_probability_on_an_edge_belongs_to_the_bin_above() -> None:
    ax = phex.plot.reliability([[0.1, 0.2, 0.3, 1.0]], [[0, 0, 1, 1]], bins=10)
    points = next(line for line in ax.lines if line.get_label() == "bins")
    np.testing.assert_allclose(points.get_xdata(), [0.1, 0.2, 0.3, 1.0])


@pytest.mark.parametrize(
    ("probabilities", "targets", "message"),
    [
        ([[0.5]], [[-1]], "no target is known"),
        ([[1.5]], [[1]], "probabilities must be 0 to 1"),
        ([[0.5, 0.5]], [[1]], "shape"),
        ([[0.5]], [[0.5]], "0.5 is not valid evidence"),
    ],
)
def test_calibration_checks_what_it_gets(probabilities: Any, targets: Any, message: str) -> None:
    with pytest.raises(phex.InputError, match=message):
        phex.plot.reliability(probabilities, targets)


def test_strengths_stand_in_order_with_none_left_and_hard_right() -> None:
    ax = phex.plot.strength_curve(["hard", "u=1", "w=0", "w=1"], [4.0, 3.0, 1.0, 2.0])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["none", "0.25", "1", "hard"]
    ticks = ax.get_xticks()
    assert (np.diff(ticks) > 0).all()
    assert ticks[2] - ticks[1] == pytest.approx(np.log10(4))
    assert ax.get_title() == "best: hard, 4"
    assert (
        phex.plot.strength_curve([0.1, np.inf], [1.0, 2.0], best="min").get_title() == "best: u=0.1, 1"
    )


def test_seeds_give_means_deviations_and_dots() -> None:
    runs = [[0.5, 0.7], [0.8, np.nan], [0.7, 0.8]]
    ax = phex.plot.strength_curve([0.1, 1.0, np.inf], runs, metric="F1", unit="w")
    assert ax.get_title() == "best: w=1, 0.8"
    assert ax.get_ylabel() == "F1"
    bars = ax.containers[0]
    np.testing.assert_allclose(bars.lines[0].get_ydata(), [0.6, 0.8, 0.75])
    lengths = [np.ptp(segment[:, 1]) for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(lengths, [2 * np.sqrt(0.02), 0.0, 2 * np.sqrt(0.005)])


@pytest.mark.parametrize(
    ("strengths", "values", "message"),
    [
        ([0.1], [1.0, 2.0], "there are 1 strengths"),
        ([], [], "there are 0 strengths"),
        ([-1.0], [1.0], "must be 0 or more"),
        ([0.1, 1.0], [[1.0], [np.nan]], "u=1 has no value"),
    ],
)
def test_strength_curves_check_what_they_get(strengths: Any, values: Any, message: str) -> None:
    with pytest.raises(phex.InputError, match=message):
        phex.plot.strength_curve(strengths, values)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'phex\[plot\]'"):
        phex.plot.graph(pets())
