"""Pictures with matplotlib (`phex[plot]`): label graphs, calibration, strengths.

Each function draws into `ax`, or makes a figure of its own, and returns the axes. None shows anything by
itself or changes a setting of matplotlib.

>>> import matplotlib
>>> matplotlib.use("agg")
>>> import phex, phex.plot
>>> graph = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).exclude("siblings").build()
>>> ax = phex.plot.graph(graph, {"animal": 0.9, "dog": 0.75, "cat": 0.04})
>>> [text.get_text() for text in ax.texts][:3]
['animal  0.90', 'dog  0.75', 'cat  0.04']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from phex._core import Graph, Strength
from phex._types import Float64
from phex.errors import InputError
from phex.tables import evidence_codes, read_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["graph", "reliability", "strength_curve"]

_MOST_LABELS = 150
_BLUE, _RED, _GREY = "#2b6cb0", "#d1453b", "#8a97a5"


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes given, or those of a new figure, which notebooks show."""
    if ax is not None:
        return ax
    import matplotlib.pyplot

    return matplotlib.pyplot.subplots(figsize=size, layout="constrained")[1]


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("phex.plot draws with matplotlib: pip install 'phex[plot]'") from error


def graph(graph: Graph, values: Any = None, ax: Axes | None = None) -> Axes:
    """Draws labels and relations, from general labels on the left to special ones on the right.

    Grey lines are the hierarchy; blue lines lead to further parents. Red brackets join siblings that
    exclude each other, and red arcs two other labels. Members of larger groups have a red number. Soft
    relations are dashed. The members of a one-of group share a colour. A struck-out label can never be
    on.

    Readable to about 60 labels; `Graph.svg` draws larger graphs.

    Args:
        graph: The labels and their relations.
        values: A number from 0 to 1 for each label, shown as a colour: a dictionary of some or all
            labels, or a sequence in the order of the labels. NaN means no value.
        ax: Where to draw. The picture is made as large as the axes; without them, a figure is made
            for it.

    Raises:
        InputError: There are more than 150 labels, or a value is not valid.
    """
    _need_matplotlib()
    if len(graph) > _MOST_LABELS:
        raise InputError(
            f"the graph has {len(graph)} labels, too many for a figure: write `Graph.svg()` to a file"
        )
    from phex._picture import Picture

    picture = Picture(graph, _read_values(values, graph))
    if ax is None:
        import matplotlib.pyplot

        size = (picture.width / 72, picture.height / 72)
        figure = matplotlib.pyplot.figure(figsize=size)
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    picture.draw(ax)
    return ax


def _read_values(values: Any, graph: Graph) -> dict[str, float]:
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        row = np.asarray(values, dtype=np.float64)
        if row.shape != (len(graph),):
            raise InputError(f"values have the shape {row.shape}, but there are {len(graph)} labels")
        values = dict(zip(graph.labels, row, strict=True))
    found = {str(label): float(value) for label, value in values.items()}
    for label, value in found.items():
        if label not in graph:
            raise InputError(f"values: `{label}` is not a label of the graph")
        if value < 0.0 or value > 1.0:
            raise InputError(f"the value of `{label}` is {value}; it must be 0 to 1")
    return {label: value for label, value in found.items() if not np.isnan(value)}


