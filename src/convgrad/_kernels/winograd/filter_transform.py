"""The first kernel of `winograd`: U = G w G^T, once per call, in the order the second kernel reads it.

U[group][panel][frequency][k][column of the panel], k being the channel that is summed over (input channels forward,
output channels in the input gradient) and a panel two vectors of the channels that come out. A frequency is padded by
a line: without it the 16 stores of a vector meet in one set of the L1 cache (0.55 -> 0.13 ms at 256 channels, Zen 3).
The last panel is moved back to end with the last channel; k is filled up with zeros to a multiple of `UNROLL`.

The input gradient reads the filter flipped and transposed: blocks of vectors are turned in scratch first.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import (
    F32,
    F64,
    Int,
    KernelBuilder,
    Pointer,
    arithmetic,
    element,
    symbol,
    transpose,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.winograd_scheme import SCHEMES, both_ways
from ..shared.words import arguments

BLOCK = 16
"""k of one item, at most; a whole number of vectors on all targets."""
UNROLL = 4
"""k per turn of the innermost loop of the second kernel: the shortest sums."""

WORDS = (
    "sums",  # channels summed over, in a group: the range of k
    "columns",  # channels that come out of a group
    "sums_padded",
    "panels",
    "frequency_pitch",  # elements
    "blocks",  # of k
    "pitch",  # elements from one row of the filter to the next: all output channels
    "tap_pitch",  # from tap to tap
)
"""The run-time words behind the two pointers: filter, packed. An item is (group, panel, block of k)."""


@dataclass(frozen=True)
class FilterTransformKernel:
    """Identity of a kernel."""

    outputs: int
    """Of a tile along an axis: which scheme."""
    dtype: str
    vectors: int
    """Vectors of a panel."""
    transposed: bool
    """Whether k is the last axis of the filter, and the taps are flipped: the input gradient."""


def emit(kernel: FilterTransformKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    tile = f"{kernel.outputs}x3"
    k = KernelBuilder(
        symbol("winograd_filter_transform", kernel.dtype, tile, target, kernel), target
    )
    storage = element(kernel.dtype)
    number = arithmetic(storage)
    word = arguments(k, 2, WORDS)
    filters, packed = k.arg_pointer(0, storage), k.arg_pointer(1, number)
    lanes = k.lanes(number)
    width = kernel.vectors * lanes
    turned = k.scratch(number, 9 * lanes * lanes)
    scheme = SCHEMES[kernel.outputs]
    sums, columns = word["sums"], word["columns"]

    def transform(taps: list[Pointer], place: Pointer) -> None:
        # In float64, rounded once: the transform's own roundings would be a tenth of the error.
        grid = [
            [taps[3 * r + s].load(lanes).cast("fpext", F64) for s in range(3)] for r in range(3)
        ]
        for row in both_ways(k, scheme.filter_matrix, grid):
            for value in row:
                place.store(value.cast("fptrunc", F32), aligned=True)
                place = place.offset(word["frequency_pitch"])

    def straight(group: Int, first: Int, start: Int, place: Pointer) -> None:
        with k.loop(start, k.min(start + BLOCK, sums), nonempty=True) as at:
            source = filters.offset(at * word["pitch"] + group * columns + first)
            taps = [source.offset(word["tap_pitch"] * tap) for tap in range(9)]
            for v in range(kernel.vectors):
                moved = [tap.offset(v * lanes) for tap in taps]
                transform(moved, place.offset(at * width + v * lanes))

    def flipped(group: Int, first: Int, start: Int, place: Pointer) -> None:
        with (
            k.loop(start, k.min(start + BLOCK, sums), lanes, nonempty=True) as block,
            k.loop(0, width, lanes, nonempty=True) as column,
        ):
            at = k.min(block, sums - lanes)
            source = filters.offset((first + column) * word["pitch"] + group * sums + at)
            with k.loop(0, 9, nonempty=True) as tap:
                plane = source.offset((8 - tap) * word["tap_pitch"])
                rows = [plane.offset(word["pitch"] * i).load(lanes) for i in range(lanes)]
                for n, value in enumerate(transpose(rows)):
                    turned.offset(tap * (lanes * lanes) + n * lanes).store(value, aligned=True)
            with k.loop(0, lanes, nonempty=True) as i:
                row = turned.offset(i * lanes)
                taps = [row.offset(tap * lanes * lanes) for tap in range(9)]
                transform(taps, place.offset((at + i) * width + column))

    with k.loop(k.begin, k.end) as item:
        block = item % word["blocks"]
        panel = item // word["blocks"]
        group, index = panel // word["panels"], panel % word["panels"]
        first = k.min(index * width, columns - width)
        place = packed.offset(panel * scheme.frequencies * word["frequency_pitch"])
        (flipped if kernel.transposed else straight)(group, first, block * BLOCK, place)
        with k.when(block.equals(word["blocks"] - 1)):
            zero = k.zeros(number, lanes)
            with k.loop(sums, word["sums_padded"]) as at, k.loop(0, scheme.frequencies) as f:
                row = place.offset(f * word["frequency_pitch"] + at * width)
                for v in range(kernel.vectors):
                    row.offset(v * lanes).store(zero, aligned=True)
    return k.finish()
