"""Symbolic gradients, first and second order, against central differences in float64."""

from __future__ import annotations

import numpy as np
import pytest

from convgrad._apps.graph.row import no_gradient
from convgrad._apps.graph.table import TABLE
from convgrad.graph import ClientSession, Scope, add_symbolic_gradients, ops

D = np.dtype(np.float64)
STEP = 1e-5


def drawn(rng, *shapes):
    return [rng.standard_normal(shape) for shape in shapes]


def spaced(rng, shape):
    """Draw numbers far enough from 0 and from each other that no step crosses a kink."""
    count = int(np.prod(shape))
    return ((rng.permutation(count) - count / 2 + 0.25) * 0.3).reshape(shape)


def simple(name, *shapes, draw=None, **attrs):
    """Return a case whose arrays are all differentiated: name, arrays, and how to build it."""

    def case(rng):
        arrays = drawn(rng, *shapes) if draw is None else draw(rng, *shapes)
        return arrays, lambda scope, *tensors: getattr(ops, name)(scope, *tensors, **attrs)

    return case


def positive(rng, *shapes):
    return [rng.uniform(0.5, 2.0, shape) for shape in shapes]


def kinked(rng, *shapes):
    return [spaced(rng, shape) for shape in shapes]


def fixed(build, *shapes, draw=drawn):
    """Return a case with a build function of its own."""
    return lambda rng: (draw(rng, *shapes), build)


def cross_entropy(scope, features, labels):
    """Labels must add up to 1: the op's own second output, softmax - labels, is the loss's gradient only then."""
    return ops.SoftmaxCrossEntropyWithLogits(scope, features, ops.Softmax(scope, labels))


def pool_case(op, layout, padding):
    move = (0, 3, 1, 2)
    pads = {"EXPLICIT": [0, 0, 1, 0, 0, 1, 0, 0]}.get(padding, [])
    attrs = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 1, 1]}
    shape, out = (
        (2, 5, 4, 2),
        {"VALID": (2, 2, 2, 2), "SAME": (2, 3, 4, 2), "EXPLICIT": (2, 3, 3, 2)}[padding],
    )
    if layout == "NCHW":
        attrs = {name: [value[at] for at in move] for name, value in attrs.items()}
        shape, out = ([each[at] for at in move] for each in (shape, out))
        pads = [0, 0, 0, 0, 1, 0, 0, 1] if pads else []
    attrs |= {"padding": padding, "explicit_paddings": pads, "data_format": layout}

    def case(rng):
        x = spaced(rng, shape)
        if op == "MaxPool":
            return [x], lambda scope, x: ops.MaxPool(scope, x, **attrs)
        # The place of the largest cell does not move, so only the gradient is differentiated.
        g = rng.standard_normal(out if op == "MaxPoolGrad" else shape)

        def build(scope, g):
            image = ops.Const(scope, x)
            return getattr(ops, op)(scope, image, ops.MaxPool(scope, image, **attrs), g, **attrs)

        return [g], build

    return case


DENSE = {
    "plain": ((2, 5, 4, 3), (3, 2, 3, 2), [1, 1, 1, 1], "SAME", {}),
    "strided": ((1, 6, 5, 2), (3, 3, 2, 3), [1, 2, 3, 1], "VALID", {}),
    "dilated": ((1, 7, 6, 2), (2, 3, 2, 2), [1, 1, 1, 1], "SAME", {"dilations": [1, 2, 2, 1]}),
    "padded": ((1, 4, 4, 2), (3, 3, 2, 2), [1, 2, 1, 1], "EXPLICIT", {"explicit_paddings": [0, 0, 2, 1, 0, 3, 0, 0]}),
    "nchw": ((1, 2, 5, 4), (3, 2, 2, 3), [1, 1, 2, 1], "SAME", {"data_format": "NCHW"}),
    "grouped": ((1, 4, 4, 4), (2, 2, 2, 6), [1, 1, 1, 1], "VALID", {}),
}  # fmt: skip
DEPTHWISE = {
    "plain": ((2, 5, 4, 3), (3, 2, 3, 1), [1, 1, 1, 1], "SAME", {}),
    "multiplied": ((1, 6, 5, 2), (3, 3, 2, 3), [1, 2, 2, 1], "VALID", {}),
    "dilated": ((1, 7, 6, 2), (2, 3, 2, 2), [1, 1, 1, 1], "VALID", {"dilations": [1, 2, 2, 1]}),
    "padded": ((1, 4, 4, 2), (3, 3, 2, 1), [1, 2, 2, 1], "EXPLICIT", {"explicit_paddings": [0, 0, 2, 1, 0, 2, 0, 0]}),
    "nchw": ((1, 2, 5, 4), (3, 2, 2, 2), [1, 1, 2, 2], "SAME", {"data_format": "NCHW"}),
}  # fmt: skip


