"""The filter of a grouped problem with groups in the lanes: ``packed[block][panel][tap][k][j][lane]``.

A block holds as many groups as a vector has lanes, a panel the output channels that a tile computes at once. Where they
do not fill the last panel, it starts earlier and repeats some of the one before. Taps lie in the order a kernel walks
its source in, which the table says.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import I32, KernelBuilder, arithmetic, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.stage import transposed_copy
from ..shared.words import arguments

WORDS = ("groups", "taps", "panels")
"""The run-time words behind the three pointers: filter, packed, table."""


@dataclass(frozen=True)
class GroupedPackKernel:
    """Writes a filter with groups in the lanes; items are pairs of a block of groups and a tap."""

    dtype: str
    group_in: int
    group_out: int
    outputs: int
    """Channels of a panel."""
    transposed: bool
    """Whether the filter's last axis is summed over: for an input gradient."""


def emit(kernel: GroupedPackKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    size = f"{kernel.group_in}x{kernel.group_out}"
    k = KernelBuilder(symbol("grouped_pack", kernel.dtype, size, target, kernel), target)
    storage = element(kernel.dtype)
    number = arithmetic(storage)
    lanes = k.lanes(number)
    source, packed = k.arg_pointer(0, storage), k.arg_pointer(1, number)
    table = k.arg_pointer(2, I32)
    word = arguments(k, 3, WORDS)
    inputs, outputs = kernel.group_in, kernel.group_out
    turned = k.scratch(number, inputs * outputs * lanes)
    depth, width = (outputs, inputs) if kernel.transposed else (inputs, outputs)
    with k.loop(k.begin, k.end) as item:
        block, place = item // word["taps"], item % word["taps"]
        tap = table.offset(place).load_int()
        with k.loop(0, inputs) as channel:
            at = ((tap * inputs + channel) * word["groups"] + block * lanes) * outputs
            there = turned.offset(channel * (outputs * lanes))
            transposed_copy(k, source.offset(at), there, lanes, outputs, outputs, lanes)
        with k.loop(0, word["panels"]) as panel:
            start = k.min(panel * kernel.outputs, width - kernel.outputs)
            tap_size = depth * kernel.outputs * lanes
            at = ((block * word["panels"] + panel) * word["taps"] + place) * tap_size
            with k.loop(0, depth) as row:
                there = packed.offset(at + row * (kernel.outputs * lanes))
                for j in range(kernel.outputs):
                    if kernel.transposed:
                        here = turned.offset(((start + j) * outputs + row) * lanes)
                    else:
                        here = turned.offset((row * outputs + start + j) * lanes)
                    there.offset(j * lanes).store(here.load(lanes))
    return k.finish()
