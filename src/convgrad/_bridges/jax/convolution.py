"""JAX's general convolution as one of our problems, or as JAX's own.

`compute` is given what JAX's primitive is: operands, and settings that JAX has read and spelled out. What is not ours
it declines, and what is malformed too, so that JAX says what is wrong:

==========================  ========================================================================================
2-D, one floating dtype     ours; other ranks, integers and complex numbers are JAX's
images                      NHWC and NCHW as they are, other orders are transposed
filters                     HWIO as they are, other orders are transposed; as many groups as channels are depthwise
batch groups                become groups of channels
negative padding            is cut off
`lhs_dilation`              our input gradient, with the filter turned round; with strides it is JAX's
results of another dtype    JAX's (`preferred_element_type`), so that nothing is rounded that is not to be
`precision`                 ours are sums in float32 or better, which is what `highest` asks for
==========================  ========================================================================================
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..._base import dtypes
from ..._base.dtypes import DType
from ..._base.errors import ConvgradError
from ..._problem import convolution, geometry
from ..._problem.convolution import (
    CONV2D,
    CONV2D_INPUT,
    DEPTHWISE,
    DEPTHWISE_INPUT,
    Problem,
    Settings,
    Shape,
)
from ..._problem.geometry import Pads
from . import meshes, sums

Pair = tuple[int, int]

NHWC, NCHW = (0, 3, 1, 2), (0, 1, 2, 3)
"""Where batch, channels, rows and columns of an image are."""
HWIO = (3, 2, 0, 1)
"""Where outputs, inputs, rows and columns of a filter are."""


class Asked(NamedTuple):
    """A convolution of ours-to-be: sizes without an order of dimensions, and settings."""

    row: DType
    batch: int
    channels: int
    size: Pair
    inputs: int
    outputs: int
    window: Pair
    strides: Pair
    spread: Pair
    """`lhs_dilation`."""
    dilations: Pair
    pads: tuple[Pads, Pads]
    feature_groups: int
    batch_groups: int

    @property
    def groups(self) -> int:
        return self.feature_groups * self.batch_groups

    @property
    def is_transposed(self) -> bool:
        return self.spread != (1, 1)


class Plan(NamedTuple):
    """How a convolution is computed: our problem, and the order of dimensions its image is given in."""

    asked: Asked
    problem: Problem
    order: tuple[int, ...]


def compute(lhs: Any, rhs: Any, **how: Any) -> Any | None:
    """Return a convolution, or None for what is left to JAX; settings are those of JAX's primitive."""
    if meshes.is_sharded(lhs, rhs):
        return None
    plan = _plan(lhs.shape, lhs.dtype, rhs.shape, rhs.dtype, tuple(how.items()))
    if plan is None:
        return None
    asked, problem, order = plan
    lhs_spec, rhs_spec, out_spec = (tuple(spec) for spec in how["dimension_numbers"])
    image = _beside(_ordered(lhs, lhs_spec, order), order, asked.batch_groups)
    filters = _ordered(rhs, rhs_spec, HWIO)
    if asked.is_transposed:
        filters = _turned(filters, asked.groups).reshape(problem.filter_shape)
        result = sums.compute(problem, filters, image)
    else:
        image = _cut(image, order, asked.pads)
        result = sums.compute(problem, image, filters.reshape(problem.filter_shape))
    return _ordered(result, order, out_spec)


@lru_cache(maxsize=4096)
def _plan(
    lhs_shape: Any, lhs_dtype: Any, rhs_shape: Any, rhs_dtype: Any, how: tuple[Any, ...]
) -> Plan | None:
    """Return how a convolution is computed, None if it is not ours: kept, for calls outside of `jit`."""
    settings = dict(how)
    asked = _read(lhs_shape, lhs_dtype, rhs_shape, rhs_dtype, **settings)
    if asked is None:
        return None
    order = NCHW if tuple(settings["dimension_numbers"][0]) == NCHW else NHWC
    data_format = "NCHW" if order == NCHW else "NHWC"
    try:
        problem = (_transposed if asked.is_transposed else _forward)(asked, data_format)
    except ConvgradError:  # of sizes beyond all memory
        return None
    return None if problem is None or problem.is_empty else Plan(asked, problem, order)


