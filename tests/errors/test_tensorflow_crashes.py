"""Inputs that crashed, aborted or corrupted TensorFlow and its peers: here each raises, or returns what is documented.

The first column names the report: a CVE, an issue of tensorflow/tensorflow unless another project is named, or "own"
for those found while trying TensorFlow 2.21. Operations outside the 2-D family are translated to the nearest inside it.
"""

from __future__ import annotations

import numpy as np
import pytest

import convgrad
from convgrad import nn, raw_ops
from convgrad.compat.v1 import nn as v1
from convgrad.errors import ArgumentError, ArgumentTypeError, DTypeError

MOST = 2**31 - 1
HUGE = 1879048192


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def raw(name, **arguments):
    """Return a call of a raw op, stride 1 and SAME unless told."""
    return lambda: getattr(raw_ops, name)(
        **{"strides": [1, 1, 1, 1], "padding": "SAME"} | arguments
    )


REFUSED = [
    # ---- published vulnerabilities
    (
        "CVE-2021-29524",
        raw(
            "Conv2DBackpropFilter",
            input=ones(0, 0, 1, 0),
            filter_sizes=[1, 1, 1, 1],
            out_backprop=ones(0, 0, 1, 1),
            strides=[1, 66, 18, 1],
        ),
        ArgumentError,
        "`input` must have at least 1 channel, got 0",
    ),
    (
        "CVE-2021-29526 CVE-2021-37675",
        raw("Conv2D", input=ones(0, 0, 0, 0), filter=ones(0, 0, 0, 0)),
        ArgumentError,
        r"`filter` must have at least 1 row and 1 column, got shape \[0, 0, 0, 0\]",
    ),
    (
        "CVE-2021-29527 (QuantizedConv2D) CVE-2021-41209",
        raw("Conv2D", input=ones(1, 1, 1, 1), filter=ones(1, 0, 1, 1)),
        ArgumentError,
        r"`filter` must have at least 1 row and 1 column, got shape \[1, 0, 1, 1\]",
    ),
    (
        "CVE-2021-29538",
        raw(
            "Conv2DBackpropFilter",
            input=ones(0, 0, 0, 0),
            filter_sizes=[0, 0, 0, 0],
            out_backprop=ones(0, 0, 0, 0),
        ),
        ArgumentError,
        r"`filter_sizes` depth must be strictly positive, got shape \[0, 0, 0, 0\]",
    ),
    (
        "CVE-2021-29540 a",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 1, 1, 2),
            filter_sizes=[1, 1, 1, 1],
            out_backprop=ones(1, 1, 1, 1),
            strides=[1, 66, 49, 1],
            padding="VALID",
        ),
        ArgumentError,
        "output depth must be evenly divisible by the number of groups .*, got 1",
    ),
    (
        "CVE-2021-29540 b",
        raw(
            "Conv2DBackpropFilter",
            input=ones(0, 1, 1, 5),
            filter_sizes=[3, 8, 1, 1],
            out_backprop=ones(0, 1, 1, 1),
        ),
        ArgumentError,
        "output depth must be evenly divisible by the number of groups .*, got 1",
    ),
    (
        "CVE-2021-29517 (Conv3D)",
        raw("Conv2D", input=ones(0, 4, 4, 0), filter=ones(1, 1, 0, 1)),
        ArgumentError,
        "`filter` depth must be strictly positive",
    ),
    (
        "CVE-2021-29520 input (Conv3DBackprop)",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[1, 1, 1, 1],
            filter=ones(4, 1, 6, 1),
            out_backprop=ones(1, 1, 1, 1),
            strides=[1, 89, 29, 1],
        ),
        ArgumentError,
        "`input_sizes` depth must be evenly divisible by `filter` depth .*, got 1 and 6",
    ),
    (
        "CVE-2021-29520 filter (Conv3DBackprop)",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 1, 1, 1),
            filter_sizes=[4, 1, 6, 1],
            out_backprop=ones(1, 1, 1, 1),
            strides=[1, 89, 29, 1],
        ),
        ArgumentError,
        "`input` depth must be evenly divisible by `filter_sizes` depth .*, got 1 and 6",
    ),
    (
        "CVE-2021-29520 shapes that disagree in rows only",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 8, 1, 1),
            filter_sizes=[4, 1, 1, 1],
            out_backprop=ones(1, 1, 1, 1),
        ),
        ArgumentError,
        "`out_backprop` must have 8 rows .*, got 1",
    ),
    (
        "CVE-2021-29522 (Conv3DBackprop)",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[1, 1, 1, 0],
            filter=ones(1, 1, 0, 1),
            out_backprop=ones(1, 1, 1, 1),
        ),
        ArgumentError,
        "`filter` depth must be strictly positive",
    ),
    (
        "CVE-2021-41197 filter",
        raw(
            "DepthwiseConv2dNativeBackpropFilter",
            input=ones(1, 4, 4, 3),
            filter_sizes=[HUGE] * 13,
            out_backprop=ones(1, 4, 4, 3),
        ),
        ArgumentError,
        "`filter_sizes` must hold 4 values, got 13",
    ),
    (
        "CVE-2021-41197 filter, 4 long",
        raw(
            "DepthwiseConv2dNativeBackpropFilter",
            input=ones(1, 4, 4, 3),
            filter_sizes=[HUGE] * 4,
            out_backprop=ones(1, 4, 4, 3),
        ),
        ArgumentError,
        f"`input` and `filter_sizes` must have the same depth, got 3 and {HUGE}",
    ),
    (
        "CVE-2021-41197 product overflow",
        raw(
            "DepthwiseConv2dNativeBackpropFilter",
            input=ones(0, 4, 4, 3),
            filter_sizes=[HUGE, HUGE, 3, HUGE],
            out_backprop=ones(0, 4, 4, 3),
        ),
        ArgumentError,
        "`out_backprop` must have 5637144576 channels",
    ),
    (
        "CVE-2022-21725 NCHW",
        raw(
            "Conv2D",
            input=ones(1, 1, 2, 2),
            filter=ones(1, 1, 1, 1),
            data_format="NCHW",
            strides=[1, 1, 1, 0],
        ),
        ArgumentError,
        r"`strides` must be larger than 0, got 0 in \[1, 1, 1, 0\]",
    ),
    (
        "CVE-2022-29196 (Conv3DBackpropFilterV2) sizes a scalar",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 1, 1, 1),
            filter_sizes=np.array(1),
            out_backprop=ones(1, 1, 1, 1),
        ),
        ArgumentError,
        "`filter_sizes` must be 1-dimensional",
    ),
    (
        "CVE-2022-29201 (QuantizedConv2D) empty arguments",
        raw("Conv2D", input=[], filter=[], strides=[], padding="SAME"),
        ArgumentError,
        "`strides` must specify 4 dimensions, got 0",
    ),
    (
        "CVE-2022-29201 empty arrays",
        raw("Conv2D", input=[], filter=[]),
        ArgumentError,
        r"`input` must be 4-dimensional, got shape \[0\] with 1 dimension\.",
    ),
    (
        "CVE-2022-35969",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[65534, 65534],
            filter=ones(3, 3, 2, 2),
            out_backprop=np.float32(1),
        ),
        ArgumentError,
        r"`out_backprop` must be 4-dimensional, got shape \[\]",
    ),
    (
        "CVE-2022-41885 (FusedResizeAndPadConv2D)",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[HUGE, HUGE],
            filter=ones(1, 1, 1, 1),
            out_backprop=ones(1, 1, 1, 1),
        ),
        ArgumentError,
        f"`out_backprop` must have {HUGE} rows",
    ),
    (
        "CVE-2023-25661 (Conv3DTranspose)",
        lambda: nn.conv2d_transpose(ones(1, 32, 0, 3), ones(3, 3, 8, 3), [1, 32, 32, 8], 1),
        ArgumentError,
        "`input` must have 32 columns .*, got 0",
    ),
    *(
        (
            f"CVE-2021-29585 29588 29594 29602 (TFLite) stride {stride}, {function.__name__}",
            lambda function=function, operands=operands, stride=stride: function(
                *operands, strides=[1, stride, stride, 1], padding="SAME"
            ),
            ArgumentError,
            f"`strides` must be larger than 0, got {stride}",
        )
        for stride in (0, -1)
        for function, operands in (
            (nn.conv2d, (ones(1, 2, 2, 1), ones(1, 1, 1, 1))),
            (nn.depthwise_conv2d, (ones(1, 2, 2, 1), ones(1, 1, 1, 1))),
            (nn.conv2d_transpose, (ones(1, 2, 2, 1), ones(1, 1, 1, 1), [1, 2, 2, 1])),
        )
    ),
    (
        "CVE-2021-29594 (TFLite) input channels 0",
        lambda: nn.conv2d(ones(1, 2, 2, 0), ones(1, 1, 1, 1), 1, "SAME"),
        ArgumentError,
        "`input` must have at least 1 channel, got 0",
    ),
    (
        "CVE-2023-27579 (TFLite) filter input channels 0",
        lambda: nn.conv2d(ones(1, 2, 2, 1), ones(1, 1, 0, 1), 1, "SAME"),
        ArgumentError,
        "`filters` depth must be strictly positive",
    ),
    # ---- aborts of TensorFlow 2.21 and issues
    (
        "IvySyn: depthwise input gradient, 13 huge sizes",
        raw(
            "DepthwiseConv2dNativeBackpropInput",
            input_sizes=[HUGE] * 13,
            filter=ones(1, 1, 3, 1),
            out_backprop=ones(1, 4, 4, 3),
        ),
        ArgumentError,
        "`input_sizes` must hold 4 values, got 13",
    ),
    (
        "#104881 #89845 #89853: strides of length 2, rank-1 operands",
        raw(
            "DepthwiseConv2dNativeBackpropInput",
            input_sizes=[1, 4, 4, 3],
            filter=ones(3),
            out_backprop=ones(3),
            strides=[1, 1],
        ),
        ArgumentError,
        "`strides` must specify 4 dimensions, got 2",
    ),
    (
        "#104881 without the bad strides",
        raw(
            "DepthwiseConv2dNativeBackpropInput",
            input_sizes=[1, 4, 4, 3],
            filter=ones(3),
            out_backprop=ones(3),
        ),
        ArgumentError,
        r"`filter` must be 4-dimensional, got shape \[3\]",
    ),
    (
        "#85258: strides [], scalars",
        lambda: nn.depthwise_conv2d_backprop_filter(np.float32(1), [1], np.float32(1), [], "SAME"),
        ArgumentError,
        "`strides` must specify 4 dimensions, got 0",
    ),
    (
        "#85258 with strides",
        lambda: nn.depthwise_conv2d_backprop_filter(
            np.float32(1), [1] * 4, np.float32(1), [1] * 4, "SAME"
        ),
        ArgumentError,
        r"`input` must be 4-dimensional, got shape \[\]",
    ),
    (
        "#58180: NCHW, scalar input, no filter sizes, 3 dilations",
        lambda: nn.depthwise_conv2d_backprop_filter(
            np.float32(1), [], ones(1, 1, 1, 1), [1] * 4, "SAME", "NCHW", [1, 1, 1]
        ),
        ArgumentError,
        "`dilations` must specify 4 dimensions, got 3",
    ),
    (
        "#58180 with 4 dilations",
        lambda: nn.depthwise_conv2d_backprop_filter(
            np.float32(1), [], ones(1, 1, 1, 1), [1] * 4, "SAME", "NCHW"
        ),
        ArgumentError,
        "`filter_sizes` must hold 4 values, got 0",
    ),
    (
        "#97165 #85255: 64-bit strides",
        lambda: nn.depthwise_conv2d(
            ones(1, 4, 4, 1), ones(1, 1, 1, 1), [1, 2**40, 2**40, 1], "SAME"
        ),
        ArgumentError,
        rf"`strides` must be below 2\*\*31, got {2**40}",
    ),
    (
        "#97165: negative 64-bit strides",
        lambda: nn.depthwise_conv2d(
            ones(1, 4, 4, 1), ones(1, 1, 1, 1), [1, -(2**62), 1, 1], "SAME"
        ),
        ArgumentError,
        "`strides` must be larger than 0, got -4611686018427387904",
    ),
    (
        "#85257",
        lambda: v1.conv2d_backprop_filter(
            ones(1, 1, 1, 1), [1] * 4, ones(1, 1, 1, 1), [4538426903074820908], "SAME"
        ),
        ArgumentError,
        "`strides` must specify 4 dimensions, got 1",
    ),
    (
        "#62142 #57980 #57981: every rank wrong",
        raw(
            "Conv2DBackpropFilter",
            input=ones(2, 2),
            filter_sizes=[1, 1, 1, 1],
            out_backprop=ones(2, 2, 2),
        ),
        ArgumentError,
        r"`input` must be 4-dimensional, got shape \[2, 2\]",
    ),
    (
        "PR#127293: input_sizes of length 3",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[1, 4, 4],
            filter=ones(1, 1, 1, 1),
            out_backprop=ones(1, 4, 4, 1),
        ),
        ArgumentError,
        "`input_sizes` must hold 4 values or 2 values, got 3",
    ),
    (
        "own: input_sizes of rank 0",
        raw(
            "Conv2DBackpropInput",
            input_sizes=4,
            filter=ones(1, 1, 1, 1),
            out_backprop=ones(1, 4, 4, 1),
        ),
        ArgumentError,
        "`input_sizes` must be 1-dimensional, got 4",
    ),
    (
        "own: negative input_sizes",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[1, -4, 4, 1],
            filter=ones(1, 1, 1, 1),
            out_backprop=ones(1, 4, 4, 1),
        ),
        ArgumentError,
        r"`input_sizes` dimension 1 must be >= 0, got \[1, -4, 4, 1\]",
    ),
    (
        "#125506: scalar filter",
        lambda: nn.conv2d_transpose(ones(1, 2, 2, 1), np.float32(1), [1, 2, 2, 1], 1),
        ArgumentError,
        r"`filters` must be 4-dimensional, got shape \[\]",
    ),
    (
        "#89852: rank-3 operands",
        lambda: nn.conv2d(ones(4, 4, 1), ones(1, 1, 1), 1, "SAME"),
        ArgumentError,
        r"`input` must be 4-dimensional, got shape \[4, 4, 1\]",
    ),
    (
        "own: pads of 2**31 - 1 on all sides",
        raw(
            "Conv2D",
            input=ones(1, 4, 4, 1),
            filter=ones(1, 1, 1, 1),
            padding="EXPLICIT",
            explicit_paddings=[0, 0, MOST, MOST, MOST, MOST, 0, 0],
        ),
        ArgumentError,
        r"`result` must hold fewer than 2\*\*63 bytes, got shape \[1, 4294967298, 4294967298, 1\] of float32",
    ),
    (
        "own: negative pad",
        raw(
            "Conv2D",
            input=ones(1, 4, 4, 1),
            filter=ones(1, 1, 1, 1),
            padding="EXPLICIT",
            explicit_paddings=[0, 0, -1, 1, 0, 0, 0, 0],
        ),
        ArgumentError,
        "all elements of `explicit_paddings` must be nonnegative, got -1",
    ),
    (
        "own: negative filter_sizes",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 4, 4, 1),
            filter_sizes=[3, -3, 1, 1],
            out_backprop=ones(1, 4, 4, 1),
        ),
        ArgumentError,
        r"`filter_sizes` dimension 1 must be >= 0, got \[3, -3, 1, 1\]",
    ),
    (
        "#60201: stride 0 with 5 dilations",
        lambda: v1.conv2d_backprop_filter(
            ones(1, 4, 4, 1), [1] * 4, ones(1, 4, 4, 1), [1, 0, 1, 1], "SAME", dilations=[1] * 5
        ),
        ArgumentError,
        "`strides` must be larger than 0, got 0",
    ),
    (
        "#59059: huge filter_sizes",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 4, 4, 1),
            filter_sizes=[2**62, 2**62, 1, 1],
            out_backprop=ones(1, 4, 4, 1),
        ),
        ArgumentError,
        r"rows plus padding and reach must stay below 2\*\*62",
    ),
    (
        "#59059: filter_sizes beyond 64 bits",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 4, 4, 1),
            filter_sizes=[2**70, 1, 1, 1],
            out_backprop=ones(1, 4, 4, 1),
        ),
        ArgumentError,
        r"rows plus padding and reach must stay below 2\*\*62",
    ),
    (
        "#59059: bytes that overflow only as a product",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 4, 4, 1),
            filter_sizes=[2**31, 2**31, 1, 1],
            out_backprop=ones(1, 4, 4, 1),
        ),
        ArgumentError,
        r"`filter_sizes` must hold fewer than 2\*\*63 bytes, got shape \[2147483648, 2147483648, 1, 1\]",
    ),
    (
        "own: an empty result whose other sizes overflow",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[0, 2**40, 2**40, 1],
            filter=ones(1, 1, 1, 1),
            out_backprop=ones(0, 513, 513, 1),
            strides=[1, MOST, MOST, 1],
        ),
        ArgumentError,
        r"`input_sizes` must hold fewer than 2\*\*63 bytes, got shape \[0, 1099511627776, 1099511627776, 1\]",
    ),
    (
        "own: dilation 2**31 - 1 without padding",
        lambda: nn.conv2d(ones(1, 4, 4, 1), ones(3, 1, 1, 1), 1, "VALID", dilations=[MOST, 1]),
        ArgumentError,
        "computed output size would be negative: .* reach 4294967295",
    ),
    (
        "own: a matrix as the input of Conv2DBackpropInputV2",
        raw(
            "Conv2DBackpropInputV2",
            input=ones(4, 4),
            filter=ones(1, 1, 1, 1),
            out_backprop=ones(1, 4, 4, 1),
        ),
        ArgumentError,
        r"`input` must be 4-dimensional, got shape \[4, 4\]",
    ),
    *(
        (
            f"own: {value} for {argument}",
            lambda argument=argument, value=value: convgrad.conv2d(
                ones(1, 4, 4, 1),
                ones(1, 1, 1, 1),
                **{"strides": 1, "padding": "SAME"} | {argument: value},
            ),
            ArgumentError,
            rf"`{argument}` must be below 2\*\*31|all elements of `{argument}` must be below 2\*\*31",
        )
        for argument, value in (
            ("strides", 2**31),
            ("strides", [1, 2**63, 1, 1]),
            ("strides", np.uint64(2**64 - 1)),
            ("dilations", 2**31),
            ("dilations", 2**100),
            ("padding", ((2**31, 0), (0, 0))),
            ("padding", ((0, 0), (0, 2**64))),
        )
    ),
    # ---- peers
    (
        "pytorch#73193: stride 0",
        lambda: convgrad.conv2d(ones(1, 4, 4, 1), ones(3, 3, 1, 1), 0, "SAME"),
        ArgumentError,
        "`strides` must be larger than 0, got 0",
    ),
    (
        "pytorch#142209: 7-D input, zero-size weight, huge stride and padding",
        lambda: convgrad.conv2d(
            ones(1, 1, 1, 1, 1, 4, 4), ones(0, 3, 4, 1), 2**62, ((2**62, 2**62), (2**62, 2**62))
        ),
        ArgumentError,
        r"`strides` must be below 2\*\*31",
    ),
    (
        "pytorch#142209: zero-size weight",
        lambda: convgrad.conv2d(ones(1, 1, 1, 1, 1, 4, 4), ones(0, 3, 4, 1), 1, "SAME"),
        ArgumentError,
        r"`filters` must have at least 1 row and 1 column, got shape \[0, 3, 4, 1\]",
    ),
    (
        "text where numbers are expected",
        lambda: nn.conv2d(np.full((1, 1, 1, 1), "x"), ones(1, 1, 1, 1), 1, "SAME"),
        DTypeError,
        "`input` must have one of the dtypes",
    ),
    (
        "a list that holds itself",
        lambda: nn.conv2d(
            ones(1, 1, 1, 1), (lambda knot: (knot.append(knot), knot)[1])([]), 1, "SAME"
        ),
        ArgumentError,
        "`filters` must be a rectangular array of numbers",
    ),
    (
        "strides that hold themselves",
        lambda: nn.conv2d(
            ones(1, 1, 1, 1),
            ones(1, 1, 1, 1),
            (lambda knot: (knot.append(knot), knot)[1])([]),
            "SAME",
        ),
        ArgumentTypeError,
        r"`strides` must hold integers, got \[\[...\]\]",
    ),
]


