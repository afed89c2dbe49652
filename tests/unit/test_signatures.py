"""Names, parameters, order and defaults are TensorFlow's, letter for letter."""

from __future__ import annotations

import doctest
import inspect
import warnings

import numpy as np
import pytest

import convgrad
from convgrad import nn, raw_ops
from convgrad.compat import v1, v2

ONES = "[1, 1, 1, 1]"
_STRICT = f"strides, padding, data_format='NHWC', dilations={ONES}, name=None"
_INPUT_GRADIENT = f"input_sizes, filter, out_backprop, {_STRICT}"
_FILTER_GRADIENT = f"input, filter_sizes, out_backprop, {_STRICT}"
_RAW = f"strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], data_format='NHWC', dilations={ONES}, name=None"
_RAW_DEPTHWISE = _RAW.replace("use_cudnn_on_gpu=True, ", "")

SIGNATURES = {
    nn: {
        "conv2d": "input, filters, strides, padding, data_format='NHWC', dilations=None, name=None",
        "conv2d_transpose": "input, filters, output_shape, strides, padding='SAME', data_format='NHWC', "
        "dilations=None, name=None",
        "depthwise_conv2d": "input, filter, strides, padding, data_format=None, dilations=None, name=None",
        "depthwise_conv2d_backprop_input": _INPUT_GRADIENT,
        "depthwise_conv2d_backprop_filter": _FILTER_GRADIENT,
        "separable_conv2d": "input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, "
        "dilations=None, name=None",
    },
    v1.nn: {
        "conv2d": "input, filter=None, strides=None, padding=None, use_cudnn_on_gpu=True, data_format='NHWC', "
        f"dilations={ONES}, name=None, filters=None",
        "conv2d_backprop_input": "input_sizes, filter=None, out_backprop=None, strides=None, padding=None, "
        f"use_cudnn_on_gpu=True, data_format='NHWC', dilations={ONES}, name=None, filters=None",
        "conv2d_backprop_filter": "input, filter_sizes, out_backprop, strides, padding, use_cudnn_on_gpu=True, "
        f"data_format='NHWC', dilations={ONES}, name=None",
        "conv2d_transpose": "value=None, filter=None, output_shape=None, strides=None, padding='SAME', "
        "data_format='NHWC', name=None, input=None, filters=None, dilations=None",
        "depthwise_conv2d": "input, filter, strides, padding, rate=None, name=None, data_format=None, dilations=None",
        "depthwise_conv2d_native": f"input, filter, strides, padding, data_format='NHWC', dilations={ONES}, name=None",
        "depthwise_conv2d_backprop_input": _INPUT_GRADIENT,
        "depthwise_conv2d_backprop_filter": _FILTER_GRADIENT,
        "depthwise_conv2d_native_backprop_input": _INPUT_GRADIENT,
        "depthwise_conv2d_native_backprop_filter": _FILTER_GRADIENT,
        "separable_conv2d": "input, depthwise_filter, pointwise_filter, strides, padding, rate=None, name=None, "
        "data_format=None, dilations=None",
    },
    raw_ops: {
        "Conv2D": f"input, filter, {_RAW}",
        "Conv2DBackpropInput": f"input_sizes, filter, out_backprop, {_RAW}",
        "Conv2DBackpropFilter": f"input, filter_sizes, out_backprop, {_RAW}",
        "Conv2DBackpropInputV2": f"input, filter, out_backprop, {_RAW}",
        "Conv2DBackpropFilterV2": f"input, filter, out_backprop, {_RAW}",
        "DepthwiseConv2dNative": f"input, filter, {_RAW_DEPTHWISE}",
        "DepthwiseConv2dNativeBackpropInput": f"input_sizes, filter, out_backprop, {_RAW_DEPTHWISE}",
        "DepthwiseConv2dNativeBackpropFilter": f"input, filter_sizes, out_backprop, {_RAW_DEPTHWISE}",
    },
    # Our own: TensorFlow's names and order, with 1 where TensorFlow writes None or four ones.
    convgrad: {
        "conv2d": "input, filters, strides, padding, data_format='NHWC', dilations=1, name=None",
        "conv2d_backprop_input": _INPUT_GRADIENT.replace(ONES, "1"),
        "conv2d_backprop_filter": _FILTER_GRADIENT.replace(ONES, "1"),
        "conv2d_transpose": "input, filters, output_shape, strides, padding='SAME', data_format='NHWC', "
        "dilations=1, name=None",
        "depthwise_conv2d": "input, filter, strides, padding, data_format='NHWC', dilations=1, name=None",
        "depthwise_conv2d_backprop_input": _INPUT_GRADIENT.replace(ONES, "1"),
        "depthwise_conv2d_backprop_filter": _FILTER_GRADIENT.replace(ONES, "1"),
        "separable_conv2d": "input, depthwise_filter, pointwise_filter, strides, padding, data_format='NHWC', "
        "dilations=1, name=None",
    },
}
_SETTINGS = (
    "epsilon=0.001, is_training=True, activation='none', negative_slope=0.2, residual=None, "
    "residual_position='before', data_format='NHWC'"
)
BETWEEN = {
    "batch_norm_act": (
        "input, scale=None, offset=None, mean=None, variance=None",
        _SETTINGS,
    ),
    "batch_norm_act_grad": ("out_backprop, input, scale, offset, mean, variance", _SETTINGS),
}
"""What stands between convolutions: arrays by position, settings by keyword, the oracle's alike.

Of `tf.compat.v1.nn.fused_batch_norm` these are the names, order and defaults of what it has.
"""
TOOLS = {"explain", "export", "get_num_threads", "options", "set_num_threads", "threads"}
"""Functions of the top level that are not operations."""

