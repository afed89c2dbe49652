"""Dense 3x3 convolution of stride 1 by Winograd's F(2,3): forward and input gradient.

``y[p, q, k] = sum over r, s, c of x[p + r, q + s, c] * w[r, s, c, k]`` is computed for tiles of 2x2 outputs with 16
multiplications per channel pair instead of 36 (`winograd_scheme`). Two launches: the filter is transformed
(`filter_transform`), then everything else is one fused pass over blocks of tiles (`kernel`). This module holds
the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..._plan import Operand, Plan, Step
from ..._problem import Kind, Problem
from ..._targets import Target
from ..shared.table import Candidate
from ..shared.winograd_scheme import SCHEMES, Scheme
from ..shared.winograd_tiles import tiles_along
from ..shared.words import in_order
from . import filter_transform
from .filter_transform import BLOCK, UNROLL, FilterTransformKernel
from .words import WinogradKernel, words_of
from .work import work

NAME = "winograd"
WINOGRAD = "auto"
"""The least value of the switch that allows it."""

_LINE = 16
"""Numbers of a cache line."""
_RUN = 32
"""k added up in registers, by fours; runs are added up in L1. Errors on N8 28x28x64-64 and N2 14x14x256-256, in units
of 2^-24: runs of 16 2.35 and 3.01, of 32 2.44 and 2.83, of 64 2.75 and 2.99; PyTorch's plain sums 7.1 and 13.8."""
_VECTORS = 2
_ITEMS = 32
"""Items wanted: enough for 8 threads to finish together."""
_PART = 128
"""Channels that come out of an item, at least, if panels are divided: the input is transformed once per part."""
_BUNDLE = 128
_LARGE_BUNDLE = 512
"""Channels summed over of all groups of an item, at most, and where tiles are many. One thread, Zen 3, no bundle,
128 and 512: N8 28x28x512-512 in 32 groups 18.1, 17.9 and 15.1 ms, N8 14x14x1024-1024 12.3, 10.8 and 10.6 ms."""
_LARGEST_SCRATCH = 2 << 20
"""Bytes per thread, far above L2, beyond which no pass is fused: from about 2500 channels on."""
_SERIAL_FLOPS = 400_000


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    return refusal(problem, target, 2)


