"""The filter of a dense problem in panels: ``packed[group][panel][tap][k][lane]``, in the compute type.

A panel holds the output channels that a tile computes at once, `lanes` wide. Where the channels do not fill the last
panel it starts earlier and repeats some of the one before, so kernels compute and store whole vectors only. A group
narrower than a vector has one panel, filled up with zeros; or several such groups share one, lane by lane in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import Int, KernelBuilder, Pointer, arithmetic, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.stage import copy, fill_zeros, transposed_copy
from ..shared.words import arguments

WORDS = (
    "depth",  # channels summed over, of one group: K
    "width",  # channels produced, of one group: N
    "groups",  # in the filter
    "taps",
    "window_cols",
    "panels",  # of one group
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
    """Whether groups are at least a panel wide."""
    woven: int = 1
    """Groups whose channels alternate in the lanes of a panel."""
    rows: bool = False
    """Whether to write ``packed[channel][tap][k]`` instead: for kernels whose vectors run along k."""


def emit(kernel: PackKernel, target: Target) -> KernelSource:
    """Write the kernel: words are filter, packed, then `WORDS`."""
    name = "dense_pack_t" if kernel.transposed else "dense_pack"
    k = KernelBuilder(symbol(name, kernel.dtype, str(kernel.vectors), target, kernel), target)
    storage = element(kernel.dtype)
    word = arguments(k, 2, WORDS)
    packer = PanelPacker(k, kernel, k.arg_pointer(0, storage), word)
    packed = k.arg_pointer(1, arithmetic(storage))
    with k.loop(k.begin, k.end) as item:
        panel, tap = item // word["taps"], item % word["taps"]
        at = panel * word["taps"] * packer.tap_size + tap * packer.tap_pitch
        packer.tap(panel, tap, packed.offset(at))
    return k.finish()


class PanelPacker:
    """Writes the code that packs one tap of one panel."""

    def __init__(
        self, k: KernelBuilder, kernel: PackKernel, source: Pointer, word: dict[str, Int]
    ) -> None:
        self.k = k
        self.kernel = kernel
        self.source = source
        self.word = word
        self.lanes = (
            kernel.vectors if kernel.rows else kernel.vectors * k.lanes(arithmetic(source.element))
        )
        self.tap_size = word["depth"] * self.lanes
        """Elements of one tap of one panel."""
        self.tap_pitch = word["depth"] if kernel.rows else self.tap_size
        """Elements from one tap of a panel to the next."""

    def tap(self, panel: Int, tap: Int, target: Pointer) -> None:
        """Write one tap of a panel, counted through all groups, to `target`."""
        k, word = self.k, self.word
        if self.kernel.transposed:
            col = tap % word["window_cols"]
            tap = tap - col + (word["window_cols"] - 1 - col)
        group, place = panel // word["panels"], panel % word["panels"]
        if self.kernel.rows:
            self._rows(group, tap, target)
            return
        if not self.kernel.whole:
            self._narrow(group, tap, target)
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

    def _rows(self, group: Int, tap: Int, target: Pointer) -> None:
        """Write one tap of each of a group's channels: ``target[channel][tap][k]``."""
        k, word = self.k, self.word
        depth, width, groups = (word[name] for name in ("depth", "width", "groups"))
        with k.loop(0, width) as channel:
            there = target.offset(channel * word["taps"] * depth)
            if self.kernel.transposed:
                at = ((tap * width + channel) * groups + group) * depth
                copy(k, self.source.offset(at), there, depth)
            else:
                with k.loop(0, depth) as row:
                    at = ((tap * depth + row) * groups + group) * width + channel
                    there.offset(row).store(self.source.offset(at).load())

    def _narrow(self, group: Int, tap: Int, target: Pointer) -> None:
        """Write rows of fewer channels than lanes, element by element: such filters are small."""
        k, word = self.k, self.word
        depth, width, groups = (word[name] for name in ("depth", "width", "groups"))
        woven = self.kernel.woven
        fill_zeros(k, target, self.tap_size)
        with k.loop(0, depth) as row, k.loop(0, woven) as member:
            there = target.offset(row * self.lanes + member)
            number = group * woven + member
            with k.loop(0, width) as lane:
                at = ((tap * depth + row) * groups + number) * width + lane
                if self.kernel.transposed:
                    at = ((tap * width + lane) * groups + number) * depth + row
                there.offset(lane * woven).store(self.source.offset(at).load())
