"""The kernel of `depthwise_plane` and `depthwise_flat`: vectors along the width.

A *plane* is what one filter slides over: one channel of one image (NCHW), or a whole image of few channels whose rows
are taken as flat vectors of columns times channels (`period`). Its rows are read in one of two ways:

* direct: in place. The first and the last vector of a row have bodies of their own with constant masks, and a row
  outside the image is a row of zeros in the workspace.
* padded: blocks of rows are copied into the first cache, converted to the compute type, with zeros where the window
  leaves the image; columns go to sub-rows in turn if the window moves by several. From there on nothing
  is masked and a tap is a constant distance: the pitch of the copies is a constant of the kernel. This pays for large
  windows and for 16-bit floats, which are converted once, and takes every geometry.

All sizes are run-time words, but for those of images smaller than a vector or a tile.

::

    item (forward, input gradient) = (some images, chunk of channels, block of rows)
      weights of the chunk -> bank[output][tap]
      for n, c:  padded: copy the plane's rows;  for m:  for R groups of rows:  for U vectors of columns:
          for source row, tap column:  x = load;  acc[row] += x * w[tap]  for every tap that reads it
          [at the end of a row of the window: totals += acc]
          store acc                                        # phases of an input gradient are interleaved here

    item (filter gradient) = (share of the units, chunk of channels); unit = (image, block of rows)
      for c in chunk:  sums[m][tap][lane] = 0;  for unit, m:  padded: copy the rows of input and out_backprop
        for group of tap columns:  acc[tap] = 0 in registers;  for R rows, vector of columns: acc[tap] += x * y
          sums += acc                                      # blocked summation: short chains, small errors
        lanes of sums -> result, or partial[share]

The order of a sum is the contract's (`_problem/sums/gather.py`): rows of the window outside its columns. Rows of a tile
are different sums and go side by side (`loops.moments`).

Rows are covered by whole tiles and columns by whole vectors: the last one is moved back, and what it computes twice
gets the same bits; the filter gradient meets zeros there instead. Zeros spoil a filter gradient only where
`out_backprop` is not finite: a sum that is not finite is therefore computed again, leaving out the padding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from ..._compiler.codegen import Int, Pointer, Vector
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.convolution import Kind
from ..._problem.sums.gather import RUN
from ..shared.edges import store_first
from ..shared.register_levels import Key, RegisterLevels
from .filter_gradient import FilterWriter
from .frame import BlockRows, Frame, Reads, reads
from .in_place import InPlace
from .loops import WRITTEN, moments, piece_size, rows_together, tap_loop
from .padded import Padded
from .words import FEW_TAPS, PlaneKernel, Windows

_Add = Callable[[Reads, Windows, Int, Int], None]
"""Adds some source rows at some columns: rows, columns, and how far along the window they are."""


def emit(kernel: PlaneKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    frame = Frame(kernel, target)
    if frame.to_filter:
        return FilterWriter(frame).write()
    return _Writer(frame).write()


class _Writer:
    """Writes a forward or input gradient; methods go from the outermost loop to the innermost body."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.k, self.kernel, self.word = frame.k, frame.kernel, frame.word
        self.number, self.lanes, self.taps = frame.number, frame.lanes, frame.taps
        self.in_place, self.padded = InPlace(frame), Padded(frame)
        few = self.taps <= FEW_TAPS and (self.kernel.direct or max(self.kernel.window) <= WRITTEN)
        self.few_weights = few and not self.kernel.period and not self.adds
        """Whether all weights are in registers."""
        self.together = self.kernel.height
        """Groups of rows that read a source row at the same time."""
        if not self.few_weights and not self.kernel.direct:
            self.together = rows_together(frame)

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        with k.loop(k.begin, k.end) as item:
            block, rest = item % word["row_blocks"], item // word["row_blocks"]
            first = rest % word["chunks"] * word["chunk"]
            last = k.min(first + word["chunk"], word["channels"])
            image = rest // word["chunks"] * word["images"]
            end = k.min(image + word["images"], word["batch"])
            rows = self.frame.rows(block)
            self._pack_weights(first, last)
            if self.kernel.direct:
                self.frame.clear(self.frame.block, word["source_cols"] + 3 * self.lanes)
            else:
                self.frame.clear(
                    self.frame.block,
                    self.frame.block_size * (word["multiplier"] if self.adds else 1),
                )
            with (
                k.loop(image, end, nonempty=True) as n,
                k.loop(first, last, nonempty=True) as c,
            ):
                self._channel(n, c, first, rows)
        return k.finish()

    @property
    def adds(self) -> bool:
        """Whether an input channel adds up what several outputs send back."""
        return self.kernel.kind is Kind.INPUT_GRADIENT and self.kernel.several

    def _pack_weights(self, first: Int, last: Int) -> None:
        """Bring the weights of a chunk together as [output][tap], or as [tap][lane] where channels alternate."""
        k, period = self.k, self.kernel.period
        if period:
            with k.loop(0, self.taps, nonempty=True) as tap:
                for i in range(self.lanes + period - 1):
                    value = self.frame.second.offset(tap * period + i % period).load()
                    self.frame.bank.offset(tap * self.weight_pitch + i).store(value)
            if self.frame.bias:
                # It alternates as the weights do, and stands behind them.
                there = self.frame.bank.offset(self.taps * self.weight_pitch)
                for i in range(self.lanes + period - 1):
                    there.offset(i).store(self.frame.bias.offset(i % period).load())
            return
        start = first * self.word["multiplier"]
        with k.loop(start, last * self.word["multiplier"], nonempty=True) as output:
            there = self.frame.bank.offset((output - start) * self.taps)
            with k.loop(0, self.taps, nonempty=True) as tap:
                there.offset(tap).store(
                    self.frame.second.offset(tap * self.frame.outputs + output).load()
                )

    @property
    def weight_pitch(self) -> int:
        """Elements from tap to tap in the bank: weights that alternate are read from any phase on."""
        period = self.kernel.period
        return self.lanes + -(-period // 8) * 8 if period else 1

    def _channel(self, image: Int, c: Int, first: Int, rows: BlockRows) -> None:
        """Compute a block of rows of the planes of one input channel."""
        k, word, kernel = self.k, self.word, self.kernel
        multiplier = word["multiplier"]
        target = k.arg_pointer(2, self.frame.storage).offset(
            rows.start * (len(kernel.rows.phases) * self.frame.target_cols)
        )
        plane = image * word["channels"] + c
        bank = self.frame.bank.offset((c - first) * (multiplier * self.taps))
        if self.adds:
            with k.loop(0, multiplier, nonempty=True) as m:
                block = self.frame.block.offset(m * self.frame.block_size)
                self.padded.copy_source(plane * multiplier + m, rows, block)
            there = target.offset(plane * self.frame.target_plane)
            self._cover(there, rows, self.frame.block, bank, c, None)
            return
        source = self.frame.source.offset(plane * self.frame.source_plane)
        if not kernel.direct:
            self.padded.copy_source(plane, rows, self.frame.block)
            source = self.frame.block
        with self.frame.each_multiple() as m:
            output = plane * multiplier + m if kernel.several else plane
            there = target.offset(output * self.frame.target_plane)
            self._cover(there, rows, source, bank.offset(m * self.taps), c, m)

    def _cover(
        self,
        target: Pointer,
        rows: BlockRows,
        source: Pointer,
        bank: Pointer,
        c: Int,
        m: Int | None,
    ) -> None:
        """Cover a block of target rows with tiles; `target` is its first row, `m` says which of a channel's outputs."""
        k, kernel = self.k, self.kernel
        bias = self.frame.bias
        if bias and kernel.period:
            bias = bank.offset(self.taps * self.weight_pitch)
        elif bias:
            bias = bias.offset(c if m is None else c * self.word["multiplier"] + m)
        phases = len(kernel.rows.phases)
        weights: dict[int, Vector] | None = None
        if self.few_weights:
            weights = {tap: bank.offset(tap).broadcast(self.lanes) for tap in range(self.taps)}
        with k.loop(0, rows.count, kernel.height, nonempty=True) as row:
            row = k.min(row, rows.count - kernel.height)
            out = target.offset(row * (phases * self.frame.target_cols))
            group = rows.start + row
            if kernel.direct:
                sources = self.in_place.row_pointers(source, group)
            else:
                base = source.offset(row * (kernel.rows.step * self.frame.row_pitch))
                low = kernel.rows.lowest
                sources = {
                    r: base.offset((r - low) * self.frame.row_pitch) for r in self.frame.row_reads
                }
            if kernel.weaves:
                self._columns(_Strip(sources, self.frame.grads, group, bank, weights, bias))
                self._weave(out, group)
            else:
                self._columns(_Strip(sources, out, group, bank, weights, bias))

    def _weave(self, out: Pointer, group: Int) -> None:
        """Write the rows of a strip whose phases lie in sub-rows of the workspace."""
        kernel = self.kernel
        across = len(kernel.cols.phases) * kernel.pitch
        for row in range(kernel.height * len(kernel.rows.phases)):
            with self._row_exists(group, row):
                sub_rows = self.frame.grads.offset(row * across)
                self.padded.pixels.weave_row(sub_rows, out.offset(self.frame.target_cols * row))

    def _columns(self, strip: _Strip) -> None:
        """Cover the columns: padded copies need no borders."""
        k, kernel, groups, lanes = self.k, self.kernel, self.word["groups_w"], self.lanes
        reach, both = self.in_place.reach, len(self.in_place.parts)
        if kernel.target_width:
            self._tile(strip, [k.i64(0)], True, True)
            return
        last = groups - lanes
        if not kernel.direct:
            with k.loop(0, groups, kernel.vectors * lanes, nonempty=True) as q:
                at = [k.min(q + i * lanes, last) for i in range(kernel.vectors)]
                self._tile(strip, at, False, False)
            return
        last = groups - reach
        self._tile(strip, [k.i64(0)] * both, True, False)
        inner = last - kernel.reserve
        with k.loop(reach, last, reach) as q:
            self._tile(strip, [k.min(q, inner)] * both, False, False)
        self._tile(strip, [last] * both, False, True)

    def _tile(self, strip: _Strip, at: list[Int], at_start: bool, at_end: bool) -> None:
        """Compute R groups of rows at some vectors of columns and store them."""
        k, kernel = self.k, self.kernel
        height, width = kernel.height * len(kernel.rows.phases), len(kernel.cols.phases)
        # By target row, phase of the columns, and vector of columns.
        turns = {
            row: [(row, phase, i) for phase in range(width) for i in range(len(at))]
            for row in range(height)
        }
        sums = RegisterLevels(k, k.zeros(self.number, self.lanes), turns, kernel.levels)

        def leave(row: int) -> None:
            self._store_row(row, sums.finish(row), strip, at)

        if not self.adds:
            self._add_products(sums, strip, at, at_start, at_end, k.i64(0), leave)
            return
        with k.loop(0, self.word["multiplier"], carry=sums.carry, nonempty=True) as m:
            rows = {r: row.offset(m * self.frame.block_size) for r, row in strip.sources.items()}
            part = replace(strip, sources=rows, bank=strip.bank.offset(m * self.taps))
            self._add_products(sums, part, at, at_start, at_end, m, lambda row: None)
        for row in turns:
            leave(row)

    def _store_row(self, row: int, sums: dict[Key, Vector], strip: _Strip, at: list[Int]) -> None:
        """Store a target row of a tile."""
        kernel, width = self.kernel, len(self.kernel.cols.phases)
        if strip.bias:
            sums = self._add_bias(sums, strip.bias, at)
        if kernel.weaves:
            for phase, (i, q) in itertools.product(range(width), enumerate(at)):
                there = strip.out.offset((row * width + phase) * kernel.pitch)
                there.offset(q).store(sums[row, phase, i])
            return
        with self._row_exists(strip.group, row):
            there = strip.out.offset(self.frame.target_cols * row)
            if kernel.alternate:
                even, odd = (sums[row, 0, part] for part in self.in_place.parts)
                there.offset(at[0]).store_alternate(even, odd)
                return
            for i, q in enumerate(at):
                self._store(there, q, [sums[row, phase, i] for phase in range(width)])

    def _add_bias(self, sums: dict[Key, Vector], bias: Pointer, at: list[Int]) -> dict[Key, Vector]:
        """Add the channel's bias to finished sums, or those of the channels that alternate along a row."""
        period = self.kernel.period
        if period:
            added = [bias.offset(q % period).load(self.lanes) for q in at]
        else:
            added = [bias.broadcast(self.lanes)] * len(at)
        return {key: sum_ + added[key[2]] for key, sum_ in sums.items()}

    def _add_products(
        self,
        sums: RegisterLevels,
        strip: _Strip,
        at: list[Int],
        at_start: bool,
        at_end: bool,
        plane: Int,
        leave: Callable[[int], None],
    ) -> None:
        """Add what one plane gives, in the contract's order; `plane` counts those of one sum."""
        k, kernel, period = self.k, self.kernel, self.kernel.period
        step = kernel.cols.step if kernel.direct else 1
        sources = {
            (r, i): row.offset(self.frame.place(q) * step)
            for r, row in strip.sources.items()
            for i, q in enumerate(at)
        }
        seen: dict[tuple[int, int], dict[int, Vector]] = {place: {} for place in sources}
        banks = [strip.bank.offset(q % period) if period else strip.bank for q in at]
        weights = {(tap, 0): weight for tap, weight in (strip.weights or {}).items()}

        def add(rows: Reads, cols: Windows, shift: Int, tap0: Int) -> None:
            """Add what some source rows give at some columns; `shift` and `tap0` move them along the window."""
            for offset, uses in sorted(reads(cols, 1).items()):
                live, column = dict(weights), self.padded.column(offset)
                for r, i in itertools.product(sorted(rows), range(len(at))):
                    if kernel.direct:
                        value = self.in_place.load_tap(
                            sources[r, i], offset, at_start, at_end, seen[r, i], i
                        )
                    else:
                        value = self.frame.load(sources[r, i].offset(shift + column))
                    if value is None:
                        continue
                    for (row, tap_h), (phase, tap_w) in itertools.product(rows[r], uses):
                        tap = tap_h * kernel.window[1] + tap_w
                        key = (tap, i if period else 0)
                        if key not in live:
                            place = banks[i].offset((tap0 + tap) * self.weight_pitch)
                            live[key] = (
                                place.load(self.lanes) if period else place.broadcast(self.lanes)
                            )
                        total = sums.now[row, phase, i]
                        total.value = k.fma(value, live[key], total.value)

        self._walk_rows(sums, add, plane * kernel.window[0], leave)

    def _walk_rows(
        self, sums: RegisterLevels, add: _Add, first: Int, leave: Callable[[int], None]
    ) -> None:
        """Walk the window: pieces of many rows in a loop. `first` is the number of its first row."""
        k, kernel = self.k, self.kernel
        size = piece_size(kernel.rows.longest)
        if kernel.direct or kernel.single or size == kernel.rows.longest:
            rows = _Rows(self.frame.row_reads, kernel.rows, first, k.i64(0), k.i64(0))
            self._walk_moments(sums, add, rows, leave)
            return
        loop = tap_loop(kernel.rows, size)
        with k.loop(0, loop.count, carry=sums.carry, nonempty=True) as n:
            rows = _Rows(
                reads(loop.piece, kernel.height),
                loop.piece,
                first + n * size,
                n * (loop.distance * self.frame.row_pitch),
                n * (loop.numbers * kernel.window[1]),
            )
            self._walk_moments(sums, add, rows, None)
        if loop.rest:
            later = reads(loop.rest, kernel.height)
            rows = _Rows(later, loop.rest, first + loop.count * size, k.i64(0), k.i64(0))
            self._walk_moments(sums, add, rows, None)
        for row in sums.turns:
            leave(row)

    def _walk_moments(
        self, sums: RegisterLevels, add: _Add, rows: _Rows, leave: Callable[[int], None] | None
    ) -> None:
        """Walk some rows of the window: each target row in order, several of them side by side."""
        k, kernel = self.k, self.kernel
        cols = kernel.cols
        found = moments(rows.reads, kernel.rows, self.together)
        ends = {
            row: n for n, part in enumerate(found) for row, _ in itertools.chain(*part.values())
        }
        for row in sums.turns:
            if leave and row not in ends:
                leave(row)
        for n, moment in enumerate(found):
            if not self.few_weights and not kernel.direct:
                # Else LLVM reads each weight once, and keeps vectors of it on the stack.
                k.forget_loads()
            loop = tap_loop(cols, RUN if kernel.levels else cols.longest, cols.step)
            with k.loop(0, loop.count, carry=sums.carry, nonempty=True) as run:
                self._walk_run(sums, add, moment, loop.piece, rows, run, run)
            if loop.rest:
                last = k.i64(loop.count)
                self._walk_run(sums, add, moment, loop.rest, rows, last, k.i64(0))
            for row in sums.turns:
                if leave and ends.get(row) == n:
                    leave(row)

    def _walk_run(
        self,
        sums: RegisterLevels,
        add: _Add,
        moment: Reads,
        cols: Windows,
        rows: _Rows,
        run: Int,
        far: Int,
    ) -> None:
        """Walk one run of some rows, pieces of many columns in a loop; it lies `far` times a run along the window."""
        k, kernel = self.k, self.kernel
        taps = [*itertools.chain.from_iterable(moment.values())] if kernel.levels else []
        for row, tap in taps:
            number = (rows.first + rows.place(row, tap)) * -(-kernel.window[1] // RUN) + run
            sums.begin_run(row, number)
        whole = tap_loop(kernel.cols, RUN, cols.step)
        shift, tap0 = rows.shift + far * whole.distance, rows.tap0 + far * whole.numbers
        size = cols.longest if kernel.direct else piece_size(cols.longest, cols.step)
        loop = tap_loop(cols, size, cols.step)
        with k.loop(0, loop.count, carry=sums.carry, nonempty=True) as n:
            add(moment, loop.piece, shift + n * loop.distance, tap0 + n * loop.numbers)
        if loop.rest:
            add(moment, loop.rest, shift, tap0)
        for row, _ in taps:
            sums.end_run(row)

    def _store(self, row: Pointer, q: Int, phases: list[Vector]) -> None:
        k, lanes, width = self.k, self.lanes, self.kernel.target_width
        if len(phases) == 1:
            if self.kernel.direct and self.kernel.cols.step == 2:
                phases = [
                    k.shuffle(
                        phases[0], None, [self.in_place.parted.index(i) for i in range(lanes)]
                    )
                ]
            if width:
                store_first(row, phases[0], width)
            else:
                row.offset(q).store(phases[0])
            return
        mixed = [i + half for i in range(lanes) for half in (0, lanes)]
        low = k.shuffle(phases[0], phases[1], mixed[:lanes])
        high = k.shuffle(phases[0], phases[1], mixed[lanes:])
        if width:
            store_first(row, low, min(width, lanes))
            if width > lanes:
                store_first(row.offset(lanes), high, width - lanes)
            return
        there = row.offset(q * 2)
        there.store(low)
        if not self.kernel.ragged[1]:
            there.offset(lanes).store(high)
            return
        # The last column of the last group does not exist.
        with k.branch(q.equals(self.word["groups_w"] - lanes)) as last:
            with last.then():
                there.offset(lanes - 1).store(k.shuffle(low, high, range(lanes - 1, 2 * lanes - 1)))
            with last.otherwise():
                there.offset(lanes).store(high)

    def _row_exists(self, group: Int, row: int) -> AbstractContextManager[None]:
        """Guard the phases that the last group of rows does not have."""
        phases = len(self.kernel.rows.phases)
        if self.kernel.ragged[0] and row % phases:
            return self.k.when(group * phases + row < self.word["target_rows"])
        return nullcontext()


@dataclass(frozen=True)
class _Strip:
    """One pass over the columns: R groups of rows."""

    sources: dict[int, Pointer]
    """Source rows by their offsets: the first column in place, or of a padded copy."""
    out: Pointer
    group: Int
    bank: Pointer
    weights: dict[int, Vector] | None
    """Weights in registers, if they are few."""
    bias: Pointer | None
    """The channel's own, or those of alternating channels in the bank."""


@dataclass(frozen=True)
class _Rows:
    """Rows of the window that are written out."""

    reads: Reads
    windows: Windows
    first: Int
    """Rows of the same phase in front of them, those of earlier planes of a sum counted as whole windows."""
    shift: Int
    """How far they lie along the source."""
    tap0: Int
    """How far they lie along the taps."""

    def place(self, row: int, tap: int) -> int:
        """Return how many of its phase lie in front of one of these rows."""
        taps = self.windows.phases[row % len(self.windows.phases)]
        return [each.number for each in taps].index(tap)
