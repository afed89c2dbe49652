"""A run as a picture: one sheet with whole networks, every layer, and the roofline, as PNG, SVG or one HTML file.

Works from the dictionary `runner.measure_all` returns, so a saved run can be drawn again. matplotlib draws (the extra
`plot`), without its global state and without a display.
"""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from . import panels
from .panels import Column, Group
from .report import render, table
from .saved import write
from .totals import FAMILIES, family_times, measured, title, totals

Figure = Any
"""matplotlib's, whose types differ from version to version."""

WIDTH = 9.5
"""Inches; shown at about 900 pixels."""
STRIP, ROOFLINE = 0.92, 2.5
HEADER, TITLE = 0.98, 0.58
"""With and without the key to the strips."""
TOTALS, MARGIN = 2.55, 0.35
MOST = 44
"""Columns of a strip; a longer list of problems continues below."""

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "svg.fonttype": "none",  # words stay words: a third of the size, and they can be searched
    "svg.hashsalt": "convgrad",
    "axes.edgecolor": panels.FAINT,
    "axes.linewidth": 0.6,
}


def draw(results: dict[str, Any], path: Path, parts: Sequence[str]) -> None:
    """Write a picture of the kind the file's name asks for."""
    if not results["rows"]:
        raise ValueError("there is no row to draw")
    content = picture(lambda: sheet(results, parts), "png" if path.suffix == ".png" else "svg")
    if path.suffix == ".html":
        content = _page(results, content.decode()).encode()
    write(path, content)


def picture(make: Callable[[], Figure], kind: Literal["png", "svg"]) -> bytes:
    """Return the bytes of a figure that is made in our style."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        drawn = io.BytesIO()
        # Without the date, the same run gives the same file.
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        make().savefig(drawn, format=kind, dpi=160, metadata=metadata, facecolor="white")
    content = drawn.getvalue()
    if kind == "svg":  # where our font is missing, its relative, then any without serifs
        content = content.replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif")
    return content


def groups(results: dict[str, Any]) -> list[Group]:
    """Return the networks of a run, or its problems in lists of `MOST`; each batch and each layout stands alone."""
    by_layout: dict[str, dict[str, dict[str, Any]]] = {}
    for row in results["rows"]:
        by_layout.setdefault(row["layout"], {}).setdefault(row["text"], {})[row["op"]] = row
    many = len(by_layout) > 1
    if results.get("networks"):
        return _networks(results, by_layout)
    found = []
    for layout, by_text in by_layout.items():
        every = [Column(text, 1, rows) for text, rows in by_text.items()]
        for at in range(0, len(every), MOST):
            part = every[at : at + MOST]
            which = f"problems {at + 1} to {at + len(part)}" if len(every) > MOST else ""
            found.append(Group(" ".join(filter(None, (which, layout if many else ""))), part, ()))
    return found


def _networks(
    results: dict[str, Any], by_layout: dict[str, dict[str, dict[str, Any]]]
) -> list[Group]:
    sums, found = totals(results), measured(results)
    batches = len({batch for _, batch, _, _ in found})
    blocks = []
    for name, batch, layout, layers in found:
        rows = by_layout[layout]
        more = [f"batch {batch}"] if batches > 1 else []
        more += [layout] if len(by_layout) > 1 else []
        blocks.append(
            Group(
                " ".join([title(name), *more]),
                [Column(text, count, rows[text]) for text, count in layers if text in rows],
                [
                    each
                    for each in sums
                    if (each.network, each.batch, each.layout) == (name, batch, layout)
                ],
            )
        )
    return blocks


def sheet(results: dict[str, Any], parts: Sequence[str]) -> Figure:
    """Lay the panels out from top to bottom."""
    from matplotlib import figure as drawing

    ops = [op for op in panels.OPERATIONS if any(row["op"] == op for row in results["rows"])]
    blocks = groups(results)
    timed = any(row["best_peer"] for row in results["rows"])
    strips = timed and bool({"totals", "layers"} & set(parts))
    roofs = _in_rows(blocks) if "roofline" in parts or not strips else []
    heights = [_height(block, ops, parts) for block in blocks] if strips else []
    header = HEADER if strips and "layers" in parts else TITLE
    height = header + sum(heights) + (ROOFLINE + 0.75) * len(roofs)
    figure = drawing.Figure(figsize=(WIDTH, height))
    _header(figure, results, parts, strips)
    top = height - header
    for block, tall in zip(blocks if strips else [], heights, strict=True):
        _block(figure, block, ops, parts, top)
        top -= tall
    for row in roofs:
        _roofs(figure, row, panels.roofs(blocks, results["speed"]), ops, top)
        top -= ROOFLINE + 0.75
    return figure


def _in_rows(blocks: Sequence[Group]) -> list[Sequence[Group]]:
    """Two rooflines stand side by side; one list of problems is one of them."""
    if blocks and not blocks[0].totals:
        every = [column for block in blocks for column in block.columns]
        return [[Group("all problems", every, ())]]
    return [blocks[at : at + 2] for at in range(0, len(blocks), 2)]


def _height(block: Group, ops: Sequence[str], parts: Sequence[str]) -> float:
    labels = panels.height_of_labels(block) if "layers" in parts else 0.1
    return 0.3 + len([op for op in ops if block.has(op)]) * (STRIP + 0.12) + labels + 0.12


def _place(figure: Figure, left: float, bottom: float, width: float, height: float) -> Any:
    """Add axes at inches from the lower left corner."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def _write(figure: Figure, left: float, bottom: float, text: str, **how: Any) -> None:
    across, up = figure.get_size_inches()
    figure.text(left / across, bottom / up, text, **{"color": panels.INK, "fontsize": 8, **how})


