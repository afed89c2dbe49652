"""Pictures of chunks as bars: whose chunks a task takes, how sums are added, how large a result's chunks are.

All from the plans of the bridge to Dask; `draw_chunks.py` writes the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from svg_picture import COLOURS, Picture

from convgrad._base import dtypes
from convgrad._bridges.dask import plan as plans
from convgrad._bridges.dask.plan import ChunkPlan, Chunks
from convgrad._problem import arguments, convolution
from convgrad._problem.convolution import Call, Problem

Shape = tuple[int, ...]


def problem(
    call: Call,
    image: Shape,
    taps: Shape,
    strides: object = 1,
    padding: object = "SAME",
    dilations: object = 1,
) -> Problem:
    """Return the problem of a call with friendly arguments; images are NHWC."""
    how = arguments.settings("draw", arguments.FRIENDLY, strides, padding, "NHWC", dilations)
    forward = convolution.DEPTHWISE if call.depthwise else convolution.CONV2D
    found = convolution.build(forward, how, dtypes.FLOAT, image, taps, None)
    if call is forward:
        return found
    return convolution.build(call, how, dtypes.FLOAT, image, taps, found.output_shape)


def whole(shape: Shape) -> Chunks:
    return tuple((size,) for size in shape)


def begins(sizes: Sequence[int]) -> list[int]:
    """Return where chunks begin.

    >>> begins((4, 3))
    [0, 4]
    """
    return [0, *accumulate(sizes)][:-1]


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def heading(picture: Picture, title: str, note: str) -> None:
    picture.text(16, 28, title, "title")
    picture.text(16, 47, note, "note")


# Bars: an axis of an operand or a result, cut into chunks.


def bar(
    picture: Picture, x: int, y: int, unit: float, chunks: Sequence[int], looks: Sequence[str]
) -> None:
    for begin, size, look in zip(begins(chunks), chunks, looks, strict=True):
        place = (x + begin * unit, y, size * unit, 26)
        picture.rect(*place, f"cell {look}")
        if size * unit >= 14:
            picture.text(x + (begin + size / 2) * unit, y + 18, str(size), "on")


def channels(title: str) -> str:
    """Chunks of channels: what is one task, and what is added."""
    picture, left, top = Picture(), 170, 78
    heading(picture, title, "12 channels in, 12 out: lines lead from the chunks that a task takes")
    images, larger = (1, 512, 512, 12), (1, 2048, 1024, 12)
    rows = (
        ("depthwise", problem(convolution.DEPTHWISE, images, (3, 3, 12, 1)), (5, 7), None),
        ("3 groups of 4", problem(convolution.CONV2D, images, (3, 3, 4, 12)), (3, 6, 3), None),
        ("dense, 13 MB", problem(convolution.CONV2D, images, (3, 3, 12, 12)), (4, 4, 4), None),
        ("dense, 101 MB", problem(convolution.CONV2D, larger, (3, 3, 12, 12)), (4, 4, 4), None),
        ("dense, filter cut", problem(convolution.CONV2D, images, (3, 3, 12, 12)), (12,), (6, 6)),
    )
    y = top
    for name, of_call, cut, filter_cut in rows:
        first = (*whole(of_call.input_shape)[:3], cut)
        second = (*whole(of_call.filter_shape)[:3], filter_cut or (of_call.filter_shape[3],))
        _tasks(picture, left, y, name, plans.cut(of_call, first, second), axis=3, unit=22)
        y += 118
    return picture.finish(left + 12 * 22 + 250, y - 14, title)


def _tasks(
    picture: Picture, left: int, y: int, name: str, plan: ChunkPlan, axis: int, unit: int
) -> None:
    """Draw an axis of the input above, the tasks between, the same axis of the output below."""
    cut, made = plan.first[axis], plan.chunks[axis]
    picture.text(left - 14, y + 18, f"{name}: input", "end")
    picture.text(left - 14, y + 88, "output", "end")
    bar(picture, left, y, unit, cut, [colour(number) for number in range(len(cut))])
    bar(picture, left, y + 70, unit, made, ["plain"] * len(made))
    blocks = list(plan.blocks())
    for position, block in enumerate(blocks):
        place = block.place[axis]
        goal = left + (begins(made)[place] + made[place] / 2) * unit
        x = left + (position + 0.5) * sum(cut) * unit / len(blocks)
        for piece in block.first.pieces:
            number, inside = piece.chunk[axis], piece.inside[axis]
            start = begins(cut)[number] + (inside.begin + inside.end) / 2
            picture.line(left + start * unit, y + 26, x, y + 42, f"{colour(number)}s")
        picture.line(x, y + 54, goal, y + 70, "plains")
        picture.rect(x - 8, y + 42, 16, 12, "plain")
    words = f"{plan.parts} partial sums, added" if plan.parts > 1 else _count(len(blocks))
    picture.text(left + sum(cut) * unit + 14, y + 53, words, "label")


def batch(title: str) -> str:
    picture, cut = Picture(), (4, 4, 2)
    heading(picture, title, "10 images: no task needs more than one chunk")
    of_call = problem(convolution.CONV2D, (10, 512, 512, 3), (3, 3, 3, 3))
    plan = plans.cut(of_call, (cut, *whole((512, 512, 3))), whole((3, 3, 3, 3)))
    _tasks(picture, 120, 78, "images", plan, axis=0, unit=28)
    return picture.finish(120 + 10 * 28 + 120, 186, title)


def _count(blocks: int) -> str:
    return "1 task" if blocks == 1 else f"{blocks} tasks"


# The tree of a filter gradient.


def tree(title: str) -> str:
    batch = (1,) * 20
    shape, taps = (20, 8, 8, 1), (3, 3, 1, 1)
    of_call = problem(convolution.CONV2D_FILTER, shape, taps)
    x = (batch, (8,), (8,), (1,))
    plan = plans.cut(of_call, x, x)
    keys, levels = list(range(plan.parts)), [plan.parts]
    while len(keys) > plans.FAN_IN:
        keys = keys[:: plans.FAN_IN]
        levels.append(len(keys))
    levels.append(1)
    picture, left, top, unit, gap = Picture(), 130, 84, 32, 74
    heading(
        picture,
        title,
        f"{plan.parts} chunks of images, a partial sum of each; added in order, {plans.FAN_IN} in a task, in float64",
    )
    names = ["per chunk", *["sums"] * (len(levels) - 2), "rounded once"]
    centres: list[list[float]] = []
    for level, count in enumerate(levels):
        y = top + level * gap
        picture.text(left - 14, y + 18, names[level], "end")
        if not centres:
            found = [left + (number + 0.5) * unit for number in range(count)]
        else:
            below = centres[-1]
            groups = [below[at : at + plans.FAN_IN] for at in range(0, len(below), plans.FAN_IN)]
            found = [sum(each) / len(each) for each in groups]
            for number, (each, middle) in enumerate(zip(groups, found, strict=True)):
                for start in each:
                    picture.line(start, y - gap + 26, middle, y, f"{colour(number)}s")
        for number, middle in enumerate(found):
            look = colour(number // plans.FAN_IN if level == 0 else number)
            picture.rect(middle - 12, y, 24, 26, look if level < len(levels) - 1 else "plain")
            if level == 0:
                picture.text(middle, y + 18, str(number), "on")
        centres.append(found)
    return picture.finish(left + 20 * unit + 24, top + len(levels) * gap - 30, title)


# Chunks of results: joined where small, cut where large.


def sizes(title: str) -> str:
    picture, left, top = Picture(), 190, 84
    heading(picture, title, "the batch axis of float32 images, each block as wide as it has images")
    y = top
    small = problem(convolution.CONV2D, (8, 512, 512, 1), (3, 3, 1, 1), 2)
    tall = problem(convolution.CONV2D, (4, 1024, 1024, 4), (3, 3, 4, 32))
    rows = (
        ("stride 2", small, (1,) * 8, 44),
        ("4 to 32 channels", tall, (4,), 88),
    )
    for name, of_call, batch, unit in rows:
        image, taps = of_call.input_shape, of_call.filter_shape
        plan = plans.cut(of_call, (batch, *whole(image)[1:]), whole(taps))
        per_image = 4 * image[1] * image[2] * image[3]
        made = plan.chunks
        bytes_of_result = [4 * n * made[1][0] * made[2][0] * made[3][0] for n in made[0]]
        for words, chunks, look, nbytes in (
            ("input", batch, "a", [n * per_image for n in batch]),
            ("result", made[0], "c", bytes_of_result),
        ):
            picture.text(
                left - 14, y + 18, f"{name}, {words}" if words == "input" else words, "end"
            )
            bar(picture, left, y, unit, chunks, [look] * len(chunks))
            mib = sorted({each >> 20 for each in nbytes})
            picture.text(
                left + sum(chunks) * unit + 14, y + 18, f"{_listed(mib)} MiB each", "label"
            )
            y += 38
        parts = [len(each) for each in made[1:]]
        if max(parts) > 1:
            cut = next(
                n for n, p in zip(("rows", "columns", "channels"), parts, strict=True) if p > 1
            )
            picture.text(left, y + 8, f"and in {max(parts)} along {cut}", "note")
            y += 18
        y += 10
    return picture.finish(left + 352 + 150, y + 4, title)


def _listed(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))
