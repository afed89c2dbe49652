"""Vectors shorter than the machine's, of a length known when the kernel is written: loads and stores without masks.

Masked accesses are one instruction for some types on some targets and a branch per lane elsewhere. Two overlapping
accesses of a power of two cover any length: 7 lanes are lanes 0-3 and 3-6.
"""

from __future__ import annotations

from ..._compiler.codegen import KernelBuilder, Pointer, Vector


def load_first(k: KernelBuilder, pointer: Pointer, count: int, lanes: int) -> Vector:
    """Read `count` elements, nothing behind them; the lanes behind are zero."""
    if count >= lanes:
        return pointer.load(lanes)
    part = _power(count)
    low = pointer.load(part)
    if part == lanes // 2 == count:
        return k.shuffle(low, k.zeros(low.element, part), range(lanes))
    high = pointer.offset(count - part).load(part)
    kept = [*range(part), *range(part + 2 * part - count, 2 * part)]
    joined = k.shuffle(low, high, kept + [0] * (lanes - count))
    zeros = k.zeros(low.element, lanes)
    return k.shuffle(joined, zeros, [i if i < count else lanes + i for i in range(lanes)])


def store_first(pointer: Pointer, values: Vector, count: int) -> None:
    """Write the first `count` lanes, nothing behind them."""
    if count >= values.lanes:
        pointer.store(values)
        return
    if "avx512bw" in pointer.emitter.target.needs and count > values.lanes // 2 > 1:
        # One instruction: 14 x 14, 5x5 4% less.
        pointer.store(values, mask=[lane < count for lane in range(values.lanes)])
        return
    part = _power(count)
    pointer.store(values.part(0, part))
    if part < count:
        pointer.offset(count - part).store(values.part(count - part, part))


def _power(count: int) -> int:
    return 1 << (count.bit_length() - 1)
