"""How kernels go through images: vectors of neighbouring values, and the channel parameters beside them.

In NHWC (`planes` false) a vector has neighbouring channels of one pixel, parameters are vectors, and some pixels are
taken at a time, so that their parameters and sums are loaded once. In NCHW a vector has neighbouring pixels of one
channel, and parameters are one number in all lanes. Kernels are written for one vector and know neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..._compiler.codegen import (
    F64,
    I64,
    Bool,
    Element,
    Int,
    KernelBuilder,
    Mask,
    Pointer,
    Vector,
    arithmetic,
    element,
)
from ..._problem.sums.gather import LINE
from ..shared.pixel_sum import added_up

POINTERS = 3
"""What stands before the words: the block of addresses, partial sums, and coefficients."""
_AHEAD = 4096
"""Bytes from a load to the line that is asked for beside it. Reductions are up to 1.5 times as fast (Zen 3)."""
_LINE = 64


@dataclass
class Spot:
    """A vector of values of an image."""

    base: Int
    """Elements from the image's beginning to the pixel or plane; the same for a whole inner loop."""
    at: Int
    """Elements from there."""
    lanes: int
    mask: Mask | None

    def load(self, image: Pointer) -> Vector:
        return image.offset(self.base).offset(self.at).load(self.lanes, mask=self.mask)

    def store(self, image: Pointer, values: Vector) -> None:
        image.offset(self.base).offset(self.at).store(values, mask=self.mask)


@dataclass
class Column:
    """Where the parameters of some spots are: those of neighbouring channels, or of one."""

    channel: Int
    row: Int
    """Elements before the image's own parameters, where each image has some."""
    lanes: int
    mask: Mask | None
    planes: bool
    _seen: list[tuple[Pointer, Vector]] = field(default_factory=list)

    def load(self, parameters: Pointer, per_image: bool = False) -> Vector:
        """Return what a row of parameters has here; loaded once."""
        for pointer, value in self._seen:
            if pointer is parameters:
                return value
        place = parameters.offset(self.row) if per_image else parameters
        place = place.offset(self.channel)
        found = (
            place.broadcast(self.lanes) if self.planes else place.load(self.lanes, mask=self.mask)
        )
        self._seen.append((parameters, found))
        return found


class Frame:
    """A kernel's arguments: addresses from a block, by the number of their place, and words."""

    def __init__(self, k: KernelBuilder, words: Sequence[str], planes: bool, dtype: str) -> None:
        self.k, self.planes = k, planes
        self.storage = element(dtype)
        self.word = {name: k.arg_i64(POINTERS + i) for i, name in enumerate(words)}
        self._block = k.arg_pointer(0, I64)

    def _slot(self, name: str) -> Pointer:
        return self._block.offset(self.word[f"at_{name}"])

    def image(self, name: str) -> Pointer:
        return self._slot(name).load_pointer(self.storage)

    def place(self, name: str, kind: str) -> Pointer:
        """Return the address of something of another dtype."""
        return self._slot(name).load_pointer(element(kind))

    def present(self, name: str) -> Bool:
        return self._slot(name).load_int().differs(0)

    def row(self, rows: Pointer, number: int) -> Pointer:
        """Return one of some rows of a number per channel."""
        return rows.offset(self.word["channels"] * number)


def scalar(frame: Frame, number: int) -> Vector:
    """Return one of the numbers that a task is given when it runs, in all lanes of its compute type."""
    kind = arithmetic(frame.storage)
    value = frame.place("scalars", "f64").offset(number).load()
    return (value if kind is F64 else value.cast("fptrunc", kind)).broadcast(frame.k.lanes(kind))


def wide(value: Vector) -> Vector:
    """Return a value in float64, in which long sums are kept."""
    return value if value.element is F64 else value.cast("fpext", F64)


def rounded(value: Vector, parameter: str) -> Vector:
    """Return a value of float64 in the parameters' type."""
    kind = element(parameter)
    return value if kind is F64 else value.cast("fptrunc", kind)


Body = Callable[[Column, list[Spot]], None]


def pixels(frame: Frame, image: Int, start: Int, stop: Int, taken: int, body: Body) -> None:
    """Go through pixels of NHWC, `taken` at a time; they are counted over all images."""
    k, channels = frame.k, frame.word["channels"]
    lanes = k.lanes(arithmetic(frame.storage))
    whole = channels - channels % lanes
    row = image * channels
    even = stop - (stop - start) % taken
    for first, last, step in ((start, even, taken), (even, stop, 1)):
        with k.loop(first, last, step) as pixel:
            bases = [(pixel + i) * channels for i in range(step)]

            def at(channel: Int, mask: Mask | None, bases: list[Int] = bases) -> None:
                column = Column(channel, row, lanes, mask, planes=False)
                body(column, [Spot(base, channel, lanes, mask) for base in bases])

            with k.loop(0, whole, lanes) as channel:
                at(channel, None)
            with k.when(whole < channels):
                at(whole, k.first_lanes(lanes, channels - whole))
        if taken == 1:
            return


def plane(frame: Frame, number: Int, start: Int, stop: Int, taken: int, body: Body) -> None:
    """Go through values of a plane of NCHW, the `number`th of all, `taken` vectors at a time."""
    k, lanes = frame.k, frame.k.lanes(arithmetic(frame.storage))
    full = stop - (stop - start) % lanes
    many = full - (full - start) % (lanes * taken)

    def at(place: Int, step: int, mask: Mask | None) -> None:
        spots = [Spot(base, place + lanes * i, lanes, mask) for i in range(step)]
        body(Column(channel, number - channel, lanes, mask, planes=True), spots)

    channel, base = _plane_of(frame, number)
    with k.loop(start, many, lanes * taken) as place:
        at(place, taken, None)
    with k.loop(many, full, lanes) as place:
        at(place, 1, None)
    with k.when(full < stop):
        at(full, 1, k.first_lanes(lanes, stop - full))


