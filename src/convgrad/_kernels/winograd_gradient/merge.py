"""The second kernel of `winograd_gradient`: adds the slices in order, dW = G^T dU G, rounded once.

An item is an input channel: a row of all nine taps. What comes out not finite is computed again as the plain sum in
float64, as in `winograd.output_transform` and for its reasons: dU is a sum of products, so whatever is not finite on
the way, be it an infinity of the operands or an overflow of the transforms, shows in the taps it belongs to and in
others, where the plain sum has a number. It is slow (all pixels for each vector of taps, unless it is NaN soon) and
rare.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import F32, F64, Bool, Int, KernelBuilder, Vector, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.winograd_scheme import F2, both_ways, turned
from .frame import Frame


@dataclass(frozen=True)
class TapsKernel:
    """Identity of a kernel; under a name of its own, because kernels are remembered by what identities print."""

    dtype: str
    dilated: bool


def emit(kernel: TapsKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _Writer(kernel, target).write()


class _Writer:
    def __init__(self, kernel: TapsKernel, target: Target) -> None:
        title = symbol("winograd_gradient_merge", kernel.dtype, "row", target, kernel)
        self.k = k = KernelBuilder(title, target)
        self.lanes = k.lanes(F32)
        self.frame = Frame(k, element(kernel.dtype), kernel.dilated)
        self.word = self.frame.word

    def write(self) -> KernelSource:
        k, word, frame = self.k, self.word, self.frame
        with k.loop(k.begin, k.end) as channel:
            in_block = channel // word["block_in"]
            row = channel - frame.first(in_block, "in")
            with k.loop(0, word["out_blocks"], nonempty=True) as out_block:
                first, columns = frame.first(out_block, "out"), frame.count("out")
                block = in_block * word["out_blocks"] + out_block
                with k.loop(0, columns, self.lanes, nonempty=True) as c:
                    col = k.min(c, columns - self.lanes)
                    self._taps(block, row * word["block_out"] + col, channel, first + col)
        return k.finish()

    def _taps(self, block: Int, at: Int, channel: Int, column: Int) -> None:
        """Write a vector of each tap."""
        k, word, lanes, points = self.k, self.word, self.lanes, F2.points
        size = word["block_in"] * word["block_out"]
        pitch = word["in_blocks"] * word["out_blocks"] * size * F2.frequencies
        place = self.frame.partial.offset(block * size * F2.frequencies + at)
        places = [place.offset(size * f) for f in range(F2.frequencies)]
        sums = [k.variable(place.load(lanes)) for place in places]
        with k.loop(1, word["slices"], carry=sums) as part:
            for total, place in zip(sums, places, strict=True):
                total.value = total.value + place.offset(part * pitch).load(lanes)
        wide = [total.value.cast("fpext", F64) for total in sums]
        grid = [wide[i * points : (i + 1) * points] for i in range(points)]
        to = self.frame.result.offset(channel * word["out_c"] + column)
        tap_pitch = word["in_c"] * word["out_c"]
        nothing, check = k.zeros(F32, lanes), k.zeros(F32, lanes)
        for r, line in enumerate(both_ways(k, turned(F2.filter_matrix), grid)):
            for s, exact in enumerate(line):
                value = exact.cast("fptrunc", F32)
                to.offset(tap_pitch * (3 * r + s)).store(value)
                check = k.fma(value, nothing, check)
        spread = check.sum()
        finite = Bool(k.emitter, (spread - spread).compare("oeq", "", 0.0).text)
        with k.when(~finite), k.loop(0, 9, nonempty=True) as tap:
            again = to.offset(tap * tap_pitch)
            value = again.load(lanes)
            plain = self._plain_sum(tap // 3, tap % 3, channel, column).cast("fptrunc", F32)
            again.store(k.select((value - value).compare("oeq", "", 0.0), value, plain))

    def _plain_sum(self, r: Int, s: Int, channel: Int, column: Int) -> Vector:
        k, word, frame = self.k, self.word, self.frame
        total = k.variable(k.zeros(F64, self.lanes))
        source, target = frame.source.offset(channel), frame.target.offset(column)
        up = r * frame.tiles.down - word["before_rows"]
        left = s * frame.tiles.right - word["before_cols"]
        rows = k.max(-up, 0), k.min(word["target_rows"], word["source_rows"] - up)
        cols = k.max(-left, 0), k.min(word["target_cols"], word["source_cols"] - left)
        none, one = k.zeros(F64, self.lanes), k.constant(F64, self.lanes, 1)
        with (
            k.loop(0, word["batch"], carry=[total], nonempty=True) as image,
            k.loop(*rows, carry=[total]) as p,
        ):
            # A loop that does not run for sums that stay NaN whatever follows.
            sound = k.select(total.value.compare("uno", "", 0.0), none, one).sum()
            lost = Bool(k.emitter, sound.compare("oeq", "", 0.0).text)
            with k.loop(cols[0], k.select(lost, cols[0], cols[1]), carry=[total]) as q:
                x = frame.tiles.address(source, "source", image, p + up, q + left).load()
                y = frame.tiles.address(target, "target", image, p, q).load(self.lanes)
                wide = x.cast("fpext", F64).broadcast(self.lanes)
                total.value = k.fma(wide, y.cast("fpext", F64), total.value)
        result: Vector = total.value
        return result
