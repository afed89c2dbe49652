"""Activations: one row each. All that computes, differentiates or recognises an activation reads its row.

A row says twice what an activation is. Its *formula* is written over a framework's own operations (`Operations`):
NumPy's for the oracle, and those of JAX, TensorFlow and PyTorch where no kernel runs. Its *kernel* is written over
registers (`Registers`), where an exponential costs and digits must last. Tests hold the two against each other.

A new activation is a new row here, and nothing else. This module knows neither frameworks nor compilers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from .._base.errors import InternalError, shown

_TANH, _CUBE = 0.7978845608028654, 0.044715


class Operations(NamedTuple):
    """What a framework offers for formulas; arithmetic and comparisons are those of its arrays.

    `where` takes Python's numbers too. Kinks are written with it, so that a framework's own derivatives are those of
    our kernels there: a maximum would have half of each side's.
    """

    where: Callable[[Any, Any, Any], Any]
    exp: Callable[[Any], Any]
    expm1: Callable[[Any], Any]
    tanh: Callable[[Any], Any]
    sigmoid: Callable[[Any], Any]
    softplus: Callable[[Any], Any]
    erf: Callable[[Any], Any]


class Registers(Protocol):
    """What kernels can do with vectors, besides arithmetic."""

    def where(self, mask: Any, one: Any, other: Any) -> Any:
        """Choose; a number stands for all lanes."""
        ...

    def compare(self, u: Any, how: str, number: float) -> Any:
        """Compare as LLVM spells it: "ole" is false for a NaN."""
        ...

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """Return a * b + c, rounded once; b and c may be numbers."""
        ...

    def exp(self, u: Any) -> Any: ...

    def expm1(self, u: Any) -> Any:
        """Return exp(u) - 1 of numbers below 0."""
        ...

    def gate(self, u: Any) -> tuple[Any, Any]:
        """Return the sigmoid, and one less it, of which a difference would leave no digits."""
        ...

    def bell(self, u: Any) -> tuple[Any, Any]:
        """Return the standard normal distribution up to u, and its density there."""
        ...


Formula = Callable[[Operations, Any, float], Any]
"""Of operations, the argument, and the slope of `leaky_relu`."""


@dataclass(frozen=True)
class Activation:
    """A row."""

    name: str
    value: Formula
    kernel: Callable[[Registers, Any, Any], Any]
    """The value in registers, of the argument and the slope."""
    derivative: Formula | None = None
    """At a kink it is PyTorch's. None: only passes forwards have this activation, since nobody differentiates it."""
    kernel_gradient: Callable[[Registers, Any, Any, Any], Any] | None = None
    """A gradient g times the derivative in registers, of the argument, g and the slope. Where the derivative is 0, g is
    not multiplied but left out: where nothing passes, no NaN does."""
    kinks: tuple[float, ...] = ()
    """Where the derivative jumps, so that a rounding of the argument decides."""
    told_from_result: bool = False
    """Whether the derivative at the result is that at the argument, so that the result is all a backward pass keeps."""
    has_slope: bool = False
    torch: str = ""
    """PyTorch's function in `torch.nn.functional`; without one PyTorch computes the formula."""
    torch_layer: str = ""
    """PyTorch's layer in `torch.nn`."""
    torch_settings: tuple[tuple[str, str], ...] = ()
    """Further arguments of that function and that layer."""
    keras: str = ""
    """Keras's function in `keras.activations`, with its defaults."""
    tensorflow: str = ""
    """The op that TensorFlow fuses with a convolution."""


def _relu6(k: Registers, u: Any, slope: Any) -> Any:
    above = k.where(k.compare(u, "ole", 0.0), 0, u)
    return k.where(k.compare(above, "oge", 6.0), 6, above)


def _relu6_gradient(k: Registers, u: Any, g: Any, slope: Any) -> Any:
    inside = k.where(k.compare(u, "ole", 0.0), 0, g)
    return k.where(k.compare(u, "oge", 6.0), 0, inside)


def _hard_gate(k: Registers, u: Any) -> Any:
    moved = u + 3.0
    above = k.where(k.compare(moved, "ole", 0.0), 0, moved)
    return k.where(k.compare(above, "oge", 6.0), 6, above) * (1 / 6)


def _hardswish_gradient(k: Registers, u: Any, g: Any, slope: Any) -> Any:
    rising = g * k.where(k.compare(u, "oge", 3.0), 1, (u + 1.5) * (1 / 3))
    return k.where(k.compare(u, "ole", -3.0), 0, rising)


