"""Lists of pixels, written by the kernel into its own scratch: where the two halves of each pair of a tap lie.

A list is the product of a row of steps along the rows and one along the columns, so the table holds these: for each tap
of an axis the first output that meets a cell, how many do, where the first of those cells lies in the copy and how far
apart they are. A run of the contract is a box of outputs, and has a list for each tap. Lists of one shape of chunk are
written when the first chunk of that shape comes, about a nanosecond a pair, and serve all tiles of all chunks that
follow. As tables they took 15 times the memory of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import I64, Int, KernelBuilder, Pointer
from ..shared.words import load_row
from .chunk import Shape
from .words import LISTED, TAP, UNROLL


@dataclass(frozen=True)
class Lists:
    """Writes lists into a kernel."""

    k: KernelBuilder
    table: Pointer
    word: dict[str, Int]
    ends_: Pointer
    """How many pixels of a chunk lie in its runs up to each one."""
    index: Pointer
    """Where the list of each run of each tap starts, and the last one ends: in pairs."""
    pairs: Pointer
    x_width: int
    """Channels of a pixel in the copy of x."""
    y_width: int

    def write(self, shape: Shape, first: Int, end: Int) -> None:
        """Write the lists of some rows of taps; each is padded with pairs of zero pixels."""
        k, word = self.k, self.word
        at = k.variable(k.i64(0))
        cols = word["tap_cols"]
        taps = self.table.offset(word["taps_at"])
        number = k.variable(k.i64(0))
        runs = runs_of(k, word, shape)
        carry = [at, number]
        with (
            k.loop(first, end, carry=carry, nonempty=True) as r,
            k.loop(0, cols, carry=carry, nonempty=True) as s,
        ):
            row = load_row(taps.offset((shape.rows["taps"] + r) * len(TAP)), TAP)
            col = load_row(taps.offset((shape.cols["taps"] + s) * len(TAP)), TAP)
            with (
                k.loop(0, runs.images, carry=carry, nonempty=True) as a,
                k.loop(0, runs.rows, carry=carry, nonempty=True) as b,
                k.loop(0, runs.cols, carry=carry, nonempty=True) as c,
            ):
                self.index.offset(number.value).store_int(at.value)
                number.value = number.value + 1
                images = _part(k, a, word["run_images"], k.i64(0), shape.images)
                rows = _part(k, b, word["run_rows"], row["first"], row["count"])
                first, last = _part(k, c, word["run_cols"], col["first"], col["count"])
                count = k.max(last - first, 0)
                with (
                    k.loop(*images, carry=[at]) as image,
                    k.loop(*rows, carry=[at]) as i,
                ):
                    x = (row["start"] + (i - row["first"]) * row["step"]) * shape.cols["cells"]
                    x = x + col["start"] + (first - col["first"]) * col["step"]
                    y = i * shape.cols["count"] + first
                    start = self._pair(image * shape.x_pixels + x, image * shape.y_pixels + y)
                    step = self._pair(col["step"], k.i64(1))
                    self._steps(at.value, count, start, step)
                    at.value = at.value + count
                end = (at.value + (LISTED - 1)) // LISTED * LISTED
                zeros = self._pair(word["x_zero"], word["y_zero"])
                self._steps(at.value, end - at.value, zeros, k.i64(0))
                at.value = end
        self.index.offset(number.value).store_int(at.value)

    def ends(self, shape: Shape) -> None:
        """Write where each run ends if the pixels of a chunk are counted in order."""
        k, word = self.k, self.word
        runs = runs_of(k, word, shape)
        at, number = k.variable(k.i64(0)), k.variable(k.i64(0))
        with (
            k.loop(0, runs.images, carry=[at, number], nonempty=True) as a,
            k.loop(0, runs.rows, carry=[at, number], nonempty=True) as b,
            k.loop(0, runs.cols, carry=[at, number], nonempty=True) as c,
        ):
            sizes = [
                _part(k, n, word[f"run_{name}"], k.i64(0), total)
                for n, name, total in (
                    (a, "images", shape.images),
                    (b, "rows", shape.rows["count"]),
                    (c, "cols", shape.cols["count"]),
                )
            ]
            count = k.i64(1)
            for begin, end in sizes:
                count = count * (end - begin)
            at.value = at.value + count
            self.ends_.offset(number.value).store_int(at.value)
            number.value = number.value + 1

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


@dataclass(frozen=True)
class Runs:
    """How many runs of images, of rows and of columns a chunk has."""

    images: Int
    rows: Int
    cols: Int

    @property
    def all(self) -> Int:
        return self.images * self.rows * self.cols


def runs_of(k: KernelBuilder, word: dict[str, Int], shape: Shape) -> Runs:
    """Count the runs of a chunk: boxes of pixels, wherever they lie."""

    def count(total: Int, size: Int) -> Int:
        return (total + (size - 1)) // size

    return Runs(
        count(shape.images, word["run_images"]),
        count(shape.rows["count"], word["run_rows"]),
        count(shape.cols["count"], word["run_cols"]),
    )


def _part(k: KernelBuilder, at: Int, size: Int, first: Int, count: Int) -> tuple[Int, Int]:
    """Return which of some cells belong to a run."""
    begin = at * size
    return k.max(begin, first), k.min(begin + size, first + count)


def index_room(taps: int, runs: int) -> int:
    """Return the words of the index, in whole lines."""
    return -(-(taps * runs + 1) // 8) * 8


WORD = I64
"""What both are made of."""
