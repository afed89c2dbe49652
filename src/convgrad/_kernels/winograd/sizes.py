"""The sizes of a plan by Winograd's algorithms: tiles, blocks, bundles of groups, parts of the channels, scratch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.sums.winograd import CHAIN, RUN
from ..shared.winograd_scheme import Scheme
from ..shared.winograd_tiles import tiles_along
from ..shared.words import in_order
from . import filter_transform
from .filter_transform import BLOCK, UNROLL
from .words import Stage, WinogradKernel, words_of

_LINE = 16
"""Numbers of a cache line."""
VECTORS = 2
ITEMS = 32
"""Items wanted: enough for 8 threads to finish together."""
_PART = 128
"""Channels that come out of an item, at least, if panels are divided: the input is transformed once per part."""
_BUNDLE = 128
_LARGE_BUNDLE = 512
"""Channels summed over of all groups of an item, at most, and where tiles are many. One thread, Zen 3, no bundle,
128 and 512: N8 28x28x512-512 in 32 groups 18.1, 17.9 and 15.1 ms, N8 14x14x1024-1024 12.3, 10.8 and 10.6 ms."""
_LARGE_BLOCK = 2 << 20
"""Bytes of V, far above L2, beyond which a block has as few tiles as registers hold: from about 2500 channels on."""
_LARGE = 10**8
_THREADS = 16
_GOOD_SPEEDUP = 12
"""From so many operations on work should divide well among so many threads: be so much quicker than on one."""


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

    apart: bool = False
    """Whether the input is transformed by a launch of its own."""

    def kernel(self, stage: Stage) -> WinogradKernel:
        return WinogradKernel(
            outputs=self.scheme.outputs,
            dtype=self.problem.dtype.short,
            data_format=self.problem.data_format,
            rows=self.rows,
            vectors=VECTORS,
            most_tiles=self.most_tiles,
            chain=CHAIN if self.exact else 0,
            run=RUN,
            dilated=self.dilated,
            bundled=self.bundle > 1,
            stage=stage,
            bias=stage != "inputs" and self.problem.adds_bias,
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
        return VECTORS * self.lanes

    @property
    def rows(self) -> int:
        """Tiles in registers: with a broadcast and the panel's vectors they fill the register file.

        Half as many where V of so many would be too large: from 3000 channels on.
        """
        rows = self.most_tiles // (8 if self.exact else 4)
        while rows % 2 == 0 and rows * self._tile_bytes > _LARGE_BLOCK:
            rows //= 2
        return rows

    @property
    def _tile_bytes(self) -> int:
        """Bytes of V for a tile, and of the pixels that NCHW stages for it."""
        staged = self.scheme.outputs * self.scheme.points
        numbers = self.scheme.frequencies + (staged if self.problem.data_format == "NCHW" else 0)
        return 4 * numbers * self.row_pitch

    @property
    def exact(self) -> bool:
        """Whether chains are worth registers of their own: 16-bit results do not show them.

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

    @cached_property
    def bundle(self) -> int:
        """Groups of an item: neighbours in NHWC."""
        groups = self.problem.groups
        if self.problem.data_format != "NHWC":
            return 1
        items = self.tiles // 12 * -(-groups * self.sums // _LARGE_BUNDLE)
        channels = _LARGE_BUNDLE if items >= 2 * ITEMS else _BUNDLE
        most = max(1, min(groups, channels // self.sums))
        return -(-groups // -(-groups // most))

    @property
    def bundles(self) -> int:
        return -(-self.problem.groups // self.bundle)

    @property
    def row_pitch(self) -> int:
        return self._in_vectors(self.bundle * self.sums)

    @cached_property
    def tiles(self) -> int:
        return _tiles(self.problem, self.scheme.outputs)

    @cached_property
    def block_tiles(self) -> int:
        """Tiles of a block: more use U more often, fewer keep V in L2."""
        bytes_ = 4 * self.scheme.frequencies * self.rows * self.row_pitch
        most = self.most_tiles // self.rows
        least = min(most // 2, max(1, _LARGE_BLOCK // (self.rows * self._tile_bytes)))
        fit = min(max(self.target.l2_bytes * 5 // 8 // bytes_, least), most)
        groups = -(-self.tiles // self.rows)
        sizes = [-(-groups // -(-groups // some)) * self.rows for some in range(fit, fit // 2, -1)]
        # Some smaller ones divide better among many threads.
        even = (size for size in sizes if self._speedup(-(-self.tiles // size)) >= _GOOD_SPEEDUP)
        return next(even, sizes[0])

    @property
    def blocks(self) -> int:
        return -(-self.tiles // self.block_tiles)

    @property
    def parts(self) -> int:
        """Into how many parts the channels that come out are divided, if there are few tiles."""
        return self._parts(self.blocks)

    def _parts(self, blocks: int) -> int:
        wanted = -(-ITEMS // (blocks * self.bundles))
        if not self.apart:
            return max(1, min(wanted, self.columns // _PART))
        # Each costs nothing but the hand-over.
        parts = range(min(wanted, self.panels), self.panels + 1)
        return next((n for n in parts if self._share(blocks, n) >= _GOOD_SPEEDUP), self.panels)

    def _speedup(self, blocks: int) -> float:
        return self._share(blocks, self._parts(blocks))

    def _share(self, blocks: int, parts: int) -> float:
        """Return by how much `_THREADS` threads are quicker than one at best, all else being equal."""
        blocks *= self.bundles
        turns = -(-blocks * parts // _THREADS) * -(-self.panels // parts)
        return blocks * self.panels / turns

    @property
    def divides_badly(self) -> bool:
        """Whether many threads would wait for a few of them, where there is work for many."""
        return self.problem.flops >= _LARGE and self._speedup(self.blocks) < _GOOD_SPEEDUP

    @property
    def shared_bytes(self) -> int:
        """Memory for V of all blocks, if it is written by a launch of its own."""
        size = self.bundle * self.scheme.frequencies * self.input_pitch
        return 4 * self.bundles * self.blocks * size if self.apart else 0

    @property
    def items(self) -> int:
        return self.bundles * self.parts * self.blocks

    @property
    def input_pitch(self) -> int:
        return self.block_tiles * (RUN * (self.runs - 1) + self.last_pitch) + _LINE

    @property
    def runs(self) -> int:
        """Runs of k; the last is the longest, so that it holds a whole vector."""
        return max(1, self.sums // RUN)

    @property
    def last_pitch(self) -> int:
        return self._in_vectors(self.sums - RUN * (self.runs - 1))

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
        names = words_of(self.kernel("fused"))
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
