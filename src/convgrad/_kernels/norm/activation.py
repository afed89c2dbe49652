"""Activations and their derivatives in registers: what the kernels' side of a row is made of (`_problem.activations`).

A NaN stays a NaN. No function of a C library is called: exponentials are a power of two times a polynomial, within two
units of rounding, and the normal distribution is a polynomial of degree 9 (float32) or 21 (float64) times one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..._base.errors import InternalError
from ..._compiler.codegen import F32, I32, I64, Element, KernelBuilder, Mask, Vector
from ..._problem import activations

_LOG2E = 1.4426950408889634
_BELL_AT_0 = 0.3989422804014327
"""1 / ln 2 and 1 / sqrt(2 pi), rounded correctly: not computed, as the C library of another system may differ."""
_EXP = {
    4: (-87.3, 88.0, 1.5 * 2.0**23, 23, 127, 0.693359375, -2.12194440e-4, 7),
    8: (-708.0, 709.0, 1.5 * 2.0**52, 52, 1023, 0.6931471803691238, 1.9082149292705877e-10, 13),
}
"""By bytes: least and greatest argument; what moves an integer to the lowest bits; mantissa bits and bias; ln 2 in two
parts, the first with enough zeros that its products are exact; degree."""

# The upper tail of the normal distribution times exp(a^2 / 2) as a polynomial of t = (a - 4) / (a + 4), highest first:
# Chebyshev fits on 0 <= a <= 14 (error 2.0e-9) and 0 <= a <= 40 (2.4e-17).
_TAIL = {
    4: (
        *(-7.35653222846984e-05, -0.00018204652954501978, 0.0006579204480108725),
        *(0.0005120789893122623, -0.008496116586990248, 0.030863360175470173),
        *(-0.0717071098056233, 0.12437936885079183, -0.17039772728259758, 0.0944106399837223),
    ),
    8: (
        *(-6.520042352638174e-10, -1.69832958361527e-10, 8.399919834277428e-09),
        *(9.156416982145351e-09, -4.8132467489409e-08, -9.32424249396661e-08),
        *(2.0225504773583392e-07, 6.605185487298884e-07, -8.275007368076689e-07),
        *(-4.303009702669928e-06, 4.6309270898751454e-06, 2.864816643697646e-05),
        *(-4.555476071514201e-05, -0.00018718423501242712, 0.0006388138344170589),
        *(0.0005075620712769707, -0.008492095480858648, 0.03086480410652297),
        *(-0.07170740733777943, 0.1243792553392592, -0.17039772154845498, 0.09441064130196895),
    ),
}
_FARTHEST = {4: 14.0, 8: 40.0}


def activated(k: KernelBuilder, activation: str, u: Vector, slope: Vector) -> Vector:
    """Return an activation of u."""
    found: Vector = activations.find(activation).kernel(Registers(k, u), u, slope)
    return found


def gradient(k: KernelBuilder, activation: str, u: Vector, g: Vector, slope: Vector) -> Vector:
    """Return g times the activation's derivative at u; for those whose result tells it also at their result."""
    emit = activations.find(activation).kernel_gradient
    if emit is None:
        raise InternalError(f"no kernel differentiates {activation}; please report this.")
    found: Vector = emit(Registers(k, u), u, g, slope)
    return found


class Registers:
    """What rows of activations are written over (`_problem.activations.Registers`)."""

    def __init__(self, k: KernelBuilder, like: Vector) -> None:
        self._k, self._like = k, like

    def _vector(self, value: Vector | float) -> Vector:
        if isinstance(value, Vector):
            return value
        return self._k.constant(self._like.element, self._like.lanes, value)

    def where(self, mask: Mask, one: Vector | float, other: Vector | float) -> Vector:
        return self._k.select(mask, self._vector(one), self._vector(other))

    def compare(self, u: Vector, how: str, number: float) -> Mask:
        return u.compare(how, "", number)

    def fma(self, a: Vector, b: Vector | float, c: Vector | float) -> Vector:
        return self._k.fma(a, self._vector(b), self._vector(c))

    def exp(self, u: Vector) -> Vector:
        return exponential(self._k, u)

    def expm1(self, u: Vector) -> Vector:
        return _exponential_less_one(self._k, u)

    def gate(self, u: Vector) -> tuple[Vector, Vector]:
        return _gate(self._k, u)

    def bell(self, u: Vector) -> tuple[Vector, Vector]:
        return _bell(self._k, u)


def exponential(k: KernelBuilder, x: Vector) -> Vector:
    """Return exp(x), at the ends of what can be told a very small and a very large number."""
    kind, lanes = x.element, x.lanes
    least, most, magic, mantissa, bias, high, low, degree = _EXP[kind.size]

    def constant(number: float, element: Element = kind) -> Vector:
        return k.constant(element, lanes, number)

    x = k.select(x.compare("olt", "", least), constant(least), x)
    x = k.select(x.compare("ogt", "", most), constant(most), x)
    moved = k.fma(x, constant(_LOG2E), constant(magic))
    whole = moved - magic
    rest = k.fma(whole, constant(-low), k.fma(whole, constant(-high), x))
    total = _polynomial(k, [1 / math.factorial(power) for power in range(degree + 1)], rest)
    bits = moved.bitcast(I32 if kind is F32 else I64).bitwise("shl", mantissa)
    return total * (bits + (bias << mantissa)).bitcast(kind)


def _exponential_less_one(k: KernelBuilder, x: Vector) -> Vector:
    """Return exp(x) - 1 of numbers below 0: near it as a series, as a difference would leave no digits."""
    degree = 8 if x.element is F32 else 14
    near = _polynomial(k, [1 / math.factorial(power + 1) for power in range(degree + 1)], x) * x
    return k.select(x.compare("ogt", "", -0.5), near, exponential(k, x) - 1.0)


def _polynomial(k: KernelBuilder, coefficients: Sequence[float], x: Vector) -> Vector:
    """Return the sum of coefficients times powers of x, lowest first: neighbours in pairs, and pairs of these.

    One power after the other would be a chain as long as the degree, on which the whole pass waits.
    """
    terms = [k.constant(x.element, x.lanes, each) for each in coefficients]
    while len(terms) > 1:
        pairs = zip(terms[1::2], terms[::2], strict=False)
        left = terms[-1:] if len(terms) % 2 else []
        terms = [*(k.fma(high, x, low) for high, low in pairs), *left]
        x = x * x
    return terms[0]


def _gate(k: KernelBuilder, v: Vector) -> tuple[Vector, Vector]:
    """Return the sigmoid of v, and one less it, of which a difference would leave no digits."""
    small = exponential(k, -v)
    gate = k.constant(v.element, v.lanes, 1) / (small + 1.0)
    return gate, small * gate


def _bell(k: KernelBuilder, u: Vector) -> tuple[Vector, Vector]:
    """Return the standard normal distribution up to u, and its density there."""
    far = _FARTHEST[u.element.size]
    size = k.select(u.less(0.0), -u, u)
    size = k.select(size.compare("ogt", "", far), k.constant(u.element, u.lanes, far), size)
    small = exponential(k, size * size * -0.5)
    place = (size - 4.0) / (size + 4.0)
    tail = _polynomial(k, _TAIL[u.element.size][::-1], place) * small
    below = k.select(u.less(0.0), tail, k.constant(u.element, u.lanes, 1) - tail)
    return below, small * _BELL_AT_0