def _header(figure: Figure, results: dict[str, Any], parts: Sequence[str], strips: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    top = figure.get_size_inches()[1]
    timed = [name for name in FAMILIES if any(name in family_times(r) for r in results["rows"])]
    against = f" against {', '.join(timed)}" if strips else ""
    _write(figure, 0.15, top - 0.25, f"convgrad{against}", fontsize=11.5, weight="bold")
    _write(figure, 0.15, top - 0.43, _machine(results), fontsize=7, color="#555555")
    if not strips:
        return
    handles: list[Any] = [
        Line2D(
            [],
            [],
            marker=panels.MARKERS[name],
            color=panels.COLOURS[name],
            linestyle="",
            markersize=5,
            label=name,
        )
        for name in timed
    ]
    handles += [
        Patch(color=panels.AHEAD, label="ahead of the fastest of them"),
        Patch(color=panels.BEHIND, label="behind it"),
    ]
    if "layers" in parts:
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0.15 / WIDTH, 1 - 0.53 / top),
            borderaxespad=0,
            borderpad=0,
            ncols=len(handles),
            fontsize=7.5,
            frameon=False,
            handletextpad=0.4,
            columnspacing=1.4,
            title="speed of convgrad relative to each framework; above 1 convgrad is faster",
            title_fontsize=7.5,
            alignment="left",
        )


def _machine(results: dict[str, Any]) -> str:
    about, how = results["machine"], results["settings"]
    versions = ", ".join(
        f"{name} {about['versions'][key]}"
        for name, key in (("PyTorch", "torch"), ("TensorFlow", "tensorflow"), ("JAX", "jax"))
        if key in about["versions"]
    )
    day = str(results.get("began", ""))[:10]
    threads = f"{how['threads']} thread{'s' if how['threads'] > 1 else ''}"
    where = f"{about['cpu']}{busy(about)}"
    said = (where, threads, f"{how['dtype']} {how['layout']}", _batch(results), day, versions)
    return " · ".join(filter(None, said))


def busy(about: dict[str, Any]) -> str:
    """Warn about figures measured beside other work: they say more about waiting than about kernels."""
    before = (about.get("load_before") or [0.0])[0]
    return f", BUSY (load {before:.1f})" if before > 1.5 * about["cpus"] else ""


def _batch(results: dict[str, Any]) -> str:
    from .layers import parse

    sizes = {parse(row["text"]).batch for row in results["rows"]}
    return f"batch {sizes.pop()}" if len(sizes) == 1 else ""


