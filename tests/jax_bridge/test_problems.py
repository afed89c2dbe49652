"""Random problems against JAX's own derivatives in float64, and `conv_general_dilated` with all it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jax_bridge.configurations import Configuration
from jax_bridge.running import (
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

few = settings(
    deadline=None, max_examples=16, derandomize=True, suppress_health_check=list(HealthCheck)
)
"""Each example compiles a few times, 150 ms together; the same ones each time."""


def check(configuration: Configuration, seed: int = 0) -> None:
    """Compare values and both gradients: exactly on whole numbers, bit by bit with the NumPy call on others."""
    moved = arriving(configuration, "float64", seed)
    whole = operands(configuration, "float64", seed, whole=True)
    for mine, theirs in zip(
        by_us(configuration, whole, moved), by_jax(configuration, whole, moved), strict=True
    ):
        assert mine.dtype == np.float64
        np.testing.assert_array_equal(mine, theirs)
    arrays = operands(configuration, "float64", seed)
    made = by_us(configuration, arrays, moved)
    assert_right(configuration, made, arrays, moved)
    if configuration.plain:
        assert bits(made) == bits(by_numpy(configuration, arrays, moved))
    mine, _ = custom_calls(our_everything(configuration), *arrays, moved)
    # Where there is nothing to sum, zeros are JAX's.
    possible = configuration.ours and all(each.size for each in (*arrays, moved))
    if configuration.image_dilation == (1, 1):
        assert (mine > 0) == possible
    else:  # of a spread image parts may not be reached at all, which is left to JAX too
        assert mine == 0 or possible


@st.composite
def problems(draw: Any, function: str) -> Configuration:
    """Problems hypothesis can shrink: the smallest failing one is then a readable counter-example."""
    pair = st.tuples
    depthwise, general = function == "depthwise_conv2d", function == "conv_general_dilated"
    low = -2 if general else 0
    pads = pair(st.integers(low, 4), st.integers(low, 4))
    batch_groups = draw(st.sampled_from((1, 1, 2, 3))) if general else 1
    groups = draw(st.integers(1, 6 if depthwise else 3)) if batch_groups == 1 else 1
    letters = [draw(st.permutations(each)) for each in ("NHWC", "HWIO", "NHWC")] if general else []
    one_to = lambda most: pair(st.integers(1, most), st.integers(1, most))  # noqa: E731
    image_dilation = (
        draw(st.sampled_from(((1, 1), (1, 1), (2, 2), (1, 3), (3, 2)))) if general else (1, 1)
    )
    words = st.sampled_from(["SAME", "VALID", *["SAME_LOWER"] * general])
    explicit = pair(pads, pads)
    return Configuration(
        function,
        batch=draw(st.integers(0, 3)) * batch_groups,
        size=draw(pair(st.integers(1, 10), st.integers(1, 10))),
        groups=groups,
        depth=1 if depthwise else draw(st.integers(1, 5)),
        made=draw(st.integers(1, 4)),
        kernel=draw(one_to(5)),
        strides=draw(one_to(4)),
        padding=draw(
            st.one_of(words, explicit) if image_dilation == (1, 1) else explicit
        ),  # JAX takes no words there
        dilations=draw(one_to(3)),
        layout=draw(st.sampled_from(("NHWC", "NCHW"))) if not general else "NHWC",
        orders=("".join(letters[0]), "".join(letters[1]), "".join(letters[2])) if general else None,
        image_dilation=image_dilation,
        batch_groups=batch_groups,
    )


@few
@given(configuration=problems("conv2d").filter(lambda each: each.fits), seed=st.integers(0, 99))
def test_dense(configuration: Configuration, seed: int) -> None:
    check(configuration, seed)


@few
@given(
    configuration=problems("depthwise_conv2d").filter(lambda each: each.fits),
    seed=st.integers(0, 99),
)
def test_depthwise(configuration: Configuration, seed: int) -> None:
    check(configuration, seed)


@few
@given(
    configuration=problems("conv2d_transpose").filter(lambda each: each.fits),
    seed=st.integers(0, 99),
)
def test_transposed(configuration: Configuration, seed: int) -> None:
    check(configuration, seed)


@settings(few, max_examples=40)
@given(configuration=problems("conv_general_dilated"), seed=st.integers(0, 99))
def test_general(configuration: Configuration, seed: int) -> None:
    """Any order of dimensions, groups of features or of the batch, gaps in the image, negative pads, SAME_LOWER."""
    check(configuration, seed)
