"""The kernel that adds partial sums: filter gradients end with it.

``result[i] = partial[0][i] + partial[1][i] + ...``, in this order, rounded once. Which partial sums there are depends
on the problem alone, so the bits do not depend on who computed them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..._base.dtypes import by_short
from ..._compiler.codegen import KernelBuilder, arithmetic, element, symbol
from ..._compiler.kernel import KernelSource, added_field
from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..plan import Operand, Step
from .words import arguments, in_order

_BLOCK = 1024
"""Elements of one item."""

WORDS = ("elements", "parts")
"""The run-time words behind the two pointers: partial, result."""
PART_WORDS = ("pitch", "start")
"""Behind them where rows are longer than what is wanted of them: elements from row to row, and before the first one."""


@dataclass(frozen=True)
class ReduceKernel:
    """Adds rows of partial sums into a result."""

    dtype: str
    """Of the result."""
    partial: str
    """Of the partial sums."""
    part: bool = added_field(False)
    """Whether only a part of each row is added up: the gradient of a bias lies beside that of the filter."""


def partial_type(dtype: str) -> str:
    """Return the type long sums are kept in: wider than the result, so that their length does not show in it."""
    return by_short(dtype).partial


def affordable_shares(problem: Problem, wide: int) -> int:
    """Return how many rows of partial sums to write and read again for at most 6% of what the images weigh.

    Large windows weigh more than their images but take long: 6% of that time is a byte per 128 operations or so.
    """
    images = prod(problem.input_shape) + prod(problem.output_shape)
    row = 2 * prod(problem.filter_shape) * wide
    weight = 6 * images * problem.dtype.itemsize // 100
    return max(1, weight // row, problem.flops // (128 * row))


def balanced_shares(chunks: int, most: int) -> int:
    """Return the fewest shares of each of some chunks, at most `most`, that keep most threads busy: see `balance`.

    Where none does, those that come nearest: 18 items are two rounds of which the second has two.

    >>> [balanced_shares(chunks, 16) for chunks in (1, 3, 6, 9, 16, 18)], balanced_shares(2, 3)
    ([13, 5, 4, 3, 1, 2], 3)
    """
    tried = range(1, max(1, min(most, 4 * -(-16 // chunks))) + 1)
    return max(tried, key=lambda shares: (balance(shares * chunks), -shares))


def balance(items: int) -> float:
    """Rate a number of items: 1 if 8 threads are at least 6.5 times as fast as one, and 16 at least 12 times.

    It is rated for these, however many threads there are: the bits depend on the shares.
    """
    return min(1.0, items / -(-items // 8) / 6.5, items / -(-items // 16) / 12)


def step(dtype: str, elements: int, parts: int, partial: str | None = None) -> Step:
    """Return the launch that adds `parts` rows of `elements` partial sums."""
    items = -(-elements // _BLOCK)
    kernel = ReduceKernel(dtype, partial or arithmetic(element(dtype)).short)
    words = in_order(WORDS, elements=elements, parts=parts)
    return Step(kernel, ("partial", "result"), words, items, grain=4)


def part_step(
    dtype: str, elements: int, parts: int, partial: str, *, pitch: int, start: int, to: Operand
) -> Step:
    """Return the launch that adds a part of `parts` rows, `pitch` apart, from element `start` on."""
    items = -(-elements // _BLOCK)
    kernel = ReduceKernel(dtype, partial, part=True)
    words = in_order(
        (*WORDS, *PART_WORDS), elements=elements, parts=parts, pitch=pitch, start=start
    )
    return Step(kernel, ("partial", to), words, items, grain=4)


def emit(kernel: ReduceKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    k = KernelBuilder(symbol("reduce", kernel.dtype, str(_BLOCK), target, kernel), target)
    storage, wide = element(kernel.dtype), element(kernel.partial)
    number = arithmetic(storage)
    lanes = k.lanes(number)
    partial, result = k.arg_pointer(0, wide), k.arg_pointer(1, storage)
    word = arguments(k, 2, (*WORDS, *PART_WORDS) if kernel.part else WORDS)
    elements, parts = word["elements"], word["parts"]
    pitch = word["pitch"] if kernel.part else elements
    if kernel.part:
        partial = partial.offset(word["start"])
    with k.loop(k.begin, k.end) as item:
        start = item * _BLOCK
        stop = k.min(start + _BLOCK, elements)
        with k.loop(start, stop, lanes) as i:
            mask = k.first_lanes(lanes, stop - i)
            total = k.variable(partial.offset(i).load(lanes, mask=mask))
            with k.loop(1, parts, carry=[total]) as part:
                row = partial.offset(part * pitch + i)
                total.value = total.value + row.load(lanes, mask=mask)
            rounded = total.value if wide is number else total.value.cast("fptrunc", number)
            result.offset(i).store(rounded, mask=mask)
    return k.finish()
