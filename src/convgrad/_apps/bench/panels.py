"""The panels of a picture: whole networks, layer by layer, and the roofline. Each draws into axes it is given.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; every family has a marker of its own too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .layers import Layer, parse, short
from .report import ms
from .totals import FAMILIES, Total, family_ratios

Axes = Any
"""matplotlib's, whose types differ from version to version."""
Row = dict[str, Any]

OURS, AHEAD, BEHIND = "#0072B2", "#9CCBE8", "#F0B6A0"
INK, FAINT, SLOPE = "#222222", "#D0D0D0", "#777777"
COLOURS = {"convgrad": OURS, "PyTorch": "#D55E00", "TensorFlow": "#E69F00", "JAX": "#009E73"}
MARKERS = {"PyTorch": "o", "TensorFlow": "s", "JAX": "^"}
OPERATIONS = {"fwd": "forward", "dx": "input gradient", "dw": "filter gradient"}
OP_COLOURS = {"fwd": "#0072B2", "dx": "#D55E00", "dw": "#009E73"}
OP_MARKERS = {"fwd": "o", "dx": "s", "dw": "^"}

TOP, BOTTOM = 8.0, 0.5
"""The range of ratios of a strip; what lies outside is drawn at the edge."""
FEWEST = 16
"""A strip has room for at least so many columns, so that a single bar does not fill it."""
LONGEST = 4.0
"""Bars of totals are cut off at so many times ours; figures give the rest."""


@dataclass(frozen=True)
class Column:
    """A column of the strips: one layer and the rows measured on it."""

    text: str
    count: int
    rows: dict[str, Row]
    """By operation."""


@dataclass(frozen=True)
class Group:
    """Layers that share an axis, such as those of a network."""

    title: str
    columns: Sequence[Column]
    totals: Sequence[Total]

    def has(self, op: str) -> bool:
        return any(op in column.rows for column in self.columns)


def layer_name(layer: Layer) -> str:
    """Write a layer as people say it.

    >>> layer_name(parse("112x112x96k3s2b8")), layer_name(parse("1x7x9x64k1o256g2"))
    ('112² 96 dw 3x3/2', '7x9 64→256 1x1 g2')
    """
    image = f"{layer.height}²" if layer.height == layer.width else f"{layer.height}x{layer.width}"
    kh, kw = layer.kernel_h, layer.kernel_w
    window = f"{kh}x{kw}"
    window += f"/{short(layer.strides)}" if layer.strides != (1, 1) else ""
    if layer.is_dense:
        channels = f"{layer.channels}→{layer.outputs}"
        words = [image, channels, window, f"g{layer.groups}" if layer.groups > 1 else ""]
    else:
        many = f"x{layer.multiplier}" if layer.multiplier > 1 else ""
        words = [image, f"{layer.channels}{many}", f"dw {window}"]
    words.append(f"d{short(layer.dilations)}" if layer.dilations != (1, 1) else "")
    return " ".join(filter(None, words))


def draw_total(axes: Axes, total: Total | None) -> None:
    """Bars of a whole network's time, ours first, each with its figures."""
    axes.set_axis_off()
    if total is None:
        return
    times = {"convgrad": total.ours, **total.families}
    for at, (name, time) in enumerate(times.items()):
        ratio = total.ratios.get(name, 1.0)
        axes.barh(at, min(ratio, LONGEST), height=0.72, color=COLOURS[name])
        if ratio > LONGEST:  # a gap says that the bar goes on
            axes.barh(at, 0.08, left=LONGEST - 0.35, height=0.9, color="white")
        figures = _time(time) + (f", {_figures(ratio)}x" if name != "convgrad" else "")
        axes.text(min(ratio, LONGEST) + 0.1, at, figures, va="center", fontsize=7, color=INK)
        axes.text(-0.12, at, name, va="center", ha="right", fontsize=7.5, color=INK)
    axes.set_xlim(0, LONGEST + 3.0)
    axes.set_ylim(len(FAMILIES) + 0.6, -0.6)


def _time(milliseconds: float) -> str:
    """Write a time in few letters.

    >>> _time(41.13), _time(15250.0)
    ('41.1 ms', '15.2 s')
    """
    return f"{milliseconds / 1e3:.1f} s" if milliseconds >= 1e4 else f"{ms(milliseconds)} ms"


