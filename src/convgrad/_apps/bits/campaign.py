"""A fixed campaign of small problems, computed by the kernels: what a machine's bits are told by.

Numbers and problems come from one integer hash, not from NumPy's generators, whose numbers may change from version to
version. Every number fits its dtype exactly, so nothing is rounded before the kernels round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import log2, prod
from typing import Any, NamedTuple, TypeVar

import numpy as np

import convgrad

from ... import _engine
from ..._base import config
from ..._base.dtypes import FLOATING, AnyArray, DType, accumulator
from ..._problem import convolution
from ..._problem.activations import ACTIVATIONS
from ..._problem.convolution import Call, Kind, Problem, Settings, Side
from ..._problem.layer_text import parse
from ..._problem.sums import specification
from ..._problem.sums.winograd import numerical_class

One = TypeVar("One")

PER_PART = 12
"""Problems of an operation and a dtype."""
MOST_PRODUCTS = 400_000
"""Of a problem that is drawn; layers have more."""
LAYERS = (
    "28x28x64k3o64",
    "14x14x256k1o64",
    "2x28x28x32k3s2o48",
    "2x56x56x24k1o96",
    "28x28x3k7s2o32",
    "2x28x28x96k3",
    "3x14x14x96k5s2",
    "2x7x7x128k7",
    "14x14x64k3d2o64",
    "14x14x128k3o128g32",
)
"""Of known networks, on smaller images: dense and depthwise, with several blocks of channels, units and levels."""
_INTEGER_BITS = 24
"""Of whole numbers; floats are drawn with all their digits."""


def hashed(seed: str, count: int) -> AnyArray:
    """Return 64-bit integers, SplitMix64 of a counter: the same on every machine, for ever."""
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "little")
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(start)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def numbers(seed: str, shape: Sequence[int], dtype: DType) -> AnyArray:
    """Return numbers of a dtype between -4 and 4, each of its digits drawn; int32 wraps around when multiplied."""
    drawn = hashed(seed, prod(shape))
    bits = _INTEGER_BITS if dtype.is_integer else round(-log2(dtype.unit))
    whole = (drawn >> np.uint64(64 - bits)).astype(np.int64) - 2 ** (bits - 1)
    if dtype.is_integer:
        return np.asarray((whole * 97).astype(np.int32).reshape(shape))
    scale = 2.0 ** ((drawn & np.uint64(3)).astype(np.float64) - bits)
    return np.asarray((whole * scale).astype(dtype.numpy).reshape(shape))


class _Draw:
    """Choices, one after the other, from one seed."""

    def __init__(self, seed: str) -> None:
        self._numbers: Iterator[int] = iter(hashed(seed, 64).tolist())

    def of(self, choices: Sequence[One]) -> One:
        return choices[next(self._numbers) % len(choices)]


class Part(NamedTuple):
    """Problems that are told apart from others."""

    name: str
    problems: tuple[Problem, ...]


def parts() -> Iterator[Part]:
    """Yield the convolutions of the campaign."""
    for call in convolution.OPS:
        for dtype in call.allowed:
            drawn = (_problem(call, dtype, number) for number in range(PER_PART))
            yield Part(f"{call.function} {dtype.name}", tuple(drawn))
    for dtype in FLOATING[1:3]:
        yield Part(f"layers {dtype.name}", tuple(_layers(dtype)))


def _problem(call: Call, dtype: DType, number: int) -> Problem:
    """Draw a problem of an operation; a third of them with a bias."""
    for attempt in range(1000):
        draw = _Draw(f"{call.function} {dtype.name} {number} {attempt}")
        problem = _drawn(draw, call, dtype, number)
        if problem is not None and problem.flops // 2 <= MOST_PRODUCTS:
            side: Side = "input" if call.kind is Kind.INPUT_GRADIENT else "output"
            return replace(problem, bias=side) if draw.of((True, False, False)) else problem
    raise AssertionError("nothing is drawn")


def _drawn(draw: _Draw, call: Call, dtype: DType, number: int) -> Problem | None:
    window = draw.of(((1, 1), (3, 3), (3, 3), (5, 5), (2, 4), (7, 3)))
    paddings: tuple[Any, ...] = ("SAME", "SAME", "VALID", ((1, 0), (0, 2)))
    settings = Settings(
        draw.of(((1, 1), (1, 1), (2, 2), (1, 3))),
        draw.of(((1, 1), (1, 1), (1, 1), (2, 1), (2, 3))),
        draw.of(paddings),
        "NCHW" if number % 3 == 2 else "NHWC",
    )
    sizes = (1, 3, 5, 8, 11, 14, 17, 20)
    batch, height, width = draw.of((1, 2, 5)), draw.of(sizes), draw.of(sizes)
    if call.depthwise:
        channels, outputs, depth = draw.of((1, 3, 8, 17, 32)), draw.of((1, 1, 1, 2, 3)), 0
    else:
        groups = draw.of((1, 1, 1, 2, 6))
        depth = draw.of((1, 3, 4, 8, 17, 40, 100))
        channels, outputs = groups * depth, groups * draw.of((1, 2, 4, 8, 13, 32, 40))
    image = _image(settings, batch, height, width, channels)
    taps = (*window, channels if call.depthwise else depth, outputs)
    forward = convolution.DEPTHWISE if call.depthwise else convolution.CONV2D
    try:
        problem = convolution.build(forward, settings, dtype, image, taps, None)
    except convgrad.errors.ArgumentError:
        return None  # the window is larger than the image
    return None if problem.is_empty else replace(problem, kind=call.kind)


def _image(settings: Settings, batch: int, height: int, width: int, c: int) -> tuple[int, ...]:
    if settings.data_format == "NCHW":
        return (batch, c, height, width)
    return (batch, height, width, c)


def _layers(dtype: DType) -> Iterator[Problem]:
    """Yield the three problems of each layer, in turn in both layouts."""
    for number, text in enumerate(LAYERS):
        layer = parse(text)
        layout = "NCHW" if number % 4 == 3 else "NHWC"
        padding: Any = layer.padding
        settings = Settings(layer.strides, layer.dilations, padding, layout)
        image = _image(settings, layer.batch, layer.height, layer.width, layer.channels)
        if layer.outputs:
            taps = (*layer.window, layer.channels // layer.groups, layer.outputs)
        else:
            taps = (*layer.window, layer.channels, layer.multiplier)
        call = convolution.CONV2D if layer.outputs else convolution.DEPTHWISE
        problem = convolution.build(call, settings, dtype, image, taps, None)
        for kind in Kind:
            yield replace(problem, kind=kind)


def operands(problem: Problem, number: int) -> list[AnyArray]:
    """Return the numbers a problem is computed on: two operands, and a bias that is added."""
    shapes: list[Sequence[int]] = [*problem.operand_shapes]
    if problem.adds_bias:
        shapes.append((problem.bias_c,))
    return [
        numbers(f"{place} {number} {problem.dtype.name}", shape, problem.dtype)
        for place, shape in enumerate(shapes)
    ]


def computed(problem: Problem, given: Sequence[AnyArray]) -> list[AnyArray]:
    """Return what the kernels write: the result, and the gradient of a bias."""
    result = np.empty(problem.result_shape, problem.dtype.numpy)
    beside = list(given[2:])
    if problem.bias and not problem.adds_bias:
        beside = [np.empty(problem.bias_c, problem.dtype.numpy)]
    places = [*given[:2], result, *beside]
    _engine.run(problem, *(each.ctypes.data for each in places))
    return [result] if problem.adds_bias else [result, *beside]


def specified(problem: Problem, given: Sequence[AnyArray]) -> list[AnyArray]:
    """Return what the contract's specification gives, without kernels: slow."""
    numbers = numerical_class(problem, config.get("winograd"))
    bias = given[2] if problem.adds_bias else None
    result, beside = specification.compute(problem, given[0], given[1], bias, numbers)
    return [result] if beside is None else [result, beside]