@pytest.mark.parametrize(
    ("report", "call", "error", "pattern"), REFUSED, ids=[row[0] for row in REFUSED]
)
def test_refused(report, call, error, pattern):
    with pytest.raises(error, match=pattern):
        call()


def zeros(*shape):
    return np.zeros(shape, np.float32)


def line(*values):
    """A column of numbers as an image."""
    return np.array(values, np.float32).reshape(1, -1, 1, 1)


COMPUTED = [
    (
        "CVE-2021-29525: an empty window and no output channels",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[52, 1, 1, 5],
            filter=ones(0, 1, 5, 0),
            out_backprop=ones(52, 1, 1, 0),
        ),
        zeros(52, 1, 1, 5),
    ),
    (
        "CVE-2022-35996: empty input, padded output",
        raw(
            "Conv2D",
            input=ones(1, 0, 2, 1),
            filter=ones(1, 1, 1, 1),
            padding="EXPLICIT",
            explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0],
        ),
        zeros(1, 2, 4, 1),
    ),
    (
        "CVE-2022-35999: empty g",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[3, 1, 1, 2],
            filter=ones(1, 3, 2, 3),
            out_backprop=ones(3, 1, 0, 3),
            strides=[1, 1, 2, 1],
            padding="VALID",
        ),
        zeros(3, 1, 1, 2),
    ),
    (
        "CVE-2023-25661 (Conv3DTranspose) with the shape that fits",
        lambda: nn.conv2d_transpose(ones(1, 32, 0, 3), ones(3, 3, 8, 3), [1, 32, 0, 8], 1),
        zeros(1, 32, 0, 8),
    ),
    (
        "PR#126484: empty batch, depthwise filter gradient",
        raw(
            "DepthwiseConv2dNativeBackpropFilter",
            input=ones(0, 4, 4, 3),
            filter_sizes=[3, 3, 3, 1],
            out_backprop=ones(0, 4, 4, 3),
        ),
        zeros(3, 3, 3, 1),
    ),
    (
        "PR#126484: empty batch, filter gradient",
        raw(
            "Conv2DBackpropFilter",
            input=ones(0, 4, 4, 3),
            filter_sizes=[3, 3, 3, 2],
            out_backprop=ones(0, 4, 4, 2),
        ),
        zeros(3, 3, 3, 2),
    ),
    (
        "own: empty output, filter gradient",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 2, 2, 1),
            filter_sizes=[3, 3, 1, 2],
            out_backprop=ones(1, 0, 0, 2),
            padding="VALID",
        ),
        zeros(3, 3, 1, 2),
    ),
    (
        "own: empty output, depthwise filter gradient",
        raw(
            "DepthwiseConv2dNativeBackpropFilter",
            input=ones(1, 2, 2, 2),
            filter_sizes=[3, 3, 2, 2],
            out_backprop=ones(1, 0, 0, 4),
            padding="VALID",
        ),
        zeros(3, 3, 2, 2),
    ),
    (
        "own: multiplier 0, depthwise input gradient",
        raw(
            "DepthwiseConv2dNativeBackpropInput",
            input_sizes=[2, 4, 4, 3],
            filter=ones(3, 3, 3, 0),
            out_backprop=ones(2, 4, 4, 0),
        ),
        zeros(2, 4, 4, 3),
    ),
    (
        "own: no channels, depthwise",
        raw("DepthwiseConv2dNative", input=ones(1, 4, 4, 0), filter=ones(3, 3, 0, 2)),
        zeros(1, 4, 4, 0),
    ),
    (
        "own: no output channels, conv2d",
        raw("Conv2D", input=ones(1, 4, 4, 2), filter=ones(3, 3, 2, 0)),
        zeros(1, 4, 4, 0),
    ),
    (
        "own: no output channels, input gradient",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[1, 4, 4, 2],
            filter=ones(3, 3, 2, 0),
            out_backprop=ones(1, 4, 4, 0),
        ),
        zeros(1, 4, 4, 2),
    ),
    (
        "own: an empty window, filter gradient",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 4, 4, 2),
            filter_sizes=[0, 3, 2, 1],
            out_backprop=ones(1, 4, 4, 1),
        ),
        zeros(0, 3, 2, 1),
    ),
    (
        "#9949: zero-length input",
        lambda: v1.conv2d_backprop_filter(
            ones(2, 0, 3, 1), [3, 3, 1, 1], ones(2, 0, 3, 1), [1] * 4, "SAME"
        ),
        zeros(3, 3, 1, 1),
    ),
    (
        "own: window larger than the input by less than a stride",
        lambda: nn.conv2d(ones(1, 2, 2, 1), ones(5, 5, 1, 1), 4, "VALID"),
        zeros(1, 0, 0, 1),
    ),
    (
        "own: dilation 2**31 - 1, forward: the middle tap alone meets the image",
        lambda: nn.conv2d(
            line(1, 2, 3), line(10, 100, 1000).reshape(3, 1, 1, 1), 1, "SAME", dilations=[MOST, 1]
        ),
        line(100, 200, 300),
    ),
    (
        "own: dilation 2**31 - 1, depthwise forward",
        raw(
            "DepthwiseConv2dNative",
            input=line(1, 2, 3),
            filter=line(10, 100, 1000).reshape(3, 1, 1, 1),
            dilations=[1, MOST, 1, 1],
        ),
        line(100, 200, 300),
    ),
    (
        "own: dilation 2**31 - 1, depthwise filter gradient",
        lambda: nn.depthwise_conv2d_backprop_filter(
            line(1, 2, 3),
            [3, 1, 1, 1],
            line(1, 10, 100),
            [1] * 4,
            "SAME",
            dilations=[1, MOST, MOST, 1],
        ),
        np.array([0, 321, 0], np.float32).reshape(3, 1, 1, 1),
    ),
    (
        "own: dilation 2**31 - 1, depthwise input gradient",
        lambda: nn.depthwise_conv2d_backprop_input(
            [1, 3, 1, 1],
            line(10, 100, 1000).reshape(3, 1, 1, 1),
            line(1, 2, 3),
            [1] * 4,
            "SAME",
            dilations=[1, MOST, MOST, 1],
        ),
        line(100, 200, 300),
    ),
    (
        "own: dilation 2**31 - 1, filter gradient",
        lambda: v1.conv2d_backprop_filter(
            line(1, 2, 3),
            [3, 1, 1, 1],
            line(1, 10, 100),
            [1] * 4,
            "SAME",
            dilations=[1, MOST, MOST, 1],
        ),
        np.array([0, 321, 0], np.float32).reshape(3, 1, 1, 1),
    ),
    (
        "own: dilation 2**31 - 1, input gradient",
        lambda: v1.conv2d_backprop_input(
            [1, 3, 1, 1],
            line(10, 100, 1000).reshape(3, 1, 1, 1),
            line(1, 2, 3),
            [1] * 4,
            "SAME",
            dilations=[1, MOST, MOST, 1],
        ),
        line(100, 200, 300),
    ),
    (
        "own: pads and strides of 2**31 - 1: three windows, the middle one on the image",
        lambda: convgrad.conv2d(line(5, 6), ones(1, 1, 1, 1), MOST, ((MOST, MOST), (MOST, MOST))),
        np.array([[0, 0, 0], [0, 5, 0], [0, 0, 0]], np.float32).reshape(1, 3, 3, 1),
    ),
    (
        "own: pads and strides of 2**31 - 1, input gradient",
        lambda: convgrad.conv2d_backprop_input(
            [1, 2, 1, 1],
            ones(1, 1, 1, 1),
            np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1),
            MOST,
            ((MOST, MOST), (MOST, MOST)),
        ),
        line(4, 0),
    ),
    (
        "own: pads and strides of 2**31 - 1, filter gradient",
        lambda: convgrad.depthwise_conv2d_backprop_filter(
            line(5, 6),
            [1, 1, 1, 1],
            np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1),
            MOST,
            ((MOST, MOST), (MOST, MOST)),
        ),
        np.full((1, 1, 1, 1), 20, np.float32),
    ),
    (
        "own: stride 2**31 - 1, SAME",
        lambda: nn.conv2d(line(7, 8, 9), ones(1, 1, 1, 1), MOST, "SAME"),
        line(7),
    ),
    (
        "#61905 (TFLite): stride above 0xffff",
        lambda: nn.conv2d(line(*range(9)), ones(1, 1, 1, 1), [0x10000, 1], "SAME"),
        line(0),
    ),
    (
        "#61905: stride 0x10001 over a long image",
        lambda: nn.depthwise_conv2d(
            np.arange(0x10002, dtype=np.float32).reshape(1, -1, 1, 1),
            ones(1, 1, 1, 1),
            [1, 0x10001, 0x10001, 1],
            "VALID",
        ),
        line(0, 0x10001),
    ),
    (
        "own: 2 input sizes and huge batch of nothing",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[3, 3],
            filter=ones(1, 1, 2, 4),
            out_backprop=ones(0, 3, 3, 4),
        ),
        zeros(0, 3, 3, 2),
    ),
    (
        "pytorch#195394: 1x1 image, kernel 125x1, pad 63, odd strides of memory",
        lambda: convgrad.conv2d(
            np.full((1, 1, 3, 8), 2, np.float32)[:, :, ::3, ::2],
            np.arange(125 * 4, dtype=np.float32).reshape(125, 1, 4, 1),
            1,
            ((63, 63), (0, 0)),
        ),
        np.array([2 * sum(range(4 * r, 4 * r + 4)) for r in (63, 62, 61)], np.float32).reshape(
            1, 3, 1, 1
        ),
    ),
    (
        "FBGEMM PR#395: output smaller than the padding",
        lambda: convgrad.conv2d(line(1, 2), ones(7, 1, 1, 1), 1, ((5, 3), (0, 0))),
        line(3, 3, 3, 3),
    ),
    (
        "own: whole windows in the padding",
        lambda: convgrad.depthwise_conv2d(line(1, 2), ones(2, 1, 1, 1), 1, ((3, 3), (0, 0))),
        line(0, 0, 1, 3, 2, 0, 0),
    ),
]


