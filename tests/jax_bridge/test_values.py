"""Results and gradients of the whole list under `jit`: right in every dtype, and with the bits of the NumPy call."""

from __future__ import annotations

import numpy as np
import pytest

import convgrad
from jax_bridge.configurations import CONFIGURATIONS, EMPTY, Configuration
from jax_bridge.running import (
    DTYPES,
    arriving,
    assert_right,
    bits,
    by_jax,
    by_numpy,
    by_us,
    custom_calls,
    operands,
    our_everything,
)


def test_the_list_is_long_and_holds_nothing_twice() -> None:
    assert len(CONFIGURATIONS) >= 200
    assert len(set(CONFIGURATIONS)) == len(CONFIGURATIONS)
    assert all(each.fits for each in CONFIGURATIONS)
    assert len({str(each) for each in CONFIGURATIONS}) == len(CONFIGURATIONS)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_float32(configuration: Configuration) -> None:
    """Exact on whole numbers, the bits of the NumPy call on others, and computed by us where it should be."""
    whole, moved = (
        operands(configuration, "float32", whole=True),
        arriving(configuration, "float32"),
    )
    made = by_us(configuration, whole, moved)
    for mine, theirs in zip(made, by_jax(configuration, whole, moved), strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_array_equal(mine, theirs)
    arrays = operands(configuration, "float32")
    made = by_us(configuration, arrays, moved)
    assert_right(configuration, made, arrays, moved)
    if configuration.plain:
        assert bits(made) == bits(by_numpy(configuration, arrays, moved))
    mine, theirs = custom_calls(our_everything(configuration), *arrays, moved)
    assert (mine > 0, theirs) == ((True, 0) if configuration.ours else (False, 3))


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "float32"])
@pytest.mark.parametrize("configuration", CONFIGURATIONS[::3], ids=str)
def test_other_dtypes(configuration: Configuration, dtype: str) -> None:
    if not configuration.ours and dtype in ("bfloat16", "float16"):
        pytest.skip("JAX's own 16-bit sums err by more than ours may")
    arrays, moved = operands(configuration, dtype), arriving(configuration, dtype)
    made = by_us(configuration, arrays, moved)
    assert_right(configuration, made, arrays, moved)
    if configuration.plain:
        assert bits(made) == bits(by_numpy(configuration, arrays, moved))


@pytest.mark.parametrize("configuration", EMPTY, ids=str)
def test_nothing_to_sum(configuration: Configuration) -> None:
    """Empty results, and zeros where there is nothing to sum: never memory that was not written."""
    arrays, moved = operands(configuration, "float32"), arriving(configuration, "float32")
    for mine, theirs in zip(
        by_us(configuration, arrays, moved), by_jax(configuration, arrays, moved), strict=True
    ):
        assert mine.shape == theirs.shape and not mine.any()


LARGE = (
    Configuration(size=(33, 40), depth=16, made=32),
    Configuration(size=(33, 40), depth=16, made=32, kernel=(1, 1), layout="NCHW"),
    Configuration("depthwise_conv2d", size=(33, 40), groups=48, depth=1, made=1, strides=(2, 1)),
    Configuration("conv2d_transpose", size=(33, 40), depth=16, made=8, strides=(2, 2)),
    Configuration("conv_general_dilated", size=(33, 40), groups=4, depth=4, made=8),
)
"""Enough work for several threads."""


@pytest.mark.parametrize("configuration", LARGE, ids=str)
def test_bits_do_not_depend_on_threads(configuration: Configuration) -> None:
    """Nor on the run: each number of threads is asked twice. What was traced on one number runs on any."""
    arrays, moved = operands(configuration, "float32"), arriving(configuration, "float32")
    seen = set()
    before = convgrad.get_num_threads()
    try:
        for number in (1, 2, 3, 2, 1, 3):
            convgrad.set_num_threads(number)
            seen.add(bits(by_us(configuration, arrays, moved)))
    finally:
        convgrad.set_num_threads(before)
    assert len(seen) == 1
