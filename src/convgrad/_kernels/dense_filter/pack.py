"""Copies of one chunk's pixels into scratch, channels in tiles: ``[group][tile][pixel][channel of the tile]``.

Here and only here the dense filter gradient meets the layout, the dtype and the strides. A chunk's pixels are runs
(`chunk`): first pixel, how many, how far apart, and where the first goes. NHWC copies a few channels of a pixel at a
time; NCHW transposes square blocks in registers, a vector of pixels by a vector of channels. Where there are lists of
pixels, one of zeros stands behind those of each tile: lists are padded with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import (
    Element,
    Int,
    KernelBuilder,
    Pointer,
    Variable,
    arithmetic,
    transpose,
)
from .chunk import Chunks, PixelRun, Shape

_BLOCK = 8
"""Pixels that NHWC copies tile by tile, so that the lines of a pixel are still near when its next tile comes."""

_AHEAD = 16
"""Pixels that NHWC asks for before it copies them: most of a copy's time is waiting."""


@dataclass(frozen=True)
class Pack:
    """One of the two copies of a chunk."""

    side: str
    """Prefix of the words that describe the array: x or y."""
    source: Pointer
    """The chunk's first pixel, channel 0."""
    target: Pointer
    shape: Shape
    image_pixels: Int
    """Pixels of one image in the copy."""
    width: int
    """Channels of a tile in the copy: distance of two pixels."""
    tile_size: Int
    zero: Int
    """Where the pixel of zeros stands."""
    group: Int
    group_end: Int
    channels: Int
    """Of a group."""
    tile: Int
    tile_end: Int
    whole: Int
    """Tiles of a group that have all their channels; at most one does not."""
    kinds: tuple[tuple[int, Int, Int], ...]
    """Channels per tile for ranges of tiles."""
    col: Int | None = None
    """The first column of x where windows' columns are channels."""

    def start(self, tile: Int) -> Int:
        """Return the first channel of a tile."""
        (width, _, stop), *more = self.kinds
        if not more:
            return tile * width
        few = more[0][0]
        over = (tile - stop).maximum(0)
        return tile * width - over * (width - few)

    def place(self, group: Int, tile: Int) -> Pointer:
        """Return where a tile's copy starts."""
        number = (group - self.group) * (self.tile_end - self.tile) + tile - self.tile
        return self.target.offset(number * self.tile_size)