def _read(
    lhs_shape: Any,
    lhs_dtype: Any,
    rhs_shape: Any,
    rhs_dtype: Any,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
    **unknown: Any,
) -> Asked | None:
    """Return what is asked for in plain numbers; None if it is not ours, or makes no sense."""
    row = _row(lhs_dtype, rhs_dtype, preferred_element_type)
    if row is None or out_sharding is not None or unknown:
        return None
    shapes = _ints((*lhs_shape, *rhs_shape))
    settings = [_ints(each) for each in (window_strides, lhs_dilation, rhs_dilation)]
    pads = _ints(number for pair in padding for number in pair)
    groups = _ints((feature_group_count, batch_group_count))
    if shapes is None or len(shapes) != 8 or pads is None or len(pads) != 4 or groups is None:
        return None
    if any(each is None or len(each) != 2 or min(each) < 1 for each in settings):
        return None
    strides, spread, dilations = (_pair(each) for each in settings)
    lhs_spec, rhs_spec, _ = dimension_numbers
    batch, channels, *size = (shapes[at] for at in lhs_spec)
    outputs, inputs, *window = (shapes[4 + at] for at in rhs_spec)
    if (
        min(groups) < 1
        or min(groups) != 1
        or inputs * groups[0] != channels
        or outputs % max(groups)
        or batch % groups[1]
        or (spread != (1, 1) and strides != (1, 1))
    ):
        return None
    return Asked(
        row=row,
        batch=batch,
        channels=channels,
        size=_pair(size),
        inputs=inputs,
        outputs=outputs,
        window=_pair(window),
        strides=strides,
        spread=spread,
        dilations=dilations,
        pads=(_pair(pads[:2]), _pair(pads[2:])),
        feature_groups=groups[0],
        batch_groups=groups[1],
    )


def _pair(numbers: Any) -> Pair:
    return numbers[0], numbers[1]


def _row(lhs: Any, rhs: Any, wanted: Any) -> DType | None:
    """Return the dtype of both operands and the result, if there is one that we compute."""
    if lhs != rhs or (wanted is not None and wanted != lhs):
        return None
    return next((row for row in dtypes.FLOATING if row.numpy == lhs), None)


def _ints(numbers: Any) -> tuple[int, ...] | None:
    """Return numbers as Python's; None where one is not known yet, as in an export with symbolic sizes."""
    try:
        return tuple(int(number) for number in numbers)
    except Exception:  # JAX has errors of its own for sizes it does not know
        return None


