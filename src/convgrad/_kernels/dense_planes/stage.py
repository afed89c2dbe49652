"""Copying a block's part of the source: ``staged[k][phase down][phase along][row][column]``, zeros beside the image.

Columns a stride apart are brought together, so that the lanes of a vector are neighbouring pixels of the target.
"""

from __future__ import annotations

from ..._compiler.codegen import Int, Pointer, Vector
from .frame import Frame, PlaceBlock

_AHEAD = 6
"""Channels asked for ahead of the one being copied."""


class Stager:
    """Writes the code that stages a block."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.k, self.word, self.lanes = frame.k, frame.word, frame.lanes

    def channels(self, block: PlaceBlock, source: Pointer) -> None:
        """Stage all channels of the block's group; `source` is where the first of them starts."""
        self._stage(block, source, self.frame.staged, self.word["depth"])

    def tiles(self, block: PlaceBlock, source: Pointer) -> None:
        """Copy a block's pixels, from `source` on, in the order of its tiles: ``staged[tile][k][pixel]``."""
        k, word, lanes, vectors = self.k, self.word, self.lanes, self.frame.kernel.vectors
        tile = vectors * lanes
        size = (word["depth"] + 1) * tile
        whole = (block.count - 1) // vectors
        with k.loop(0, word["depth"], nonempty=True) as channel:
            plane = source.offset(channel * word["source_plane"])
            staged = self.frame.staged.offset(channel * tile)
            with k.loop(0, whole) as number:
                here, there = plane.offset(number * tile), staged.offset(number * size)
                here.offset(word["source_plane"] * _AHEAD).prefetch()
                for v in range(vectors):
                    there.offset(v * lanes).store(here.offset(v * lanes).load(lanes), aligned=True)
            # The last tile's vectors may overlap, and be fewer.
            with k.loop(whole * vectors, block.count, nonempty=True) as number:
                here = plane.offset(self.frame.column(block, number))
                place = whole * size + (number - whole * vectors) * lanes
                staged.offset(place).store(here.load(lanes))

    def validity(self, block: PlaceBlock) -> None:
        """Stage one channel of ones: what is 0 lies beside the image."""
        self._stage(block, None, self.frame.valid, self.k.i64(1))

    def _stage(
        self, block: PlaceBlock, source: Pointer | None, target: Pointer, channels: Int
    ) -> None:
        k, word, table = self.k, self.word, self.frame.table
        step_down, step_along = word["rows_step"], word["cols_step"]
        size = word["staged_rows"] * word["staged_cols"]
        used = word["staged_rows"] - word["block_rows"] + block.rows
        length = word["staged_cols"]
        top, left = block.row + word["rows_lowest"], block.col + word["cols_lowest"]
        with k.loop(0, word["cols_phases"], nonempty=True) as along:
            start = left * step_along + table.offset(word["cols_at"] + along).load_int()
            before, inside = self._inside(start, step_along, word["source_cols"], length)
            start = start + before * step_along
            with (
                k.loop(0, channels, nonempty=True) as channel,
                k.loop(0, word["rows_phases"], nonempty=True) as down,
            ):
                phase = table.offset(word["rows_at"] + down).load_int()
                plane = target.offset(
                    channel * word["staged_plane"] + (down * word["cols_phases"] + along) * size
                )
                with k.loop(0, used, nonempty=True) as i:
                    row = (top + i) * step_down + phase
                    there = plane.offset(i * length)
                    # A phase may have a row beside the image that no tap reads.
                    exists = k.select(row.inside(word["source_rows"]), inside, k.i64(0))
                    if self.frame.kernel.padded:
                        self._zeros(there, k.i64(0), before)
                        self._zeros(there, before + exists, length)
                    there = there.offset(before)
                    if source is None:
                        self._ones(there, exists)
                    else:
                        at = channel * word["source_plane"] + row * word["source_cols"] + start
                        self._copy(source.offset(at), there, exists)

    def _inside(self, start: Int, step: Int, size: Int, length: Int) -> tuple[Int, Int]:
        """Return how many of the cells from `start` on lie before the image, and how many then inside."""
        k = self.k
        before = k.min(k.max((step - 1 - start), 0) // step, length)
        behind = k.max(size - start + step - 1, 0) // step
        return before, k.max(k.min(behind, length) - before, 0)

    def _zeros(self, target: Pointer, start: Int, stop: Int) -> None:
        k, number = self.k, self.frame.number
        with k.loop(start, stop) as i:
            target.offset(i).store(k.zeros(number, 1))

    def _ones(self, target: Pointer, count: Int) -> None:
        k, number = self.k, self.frame.number
        with k.loop(0, count) as i:
            target.offset(i).store(k.constant(number, 1, 1))

    def _copy(self, source: Pointer, target: Pointer, count: Int) -> None:
        """Copy cells a step apart to neighbouring ones; the last vector overlaps the one before."""
        k, lanes, step = self.k, self.lanes, self.frame.kernel.step
        if not 0 < step <= lanes:
            self._one_by_one(source, target, count)
            return
        with k.branch(count >= lanes) as ways:
            with ways.then(), k.loop(0, count, lanes, nonempty=True) as number:
                i = k.min(number, count - lanes)
                target.offset(i).store(self._picked(source.offset(i * step), step))
            with ways.otherwise():
                self._one_by_one(source, target, count)

    def _one_by_one(self, source: Pointer, target: Pointer, count: Int) -> None:
        with self.k.loop(0, count) as i:
            target.offset(i).store(source.offset(i * self.word["cols_step"]).load())

    def _picked(self, source: Pointer, step: int) -> Vector:
        """Read a vector of cells a step apart, and nothing behind the last of them."""
        k, lanes = self.k, self.lanes
        if step == 1:
            return source.load(lanes)
        parts, each = [], lanes // step
        for part in range(step):
            at = part * lanes
            back = step - 1 if part == step - 1 else 0
            values = source.offset(at - back).load(lanes)
            parts.append((values, [back + i * step for i in range(each)]))
        joined = [
            k.shuffle(a, b, [*mine, *(lanes + lane for lane in others)])
            for (a, mine), (b, others) in zip(parts[::2], parts[1::2], strict=True)
        ]
        while len(joined) > 1:
            both = range(2 * joined[0].lanes)
            pairs = zip(joined[::2], joined[1::2], strict=True)
            joined = [k.shuffle(a, b, both) for a, b in pairs]
        return joined[0]
