"""The whole corridor in a second or two: every operation through every door, against the oracle. Runs in pre-commit."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import convgrad
from convgrad import nn, raw_ops, reference
from convgrad.compat.v1 import nn as nn_v1

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
STRIDES, DILATIONS = [1, 2, 1, 1], [1, 1, 2, 1]
HOW = (STRIDES, "SAME", "NHWC", DILATIONS)


def small(*shape: int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    """Whole numbers from -2 to 2: every sum below is exact in every dtype, so results are compared bit for bit."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def arrays(dtype: type, depthwise: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = small(2, 5, 6, 4, dtype=dtype, seed=1)
    f = small(3, 2, 4, 2, dtype=dtype, seed=2)
    g = small(2, 3, 6, 8 if depthwise else 2, dtype=dtype, seed=3)
    return x, f, g


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d"])
def test_three_sums(name: str, dtype: type) -> None:
    x, f, g = arrays(dtype, name == "depthwise_conv2d")
    for suffix, operands in (
        ("", (x, f)),
        ("_backprop_input", (x.shape, f, g)),
        ("_backprop_filter", (x, f.shape, g)),
    ):
        got = getattr(convgrad, name + suffix)(*operands, *HOW)
        want = getattr(reference, name + suffix)(*operands, *HOW, exact=True)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.astype(np.float64), want)


def test_doors_agree() -> None:
    x, f, g = arrays(np.float32, depthwise=True)
    want = convgrad.depthwise_conv2d_backprop_filter(x, f.shape, g, *HOW)
    doors = (
        nn.depthwise_conv2d_backprop_filter(x, f.shape, g, *HOW),
        nn_v1.depthwise_conv2d_native_backprop_filter(x, f.shape, g, *HOW),
        raw_ops.DepthwiseConv2dNativeBackpropFilter(
            input=x,
            filter_sizes=f.shape,
            out_backprop=g,
            strides=STRIDES,
            padding="SAME",
            dilations=DILATIONS,
        ),
        convgrad.depthwise_conv2d_backprop_filter(x, f.shape, g, (2, 1), "same", dilations=(1, 2)),
    )
    for got in doors:
        np.testing.assert_array_equal(got, want)


def test_layouts_agree() -> None:
    x, f, g = arrays(np.float32, depthwise=True)
    rows_first = convgrad.depthwise_conv2d_backprop_input(x.shape, f, g, (2, 1), "SAME")
    channels_first = convgrad.depthwise_conv2d_backprop_input(
        (2, 4, 5, 6), f, g.transpose(0, 3, 1, 2), (2, 1), "SAME", "NCHW"
    )
    np.testing.assert_array_equal(channels_first, rows_first.transpose(0, 3, 1, 2))


def test_groups_transpose_separable() -> None:
    x, f = small(1, 4, 4, 4, seed=4), small(3, 3, 2, 6, seed=5)
    y = convgrad.conv2d(x, f, 1, "SAME")
    halves = [
        convgrad.conv2d(x[..., 2 * q : 2 * q + 2], f[..., 3 * q : 3 * q + 3], 1, "SAME")
        for q in (0, 1)
    ]
    np.testing.assert_array_equal(y, np.concatenate(halves, axis=3))

    np.testing.assert_array_equal(
        convgrad.conv2d_transpose(y, f, x.shape, 1),
        convgrad.conv2d_backprop_input(x.shape, f, y, 1, "SAME"),
    )

    d, m = small(2, 2, 4, 1, seed=6), small(1, 1, 4, 3, seed=7)
    np.testing.assert_array_equal(
        convgrad.separable_conv2d(x, d, m, 1, "VALID"),
        convgrad.conv2d(convgrad.depthwise_conv2d(x, d, 1, "VALID"), m, 1, "VALID"),
    )


def test_gradients_are_adjoint() -> None:
    """<conv(x, f), g> = <x, input gradient> = <f, filter gradient>, exactly, for whole numbers."""
    x, f, g = arrays(np.float64, depthwise=True)
    inner = np.sum(convgrad.depthwise_conv2d(x, f, *HOW) * g)
    assert inner == np.sum(x * convgrad.depthwise_conv2d_backprop_input(x.shape, f, g, *HOW))
    assert inner == np.sum(f * convgrad.depthwise_conv2d_backprop_filter(x, f.shape, g, *HOW))


def test_empty_gives_zeros() -> None:
    x, g = np.ones((0, 4, 4, 2), np.float32), np.ones((0, 4, 4, 2), np.float32)
    df = convgrad.depthwise_conv2d_backprop_filter(x, [3, 3, 2, 1], g, 1, "SAME")
    np.testing.assert_array_equal(df, np.zeros((3, 3, 2, 1)))


def test_mistakes_are_named() -> None:
    x, g = np.ones((1, 14, 14, 1), np.float32), np.ones((1, 8, 7, 1), np.float32)
    with pytest.raises(
        ValueError,
        match=r"`out_backprop` must have 7 rows .*input 14, filter 3, stride 2, SAME.* got 8",
    ):
        convgrad.conv2d_backprop_filter(x, [3, 3, 1, 1], g, 2, "SAME")
    with pytest.raises(TypeError, match="float32, got float64"):
        convgrad.conv2d(x, np.ones((1, 1, 1, 1)), 1, "SAME")


def test_import_brings_no_framework() -> None:
    code = (
        "import sys, convgrad; "
        "print(sorted({'tensorflow', 'torch', 'jax', 'keras', 'dask', 'scipy'} & sys.modules.keys()))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
