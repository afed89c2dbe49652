"""How a kernel goes through the pixels of a filter gradient: units, their runs, and the tree above them.

The order is that of `_problem.sums.pixels`. An item of work is a slice of a power of two of units, which is a node of
one level of the tree; slices do not show in the bits, so they may follow what threads and memory want.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ..._compiler.codegen import Bool, Int, KernelBuilder, Pointer, Variable, Vector
from ..._problem.convolution import Problem
from ..._problem.sums.pixels import PixelContract
from .reduce import affordable_shares, carries, finish_tree

WORDS = (
    "images",
    "unit_images",
    "unit_rows",
    "unit_cols",
    "unit_blocks",  # units of the rows of an image, of a row below
    "unit_parts",
    "run_images",
    "run_rows",
    "run_cols",
    "run_parts",  # of a row of a unit
    "slice_units",  # a power of two
)
"""The run-time words that `units` fills in; a kernel has others, `units` among them: how many there are."""

Range = tuple[Int, Int]
_UNROLLED = 8
"""Vectors of sums that go from a run to its unit at a time: there are 49 taps of them to a run of 28 to 50 pixels."""


def words(contract: PixelContract, slice_units: int) -> dict[str, int]:
    """Return the words of a problem."""
    out, unit, run = contract.out, contract.unit, contract.run
    return {
        "images": out.images,
        "unit_images": unit.images,
        "unit_rows": unit.rows,
        "unit_cols": unit.cols,
        "unit_blocks": -(-out.rows // unit.rows),
        "unit_parts": -(-out.cols // unit.cols),
        "run_images": run.images,
        "run_rows": run.rows,
        "run_cols": run.cols,
        "run_parts": -(-unit.cols // run.cols),
        "slice_units": slice_units,
    }


def levels(slice_units: int) -> int:
    """Return how many sums wait in the tree of a slice, at most."""
    return (slice_units - 1).bit_length()


def slice_size(problem: Problem, units: int, chunks: int, wide: int) -> int:
    """Return the units of a slice, where each of some chunks of channels is cut into slices of their own."""
    most = affordable_shares(problem, wide)
    sizes = [1 << j for j in range(max(1, units).bit_length() + 1)]
    few = [size for size in sizes if -(-units // size) <= most] or sizes[-1:]
    return max(few, key=lambda size: (_balance(units, chunks, size), size))


def _balance(units: int, chunks: int, size: int) -> float:
    """Rate slices: 1 if 8 threads are at least 6 times as fast as one, and 16 at least 10 times."""
    items = chunks * -(-units // size)
    work = units * chunks / min(size, max(1, units))
    return min(1.0, work / -(-items // 8) / 6, work / -(-items // 16) / 10)


@contextmanager
def runs(
    k: KernelBuilder,
    word: dict[str, Int],
    ends: tuple[Int, Int],
    unit: Int,
    carry: Iterable[Variable[Int]] = (),
) -> Iterator[tuple[Range, Range, Range]]:
    """Go through the runs of a unit: ranges of images, rows and columns; `ends` are all rows and columns."""
    carry = list(carry)
    part, rest = unit % word["unit_parts"], unit // word["unit_parts"]
    block, image = rest % word["unit_blocks"], rest // word["unit_blocks"]
    names = ("images", "rows", "cols")
    bounds = []
    for name, at, end in zip(names, (image, block, part), (word["images"], *ends), strict=True):
        size = word[f"unit_{name}"]
        bounds.append((at * size, k.min((at + 1) * size, end)))
    images, rows, cols = bounds
    with (
        _pieces(k, images, word["run_images"], carry) as some_images,
        _pieces(k, rows, word["run_rows"], carry) as some_rows,
        _pieces(k, cols, word["run_cols"], carry) as some_cols,
    ):
        yield some_images, some_rows, some_cols


@contextmanager
def _pieces(k: KernelBuilder, of: Range, size: Int, carry: list[Variable[Int]]) -> Iterator[Range]:
    """Go through a range in pieces of a size that is known at run time."""
    begin, end = of
    with k.loop(0, (end - begin + (size - 1)) // size, carry=carry, nonempty=True) as i:
        start = begin + i * size
        yield start, k.min(start + size, end)


def add_run(k: KernelBuilder, bank: Pointer, totals: Pointer, size: Int, zero: Vector) -> None:
    """Add the sums of a run to those of its unit, and clear them for the next one."""
    lanes = zero.lanes
    whole = size - size % (lanes * _UNROLLED)
    for begin, end, together in ((k.i64(0), whole, _UNROLLED), (whole, size, 1)):
        with k.loop(begin, end, lanes * together) as i:
            runs, sums = bank.offset(i), totals.offset(i)
            for at in range(0, together * lanes, lanes):
                here, there = runs.offset(at), sums.offset(at)
                run = here.load(lanes, aligned=True)
                there.store(there.load(lanes, aligned=True) + run, aligned=True)
                here.store(zero, aligned=True)


def end_unit(
    k: KernelBuilder,
    number: Int,
    last: Bool,
    totals: Pointer,
    pitch: Int,
    size: Int,
    zero: Vector,
    leave: Callable[[Callable[[Int], Vector]], None],
) -> None:
    """Add the sums of a unit to the tree of its slice, whose levels lie behind them, `pitch` apart.

    Behind the last unit `leave` is given a function that returns the sums of the slice.
    """
    stack, lanes = totals.offset(pitch), zero.lanes
    higher = carries(k, number)

    def finished(i: Int) -> Vector:
        total = k.variable(totals.offset(i).load(lanes, aligned=True))
        finish_tree(k, total, number, stack.offset(i), pitch)
        return total.value

    with k.branch(last) as ends:
        with ends.then():
            leave(finished)
        with ends.otherwise(), k.loop(0, size, lanes, nonempty=True) as i:
            there = totals.offset(i)
            total = k.variable(there.load(lanes, aligned=True))
            with k.loop(0, higher, carry=[total]) as level:
                lower = stack.offset(level * pitch + i).load(lanes, aligned=True)
                total.value = lower + total.value
            stack.offset(higher * pitch + i).store(total.value, aligned=True)
            there.store(zero, aligned=True)
