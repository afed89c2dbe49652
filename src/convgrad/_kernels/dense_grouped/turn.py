"""Groups into lanes and back: a block of as many groups as a vector has lanes, turned in registers.

In memory a pixel of NHWC holds a matrix ``[group][channel]``, and a channel of NCHW one ``[group][pixel]``, a long way
from group to group. Kernels want one number of each group in each vector, pixels and channels in an order of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._compiler.codegen import F32, F64, Int, IntLike, KernelBuilder, Pointer, Vector, transpose
from ..shared.stage import transposed_copy

_AHEAD = 6
"""Pixels of NHWC asked for ahead: a block of groups is a short piece of each, where no hardware looks ahead."""


@dataclass(frozen=True)
class Places:
    """Where turned pixels go: ``[piece][pixel][channel of the piece][lane]``.

    With one piece a pixel's channels lie together. Kernels that read a few channels of many pixels want those together:
    pixels a power of two apart would compete for the same lines of the first cache.
    """

    target: Pointer
    pieces: Sequence[tuple[int, int, int]]
    """From, to and size of the pieces of each size."""
    total: Int
    """Pixels of a piece."""
    lanes: int

    def of(self, channel: int, pixel: Int) -> Pointer:
        """Return the place of a channel of a pixel."""
        first, size = next((at, size) for at, end, size in self.pieces if channel < end)
        start = channel - (channel - first) % size
        piece = self.target.offset(self.total * (start * self.lanes))
        return piece.offset(pixel * (size * self.lanes)).offset((channel - start) * self.lanes)


def pixels_to_lanes(
    k: KernelBuilder,
    source: Pointer,
    places: Places,
    begin: Int,
    pixels: Int,
    pitch: IntLike,
    depth: int,
    apart: int,
) -> None:
    """Copy pixels of NHWC, `pitch` apart, from the first group's channels on; the first one becomes pixel `begin`.

    Of groups that are `apart` channels wide, `depth` channels are taken.
    """
    lanes = places.lanes
    with k.loop(0, pixels) as pixel:
        here, number = source.offset(pixel * pitch), begin + pixel
        if apart == depth:
            _ask(here.offset(k.i64(pitch) * _AHEAD), depth * lanes, write=False)
        if depth < lanes:
            rows = [_together(k, here, i, depth, lanes) for i in range(depth)]
            for i, row in enumerate(transpose(rows)):
                places.of(i, number).store(row, aligned=True)
        for start in _squares(depth, lanes):
            square = [here.offset(i * apart + start).load(lanes) for i in range(lanes)]
            for i, row in enumerate(transpose(square)):
                places.of(start + i, number).store(row, aligned=True)


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
    """Undo `pixels_to_lanes` for the channels from `first` to `last`; a part of them is whole vectors.

    The target may be of a wider type than the source: partial sums are.
    """
    lanes = k.lanes(source.element)
    with k.loop(0, pixels) as pixel:
        here, there = source.offset(pixel * (width * lanes)), target.offset(pixel * pitch)
        _ask(there.offset(k.i64(pitch) * _AHEAD), width * lanes, write=True)
        if width < lanes:
            rows = [here.offset(i * lanes).load(lanes, aligned=True) for i in range(width)]
            for i, row in enumerate(transpose(rows)):
                if width == 1:
                    _store(there, row)
                    continue
                for part in range(lanes // width):
                    piece = row.part(part * width, width)
                    _store(there.offset((part * width + i) * width), piece)
        else:
            with k.loop(first, last, lanes, nonempty=True) as channel:
                start = k.min(channel, width - lanes) if width % lanes else channel
                at = here.offset(start * lanes)
                square = [at.offset(i * lanes).load(lanes, aligned=True) for i in range(lanes)]
                for i, row in enumerate(transpose(square)):
                    _store(there.offset(start).offset(i * width), row)


def planes_to_lanes(
    k: KernelBuilder,
    source: Pointer,
    places: Places,
    begin: Int,
    pixels: Int,
    plane: Int,
    apart: int,
) -> None:
    """Copy pixels of NCHW, from the first group's first channel on, as `pixels_to_lanes` does."""
    lanes = places.lanes
    for first, last, size in places.pieces:
        with k.loop(first, last) as channel:
            inside = (channel - first) % size
            start = (channel - inside) * places.total + begin * size + inside
            here, there = source.offset(channel * plane), places.target.offset(start * lanes)
            transposed_copy(k, here, there, lanes, pixels, plane * apart, size * lanes)


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


def _store(there: Pointer, row: Vector) -> None:
    """Round to a narrower type, or widen."""
    there.store(row.cast("fpext", F64) if there.element is F64 and row.element is F32 else row)


def _ask(there: Pointer, elements: int, *, write: bool) -> None:
    """Ask for the lines of neighbouring elements."""
    for at in range(0, elements, 64 // there.element.size):
        there.offset(at).prefetch(write=write)


def _squares(channels: int, lanes: int) -> list[int]:
    """Return where squares start: the last one overlaps its neighbour if they do not fit; none fits a narrow group."""
    if channels < lanes:
        return []
    return [min(start, channels - lanes) for start in range(0, channels, lanes)]