def reliability(probabilities: Any, targets: Any, bins: int = 15, ax: Axes | None = None) -> Axes:
    """Calibration: how often labels are on, by their predicted probability.

    Every known target of a row and label is an entry. Entries are sorted by their probability into bins
    of equal width. A point shows the mean probability and the frequency of a bin, and a bar below it the
    number of its entries, on a logarithmic scale. The title has the expected calibration error (ECE),
    as `phex eval` measures it: the mean distance of the points from the diagonal, weighted by entries.

    Args:
        probabilities: Rows × labels: an array or a data frame.
        targets: 1 (on), 0 (off), -1 or NaN (unknown) for each; columns of data frames are found by name.
        bins: The number of bins.
        ax: Where to draw.
    """
    _need_matplotlib()
    if bins < 1:
        raise InputError(f"there are {bins} bins; there must be 1 or more")
    p, on = _known_entries(probabilities, targets)
    edges = np.arange(bins + 1) / bins
    place = np.digitize(p, edges[1:-1])
    number = np.bincount(place, minlength=bins)
    filled = number > 0
    mean = np.bincount(place, p, bins)[filled] / number[filled]
    frequency = np.bincount(place, on, bins)[filled] / number[filled]
    error = float(np.sum(number[filled] * np.abs(mean - frequency)) / number.sum())

    ax = _axes(ax, (4.6, 4.6))
    depth = 0.16
    height = depth * 0.85 * np.log1p(number) / np.log1p(number.max())
    ax.bar(edges[:-1], height, 1 / bins, -depth, align="edge", color="#d7dee6", edgecolor="white")
    for at in np.flatnonzero(filled):
        count, tall = int(number[at]), bins > 12
        style = {"rotation": 90, "va": "bottom"} if tall else {"va": "bottom"}
        middle = (edges[at] + edges[at + 1]) / 2
        ax.text(
            middle, -depth + 0.01, _short(count), ha="center", fontsize=6.5, color="#445566", **style
        )
    ax.axhline(0.0, color=_GREY, linewidth=0.6)
    ax.plot([0, 1], [0, 1], color=_GREY, linewidth=1.0, linestyle=(0, (4, 3)), label="calibrated")
    ax.vlines(mean, np.minimum(mean, frequency), np.maximum(mean, frequency), color=_RED, linewidth=1.2)
    ax.plot(mean, frequency, "o-", color=_BLUE, markersize=4, linewidth=1.3, label="bins")
    ax.set(
        xlim=(0, 1), ylim=(-depth, 1), yticks=np.linspace(0, 1, 6), aspect="equal",
        xlabel="mean probability", ylabel="part that is on",
        title=f"ECE {error:.4f}: {number.sum():,} entries, {bins} bins",
    )  # fmt: skip
    ax.title.set_fontsize("medium")
    return ax