def out_shape(base, x, f, settings):
    scope = Scope.new_root_scope()
    tensors = [ops.Placeholder(scope, D, shape) for shape in (x, f)]
    strides, padding, attrs = settings
    return getattr(ops, base)(scope, *tensors, strides, padding, **attrs).output.shape


def convolution(base, suffix, problem):
    x, f, *settings = problem
    strides, padding, attrs = settings
    g = out_shape(base, x, f, settings)

    def build(scope, a, b):
        sizes = {"": (), "BackpropInput": (list(x),), "BackpropFilter": (list(f),)}[suffix]
        first = [a, *sizes, b] if suffix == "BackpropFilter" else [*sizes, a, b]
        return getattr(ops, base + suffix)(scope, *first, strides, padding, **attrs)

    shapes = {"": (x, f), "BackpropInput": (f, g), "BackpropFilter": (x, g)}[suffix]
    return fixed(build, *shapes)


CASES = {
    "Add": [simple("Add", (2, 3), (2, 3)), simple("Add", (2, 1), (1, 3)), simple("Add", (), (2, 2))],
    "Subtract": [simple("Subtract", (2, 3), (2, 3)), simple("Subtract", (3,), (2, 1, 3))],
    "Multiply": [simple("Multiply", (2, 3), (2, 3)), simple("Multiply", (2, 1), (1, 3)), simple("Multiply", (2,), ())],
    "Div": [simple("Div", (2, 3), (2, 3), draw=positive), simple("Div", (2, 1), (1, 3), draw=positive)],
    "AddN": [fixed(lambda scope, *given: ops.AddN(scope, list(given)), (2, 3), (2, 3), (2, 3))],
    "Negate": [simple("Negate", (2, 3))],
    "Square": [simple("Square", (2, 3)), simple("Square", ())],
    "Sqrt": [simple("Sqrt", (2, 3), draw=positive)],
    "Exp": [simple("Exp", (2, 3))],
    "Log": [simple("Log", (2, 3), draw=positive)],
    "Tanh": [simple("Tanh", (2, 3))],
    "Sigmoid": [simple("Sigmoid", (2, 3)), simple("Sigmoid", ())],
    "Relu": [simple("Relu", (2, 3), draw=kinked)],
    "ReluGrad": [fixed(lambda scope, g: ops.ReluGrad(scope, g, np.array([[1.0, -1, 2], [-1, -1, 1]])), (2, 3))],
    "MatMul": [
        simple("MatMul", (3, 2) if a else (2, 3), (4, 3) if b else (3, 4), transpose_a=a, transpose_b=b)
        for a in (False, True)
        for b in (False, True)
    ],
    "Reshape": [fixed(lambda scope, x: ops.Reshape(scope, x, [3, -1]), (2, 3))],
    "Transpose": [fixed(lambda scope, x: ops.Transpose(scope, x, [2, 0, 1]), (2, 3, 4))],
    "Cast": [fixed(lambda scope, x: ops.Cast(scope, x, D), (2, 3))],
    "BroadcastTo": [
        fixed(lambda scope, x: ops.BroadcastTo(scope, x, [2, 3, 4]), (3, 1)),
        fixed(lambda scope, x: ops.BroadcastTo(scope, x, [3]), ()),
    ],
    "SumToShape": [fixed(lambda scope, x: ops.SumToShape(scope, x, [3, 1]), (2, 3, 4))],
    "Sum": [
        fixed(lambda scope, x, axes=axes, keep=keep: ops.Sum(scope, x, axes, keep_dims=keep), (2, 3, 2))
        for axes in ([0, -1], [], 1, [2, 1, 0])
        for keep in (False, True)
    ],
    "Mean": [
        fixed(lambda scope, x, axes=axes, keep=keep: ops.Mean(scope, x, axes, keep_dims=keep), (2, 3, 2))
        for axes in ([-2], [], [0, 1, 2])
        for keep in (False, True)
    ],
    "SpreadReduced": [
        fixed(lambda scope, x, mean=mean: ops.SpreadReduced(scope, x, [1], [2, 3], mean=mean), shape)
        for mean in (False, True)
        for shape in ((2,), (2, 1))
    ],
    "L2Loss": [simple("L2Loss", (2, 3)), simple("L2Loss", ())],
    "BiasAdd": [
        simple("BiasAdd", (2, 4, 3), (3,)),
        simple("BiasAdd", (2, 3, 4, 2), (3,), data_format="NCHW"),
    ],
    "BiasAddGrad": [
        simple("BiasAddGrad", (2, 4, 3)),
        simple("BiasAddGrad", (2, 3, 4, 2), data_format="NCHW"),
    ],
    "Softmax": [simple("Softmax", (2, 4)), simple("Softmax", (3,))],
    "LogSoftmax": [simple("LogSoftmax", (2, 4))],
    "SoftmaxCrossEntropyWithLogits": [
        fixed(cross_entropy, *shapes)
        for shapes in (((3, 4), (3, 4)), ((1, 4), (3, 4)), ((3, 4), (1, 4)), ((3, 1), (3, 4)))
    ],
    **{
        op: [
            pool_case(op, layout, padding)
            for layout in ("NHWC", "NCHW")
            for padding in ("VALID", "SAME", "EXPLICIT")
        ]
        for op in ("MaxPool", "MaxPoolGrad", "MaxPoolGradGrad")
    },
    **{
        base + suffix: [convolution(base, suffix, problem) for problem in problems.values()]
        for base, problems in (("Conv2D", DENSE), ("DepthwiseConv2dNative", DEPTHWISE))
        for suffix in ("", "BackpropInput", "BackpropFilter")
    },
}  # fmt: skip