def _block(
    figure: Figure, block: Group, ops: Sequence[str], parts: Sequence[str], top: float
) -> None:
    """Draw a network: its title, and per operation the total beside the layers."""
    summed = "totals" in parts and bool(block.totals)
    left = TOTALS + 1.05 if summed else 0.95
    width = WIDTH - left - MARGIN / 2
    if block.title:
        what = "all its convolutions, and layer by layer" if summed else "layer by layer"
        _write(figure, 0.15, top - 0.15, block.title, weight="bold", fontsize=9)
        if "layers" in parts:
            _write(figure, 1.6, top - 0.15, what, fontsize=7.5, color="#555555")
    shown = [op for op in ops if block.has(op)]
    for number, op in enumerate(shown):
        bottom = top - 0.3 - (number + 1) * (STRIP + 0.12) + 0.12
        words = panels.OPERATIONS[op].replace(" ", "\n")
        _write(figure, 0.15, bottom + STRIP / 2, words, va="center", fontsize=8)
        if summed:
            total = next((each for each in block.totals if each.op == op), None)
            wide = TOTALS - 0.75 if "layers" in parts else WIDTH - 2
            panels.draw_total(_place(figure, 1.35, bottom, wide, STRIP), total)
        if "layers" in parts:
            axes = _place(figure, left, bottom, width, STRIP)
            panels.draw_strip(axes, block, op, labelled=number == len(shown) - 1)


def _roofs(
    figure: Figure, row: Sequence[Group], roof: panels.Roofs, ops: Sequence[str], top: float
) -> None:
    from matplotlib.lines import Line2D

    _write(figure, 0.15, top - 0.15, "Roofline", weight="bold", fontsize=9)
    across = (WIDTH - 2.2) / len(row)
    for number, block in enumerate(row):
        place = (0.65 + number * across, top - 0.2 - ROOFLINE, across - 0.45, ROOFLINE - 0.25)
        axes = _place(figure, *place)
        panels.draw_roofline(axes, block, roof)
        if not number:
            axes.set_ylabel("GFLOP/s of convgrad", fontsize=7.5)
    marks = [
        Line2D(
            [],
            [],
            marker=panels.OP_MARKERS[op],
            color=panels.OP_COLOURS[op],
            linestyle="",
            label=panels.OPERATIONS[op],
        )
        for op in ops
    ]
    for fill, words in (("#555555", "dense layer"), ("white", "depthwise layer")):
        marks.append(
            Line2D(
                [], [], marker="o", color="#555555", markerfacecolor=fill, linestyle="", label=words
            )
        )
    for bandwidth, words, style in panels.slopes(roof):
        named = f"{words}, {bandwidth:.0f} GB/s"
        marks.append(Line2D([], [], color=panels.SLOPE, linestyle=style, linewidth=1, label=named))
    height = figure.get_size_inches()[1]
    anchor = ((WIDTH - 1.75) / WIDTH, (top - 0.45) / height)
    figure.legend(
        handles=marks, loc="upper left", bbox_to_anchor=anchor, fontsize=7.5, frameon=False
    )


def _page(results: dict[str, Any], picture: str) -> str:
    """Return a page that needs nothing else: the picture, the table, the words below it."""
    columns, lines = table(results["rows"])
    svg = picture[picture.index("<svg") :]
    rows = "\n".join(f"<tr>{_cells('td', line)}</tr>" for line in lines)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>convgrad bench</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #222;
  background: #fff; }}
svg {{ width: 100%; height: auto; }}
table {{ border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 2px 9px; text-align: right; border-bottom: 1px solid #e4e4e4; }}
th:nth-child(-n+3), td:nth-child(-n+3) {{ text-align: left; }}
pre {{ overflow-x: auto; font-size: 12px; }}
</style>
</head>
<body>
{svg}
<table>
<thead><tr>{_cells("th", columns)}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
<pre>{html.escape(render(results))}</pre>
</body>
</html>
"""


def _cells(tag: str, words: Sequence[str]) -> str:
    return "".join(_each(tag, words))


def _each(tag: str, words: Sequence[str]) -> Iterator[str]:
    for word in words:
        yield f"<{tag}>{html.escape(word)}</{tag}>"