def _short(count: int) -> str:
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.2g}{letter}" if count < 10 * size else f"{count // size}{letter}"
    return str(count)


def _known_entries(probabilities: Any, targets: Any) -> tuple[Float64, Float64]:
    """Probability and target of each entry that is known, as two rows."""
    labels = [str(name) for name in getattr(probabilities, "columns", [])]
    p = read_scores(probabilities, labels).values.astype(np.float64)
    codes = evidence_codes(
        targets, len(p), labels or [str(name) for name in getattr(targets, "columns", [])]
    )
    if codes is None or codes.shape != p.shape:
        shape = None if codes is None else codes.shape
        raise InputError(f"probabilities have the shape {p.shape}, targets {shape}")
    p, on = p[codes >= 0], codes[codes >= 0].astype(np.float64)
    if len(p) == 0:
        raise InputError("no target is known: there is nothing to compare probabilities with")
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError("probabilities must be 0 to 1; logits go through `Model.marginals` first")
    return p, on


def strength_curve(
    strengths: Sequence[Strength | str | float],
    values: ArrayLike,
    *,
    metric: str = "value",
    best: str = "max",
    unit: str = "u",
    ax: Axes | None = None,
) -> Axes:
    """A metric against the strength of the relations, from none to hard.

    The axis is logarithmic, with no relations (0) at its left end and hard ones at its right end. With
    several seeds, points are means, error bars are standard deviations, and faint dots are single runs.
    The best mean is marked.

    Args:
        strengths: `Strength`, texts such as `u=0.5` and `hard`, or numbers in `unit`, infinity for hard.
        values: The metric of each strength, or strengths × seeds. NaN is a run that is missing.
        metric: The name of the metric, for the axis.
        best: `max` or `min`.
        unit: `u` or `w`.
        ax: Where to draw.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import phex.plot
    >>> runs = [[0.61, 0.63], [0.66, 0.64], [0.62, 0.61]]
    >>> ax = phex.plot.strength_curve(["u=0.1", "u=1", "hard"], runs, metric="accuracy")
    >>> ax.get_title()
    'best: u=1, 0.65 ± 0.014 (2 seeds)'
    """
    _need_matplotlib()
    if best not in ("max", "min") or unit not in ("u", "w"):
        raise InputError(f"best is `{best}` and unit `{unit}`; give `max` or `min`, and `u` or `w`")
    costs = np.array([_cost(strength, unit) for strength in strengths])
    table = np.asarray(values, dtype=np.float64)
    table = table[:, np.newaxis] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != len(costs) or not len(costs):
        raise InputError(
            f"there are {len(costs)} strengths, but values have the shape {np.shape(values)}"
        )
    order = np.argsort(costs, kind="stable")
    costs, table = costs[order], table[order]
    runs = np.sum(~np.isnan(table), axis=1)
    if not runs.all():
        raise InputError(f"the strength {_name(costs[np.argmin(runs)], unit)} has no value")
    mean = np.nanmean(table, axis=1)
    spread = np.array(
        [np.nanstd(row, ddof=1) if n > 1 else 0.0 for row, n in zip(table, runs, strict=True)]
    )
    x = _positions(costs)
    at = int(np.argmax(mean) if best == "max" else np.argmin(mean))

    ax = _axes(ax, (5.6, 3.6))
    several = table.shape[1] > 1
    if several:
        every = np.broadcast_to(x[:, np.newaxis], table.shape)
        ax.plot(every.ravel(), table.ravel(), ".", color=_BLUE, alpha=0.3, markeredgewidth=0)
    ends = np.isinf(costs) | (costs == 0.0)
    ax.plot(x[~ends], mean[~ends], "-", color=_BLUE, linewidth=1.4)
    for one in np.flatnonzero(ends):
        # What lies between the last number and none or hard is not known: the line is only a guide.
        pair = [one, one + 1] if costs[one] == 0.0 else [one - 1, one]
        if pair[0] >= 0 and pair[1] < len(x):
            ax.plot(x[pair], mean[pair], linestyle=(0, (2, 2)), color=_BLUE, linewidth=1.0)
    bars = spread if several else None
    ax.errorbar(x, mean, bars, fmt="o", color=_BLUE, markersize=5, capsize=3, linewidth=1.2)
    ax.plot(x[at], mean[at], "o", color=_RED, markersize=10, fillstyle="none", markeredgewidth=1.6)
    ax.set_xticks(x, [_tick(cost) for cost in costs])
    if np.any(np.diff(x) < 0.25):
        ax.tick_params(axis="x", labelrotation=45)
    ax.margins(x=0.06, y=0.12)
    around = f" ± {spread[at]:.2g} ({runs[at]} seeds)" if runs[at] > 1 else ""
    ax.set(xlabel=f"strength of the relations, {unit}", ylabel=metric)
    ax.set_title(f"best: {_name(costs[at], unit)}, {mean[at]:.4g}{around}", fontsize="medium")
    ax.grid(axis="y", color="#e3e7eb", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def _cost(strength: Strength | str | float, unit: str) -> float:
    if isinstance(strength, str):
        strength = Strength(strength)
    if isinstance(strength, Strength):
        return strength.cost / (4.0 if unit == "u" else 1.0)
    if not strength >= 0.0:
        raise InputError(f"a strength is {strength}; it must be 0 or more, infinity for hard")
    return float(strength)


def _positions(costs: Float64) -> Float64:
    """Logarithms; a step left of all numbers for none, a step right of them for hard."""
    numbers = np.log10(costs[(costs > 0.0) & np.isfinite(costs)])
    low, high = (numbers.min(), numbers.max()) if len(numbers) else (0.0, 0.0)
    step = max(0.3, (high - low) / 6)
    with np.errstate(divide="ignore"):
        x = np.log10(costs)
    return np.asarray(np.clip(x, low - step, high + step), dtype=np.float64)


def _tick(cost: float) -> str:
    return "none" if cost == 0.0 else "hard" if np.isinf(cost) else f"{cost:g}"


def _name(cost: float, unit: str) -> str:
    return _tick(cost) if cost == 0.0 or np.isinf(cost) else f"{unit}={cost:g}"
