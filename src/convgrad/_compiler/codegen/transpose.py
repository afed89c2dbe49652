"""Square transposes of vectors in registers, one square or several side by side.

Rows become columns in two rounds: inside 128-bit parts by interleaving (one unpack instruction
per shuffle on x86, zip on ARM), then whole 128-bit parts change places. Eight float32 rows of
eight cost 24 shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence

from .vectors import Vector, shuffle


def transpose(rows: Sequence[Vector]) -> list[Vector]:
    """Return the columns of a power of two of rows; where rows are longer, those of each square by itself.

    Two rows ``a0 a1 a2 a3`` and ``b0 b1 b2 b3`` are two squares: they become ``a0 b0 a2 b2`` and ``a1 b1 a3 b3``.
    """
    side, lanes = len(rows), rows[0].lanes
    assert lanes % side == 0 and lanes & (lanes - 1) == 0, (side, lanes)
    part = min(side, 16 // rows[0].element.size)
    work = list(rows)
    width = 1
    while width < part:
        work = _interleave(work, width, part)
        width *= 2
    # Pairs were written back in place, which leaves each block in bit-reversed order.
    bits = part.bit_length() - 1
    work = [work[i - i % part + _reversed_bits(i % part, bits)] for i in range(side)]
    while width < side:
        work = _exchange(work, width)
        width *= 2
    return work


def _interleave(rows: list[Vector], width: int, part: int) -> list[Vector]:
    """Pair rows `width` apart; a pair becomes its lower and its upper halves, interleaved."""
    lanes = rows[0].lanes
    lower, upper = [], []
    for base in range(0, lanes, part):
        for group in range(0, part // 2, width):
            for source in (0, lanes):
                lower += [base + source + group + i for i in range(width)]
                upper += [base + source + part // 2 + group + i for i in range(width)]
    result = list(rows)
    for i in range(len(rows)):
        if not i & width:
            pair = rows[i], rows[i + width]
            result[i] = shuffle(*pair, lower)
            result[i + width] = shuffle(*pair, upper)
    return result


def _reversed_bits(number: int, bits: int) -> int:
    return sum((number >> bit & 1) << (bits - 1 - bit) for bit in range(bits))


def _exchange(rows: list[Vector], width: int) -> list[Vector]:
    """Swap the off-diagonal blocks of `width` lanes between rows `width` apart."""
    lanes = rows[0].lanes
    keep = [lane if not lane & width else lanes + lane - width for lane in range(lanes)]
    take = [lane + width if not lane & width else lanes + lane for lane in range(lanes)]
    result = list(rows)
    for i in range(len(rows)):
        if not i & width:
            result[i] = shuffle(rows[i], rows[i + width], keep)
            result[i + width] = shuffle(rows[i], rows[i + width], take)
    return result
