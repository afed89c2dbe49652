"""Staging narrow groups so that several share a vector: ``staged[pixel][k][group]``.

Groups of 4 channels fill half a vector of 8. With the channels of two groups in turn, one broadcast of a pair gives all
lanes a factor of their own group, and nothing of another group is ever multiplied: not even by zero, which would turn
its infinities into NaNs here.
"""

from __future__ import annotations

from ..._compiler.codegen import Int, Pointer, Vector, transpose
from ..._compiler.codegen.vectors import shuffle
from .frame import Frame


def weave(frame: Frame, source: Pointer, target: Pointer, count: Int) -> None:
    """Copy neighbouring pixels of some woven groups."""
    k, word, depth, lanes = frame.k, frame.word, frame.depth, frame.lanes
    woven, planes = frame.kernel.woven, frame.kernel.planes
    plane, pitch = word["source_plane"], word["source_col"]
    usual = lanes // woven
    """Channels of each group in one vector of them all."""
    fast = (depth % usual).equals(0)
    if planes:
        fast = fast & (count >= lanes)
    with k.branch(fast) as ways:
        with ways.then(), k.loop(0, depth, usual, nonempty=True) as first:
            there = target.offset(first * woven)
            if planes:
                places = [(q, i) for i in range(usual) for q in range(woven)]
                with k.loop(0, count, lanes, nonempty=True) as block:
                    pixel = k.min(block, count - lanes)
                    rows = [
                        source.offset((depth * q + first + i) * plane + pixel).load(lanes)
                        for q, i in places
                    ]
                    for i, values in enumerate(transpose(rows)):
                        there.offset((pixel + i) * (depth * woven)).store(values)
            else:
                turned = [i + q * usual for i in range(usual) for q in range(woven)]
                with k.loop(0, count) as pixel:
                    here = source.offset(pixel * pitch + first)
                    parts = [here.offset(depth * q).load(usual) for q in range(woven)]
                    values = k.shuffle(_joined(parts), None, turned)
                    there.offset(pixel * (depth * woven)).store(values)
        with (
            ways.otherwise(),
            k.loop(0, count) as pixel,
            k.loop(0, woven) as member,
            k.loop(0, depth) as channel,
        ):
            at = pixel * pitch + (member * depth + channel) * plane
            there = target.offset((pixel * depth + channel) * woven + member)
            there.store(source.offset(at).load())


def _joined(parts: list[Vector]) -> Vector:
    """Return the lanes of a power of two of vectors as one."""
    while len(parts) > 1:
        lanes = range(2 * parts[0].lanes)
        parts = [shuffle(a, b, lanes) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
