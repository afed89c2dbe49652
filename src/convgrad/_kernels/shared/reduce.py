"""The kernels that add partial sums: filter gradients end with one of them.

``tree_step`` adds by the tree of `_problem/sums`: slices of 2^j units each are nodes of one of its levels, so their
number does not show in the bits. ``step`` adds ``partial[0][i] + partial[1][i] + ...`` in this order. Both round once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..._base.dtypes import by_short
from ..._compiler.codegen import (
    Int,
    IntLike,
    KernelBuilder,
    Mask,
    Pointer,
    Variable,
    Vector,
    arithmetic,
    element,
    symbol,
)
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

TREE_WORDS = ("elements", "slices", "pitch", "start")
"""The run-time words of the tree behind the two pointers: partial, result."""
_TREE_BLOCK = 256
"""Elements of one of its items: the sums of all levels stay in the first cache."""
TREE_LEVELS = 32
"""Of a tree, at most."""


@dataclass(frozen=True)
class ReduceKernel:
    """Adds rows of partial sums into a result."""

    dtype: str
    """Of the result."""
    partial: str
    """Of the partial sums."""
    part: bool = added_field(False)
    """Whether only a part of each row is added up: the gradient of a bias lies beside that of the filter."""


@dataclass(frozen=True)
class TreeKernel:
    """Adds slices of partial sums into a result as the nodes of a tree."""

    dtype: str
    """Of the result; sums have its compute type."""


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


def tree_step(
    dtype: str, size: int, count: int, *, pitch: int, start: int = 0, to: Operand = "result"
) -> Step:
    """Return the launch that adds `count` slices of `size` sums by the tree: `pitch` apart, from element `start` on."""
    items = -(-size // _TREE_BLOCK)
    words = in_order(TREE_WORDS, elements=size, slices=count, pitch=pitch, start=start)
    return Step(TreeKernel(dtype), ("partial", to), words, items, grain=max(1, 32 // count))


def emit_tree(kernel: TreeKernel, target: Target) -> KernelSource:
    """Write the kernel of a tree."""
    k = KernelBuilder(symbol("tree", kernel.dtype, str(_TREE_BLOCK), target, kernel), target)
    storage = element(kernel.dtype)
    number = arithmetic(storage)
    lanes = k.lanes(number)
    word = arguments(k, 2, TREE_WORDS)
    partial = k.arg_pointer(0, number).offset(word["start"])
    result = k.arg_pointer(1, storage)
    stack = k.scratch(number, TREE_LEVELS * _TREE_BLOCK)
    slices, pitch = word["slices"], word["pitch"]
    with k.loop(k.begin, k.end) as item:
        first = item * _TREE_BLOCK
        stop = k.min(first + _TREE_BLOCK, word["elements"])
        with k.loop(0, (slices + 3) // 4, nonempty=True) as four:
            left = slices - four * 4
            here = partial.offset(four * 4 * pitch)
            levels = carries(k, four)
            with k.loop(first, stop, lanes, nonempty=True) as i:
                mask = k.first_lanes(lanes, stop - i)
                total = k.variable(tree_of_four(k, here.offset(i), pitch, left, lanes, mask))
                place = stack.offset(i - first)
                with k.branch(left > 4) as more:
                    with more.then():
                        with k.loop(0, levels, carry=[total]) as level:
                            there = place.offset(level * _TREE_BLOCK)
                            total.value = there.load(lanes) + total.value
                        place.offset(levels * _TREE_BLOCK).store(total.value)
                    with more.otherwise():
                        finish_tree(k, total, four, place, _TREE_BLOCK)
                        result.offset(i).store(total.value, mask=mask)
    return k.finish()


def sum_of_tree(
    k: KernelBuilder, here: Pointer, pitch: Int, slices: Int, lanes: int, stack: Pointer
) -> Vector:
    """Return the sum of a vector of all slices, `pitch` apart; the stack has a vector for each level."""
    found = k.variable(k.zeros(stack.element, lanes))
    with k.loop(0, (slices + 3) // 4, carry=[found], nonempty=True) as four:
        left = slices - four * 4
        total = k.variable(tree_of_four(k, here.offset(four * 4 * pitch), pitch, left, lanes))
        with k.branch(left > 4) as more:
            with more.then():
                levels = carries(k, four)
                with k.loop(0, levels, carry=[total]) as level:
                    total.value = stack.offset(level * lanes).load(lanes) + total.value
                stack.offset(levels * lanes).store(total.value)
            with more.otherwise():
                finish_tree(k, total, four, stack, lanes)
        found.value = total.value
    return found.value


def carries(k: KernelBuilder, number: Int) -> Int:
    """Return how many nodes end with a leaf of a tree: the low ones of its number's bits, which has 32 at most.

    Where they are counted before a block of sums is added, `carries` sums of lower levels are added to each of them:
    ``sum = stack[0] + sum, sum = stack[1] + sum, ...``, and the last becomes ``stack[carries]``.
    """
    lowest = (number + 1) & (number ^ -1)
    found = k.i64(0)
    for power in range(5):
        bits = sum(1 << bit for bit in range(TREE_LEVELS) if bit >> power & 1)
        odd = (lowest & bits).differs(0)
        found = found + k.select(odd, k.i64(1 << power), k.i64(0))
    return found


def finish_tree(
    k: KernelBuilder, total: Variable[Vector], last: Int, stack: Pointer, pitch: IntLike
) -> None:
    """Add what waits on the stack to the last leaf's sum, and zero, so that no sum is -0; levels are `pitch` apart."""
    rest, place = k.variable(last), k.variable(stack)
    lanes = total.value.lanes
    with k.loop(0, _bits(k, last), carry=[total, rest, place]):
        with k.when((rest.value & 1).differs(0)):
            total.value = place.value.load(lanes) + total.value
        rest.value, place.value = rest.value >> 1, place.value.offset(pitch)
    total.value = total.value + k.zeros(total.value.element, lanes)


def _bits(k: KernelBuilder, number: Int) -> Int:
    """Return a number of levels that no bit of a number lies above."""
    few, some = k.i64(4), k.i64(12)
    return k.select(number < 1 << 4, few, k.select(number < 1 << 12, some, k.i64(TREE_LEVELS)))


def tree_of_four(
    k: KernelBuilder, here: Pointer, pitch: Int, left: Int, lanes: int, mask: Mask | None = None
) -> Vector:
    """Return the sum of the first four nodes from an address on, or of as many as are left."""
    rows = [here.offset(pitch * number) for number in range(4)]
    total = k.variable(rows[0].load(lanes, mask=mask))
    with k.when(left > 1):
        total.value = total.value + rows[1].load(lanes, mask=mask)
        with k.when(left > 2):
            other = k.variable(rows[2].load(lanes, mask=mask))
            with k.when(left > 3):
                other.value = other.value + rows[3].load(lanes, mask=mask)
            total.value = total.value + other.value
    return total.value