def _forward(asked: Asked, data_format: str) -> Problem | None:
    """Return the problem of a convolution; its negative pads are cut off the image."""
    axes = [
        geometry.solve(
            *(size + min(pads[0], 0) + min(pads[1], 0), window, stride, dilation),
            (max(pads[0], 0), max(pads[1], 0)),
        )
        for size, window, stride, dilation, pads in zip(
            *(asked.size, asked.window, asked.strides, asked.dilations, asked.pads), strict=True
        )
    ]
    if min(axis.size for axis in axes) < 1 or min(axis.out for axis in axes) < 1:
        return None
    rows, cols = axes
    settings = Settings(
        *(asked.strides, asked.dilations),
        *(((rows.before, rows.after), (cols.before, cols.after)), data_format),
    )
    image = _image(data_format, asked, (rows.size, cols.size), asked.inputs * asked.groups)
    depthwise = asked.inputs == 1 and asked.groups > 1
    depth = (
        (asked.groups, asked.outputs // asked.groups)
        if depthwise
        else (asked.inputs, asked.outputs)
    )
    call = DEPTHWISE if depthwise else CONV2D
    return convolution.build(call, settings, asked.row, image, (*asked.window, *depth), None)


def _transposed(asked: Asked, data_format: str) -> Problem | None:
    """Return the problem of a convolution of a spread image: an input gradient.

    ::

        y[i] = sum of x[p] f[r]       over p*spread = i + r*dilation - low
             = sum of x[p] f'[r']     over p*spread + r'*dilation - before = i

    with the taps in reverse order, r' = window - 1 - r, and before = (window - 1) * dilation - low.
    """
    pads = []
    results = []
    for size, window, spread, dilation, (low, high) in zip(
        *(asked.size, asked.window, asked.spread, asked.dilations, asked.pads), strict=True
    ):
        reach = geometry.reach(window, dilation)
        result = (size - 1) * spread + 1 + low + high - reach + 1
        before = reach - 1 - low
        after = max(0, (size - 1) * spread + reach - result - before)
        if result < 1 or before < 0:
            return None
        if geometry.solve(result, window, spread, dilation, (before, after)).out != size:
            return None  # of pads at the end so wide that a further window would fit
        pads.append((before, after))
        results.append(result)
    settings = Settings(asked.spread, asked.dilations, (pads[0], pads[1]), data_format)
    sizes = (results[0], results[1])
    image = _image(data_format, asked, sizes, asked.outputs)
    grad = _image(data_format, asked, asked.size, asked.inputs * asked.groups)
    depthwise = asked.outputs == asked.groups > 1
    depth = (
        (asked.groups, asked.inputs)
        if depthwise
        else (asked.outputs // asked.groups, asked.inputs * asked.groups)
    )
    call = DEPTHWISE_INPUT if depthwise else CONV2D_INPUT
    return convolution.build(call, settings, asked.row, image, (*asked.window, *depth), grad)


def _image(data_format: str, asked: Asked, size: Pair, channels: int) -> Shape:
    batch = asked.batch // asked.batch_groups
    return (batch, *size, channels) if data_format == "NHWC" else (batch, channels, *size)


# What is done to arrays. ----------------------------------------------------------------------------------------------


def _ordered(array: Any, given: tuple[int, ...], wanted: tuple[int, ...]) -> Any:
    """Return an array whose dimensions are where `given` says with them where `wanted` says."""
    if given == wanted:
        return array
    places = [given[wanted.index(at)] for at in range(4)]
    return jnp.transpose(array, places)


def _beside(image: Any, order: tuple[int, ...], groups: int) -> Any:
    """Return an image whose groups of the batch are groups of channels: the first of them is the first here too."""
    if groups == 1:
        return image
    at = order[1]
    shape = image.shape
    apart = image.reshape(groups, shape[0] // groups, *shape[1:])
    moved = jnp.moveaxis(apart, 0, at)
    joined = moved.shape
    return moved.reshape(*joined[:at], joined[at] * joined[at + 1], *joined[at + 2 :])


def _cut(image: Any, order: tuple[int, ...], pads: tuple[Pads, Pads]) -> Any:
    """Return an image without what negative pads take off."""
    for axis, (low, high) in zip(order[2:], pads, strict=True):
        if min(low, high) < 0:
            size = image.shape[axis]
            image = jax.lax.slice_in_dim(image, max(0, -low), size - max(0, -high), axis=axis)
    return image


def _turned(filters: Any, groups: int) -> Any:
    """Return a filter [kh, kw, in of a group, out] with its taps in reverse order and its channels exchanged."""
    rows, cols, inputs, outputs = filters.shape
    apart = jax.lax.rev(filters, (0, 1)).reshape(rows, cols, inputs, groups, outputs // groups)
    return jnp.transpose(apart, (0, 1, 4, 3, 2)).reshape(
        rows, cols, outputs // groups, groups * inputs
    )
