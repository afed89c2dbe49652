"""The kernel that ends a dense filter gradient whose sums lie in blocks of partial sums.

``result[t, c, g, k] = sum over slices of partial[slice][g / m][t][g % m * C + c][g % m * K + k]``, rounded once. Slices
are nodes of the tree of sums, and are added as such. Rows of partial sums are padded to whole tiles, and where m narrow
groups were computed as one, only the blocks on the diagonal mean anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import Int, KernelBuilder, arithmetic, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..plan import Step
from ..shared.reduce import TREE_LEVELS, sum_of_tree
from ..shared.words import arguments, in_order

WORDS = (
    "slices",
    "group_in",
    "group_out",
    "groups",
    "merged",
    "slice_pitch",  # elements of partial sums from slice to slice, ...
    "group_pitch",
    "tap_pitch",
    "row_pitch",
)
"""The run-time words behind the two pointers: partial, result."""

_CLAIM = 16384
"""Partial sums read per claim, about: 10 us."""


@dataclass(frozen=True)
class MergeKernel:
    """Adds slices of partial sums into a filter gradient."""

    dtype: str


def step(
    dtype: str,
    *,
    slices: int,
    taps: int,
    group_in: int,
    group_out: int,
    groups: int,
    merged: int,
    pitches: tuple[int, int, int, int],
) -> Step:
    """Return the launch; `pitches` are the distances of slices, groups, taps and rows of partial sums."""
    rows = taps * group_in
    slice_pitch, group_pitch, tap_pitch, row_pitch = pitches
    words = in_order(
        WORDS,
        slices=slices,
        group_in=group_in,
        group_out=group_out,
        groups=groups,
        merged=merged,
        slice_pitch=slice_pitch,
        group_pitch=group_pitch,
        tap_pitch=tap_pitch,
        row_pitch=row_pitch,
    )
    grain = max(1, _CLAIM // (group_out * groups * slices))
    return Step(MergeKernel(dtype), ("partial", "result"), words, rows, grain)


def emit(kernel: MergeKernel, target: Target) -> KernelSource:
    """Write the kernel; an item is a row of the filter: a tap and an input channel."""
    k = KernelBuilder(symbol("dense_filter_merge", kernel.dtype, "row", target, kernel), target)
    storage = element(kernel.dtype)
    number = arithmetic(storage)
    partial, result = k.arg_pointer(0, number), k.arg_pointer(1, storage)
    word = arguments(k, 2, WORDS)
    slices, merged = word["slices"], word["merged"]
    group_in, group_out, groups = word["group_in"], word["group_out"], word["groups"]
    vector = k.lanes(number)
    stack = k.scratch(number, TREE_LEVELS * vector)

    def add(at: Int, to: Int, lanes: int) -> None:
        total = sum_of_tree(k, partial.offset(at), word["slice_pitch"], slices, lanes, stack)
        result.offset(to).store(total)

    with k.loop(k.begin, k.end) as item:
        tap, channel = item // group_in, item % group_in
        with k.loop(0, groups, nonempty=True) as group:
            inside = group % merged
            at = (
                group // merged * word["group_pitch"] + tap * word["tap_pitch"] + inside * group_out
            )
            at = at + (inside * group_in + channel) * word["row_pitch"]
            to = (item * groups + group) * group_out
            whole = group_out - group_out % vector
            with k.loop(0, whole, vector) as i:
                add(at + i, to + i, vector)
            with k.loop(whole, group_out) as i:
                add(at + i, to + i, 1)
    return k.finish()
