"""Lists of pixels, written by the kernel into its own scratch: where the two halves of each pair of a tap lie.

A list is the product of a row of steps along the rows and one along the columns, so the table holds these: for each tap
of an axis the first output that meets a cell, how many do, where the first of those cells lies in the copy and how far
apart they are. Lists of one shape of chunk are written when the first chunk of that shape comes, about a nanosecond a
pair, and serve all tiles of all chunks that follow. As tables they took 15 times the memory of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import I64, Int, KernelBuilder, Pointer
from ..shared.words import load_row
from .chunk import Shape
from .words import TAP, UNROLL


@dataclass(frozen=True)
class Lists:
    """Writes lists into a kernel."""

    k: KernelBuilder
    table: Pointer
    word: dict[str, Int]
    index: Pointer
    """Where the list of each tap starts, and the last one ends: in pairs."""
    pairs: Pointer
    x_width: int
    """Channels of a pixel in the copy of x."""
    y_width: int

    def write(self, shape: Shape) -> None:
        """Write the lists of all taps; each is padded with pairs of zero pixels."""
        k, word = self.k, self.word
        at = k.variable(k.i64(0))
        cols = word["tap_cols"]
        taps = self.table.offset(word["taps_at"])
        with k.loop(0, word["tap_rows"], carry=[at], nonempty=True) as r:
            row = load_row(taps.offset((shape.rows["taps"] + r) * len(TAP)), TAP)
            with k.loop(0, cols, carry=[at], nonempty=True) as s:
                col = load_row(taps.offset((shape.cols["taps"] + s) * len(TAP)), TAP)
                self.index.offset(r * cols + s).store_int(at.value)
                with (
                    k.loop(0, shape.images, carry=[at]) as image,
                    k.loop(0, row["count"], carry=[at]) as i,
                ):
                    x = (row["start"] + i * row["step"]) * shape.cols["cells"] + col["start"]
                    y = (row["first"] + i) * shape.cols["count"] + col["first"]
                    start = self._pair(image * shape.x_pixels + x, image * shape.y_pixels + y)
                    step = self._pair(col["step"], k.i64(1))
                    self._steps(at.value, col["count"], start, step)
                    at.value = at.value + col["count"]
                end = (at.value + (UNROLL - 1)) // UNROLL * UNROLL
                zeros = self._pair(word["x_zero"], word["y_zero"])
                self._steps(at.value, end - at.value, zeros, k.i64(0))
                at.value = end
        self.index.offset(word["taps"]).store_int(at.value)

    def _pair(self, x: Int, y: Int) -> Int:
        """Return two places as the one word that a list holds: x in its lower half."""
        return x * self.x_width + y * (self.y_width << 32)

    def _steps(self, at: Int, count: Int, start: Int, step: Int) -> None:
        k = self.k
        place = self.pairs.offset(at)
        pair = k.variable(start)
        steps = [step * i for i in range(UNROLL + 1)]
        whole = count - count % UNROLL
        with k.loop(0, whole, UNROLL, carry=[pair]) as i:
            for number, ahead in enumerate(steps[:-1]):
                place.offset(i + number).store_int(pair.value + ahead)
            pair.value = pair.value + steps[-1]
        with k.loop(whole, count, carry=[pair]) as i:
            place.offset(i).store_int(pair.value)
            pair.value = pair.value + step


def room(taps: int, pairs: int) -> int:
    """Return the words that the index and the lists take."""
    return index_room(taps) + pairs


def index_room(taps: int) -> int:
    """Return the words of the index, in whole lines."""
    return -(-(taps + 1) // 8) * 8


WORD = I64
"""What both are made of."""
