"""Activations and their derivatives in registers.

A NaN stays a NaN. No function of a C library is called: exponentials are a power of two times a polynomial, within two
units of rounding, and the normal distribution is a polynomial of degree 9 (float32) or 21 (float64) times one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..._compiler.codegen import F32, I32, I64, Element, KernelBuilder, Vector
from ..._problem.norm.task import unknown_activation

_LOG2E = 1 / math.log(2)
_LN2 = math.log(2)
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
_TANH = 2 * math.sqrt(2 / math.pi)
_CUBE = 0.044715


def value(k: KernelBuilder, activation: str, u: Vector, slope: Vector) -> Vector:
    """Return an activation of u."""
    zero = k.constant(u.element, u.lanes, 0)
    if activation in ("relu", "relu6"):
        above = k.select(u.compare("ole", "", 0.0), zero, u)
        if activation == "relu":
            return above
        six = k.constant(u.element, u.lanes, 6)
        return k.select(above.compare("oge", "", 6.0), six, above)
    if activation == "leaky_relu":
        return k.select(u.compare("ogt", "", 0.0), u, u * slope)
    if activation == "hardswish":
        return u * _hard_gate(k, u)
    if activation == "silu":
        return u / (exponential(k, -u) + 1.0)
    if activation == "gelu":
        return u * _bell(k, u)[0]
    if activation == "gelu_tanh":
        return u / (exponential(k, -_inner(k, u)) + 1.0)
    if activation == "elu":
        return k.select(u.compare("ogt", "", 0.0), u, _exponential_less_one(k, u))
    if activation == "mish":
        # The tangent of log(1 + e) is e * (e + 2) / (e * (e + 2) + 2), which is 1 from 20 on.
        twenty = k.constant(u.element, u.lanes, 20)
        growth = exponential(k, k.select(u.compare("ogt", "", 20.0), twenty, u))
        above = growth * (growth + 2.0)
        return u * (above / (above + 2.0))
    if activation == "sigmoid":
        return _gate(k, u)[0]
    if activation == "tanh":
        # Of numbers of one sign; (exp(2 u) - 1) / (exp(2 u) + 1) keeps all digits near 0.
        below = k.select(u.compare("ogt", "", 0.0), -u, u)
        less = _exponential_less_one(k, below + below)
        found = less / (less + 2.0)
        return k.select(u.compare("ogt", "", 0.0), -found, found)
    if activation != "none":
        raise unknown_activation(activation)
    return u


def gradient(k: KernelBuilder, activation: str, u: Vector, g: Vector, slope: Vector) -> Vector:
    """Return g times the activation's derivative at u; for activations of `task.KINKED` also at their result."""
    zero, one = k.constant(u.element, u.lanes, 0), k.constant(u.element, u.lanes, 1)
    if activation in ("relu", "relu6"):
        inside = k.select(u.compare("ole", "", 0.0), zero, g)
        return (
            k.select(u.compare("oge", "", 6.0), zero, inside) if activation == "relu6" else inside
        )
    if activation == "leaky_relu":
        return k.select(u.compare("ogt", "", 0.0), g, g * slope)
    if activation == "hardswish":
        rising = g * k.select(u.compare("oge", "", 3.0), one, (u + 1.5) * (1 / 3))
        # Chosen, not multiplied: where nothing passes, no NaN does.
        return k.select(u.compare("ole", "", -3.0), zero, rising)
    if activation == "silu":
        gate, rest = _gate(k, u)
        return g * (gate * k.fma(u, rest, one))
    if activation == "gelu":
        below, density = _bell(k, u)
        return g * k.fma(u, density, below)
    if activation == "gelu_tanh":
        gate, rest = _gate(k, _inner(k, u))
        cube = k.constant(u.element, u.lanes, 3 * _TANH * _CUBE)
        rise = k.fma(u * u, cube, k.constant(u.element, u.lanes, _TANH))
        return g * k.fma(u * rise, gate * rest, gate)
    if activation != "none":
        raise unknown_activation(activation)
    return g


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


def _hard_gate(k: KernelBuilder, u: Vector) -> Vector:
    moved = u + 3.0
    above = k.select(moved.compare("ole", "", 0.0), k.zeros(u.element, u.lanes), moved)
    six = k.constant(u.element, u.lanes, 6)
    return k.select(above.compare("oge", "", 6.0), six, above) * (1 / 6)


def _inner(k: KernelBuilder, u: Vector) -> Vector:
    """Return twice what the tangent of `gelu_tanh` is of: (1 + tanh(v)) / 2 is the sigmoid of 2 v."""
    cube = k.constant(u.element, u.lanes, _TANH * _CUBE)
    return u * k.fma(u * u, cube, k.constant(u.element, u.lanes, _TANH))


def _bell(k: KernelBuilder, u: Vector) -> tuple[Vector, Vector]:
    """Return the standard normal distribution up to u, and its density there."""
    far = _FARTHEST[u.element.size]
    size = k.select(u.less(0.0), -u, u)
    size = k.select(size.compare("ogt", "", far), k.constant(u.element, u.lanes, far), size)
    small = exponential(k, size * size * -0.5)
    place = (size - 4.0) / (size + 4.0)
    tail = _polynomial(k, _TAIL[u.element.size][::-1], place) * small
    below = k.select(u.less(0.0), tail, k.constant(u.element, u.lanes, 1) - tail)
    return below, small * (1 / math.sqrt(2 * math.pi))
