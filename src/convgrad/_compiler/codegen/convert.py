"""float16 and bfloat16 to float32 and back, on vectors of any width.

Rounding is to nearest, ties to even, overflow to infinity, subnormals kept. No result depends on
how the CPU treats subnormal float32, so a process that runs with denormals-are-zero set gets the
same bits. LLVM's own `fptrunc` to bfloat, and both float16 conversions on CPUs without them, are
calls to functions of the compiler's run-time library, which no kernel may make.

A NaN stays a NaN with its sign; in float16 it is also made quiet. What is rounded to bfloat16 must
be the result of arithmetic on numbers that were bfloat16: x86 and ARM make NaNs with an empty
payload, or pass on one of an operand's, and the 16 bits that widening appended are zero in both.
So no kernel can have a NaN that rounding would carry into an infinity or a zero, and half the
instructions that would look for one are saved. (AVX512-BF16's own conversion takes a subnormal for
zero, whatever the process has set, which is why no row of `targets` has it.)
"""

from __future__ import annotations

from .types import BF16, F16, F32, I16, I32, Element, type_text
from .vectors import Vector, select, shuffle


def widen(bits: Vector, storage: Element) -> Vector:
    """Turn stored bits into the compute type."""
    if storage is BF16:
        return bits.cast("zext", I32).bitwise("shl", 16).bitcast(F32)
    if storage is F16:
        return _half_by_cpu(bits) if bits.emitter.target.has_half else _half_by_integers(bits)
    return bits


def narrow(values: Vector, storage: Element) -> Vector:
    """Round the compute type into bits to store."""
    if storage is BF16:
        return _to_bfloat(values)
    if storage is F16:
        by_cpu = values.emitter.target.has_half
        return _to_half_by_cpu(values) if by_cpu else _to_half_by_integers(values)
    return values


def _half_by_cpu(bits: Vector) -> Vector:
    half = "half" if bits.lanes == 1 else f"<{bits.lanes} x half>"
    emitter = bits.emitter
    halves = emitter.value(f"bitcast {bits.type_text} {bits.text} to {half}")
    floats = type_text(F32, bits.lanes)
    return Vector(emitter, emitter.value(f"fpext {half} {halves} to {floats}"), F32, bits.lanes)


def _to_half_by_cpu(values: Vector) -> Vector:
    half = "half" if values.lanes == 1 else f"<{values.lanes} x half>"
    emitter = values.emitter
    halves = emitter.value(f"fptrunc {values.type_text} {values.text} to {half}")
    bits = type_text(I16, values.lanes)
    return Vector(emitter, emitter.value(f"bitcast {half} {halves} to {bits}"), I16, values.lanes)


def _half_by_integers(bits: Vector) -> Vector:
    wide = bits.cast("zext", I32)
    sign = wide.bitwise("and", 0x8000).bitwise("shl", 16)
    magnitude = wide.bitwise("and", 0x7FFF)
    shifted = magnitude.bitwise("shl", 13)
    normal = shifted + (112 << 23)
    # A subnormal m * 2^-24 is (2^-14 + m * 2^-24) - 2^-14, and both terms are normal float32.
    small = (shifted + (113 << 23)).bitcast(F32) - 2.0**-14
    special = shifted + (224 << 23)
    quiet = special.bitwise("or", 0x00400000)
    special = select(magnitude.compare("", "ugt", 0x7C00), quiet, special)
    result = select(magnitude.compare("", "ult", 0x0400), small.bitcast(I32), normal)
    result = select(magnitude.compare("", "uge", 0x7C00), special, result)
    return result.bitwise("or", sign).bitcast(F32)


def _to_half_by_integers(values: Vector) -> Vector:
    wide = values.bitcast(I32)
    sign = wide.bitwise("lshr", 16).bitwise("and", 0x8000)
    magnitude = wide.bitwise("and", 0x7FFFFFFF)
    odd = magnitude.bitwise("lshr", 13).bitwise("and", 1)
    # The exponent moves by 127 - 15; 0xFFF plus the odd bit rounds the 13 dropped bits to even.
    normal = (magnitude + (0xFFF - (112 << 23)) + odd).bitwise("lshr", 13)
    # Adding 0.5 lines a small number's bits up with float16's subnormals and lets the adder round.
    small = (magnitude.bitcast(F32) + 0.5).bitcast(I32) - 0x3F000000
    nan = magnitude.bitwise("lshr", 13).bitwise("and", 0x3FF).bitwise("or", 0x7E00)
    infinity = Vector.constant(values.emitter, I32, values.lanes, 0x7C00)
    large = select(magnitude.compare("", "ugt", 0x7F800000), nan, infinity)
    result = select(magnitude.compare("", "ult", 113 << 23), small, normal)
    result = select(magnitude.compare("", "uge", (127 + 16) << 23), large, result)
    return result.bitwise("or", sign).cast("trunc", I16)


def widen_alternate(bits: Vector, part: int) -> Vector:
    """Turn every other one of some bfloat16 into float32: the even ones (part 0) or the odd ones.

    One instruction per vector, where neighbours take a shuffle and a shift. All CPUs here store
    the lower of two neighbours first.
    """
    pairs = bits.bitcast(I32)
    wide = pairs.bitwise("and", -0x10000) if part else pairs.bitwise("shl", 16)
    return wide.bitcast(F32)


def narrow_alternate(even: Vector, odd: Vector) -> Vector:
    """Round what `widen_alternate` took apart, and put it together again."""
    low = _rounded(even).bitwise("lshr", 16).bitcast(I16)
    high = _rounded(odd).bitcast(I16)
    return shuffle(low, high, [lane + lane % 2 * low.lanes for lane in range(low.lanes)])


def _to_bfloat(values: Vector) -> Vector:
    return _rounded(values).bitwise("lshr", 16).cast("trunc", I16)


def _rounded(values: Vector) -> Vector:
    """Return 32 bits of which the upper 16 are the bfloat16."""
    wide = values.bitcast(I32)
    odd = wide.bitwise("lshr", 16).bitwise("and", 1)
    # 0x7FFF plus the odd bit rounds the 16 dropped bits to even. They are zero in every NaN (see
    # above), so that nothing is carried into one.
    return wide + odd + 0x7FFF