@pytest.mark.parametrize(("report", "call", "wanted"), COMPUTED, ids=[row[0] for row in COMPUTED])
def test_computed(report, call, wanted):
    result = call()
    assert result.dtype == wanted.dtype
    assert result.shape == wanted.shape
    assert np.array_equal(result, wanted)


@pytest.mark.parametrize("batch", [65535, 65536, 65537])
def test_pytorch_96225_large_batches(batch):
    x = (np.arange(batch, dtype=np.float32) % 97).reshape(batch, 1, 1, 1)
    two = np.full((1, 1, 1, 1), 2, np.float32)
    assert np.array_equal(nn.conv2d(x, two, 1, "SAME"), 2 * x)
    assert np.array_equal(nn.depthwise_conv2d(x, two, [1] * 4, "SAME"), 2 * x)
    assert np.array_equal(v1.conv2d_backprop_input(x.shape, two, x, [1] * 4, "SAME"), 2 * x)
    total = convgrad.conv2d_backprop_filter(
        x.astype(np.float64), [1, 1, 1, 1], np.ones_like(x, np.float64), 1, "SAME"
    )
    assert total.item() == x.sum(dtype=np.float64)


@pytest.mark.parametrize("channels", [1, 3, 5, 7, 9, 15, 17, 31, 33])
def test_paddle_11016_nothing_is_read_past_the_last_channel(channels):
    """The memory after every operand holds NaN: one read too far would show."""
    x, f, g = (
        np.full(size + 64, np.nan, np.float32)
        for size in (9 * channels, 4 * channels, 9 * channels)
    )
    for each, size in ((x, 9 * channels), (f, 4 * channels), (g, 9 * channels)):
        each[:size] = 1
    image, window = (1, 3, 3, channels), (2, 2, channels, 1)
    x, f, g = (
        x[: 9 * channels].reshape(image),
        f[: 4 * channels].reshape(window),
        g[: 9 * channels].reshape(image),
    )
    for result, total in (
        (convgrad.depthwise_conv2d(x, f, 1, "SAME"), 25 * channels),
        (convgrad.depthwise_conv2d_backprop_input(image, f, g, 1, "SAME"), 25 * channels),
        (convgrad.depthwise_conv2d_backprop_filter(x, window, g, 1, "SAME"), 25 * channels),
        (convgrad.conv2d(x, f.reshape(2, 2, channels, 1), 1, "SAME"), 25 * channels),
    ):
        assert result.sum() == total


