"""Calls of every op of a graph: one that is right, and those that break a rule, with the error they deserve.

A pair of dtype and shape stands for a placeholder, "variable" for a Variable of shape [2, 3].
"""

from __future__ import annotations

import numpy as np

from convgrad._base.errors import ArgumentError, ArgumentTypeError, DTypeError

F, INT32 = np.float32, np.int32
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
IMAGE, TAPS = ("float32", (1, 4, 4, 2)), ("float32", (3, 3, 2, 2))
MULTIPLIED = ("float32", (1, 4, 4, 4))
X = ("float32", (2, 3))
SMALL = ("float32", (1, 2, 2, 2))

GOOD = {
    "Conv2D": ((IMAGE, TAPS), CONV),
    "Conv2DBackpropInput": (([1, 4, 4, 2], TAPS, IMAGE), CONV),
    "Conv2DBackpropFilter": ((IMAGE, [3, 3, 2, 2], IMAGE), CONV),
    "DepthwiseConv2dNative": ((IMAGE, TAPS), CONV),
    "DepthwiseConv2dNativeBackpropInput": (([1, 4, 4, 2], TAPS, MULTIPLIED), CONV),
    "DepthwiseConv2dNativeBackpropFilter": ((IMAGE, [3, 3, 2, 2], MULTIPLIED), CONV),
    "Const": ((), {"value": 1.0}),
    "Placeholder": ((), {"dtype": "float32"}),
    "RandomNormal": (([2, 3],), {"dtype": "float32"}),
    "RandomUniform": (([2, 3],), {"dtype": "float32"}),
    "Range": ((0, 5, 1), {}),
    "Shape": ((X,), {}),
    "Reshape": ((X, [3, 2]), {}),
    "Transpose": ((X, [1, 0]), {}),
    "InvertPermutation": (([1, 0],), {}),
    "Cast": ((X,), {"DstT": "int32"}),
    "OneHot": (([0, 1], 3, 1.0, 0.0), {}),
    "BroadcastTo": ((X, [4, 2, 3]), {}),
    "SumToShape": ((X, [1, 3]), {}),
    **{name: ((X, X), {}) for name in ("Add", "Subtract", "Multiply", "Div", "Equal", "ReluGrad")},
    "AddN": (([X, X],), {}),
    **{
        name: ((X,), {})
        for name in (
            "Negate",
            "Square",
            "Sqrt",
            "Exp",
            "Log",
            "Tanh",
            "Sigmoid",
            "Relu",
            "L2Loss",
            "Softmax",
            "LogSoftmax",
            "BiasAddGrad",
        )
    },
    "MatMul": ((X, ("float32", (3, 4))), {}),
    "Sum": ((X, [0]), {}),
    "Mean": ((X, [0]), {}),
    "SpreadReduced": ((("float32", (3,)), [0], [2, 3]), {}),
    "ArgMax": ((X, 0), {}),
    "BiasAdd": ((X, ("float32", (3,))), {}),
    "SoftmaxCrossEntropyWithLogits": ((X, X), {}),
    "MaxPool": ((IMAGE,), POOL),
    "MaxPoolGrad": ((IMAGE, SMALL, SMALL), POOL),
    "MaxPoolGradGrad": ((IMAGE, SMALL, IMAGE), POOL),
    "Variable": ((), {"shape": [2], "dtype": "float32"}),
    "Assign": (("variable", X), {}),
    "ApplyGradientDescent": (("variable", 0.1, X), {}),
}
"""A right call of every op; a pair of dtype and shape is a placeholder."""

