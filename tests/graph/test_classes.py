"""`convgrad.graph.ops` has TensorFlow's C++ names, argument order and `Attrs`; scopes name things as its scopes do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from convgrad._apps.graph.table import TABLE
from convgrad._base.errors import ArgumentError, ArgumentTypeError, DTypeError
from convgrad.graph import ClientSession, Scope, Status, ops

F = np.float32
DEPTHWISE = "strides, padding | ExplicitPaddings DataFormat Dilations"
DENSE = DEPTHWISE.replace("| ", "| UseCudnnOnGpu ")
SIGNATURES = {
    "Const": "value, dtype, shape",
    "Placeholder": "dtype, shape",
    "RandomNormal": "shape, dtype | Seed Seed2",
    "RandomUniform": "shape, dtype | Seed Seed2",
    "Range": "start, limit, delta",
    "Shape": "input | OutType",
    "Reshape": "tensor, shape",
    "Transpose": "x, perm",
    "InvertPermutation": "x",
    "Cast": "x, DstT",
    "OneHot": "indices, depth, on_value, off_value | Axis",
    "BroadcastTo": "input, shape",
    **dict.fromkeys(("Add", "Subtract", "Multiply", "Div", "Equal"), "x, y"),
    "AddN": "inputs",
    **dict.fromkeys(("Negate", "Square", "Sqrt", "Exp", "Log", "Tanh", "Sigmoid"), "x"),
    "MatMul": "a, b | TransposeA TransposeB",
    "Sum": "input, axis | KeepDims",
    "Mean": "input, axis | KeepDims",
    "L2Loss": "t",
    "ArgMax": "input, dimension | OutputType",
    "Relu": "features",
    "BiasAdd": "value, bias | DataFormat",
    "Softmax": "logits",
    "LogSoftmax": "logits",
    "SoftmaxCrossEntropyWithLogits": "features, labels",
    "MaxPool": "input, ksize, strides, padding | ExplicitPaddings DataFormat",
    "Conv2D": f"input, filter, {DENSE}",
    "Conv2DBackpropInput": f"input_sizes, filter, out_backprop, {DENSE}",
    "Conv2DBackpropFilter": f"input, filter_sizes, out_backprop, {DENSE}",
    "DepthwiseConv2dNative": f"input, filter, {DEPTHWISE}",
    "DepthwiseConv2dNativeBackpropInput": f"input_sizes, filter, out_backprop, {DEPTHWISE}",
    "DepthwiseConv2dNativeBackpropFilter": f"input, filter_sizes, out_backprop, {DEPTHWISE}",
    "Variable": "shape, dtype | Container SharedName",
    "Assign": "ref, value | ValidateShape UseLocking",
    "ApplyGradientDescent": "var, alpha, delta | UseLocking",
}  # fmt: skip
OUTPUTS = {
    "Add": "z", "AddN": "sum", "MatMul": "product", "Relu": "activations", "Softmax": "softmax", "Cast": "y",
    "Variable": "ref", "Assign": "output_ref", "ApplyGradientDescent": "out", "Conv2D": "output", "Transpose": "y",
    "SoftmaxCrossEntropyWithLogits": "loss backprop", "ArgMax": "output", "L2Loss": "output", "Negate": "y",
}  # fmt: skip


@pytest.fixture
def scope():
    return Scope.new_root_scope()


def test_every_public_op_is_listed():
    internal = {name for name, row in TABLE.items() if row.internal}
    grads = {"BiasAddGrad", "MaxPoolGradGrad"}
    assert set(SIGNATURES) == TABLE.keys() - internal - grads
    assert set(ops.__all__) == {"InputList", *TABLE}


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_and_setters_are_those_of_cpp(name):
    kind = getattr(ops, name)
    arguments, _, setters = SIGNATURES[name].partition(" | ")
    signature = inspect.signature(kind)
    positional = [
        each.name
        for each in signature.parameters.values()
        if each.kind is each.POSITIONAL_OR_KEYWORD and each.name != "attrs"
    ]
    assert positional == ["scope", *arguments.split(", ")]
    found = [attr.setter for attr in TABLE[name].optional]
    if name == "Placeholder":
        assert found == ["Shape"]
    else:
        assert found == setters.split()
    for setter in found:
        assert callable(getattr(kind, setter)) and callable(getattr(kind.Attrs(), setter))
    assert kind.__name__ == name and kind.__doc__


def test_outputs_have_their_names():
    for name, outputs in OUTPUTS.items():
        assert TABLE[name].outputs == tuple(outputs.split())


def conv(scope, *more, **named):
    x, f = ops.Placeholder(scope, F, [1, 2, 8, 8]), ops.Placeholder(scope, F, [3, 3, 2, 4])
    return ops.Conv2D(scope, x, f, [1, 1, 1, 1], "SAME", *more, **named)


def test_attributes_can_be_written_in_three_ways(scope):
    attrs = ops.Conv2D.Attrs().DataFormat("NCHW").Dilations([1, 1, 2, 2])
    ways = [
        conv(scope, attrs),
        conv(scope, attrs=attrs),
        conv(scope, ops.Conv2D.DataFormat("NCHW").Dilations((1, 1, 2, 2))),
        conv(scope, ops.Conv2D.Dilations(np.array([1, 1, 2, 2])), data_format="NCHW"),
        conv(scope, data_format="NCHW", dilations=[1, 1, 2, 2]),
    ]
    for op in ways:
        assert op.operation.attrs == ways[0].operation.attrs
        assert op.operation.attrs["dilations"] == (1, 1, 2, 2)
        assert op.output.shape == (1, 4, 8, 8)
    assert conv(scope, None).operation.attrs == conv(scope, attrs=None).operation.attrs
    assert repr(attrs) == "Conv2D.Attrs().DataFormat('NCHW').Dilations((1, 1, 2, 2))"


def test_a_kept_attrs_never_changes(scope):
    first = ops.Conv2D.Attrs()
    second = first.DataFormat("NCHW")
    third = second.DataFormat("NHWC")
    assert (first.values, second.values, third.values) == (
        {},
        {"data_format": "NCHW"},
        {"data_format": "NHWC"},
    )
    given = [1, 1, 2, 2]
    attrs = ops.Conv2D.Dilations(given)
    given[2] = 7
    assert attrs.values["dilations"] == (1, 1, 2, 2)


def test_wrong_attributes_are_named(scope):
    with pytest.raises(
        ArgumentTypeError, match=r"Conv2D\.Attrs: `dilations` must be a list of integers, got 3"
    ):
        ops.Conv2D.Dilations(3)
    with pytest.raises(ArgumentTypeError, match=r"`attrs` must be made by Conv2D\.Attrs"):
        conv(scope, ops.MatMul.TransposeA(True))
    with pytest.raises(ArgumentTypeError, match="`data_format` was given twice"):
        conv(scope, ops.Conv2D.DataFormat("NCHW"), data_format="NCHW")
    with pytest.raises(ArgumentTypeError, match="got 7 arguments behind the scope"):
        conv(scope, ops.Conv2D.Attrs(), ops.Conv2D.Attrs(), ops.Conv2D.Attrs())
    assert not hasattr(ops.MatMul, "DataFormat") and not hasattr(ops.MatMul.Attrs(), "DataFormat")


def test_placeholders_take_a_shape_in_every_way(scope):
    for op in (
        ops.Placeholder(scope, F, [2, None]),
        ops.Placeholder(scope, F, shape=[2, -1]),
        ops.Placeholder(scope, F, ops.Placeholder.Shape([2, None])),
        ops.Placeholder(scope, "DT_FLOAT", ops.Placeholder.Attrs().Shape((2, -1))),
        ops.Placeholder(scope, dtype="float", shape=np.array([2, -1])),
    ):
        assert op.output.dtype == F and op.output.shape == (2, None)
    assert ops.Placeholder(scope, F).output.shape is None
    assert ops.Placeholder(scope, F, []).output.shape == ()
    assert ops.Placeholder(scope, F, 3).output.shape == (3,)


def test_names_are_made_unique(scope):
    names = [ops.Const(scope, 1).name for _ in range(3)]
    assert names == ["Const", "Const_1", "Const_2"]
    assert ops.Const(scope.with_op_name("Const_3"), 1).name == "Const_3"
    assert ops.Const(scope, 1).name == "Const_4"
    named = scope.with_op_name("x")
    assert [ops.Const(named, 1).name for _ in range(2)] == ["x", "x_1"]
    assert len(scope.graph.by_name) == len(scope.graph.nodes)


def test_sub_scopes_have_prefixes(scope):
    one, two = scope.new_sub_scope("layer"), scope.new_sub_scope("layer")
    assert ops.Const(one, 1).name == "layer/Const" and ops.Const(two, 1).name == "layer_1/Const"
    inner = one.new_sub_scope("bias")
    assert ops.Const(inner.with_op_name("b"), 1).name == "layer/bias/b"
    assert one.graph is scope.graph
    # Numbers that are given as arguments are named by their node and pin, if it has a name of its own.
    x = ops.Add(one.with_op_name("total"), 1.0, 2.0)
    assert x.name == "layer/total" and [each.operation.name for each in x.operation.inputs] == [
        "layer/total/x",
        "layer/total/y",
    ]
    plain = ops.Negate(one, 1.0)
    assert (
        plain.name == "layer/Negate" and plain.operation.inputs[0].operation.name == "layer/Const_1"
    )
    for name in ("", "/a", "a b", "ä", 3, None):
        with pytest.raises(ArgumentError, match="`name` must be letters"):
            scope.new_sub_scope(name)
        with pytest.raises(ArgumentError, match="`name` must be letters"):
            scope.with_op_name(name)


def test_ok_and_status_in_both_spellings(scope):
    assert scope.ok and scope.ok() and scope.status.ok and scope.status().ok() and scope.status
    assert str(scope.status) == "OK" and scope.status == Status() and repr(scope.ok) == "True"
    with pytest.raises(ArgumentError) as first:
        ops.Reshape(scope, [1, 2], [3])
    with pytest.raises(ArgumentError):
        ops.Reshape(scope.new_sub_scope("a"), [1, 2], [4])
    assert not scope.ok and not scope.ok() and not scope.status and not scope.status().ok()
    assert scope.status.error is first.value, "the first error stays"
    assert str(scope.status()) == scope.status.message == str(first.value)
    assert repr(scope.ok) == "False"


def test_an_op_stands_for_its_only_output(scope):
    x = ops.Const(scope, [1.0, 2.0])
    for each in (x, x.output, x.operation):
        assert ops.Negate(scope, each).operation.inputs == (x.output,)
    two = ops.SoftmaxCrossEntropyWithLogits(scope, [[1.0]], [[1.0]])
    assert two.loss.pin == "loss" and two.backprop.index == 1 and two.backprop.name.endswith(":1")
    with pytest.raises(ArgumentTypeError, match="has outputs loss, backprop: name one of them"):
        ops.Negate(scope, two)
    assert repr(x.output) == "<Const:0 float32[2]>" and repr(x) == "<Const 'Const' ()>"


def test_input_lists(scope):
    a, b = ops.Const(scope, 1.0), ops.Const(scope, 2.0)
    for given in (
        [a, b],
        (a.output, b.operation),
        ops.InputList([a, b]),
        ops.InputList(a, b),
        ops.InputList(scope, [a, b]),
        ops.InputList([a, [b]]),
        ops.InputList(ops.InputList([a]), b),
    ):
        assert ops.AddN(scope, given).operation.inputs == (a.output, b.output)
    assert len(ops.InputList([a, b])) == 2 and ops.InputList([a, b])[1] is b.output
    assert ClientSession(scope).run(ops.AddN(scope, ops.InputList(a, 5)))[0] == 6


def test_constants(scope):
    def value(*args, **named):
        (found,) = ClientSession(scope).run(ops.Const(scope, *args, **named))
        return found

    for given, dtype in ((1, "int32"), (1.5, "float32"), (True, "bool"), ([1, 2], "int32"), ([], "float32"),
                         (np.float64(1), "float64"), (np.ones(2, np.uint8), "uint8")):  # fmt: skip
        assert value(given).dtype == dtype and value(given).shape == np.shape(given)
    assert value(1, dtype="double").dtype == np.float64
    assert value([1.5, 2.5], "DT_BFLOAT16").dtype.name == "bfloat16"
    assert value(np.array([1.7, -1.7]), np.int32).tolist() == [1, -1]
    assert value(7, shape=[2, 2]).tolist() == [[7, 7], [7, 7]]
    assert value([7], shape=[]).shape == () and value([[1, 2]], shape=[1, 2]).shape == (1, 2)
    assert value(np.ones(2, ">f8")).dtype == np.dtype("float64")
    array = np.ones(2, F)
    c = ops.Const(scope, array)
    array[:] = 5
    assert ClientSession(scope).run(c)[0].tolist() == [1, 1], (
        "a graph does not change with an array"
    )
    with pytest.raises(ValueError, match="read-only"):
        c.operation.attrs["value"][0] = 3


def test_numbers_take_the_dtype_of_what_stands_beside_them(scope):
    x = ops.Placeholder(scope, "bfloat16", [2])
    assert ops.Add(scope, x, 1).z.dtype.name == "bfloat16"
    assert ops.Multiply(scope, 0.5, x).z.dtype.name == "bfloat16"
    assert ops.Add(scope, np.float64(1), 2).z.dtype == np.float64
    n = ops.Placeholder(scope, np.uint8)
    with pytest.raises(ArgumentError, match="numbers that uint8 can hold, got -1"):
        ops.Add(scope, n, -1)
    with pytest.raises(ArgumentError, match=r"numbers that uint8 can hold, got 0\.5"):
        ops.Add(scope, n, 0.5)
    with pytest.raises(DTypeError, match="`y` must have dtype uint8, got int64"):
        ops.Add(scope, n, np.arange(2, dtype=np.int64))
    assert ops.Sum(scope, x, []).operation.inputs[1].dtype == np.int32


def test_ops_can_be_added_by_name(scope):
    assert scope.op("Add", 1, 2).operation.type == "Add"
    with pytest.raises(ArgumentError, match="there is no op 'Nope'"):
        scope.op("Nope")
    with pytest.raises(ArgumentTypeError, match="node 'Add_1': Add: the inputs are x, y, got 1"):
        scope.op("Add", 1)
    with pytest.raises(ArgumentTypeError, match="there is no attribute `nope`"):
        scope.op("Add", 1, 2, nope=3)