def _silu_derivative(o: Operations, u: Any, slope: float) -> Any:
    gate = o.sigmoid(u)
    return gate * (1 + u * (1 - gate))


def _silu_gradient(k: Registers, u: Any, g: Any, slope: Any) -> Any:
    gate, rest = k.gate(u)
    return g * (gate * k.fma(u, rest, 1))


def _bell(o: Operations, u: Any) -> Any:
    """The standard normal distribution up to u."""
    return (1 + o.erf(u / math.sqrt(2))) / 2


def _gelu_derivative(o: Operations, u: Any, slope: float) -> Any:
    return _bell(o, u) + u * o.exp(-u * u / 2) / math.sqrt(2 * math.pi)


def _gelu_gradient(k: Registers, u: Any, g: Any, slope: Any) -> Any:
    below, density = k.bell(u)
    return g * k.fma(u, density, below)


def _tanh_gate(o: Operations, u: Any) -> Any:
    """(1 + tanh(v)) / 2 is the sigmoid of 2 v."""
    return o.sigmoid(2 * _TANH * (u + _CUBE * u**3))


def _gelu_tanh_derivative(o: Operations, u: Any, slope: float) -> Any:
    gate = _tanh_gate(o, u)
    inner = 2 * _TANH * (1 + 3 * _CUBE * u * u)
    return gate + u * gate * (1 - gate) * inner


def _tanh_inner(k: Registers, u: Any) -> Any:
    return u * k.fma(u * u, 2 * _TANH * _CUBE, 2 * _TANH)


def _gelu_tanh_gradient(k: Registers, u: Any, g: Any, slope: Any) -> Any:
    gate, rest = k.gate(_tanh_inner(k, u))
    rise = k.fma(u * u, 3 * (2 * _TANH) * _CUBE, 2 * _TANH)
    return g * k.fma(u * rise, gate * rest, gate)


def _mish(k: Registers, u: Any, slope: Any) -> Any:
    # The tangent of log(1 + e) is e * (e + 2) / (e * (e + 2) + 2), which is 1 from 20 on.
    growth = k.exp(k.where(k.compare(u, "ogt", 20.0), 20, u))
    above = growth * (growth + 2.0)
    return u * (above / (above + 2.0))


def _tanh(k: Registers, u: Any, slope: Any) -> Any:
    # Of numbers of one sign; (exp(2 u) - 1) / (exp(2 u) + 1) keeps all digits near 0.
    below = k.where(k.compare(u, "ogt", 0.0), -u, u)
    less = k.expm1(below + below)
    found = less / (less + 2.0)
    return k.where(k.compare(u, "ogt", 0.0), -found, found)


