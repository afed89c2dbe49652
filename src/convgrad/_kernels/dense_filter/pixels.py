"""The gradient of a bias in the dense filter gradient: the pixels of a chunk's copy, added up while they are near.

A copy is used for hundreds of products per number; one more addition does not show. Chunks overlap in x where windows
do, so x is added up only where each of its pixels has a window of its own. Sums are short here too: runs of pixels, the
runs of a chunk, and the chunks of a slice in a wider type.
"""

from __future__ import annotations

from ..._compiler.codegen import Bool, Int, KernelBuilder, Pointer, arithmetic, element
from ..shared.pixel_sum import sum_of_rows
from ..shared.reduce import partial_type
from .pack import Pack
from .words import DenseFilterKernel


class PixelSums:
    """Writes the sums of a kernel's chunks into a slice's row of them."""

    def __init__(
        self, k: KernelBuilder, kernel: DenseFilterKernel, word: dict[str, Int], room: Pointer
    ) -> None:
        """`room` is memory for the sums of one tile, which nobody needs between two tiles."""
        self.k, self.word, self.room = k, word, room
        self.number = arithmetic(element(kernel.dtype))
        self.wide = element(partial_type(kernel.dtype))
        self.lanes = k.lanes(self.number)

    def add(self, pack: Pack, count: Int, slice_: Int, first: Bool) -> None:
        """Add the pixels of a chunk to the sums of its slice, or start them with its first chunk."""
        k, word = self.k, self.word
        row = k.arg_pointer(3, self.wide).offset(word["sums_at"] + slice_ * word["sums_pitch"])
        with (
            k.loop(pack.group, pack.group_end, nonempty=True) as group,
            k.loop(pack.tile, pack.tile_end, nonempty=True) as tile,
        ):
            pixels, start = pack.place(group, tile), pack.start(tile)
            # Vectors may read into the next pixel: lanes behind the tile's channels are not looked at.
            parts = range(0, pack.width, self.lanes)
            sums = sum_of_rows(k, [pixels + at for at in parts], count, pack.width, self.lanes)
            for at, value in zip(parts, sums, strict=True):
                self.room.offset(at).store(value)
            channels = k.min(pack.start(tile + 1), pack.channels) - start
            place = row.offset(group * pack.channels + start)
            with k.loop(0, channels, nonempty=True) as i:
                total = self.room.offset(i).load()
                if self.wide is not self.number:
                    total = total.cast("fpext", self.wide)
                there = place.offset(i)
                there.store(k.select(first, total, there.load() + total))
