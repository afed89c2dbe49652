"""Dilated NCHW: rows of tiles of all column phases are staged as pixels, and written back as planes.

A row of tiles covers neighbouring columns of the image, whatever the dilation, so planes are read as they lie, once for
all phases, and tiles pick their columns a dilation apart. Columns beside the image are not staged: tiles read zeros.

Written columns need more care. A block may begin or end in the middle of a period of ``outputs * dilation`` columns,
and those between its own belong to another block, that is, to another thread. So the first and the last period go by
runs of columns, the whole ones between them at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import F32, Int, KernelBuilder, Pointer
from ..shared.stage import transposed_copy
from ..shared.winograd_scheme import Scheme
from ..shared.winograd_tiles import TileRow
from .frame import Frame


@dataclass(frozen=True)
class _Span:
    """Neighbouring columns of an image that exist."""

    begin: Int
    end: Int

    @property
    def width(self) -> Int:
        return self.end - self.begin


class Staged:
    """The source rows of a row of tiles as [row][column][channel], `row_pitch` elements a pixel."""

    def __init__(self, k: KernelBuilder, frame: Frame, scheme: Scheme, zeros: Pointer) -> None:
        self.k = k
        self.frame = frame
        self.word = frame.word
        self.scheme = scheme
        self.zeros = zeros.as_element(F32)
        self.stage = frame.scratch("stage_at")

    def fill(self, source: Pointer, tiles: TileRow) -> None:
        """Copy what exists of the rows."""
        k, word, walk = self.k, self.word, self.frame.tiles
        span, top = self._span(tiles), walk.top(tiles.row) - word["before_rows"]
        pitch = word["row_pitch"]
        with k.loop(0, self.scheme.points, nonempty=True) as i:
            row = top + i * walk.down
            count = k.select(row.inside(word["source_rows"]), span.width, k.i64(0))
            pixel = walk.address(source, "source", tiles.image, row, span.begin)
            line = self.stage.offset(i * span.width * pitch)
            plane = word["source_channel"]
            transposed_copy(k, pixel, line, word["sums"], count, plane, pitch)

    def pixels(self, tiles: TileRow, index: Int) -> list[list[Pointer]]:
        """Return where the pixels of a tile are."""
        k, word, walk = self.k, self.word, self.frame.tiles
        span, pitch = self._span(tiles), word["row_pitch"]
        top = walk.top(tiles.row) - word["before_rows"]
        left = walk.left(tiles.col + index) - word["before_cols"]
        points = range(self.scheme.points)
        columns = [left + walk.right * j for j in points]
        exists = [column.inside(word["source_cols"]) for column in columns]
        found = []
        for i in points:
            there = (top + walk.down * i).inside(word["source_rows"])
            line = self.stage.offset(span.width * pitch * i)
            places = [line.offset((column - span.begin) * pitch) for column in columns]
            found.append([k.select(there & exists[j], places[j], self.zeros) for j in points])
        return found

    def _span(self, tiles: TileRow) -> _Span:
        k, word, step = self.k, self.word, self.frame.tiles.right
        first, last = tiles.col // step, (tiles.col + tiles.count - 1) // step
        begin = first * self.scheme.outputs * step - word["before_cols"]
        end = (last * self.scheme.outputs + self.scheme.points) * step - word["before_cols"]
        begin = k.min(k.max(begin, 0), word["source_cols"])
        return _Span(begin, k.max(begin, k.min(end, word["source_cols"])))


class Turned:
    """A panel's results of a row of tiles as [row][column][channel], on their way to planes."""

    def __init__(self, k: KernelBuilder, frame: Frame, scheme: Scheme, width: int) -> None:
        self.k = k
        self.frame = frame
        self.word = frame.word
        self.scheme = scheme
        self.width = width
        """Channels of a panel."""
        self.pixels = frame.scratch("pixels_at")

    def places(self, tiles: TileRow, index: Int, spare: Pointer) -> list[list[Pointer]]:
        """Return where the pixels of a tile go first; columns behind the image go to `spare`."""
        k, word, walk = self.k, self.word, self.frame.tiles
        span, left = self._span(tiles), walk.left(tiles.col + index)
        size = range(self.scheme.outputs)
        places = []
        for a in size:
            start = self.pixels.offset((span.width * a + (left - span.begin)) * self.width)
            line = [start.offset(walk.right * (b * self.width)) for b in size]
            exists = [left + walk.right * b < word["target_cols"] for b in size]
            places.append([k.select(exists[b], line[b], spare) if b else line[b] for b in size])
        return places

    def write(self, target: Pointer, tiles: TileRow) -> None:
        """Copy the columns of these tiles, and no others, to planes."""
        k, word, walk = self.k, self.word, self.frame.tiles
        span, top, size = self._span(tiles), walk.top(tiles.row), self.scheme.outputs
        plane = word["target_channel"]
        with k.loop(0, size, nonempty=True) as a, k.loop(0, 2 * size + 1, nonempty=True) as run:
            row = top + a * walk.down
            begin, end = self._run(tiles, run)
            end = k.select(row < word["target_rows"], k.min(end, span.width), begin)
            source = self.pixels.offset((span.width * a + begin) * self.width)
            place = walk.address(target, "target", tiles.image, row, span.begin + begin)
            count = k.max(end - begin, 0)
            transposed_copy(k, source, place, count, self.width, self.width, plane)

    def _run(self, tiles: TileRow, run: Int) -> tuple[Int, Int]:
        """Return the columns of a run: of the first period if it is cut, all whole periods, the last if it is cut."""
        k, step, size = self.k, self.frame.tiles.right, self.scheme.outputs
        final = tiles.col + tiles.count - 1
        periods = final // step - tiles.col // step + 1
        start, stop = tiles.col % step, final % step + 1
        cut, one = start.differs(0), periods.equals(1)
        inside = stop.equals(step)
        nothing = k.i64(0)
        head = k.select(cut, k.select(one, stop, k.i64(step)), start)
        tail = k.select(inside | (cut & one), nothing, stop)
        whole_begin = k.select(cut, k.i64(step * size), nothing)
        whole_end = k.select(inside, periods, periods - 1) * size * step
        first, middle = run < size, run.equals(size)
        last_begin = ((periods - 1) * size + (run - (size + 1))) * step
        begin = k.select(first, run * step + start, k.select(middle, whole_begin, last_begin))
        end = k.select(first, run * step + head, k.select(middle, whole_end, last_begin + tail))
        return begin, end

    def _span(self, tiles: TileRow) -> _Span:
        k, word, step = self.k, self.word, self.frame.tiles.right
        first, last = tiles.col // step, (tiles.col + tiles.count - 1) // step
        period = self.scheme.outputs * step
        return _Span(first * period, k.min((last + 1) * period, word["target_cols"]))
