"""Draws a label graph with matplotlib, for `phex.plot.graph`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from phex._core import Graph, Strength, exclusion_marks, graph_layout

__all__ = ["Picture"]

# Everything is in points: the axes are as many units wide and high as the picture has points.
_SIZE, _SMALL = 9.0, 7.5
_ROW, _BOX, _PAD, _GAP, _MARGIN = 20.0, 15.0, 5.0, 48.0, 10.0
_LINE, _SCALE = 16.0, 34.0
_NARROWEST = 330.0
_MOST_ARCS = 80
_LONGEST = 32
_INK, _BOX_FILL, _BOX_EDGE, _LEGEND_INK = "#1c2733", "#f4f6f8", "#8a97a5", "#555555"
_IS_A, _FURTHER, _EXCLUDES, _DEAD_FILL = "#9aa5b1", "#3b78c3", "#d1453b", "#fde8e6"
_ONE_OF = [
    ("#e3f4e8", "#2e8b57"),
    ("#fdf0da", "#c07f1c"),
    ("#efe6fa", "#7a4fb5"),
    ("#dff3f5", "#1d8a99"),
]
_COLOURS = "YlGnBu"
_STRAIGHT, _CURVE = [Path.MOVETO, Path.LINETO], [Path.MOVETO, *[Path.CURVE4] * 3]


def _width(text: str, size: float = _SIZE) -> float:
    return float(TextPath((0, 0), text, size=size).get_extents().width) if text.strip() else 0.0


def _captions(graph: Graph, values: Mapping[str, float]) -> dict[str, str]:
    """Short titles where no two labels share one, else names; with the value."""
    short = {
        label: label if title is None else title.split(",")[0]
        for label, title in zip(graph.labels, graph.titles, strict=True)
    }
    uses = Counter(short.values())
    captions = {}
    for label, text in short.items():
        unique = text if uses[text] == 1 else label
        cut = unique if len(unique) <= _LONGEST else unique[: _LONGEST - 1] + "…"
        captions[label] = f"{cut}  {values[label]:.2f}" if label in values else cut
    return captions


class _Mark(NamedTuple):
    """How an exclusion is drawn; the number is a bracket's lane or a badge's text."""

    labels: list[str]
    strength: Strength
    form: str
    number: int


class Picture:
    """A graph laid out in points, to be drawn into axes."""

    def __init__(self, graph: Graph, values: Mapping[str, float]) -> None:
        self.graph, self.values = graph, values
        layers, rows, parents, height = graph_layout(graph)
        self.layer = dict(zip(graph.labels, layers, strict=True))
        self.row = dict(zip(graph.labels, rows, strict=True))
        self.parent = dict(zip(graph.labels, parents, strict=True))
        self.captions = _captions(graph, values)
        self.widths = {label: _width(text) + 2 * _PAD for label, text in self.captions.items()}
        column = [0.0] * (1 + max(layers))
        for label, layer in self.layer.items():
            column[layer] = max(column[layer], self.widths[label])
        self.left = [_MARGIN + 10 + sum(column[:at]) + _GAP * at for at in range(len(column))]
        self.marks = [_Mark(*fields) for fields in exclusion_marks(graph)]
        self.dead = {finding.labels[0] for finding in graph.check().of_kind("dead-label")}
        right = max([self.left[-1] + column[-1], *map(self._reach, self._arcs())])
        self.width = max(right + _MARGIN, _NARROWEST)
        self.lines = self._legend_lines()
        self.top = _MARGIN + _LINE * len(self.lines) + 6
        foot = _SCALE if values else 0.0
        self.height = self.top + height * _ROW + foot + _MARGIN

    def draw(self, ax: Axes) -> None:
        """Draws into the axes, as large as they are."""
        box = ax.get_window_extent()
        points = 72.0 / ax.figure.dpi
        self.zoom = min(box.width * points / self.width, box.height * points / self.height)
        ax.set(xlim=(0, self.width), ylim=(self.height, 0), aspect="equal", anchor="NW")
        ax.set_axis_off()
        self._draw_hierarchy(ax)
        self._draw_exclusions(ax)
        self._draw_labels(ax)
        self._draw_legend(ax)
        if self.values:
            self._draw_scale(ax)

    def _y(self, label: str) -> float:
        return self.top + (self.row[label] + 0.5) * _ROW

    def _x(self, label: str) -> float:
        return self.left[self.layer[label]]

    def _end(self, label: str) -> float:
        return self._x(label) + self.widths[label]

    def _text(self, ax: Axes, x: float, y: float, text: str, size: float = _SIZE, **style: Any) -> None:
        # A dollar sign in a label does not start a formula.
        ax.text(x, y, text, fontsize=size * self.zoom, va="center_baseline", parse_math=False, **style)

    def _line(
        self, ax: Axes, corners: list[tuple[float, float]], codes: Any, colour: str, soft: bool, gid: str
    ) -> None:
        line = PathPatch(Path(corners, codes), edgecolor=colour, facecolor="none", gid=gid)
        line.set(linewidth=1.1 * self.zoom, linestyle=(0, (3.5, 2.5)) if soft else "-")
        # Lines lie below the boxes, but what strikes a label out above its text.
        line.set_zorder(4 if gid == "dead" else 1)
        ax.add_patch(line)

    def _draw_hierarchy(self, ax: Axes) -> None:
        for parent, child, strength in self.graph.hierarchy:
            start, end = (self._end(parent), self._y(parent)), (self._x(child), self._y(child))
            bend = max((end[0] - start[0]) / 2, 15.0)
            corners = [start, (start[0] + bend, start[1]), (end[0] - bend, end[1]), end]
            colour = _IS_A if self.parent[child] == parent else _FURTHER
            self._line(ax, corners, _CURVE, colour, not strength.is_hard, "hierarchy")

    def _arcs(self) -> list[_Mark]:
        return [mark for mark in self.marks if mark.form == "arc"]

    def _reach(self, arc: _Mark) -> float:
        """How far right an arc goes: past the boxes between its ends, further the longer it is."""
        low, high = sorted(self.row[label] for label in arc.labels)
        deepest = max(self.layer[label] for label in arc.labels)
        passed = (at for at in self.row if low <= self.row[at] <= high and self.layer[at] <= deepest)
        return max(map(self._end, passed)) + 12.0 + 1.6 * (high - low)

    def _draw_exclusions(self, ax: Axes) -> None:
        for arc in self._arcs()[:_MOST_ARCS]:
            a, b = ((self._end(label), self._y(label) + 3) for label in arc.labels)
            # The middle of such a curve is at a quarter of its ends and three of its corners.
            out = (4 * self._reach(arc) - (a[0] + b[0]) / 2) / 3
            corners = [a, (out, a[1]), (out, b[1]), b]
            self._line(ax, corners, _CURVE, _EXCLUDES, not arc.strength.is_hard, "arc")
        worn = Counter[str]()
        for mark in self.marks:
            if mark.form == "bracket":
                self._draw_bracket(ax, mark, 7.0 + 4.0 * (mark.number % 4))
            for label in mark.labels if mark.form == "badge" else ():
                distance = 6 + 12 * worn[label]
                self._draw_badge(ax, label, distance, str(mark.number), not mark.strength.is_hard)
                worn[label] += 1

    def _draw_bracket(self, ax: Axes, mark: _Mark, distance: float) -> None:
        x = min(map(self._x, mark.labels))
        heights = sorted(self._y(label) for label in mark.labels)
        corners = [(x - distance, heights[0]), (x - distance, heights[-1])]
        codes = _STRAIGHT * (1 + len(heights))
        for y in heights:
            corners += [(x - distance, y), (x, y)]
        self._line(ax, corners, codes, _EXCLUDES, not mark.strength.is_hard, "bracket")

    def _draw_badge(self, ax: Axes, label: str, distance: float, text: str, soft: bool) -> None:
        fill, ink = ("white", _EXCLUDES) if soft else (_EXCLUDES, "white")
        style: dict[str, Any] = {
            "boxstyle": "circle,pad=0.18",
            "facecolor": fill,
            "edgecolor": _EXCLUDES,
        }
        style.update(linewidth=0.8 * self.zoom, linestyle="--" if soft else "-")
        x, y = self._end(label) + distance, self._y(label)
        self._text(ax, x, y, text, 6.5, ha="center", color=ink, bbox=style, gid="badge", zorder=3)

    def _draw_labels(self, ax: Axes) -> None:
        group = {
            label: colours
            for colours, members in zip(cycle(_ONE_OF), self.graph.one_of.values(), strict=False)
            for label in members
        }
        for label, text in self.captions.items():
            fill, edge = group.get(label, (_BOX_FILL, _BOX_EDGE))
            ink = _INK
            if label in self.values:
                colour = colormaps[_COLOURS](self.values[label])
                dark = np.dot(colour[:3], (0.3, 0.59, 0.11)) < 0.5
                fill, ink = to_hex(colour), "white" if dark else _INK
            if label in self.dead:
                fill, edge, ink = _DEAD_FILL, _EXCLUDES, _EXCLUDES
            x, y, width = self._x(label), self._y(label), self.widths[label]
            corner = (x, y - _BOX / 2)
            ax.add_patch(
                FancyBboxPatch(
                    corner, width, _BOX, boxstyle="round,pad=0,rounding_size=3", facecolor=fill,
                    edgecolor=edge, linewidth=0.9 * self.zoom, zorder=2, gid="label",
                )
            )  # fmt: skip
            self._text(ax, x + width / 2, y, text, ha="center", color=ink, zorder=3)
            if label in self.dead:
                self._line(ax, [(x + 3, y), (x + width - 3, y)], _STRAIGHT, _EXCLUDES, False, "dead")

    def _legend(self) -> list[tuple[str, str, str]]:
        """What the picture shows: `line`, `dashes` or `box`, its colour, its meaning."""
        edges = self.graph.hierarchy
        entries = [("line", _IS_A, "is a")] if edges else []
        if any(self.parent[child] != parent for parent, child, _ in edges):
            entries.append(("line", _FURTHER, "is also a"))
        if self.marks:
            left = len(self._arcs()) - _MOST_ARCS
            more = f" ({left} more pairs)" if left > 0 else ""
            entries.append(("line", _EXCLUDES, f"exclude each other{more}"))
        costs = [strength for _, _, strength in edges] + [mark.strength for mark in self.marks]
        if not all(strength.is_hard for strength in costs):
            entries.append(("dashes", _IS_A, "soft"))
        for (_, edge), name in zip(cycle(_ONE_OF), self.graph.one_of, strict=False):
            entries.append(("box", edge, f"one of: {name}"))
        if self.dead:
            entries.append(("box", _EXCLUDES, "can never be on"))
        return entries

    def _legend_lines(self) -> list[list[tuple[float, tuple[str, str, str]]]]:
        lines: list[list[tuple[float, tuple[str, str, str]]]] = [[]]
        x = _MARGIN
        for entry in self._legend():
            width = 24 + _width(entry[2], _SMALL) + 14
            if lines[-1] and x + width > self.width:
                lines.append([])
                x = _MARGIN
            lines[-1].append((x, entry))
            x += width
        return lines if lines[0] else []

    def _draw_legend(self, ax: Axes) -> None:
        for at, line in enumerate(self.lines):
            y = _MARGIN + _LINE * (at + 0.5)
            for x, (kind, colour, text) in line:
                if kind == "box":
                    ax.add_patch(
                        Rectangle((x + 2, y - 4), 16, 8, fill=False, edgecolor=colour, lw=self.zoom)
                    )
                else:
                    ends = [(x, y), (x + 18, y)]
                    self._line(ax, ends, _STRAIGHT, colour, kind == "dashes", "legend")
                self._text(ax, x + 24, y, text, _SMALL, ha="left", color=_LEGEND_INK)

    def _draw_scale(self, ax: Axes) -> None:
        bar = ax.inset_axes((_MARGIN, self.height - 28, 110, 7), transform=ax.transData)
        colours = ScalarMappable(Normalize(0, 1), _COLOURS)
        scale = ax.figure.colorbar(colours, cax=bar, orientation="horizontal", ticks=[0, 0.5, 1])
        scale.ax.tick_params(labelsize=_SMALL * self.zoom, length=2, pad=1)
        scale.outline.set_visible(False)