NORM_SIZES = ((2, 7, 9, 24), (3, 20, 20, 5))
"""Of batch norm, which is computed with each activation in both layouts."""


def batch_norm(dtype: DType) -> Iterator[AnyArray]:
    """Yield what batch norm with activation and its gradients give."""
    for activation in ACTIVATIONS:
        for images, height, width, channels in NORM_SIZES:
            for layout in ("NHWC", "NCHW"):
                plain = (images, height, width, channels)
                shape = plain if layout == "NHWC" else (images, channels, height, width)
                x, grad = (numbers(f"{activation} {name}", shape, dtype) for name in ("x", "grad"))
                wide = accumulator(dtype)
                scale, offset = (numbers(name, (channels,), wide) for name in ("scale", "offset"))
                how: Any = {"activation": activation, "data_format": layout}
                made = convgrad.batch_norm_act(x, scale, offset, **how)
                yield from map(np.asarray, made)
                found = convgrad.batch_norm_act_grad(
                    grad, x, scale, offset, made[1], made[2], **how
                )
                yield from (np.asarray(each) for each in found if each is not None)


Compute = Callable[[Problem, Sequence[AnyArray]], list[AnyArray]]


class Receipt(NamedTuple):
    """What a part of the campaign has given."""

    name: str
    problems: int
    digest: str


def receipts(compute: Compute = computed) -> Iterator[Receipt]:
    """Compute the campaign, part by part: convolutions by kernels or by the specification, batch norm by kernels."""
    with convgrad.options(winograd="auto"):
        for part in parts():
            arrays = [
                array
                for number, problem in enumerate(part.problems)
                for array in compute(problem, operands(problem, number))
            ]
            yield Receipt(part.name, len(part.problems), digest(arrays))
        for dtype in FLOATING:
            passes = len(ACTIVATIONS) * len(NORM_SIZES) * 2 * 2
            yield Receipt(f"batch norm {dtype.name}", passes, digest(batch_norm(dtype)))


def digest(arrays: Any) -> str:
    """Return the SHA-256 of arrays, one after the other, little-endian; a zero has no sign."""
    found = hashlib.sha256()
    for array in arrays:
        plain = array if array.dtype.kind in "iu" else array + array.dtype.type(0)
        found.update(np.ascontiguousarray(plain.view(f"<u{array.dtype.itemsize}")).tobytes())
    return found.hexdigest()


def whole(found: Sequence[Receipt]) -> str:
    """Return one SHA-256 of all parts."""
    text = "".join(f"{each.name} {each.digest}\n" for each in found)
    return hashlib.sha256(text.encode()).hexdigest()
