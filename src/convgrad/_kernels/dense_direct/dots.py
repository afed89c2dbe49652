"""The end of sums with several chains, where `dense_direct` has vectors run along the channels summed over."""

from __future__ import annotations

from ..._compiler.codegen import KernelBuilder, Pointer, Vector
from .frame import Frame


def store_dots(
    frame: Frame, targets: list[Pointer], sums: list[Vector], bias: Pointer | None
) -> None:
    """Add up the chains of each result of a tile and store it: `sums` are vectors by pixel, channel and chain."""
    width = frame.kernel.vectors
    room = 1 << (width - 1).bit_length()
    """Lanes of a pixel; the last channel fills them up."""
    results = _folded_parts(sums, frame.parts)
    pixels = [results[i : i + width] for i in range(0, len(results), width)]
    filled = [each for pixel in pixels for each in (*pixel, *pixel[-1:] * (room - width))]
    found = _folded(frame.k, filled)
    last = _last(frame, bias, room)
    lanes = frame.lanes
    found = [each + last[i % len(last)] for i, each in enumerate(found)]
    for i, there in enumerate(targets):
        channel = 0
        for piece in (4, 2, 1):
            while piece <= lanes and width - channel >= piece:
                vector, lane = divmod(i * room + channel, lanes)
                there.offset(channel).store(found[vector].part(lane, piece))
                channel += piece


def _folded_parts(sums: list[Vector], parts: int) -> list[Vector]:
    """Add the vectors of each result, halves onto halves as inside of a vector."""
    while parts > 1:
        parts //= 2
        sums = [
            sums[i + j] + sums[i + j + parts]
            for i in range(0, len(sums), 2 * parts)
            for j in range(parts)
        ]
    return sums


def _folded(k: KernelBuilder, found: list[Vector]) -> list[Vector]:
    """Add the lanes of each vector, halves onto halves, two vectors at a time; a lane of the outcome is one of them.

    One by one, 12 results of 16 lanes take 5 instructions a level each, and more than half the time of a tile of 32
    channels; so they take 3 for two. What is left over at the end of the last vector is to be ignored.
    """
    lanes = size = found[0].lanes
    while size > 1:
        half = size // 2
        firsts = [i for start in range(0, 2 * lanes, size) for i in range(start, start + half)]
        pairs = [
            (each, found[i + 1] if i + 1 < len(found) else each) for i, each in enumerate(found)
        ]
        found = [
            k.shuffle(a, b, firsts) + k.shuffle(a, b, [i + half for i in firsts])
            for a, b in pairs[::2]
        ]
        size = half
    return found


def _last(frame: Frame, bias: Pointer | None, room: int) -> list[Vector]:
    """Return what is added to the vectors of results in turn: bias, or +0. A sum may be -0, a result not."""
    k, lanes = frame.k, frame.lanes
    zero = k.zeros(frame.number, lanes)
    if not bias:
        return [zero]
    values = [bias.offset(n).broadcast(lanes) for n in range(frame.kernel.vectors)]
    found = []
    for start in range(0, max(room, lanes), lanes):
        vector = values[0]
        for n, value in enumerate(values):
            here = [(start + lane) % room == n for lane in range(lanes)]
            vector = k.select(k.mask(here), value, vector)
        found.append(vector + zero)
    return found
