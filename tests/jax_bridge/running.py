"""A configuration with numbers, computed by us and by JAX, and how far the two may be apart."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

import convgrad
import convgrad.jax as ours
from jax_bridge.configurations import Configuration

DTYPES = ("float64", "float32", "bfloat16", "float16")
UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Half the distance from 1 to the next number."""
TINY = {"float16": 2.0**-24}
"""What is lost where a result underflows; far below anything here in the other dtypes."""
NUMPY = {
    **{name: np.dtype(name) for name in UNITS if name != "bfloat16"},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}

Call = Callable[..., Any]


def operands(
    configuration: Configuration, dtype: str = "float64", seed: int = 0, whole: bool = False
) -> list[Any]:
    """Return image and filter as NumPy arrays; whole numbers make every sum exact."""
    rng = np.random.default_rng([seed, zlib.crc32(str(configuration).encode())])
    image = configuration.image_shape
    if configuration.transposed:
        image = jax.eval_shape(
            _forward(configuration), _like(image), _like(configuration.filter_shape)
        ).shape
    draw = (lambda shape: rng.integers(-4, 5, shape)) if whole else rng.standard_normal
    return [
        np.asarray(draw(shape)).astype(NUMPY[dtype])
        for shape in (image, configuration.filter_shape)
    ]


def function(configuration: Configuration, module: Any = ours) -> Call:
    """Return the call of ours as a function of image and filter."""
    if configuration.general:
        return general(configuration, module.conv_general_dilated)
    call = getattr(module, configuration.function)
    how: dict[str, Any] = {
        "strides": configuration.strides,
        "padding": configuration.padding,
        "data_format": configuration.layout,
        "dilations": configuration.dilations,
    }
    if configuration.transposed:
        how["output_shape"] = configuration.image_shape
    return lambda image, weight: call(image, weight, **how)


def general(configuration: Configuration, call: Call) -> Call:
    """Return a call of `conv_general_dilated`, ours or JAX's."""
    return lambda image, weight: call(
        image,
        weight,
        configuration.strides,
        configuration.padding,
        lhs_dilation=configuration.image_dilation,
        rhs_dilation=configuration.dilations,
        dimension_numbers=configuration.orders,
        feature_group_count=configuration.groups,
        batch_group_count=configuration.batch_groups,
    )


def native(configuration: Configuration) -> Call:
    """Return the same by `jax.lax`."""
    forward = _forward(configuration)
    if not configuration.transposed:
        return forward

    def transposed(image: Any, weight: Any) -> Any:
        back = jax.linear_transpose(
            lambda made: forward(made, weight), _like(configuration.image_shape, image.dtype)
        )
        return back(image)[0]

    return transposed


def _forward(configuration: Configuration) -> Call:
    """Return `jax.lax`'s convolution of a configuration, of which `conv2d_transpose` is the transpose."""
    if configuration.general:
        return general(configuration, lax.conv_general_dilated)

    def forward(image: Any, weight: Any) -> Any:
        if configuration.function == "depthwise_conv2d":
            weight = (
                weight.reshape(*configuration.kernel, 1, -1)
                if weight.size
                else jnp.zeros(
                    (*configuration.kernel, 1, configuration.groups * configuration.made),
                    weight.dtype,
                )
            )
        return lax.conv_general_dilated(
            image,
            weight,
            configuration.strides,
            configuration.padding,
            rhs_dilation=configuration.dilations,
            dimension_numbers=(configuration.layout, "HWIO", configuration.layout),
            feature_group_count=configuration.groups,
        )

    return forward


def arriving(configuration: Configuration, dtype: str, seed: int = 9) -> Any:
    """Return what arrives at a result backwards: small whole numbers, exact in every dtype."""
    shape = result_shape(configuration)
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(NUMPY[dtype])


@cache
def result_shape(configuration: Configuration) -> tuple[int, ...]:
    image, weight = (each.shape for each in operands(configuration, "float32"))
    made: tuple[int, ...] = jax.eval_shape(native(configuration), _like(image), _like(weight)).shape
    return made


def everything(call: Call) -> Call:
    """Return a function of image, filter and what arrives: the result and the gradients of both operands."""

    def run(image: Any, weight: Any, moved: Any) -> Any:
        result, back = jax.vjp(call, image, weight)
        return (result, *back(moved))

    return run


def by_us(configuration: Configuration, arrays: Sequence[Any], moved: Any) -> list[Any]:
    """Return result and gradients, computed under `jit`, as arrays of NumPy."""
    return [np.asarray(each) for each in our_everything(configuration)(*arrays, moved)]


@lru_cache(maxsize=16)
def our_everything(configuration: Configuration) -> Any:
    return jax.jit(everything(function(configuration)))