CELLS = [(0, 0), (2, 3), (4, 5)]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_63391_nan_reaches_its_windows_and_nothing_else(value, cell, layout):
    """A bad cell shows in every window that holds it, and in no other window, image or channel group."""
    x = np.ones((2, 5, 6, 3), np.float32)
    x[1, cell[0], cell[1], 2] = value
    f = np.ones((3, 3, 3, 1), np.float32)
    touched = np.zeros((2, 5, 6, 3), bool)
    touched[1, max(0, cell[0] - 1) : cell[0] + 2, max(0, cell[1] - 1) : cell[1] + 2, 2] = True
    order = (0, 1, 2, 3) if layout == "NHWC" else (0, 3, 1, 2)
    back = (0, 1, 2, 3) if layout == "NHWC" else (0, 2, 3, 1)
    y = convgrad.depthwise_conv2d(x.transpose(order), f, 1, "SAME", layout).transpose(back)
    assert np.array_equal(~np.isfinite(y), touched)
    dx = convgrad.depthwise_conv2d_backprop_input(
        x.transpose(order).shape, f, x.transpose(order), 1, "SAME", layout
    ).transpose(back)
    assert np.array_equal(~np.isfinite(dx), touched)
    y = convgrad.conv2d(x.transpose(order), f, 1, "SAME", layout).transpose(back)
    assert np.array_equal(~np.isfinite(y), touched[..., 2:])
    df = convgrad.depthwise_conv2d_backprop_filter(
        x.transpose(order), f.shape, np.ones_like(x).transpose(order), 1, "SAME", layout
    )
    assert np.isfinite(df[:, :, :2]).all() and not np.isfinite(df[1, 1, 2, 0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_signalling_nan_is_silent(dtype):
    quiet = {2: (np.uint16, 0x7D01), 4: (np.uint32, 0x7FA00001), 8: (np.uint64, 0x7FF4000000000001)}
    kind, bits = quiet[np.dtype(dtype).itemsize]
    x = np.full((1, 1, 1, 1), bits, kind).view(dtype)
    with np.errstate(all="raise"):
        assert np.isnan(convgrad.conv2d(x, np.ones(x.shape, dtype), 1, "SAME").item())
