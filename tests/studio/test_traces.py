"""A cell's terms are the cell: of the six operations with any geometry, and of everything else that is traced."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convgrad._apps.graph.operation import Output
from convgrad._apps.graph.scope import Scope
from convgrad._apps.graph.session import ClientSession
from convgrad._apps.graph.table.convolutions import problem_of
from convgrad._apps.studio import trace_convolutions
from convgrad._apps.studio.trace import MOST_TERMS, trace
from convgrad._problem import oracle

RNG = np.random.default_rng(5)


def traced(output: Output, index: tuple[int, ...]):
    """Run a tensor and trace one of its cells."""
    node = output.operation
    result, *inputs = ClientSession(node.graph).run([output, *node.inputs])
    sources = [(each.operation.name, each.pin) for each in node.inputs]
    return trace(node, output.index, inputs, sources, result, index), result


def numbers(*shape: int) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape), np.float32)


SMALL = st.integers(1, 3)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(["", "BackpropInput", "BackpropFilter"]),
    depthwise=st.booleans(),
    nchw=st.booleans(),
    sizes=st.tuples(st.integers(1, 2), st.integers(4, 8), st.integers(4, 8)),
    window=st.tuples(SMALL, SMALL),
    strides=st.tuples(SMALL, SMALL),
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padding=st.sampled_from(["SAME", "VALID", "EXPLICIT"]),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    channels=st.tuples(SMALL, SMALL, SMALL),
    data=st.data(),
)
def test_the_terms_of_a_convolution_add_up(
    kind, depthwise, nchw, sizes, window, strides, dilations, padding, pads, channels, data
):
    groups, inside, multiple = channels
    if depthwise:
        in_c, taps = groups, (*window, groups, multiple)
    else:
        in_c, taps = groups * inside, (*window, inside, groups * multiple)
    strides = strides if not depthwise else (strides[0], strides[0])

    def four(a, b):
        return [1, 1, a, b] if nchw else [1, a, b, 1]

    attrs = {
        "strides": four(*strides),
        "dilations": four(*dilations),
        "padding": padding,
        "data_format": "NCHW" if nchw else "NHWC",
    }
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [0, 0, 0, 0, *pads] if nchw else [0, 0, *pads, 0, 0]
    n, h, w = sizes
    image = (n, in_c, h, w) if nchw else (n, h, w, in_c)
    base = "DepthwiseConv2dNative" if depthwise else "Conv2D"
    if any((size - 1) * dilation + 1 > 4 for size, dilation in zip(window, dilations, strict=True)):
        dilations = (1, 1)
        attrs["dilations"] = [1, 1, 1, 1]
    scope = Scope.new_root_scope()
    x, f = scope.constant(numbers(*image)), scope.constant(numbers(*taps))
    forward = scope.op(base, x, f, **attrs)
    g = scope.constant(numbers(*forward.shape))
    output = {
        "": lambda: forward,
        "BackpropInput": lambda: scope.op(f"{base}BackpropInput", list(image), f, g, **attrs),
        "BackpropFilter": lambda: scope.op(f"{base}BackpropFilter", x, list(taps), g, **attrs),
    }[kind]()
    index = tuple(data.draw(st.integers(0, size - 1)) for size in output.shape)
    # By the obvious sums, which compile nothing; that kernels agree with them is tested elsewhere.
    node = output.operation
    arrays = [
        each.operation.attrs["value"] if each is not forward else None for each in node.inputs
    ]
    operands = [each.astype(np.float64) for each in arrays if each.ndim == 4]
    result = oracle.compute(problem_of(node), *operands)
    sources = [(each.operation.name, each.pin) for each in node.inputs]
    found = trace(node, 0, arrays, sources, result, index)
    assert found["sum"] == pytest.approx(found["value"], rel=1e-9, abs=1e-9)
    assert found["shown"] == found["total"] == len(found["terms"])
    assert math.fsum(term["product"] for term in found["terms"]) == pytest.approx(
        found["sum"], abs=1e-9
    )
    for term in found["terms"]:
        first, second = term["parts"]
        assert term["product"] == pytest.approx(first["value"] * second["value"])
        outside = [part for part in term["parts"] if part.get("padding")]
        assert bool(outside) is bool(term.get("padding"))
        assert all(part["value"] == 0 for part in outside)
    assert found["formula"].count("sum over") == 1


@pytest.mark.parametrize("kind", ["", "BackpropInput", "BackpropFilter"])
@pytest.mark.parametrize("base", ["Conv2D", "DepthwiseConv2dNative"])
def test_the_terms_add_up_to_what_a_session_computes(base, kind):
    scope = Scope.new_root_scope()
    x, f = scope.constant(numbers(2, 5, 5, 2)), scope.constant(numbers(3, 3, 2, 2))
    attrs = {"strides": [1, 2, 2, 1], "padding": "SAME"}
    output = scope.op(base, x, f, **attrs)
    g = scope.constant(numbers(*output.shape))
    if kind == "BackpropInput":
        output = scope.op(base + kind, [2, 5, 5, 2], f, g, **attrs)
    elif kind == "BackpropFilter":
        output = scope.op(base + kind, x, [3, 3, 2, 2], g, **attrs)
    for index in ((0, 0, 0, 0), (1, 2, 1, 1)):
        found, _ = traced(output, index)
        assert found["sum"] == pytest.approx(found["value"], rel=1e-4, abs=1e-5)


def test_a_tap_in_the_padding_is_listed():
    scope = Scope.new_root_scope()
    x, f = scope.constant(numbers(1, 3, 3, 1)), scope.constant(numbers(3, 3, 1, 1))
    output = scope.op("Conv2D", x, f, strides=[1, 1, 1, 1], padding="SAME")
    found, _ = traced(output, (0, 0, 0, 0))
    assert found["total"] == 9
    assert sum(term.get("padding", False) for term in found["terms"]) == 5
    assert found["terms"][0]["parts"][0]["index"] == [0, -1, -1, 0]


def test_long_sums_are_added_whole_and_shown_in_part():
    scope = Scope.new_root_scope()
    x, g = scope.constant(numbers(4, 40, 40, 1)), scope.constant(numbers(4, 40, 40, 1))
    output = scope.op(
        "Conv2DBackpropFilter", x, [1, 1, 1, 1], g, strides=[1, 1, 1, 1], padding="SAME"
    )
    found, _ = traced(output, (0, 0, 0, 0))
    assert found["total"] == 6400 and found["shown"] == len(found["terms"]) == MOST_TERMS
    assert found["sum"] == pytest.approx(found["value"], rel=1e-3)


def test_too_many_terms_are_refused(monkeypatch):
    monkeypatch.setattr(trace_convolutions, "MOST_ADDED", 10)
    with pytest.raises(ValueError, match="too many"):
        trace_convolutions._grid(3, 4)


CASES = {
    "Add": lambda s: s.op("Add", numbers(2, 3), numbers(3)),
    "Subtract": lambda s: s.op("Subtract", numbers(2, 1), numbers(1, 3)),
    "Multiply": lambda s: s.op("Multiply", numbers(2, 3), numbers(1)),
    "Div": lambda s: s.op("Div", numbers(2, 3), numbers(2, 3)),
    "AddN": lambda s: s.op("AddN", [numbers(2, 3), numbers(2, 3), numbers(2, 3)]),
    "MatMul": lambda s: s.op("MatMul", numbers(2, 4), numbers(4, 3)),
    "MatMul turned": lambda s: s.op(
        "MatMul", numbers(4, 2), numbers(3, 4), transpose_a=True, transpose_b=True
    ),
    "BiasAdd": lambda s: s.op("BiasAdd", numbers(2, 3), numbers(3)),
    "BiasAdd NCHW": lambda s: s.op("BiasAdd", numbers(1, 2, 2, 3), numbers(2), data_format="NCHW"),
    "Sum": lambda s: s.op("Sum", numbers(4, 3, 2), [0, -1]),
    "Sum kept": lambda s: s.op("Sum", numbers(4, 3, 2), [1], keep_dims=True),
    "Mean": lambda s: s.op("Mean", numbers(4, 3), 0),
    "scalars": lambda s: s.op("Multiply", numbers(), numbers()),
    "a scalar and a matrix": lambda s: s.op("Subtract", numbers(), numbers(2, 3)),
    "L2Loss of a scalar": lambda s: s.op("L2Loss", numbers()),
    "Reshape to a scalar": lambda s: s.op("Reshape", numbers(1, 1), []),
    "L2Loss": lambda s: s.op("L2Loss", numbers(4, 3)),
    "Relu": lambda s: s.op("Relu", numbers(4, 3)),
    "Tanh": lambda s: s.op("Tanh", numbers(4, 3)),
    "Sigmoid": lambda s: s.op("Sigmoid", numbers(4, 3)),
    "Cast": lambda s: s.op("Cast", numbers(4, 3), DstT="DT_DOUBLE"),
    "Transpose": lambda s: s.op("Transpose", numbers(4, 3, 2), [2, 0, 1]),
    "Reshape": lambda s: s.op("Reshape", numbers(4, 3), [2, -1]),
    "BroadcastTo": lambda s: s.op("BroadcastTo", numbers(3), [2, 3]),
    "cross entropy": lambda s: s.op(
        "SoftmaxCrossEntropyWithLogits", numbers(4, 3), np.abs(numbers(4, 3))
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_terms_of_other_ops_add_up(case):
    output = CASES[case](Scope.new_root_scope())
    for index in np.ndindex(*output.shape):
        found, result = traced(output, index)
        assert found["sum"] == pytest.approx(float(result[index]), rel=1e-5, abs=1e-6)
        assert found["formula"]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_window_of_a_pooling_has_its_largest(layout, padding):
    shape, window = (
        ((1, 5, 6, 2), [1, 3, 2, 1]) if layout == "NHWC" else ((1, 2, 5, 6), [1, 1, 3, 2])
    )
    strides = [1, 2, 2, 1] if layout == "NHWC" else [1, 1, 2, 2]
    scope = Scope.new_root_scope()
    output = scope.op(
        "MaxPool",
        numbers(*shape),
        ksize=window,
        strides=strides,
        padding=padding,
        data_format=layout,
    )
    for index in np.ndindex(*output.shape):
        found, _ = traced(output, index)
        inside = [term["product"] for term in found["terms"] if not term.get("padding")]
        assert max(inside) == found["value"] and found["sum"] is None


def test_rows_and_whole_inputs():
    scope = Scope.new_root_scope()
    found, _ = traced(scope.op("Softmax", numbers(2, 5)), (1, 2))
    assert [term["parts"][0]["index"] for term in found["terms"]] == [[1, at] for at in range(5)]
    found, _ = traced(scope.op("ArgMax", numbers(2, 5), 1), (1,))
    assert len(found["terms"]) == 5 and found["sum"] is None
    found, _ = traced(scope.op("OneHot", [1, 2], 3, 1.0, 0.0), (1, 2))
    assert found["terms"] == [] and "indices" in found["formula"]


@pytest.mark.parametrize(
    "make",
    [
        lambda scope: scope.op(
            "Div", np.array([7, -7, 9], np.int32), np.array([2, 2, 3], np.int32)
        ),
        lambda scope: scope.op("Mean", np.array([[1, 2, 4], [-1, -2, -4]], np.int32), [1]),
        lambda scope: scope.op("Mean", np.ones((1, 49), np.int32), [1]),
        lambda scope: scope.op("Cast", np.array([1.7, -2.3, 0], np.float32), DstT=np.int32),
        lambda scope: scope.op("Cast", np.array([1.7, -2.3, 0], np.float32), DstT=np.bool_),
        lambda scope: scope.op("Cast", np.array([1.7, 2049], np.float32), DstT=np.float16),
    ],
    ids=["Div", "Mean", "Mean of 49", "Cast to int", "Cast to bool", "Cast to half"],
)
def test_what_a_dtype_cuts_off_is_cut_off_the_sum(make):
    output = make(Scope.new_root_scope())
    for index in np.ndindex(*output.shape):
        found, result = traced(output, index)
        assert found["sum"] == found["value"] == float(result[index])
