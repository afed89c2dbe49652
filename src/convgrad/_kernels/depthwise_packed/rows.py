"""Rows in and out of the scratch of `depthwise_packed`: copies that own layout, storage type and multiplier.

In scratch a row is ``[column][channel of the chunk]`` in the compute type. The caller's memory is NHWC or NCHW, of any
storage type. `V` below is the vector's number of lanes.

* NHWC: pixels are copied vector by vector; the last vector of a chunk is moved back to end at its last channel.
* NCHW: tiles of V channels x V columns are transposed in registers.
* Multiplier M, forward and filter gradient: channel c of the input is repeated M times, as the filter's ``[C, M]`` has
  it, so that all that follows has C * M channels and no multiplier.
* Multiplier M, input gradient: channel c * M + m of `out_backprop` goes to plane m, and the planes are summed like
  further rows of the window.

Writes may run over the end of what was asked for, by less than `overrun` elements; the packing code goes from left to
right, zeroes the pads last, and leaves that much room at the end of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ..._compiler.codegen import (
    Element,
    Int,
    IntLike,
    KernelBuilder,
    Mask,
    Pointer,
    Vector,
    arithmetic,
    transpose,
)

_LINE = 64
_SHUFFLED = 8
"""Multipliers up to which interleaved planes are separated by shuffles, not element by element."""


def overrun(lanes: int, chunk: int, repeat: int, by_channel: bool) -> int:
    """Return how many elements behind its end a packed row may be written."""
    if by_channel:
        return lanes * chunk
    return lanes if repeat > 1 else 0


@dataclass(frozen=True)
class Image:
    """One image in the caller's memory."""

    at: Pointer
    rows: Int
    cols: Int
    channels: Int


@dataclass(frozen=True)
class Chunk:
    """The channels an item works on."""

    first: Int
    width: Int
    """At least one vector, unless there are fewer channels than that altogether."""