def _plane_of(frame: Frame, number: Int) -> tuple[Int, Int]:
    """Return the channel of a plane, and the elements before it."""
    return number % frame.word["channels"], number * frame.word["pixels"]


RUN = 64
"""Pixels in a run, or a few more, or values of a chain of a plane: what is added up in the compute type."""


def chains(kind: Element) -> int:
    """Return in how many chains values of a plane are added, in turns: as many as the widest vectors have lanes.

    Narrower vectors take two or four for them, so that the bits are the same.
    """
    return LINE // kind.size


def _ceil_divided(a: Int, b: Int) -> Int:
    return (a + b - 1) // b


@contextmanager
def runs(k: KernelBuilder, begin: Int, end: Int) -> Iterator[tuple[Int, Int]]:
    """Go through pixels in runs of at least `RUN`, of equal length but for the last, if there are as many."""
    pixels = end - begin
    length = _ceil_divided(pixels, k.max(pixels // RUN, 1))
    # Longer runs may be fewer: 66 runs of 64 pixels and one pixel more are 65 of 65.
    count = _ceil_divided(pixels, length)
    with k.loop(0, count, nonempty=True) as number:
        start = begin + number * length
        yield start, k.min(start + length, end)


Adding = Callable[[Column, list[Spot], list[Vector]], list[Vector]]
"""Takes sums so far and returns them with some spots added."""


def add_pixels(
    frame: Frame,
    sums: Sequence[Pointer],
    image: Int,
    start: Int,
    stop: Int,
    taken: int,
    streams: Sequence[Pointer],
    adding: Adding,
) -> None:
    """Add up pixels of NHWC, from nothing, in rows of workspace, one number per channel (and some behind them).

    Lines of `streams` are asked for ahead.
    """
    k, channels = frame.k, frame.word["channels"]
    number = arithmetic(frame.storage)
    lanes = k.lanes(number)
    with k.loop(0, channels, lanes, nonempty=True) as channel:
        for each in sums:
            each.offset(channel).store(k.zeros(number, lanes))

    def body(column: Column, spots: list[Spot]) -> None:
        if column.mask is None:
            # The pixels taken at a time lie one behind the other: this walks through them as memory has them.
            size, near = frame.storage.size, column.channel * len(spots)
            for stream in streams:
                here = stream.offset(spots[0].base).offset(near)
                for line in range(max(1, len(spots) * lanes * size // _LINE)):
                    here.offset((_AHEAD + line * _LINE) // size).prefetch()
        places = [each.offset(column.channel) for each in sums]
        found = adding(column, spots, [place.load(lanes) for place in places])
        for place, value in zip(places, found, strict=True):
            place.store(value)

    pixels(frame, image, start, stop, taken, body)


def add_plane(
    frame: Frame, count: int, number: Int, start: Int, stop: Int, taken: int, adding: Adding
) -> list[Vector]:
    """Return sums of values of a plane of NCHW, from nothing: scalars.

    Value i is in chain i % `chains`; in the end these are added halves onto halves.
    """
    k = frame.k
    kind = arithmetic(frame.storage)
    lanes, turn = k.lanes(kind), chains(kind)
    parts = range(0, turn, lanes)
    sums = [[k.variable(k.zeros(kind, lanes)) for _ in range(count)] for _ in parts]
    carry = [each for part in sums for each in part]
    full = stop - (stop - start) % turn
    many = full - (full - start) % (turn * taken)
    channel, base = _plane_of(frame, number)

    def add(part: int, place: Int, step: int, mask: Mask | None) -> None:
        spots = [Spot(base, place + (parts[part] + turn * i), lanes, mask) for i in range(step)]
        column = Column(channel, number - channel, lanes, mask, planes=True)
        found = adding(column, spots, [each.value for each in sums[part]])
        for each, value in zip(sums[part], found, strict=True):
            each.value = value

    for first, last, step in ((start, many, taken), (many, full, 1)):
        with k.loop(first, last, turn * step, carry=carry) as place:
            for part in range(len(parts)):
                add(part, place, step, None)
    for part, lane in enumerate(parts):
        left = stop - full - lane
        with k.when(left > 0):
            add(part, full, 1, k.first_lanes(lanes, left))
    return [added_up([part[i].value for part in sums]).sum() for i in range(count)]


BLOCKS = ("channels", "pixels", "groups", "values", "blocks", "block", "items")
"""Words of a pass that goes backwards: `groups` of `values` pixels (planes for NCHW), each in `blocks` of `block`."""


def descending(frame: Frame, taken: int, body: Body) -> None:
    """Go through blocks of an image from its end, each forwards: the pass before has left the end in caches.

    Going through single pixels backwards would halve the bandwidth.
    """
    k, word = frame.k, frame.word
    with k.loop(k.begin, k.end) as item:
        number = word["items"] - 1 - item
        group = number // word["blocks"]
        first = group * word["values"]
        start = first + number % word["blocks"] * word["block"]
        stop = k.min(start + word["block"], first + word["values"])
        if frame.planes:
            with k.loop(start, stop, nonempty=True) as each:
                plane(frame, each, k.i64(0), word["pixels"], taken, body)
        else:
            pixels(frame, group, start, stop, taken, body)