def refusal(problem: Problem, target: Target, outputs: int) -> str | None:
    """Return why a scheme cannot compute the problem, or None if it can."""
    rows, cols = problem.rows, problem.cols
    if problem.depthwise:
        return "only dense problems"
    if problem.kind is Kind.FILTER_GRADIENT:
        return "no filter gradients"
    if problem.dtype.short not in ("f32", "f16", "bf16"):
        return f"not exact enough for {problem.dtype.name}"
    if (rows.window, cols.window) != (3, 3):
        return "only 3x3 windows"
    if (rows.stride, cols.stride) != (1, 1):
        return "only stride 1"
    fewest = _VECTORS * target.lanes(4)
    if min(problem.group_in, problem.group_out) < fewest:
        return f"fewer than {fewest} channels in a group"
    scratch = WinogradSizes(problem, target, SCHEMES[outputs]).scratch_bytes
    if scratch > _LARGEST_SCRATCH:
        return f"a few tiles of all channels need {scratch >> 10} KB of scratch per thread"
    return None


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the block of tiles and the split of the panels that a rule chooses."""
    return offered(problem, target, 2, NAME)


def offered(problem: Problem, target: Target, outputs: int, name: str) -> Sequence[Candidate]:
    """Offer a scheme."""
    it = WinogradSizes(problem, target, SCHEMES[outputs])
    done = work(name, it, problem.flops < _SERIAL_FLOPS)
    return (Candidate(done, lambda: _plan(problem, it, outputs, name)),)


def _plan(problem: Problem, it: WinogradSizes, outputs: int, name: str) -> Plan:
    operands: tuple[Operand, ...] = ("first", "second", "packed", "result")
    first: tuple[Operand, ...] = ("second", "packed")
    if it.to_input:
        operands, first = ("second", "first", "packed", "result"), ("first", "packed")
    dtype = problem.dtype.short
    transform = Step(
        FilterTransformKernel(outputs, dtype, _VECTORS, it.to_input),
        first,
        it.filter_words,
        problem.groups * it.panels * it.filter_blocks,
        grain=1,
    )
    main = Step(
        it.kernel,
        operands,
        it.words,
        it.items,
        scratch_bytes=it.scratch_bytes,
    )
    return Plan(
        problem,
        name,
        (transform, main),
        packed_bytes=4 * problem.groups * it.panels * it.scheme.frequencies * it.filter_pitch,
        serial=problem.flops < _SERIAL_FLOPS,
        story=(
            (
                "scheme",
                f"F({outputs},3): {outputs}x{outputs} outputs from {it.scheme.points}x{it.scheme.points} inputs",
            ),
            ("tile", f"{it.rows} tiles x {it.width} channels, runs of {_RUN}"),
            ("tiles per block", str(it.block_tiles)),
            ("parts of the channels", str(it.parts)),
        ),
    )


def _tiles(problem: Problem, outputs: int) -> int:
    to_input = problem.kind is Kind.INPUT_GRADIENT
    cells = ((a.size if to_input else a.out, a.dilation) for a in (problem.rows, problem.cols))
    return problem.batch * prod(tiles_along(count, outputs, apart) for count, apart in cells)


@dataclass(frozen=True)
class WinogradSizes:
    """All sizes of one plan."""

    problem: Problem
    target: Target
    scheme: Scheme

    @property
    def kernel(self) -> WinogradKernel:
        return WinogradKernel(
            outputs=self.scheme.outputs,
            dtype=self.problem.dtype.short,
            data_format=self.problem.data_format,
            rows=self.rows,
            vectors=_VECTORS,
            most_tiles=self.most_tiles,
            by_fours=self.by_fours,
            run=_RUN,
            dilated=self.dilated,
            bundled=self.bundle > 1,
        )

    @property
    def to_input(self) -> bool:
        return self.problem.kind is Kind.INPUT_GRADIENT

    @property
    def dilated(self) -> bool:
        return (self.problem.rows.dilation, self.problem.cols.dilation) != (1, 1)

    @property
    def sums(self) -> int:
        return self.problem.group_out if self.to_input else self.problem.group_in

    @property
    def columns(self) -> int:
        return self.problem.group_in if self.to_input else self.problem.group_out

    @property
    def lanes(self) -> int:
        return self.target.lanes(4)

    @property
    def width(self) -> int:
        return _VECTORS * self.lanes

    @property
    def rows(self) -> int:
        """Tiles in registers: with a broadcast and the panel's vectors they fill the register file."""
        return self.most_tiles // (8 if self.by_fours else 4)

    @property
    def by_fours(self) -> bool:
        """Whether short sums are worth registers of their own: 16-bit results do not show them.

        F(4,3) would gain 0 to 7% without, and err by 21.6 units instead of 16.
        """
        return self.problem.dtype.itemsize > 2

    @property
    def most_tiles(self) -> int:
        return 24 if self.target.vector_registers < 32 else 48

    @property
    def panels(self) -> int:
        return -(-self.columns // self.width)

    @property
    def sums_padded(self) -> int:
        return -(-self.sums // UNROLL) * UNROLL

    @property
    def filter_pitch(self) -> int:
        return self.sums_padded * self.width + _LINE

    @property
    def filter_blocks(self) -> int:
        return -(-self.sums // BLOCK)

    @property
    def filter_words(self) -> tuple[int, ...]:
        pitch = self.problem.out_c
        return in_order(
            filter_transform.WORDS,
            sums=self.sums,
            columns=self.columns,
            sums_padded=self.sums_padded,
            panels=self.panels,
            frequency_pitch=self.filter_pitch,
            blocks=self.filter_blocks,
            pitch=pitch,
            tap_pitch=self.problem.group_in * pitch,
        )

    @property
    def bundle(self) -> int:
        """Groups of an item: neighbours in NHWC."""
        groups = self.problem.groups
        if self.problem.data_format != "NHWC":
            return 1
        items = self.tiles // 12 * -(-groups * self.sums // _LARGE_BUNDLE)
        channels = _LARGE_BUNDLE if items >= 2 * _ITEMS else _BUNDLE
        most = max(1, min(groups, channels // self.sums))
        return -(-groups // -(-groups // most))

    @property
    def bundles(self) -> int:
        return -(-self.problem.groups // self.bundle)

    @property
    def row_pitch(self) -> int:
        return self._in_vectors(self.bundle * self.sums)

    @property
    def tiles(self) -> int:
        return _tiles(self.problem, self.scheme.outputs)

    @property
    def block_tiles(self) -> int:
        """Tiles of a block: more use U more often, fewer keep V in L2."""
        bytes_ = 4 * self.scheme.frequencies * self.rows * self.row_pitch
        most = self.most_tiles // self.rows
        fit = min(max(self.target.l2_bytes * 5 // 8 // bytes_, most // 2), most)
        groups = -(-self.tiles // self.rows)
        return -(-groups // -(-groups // fit)) * self.rows

    @property
    def blocks(self) -> int:
        return -(-self.tiles // self.block_tiles)

    @property
    def parts(self) -> int:
        """Into how many parts the channels that come out are divided, if there are few tiles."""
        wanted = -(-_ITEMS // (self.blocks * self.bundles))
        return max(1, min(wanted, self.columns // _PART))

    @property
    def items(self) -> int:
        return self.bundles * self.parts * self.blocks

    @property
    def input_pitch(self) -> int:
        return self.block_tiles * (_RUN * (self.runs - 1) + self.last_pitch) + _LINE

    @property
    def runs(self) -> int:
        """Runs of k; the last is the longest, so that it holds a whole vector."""
        return max(1, self.sums // _RUN)

    @property
    def last_pitch(self) -> int:
        return self._in_vectors(self.sums - _RUN * (self.runs - 1))

    def _in_vectors(self, count: int) -> int:
        return -(-count // self.lanes) * self.lanes

    @property
    def _places(self) -> dict[str, int]:
        """Offsets of zeros, stage, V and waiting results in scratch, and behind the last, in bytes."""
        stage = 4 * self.row_pitch
        staged, waiting = self._staged_cols
        start = stage + 4 * self.scheme.points * staged * self.row_pitch
        pixels = start + 4 * self.bundle * self.scheme.frequencies * self.input_pitch
        end = pixels + 4 * self.scheme.outputs * waiting * self.width
        return {
            "zeros_at": 0,
            "stage_at": stage,
            "input_at": start,
            "pixels_at": pixels,
            "end": end,
        }

    @property
    def _staged_cols(self) -> tuple[int, int]:
        """Columns of a row of tiles of a block that are staged, and those that wait to be turned, at most."""
        size = self.scheme.outputs
        if self.problem.data_format == "NHWC":
            return 0, 0
        if not self.dilated:
            return self.block_tiles * size + 2, 0
        step = self.problem.cols.dilation
        source, target = self._cells(of_target=False)[1], self._cells(of_target=True)[1]
        periods = (
            min(self.block_tiles + 2 * step - 2, tiles_along(target, size, step) + step - 1) // step
        )
        return min(source, (periods * size + 2) * step), min(target, periods * size * step)

    @property
    def scratch_bytes(self) -> int:
        return self._places["end"]

    @property
    def words(self) -> tuple[int, ...]:
        p, size = self.problem, self.scheme.outputs
        source_rows, source_cols = self._cells(of_target=False)
        target_rows, target_cols = self._cells(of_target=True)
        before = tuple(
            2 * a.dilation - a.before if self.to_input else a.before for a in (p.rows, p.cols)
        )
        plane = p.group_in * p.out_c
        weights = {"start": 0, "tap": plane, "sum": p.out_c, "column": 1, "group": self.columns}
        if self.to_input:
            weights = {
                "start": 8 * plane,
                "tap": -plane,
                "sum": 1,
                "column": p.out_c,
                "group": self.sums,
            }
        names = words_of(self.kernel)
        some = {
            **self._places,
            "dilation_rows": p.rows.dilation,
            "dilation_cols": p.cols.dilation,
            "groups": p.groups,
            "bundle": self.bundle,
        }
        return in_order(
            names,
            sums=self.sums,
            columns=self.columns,
            sums_padded=self.sums_padded,
            panels=self.panels,
            parts=self.parts,
            blocks=self.blocks,
            block_tiles=self.block_tiles,
            tiles=self.tiles,
            tile_rows=tiles_along(target_rows, size, p.rows.dilation),
            tile_cols=tiles_along(target_cols, size, p.cols.dilation),
            source_rows=source_rows,
            source_cols=source_cols,
            target_rows=target_rows,
            target_cols=target_cols,
            before_rows=before[0],
            before_cols=before[1],
            **self._strides("source", source_rows, source_cols, p.groups * self.sums),
            **self._strides("target", target_rows, target_cols, p.groups * self.columns),
            **{f"filter_{name}": value for name, value in weights.items()},
            runs=self.runs,
            last_pitch=self.last_pitch,
            row_pitch=self.row_pitch,
            input_pitch=self.input_pitch,
            filter_pitch=self.filter_pitch,
            **{name: value for name, value in some.items() if name in names},
        )

    def _cells(self, of_target: bool) -> tuple[int, int]:
        """Return rows and columns of the image that is written, or of the one that is read."""
        rows, cols = self.problem.rows, self.problem.cols
        return (rows.size, cols.size) if of_target is self.to_input else (rows.out, cols.out)

    def _strides(self, what: str, rows: int, cols: int, channels: int) -> dict[str, int]:
        """Return elements per image, row, column and channel, by the names of the words."""
        steps = {"row": cols, "col": 1, "channel": rows * cols}
        if self.problem.data_format == "NHWC":
            steps = {"row": cols * channels, "col": channels, "channel": 1}
        steps["image"] = rows * cols * channels
        return {f"{what}_{name}": step for name, step in steps.items()}
