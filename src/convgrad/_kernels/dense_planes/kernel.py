"""The kernel of `dense_planes`: few output channels, broadcast, times vectors of pixels.

::

    item = (image, group, block of places, range of panels)
      stage the block's part of the source                           # `stage`: zeros beside the image
      direct:  for chunk of panels, tile of the block, panel of the chunk:
                 sums -> result
      else:    for panel:
                 for phase of the target, tile of the block:
                   sums -> workspace
                 workspace -> result                                 # `lay`: rows without the places between them

Forward and input gradient are the same sum: source and target change places and the filter is packed transposed.

Zeros beside the image must add nothing even to an infinite weight. So the filter's packing leaves a flag, and where it
is set cells beside the image are masked out product by product, which takes twice as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from ..._compiler.codegen import Bool, Int, Pointer, Vector
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from .frame import Frame, PlaceBlock
from .lay import RowWriter
from .stage import Stager
from .tile import Tiles
from .words import PlanesKernel


def emit(kernel: PlanesKernel, target: Target) -> KernelSource:
    """Write the kernel: words are source, packed filter, result, bias, table, then `WORDS`."""
    return _Writer(kernel, target).write()


class _Writer:
    """Writes one kernel; methods go from the outermost loop to the tiles."""

    def __init__(self, kernel: PlanesKernel, target: Target) -> None:
        self.kernel = kernel
        self.frame = frame = Frame(kernel, target)
        self.k, self.word, self.lanes = frame.k, frame.word, frame.lanes
        self.stager, self.tiles, self.layer = Stager(frame), Tiles(frame), RowWriter(frame)

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        with k.loop(k.begin, k.end) as item:
            block = self.frame.block(item // word["panel_ranges"])
            first = item % word["panel_ranges"] * word["panel_range"]
            last = k.min(first + word["panel_range"], word["panels"])
            self._stage(block)
            if self.kernel.guarded:
                self._either(block, first, last)
            else:
                self._panels(block, first, last, masked=False)
        return k.finish()

    def _stage(self, block: PlaceBlock) -> None:
        """Copy what a block reads."""
        word = self.word
        plane = (block.image * word["groups"] + block.group) * word["depth"]
        image = self.frame.source.offset(plane * word["source_plane"])
        if self.kernel.tiled:
            self.stager.tiles(block, image.offset(block.col))
        else:
            self.stager.channels(block, image)

    def _either(self, block: PlaceBlock, first: Int, last: Int) -> None:
        """Compute some panels, the long way if one of their weights is not finite."""
        with self.k.branch(self._finite(block, first, last)) as ways:
            with ways.then():
                self._panels(block, first, last, masked=False)
            with ways.otherwise():
                self.stager.validity(block)
                self._panels(block, first, last, masked=True)

    def _finite(self, block: PlaceBlock, first: Int, last: Int) -> Bool:
        """Tell whether all weights of some panels are finite."""
        k, word = self.k, self.word
        flags = self.frame.packed.offset(word["flags_at"] + block.group * word["panels"])
        total = k.variable(k.zeros(self.frame.number, 1))
        with k.loop(first, last, carry=[total], nonempty=True) as panel:
            total.value = total.value + flags.offset(panel).load()
        return Bool(k.emitter, total.value.compare("oeq", "eq", 0).text)

    def _panels(self, block: PlaceBlock, first: Int, last: Int, masked: bool) -> None:
        k, word, kernel = self.k, self.word, self.kernel
        weights = self.frame.packed.offset(block.group * word["group_size"])
        if not kernel.direct:
            for height, panel in self._each(first, last):
                with panel as place:
                    self._phases(block, height, place, weights, masked)
            return
        chunks = (last - first + word["chunk"] - 1) // word["chunk"]
        with k.loop(0, chunks, nonempty=True) as chunk, self._tiles(block) as vectors:
            begin = first + chunk * word["chunk"]
            end = k.min(begin + word["chunk"], last)
            if kernel.segmented:
                self._segments(block, begin, end, weights, vectors, masked)
            else:
                for height, panel in self._each(begin, end):
                    with panel as place:
                        self._direct(block, height, place, weights, vectors, masked)

    def _each(self, first: Int, last: Int) -> Iterator[tuple[int, AbstractContextManager[Int]]]:
        """Yield a loop over the panels of each height: it gives the channel that a panel would start with."""
        k, kernel = self.k, self.kernel
        if not kernel.low:
            yield kernel.high, self._loop(first, last, k.i64(0), kernel.high)
            return
        high = self.word["high_panels"]
        yield kernel.high, self._loop(first, k.min(last, high), k.i64(0), kernel.high)
        over = high * (kernel.high - kernel.low)
        yield kernel.low, self._loop(k.max(first, high), last, over, kernel.low)

    @contextmanager
    def _loop(self, first: Int, last: Int, over: Int, height: int) -> Iterator[Int]:
        with self.k.loop(first, last) as panel:
            yield panel * height + over

    @contextmanager
    def _tiles(self, block: PlaceBlock) -> Iterator[list[_Vector]]:
        """Loop over the tiles of a block; its last tile may have one of its vectors several times."""
        if self.kernel.direct and not self.kernel.tiled:
            with self._tiles_of_rows(block) as found:
                yield found
            return
        k, frame, lanes, vectors = self.k, self.frame, self.lanes, self.kernel.vectors
        last = block.count - 1
        if self.kernel.tiled:
            # There is a gap between tiles: those a multiple of 4 KB apart would share a set of the first cache.
            size = (self.word["depth"] + 1) * lanes
            whole = last // vectors * vectors
            limits = whole * size + (last - whole) * lanes, frame.column(block, last)
            starts = k.i64(0), frame.column(block, k.i64(0))
        else:
            size, limits, starts = k.i64(lanes), (last * lanes,) * 2, (k.i64(0),) * 2
        with k.loop(0, block.count, vectors, nonempty=True) as number:
            # Places only grow, so the last vector's own limit them: fewer instructions than to limit the numbers.
            corner = number * size + starts[0], number * lanes + starts[1]
            yield [
                _Vector(
                    *(
                        k.min(at + v * lanes, limit)
                        for at, limit in zip(corner, limits, strict=True)
                    )
                )
                for v in range(vectors)
            ]

    @contextmanager
    def _tiles_of_rows(self, block: PlaceBlock) -> Iterator[list[_Vector]]:
        """Loop over the tiles of a block whose vectors start anew in each row."""
        k, word = self.k, self.word
        # The next vector's row and its number in the row are carried along: a division per tile takes longer.
        row, col = k.variable(k.i64(0)), k.variable(k.i64(0))
        vectors = self.kernel.vectors
        with k.loop(0, block.count, vectors, carry=[row, col], nonempty=True) as number:
            found = []
            for v in range(vectors):
                place = self.frame.column(block, col.value)
                staged = row.value * word["staged_cols"] + place
                found.append(_Vector(staged, row.value * word["target_cols"] + place))
                following = col.value + 1
                turns, more = following.equals(block.in_row), number + (v + 1) < block.count
                col.value = k.select(more, k.select(turns, k.i64(0), following), col.value)
                row.value = k.select(more & turns, row.value + 1, row.value)
            yield found

    def _segments(
        self,
        block: PlaceBlock,
        first: Int,
        last: Int,
        weights: Pointer,
        vectors: list[_Vector],
        masked: bool,
    ) -> None:
        """Compute a tile of some panels, segment by segment of the channels: a segment stays in the first cache."""
        k, word, frame = self.k, self.word, self.frame
        size = self.kernel.vectors * self.lanes
        sizes = word["depth"] * word["taps"]
        places = [each.staged for each in vectors]
        # Totals lie by the channel that a panel would start with, behind that of the chunk's first panel.
        start = first * self.kernel.high
        if self.kernel.low:
            over = word["high_panels"] * (self.kernel.high - self.kernel.low)
            start = k.min(start, first * self.kernel.low + over)

        def rooms(place: Int) -> tuple[Pointer, Pointer]:
            totals = frame.pixels.offset((place - start) * size)
            return totals, totals.offset(word["chunk"] * (self.kernel.high * size))

        with k.loop(0, word["segments"], nonempty=True) as number:
            begin = number * word["segment"]
            blocks = (begin, k.min(begin + word["segment"], word["contract_blocks"]))
            for height, panel in self._each(first, last):
                with panel as place:
                    here = weights.offset(place * sizes)
                    self.tiles.segment(places, height, here, blocks, rooms(place), masked)
        for height, panel in self._each(first, last):
            with panel as place:
                there = self._there(block, height, place, vectors)
                sums = self.tiles.end_segments(height, rooms(place))
                added = self._last(block, height, place)
                for each, value, more in zip(there, sums, added, strict=True):
                    each.store(value + more)

    def _there(
        self, block: PlaceBlock, height: int, place: Int, vectors: list[_Vector]
    ) -> list[Pointer]:
        """Return where a tile belongs, vector by vector."""
        word = self.word
        channel = self._channel(block, height, place)
        plane = (block.image * word["groups"] * word["width"] + channel) * word["target_plane"]
        corner = self.frame.result.offset(plane + block.row * word["target_cols"] + block.col)
        places = [corner.offset(vector.target) for vector in vectors]
        return [each.offset(word["target_plane"] * o) for o in range(height) for each in places]

    def _channel(self, block: PlaceBlock, height: int, place: Int) -> Int:
        """Return the first channel of a panel; the last panel is moved back to end at the group's last one."""
        width = self.word["width"]
        return block.group * width + self.k.min(place, width - height)

    def _last(self, block: PlaceBlock, height: int, place: Int) -> list[Vector]:
        """Return what is added to the finished sums of a panel: its bias, or +0. A sum may be -0, a result not."""
        vectors, zero = self.kernel.vectors, self.k.zeros(self.frame.number, self.lanes)
        if not self.frame.bias:
            return [zero] * (height * vectors)
        here = self.frame.bias.offset(self._channel(block, height, place))
        added = [here.offset(o).broadcast(self.lanes) + zero for o in range(height)]
        return [more for more in added for _ in range(vectors)]

    def _direct(
        self,
        block: PlaceBlock,
        height: int,
        place: Int,
        weights: Pointer,
        vectors: list[_Vector],
        masked: bool,
    ) -> None:
        """Compute a tile and store it where it belongs."""
        k, word = self.k, self.word
        there = self._there(block, height, place, vectors)
        if self.kernel.prefetch:
            for each in there:
                each.prefetch(write=True)
        panel = weights.offset(place * word["depth"] * word["taps"])
        taps = (k.i64(0), word["taps"])
        places_read = [each.staged for each in vectors]
        sums = self.tiles.sums(places_read, height, panel, taps, masked)
        added = self._last(block, height, place)
        for each, value, more in zip(there, sums, added, strict=True):
            each.store(value + more)

    def _phases(
        self, block: PlaceBlock, height: int, place: Int, weights: Pointer, masked: bool
    ) -> None:
        """Compute all phases of a panel into the workspace, and lay them down."""
        k, word, frame = self.k, self.word, self.frame
        panel = weights.offset(place * word["depth"] * word["taps"])
        size = self.layer.size()
        phases = word["phases_down"] * word["phases_along"]
        with k.loop(0, phases, nonempty=True) as phase:
            bounds = frame.table.offset(word["phases_at"] + phase)
            taps = (bounds.load_int(), bounds.offset(1).load_int())
            pixels = frame.pixels.offset(phase * size)
            with self._tiles(block) as vectors:
                places = [each.staged for each in vectors]
                sums = self.tiles.sums(places, height, panel, taps, masked)
                added = self._last(block, height, place)
                for i, (value, more) in enumerate(zip(sums, added, strict=True)):
                    o, v = divmod(i, len(vectors))
                    there = pixels.offset(phases * size * o + vectors[v].target)
                    there.store(value + more)
        channel = self._channel(block, height, place)
        plane = block.image * word["groups"] * word["width"] + channel
        self.layer.write(block, height, plane)


class _Vector(NamedTuple):
    """A vector of pixels: where it starts among the staged cells, and among the block's own."""

    staged: Int
    target: Int