NONE = Activation(
    "none",
    value=lambda o, u, slope: u,
    kernel=lambda k, u, slope: u,
    derivative=lambda o, u, slope: o.where(u == u, 1.0, 1.0),
    kernel_gradient=lambda k, u, g, slope: g,
    keras="linear",
)
ROWS = (
    NONE,
    Activation(
        "relu",
        # Not a maximum, which takes 0 for -0 or the other way round; a NaN stays one.
        value=lambda o, u, slope: o.where(u <= 0, 0.0, u),
        kernel=lambda k, u, slope: k.where(k.compare(u, "ole", 0.0), 0, u),
        derivative=lambda o, u, slope: o.where(u <= 0, 0.0, 1.0),
        kernel_gradient=lambda k, u, g, slope: k.where(k.compare(u, "ole", 0.0), 0, g),
        kinks=(0,),
        told_from_result=True,
        torch="relu",
        torch_layer="ReLU",
        keras="relu",
        tensorflow="Relu",
    ),
    Activation(
        "relu6",
        value=lambda o, u, slope: o.where(u <= 0, 0.0, o.where(u >= 6, 6.0, u)),
        kernel=_relu6,
        derivative=lambda o, u, slope: o.where((u <= 0) | (u >= 6), 0.0, 1.0),
        kernel_gradient=_relu6_gradient,
        kinks=(0, 6),
        told_from_result=True,
        torch="relu6",
        torch_layer="ReLU6",
        keras="relu6",
        tensorflow="Relu6",
    ),
    Activation(
        "leaky_relu",
        value=lambda o, u, slope: o.where(u > 0, u, u * slope),
        kernel=lambda k, u, slope: k.where(k.compare(u, "ogt", 0.0), u, u * slope),
        derivative=lambda o, u, slope: o.where(u > 0, 1.0, slope),
        kernel_gradient=lambda k, u, g, slope: k.where(k.compare(u, "ogt", 0.0), g, g * slope),
        kinks=(0,),
        told_from_result=True,
        has_slope=True,
        torch="leaky_relu",
        torch_layer="LeakyReLU",
        keras="leaky_relu",
        tensorflow="LeakyRelu",
    ),
    Activation(
        "silu",
        value=lambda o, u, slope: u * o.sigmoid(u),
        kernel=lambda k, u, slope: u / (k.exp(-u) + 1.0),
        derivative=_silu_derivative,
        kernel_gradient=_silu_gradient,
        torch="silu",
        torch_layer="SiLU",
        keras="silu",
        tensorflow="_MklSwish",
    ),
    Activation(
        "hardswish",
        value=lambda o, u, slope: u * o.where(u <= -3, 0.0, o.where(u >= 3, 6.0, u + 3)) / 6,
        kernel=lambda k, u, slope: u * _hard_gate(k, u),
        derivative=lambda o, u, slope: o.where(u <= -3, 0.0, o.where(u < 3, u / 3 + 0.5, 1.0)),
        kernel_gradient=_hardswish_gradient,
        kinks=(-3, 3),
        torch="hardswish",
        torch_layer="Hardswish",
        keras="hard_silu",
        tensorflow="_FusedHardSwish",
    ),
    Activation(
        "gelu",
        value=lambda o, u, slope: u * _bell(o, u),
        kernel=lambda k, u, slope: u * k.bell(u)[0],
        derivative=_gelu_derivative,
        kernel_gradient=_gelu_gradient,
        torch="gelu",
        torch_layer="GELU",
        torch_settings=(("approximate", "none"),),
        keras="gelu",
        tensorflow="GeluExact",
    ),
    Activation(
        "gelu_tanh",
        value=lambda o, u, slope: u * _tanh_gate(o, u),
        kernel=lambda k, u, slope: u / (k.exp(-_tanh_inner(k, u)) + 1.0),
        derivative=_gelu_tanh_derivative,
        kernel_gradient=_gelu_tanh_gradient,
        torch="gelu",
        torch_layer="GELU",
        torch_settings=(("approximate", "tanh"),),
        tensorflow="GeluApproximate",
    ),
    Activation(
        "elu",
        value=lambda o, u, slope: o.where(u > 0, u, o.expm1(o.where(u > 0, 0.0, u))),
        kernel=lambda k, u, slope: k.where(k.compare(u, "ogt", 0.0), u, k.expm1(u)),
        tensorflow="Elu",
    ),
    Activation(
        "mish",
        value=lambda o, u, slope: u * o.tanh(o.softplus(u)),
        kernel=_mish,
        tensorflow="Mish",
    ),
    Activation(
        "sigmoid",
        value=lambda o, u, slope: o.sigmoid(u),
        kernel=lambda k, u, slope: k.gate(u)[0],
        tensorflow="Sigmoid",
    ),
    Activation("tanh", value=lambda o, u, slope: o.tanh(u), kernel=_tanh, tensorflow="Tanh"),
)
ACTIVATIONS = tuple(row.name for row in ROWS if row.derivative is not None)
"""What callers may ask for, by name."""
FORWARD_ONLY = tuple(row.name for row in ROWS if row.derivative is None)
"""Further activations of `forward_frozen` and `apply`: TensorFlow fuses them."""
_BY_NAME = {row.name: row for row in ROWS}


def find(name: str) -> Activation:
    """Return the row of a name; an unknown one, taken for "none", would go unnoticed."""
    row = _BY_NAME.get(name)
    if row is None:
        known = ", ".join(_BY_NAME)
        raise InternalError(
            f"unknown activation {shown(name)}; there are {known}. Please report this."
        )
    return row


def activated(operations: Operations, name: str, u: Any, slope: float) -> Any:
    """Return an activation's value."""
    return find(name).value(operations, u, slope)


def derivative(operations: Operations, name: str, u: Any, slope: float) -> Any:
    """Return an activation's derivative."""
    found = find(name).derivative
    if found is None:
        raise InternalError(f"the activation {name} has no derivative here; please report this.")
    return found(operations, u, slope)
