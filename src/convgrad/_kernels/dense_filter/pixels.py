"""The gradient of a bias in the dense filter gradient: the pixels of a chunk's copy, added up while they are near.

A copy is used for hundreds of products per number; one more addition does not show. Chunks overlap in x where windows
do, so x is added up only where each of its pixels has a window of its own. The order is that of a filter gradient whose
other image is 1 everywhere: one chain for each run of pixels, runs in order, and units by the tree.
"""

from __future__ import annotations

from ..._compiler.codegen import Int, KernelBuilder, Pointer, arithmetic, element
from .nodes import Leaf, Nodes
from .pack import Pack
from .words import DenseFilterKernel

_CHAINS = 4
"""Vectors that are added up side by side, about: an addition waits for the one before."""


class PixelSums:
    """Writes the sums of a kernel's chunks into a slice's row of them."""

    def __init__(
        self,
        k: KernelBuilder,
        kernel: DenseFilterKernel,
        word: dict[str, Int],
        room: Pointer,
        ends: Pointer,
        nodes: Nodes,
    ) -> None:
        """`room` is memory for the sums of a tile, which nobody needs between two tiles; `ends` says where runs end."""
        self.k, self.word, self.room, self.ends, self.nodes = k, word, room, ends, nodes
        self.number = arithmetic(element(kernel.dtype))
        self.lanes = k.lanes(self.number)

    def add(self, pack: Pack, runs: Int, slice_: Int, leaf: Leaf) -> None:
        """Add the pixels of a chunk to those of its slice."""
        k, word = self.k, self.word
        row = k.arg_pointer(3, self.number).offset(word["sums_at"] + slice_ * word["sums_pitch"])
        waiting = k.scratch(self.number, 0).offset(word["sums_stack_at"])
        # Vectors may read into the next pixel: lanes behind the tile's channels are not looked at.
        parts = range(0, pack.width, self.lanes)
        room = len(parts) * self.lanes
        tiles = pack.tile_end - pack.tile
        pitch = (pack.group_end - pack.group) * tiles * room
        some = max(1, _CHAINS // len(parts))
        with (
            k.loop(pack.group, pack.group_end, nonempty=True) as group,
            k.loop(pack.tile, pack.tile_end, some, nonempty=True) as first,
        ):
            # The last tile may be added up several times: all that is read then is not written.
            several = [k.min(first + i, pack.tile_end - 1) for i in range(some)]
            pixels = [pack.place(group, tile) + at for tile in several for at in parts]
            zero = k.zeros(self.number, self.lanes)
            totals = [k.variable(zero) for _ in pixels]
            begin = k.variable(k.i64(0))
            with k.loop(0, runs, carry=[*totals, begin], nonempty=True) as run:
                end = self.ends.offset(run).load_int()
                chains = [k.variable(zero) for _ in pixels]
                with k.loop(begin.value, end, carry=chains) as at:
                    for place, chain in zip(pixels, chains, strict=True):
                        chain.value = chain.value + place.offset(at * pack.width).load(self.lanes)
                for total, chain in zip(totals, chains, strict=True):
                    total.value = total.value + chain.value
                begin.value = end
            for number, each in enumerate(several):
                found = totals[number * len(parts) :][: len(parts)]
                place = waiting.offset(((group - pack.group) * tiles + each - pack.tile) * room)
                self.nodes.add(found, place, pitch, leaf)
                with k.branch(leaf.last) as either:
                    with either.then():
                        for part, total in zip(parts, found, strict=True):
                            self.room.offset(part).store(total.value)
                        start = pack.start(each)
                        channels = k.min(pack.start(each + 1), pack.channels) - start
                        there = row.offset(group * pack.channels + start)
                        with k.loop(0, channels, nonempty=True) as i:
                            there.offset(i).store(self.room.offset(i).load())
                    with either.otherwise():
                        self.nodes.keep(found, place, pitch, leaf)
