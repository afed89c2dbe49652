"""The filter of a dense problem in panels: ``packed[group][panel][tap][k][lane]``, in the compute type.

A panel holds the output channels that a tile computes at once, `lanes` wide. Where the channels do not fill the last
panel it starts earlier and repeats some of the one before, so kernels compute and store whole vectors only. Groups
too narrow for a vector are merged: their filters stand block by block on the diagonal of a larger one, zeros elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._codegen import Int, KernelBuilder, Pointer, compute, element, symbol
from .._kernel import KernelSource
from .._targets import Target
from .dense_stage import clear, copy, transposed_copy

WORDS = (
    "depth",  # channels summed over, of one group: K
    "width",  # channels produced, of one group: N
    "groups",  # merged ones
    "merged",  # groups in a merged one
    "taps",
    "window_cols",
    "panels",  # of one merged group
)
"""The words that say what a packed filter looks like; kernels that pack for themselves have them too."""


_AHEAD = 24
"""Rows asked for ahead of the one being copied."""


@dataclass(frozen=True)
class PackKernel:
    """Writes a filter in panels; items are pairs of a panel and a tap."""

    dtype: str
    vectors: int
    """Vectors of a panel."""
    transposed: bool
    """Whether the filter's last axis is summed over and its columns are taken last first: for an input gradient."""
    whole: bool
    """Whether groups are at least a panel wide and not merged."""
    rows: bool = False
    """Whether to write ``packed[channel][tap][k]`` instead: for kernels whose vectors run along k."""


def emit(kernel: PackKernel, target: Target) -> KernelSource:
    """Write the kernel: words are filter, packed, then `WORDS`."""
    name = "dense_pack_t" if kernel.transposed else "dense_pack"
    k = KernelBuilder(symbol(name, kernel.dtype, str(kernel.vectors), target, kernel), target)
    storage = element(kernel.dtype)
    word = {name: k.arg_i64(2 + i) for i, name in enumerate(WORDS)}
    packer = Packer(k, kernel, k.arg_pointer(0, storage), word)
    packed = k.arg_pointer(1, compute(storage))
    with k.loop(k.begin, k.end) as item:
        panel, tap = item // word["taps"], item % word["taps"]
        at = panel * word["taps"] * packer.tap_size + tap * packer.tap_pitch
        packer.tap(panel, tap, packed.offset(at))
    return k.finish()


class Packer:
    """Writes the code that packs one tap of one panel."""

    def __init__(
        self, k: KernelBuilder, kernel: PackKernel, source: Pointer, word: dict[str, Int]
    ) -> None:
        self.k = k
        self.kernel = kernel
        self.source = source
        self.word = word
        self.lanes = (
            kernel.vectors if kernel.rows else kernel.vectors * k.lanes(compute(source.element))
        )
        self.tap_size = word["depth"] * word["merged"] * self.lanes
        """Elements of one tap of one panel."""
        self.tap_pitch = word["depth"] * word["merged"] if kernel.rows else self.tap_size
        """Elements from one tap of a panel to the next."""

    def tap(self, panel: Int, tap: Int, target: Pointer) -> None:
        """Write one tap of a panel, counted through all groups, to `target`."""
        k, word = self.k, self.word
        if self.kernel.transposed:
            col = tap % word["window_cols"]
            tap = tap - col + (word["window_cols"] - 1 - col)
        group, place = panel // word["panels"], panel % word["panels"]
        if self.kernel.rows:
            self._rows(tap, target)
            return
        if not self.kernel.whole:
            self._merged(group, place, tap, target)
            return
        depth, width, lanes = word["depth"], word["width"], self.lanes
        start = k.min(place * lanes, width - lanes)
        if self.kernel.transposed:
            pitch = word["groups"] * depth
            source = self.source.offset((tap * width + start) * pitch + group * depth)
            transposed_copy(k, source, target, lanes, depth, pitch, lanes)
            return
        pitch = word["groups"] * width
        source = self.source.offset(tap * depth * pitch + group * width + start)
        vector = k.lanes(target.element)
        with k.loop(0, depth) as row:
            here, there = source.offset(row * pitch), target.offset(row * lanes)
            # Rows lie a page or so apart, where no hardware looks ahead.
            here.offset(pitch * _AHEAD).prefetch()
            for lane in range(0, lanes, vector):
                there.offset(lane).store(here.offset(lane).load(vector))

    def _rows(self, tap: Int, target: Pointer) -> None:
        """Write one tap of every channel, all groups merged into one: zeros outside a channel's own group."""
        k, word = self.k, self.word
        depth, width, merged = (word[name] for name in ("depth", "width", "merged"))
        with k.loop(0, width * merged) as channel:
            member = channel // width
            there = target.offset(channel * word["taps"] * depth * merged)
            clear(k, there, depth * merged)
            there = there.offset(member * depth)
            if self.kernel.transposed:
                at = (tap * width + channel % width) * (depth * merged) + member * depth
                copy(k, self.source.offset(at), there, depth)
            else:
                with k.loop(0, depth) as row:
                    at = (tap * depth + row) * (width * merged) + channel
                    there.offset(row).store(self.source.offset(at).load())

    def _merged(self, group: Int, place: Int, tap: Int, target: Pointer) -> None:
        """Write blocks on a diagonal, element by element: narrow groups have small filters."""
        k, word = self.k, self.word
        depth, width, merged = (word[name] for name in ("depth", "width", "merged"))
        lanes = self.lanes
        start = k.max(k.min(place * lanes, width * merged - lanes), 0)
        clear(k, target, self.tap_size)
        with k.loop(0, merged) as member:
            number = group * merged + member
            first = k.max(start - member * width, 0)
            last = k.min(start + lanes - member * width, width)
            with k.loop(0, depth) as row:
                there = target.offset((member * depth + row) * lanes + member * width - start)
                if self.kernel.transposed:
                    pitch = word["groups"] * merged * depth
                    here = self.source.offset(tap * width * pitch + number * depth + row)
                    with k.loop(first, last) as lane:
                        there.offset(lane).store(here.offset(lane * pitch).load())
                else:
                    pitch = word["groups"] * merged * width
                    here = self.source.offset((tap * depth + row) * pitch + number * width + first)
                    copy(k, here, there.offset(first), k.max(last - first, 0))
