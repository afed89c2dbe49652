"""Square transposes of vectors in registers.

Rows become columns in two rounds: inside 128-bit parts by interleaving (one unpack instruction
per shuffle on x86, zip on ARM), then whole 128-bit parts change places. Eight float32 rows of
eight cost 24 shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence

from .vectors import Vector, shuffle


def transpose(rows: Sequence[Vector]) -> list[Vector]:
    """Return the columns of as many rows as each has lanes; a power of two."""
    lanes = rows[0].lanes
    assert len(rows) == lanes and lanes & (lanes - 1) == 0, (len(rows), lanes)
    part = min(lanes, 16 // rows[0].element.size)
    work = list(rows)
    width = 1
    while width < part:
        work = _interleave(work, width, part)
        width *= 2
    # Pairs were written back in place, which leaves each block in bit-reversed order.
    bits = part.bit_length() - 1
    work = [work[i - i % part + _reversed_bits(i % part, bits)] for i in range(lanes)]
    while width < lanes:
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
    for i in range(lanes):
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
    for i in range(lanes):
        if not i & width:
            result[i] = shuffle(rows[i], rows[i + width], keep)
            result[i + width] = shuffle(rows[i], rows[i + width], take)
    return result