def by_jax(configuration: Configuration, arrays: Sequence[Any], moved: Any) -> list[Any]:
    """Return the same by JAX itself, in float64."""
    wide = [np.asarray(each, np.float64) for each in (*arrays, moved)]
    return [np.asarray(each) for each in native_everything(configuration)(*wide)]


@lru_cache(maxsize=16)
def native_everything(configuration: Configuration) -> Any:
    return jax.jit(everything(native(configuration)))


def by_numpy(configuration: Configuration, arrays: Sequence[Any], moved: Any) -> list[Any]:
    """Return the same by the functions of convgrad on arrays of NumPy; for what they have words for."""
    assert configuration.plain
    image, weight = arrays
    kind = configuration.function
    how: dict[str, Any] = {
        "strides": configuration.strides,
        "padding": configuration.padding,
        "data_format": configuration.image_order,
        "dilations": configuration.dilations,
    }
    if configuration.transposed:
        return [
            convgrad.conv2d_transpose(image, weight, configuration.image_shape, **how),
            convgrad.conv2d(moved, weight, **how),
            convgrad.conv2d_backprop_filter(moved, weight.shape, image, **how),
        ]
    if configuration.general:
        kind = "conv2d"
        if configuration.depth == 1 and configuration.groups > 1:
            kind = "depthwise_conv2d"
            weight = weight.reshape(*configuration.kernel, configuration.groups, configuration.made)
    into = getattr(convgrad, kind + "_backprop_input")(image.shape, weight, moved, **how)
    of_weight = getattr(convgrad, kind + "_backprop_filter")(image, weight.shape, moved, **how)
    return [getattr(convgrad, kind)(image, weight, **how), into, of_weight.reshape(arrays[1].shape)]


def allowed(
    configuration: Configuration, arrays: Sequence[Any], moved: Any, dtype: str
) -> list[Any]:
    """Return how far each number of `everything` may be from the exact one.

    A sum of t products in precision a errs by at most t * a * sum|products|, and rounding it to precision u adds
    u * |result|. The sums of absolute products are the same convolution of absolute numbers.
    """
    sums = by_jax(configuration, [abs(each) for each in arrays], abs(moved))
    window = prod(configuration.kernel)
    inner = min(UNITS["float32"], UNITS[dtype])
    pixels = max(prod(configuration.size) * prod(configuration.image_dilation), prod(moved.shape))
    terms = [
        window * configuration.depth,
        window * configuration.made,
        configuration.batch * pixels,
    ]
    if configuration.transposed:
        terms[:2] = reversed(terms[:2])
    return [
        (count + 2) * 2 * inner * total + TINY.get(dtype, 2.0**-133)
        for count, total in zip(terms, sums, strict=True)
    ]


NAMES = ("result", "image's gradient", "filter's gradient")


def assert_right(
    configuration: Configuration, got: Sequence[Any], arrays: Sequence[Any], moved: Any
) -> None:
    """Compare a result and its gradients with JAX's in float64, within the bounds of a plain sum."""
    dtype = str(got[0].dtype)
    theirs = by_jax(configuration, arrays, moved)
    bounds = allowed(configuration, arrays, moved, dtype)
    for name, mine, other, more in zip(NAMES, got, theirs, bounds, strict=True):
        assert mine.shape == other.shape, (str(configuration), name, mine.shape, other.shape)
        assert str(mine.dtype) == dtype, (str(configuration), name, mine.dtype)
        error = abs(mine.astype(np.float64) - other)
        limit = UNITS[dtype] * abs(other) * 1.0001 + more
        assert (error <= limit).all(), (str(configuration), name, (error - limit).max())


def bits(arrays: Sequence[Any]) -> bytes:
    return b"".join(np.asarray(each).tobytes() for each in arrays)


def same_numbers(mine: Any, theirs: Any) -> None:
    """Compare trees of float64 arrays that sum the same products in another order."""
    flat, structure = jax.tree.flatten(mine)
    others, other_structure = jax.tree.flatten(theirs)
    assert structure == other_structure
    for one, other in zip(flat, others, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype, (one, other)
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9, atol=1e-9)


TARGET = "convgrad"
"""What the names of our custom calls begin with."""


def custom_calls(call: Any, *arrays: Any) -> tuple[int, int]:
    """Return how often a function calls a target of ours, and how often a convolution of XLA's."""
    text = (call if hasattr(call, "lower") else jax.jit(call)).lower(*arrays).as_text()
    return text.count(f"@{TARGET}"), text.count("stablehlo.convolution")


def target_names(call: Any, *arrays: Any) -> list[str]:
    """Return the names of our targets that a jitted function calls."""
    return re.findall(rf"@({TARGET}_\w+)", call.lower(*arrays).as_text())


def _like(shape: Sequence[int], dtype: Any = np.float32) -> Any:
    return jax.ShapeDtypeStruct(tuple(shape), dtype)