def _figures(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def draw_strip(axes: Axes, group: Group, op: str, *, labelled: bool) -> None:
    """One bar per layer against the best peer, one mark per family; above 1 we are faster."""
    count = len(group.columns)
    axes.set_yscale("log", base=2)
    axes.set_ylim(BOTTOM / 1.12, TOP * 1.12)
    axes.set_xlim(-0.7, max(count, FEWEST) - 0.3)
    axes.set_yticks([0.5, 1, 2, 4, TOP], ["≤0.5", "1", "2", "4", f"≥{TOP:g}"], fontsize=7)
    axes.minorticks_off()
    axes.grid(axis="y", color="#E8E8E8", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    found = [
        (at, family_ratios(row))
        for at, column in enumerate(group.columns)
        if (row := column.rows.get(op)) is not None
    ]
    best = [(at, _inside(min(ratios.values()))) for at, ratios in found if ratios]
    axes.bar(
        [at for at, _ in best],
        [ratio - 1 for _, ratio in best],
        bottom=1,
        width=0.8,
        color=[AHEAD if ratio >= 1 else BEHIND for _, ratio in best],
        linewidth=0,
    )
    for number, name in enumerate(FAMILIES):
        aside = (number - 1) * 0.25  # so that equal ones do not hide each other
        points = [(at + aside, _inside(ratios[name])) for at, ratios in found if name in ratios]
        _marks(axes, points, MARKERS[name], COLOURS[name], min(4.2, 130 / max(count, 1)))
    axes.axhline(1, color=INK, linewidth=0.9)
    axes.set_xticks(range(count))
    names = [_numbered(column) for column in group.columns] if labelled else [""] * count
    axes.set_xticklabels(names, rotation=90, fontsize=min(7.0, 260 / max(count, 1)), color=INK)


def _marks(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    marker: str,
    colour: str,
    size: float,
    **how: Any,
) -> None:
    """Draw all points of a kind at once, which keeps an SVG small."""
    if points:
        across, up = zip(*points, strict=True)
        style = {"markeredgewidth": 0.4, "markeredgecolor": "white", "clip_on": False, **how}
        axes.plot(across, up, marker, color=colour, markersize=size, **style)


def _inside(ratio: float) -> float:
    return min(max(ratio, BOTTOM), TOP)


def _numbered(column: Column) -> str:
    name = layer_name(parse(column.text))
    return f"{column.count} x {name}" if column.count > 1 else name


@dataclass(frozen=True)
class Roofs:
    """What rooflines side by side share: the machine's roofs in 10**9 per second, and the ends of the axes."""

    peak: float
    near: float
    far: float
    across: tuple[float, float]
    up: tuple[float, float]


def roofs(groups: Sequence[Group], speed: dict[str, Any]) -> Roofs:
    """Choose axes that hold every point of some groups, and the peak."""
    rows = [row for group in groups for column in group.columns for row in column.rows.values()]
    peak = speed["peak"] / 1e9
    near, far = (speed["streams"]["copy"][at] / 1e9 for at in (0, -1))
    at = [row["flops"] / row["bytes"] for row in rows]
    up = (min(row["gflops"] for row in rows) / 1.4, max(peak, *(r["gflops"] for r in rows)) * 1.7)
    return Roofs(peak, near, far, (min(at) / 1.5, max(*at, 2 * peak / far) * 1.5), up)


def slopes(roof: Roofs) -> tuple[tuple[float, str, Any], ...]:
    """Return the slanted roofs: 10**9 bytes per second, words, line style."""
    return (roof.near, "copy in cache", "--"), (roof.far, "copy in memory", "-")


def draw_roofline(axes: Axes, group: Group, roof: Roofs) -> None:
    """Arithmetic against traffic: points below the machine's roofs, filled for dense, hollow for depthwise layers."""
    left, right = roof.across
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(*roof.up)
    axes.axhline(roof.peak, color=INK, linewidth=1)
    words = f"peak {roof.peak:.0f} GFLOP/s "
    axes.text(right, roof.peak * 1.08, words, ha="right", fontsize=7, color=INK)
    for bandwidth, _, style in slopes(roof):
        ends = (left, max(left, roof.peak / bandwidth))
        axes.plot(ends, [x * bandwidth for x in ends], style, color=SLOPE, linewidth=1)
    for op, colour in OP_COLOURS.items():
        for dense in (True, False):
            points = [
                (row["flops"] / row["bytes"], row["gflops"])
                for column in group.columns
                if (row := column.rows.get(op)) and parse(column.text).is_dense == dense
            ]
            fill = {"markerfacecolor": colour if dense else "white", "markeredgecolor": colour}
            _marks(axes, points, OP_MARKERS[op], colour, 4.4, markeredgewidth=0.9, **fill)
    axes.set_title(group.title, fontsize=8, color=INK)
    axes.set_xlabel("flop per byte moved", fontsize=7.5)
    axes.grid(color="#EEEEEE", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.minorticks_off()
    axes.set_xticks(*_ticks(left, right, (1,)))
    axes.set_yticks(*_ticks(*roof.up, (1, 2, 5)))
    axes.tick_params(labelsize=7, color=FAINT)
    for spine in axes.spines.values():
        spine.set_color(FAINT)


def _ticks(low: float, high: float, steps: Sequence[int]) -> tuple[list[float], list[str]]:
    """Return round numbers between two ends, and how to write them.

    >>> _ticks(3, 120, (1, 2, 5))
    ([5.0, 10.0, 20.0, 50.0, 100.0], ['5', '10', '20', '50', '100'])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [step * 10.0**power for power in powers for step in steps]
    ticks = [tick for tick in found if low <= tick <= high]
    return ticks, [f"{tick:g}" for tick in ticks]


def height_of_labels(group: Group) -> float:
    """Inches that the longest label of a strip takes when it stands upright."""
    size = min(7.0, 260 / max(len(group.columns), 1))
    longest = max((len(_numbered(column)) for column in group.columns), default=0)
    return math.ceil(100 * (longest * size * 0.55 / 72 + 0.06)) / 100