class RowCopies:
    """Writes the copies."""

    def __init__(
        self,
        k: KernelBuilder,
        storage: Element,
        chunk: int,
        channels: Int,
        small: bool,
        by_channel: bool,
    ) -> None:
        self.k = k
        self.storage = storage
        self.number = arithmetic(storage)
        self.lanes = k.lanes(self.number)
        self.pitch = chunk
        """Elements from one packed column to the next."""
        self.channels = channels
        """Channels of the whole array, each repeated as often as the multiplier says."""
        self.small = small
        """Whether there are fewer channels than lanes."""
        self.by_channel = by_channel
        """Whether the layout is NCHW."""

    def place(self, c: Int, chunk: Chunk) -> Int:
        """Return where vector `c` of the chunk starts: the last one ends at the last channel."""
        return c if self.small else self.k.min(c, chunk.width - self.lanes)

    def load(self, pointer: Pointer) -> Vector:
        """Load a vector of channels from the caller's memory."""
        if self.small:
            return pointer.load(self.lanes, mask=self.k.first_lanes(self.lanes, self.channels))
        return pointer.load(self.lanes)

    def store(self, pointer: Pointer, value: Vector) -> None:
        """Store a vector of channels to the caller's memory."""
        if self.small:
            pointer.store(value, mask=self.k.first_lanes(self.lanes, self.channels))
        else:
            pointer.store(value)

    def zero(self, row: Pointer, start: Int, stop: Int) -> None:
        """Clear packed columns."""
        k = self.k
        with k.loop(start * self.pitch, stop * self.pitch, self.lanes) as i:
            row.offset(i).store(k.zeros(self.number, self.lanes), aligned=True)

    # Packing

    def pack(
        self,
        image: Image,
        row: Int,
        col: Int,
        count: Int,
        packed: Pointer,
        chunk: Chunk,
        repeat: int = 1,
        planes: int = 1,
        plane_pitch: IntLike = 0,
        prefetch: bool = False,
    ) -> None:
        """Copy `count` columns of a row from `col` on; `repeat` and `planes` are the multiplier's two uses."""
        k = self.k
        if self.by_channel:
            pixel = image.at.offset(row * image.cols + col)
            if planes == 1:
                self._transpose_in(image, pixel, count, packed, chunk, repeat)
                return
            with k.loop(0, planes) as plane:
                place = packed.offset(plane_pitch * plane)
                self._transpose_in(image, pixel, count, place, chunk, 1, planes, plane)
            return
        start = image.at.offset((row * image.cols + col) * image.channels)
        with k.loop(0, count) as i:
            pixel, place = start.offset(image.channels * i), packed.offset(i * self.pitch)
            if repeat > 1:
                self._repeat(pixel, place, chunk, repeat)
            elif planes > 1:
                with k.loop(0, chunk.width, self.lanes, nonempty=True) as c:
                    at = self.place(c, chunk)
                    vectors = self.split(pixel.offset((chunk.first + at) * planes), planes)
                    for m, value in enumerate(vectors):
                        place.offset(plane_pitch * m).offset(at).store(value)
            else:
                pixel = pixel.offset(chunk.first)
                if prefetch:
                    below = pixel.offset(image.cols * image.channels)
                    for line in range(0, self.pitch, _LINE // self.storage.size):
                        below.offset(line).prefetch()
                self._copy(pixel, place, chunk)

    def _copy(self, pixel: Pointer, place: Pointer, chunk: Chunk) -> None:
        k = self.k

        def by_vector() -> None:
            with k.loop(0, chunk.width, self.lanes, nonempty=True) as c:
                at = self.place(c, chunk)
                place.offset(at).store(self.load(pixel.offset(at)))

        if self.small or self.pitch == self.lanes:
            by_vector()
            return
        with k.branch(chunk.width.equals(self.pitch)) as full:
            with full.then():
                parts = range(0, self.pitch, self.lanes)
                for c, value in [(c, pixel.offset(c).load(self.lanes)) for c in parts]:
                    place.offset(c).store(value, aligned=True)
            with full.otherwise():
                by_vector()

    def _repeat(self, pixel: Pointer, place: Pointer, chunk: Chunk, repeat: int) -> None:
        """Write every channel `repeat` times."""
        k, lanes = self.k, self.lanes

        def by_channel() -> None:
            first, last = chunk.first // repeat, (chunk.first + chunk.width - 1) // repeat
            with k.loop(first, last + 1, nonempty=True) as channel:
                value = pixel.offset(channel).broadcast(lanes)
                start = channel * repeat - chunk.first
                begin, end = k.max(start, 0), k.min(start + repeat, chunk.width)
                with k.loop(begin, end, lanes, nonempty=True) as c:
                    place.offset(c).store(value)

        if self.pitch // lanes % repeat:
            by_channel()
            return
        # A full chunk starts and ends with a whole vector of channels: one load feeds `repeat` vectors.
        with k.branch(chunk.width.equals(self.pitch)) as full:
            with full.then():
                channels = pixel.offset(chunk.first // repeat)
                for c in range(0, self.pitch, lanes * repeat):
                    value = channels.offset(c // repeat).load(lanes)
                    for part in range(repeat):
                        picked = [(part * lanes + lane) // repeat for lane in range(lanes)]
                        copies = k.shuffle(value, None, picked)
                        place.offset(c + part * lanes).store(copies, aligned=True)
            with full.otherwise():
                by_channel()

    def split(self, pointer: Pointer, planes: int) -> list[Vector]:
        """Load a vector of channels from each of `planes` interleaved planes."""
        k, lanes = self.k, self.lanes
        if planes == 1:
            return [self.load(pointer)]
        if planes > _SHUFFLED:
            return [self._strided(pointer.offset(plane), planes) for plane in range(planes)]
        parts = []
        for part in range(planes):
            at = pointer.offset(part * lanes)
            count = self.channels * planes - part * lanes if self.small else None
            parts.append(at.load(lanes, count=count))
        return _separate(k, parts) if planes & (planes - 1) == 0 else _pick(k, parts)

    def _strided(self, pointer: Pointer, step: int) -> Vector:
        """Load every step-th element, one by one."""
        k = self.k
        value = k.zeros(self.number, self.lanes)
        for lane in range(self.lanes):
            which: IntLike = k.min(self.channels - 1, lane) if self.small else lane
            value = value.with_lane(lane, pointer.offset(which * step).load())
        return value

    # Transposing

    def _transpose_in(
        self,
        image: Image,
        pixel: Pointer,
        count: Int,
        packed: Pointer,
        chunk: Chunk,
        repeat: int,
        planes: int = 1,
        plane: IntLike = 0,
    ) -> None:
        k, lanes = self.k, self.lanes
        with k.loop(0, chunk.width, lanes, nonempty=True) as c:
            at = self.place(c, chunk)
            sources = []
            for lane in range(lanes):
                channel = self._channel(chunk.first + at + lane) // repeat * planes + plane
                sources.append(pixel.offset(channel * (image.rows * image.cols)))

            def tile(i: Int, mask: Mask | None, sources: list[Pointer], at: Int) -> None:
                rows = [source.offset(i).load(lanes, mask=mask) for source in sources]
                for j, value in enumerate(transpose(rows)):
                    packed.offset((i + j) * self.pitch + at).store(value)

            write = partial(tile, sources=sources, at=at)
            few = k.first_lanes(lanes, count)
            if self.storage.size >= 4:
                # Masked loads of these are as fast as others, and one body compiles in half the time of two.
                with k.loop(0, count, lanes) as i:
                    write(k.max(k.min(i, count - lanes), 0), few)
            else:
                with k.branch(count >= lanes) as whole:
                    with whole.then(), k.loop(0, count, lanes, nonempty=True) as i:
                        write(k.min(i, count - lanes), None)
                    with whole.otherwise():
                        write(k.i64(0), few)

    def unpack(self, image: Image, row: Int, count: Int, packed: Pointer, chunk: Chunk) -> None:
        """Write `count` packed pixels to a NCHW image, from the start of a row on."""
        k, lanes = self.k, self.lanes
        pixel = image.at.offset(row * image.cols)
        with k.loop(0, chunk.width, lanes, nonempty=True) as c:
            at = self.place(c, chunk)
            targets = []
            for lane in range(lanes):
                channel = self._channel(chunk.first + at + lane)
                targets.append(pixel.offset(channel * (image.rows * image.cols)))

            with k.branch(count >= lanes) as whole:
                with whole.then(), k.loop(0, count, lanes, nonempty=True) as start:
                    i = k.min(start, count - lanes)
                    pixels = [
                        packed.offset((i + j) * self.pitch + at).load(lanes) for j in range(lanes)
                    ]
                    for lane, value in enumerate(transpose(pixels)):
                        self._store_lane(targets[lane].offset(i), value, lane)
                with whole.otherwise(), k.loop(0, count) as i:
                    value = packed.offset(i * self.pitch + at).load(lanes)
                    for lane in range(lanes):
                        self._store_lane(targets[lane].offset(i), value.lane(lane), lane)

    def _store_lane(self, pointer: Pointer, value: Vector, lane: int) -> None:
        """Store to the plane of a lane's channel, if there is such a channel."""
        if self.small:
            with self.k.when(self.channels > lane):
                pointer.store(value)
        else:
            pointer.store(value)

    def _channel(self, channel: Int) -> Int:
        return self.k.min(channel, self.channels - 1) if self.small else channel


def _separate(k: KernelBuilder, parts: list[Vector]) -> list[Vector]:
    """Undo the interleaving of as many planes as there are vectors, a power of two: even and odd lanes, repeatedly."""
    if len(parts) == 1:
        return parts
    lanes = parts[0].lanes
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    even = _separate(k, [k.shuffle(a, b, range(0, 2 * lanes, 2)) for a, b in pairs])
    odd = _separate(k, [k.shuffle(a, b, range(1, 2 * lanes, 2)) for a, b in pairs])
    return [vector for pair in zip(even, odd, strict=True) for vector in pair]


def _pick(k: KernelBuilder, parts: list[Vector]) -> list[Vector]:
    """Undo the interleaving of any number of planes, each picked out of all vectors."""
    lanes, planes = parts[0].lanes, len(parts)
    separate = []
    for plane in range(planes):
        picked = [divmod(lane * planes + plane, lanes) for lane in range(lanes)]
        value = parts[0]
        for part in range(planes):
            # Lanes picked so far stay in place; the first part moves its own there.
            order = [
                lanes + lane if at == part and part else lane if part == 0 and at == 0 else i
                for i, (at, lane) in enumerate(picked)
            ]
            value = k.shuffle(value, parts[part], order)
        separate.append(value)
    return separate
