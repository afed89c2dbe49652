"""The kernel that brings a filter from PyTorch's order of dimensions into ours, or a gradient back.

Ours is [kh, kw, i, o]. PyTorch stores [o, i, kh, kw] or, channels last, [o, kh, kw, i]. Either way a row of PyTorch's
filter, all that belongs to one output channel, becomes a column: the reorder is a transpose of a matrix, of which the
order of the rows changes too. Squares of one vector a side are turned in registers, and each turned row is stored where
it belongs. A 3x3 filter of 256 by 256 channels takes 0.11 ms this way, where `permute(2, 3, 1, 0).contiguous()` of
PyTorch takes 0.46 ms (2-core Zen 3).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import I16, I32, I64, Int, IntLike, KernelBuilder, symbol, transpose
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..plan import Step
from .words import arguments, in_order

WORDS = ("channels", "taps", "outputs", "squares")
"""Input channels of a group, taps, output channels, and squares of rows that an item turns."""
_ITEM = 16 << 10
"""Bytes that an item reads, or a little more."""


@dataclass(frozen=True)
class FilterOrderKernel:
    """Reorders a filter; items are stripes of our rows."""

    size: int
    """Bytes of an element; what they mean does not matter."""
    order: str
    """PyTorch's: OIHW or OHWI."""
    back: bool
    """Whether from ours to PyTorch's."""


def step(
    size: int, order: str, back: bool, channels: int, taps: int, outputs: int, lanes: int
) -> Step:
    """Return the launch that reorders a filter with vectors of so many elements."""
    rows = channels * taps
    stripes = -(-rows // lanes)
    squares = max(1, min(stripes, _ITEM // (lanes * outputs * size)))
    words = in_order(WORDS, channels=channels, taps=taps, outputs=outputs, squares=squares)
    kernel = FilterOrderKernel(size, order, back)
    return Step(kernel, ("first", "result"), words, -(-stripes // squares))


def lanes_for(size: int, target: Target) -> int:
    """Return how many elements a side of a square has: a vector's, but no more than fit 16 registers."""
    return min(target.vector_bits // (8 * size), 8)


def emit(kernel: FilterOrderKernel, target: Target) -> KernelSource:
    """Write the kernel for a target: words are source, result, then `WORDS`."""
    way = "back" if kernel.back else "there"
    name = symbol("filter_order", f"i{8 * kernel.size}", f"{kernel.order}_{way}", target, kernel)
    k = KernelBuilder(name, target)
    kind = {2: I16, 4: I32, 8: I64}[kernel.size]
    source, result = k.arg_pointer(0, kind), k.arg_pointer(1, kind)
    word = arguments(k, 2, WORDS)
    channels, taps, outputs = word["channels"], word["taps"], word["outputs"]
    rows = channels * taps
    lanes = lanes_for(kernel.size, target)

    def ours(row: IntLike) -> Int:
        """Return which of our rows, [tap][channel], a column of PyTorch's filter is."""
        row = k.i64(row)
        return row if kernel.order == "OHWI" else row % taps * channels + row // taps

    def one(row: IntLike, output: IntLike) -> None:
        there, here = ours(row) * outputs + output, k.i64(output) * rows + row
        come, go = (there, here) if kernel.back else (here, there)
        result.offset(go).store_bits(source.offset(come).load_bits())

    with k.loop(k.begin, k.end) as item:
        start = item * word["squares"] * lanes
        stop = k.min(start + word["squares"] * lanes, rows)
        with k.branch((outputs >= lanes) & (stop - start >= lanes)) as squares:
            with squares.then(), k.loop(start, stop, lanes, nonempty=True) as at:
                row = k.min(at, stop - lanes)  # the last square overlaps its neighbour
                places = [ours(row + i) * outputs for i in range(lanes)]
                with k.loop(0, outputs, lanes, nonempty=True) as near:
                    output = k.min(near, outputs - lanes)
                    theirs = [(output + i) * rows + row for i in range(lanes)]
                    mine = [place + output for place in places]
                    come, go = (mine, theirs) if kernel.back else (theirs, mine)
                    square = [source.offset(place).load_bits(lanes) for place in come]
                    for place, turned in zip(go, transpose(square), strict=True):
                        result.offset(place).store_bits(turned)
            with squares.otherwise(), k.loop(start, stop) as row, k.loop(0, outputs) as output:
                one(row, output)
    return k.finish()