BAD = {
    "Conv2D": [
        ((IMAGE, ("float32", (3, 3, 5, 2))), {}, ArgumentError, "`filter`"),
        ((X, TAPS), {}, ArgumentError, "`input` must be 4-dimensional"),
    ],
    "Conv2DBackpropInput": [
        (([1, 4, 4], TAPS, IMAGE), {}, ArgumentError, "`input_sizes` must hold 4 values or 2")
    ],
    "Conv2DBackpropFilter": [((IMAGE, [3, 3, 2, 2], SMALL), {}, ArgumentError, "`out_backprop`")],
    "DepthwiseConv2dNative": [((IMAGE, ("float32", (3, 3, 5, 2))), {}, ArgumentError, "`filter`")],
    "DepthwiseConv2dNativeBackpropInput": [
        (([1, 4, 4, 2], TAPS, IMAGE), {}, ArgumentError, "`out_backprop`")
    ],
    "DepthwiseConv2dNativeBackpropFilter": [
        ((IMAGE, [[3, 3, 2, 2]], IMAGE), {}, ArgumentError, "`filter_sizes` must be a vector")
    ],
    "Const": [
        ((), {"value": "text"}, ArgumentTypeError, "`value` must hold numbers"),
        ((), {"value": [[1], [2, 3]]}, ArgumentError, "`value` must be an array"),
        (
            (),
            {"value": [1, 2], "shape": [3]},
            ArgumentError,
            "`value` must be one number or have shape [3], got [2]",
        ),
        ((), {"value": 1, "shape": [None]}, ArgumentError, "`shape` must hold sizes >= 0"),
        ((), {"value": 300, "dtype": "uint8"}, ArgumentError, "numbers that uint8 can hold"),
    ],
    "Placeholder": [
        ((), {"dtype": "float33"}, ArgumentError, "`dtype` must be one of DT_HALF"),
        ((), {"dtype": F, "shape": [-2]}, ArgumentError, "`shape` must hold sizes >= 0"),
        ((), {"dtype": F, "shape": [2.5]}, ArgumentTypeError, "`shape` must be"),
        ((), {"dtype": F, "shape": "2"}, ArgumentTypeError, "`shape` must be a list"),
    ],
    "RandomNormal": [
        (([2, -1],), {}, ArgumentError, "`shape` must hold sizes >= 0"),
        (([2],), {"dtype": INT32}, ArgumentError, "`dtype` must be one of float16"),
        (([2],), {"seed": 1.5}, ArgumentTypeError, "`seed` must be an integer"),
        (([2],), {"seed2": 2**63}, ArgumentError, "`seed2` must fit 64 bits"),
    ],
    "RandomUniform": [((3,), {}, ArgumentError, "`shape` must be a vector")],
    "Range": [
        ((0, 5, 0), {}, ArgumentError, "`delta` must not be 0"),
        ((5, 0, 1), {}, ArgumentError, "`start` must be <= `limit`"),
        (([0], 5, 1), {}, ArgumentError, "`start` must be a scalar"),
    ],
    "Shape": [((X,), {"out_type": F}, ArgumentError, "`out_type` must be int32 or int64")],
    "Reshape": [
        (
            (X, [4, 2]),
            {},
            ArgumentError,
            "as many elements as the tensor, 6 of shape [2, 3], got 8",
        ),
        ((X, [-1, -1]), {}, ArgumentError, "at most one -1"),
        ((X, [4, -1]), {}, ArgumentError, "whole size for -1"),
        ((X, 6), {}, ArgumentError, "`shape` must be a vector"),
        ((X, [-2, 3]), {}, ArgumentError, "sizes >= 0 or one -1"),
    ],
    "Transpose": [
        ((X, [0]), {}, ArgumentError, "`perm` must name the 2 dimensions of `x`"),
        ((X, [0, 0]), {}, ArgumentError, "each of 0 to 1 once"),
        ((X, [0, 2]), {}, ArgumentError, "once"),
    ],
    "InvertPermutation": [
        (([0, 2],), {}, ArgumentError, "each of 0 to 1 once"),
        ((0,), {}, ArgumentError, "`x` must be a vector"),
    ],
    "Cast": [
        ((X,), {"DstT": "complex64"}, ArgumentError, "`DstT` must be one of"),
        ((X,), {"DstT": 3}, ArgumentTypeError, "`DstT` must be a dtype"),
    ],
    "OneHot": [
        (([0], -1, 1.0, 0.0), {}, ArgumentError, "`depth` must be >= 0"),
        (([0], [3], 1.0, 0.0), {}, ArgumentError, "`depth` must be a scalar"),
        (([0], 3, 1.0, 0.0), {"axis": 2}, ArgumentError, "`axis` must lie in [-1, 1]"),
        (
            ([0], 3, 1.0, False),
            {},
            DTypeError,
            "`on_value` and `off_value` must have the same dtype",
        ),
    ],
    "BroadcastTo": [
        ((X, [3]), {}, ArgumentError, "must broadcast to `shape`"),
        ((X, [2, 4]), {}, ArgumentError, "broadcast"),
        ((X, [2, -3]), {}, ArgumentError, "sizes >= 0"),
    ],
    "SumToShape": [
        ((X, [2]), {}, ArgumentError, "broadcast"),
        ((X, [1, 2, 3]), {}, ArgumentError, "`shape` must broadcast to that of `input`"),
    ],
    **{
        name: [
            ((X, ("float32", (4,))), {}, ArgumentError, "broadcast together, got [2, 3] and [4]"),
            ((X, ("float64", (3,))), {}, DTypeError, "`x` and `y` must have the same dtype"),
        ]
        for name in ("Add", "Subtract", "Multiply", "Div", "Equal")
    },
    "ReluGrad": [
        (
            (X, ("float32", (3,))),
            {},
            ArgumentError,
            "`gradients` and `features` must have one shape",
        )
    ],
    "AddN": [
        (([],), {}, ArgumentError, "at least one tensor"),
        (([X, ("float32", (3,))],), {}, ArgumentError, "one shape, got [2, 3] and [3]"),
        ((X,), {}, ArgumentTypeError, "`inputs` must be a list of tensors"),
        (([X, ("int32", (2, 3))],), {}, DTypeError, "same dtype"),
    ],
    **{
        name: [((("bool", (2,)),), {}, DTypeError, "must be one of")]
        for name in ("Negate", "Square", "Relu", "BiasAddGrad")
    },
    **{
        name: [
            (
                (("int32", (2,)),),
                {},
                DTypeError,
                "must be one of float16, bfloat16, float32, float64, got int32",
            )
        ]
        for name in ("Sqrt", "Exp", "Log", "Tanh", "Sigmoid", "L2Loss")
    },
    **{
        name: [((1.0,), {}, ArgumentError, "`logits` must have at least 1 dimension")]
        for name in ("Softmax", "LogSoftmax")
    },
    "MatMul": [
        (
            (X, X),
            {},
            ArgumentError,
            "as many columns as `b` has rows, after transposing, got [2, 3] and [2, 3]",
        ),
        ((X, ("float32", (3,))), {}, ArgumentError, "`b` must have 2 dimensions"),
        ((X, X), {"transpose_a": 1}, ArgumentTypeError, "`transpose_a` must be True or False"),
    ],
    **{
        name: [
            ((X, [2]), {}, ArgumentError, "`axis` must lie in [-2, 2), got 2"),
            ((X, [0, -2]), {}, ArgumentError, "name every dimension once"),
            ((X, [[0]]), {}, ArgumentError, "`axis` must be a scalar or a vector"),
        ]
        for name in ("Sum", "Mean")
    },
    "SpreadReduced": [
        ((X, [5], [2, 3]), {}, ArgumentError, "`axis` must lie in"),
        ((X, [1], [2, 3]), {}, ArgumentError, "`input` must have"),
    ],
    "ArgMax": [
        ((X, 2), {}, ArgumentError, "`dimension` must lie in [-2, 2)"),
        ((1.0, 0), {}, ArgumentError, "`input` must have at least 1 dimension"),
        ((X, [0]), {}, ArgumentError, "`dimension` must be a scalar"),
        ((("float32", (0, 3)), 0), {}, ArgumentError, "must not be empty"),
        ((X, 0), {"output_type": F}, ArgumentError, "`output_type` must be"),
    ],
    "BiasAdd": [
        (
            (X, ("float32", (2,))),
            {},
            ArgumentError,
            "`bias` must have as many elements as `value` has channels, 3, got 2",
        ),
        ((X, X), {}, ArgumentError, "`bias` must have 1 dimensions"),
        ((("float32", (3,)), ("float32", (3,))), {}, ArgumentError, "`value` must have at least 2"),
        (
            (X, ("float32", (3,))),
            {"data_format": "NHCW"},
            ArgumentError,
            "`data_format` must be 'NHWC' or 'NCHW'",
        ),
    ],
    "SoftmaxCrossEntropyWithLogits": [
        ((X, ("float32", (2, 4))), {}, ArgumentError, "broadcast together"),
        ((X, ("float32", (3,))), {}, ArgumentError, "`labels` must have 2 dimensions"),
    ],
    "MaxPool": [
        ((X,), {}, ArgumentError, "`input` must have 4 dimensions"),
        ((IMAGE,), {"ksize": [1, 2, 2]}, ArgumentError, "`ksize` must hold 4 values above 0"),
        ((IMAGE,), {"ksize": [2, 2, 2, 1]}, ArgumentError, "`ksize` must be 1 for images"),
        ((IMAGE,), {"padding": "valid"}, ArgumentError, "`padding` must be"),
        ((IMAGE,), {"strides": [1, 0, 1, 1]}, ArgumentError, "`strides`"),
        ((IMAGE,), {"ksize": [1, 9, 2, 1]}, ArgumentError, "windows of 9 must fit into the rows"),
        (
            (IMAGE,),
            {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 2, 0, 0, 0, 0, 0]},
            ArgumentError,
            "padding must be smaller than the window",
        ),
    ],
    "MaxPoolGrad": [
        ((IMAGE, SMALL, IMAGE), {}, ArgumentError, "`grad` must have shape [1, 2, 2, 2]"),
        ((IMAGE, IMAGE, SMALL), {}, ArgumentError, "`orig_output` must have shape"),
    ],
    "MaxPoolGradGrad": [
        ((IMAGE, SMALL, SMALL), {}, ArgumentError, "`grad` must have shape [1, 4, 4, 2]")
    ],
    "Variable": [
        ((), {"shape": [-2]}, ArgumentError, "`shape` must hold sizes"),
        ((), {"container": 3}, ArgumentTypeError, "`container` must be a string"),
    ],
    "Assign": [
        ((X, X), {}, ArgumentError, "`ref` must be a Variable, got 'Placeholder:0', a Placeholder"),
        (
            ("variable", ("float32", (3,))),
            {},
            ArgumentError,
            "`value` must have the shape of `ref`, [2, 3], got [3]",
        ),
    ],
    "ApplyGradientDescent": [
        (("variable", [0.1], X), {}, ArgumentError, "`alpha` must be a scalar"),
        (("variable", 0.1, SMALL), {}, ArgumentError, "`delta` must have the shape of `var`"),
        ((X, 0.1, X), {}, ArgumentError, "`var` must be a Variable"),
    ],
}