class ChunkPacker:
    """Writes copies into a kernel."""

    def __init__(
        self,
        k: KernelBuilder,
        storage: Element,
        by_channel: bool,
        zeros: bool,
        chunks: Chunks,
        word: dict[str, Int],
    ) -> None:
        self.k = k
        self.zeros = zeros
        """Whether pixels of zeros are wanted."""
        self.storage, self.number = storage, arithmetic(storage)
        self.lanes = k.lanes(self.number)
        self.by_channel = by_channel
        self.chunks = chunks
        self.word = word

    def pack(self, pack: Pack) -> None:
        """Copy the pixels, then write the zero pixels, into which the copies may have spilt."""
        k = self.k
        if self.by_channel:
            self._planes(pack)
        else:
            self._pixels(pack)
        if not self.zeros:
            return
        count = (pack.group_end - pack.group) * (pack.tile_end - pack.tile)
        zero = k.zeros(self.number, 1)
        with k.loop(0, count, nonempty=True) as number:
            place = pack.target.offset(number * pack.tile_size + pack.zero * pack.width)
            for i in range(pack.width):
                place.offset(i).store(zero)

    def _word(self, pack: Pack, name: str) -> Int:
        return self.word[f"{pack.side}_{name}"]

    # NHWC

    def _pixels(self, pack: Pack) -> None:
        k = self.k
        pitch = self._word(pack, "pixel")
        with (
            k.loop(0, pack.shape.copied_images, nonempty=True) as image,
            self.chunks.runs(pack.side, pack.shape) as run,
        ):
            source = pack.source.offset(image * self._word(pack, "image") + run.first * pitch)
            start = run.place + image * pack.image_pixels
            step = run.apart * pitch
            left, right = self._inside(pack, run)
            if pack.col is not None:
                with k.loop(0, left) as p:
                    self._edge(pack, run, source.offset(p * step), p, start + p)
            blocks = right - (right - left) % _BLOCK
            with k.loop(left, blocks, _BLOCK) as p:
                self._tiles(pack, source.offset(p * step), step, start + p, _BLOCK)
            with k.loop(blocks, right) as p:
                self._tiles(pack, source.offset(p * step), step, start + p, 1)
            if pack.col is not None:
                with k.loop(right, run.count) as p:
                    self._edge(pack, run, source.offset(p * step), p, start + p)

    def _inside(self, pack: Pack, run: PixelRun) -> tuple[Int, Int]:
        """Return which pixels of a run have whole windows inside the image: not before, and before."""
        k, word = self.k, self.word
        if pack.col is None:
            return k.i64(0), run.count
        before = word["x_before"] - pack.col - run.col
        left = k.min((k.max(before, 0) + (run.apart - 1)) // run.apart, run.count)
        most = before + word["x_cols"] - word["x_window"]
        some = k.select(most < 0, k.i64(0), k.max(most, 0) // run.apart + 1)
        return left, k.min(k.max(some, left), run.count)

    def _columns(self, pack: Pack, run: PixelRun, number: Int) -> tuple[Int, Int, Int]:
        """Return the column of the image where a window starts, and which of its own lie in the image."""
        k, word = self.k, self.word
        assert pack.col is not None
        col = pack.col + run.col + number * run.apart - word["x_before"]
        first = k.min(k.max(0 - col, 0), word["x_window"])
        return col, first, k.max(k.min(word["x_cols"] - col, word["x_window"]), first)

    def _edge(self, pack: Pack, run: PixelRun, source: Pointer, number: Int, pixel: Int) -> None:
        """Copy a window that lies partly beside the image; what does is zero."""
        k, fold = self.k, self.word["x_fold"]
        _, first, last = self._columns(pack, run, number)
        with k.loop(pack.tile, pack.tile_end, nonempty=True) as tile:
            place = pack.place(pack.group, tile).offset(pixel * pack.width)
            self._clear(place, pack.width)
            start = pack.start(tile)
            begin = k.max(first * fold, start)
            with k.loop(begin, k.min(last * fold, start + pack.width)) as channel:
                place.offset(channel - start).store(source.offset(channel).load())

    def _clear(self, place: Pointer, width: int) -> None:
        for at, lanes in self._pieces(width):
            place.offset(at).store(self.k.zeros(self.number, lanes))

    def _tiles(self, pack: Pack, source: Pointer, step: Int, pixel: Int, count: int) -> None:
        """Copy all channels of a few pixels."""
        k = self.k
        with k.loop(pack.group, pack.group_end, nonempty=True) as group:
            here = source.offset(group * pack.channels)
            for width, begin, end in pack.kinds:
                first, whole = k.max(pack.tile, begin), k.min(k.min(pack.tile_end, end), pack.whole)
                pieces = self._pieces(width)
                a = k.variable(here.offset(pack.start(first)))
                b = k.variable(pack.place(group, first).offset(pixel * pack.width))
                wider = 1 << (width - 1).bit_length()
                if len(pieces) > 1 and wider <= min(self.lanes, width + pack.kinds[-1][0]):
                    # One vector: it reads into the next tile's channels and spills into the next pixel.
                    wide = k.min(whole, pack.whole - 1)
                    with k.loop(first, wide, carry=[a, b]):
                        self._tile(pack, a, b, step, width, [(0, wider)], count)
                    first = k.max(first, wide)
                with k.loop(first, whole, carry=[a, b]):
                    self._tile(pack, a, b, step, width, pieces, count)
            with k.when(pack.tile_end > pack.whole):
                self._ragged(pack, here, group, pixel, step, count)

    def _pieces(self, width: int) -> list[tuple[int, int]]:
        """Cut a tile's channels into vectors: where each starts, and its lanes."""
        pieces, done = [], 0
        while done < width:
            lanes = self.lanes
            while lanes > width - done:
                lanes //= 2
            pieces.append((done, lanes))
            done += lanes
        return pieces

    def _tile(
        self,
        pack: Pack,
        source: Variable[Pointer],
        target: Variable[Pointer],
        step: Int,
        width: int,
        pieces: list[tuple[int, int]],
        count: int,
    ) -> None:
        """Copy one tile's channels of a few pixels and go on to the next tile."""
        a, b = source.value, target.value
        ahead = a.offset(step * _AHEAD)
        for _ in range(count):
            if count > 1:
                ahead.prefetch()
                ahead = ahead.offset(step)
            for start, lanes in pieces:
                b.offset(start).store(a.offset(start).load(lanes))
            a, b = a.offset(step), b.offset(pack.width)
        source.value = source.value.offset(width)
        target.value = target.value.offset(pack.tile_size)

    def _ragged(
        self, pack: Pack, source: Pointer, group: Int, pixel: Int, step: Int, count: int
    ) -> None:
        """Copy the channels of a tile that has not all of them, with zeros behind."""
        k, lanes = self.k, self.lanes
        tile = pack.whole
        place = pack.place(group, tile).offset(pixel * pack.width)
        start = pack.start(tile)
        here = source.offset(start)
        left = pack.channels - start
        if self.storage is not self.number:
            # Masks of 16-bit lanes are a branch per lane.
            with k.loop(0, count) as p:
                a, b = here.offset(p * step), place.offset(p * pack.width)
                with k.loop(0, left) as i:
                    b.offset(i).store(a.offset(i).load())
                with k.loop(left, pack.width) as i:
                    b.offset(i).store(k.zeros(self.number, 1))
            return
        parts = range(0, pack.width, lanes)
        masks = [k.first_lanes(lanes, left - part) for part in parts]
        for _ in range(count):
            for part, mask in zip(parts, masks, strict=True):
                value = here.offset(part).load(lanes, mask=mask)
                for begin, some in self._pieces(min(lanes, pack.width - part)):
                    place.offset(part + begin).store(value.part(begin, some))
            here, place = here.offset(step), place.offset(pack.width)

    # NCHW

    def _planes(self, pack: Pack) -> None:
        """Copy tile by tile, in rising order: stores of whole vectors spill into what is written next."""
        k, lanes = self.k, self.lanes
        with (
            k.loop(pack.group, pack.group_end, nonempty=True) as group,
            k.loop(pack.tile, pack.tile_end, nonempty=True) as tile,
            k.loop(0, pack.shape.copied_images, nonempty=True) as image,
            self.chunks.runs(pack.side, pack.shape) as run,
        ):
            apart = run.apart
            source = pack.source.offset(image * self._word(pack, "image") + run.first)
            channel = group * pack.channels + pack.start(tile)
            place = pack.place(group, tile)
            place = place.offset((run.place + image * pack.image_pixels) * pack.width)
            left, right = self._inside(pack, run)
            if pack.col is not None:
                self._edges(pack, run, source, channel, place, k.i64(0), left)
            count = right - left
            here, there = source.offset(left * apart), place.offset(left * pack.width)
            with k.branch(apart.equals(1) & (count >= lanes)) as dense:
                with dense.then():
                    parts = -(-pack.width // lanes)
                    with k.loop(0, parts) as turn:
                        # The last part first: it spills into the next pixel's first one.
                        part = (parts - 1 - turn) * lanes
                        self._transposed(pack, here, channel + part, count, there + part)
                with dense.otherwise():
                    self._gathered(pack, here, channel, count, apart, there)
            if pack.col is not None:
                # Vectors spill into the first of these.
                self._edges(pack, run, source, channel, place, right, run.count)

    def _edges(
        self,
        pack: Pack,
        run: PixelRun,
        source: Pointer,
        channel: Int,
        place: Pointer,
        begin: Int,
        end: Int,
    ) -> None:
        """Copy windows that lie partly beside the image; what does is zero."""
        k, fold = self.k, self.word["x_fold"]
        with k.loop(begin, end) as p:
            to, here = place.offset(p * pack.width), source.offset(p * run.apart)
            _, first, last = self._columns(pack, run, p)
            self._clear(to, pack.width)
            with k.loop(first, last) as col, k.loop(0, fold, nonempty=True) as plane:
                number = col * fold + plane - channel
                with k.when(number.inside(pack.width)):
                    value = here.offset(plane * self._word(pack, "channel") + col).load()
                    to.offset(number).store(value)

    def _plane(self, pack: Pack, channel: Int) -> Int:
        """Return where a channel's pixels are; a folded channel is a column of the window and a channel."""
        plane = self._word(pack, "channel")
        if pack.col is None:
            return channel * plane
        fold = self._word(pack, "fold")
        return channel % fold * plane + channel // fold

    def _transposed(
        self, pack: Pack, source: Pointer, channel: Int, count: Int, place: Pointer
    ) -> None:
        """Transpose a run of pixels of one vector of channels; the last block is moved back to fit."""
        k, lanes = self.k, self.lanes
        last = self._word(pack, "channels") - 1
        planes = [source.offset(self._plane(pack, k.min(channel + i, last))) for i in range(lanes)]
        with k.loop(0, count, lanes, nonempty=True) as p:
            pixel = k.min(p, count - lanes)
            at = place.offset(pixel * pack.width)
            for column in transpose([row.offset(pixel).load(lanes) for row in planes]):
                at.store(column)
                at = at.offset(pack.width)

    def _gathered(
        self,
        pack: Pack,
        source: Pointer,
        channel: Int,
        count: Int,
        apart: Int,
        place: Pointer,
    ) -> None:
        """Copy pixels one by one: runs that are short or have holes."""
        k = self.k
        channels = k.min(self._word(pack, "channels") - channel, pack.width)
        with k.loop(0, channels, nonempty=True) as i:
            row, to = source.offset(self._plane(pack, channel + i)), place.offset(i)
            with k.loop(0, count) as p:
                to.offset(p * pack.width).store(row.offset(p * apart).load())
