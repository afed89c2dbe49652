"""Groups into lanes and back: a block of as many groups as a vector has lanes, turned in registers.

In memory a pixel of NHWC holds a matrix ``[group][channel]``, and a channel of NCHW one ``[group][pixel]``, a long way
from group to group. Kernels want ``[pixel][channel][group]``: one number of each group in each vector.
"""

from __future__ import annotations

from ..._codegen import Int, IntLike, KernelBuilder, Pointer, Vector, transpose
from ..shared.stage import transposed_copy


def pixels_to_lanes(
    k: KernelBuilder,
    source: Pointer,
    target: Pointer,
    pixels: Int,
    pitch: IntLike,
    depth: int,
) -> None:
    """Copy pixels of NHWC, `pitch` apart, from the first group's channels on: ``target[pixel][channel][lane]``."""
    lanes = k.lanes(target.element)
    with k.loop(0, pixels) as pixel:
        here, there = source.offset(pixel * pitch), target.offset(pixel * (depth * lanes))
        if depth < lanes:
            rows = [_together(k, here, i, depth, lanes) for i in range(depth)]
            for i, row in enumerate(transpose(rows)):
                there.offset(i * lanes).store(row, aligned=True)
        for start in _squares(depth, lanes):
            square = [here.offset(i * depth + start).load(lanes) for i in range(lanes)]
            for i, row in enumerate(transpose(square)):
                there.offset((start + i) * lanes).store(row, aligned=True)


def pixels_from_lanes(
    k: KernelBuilder,
    source: Pointer,
    target: Pointer,
    pixels: Int,
    pitch: IntLike,
    width: int,
    first: Int,
    last: Int,
) -> None:
    """Undo `pixels_to_lanes` for the channels from `first` to `last`; a part of them is whole vectors."""
    lanes = k.lanes(source.element)
    with k.loop(0, pixels) as pixel:
        here, there = source.offset(pixel * (width * lanes)), target.offset(pixel * pitch)
        if width < lanes:
            rows = [here.offset(i * lanes).load(lanes, aligned=True) for i in range(width)]
            for i, row in enumerate(transpose(rows)):
                if width == 1:
                    there.store(row)
                    continue
                for part in range(lanes // width):
                    piece = row.part(part * width, width)
                    there.offset((part * width + i) * width).store(piece)
        else:
            with k.loop(first, last, lanes, nonempty=True) as channel:
                start = k.min(channel, width - lanes) if width % lanes else channel
                at = here.offset(start * lanes)
                square = [at.offset(i * lanes).load(lanes, aligned=True) for i in range(lanes)]
                for i, row in enumerate(transpose(square)):
                    there.offset(start).offset(i * width).store(row)


def planes_to_lanes(
    k: KernelBuilder, source: Pointer, target: Pointer, pixels: Int, plane: Int, depth: int
) -> None:
    """Copy pixels of NCHW, from the first group's first channel on: ``target[pixel][channel][lane]``."""
    lanes = k.lanes(target.element)
    with k.loop(0, depth) as channel:
        here, there = source.offset(channel * plane), target.offset(channel * lanes)
        transposed_copy(k, here, there, lanes, pixels, plane * depth, depth * lanes)


def planes_from_lanes(
    k: KernelBuilder,
    source: Pointer,
    target: Pointer,
    pixels: Int,
    plane: Int,
    width: int,
    first: Int,
    last: Int,
) -> None:
    """Undo `planes_to_lanes` for the channels from `first` to `last`."""
    lanes = k.lanes(source.element)
    with k.loop(first, last) as channel:
        here, there = source.offset(channel * lanes), target.offset(channel * plane)
        transposed_copy(k, here, there, pixels, lanes, width * lanes, plane * width)


def _together(k: KernelBuilder, here: Pointer, row: int, depth: int, lanes: int) -> Vector:
    """Return the channels of every `depth`th group from `row` on, group after group in one vector."""
    if depth == 1:
        return here.load(lanes)
    found = here.offset(row * depth).load(depth)
    for part in range(depth, lanes, depth):
        more = here.offset((part + row) * depth).load(depth)
        # Both are as wide as what was found so far, or the shuffle could not name its lanes.
        if part > depth:
            more = k.shuffle(more, None, [i % depth for i in range(part)])
        found = k.shuffle(found, more, [*range(part), *range(part, part + depth)])
    return found


def _squares(channels: int, lanes: int) -> list[int]:
    """Return where squares start: the last one overlaps its neighbour if they do not fit; none fits a narrow group."""
    if channels < lanes:
        return []
    return [min(start, channels - lanes) for start in range(0, channels, lanes)]