ROWS = [
    (module, name, text) for module, names in SIGNATURES.items() for name, text in names.items()
]
IDS = [f"{module.__name__}.{name}" for module, name, _ in ROWS]


@pytest.mark.parametrize(("module", "name", "text"), ROWS, ids=IDS)
def test_parameters_order_and_defaults(module, name, text):
    parameters = inspect.signature(getattr(module, name)).parameters.values()
    written = [
        each.name if each.default is each.empty else f"{each.name}={each.default!r}"
        for each in parameters
    ]
    assert ", ".join(written) == text
    kind = (
        inspect.Parameter.KEYWORD_ONLY
        if module is raw_ops
        else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    assert {each.kind for each in parameters} == {kind}


@pytest.mark.parametrize("module", SIGNATURES, ids=lambda module: module.__name__)
def test_no_function_is_missing_or_too_many(module):
    public = {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}
    between = BETWEEN.keys() if module is convgrad else set()
    assert public - TOOLS - between == SIGNATURES[module].keys()


@pytest.mark.parametrize("module", [convgrad, convgrad.reference], ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", BETWEEN)
def test_settings_of_batch_norm_go_by_keyword(module, name):
    parameters = inspect.signature(getattr(module, name)).parameters.values()
    for kind, text in zip(
        (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY),
        BETWEEN[name],
        strict=True,
    ):
        written = [
            each.name if each.default is each.empty else f"{each.name}={each.default!r}"
            for each in parameters
            if each.kind is kind
        ]
        assert ", ".join(written) == text


SAME_OBJECTS = [
    *((v2.nn, nn, name, name) for name in SIGNATURES[nn]),
    *((v1.raw_ops, raw_ops, name, name) for name in SIGNATURES[raw_ops]),
    *((v2.raw_ops, raw_ops, name, name) for name in SIGNATURES[raw_ops]),
    *(
        (
            v1.nn,
            nn,
            f"depthwise_conv2d_{native}backprop_{what}",
            f"depthwise_conv2d_backprop_{what}",
        )
        for native in ("", "native_")
        for what in ("input", "filter")
    ),
]


@pytest.mark.parametrize(
    ("module", "original", "alias", "name"),
    SAME_OBJECTS,
    ids=[f"{module.__name__}.{alias}" for module, _, alias, _ in SAME_OBJECTS],
)
def test_aliases_are_one_object(module, original, alias, name):
    assert getattr(module, alias) is getattr(original, name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (v1.nn.conv2d, nn.conv2d),
        (v1.nn.conv2d_transpose, nn.conv2d_transpose),
        (v1.nn.depthwise_conv2d, nn.depthwise_conv2d),
        (v1.nn.depthwise_conv2d, v1.nn.depthwise_conv2d_native),
        (v1.nn.separable_conv2d, nn.separable_conv2d),
    ],
)
def test_functions_of_different_signature_are_different_objects(one, other):
    assert one is not other


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *(
            (module, name)
            for module in (nn, v2.nn)
            for name in (
                "conv2d_backprop_input",
                "conv2d_backprop_filter",
                "depthwise_conv2d_native",
                "depthwise_conv2d_native_backprop_input",
                "depthwise_conv2d_native_backprop_filter",
            )
        ),
        *((module, "conv2d_native") for module in (nn, v1.nn)),
        *(
            (module, "DepthwiseConv2dNativeBackpropInputV2")
            for module in (raw_ops, v1.raw_ops, v2.raw_ops)
        ),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_names_tensorflow_does_not_have(module, name):
    assert not hasattr(module, name)


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("depthwise_conv2d_native", "nn.depthwise_conv2d_native"),
        ("depthwise_conv2d_native_backprop_input", "nn.depthwise_conv2d_native_backprop_input"),
        ("depthwise_conv2d_native_backprop_filter", "nn.depthwise_conv2d_native_backprop_filter"),
    ],
)
def test_deprecated_endpoints_carry_a_mark_and_stay_silent(name, mark, capfd):
    x = np.ones((1, 2, 2, 1), np.float32)
    arguments = {
        "depthwise_conv2d_native": (x, np.ones((1, 1, 1, 1), np.float32)),
        "depthwise_conv2d_native_backprop_input": (
            [1, 2, 2, 1],
            np.ones((1, 1, 1, 1), np.float32),
            x,
        ),
        "depthwise_conv2d_native_backprop_filter": (x, [1, 1, 1, 1], x),
    }[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function = getattr(v1.nn, name)
        function(*arguments, [1, 1, 1, 1], "SAME")
    assert function._tf_deprecated_api_names == (mark,)
    assert "deprecated" not in function.__doc__.lower()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "function",
    [
        nn.conv2d,
        nn.conv2d_transpose,
        nn.depthwise_conv2d,
        v1.nn.conv2d,
        v1.nn.separable_conv2d,
        raw_ops.Conv2D,
    ],
)
def test_other_functions_carry_no_mark(function):
    assert not hasattr(function, "_tf_deprecated_api_names")


@pytest.mark.parametrize(("module", "name", "text"), ROWS, ids=IDS)
def test_docstring_has_a_formula_and_an_example_that_runs(module, name, text):
    function = getattr(module, name)
    documentation = inspect.getdoc(function)
    assert documentation.splitlines()[0].endswith(".")
    assert "sum" in documentation and "``" in documentation
    examples = doctest.DocTestParser().get_doctest(documentation, {}, name, None, 0)
    assert any(example.want for example in examples.examples)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(examples).failed == 0


@pytest.mark.parametrize(("module", "name", "text"), ROWS, ids=IDS)
def test_function_knows_its_own_name_and_types(module, name, text):
    function = getattr(module, name)
    if "native_backprop" not in name:
        assert function.__name__ == name
    annotations = function.__annotations__
    assert set(annotations) == {*inspect.signature(function).parameters, "return"}
