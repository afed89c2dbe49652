"""A run that trained as a picture: three or four bars per model, the best layout of each.

Steps of different networks differ tenfold, so bars are drawn relative to the first of their model; the figures above
them are milliseconds. matplotlib draws (the extra `plot`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from convgrad._apps.bench import panels
from convgrad._apps.bench.plot import Figure, busy, picture
from convgrad._apps.bench.report import ms
from convgrad._apps.bench.saved import write

from . import ratios
from .frameworks import TITLES, TRAININGS
from .ratios import Row, Spread

WIDTH, HEIGHT = 9.5, 3.6
"""Inches; shown at about 900 pixels."""
ROOM = 0.87
"""Width of the bars of a model with the gaps between them, where models are 1 apart."""

LOW = 0.1
"""Share of the first bar below which a bar has no room for its ratio, which then stands above it."""


class Kind(NamedTuple):
    """One of the bars of every model."""

    family: str
    memory: bool
    colour: str
    words: str


KINDS = (
    Kind("native", False, panels.BEHIND, "{framework}"),
    Kind("native", True, "", "{framework} with the memory setting"),
    Kind("installed", True, "#56B4E9", "model unchanged, convgrad installed"),
    Kind("ours", True, panels.OURS, "convgrad with the memory setting"),
)
"""The colour of the second is the framework's."""


class Bar(NamedTuple):
    kind: Kind
    row: Row
    step: Spread


def bars(results: dict[str, Any], model: str) -> list[Bar]:
    """Return those of a model that were measured, each by its best layout."""
    rows = ratios.timed(results["rows"], model)
    found = []
    for kind in KINDS:
        row = ratios.best(rows, kind.family, memory=kind.memory)
        step = None if row is None else ratios.spread(ratios.steps(row))
        if row is not None and step is not None:
            found.append(Bar(kind, row, step))
    return found


def draw(results: dict[str, Any], path: Path) -> None:
    """Write a picture of the kind the file's name asks for."""
    if not any(bars(results, model) for model in results["settings"]["models"]):
        raise ValueError("there is no bar to draw: nothing native and nothing of ours was timed")
    write(path, picture(lambda: figure(results), "png" if path.suffix == ".png" else "svg"))


def figure(results: dict[str, Any]) -> Figure:
    """Draw the bars of all models side by side."""
    from matplotlib import figure as drawing

    models, colour = results["settings"]["models"], _colour(results)
    sheet = drawing.Figure(figsize=(WIDTH, HEIGHT))
    axes = sheet.add_axes((0.07, 0.1, 0.915, 0.66))
    for at, model in enumerate(models):
        _group(axes, at, bars(results, model), colour)
    axes.set_xticks(range(len(models)), [TITLES.get(model, model) for model in models], fontsize=9)
    axes.set_xlim(-0.6, max(len(models), 2) - 0.4)
    axes.set_ylim(bottom=0)
    axes.margins(y=0.12)
    axes.set_ylabel("time of a training step,\nrelative to the first bar", fontsize=7.5)
    axes.tick_params(length=0, labelcolor=panels.INK)
    axes.tick_params(axis="y", labelsize=7)
    axes.grid(axis="y", color="#E8E8E8", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    _header(sheet, results)
    return sheet


def _group(axes: Any, at: int, drawn: list[Bar], colour: str) -> None:
    for number, (kind, row, step) in enumerate(drawn):
        whole = drawn[0].step.median
        room = ROOM / max(len(drawn), 3)
        across, height = at + (number - (len(drawn) - 1) / 2) * room, step.median / whole
        axes.bar(across, height, width=room - 0.02, color=kind.colour or colour)
        quartiles = [step.low / whole, step.high / whole]
        axes.plot([across, across], quartiles, color=panels.INK, linewidth=0.8)
        axes.annotate(
            f"{ms(step.median)} ms",
            (across, max(height, quartiles[1])),
            (0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            color=panels.INK,
        )
        ratio = _ratio(drawn, row) if kind.family != "native" else None
        if ratio is not None:
            fits = height >= LOW
            axes.annotate(
                f"{ratio.median:.2f}x" if ratio.median < 10 else f"{ratio.median:.1f}x",
                (across, height / 2 if fits else max(height, quartiles[1])),
                (0, 0 if fits else 15),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=9,
                weight="bold",
                color="white" if fits else kind.colour,
            )


def _ratio(drawn: list[Bar], ours: Row) -> Spread | None:
    """Compare ours with the native one that has the same memory setting, round by round."""
    memory = ours["configuration"]["memory"]
    native = [bar.row for bar in drawn if (bar.kind.family, bar.kind.memory) == ("native", memory)]
    return ratios.spread(ratios.paired(native[0], ours)) if native else None


def _colour(results: dict[str, Any]) -> str:
    framework = TRAININGS[results["settings"]["framework"]].framework
    return panels.COLOURS[framework.title]


def _header(sheet: Figure, results: dict[str, Any]) -> None:
    from matplotlib.patches import Patch

    how, about = results["settings"], results["machine"]
    training = TRAININGS[how["framework"]]
    title = training.title
    layouts = len({row.layout for row in training.configurations})
    named = {
        training.above: training.above_title,
        training.framework.name: training.framework.title,
    }
    versions = ", ".join(
        f"{words} {about['versions'][name]}"
        for name, words in named.items()
        if name in about["versions"]
    )
    sheet.text(
        0.015,
        0.935,
        f"Training steps in {title}, with and without convgrad",
        fontsize=11.5,
        weight="bold",
    )
    words = (
        about["cpu"] + busy(about),
        f"{how['threads']} thread{'s' if how['threads'] > 1 else ''}",
        f"float32, {how['image']}x{how['image']}, batch {how['batch']}",
        str(results.get("began", ""))[:10],
        versions,
        *(["best memory layout of each"] if layouts > 1 else []),
    )
    sheet.text(0.015, 0.88, " · ".join(words), fontsize=7, color="#555555")
    found = {bar.kind for model in how["models"] for bar in bars(results, model)}
    handles = [
        Patch(color=kind.colour or _colour(results), label=kind.words.format(framework=title))
        for kind in KINDS
        if kind in found
    ]
    sheet.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.015, 0.86),
        borderaxespad=0,
        borderpad=0,
        ncols=len(handles),
        fontsize=7.5,
        frameon=False,
        handletextpad=0.4,
        columnspacing=1.4,
    )
    sheet.text(
        0.985,
        0.96,
        "bold: times as fast as native with that setting; lines: quartiles",
        ha="right",
        va="top",
        fontsize=7,
        color="#555555",
    )