def differentiable():
    return {name for name, row in TABLE.items() if row.gradient not in (None, no_gradient)}


def test_every_gradient_has_cases():
    assert CASES.keys() == differentiable()


def weighted(scope, op, rng, arrays, tensors):
    """Return a scalar in which every element of every output counts differently, smoothly."""
    session, parts = ClientSession(scope), []
    results = session.run(op.operation.outputs, dict(zip(tensors, arrays, strict=True)))
    for output, array in zip(op.operation.outputs, results, strict=True):
        shares = ops.Const(scope, rng.standard_normal(array.shape))
        product = ops.Multiply(scope, output, shares)
        axes = ops.Const(scope, np.arange(array.ndim, dtype=np.int32))
        parts.append(ops.Sum(scope, product, axes).output)
    return ops.AddN(scope, parts).sum


def differences(session, y, tensors, arrays):
    """Return central differences of a scalar with respect to each array."""
    found = []
    for at, array in enumerate(arrays):
        slopes = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            values = []
            for sign in (1, -1):
                moved = array.copy()
                moved[place] += sign * STEP
                feeds = dict(zip(tensors, [*arrays[:at], moved, *arrays[at + 1 :]], strict=True))
                values.append(session.run([y], feeds)[0])
            slopes[place] = (values[0] - values[1]) / (2 * STEP)
        found.append(slopes)
    return found


def assert_slopes(scope, y, tensors, arrays, grads):
    session = ClientSession(scope)
    feeds = dict(zip(tensors, arrays, strict=True))
    found = session.run(grads, feeds)
    for got, wanted in zip(found, differences(session, y, tensors, arrays), strict=True):
        assert got.dtype == D
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5 * max(1, abs(wanted).max()))


@pytest.mark.parametrize("known", [True, False], ids=["sizes", "nothing"])
@pytest.mark.parametrize("name", CASES)
def test_first_and_second_order(name, known):
    for number, case in enumerate(CASES[name]):
        rng = np.random.default_rng(number)
        arrays, build = case(rng)
        scope = Scope.new_root_scope()
        tensors = [
            ops.Placeholder(scope, D, each.shape if known else None).output for each in arrays
        ]
        y = weighted(scope, build(scope, *tensors), rng, arrays, tensors)
        grads = add_symbolic_gradients(scope, [y], tensors)
        for tensor, grad in zip(tensors, grads, strict=True):
            assert not known or grad.shape == tensor.shape
        assert_slopes(scope, y, tensors, arrays, grads)
        if not known and "Conv" in name:
            continue  # the second order of these was compared with known sizes
        # A random projection of the gradients, squared so that linear ops have a second order too.
        again = []
        for grad, array in zip(grads, arrays, strict=True):
            shares = ops.Const(scope, rng.standard_normal(array.shape))
            again.append(ops.L2Loss(scope, ops.Multiply(scope, grad, shares)).output)
        z = ops.AddN(scope, again).sum
        assert_slopes(scope, z, tensors, arrays, add_symbolic_gradients(scope, [z], tensors))
