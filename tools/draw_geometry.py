"""Draw the pictures of docs/images/geometry from the package's own geometry.

Usage: python tools/draw_geometry.py

Sizes and pads come from `geometry.solve`, channel links and sums from the operations themselves, so a picture shows
what a call does. The text is the same on every run; a test compares it with the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from channel_pictures import channel_kinds, depthwise_channels, separable_channels
from svg_picture import COLOURS, Picture, write

from convgrad import depthwise_conv2d_backprop_filter
from convgrad._problem import geometry
from convgrad._problem.geometry import Axis, AxisPadding

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "geometry"
Cell = tuple[int, int]


def cell_read(axis: Axis, out: int, tap: int) -> int:
    """Return the cell that `tap` of output `out` reads; outside [0, size) it lies in the padding.

    >>> [cell_read(geometry.solve(5, 3, 2, 1, "SAME"), 0, tap) for tap in range(3)]
    [-1, 0, 1]
    """
    return out * axis.stride + tap * axis.dilation - axis.before


def window(rows: Axis, cols: Axis, out: Cell) -> Iterator[tuple[Cell, Cell]]:
    """Yield (tap, cell) of one output, cells in the padding included."""
    for r, s in product(range(rows.window), range(cols.window)):
        yield (r, s), (cell_read(rows, out[0], r), cell_read(cols, out[1], s))


def feeds(rows: Axis, cols: Axis, cell: Cell) -> Iterator[tuple[Cell, Cell]]:
    """Yield (output, tap) of every window that holds a cell."""
    for out in product(range(rows.out), range(cols.out)):
        for tap, read in window(rows, cols, out):
            if read == cell:
                yield out, tap


class Grid:
    """Cells of one image on a picture, with the padding a pair of axes adds around it."""

    def __init__(self, picture: Picture, x: int, y: int, unit: int, rows: Axis, cols: Axis) -> None:
        self.picture, self.unit, self.rows, self.cols = picture, unit, rows, cols
        self.x, self.y = x + cols.before * unit, y + rows.before * unit
        self.width = (cols.before + cols.size + cols.after) * unit
        self.height = (rows.before + rows.size + rows.after) * unit
        for h in range(-rows.before, rows.size + rows.after):
            for w in range(-cols.before, cols.size + cols.after):
                inside = 0 <= h < rows.size and 0 <= w < cols.size
                picture.rect(*self.at((h, w)), unit, unit, "cell" if inside else "pad")

    def at(self, cell: Cell) -> tuple[int, int]:
        return self.x + cell[1] * self.unit, self.y + cell[0] * self.unit

    def paint(self, marks: dict[Cell, list[tuple[str, str]]]) -> None:
        """Colour cells; a cell with several marks is split, so that none hides another. A mark is (colour, label)."""
        for cell, found in marks.items():
            x, y = self.at(cell)
            part = (self.unit - 4) / len(found)
            inside = 0 <= cell[0] < self.rows.size and 0 <= cell[1] < self.cols.size
            for position, (colour, label) in enumerate(found):
                left = x + 2 + position * part
                self.picture.rect(
                    left, y + 2, part, self.unit - 4, colour if inside else f"{colour} faint"
                )
                if label:
                    self.picture.text(
                        left + part / 2, y + self.unit / 2 + 4, label, "on" if inside else "small"
                    )

    def frame(self, first: Cell, last: Cell, colour: str) -> None:
        """Outline the cells from `first` to `last`."""
        x, y = self.at(first)
        right, bottom = self.at((last[0] + 1, last[1] + 1))
        self.picture.rect(x, y, right - x, bottom - y, f"frame {colour}s")


def plain(size: int) -> Axis:
    """Return an axis without padding, for the other image of a picture."""
    return geometry.solve(size, 1, 1, 1, "VALID")


def add(marks: dict[Cell, list[tuple[str, str]]], cell: Cell, colour: str, label: str = "") -> None:
    marks.setdefault(cell, []).append((colour, label))


# One axis: a line per output, so that stride, dilation and padding can be counted.


def ladder(
    title: str, size: int, taps: int, stride: int, dilation: int, padding: AxisPadding
) -> str:
    axis = geometry.solve(size, taps, stride, dilation, padding)
    picture, unit, left, top = Picture(), 30, 84, 74
    read = {cell_read(axis, out, tap) for out in range(axis.out) for tap in range(taps)}
    picture.text(16, 28, title, "title")
    picture.text(
        16,
        47,
        f"input {size}, filter {taps}, stride {stride}, dilation {dilation}: "
        f"pads {axis.before} before, {axis.after} after, output {axis.out}",
        "note",
    )
    grid = Grid(picture, left, top, unit, plain(1), Axis(*axis))
    picture.text(left - 12, top + 20, "input", "end")
    for cell in range(size):
        x, y = grid.at((0, cell))
        picture.text(x + unit / 2, y + 20, str(cell), "number" if cell in read else "small")
        if cell not in read:
            picture.text(x + unit / 2, y - 5, "unread", "tiny")
    for out in range(axis.out):
        colour, y = COLOURS[out % 3], top + (out + 1) * (unit + 6) + 6
        picture.text(left - 12, y + 20, f"y[{out}]", "end")
        reads = [cell_read(axis, out, tap) for tap in range(taps)]
        for cell in range(-axis.before, size + axis.after):
            x, _ = grid.at((0, cell))
            picture.rect(x, y, unit, unit, "ghost")
        start, end = grid.at((0, reads[0]))[0], grid.at((0, reads[-1]))[0]
        picture.line(start + unit / 2, y + unit / 2, end + unit / 2, y + unit / 2, f"{colour}s")
        for tap, cell in enumerate(reads):
            x, _ = grid.at((0, cell))
            inside = 0 <= cell < size
            if not inside:  # hide the line behind the word
                picture.rect(x + 3, y + 3, unit - 6, unit - 6, "paper")
            picture.rect(x + 3, y + 3, unit - 6, unit - 6, colour if inside else f"{colour} faint")
            picture.text(x + unit / 2, y + 20, f"f{tap}", "on" if inside else "small")
    bottom = top + (axis.out + 1) * (unit + 6) + 26
    return picture.finish(max(left + grid.width + 24, 470), bottom, title)


# Two axes: windows, what a cell feeds, what a tap meets, stamps.


def forward(title: str, note: str, rows: Axis, cols: Axis, outs: Sequence[Cell], unit: int) -> str:
    picture = Picture()
    picture.text(16, 28, title, "title")
    picture.text(16, 47, note, "note")
    grid = Grid(picture, 24, 84, unit, rows, cols)
    picture.text(24, 74, "input, with its padding", "label")
    marks: dict[Cell, list[tuple[str, str]]] = {}
    for colour, out in zip(COLOURS, outs, strict=False):
        for _, cell in window(rows, cols, out):
            add(marks, cell, colour)
    grid.paint(marks)
    for colour, out in zip(COLOURS, outs, strict=False):
        cells = [cell for _, cell in window(rows, cols, out)]
        grid.frame(cells[0], cells[-1], colour)
    right = 24 + grid.width + 92
    picture.arrow(right - 74, 84 + grid.height / 2, right - 18)
    y = 84 + (grid.height - rows.out * unit) // 2
    result = Grid(picture, right, y, unit, plain(rows.out), plain(cols.out))
    picture.text(right, y - 10, "output", "label")
    result.paint({out: [(colour, "")] for colour, out in zip(COLOURS, outs, strict=False)})
    legend(picture, 24, 84 + grid.height + 26)
    return picture.finish(right + result.width + 24, 84 + grid.height + 48, title)


def input_gradient(
    title: str, note: str, rows: Axis, cols: Axis, cells: Sequence[Cell], unit: int
) -> str:
    """Which outputs a cell feeds, and through which tap."""
    picture = Picture()
    picture.text(16, 28, title, "title")
    picture.text(16, 47, note, "note")
    height = max(rows.size, rows.out) * unit
    y = 84 + (height - rows.out * unit) // 2
    grid = Grid(picture, 24, y, unit, plain(rows.out), plain(cols.out))
    picture.text(24, y - 10, "out_backprop, and the taps r,s", "label")
    marks: dict[Cell, list[tuple[str, str]]] = {}
    for colour, cell in zip(COLOURS, cells, strict=False):
        for out, (r, s) in feeds(rows, cols, cell):
            add(marks, out, colour, f"{r},{s}")
    grid.paint(marks)
    right = 24 + max(grid.width, 150) + 92
    picture.arrow(right - 74, 84 + height / 2, right - 18)
    result = Grid(picture, right, 84, unit, plain(rows.size), plain(cols.size))
    picture.text(right, 74, "gradient of the input", "label")
    result.paint({cell: [(colour, "")] for colour, cell in zip(COLOURS, cells, strict=False)})
    return picture.finish(right + result.width + 24, 84 + height + 24, title)


def filter_gradient(
    title: str, note: str, rows: Axis, cols: Axis, taps: Sequence[Cell], unit: int
) -> str:
    """Which cells a tap meets, and with which output each is multiplied."""
    picture = Picture()
    picture.text(16, 28, title, "title")
    picture.text(16, 47, note, "note")
    grid = Grid(picture, 24, 84, unit, rows, cols)
    picture.text(24, 74, "input, and the outputs p,q", "label")
    marks: dict[Cell, list[tuple[str, str]]] = {}
    for colour, (r, s) in zip(COLOURS, taps, strict=False):
        for p, q in product(range(rows.out), range(cols.out)):
            add(marks, (cell_read(rows, p, r), cell_read(cols, q, s)), colour, f"{p},{q}")
    grid.paint(marks)
    right = 24 + grid.width + 92
    picture.arrow(right - 74, 84 + grid.height / 2, right - 18)
    y = 84 + (grid.height - rows.window * unit) // 2
    result = Grid(picture, right, y, unit, plain(rows.window), plain(cols.window))
    picture.text(right, y - 10, "gradient of the filter", "label")
    result.paint(
        {tap: [(colour, f"{tap[0]},{tap[1]}")] for colour, tap in zip(COLOURS, taps, strict=False)}
    )
    legend(picture, 24, 84 + grid.height + 26)
    return picture.finish(right + max(result.width, 150) + 24, 84 + grid.height + 48, title)


def stamps(title: str, note: str, rows: Axis, cols: Axis, unit: int) -> str:
    """A transposed convolution: every input cell stamps the filter, overlaps are added."""
    picture = Picture()
    picture.text(16, 28, title, "title")
    picture.text(16, 47, note, "note")
    height = (rows.before + rows.size + rows.after) * unit
    y = 84 + (height - rows.out * unit) // 2
    grid = Grid(picture, 24, y, unit, plain(rows.out), plain(cols.out))
    picture.text(24, y - 10, "input", "label")
    outs = list(product(range(rows.out), range(cols.out)))
    grid.paint({out: [(colour, "")] for colour, out in zip(COLOURS, outs, strict=True)})
    right = 24 + grid.width + 92
    picture.arrow(right - 74, 84 + height / 2, right - 18)
    result = Grid(picture, right, 84, unit, rows, cols)
    picture.text(right, 74, "output; what falls on the padding is dropped", "label")
    marks: dict[Cell, list[tuple[str, str]]] = {}
    for colour, out in zip(COLOURS, outs, strict=True):
        for _, cell in window(rows, cols, out):
            add(marks, cell, colour)
    result.paint(marks)
    return picture.finish(right + max(result.width, 260) + 24, 84 + height + 24, title)


def legend(picture: Picture, x: int, y: int) -> None:
    picture.rect(x, y - 11, 14, 14, "pad")
    picture.text(x + 22, y + 1, "padding: counts as 0", "note")


# A tap of a filter gradient on one axis, with the numbers the operation returns.


def tap_ladder(title: str, size: int, taps: int, dilation: int) -> str:
    axis = geometry.solve(size, taps, 1, dilation, "SAME")
    x = np.arange(size, dtype=np.float64).reshape(1, size, 1, 1)
    sums = depthwise_conv2d_backprop_filter(
        x, (taps, 1, 1, 1), np.ones_like(x), 1, "SAME", dilations=(dilation, 1)
    ).ravel()
    picture, unit, left, top = Picture(), 34, 84, 74
    picture.text(16, 28, title, "title")
    picture.text(
        16,
        47,
        f"input 0 to {size - 1}, out_backprop all ones, filter {taps}, dilation {dilation}, SAME",
        "note",
    )
    grid = Grid(picture, left, top, unit, plain(1), axis)
    picture.text(left - 12, top + 22, "input", "end")
    for cell in range(size):
        picture.text(grid.at((0, cell))[0] + unit / 2, top + 22, str(cell), "number")
    for tap in range(taps):
        colour, y = COLOURS[tap], top + (tap + 1) * (unit + 6) + 6
        picture.text(left - 12, y + 22, f"tap {tap}", "end")
        terms = []
        for out in range(axis.out):
            cell = cell_read(axis, out, tap)
            inside = 0 <= cell < size
            px, _ = grid.at((0, cell))
            picture.rect(px + 3, y + 3, unit - 6, unit - 6, colour if inside else f"{colour} faint")
            picture.text(px + unit / 2, y + 22, f"g{out}", "on" if inside else "small")
            terms += [str(cell)] if inside else []
        picture.text(
            left + grid.width + 16, y + 22, f"{' + '.join(terms)} = {sums[tap]:.0f}", "label"
        )
    bottom = top + (taps + 1) * (unit + 6) + 26
    return picture.finish(left + grid.width + 170, bottom, title)


def draw() -> dict[str, str]:
    """Return every picture by its file name."""
    strided = geometry.solve(5, 3, 2, 1, "SAME")
    dilated = geometry.solve(6, 3, 1, 2, "SAME")
    up = geometry.solve(4, 3, 2, 1, "SAME")
    pictures = {
        "same": ladder("SAME, stride 1", 5, 3, 1, 1, "SAME"),
        "same-stride": ladder("SAME, stride 2: the odd cell goes behind", 6, 3, 2, 1, "SAME"),
        "valid": ladder("VALID: only whole windows", 6, 3, 2, 1, "VALID"),
        "explicit": ladder("Explicit pads (2, 0): only the past is seen", 5, 3, 1, 1, (2, 0)),
        "dilation": ladder("SAME, dilation 2", 6, 3, 1, 2, "SAME"),
        "stride-dilation": ladder("SAME, stride 2 and dilation 3", 7, 3, 2, 3, "SAME"),
        "conv2d": forward(
            "conv2d: three of the nine windows",
            "input 5x5, filter 3x3, stride 2, SAME",
            strided,
            strided,
            [(0, 0), (0, 1), (2, 2)],
            30,
        ),
        "conv2d-input": input_gradient(
            "conv2d_backprop_input: the outputs that two cells feed",
            "input 5x5, filter 3x3, stride 2, SAME. dx = the sum of g * f[r,s] over the marked cells",
            strided,
            strided,
            [(1, 1), (4, 3)],
            36,
        ),
        "conv2d-filter": filter_gradient(
            "conv2d_backprop_filter: the cells that two taps meet",
            "input 5x5, filter 3x3, stride 2, SAME. df = the sum of x * g[p,q] over the marked cells",
            strided,
            strided,
            [(0, 0), (1, 2)],
            36,
        ),
        "depthwise": forward(
            "depthwise_conv2d, in each channel: two windows",
            "input 6x6, filter 3x3, stride 1, dilation 2, SAME",
            dilated,
            dilated,
            [(0, 0), (3, 4)],
            26,
        ),
        "depthwise-input": input_gradient(
            "depthwise_conv2d_backprop_input, in each channel",
            "input 6x6, filter 3x3, stride 1, dilation 2, SAME",
            dilated,
            dilated,
            [(2, 3), (5, 0)],
            36,
        ),
        "depthwise-filter": tap_ladder("depthwise_conv2d_backprop_filter on one axis", 5, 3, 2),
        "transpose": stamps(
            "conv2d_transpose: each cell stamps the filter",
            "input 2x2, filter 3x3, stride 2, SAME, output 4x4. A cell of several colours is their sum",
            up,
            up,
            36,
        ),
        "channels": channel_kinds(),
        "depthwise-channels": depthwise_channels(backwards=False),
        "depthwise-input-channels": depthwise_channels(backwards=True),
        "separable": separable_channels(),
    }
    return {f"{name}.svg": text for name, text in pictures.items()}


if __name__ == "__main__":
    write(FOLDER, draw())
