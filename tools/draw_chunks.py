"""Draw the pictures of docs/images/dask from the bridge's own plans.

Usage: python tools/draw_chunks.py

Blocks, strips, partial sums and chunks of results come from `_bridges/dask/plan.py`, as a call's do. The text is the
same on every run; a test compares it with the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chunk_bars import batch, begins, channels, colour, heading, problem, sizes, tree, whole
from svg_picture import Picture, write

from convgrad._bridges.dask import plan as plans
from convgrad._bridges.dask.plan import PlannedBlock
from convgrad._problem import convolution
from convgrad._problem.geometry import Axis

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "dask"


# One axis: a line per block, its cells in the colour of the chunk they come from.


def ladder(
    title: str,
    chunks: tuple[int, ...],
    taps: int,
    stride: int = 1,
    dilation: int = 1,
    padding: object = "SAME",
) -> str:
    size = sum(chunks)
    rows = (padding, (0, 0)) if isinstance(padding, tuple) else padding
    of_call = problem(
        convolution.CONV2D, (1, size, 1, 1), (taps, 1, 1, 1), (stride, 1), rows, (dilation, 1)
    )
    axis = of_call.rows
    plan = plans.cut(of_call, ((1,), chunks, (1,), (1,)), whole((taps, 1, 1, 1)))
    blocks = list(plan.blocks())
    picture, unit, left, top = Picture(), 26, 96, 74
    heading(
        picture,
        title,
        f"{size} rows in chunks of {', '.join(map(str, chunks))}; filter {taps}, stride {stride}, "
        f"dilation {dilation}: pads {axis.before} before, {axis.after} after",
    )
    x0 = left + axis.before * unit
    _cells(picture, x0, top, unit, axis, chunks)
    picture.text(left - 12, top + 18, "input", "end")
    outputs = begins([each.problem.rows.out for each in blocks])
    for number, (block, first) in enumerate(zip(blocks, outputs, strict=True)):
        y = top + (number + 1) * (unit + 12) + 6
        count = block.problem.rows.out
        picture.text(left - 12, y + 18, f"block {number}", "end")
        _read(picture, x0, y, unit, block, chunks, axis)
        places = f"outputs {first} to {first + count - 1}" if count > 1 else f"output {first}"
        x = left + (axis.before + size + axis.after) * unit + 14
        picture.text(x, y + 18, places, "label")
    bottom = top + (len(blocks) + 1) * (unit + 12) + 18
    return picture.finish(x0 + (size + axis.after) * unit + 150, bottom, title)


def _cells(
    picture: Picture, x0: int, y: int, unit: int, axis: Axis, chunks: tuple[int, ...]
) -> None:
    for pad in (*range(-axis.before, 0), *range(axis.size, axis.size + axis.after)):
        picture.rect(x0 + pad * unit, y, unit, unit, "pad")
    for number, (begin, count) in enumerate(zip(begins(chunks), chunks, strict=True)):
        for cell in range(begin, begin + count):
            picture.rect(x0 + cell * unit, y, unit, unit, f"cell {colour(number)}")
            picture.text(x0 + cell * unit + unit / 2, y + 18, str(cell), "on")
        picture.rect(x0 + begin * unit, y, count * unit, unit, f"frame {colour(number)}s")


def _read(
    picture: Picture,
    x0: int,
    y: int,
    unit: int,
    block: PlannedBlock,
    chunks: tuple[int, ...],
    axis: Axis,
) -> None:
    """Draw the cells a block reads: whole chunks solid, strips of others with a frame."""
    for cell in range(-axis.before, axis.size + axis.after):
        picture.rect(x0 + cell * unit, y, unit, unit, "ghost")
    starts = begins(chunks)
    for piece in block.first.pieces:
        number, inside = piece.chunk[1], piece.inside[1]
        x = x0 + (starts[number] + inside.begin) * unit
        is_strip = 2 * inside.size <= chunks[number]
        look = colour(number)
        picture.rect(x + 2, y + 2, inside.size * unit - 4, unit - 4, look)
        if is_strip:
            picture.rect(x + 2, y + 2, inside.size * unit - 4, unit - 4, f"frame {look}s")
            picture.text(
                x + inside.size * unit / 2, y + 18, "strip" if inside.size > 1 else "", "tiny"
            )
        else:
            picture.text(
                x + inside.size * unit / 2, y + 18, "chunk", "on" if inside.size > 1 else "tiny"
            )


# Two axes: one block with the strips of its eight neighbours.


def neighbours(title: str) -> str:
    sizes, taps = ((1,), (5, 6, 5), (6, 6, 6), (1,)), (3, 5, 1, 1)
    shape = tuple(map(sum, sizes))
    plan = plans.cut(problem(convolution.CONV2D, shape, taps), sizes, whole(taps))
    block = next(each for each in plan.blocks() if each.place == (0, 1, 1, 0))
    picture, unit, left, top = Picture(), 20, 24, 92
    heading(
        picture,
        title,
        "16 x 18 pixels in chunks of 5, 6, 5 rows and 6, 6, 6 columns; filter 3 x 5, stride 1, SAME: halos 1 and 2",
    )
    picture.text(left, top - 12, "input: what the task of the middle block takes", "label")
    _grid(picture, left, top, unit, sizes[1], sizes[2])
    for piece in block.first.pieces:
        y, x = (
            begins(along)[at] + inside.begin
            for along, at, inside in zip(
                sizes[1:3], piece.chunk[1:3], piece.inside[1:3], strict=True
            )
        )
        height, width = (inside.size for inside in piece.inside[1:3])
        middle = piece.chunk[1:3] == (1, 1)
        look = "a" if middle else "b" if 1 in piece.chunk[1:3] else "c"
        place = (left + x * unit + 1, top + y * unit + 1, width * unit - 2, height * unit - 2)
        picture.rect(*place, look)
        picture.rect(*place, f"frame {look}s")
    _legend(
        picture,
        left,
        top + 16 * unit + 28,
        (("a", "its chunk, whole"), ("b", "strips of 4 neighbours"), ("c", "corners of 4")),
    )
    right = left + 18 * unit + 110
    picture.arrow(right - 88, top + 8 * unit, right - 22)
    picture.text(right, top - 12, "output: chunks where the input's are", "label")
    _grid(picture, right, top, unit, plan.chunks[1], plan.chunks[2])
    y, x = begins(plan.chunks[1])[1], begins(plan.chunks[2])[1]
    height, width = plan.chunks[1][1], plan.chunks[2][1]
    picture.rect(right + x * unit + 1, top + y * unit + 1, width * unit - 2, height * unit - 2, "a")
    return picture.finish(right + 18 * unit + 24, top + 16 * unit + 48, title)


def _grid(
    picture: Picture, x: int, y: int, unit: int, rows: tuple[int, ...], columns: tuple[int, ...]
) -> None:
    for row in range(sum(rows)):
        picture.line(x, y + row * unit, x + sum(columns) * unit, y + row * unit, "ghost")
    for column in range(sum(columns)):
        picture.line(x + column * unit, y, x + column * unit, y + sum(rows) * unit, "ghost")
    for h, height in zip(begins(rows), rows, strict=True):
        for w, width in zip(begins(columns), columns, strict=True):
            picture.rect(x + w * unit, y + h * unit, width * unit, height * unit, "frame plains")


def _legend(picture: Picture, x: int, y: int, rows: Sequence[tuple[str, str]]) -> None:
    for look, words in rows:
        picture.rect(x, y - 11, 14, 14, look)
        picture.text(x + 20, y + 1, words, "note")
        x += 36 + round(len(words) * 7.4)


def draw() -> dict[str, str]:
    """Return every picture by its file name."""
    pictures = {
        "batch": batch("Images in chunks"),
        "rows": ladder("Rows in chunks: strips of both neighbours", (5, 5, 4), 3, dilation=2),
        "stride": ladder("Chunks that are not a multiple of the stride", (5, 4, 6), 3, 2),
        "one-sided": ladder(
            "Padding on one side: a block has the outputs whose windows are centred in its chunk",
            (5, 5, 4),
            4,
            padding=(3, 0),
        ),
        "small": ladder("Chunks smaller than the halo", (6, 1, 2, 6), 7),
        "neighbours": neighbours("Rows and columns in chunks: one task"),
        "channels": channels("Channels in chunks"),
        "tree": tree("The tree of a filter gradient"),
        "sizes": sizes("Chunks of a result"),
    }
    return {f"{name}.svg": text for name, text in pictures.items()}


if __name__ == "__main__":
    write(FOLDER, draw())
