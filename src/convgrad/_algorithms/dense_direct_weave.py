"""Staging narrow groups so that several share a vector: ``staged[pixel][k][group]``.

Groups of 4 channels fill half a vector of 8. With the channels of two groups in turn, one broadcast of a pair gives all
lanes a factor of their own group, and nothing of another group is ever multiplied: not even by zero, which would turn
its infinities into NaNs here.
"""

from __future__ import annotations

from .._codegen import Int, Pointer, transpose
from .dense_direct_tile import Tiles


class Weaver(Tiles):
    """Writes the copy of neighbouring pixels of some woven groups."""

    def weave(self, source: Pointer, target: Pointer, count: Int) -> None:
        k, word, depth, lanes, woven = self.k, self.word, self.depth, self.lanes, self.kernel.woven
        plane, pitch = word["source_plane"], word["source_col"]
        usual = lanes // woven
        """Channels of a group when all woven ones fill one vector: the usual case, as many in as out."""
        turned = [k_ + q * usual for k_ in range(usual) for q in range(woven)]
        fast = depth.equals(usual)
        if self.kernel.planes:
            fast = fast & (count >= lanes)
        with k.branch(fast) as ways:
            with ways.then():
                if self.kernel.planes:
                    with k.loop(0, count, lanes, nonempty=True) as block:
                        pixel = k.min(block, count - lanes)
                        rows = [source.offset(plane * row + pixel).load(lanes) for row in turned]
                        for i, values in enumerate(transpose(rows)):
                            target.offset((pixel + i) * lanes).store(values)
                else:
                    with k.loop(0, count) as pixel:
                        values = source.offset(pixel * pitch).load(lanes)
                        target.offset(pixel * lanes).store(k.shuffle(values, None, turned))
            with (
                ways.otherwise(),
                k.loop(0, count) as pixel,
                k.loop(0, woven) as member,
                k.loop(0, depth) as channel,
            ):
                at = pixel * pitch + (member * depth + channel) * plane
                there = target.offset((pixel * depth + channel) * woven + member)
                there.store(source.offset(at).load())
