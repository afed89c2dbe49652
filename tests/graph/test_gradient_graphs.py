"""Symbolic gradients of whole graphs: several ys, weights, intermediates, what is refused and dropped."""

from __future__ import annotations

import time

import numpy as np
import pytest

import cases as convolutions
from convgrad import raw_ops
from convgrad._base.errors import ArgumentError, ArgumentTypeError, ConvgradError
from convgrad.graph import ClientSession, Scope, add_symbolic_gradients, ops
from graphs import same_bits

F, D = np.float32, np.float64


@pytest.fixture
def scope():
    return Scope.new_root_scope()


def test_weights_of_the_outputs(scope):
    x = ops.Placeholder(scope, D, [3])
    y = ops.Square(scope, x)
    shares = ops.Placeholder(scope, D, [3])
    by_tensor = add_symbolic_gradients(scope, [y], [x], [shares])
    by_array = add_symbolic_gradients(scope, [y], [x], [np.array([1.0, 2, 3])])
    by_one = add_symbolic_gradients(scope, [y], [x], [None])
    found = ClientSession(scope).run(
        [*by_tensor, *by_array, *by_one], {x: [1, 2, 3], shares: [1, 2, 3]}
    )
    assert [each.tolist() for each in found] == [[2, 8, 18], [2, 8, 18], [2, 4, 6]]
    (again,) = add_symbolic_gradients(scope, by_tensor, [shares])  # weights are tensors like others
    assert ClientSession(scope).run(again, {x: [1, 2, 3], shares: [0, 0, 0]})[0].tolist() == [
        2,
        4,
        6,
    ]


def test_several_outputs_add_up(scope):
    x = ops.Placeholder(scope, D, [2])
    y, z = ops.Square(scope, x), ops.Negate(scope, x)
    grads = add_symbolic_gradients(scope, [y, z, y], [x], [None, [3, 3], None])
    assert ClientSession(scope).run(grads, {x: [1, 2]})[0].tolist() == [1, 5]


def test_a_tensor_is_its_own_gradient_of_ones(scope):
    x = ops.Placeholder(scope, D, [2, 2])
    (g,) = add_symbolic_gradients(scope, [x], [x])
    assert ClientSession(scope).run([g], {x: np.zeros((2, 2))})[0].tolist() == [[1, 1], [1, 1]]
    scalar = ops.Placeholder(scope, D, [])
    (g,) = add_symbolic_gradients(scope, scalar, scalar)
    (found,) = ClientSession(scope).run([g], {scalar: 5.0})
    assert g.shape == () == found.shape and found == 1


def test_what_outputs_do_not_depend_on_has_gradient_zero(scope):
    x, other = (ops.Placeholder(scope, D, [None, 2]) for _ in range(2))
    counted = ops.Cast(scope, ops.ArgMax(scope, x, 1), D)
    grads = add_symbolic_gradients(scope, [ops.Square(scope, x), counted], [other, x])
    found = ClientSession(scope).run(grads, {x: np.ones((3, 2)), other: np.ones((4, 2))})
    assert same_bits(found[0], np.zeros((4, 2))) and same_bits(found[1], np.full((3, 2), 2.0))
    (none,) = add_symbolic_gradients(scope, [counted], [x])
    assert same_bits(ClientSession(scope).run(none, {x: np.ones((3, 2))})[0], np.zeros((3, 2)))
    # Integers carry no gradient.
    through = ops.Cast(scope, ops.Cast(scope, x, np.int32), D)
    (none,) = add_symbolic_gradients(scope, [through], [x])
    assert not ClientSession(scope).run(none, {x: np.ones((3, 2))})[0].any()


def test_intermediates_and_repeated_tensors(scope):
    x = ops.Placeholder(scope, D, [2])
    h = ops.Exp(scope, x)
    y = ops.Multiply(scope, h, h)  # the same tensor twice
    z = ops.Add(scope, y, h)
    grads = add_symbolic_gradients(scope, [z], [h, x, h, y])
    at = np.array([0.5, -1.0])
    found = ClientSession(scope).run(grads, {x: at})
    expected = [2 * np.exp(at) + 1, 2 * np.exp(2 * at) + np.exp(at), 2 * np.exp(at) + 1, np.ones(2)]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    # An intermediate between two others does not stop the way back.
    (both,) = add_symbolic_gradients(scope, [z, h], [x])
    np.testing.assert_allclose(ClientSession(scope).run(both, {x: at})[0], expected[1] + np.exp(at))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", ["Sum", "Mean"])
def test_axes_that_are_fed(scope, name, keep):
    x, axes = ops.Placeholder(scope, D), ops.Placeholder(scope, np.int32)
    y = getattr(ops, name)(scope, x, axes, keep_dims=keep)
    (g,) = add_symbolic_gradients(scope, ops.L2Loss(scope, y), [x])
    (h,) = add_symbolic_gradients(scope, ops.L2Loss(scope, g), [x])
    given = np.random.default_rng(0).standard_normal((2, 3, 4))
    count = {"Sum": 1}.get(name, 8)
    found, again = ClientSession(scope).run([g, h], {x: given, axes: [-1, 0]})
    sums = given.sum((0, 2), keepdims=True) / count**2
    np.testing.assert_allclose(found, np.broadcast_to(sums, given.shape), rtol=1e-12)
    np.testing.assert_allclose(again, np.broadcast_to(sums * 8 / count**2, given.shape), rtol=1e-12)


def test_a_permutation_that_is_fed(scope):
    x, perm = ops.Placeholder(scope, D), ops.Placeholder(scope, np.int32)
    weights = np.arange(24.0).reshape(4, 2, 3)
    y = ops.Multiply(scope, ops.Transpose(scope, x, perm), weights)
    (g,) = add_symbolic_gradients(scope, [y], [x])
    (found,) = ClientSession(scope).run([g], {x: np.ones((2, 3, 4)), perm: [2, 0, 1]})
    assert same_bits(found, np.ascontiguousarray(weights.transpose(1, 2, 0)))


def test_casts_keep_the_dtype_of_what_they_came_from(scope):
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = ops.Placeholder(scope, dtype, [2])
        (g,) = add_symbolic_gradients(scope, ops.Square(scope, ops.Cast(scope, x, F)), [x])
        (found,) = ClientSession(scope).run(g, {x: [1, 2]})
        assert found.dtype == x.output.dtype and found.tolist() == [2, 4]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sized", [True, False])
def test_convolutions_are_the_eager_gradients_bit_for_bit(scope, seed, sized):
    rng = np.random.default_rng(seed)
    case = convolutions.random_case(rng, depthwise=seed % 2 == 1)
    data = convolutions.normal(case, rng)
    base = "DepthwiseConv2dNative" if case.depthwise else "Conv2D"
    _, settings = convolutions.door_settings(case, "raw")
    x, f, g = (
        ops.Placeholder(scope, each.dtype, each.shape if sized else None).output
        for each in (data.x, data.f, data.g)
    )
    y = getattr(ops, base)(scope, x, f, **settings)
    dx, df = add_symbolic_gradients(scope, [y], [x, f], [g])
    back = getattr(ops, base + "BackpropInput")(scope, ops.Shape(scope, x), f, g, **settings)
    bf, bg = add_symbolic_gradients(
        scope, [back], [f, g], [x]
    )  # x stands for a gradient of its shape
    taps = getattr(ops, base + "BackpropFilter")(scope, x, ops.Shape(scope, f), g, **settings)
    fx, fg = add_symbolic_gradients(scope, [taps], [x, g], [f])
    found = ClientSession(scope).run([dx, df, bf, bg, fx, fg], {x: data.x, f: data.f, g: data.g})
    forward, to_x, to_f = (convolutions.run(case, kind, data, "raw") for kind in convolutions.KINDS)
    for got, eager in zip(found, (to_x, to_f, to_f, forward, to_x, forward), strict=True):
        assert same_bits(got, eager), case
    assert hasattr(raw_ops, base)


def test_a_node_that_changes_a_variable_is_refused_by_name(scope):
    v = ops.Variable(scope, [2], F)
    x = ops.Placeholder(scope, F, [2])
    assign = ops.Assign(scope.with_op_name("keep"), v, ops.Square(scope, x))
    step = ops.ApplyGradientDescent(scope.with_op_name("learn"), v, 0.1, x)
    nodes = list(scope.graph.nodes)
    for node, name in ((assign, "keep"), (step, "learn")):
        with pytest.raises(ArgumentError, match=f"node '{name}': .* has no gradient: it changes"):
            add_symbolic_gradients(scope, [ops.Negate(scope, node)], [x])
        assert len(scope.graph.nodes) == len(nodes) + 1, "nothing was left behind"
        nodes = list(scope.graph.nodes)
    (g,) = add_symbolic_gradients(scope, [ops.Square(scope, v)], [v])  # the Variable itself is fine
    session = ClientSession(scope)
    session.run([assign], {x: [1, 2]})
    assert session.run([g])[0].tolist() == [2, 8]


def test_wrong_arguments_are_named_and_leave_nothing(scope):
    x = ops.Placeholder(scope.with_op_name("x"), D, [2])
    n = ops.Placeholder(scope.with_op_name("n"), np.int32, [2])
    y = ops.Square(scope, x)
    other = ops.Const(Scope.new_root_scope(), np.ones(2))
    count = len(scope.graph.nodes)
    for ys, xs, grad_ys, error, words in (
        ([y], [n], None, ArgumentTypeError, "`xs` must have a floating dtype, got int32 of 'n:0'"),
        ([n], [x], None, ArgumentTypeError, "`ys` must have a floating dtype"),
        ([y], [other], None, ArgumentTypeError, "`xs` must be tensors of the scope's graph"),
        ([other], [x], None, ArgumentTypeError, "`ys` must be tensors of the scope's graph"),
        ([np.ones(2)], [x], None, ArgumentTypeError, "`ys` must be tensors"),
        ("y", [x], None, ArgumentTypeError, "`ys` must be a list of tensors"),
        ([y], 3, None, ArgumentTypeError, "`xs` must be a list of tensors"),
        ([y], [x], [], ArgumentError, "one tensor for each of the 1 of `ys`, got 0"),
        ([y], [x], [np.ones(3)], ArgumentError, "`grad_ys` of 'Square:0' must be float64[2], got float64[3]"),
        ([y], [x], [np.ones(2, F)], ConvgradError, "`grad_ys` must have dtype float64"),
        ([y], [x], [n], ArgumentError, "`grad_ys` of 'Square:0' must be float64[2], got int32[2]"),
        ([y], [x], [other], ArgumentTypeError, "`grad_ys` must be tensors of the scope's graph"),
        ([x], [x], [other], ArgumentTypeError, "`grad_ys` must be tensors of the scope's graph"),
        ([y, y], [x], [np.ones(2), np.ones(3)], ArgumentError, "`grad_ys` of 'Square:0'"),
        ([y], [x], 3, ConvgradError, "`grad_ys`"),
    ):  # fmt: skip
        with pytest.raises(error) as caught:
            add_symbolic_gradients(scope, ys, xs, grad_ys)
        assert words in str(caught.value), str(caught.value)
        assert len(scope.graph.nodes) == count, words
    with pytest.raises(ArgumentTypeError, match="`scope` must be a Scope"):
        add_symbolic_gradients("scope", [y], [x])


def test_nodes_nobody_needs_are_dropped(scope):
    x, w = ops.Placeholder(scope, D, [2, 3]), ops.Placeholder(scope, D, [3, 4])
    y = ops.MatMul(scope, x, w)
    before = len(scope.graph.nodes)
    add_symbolic_gradients(scope, [y], [x])
    added = scope.graph.nodes[before:]
    assert [node.type for node in added].count("MatMul") == 1, "the other operand's was dropped"
    assert [node.number for node in scope.graph.nodes] == list(range(len(scope.graph.nodes)))
    assert set(scope.graph.by_name) == {node.name for node in scope.graph.nodes}
    assert all(node.name.startswith("gradients/") for node in added)
    used = {each.operation for node in added for each in node.inputs}
    assert all(node in used for node in added[:-1])


def test_a_network_of_three_layers_to_the_second_order(scope):
    rng = np.random.default_rng(3)
    x = ops.Placeholder(scope, D, [None, 6, 6, 2])
    shapes = ((3, 3, 2, 3), (3, 3, 3, 2), (3, 3, 2, 2))
    filters = [ops.Placeholder(scope, D, shape).output for shape in shapes]
    y = ops.Tanh(scope, ops.Conv2D(scope, x, filters[0], [1, 2, 2, 1], "SAME"))
    y = ops.Sigmoid(scope, ops.Conv2D(scope, y, filters[1], [1, 1, 1, 1], "SAME"))
    y = ops.DepthwiseConv2dNative(scope, y, filters[2], [1, 1, 1, 1], "VALID")
    loss = ops.L2Loss(scope, ops.Exp(scope, ops.Negate(scope, y)))
    grads = add_symbolic_gradients(scope, [loss], filters)
    norm = ops.AddN(scope, [ops.L2Loss(scope, each).output for each in grads])
    seconds = add_symbolic_gradients(scope, [norm], filters)
    session = ClientSession(scope)
    feeds = {x: rng.standard_normal((2, 6, 6, 2))}
    feeds |= {f: rng.standard_normal(shape) * 0.4 for f, shape in zip(filters, shapes, strict=True)}
    found = session.run([*grads, *seconds], feeds)
    for tensor, scalar, got in zip(filters * 2, [loss] * 3 + [norm] * 3, found, strict=True):
        way = rng.standard_normal(got.shape)  # along one random direction
        ends = [
            session.run([scalar], {**feeds, tensor: feeds[tensor] + s * 1e-5 * way})[0]
            for s in (1, -1)
        ]
        assert (got * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


def test_weights_of_another_size_are_refused_when_it_is_known():
    """A gradient of three elements came out for a tensor of one."""
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope, "float32", [None])
    grads = add_symbolic_gradients(scope, [ops.Exp(scope, x)], [x], [np.ones(3, np.float32)])
    session = ClientSession(scope)
    with pytest.raises(ArgumentError, match="must have as many elements as the tensor"):
        session.run(grads, {x: [1.0]})
    assert session.run(grads, {x: [0.0, 0.0, 0.0]})[0].tolist() == [1, 1, 1]


def test_wide_graphs_take_time_by_their_size():
    """It grew with the square of the branches: the next node was looked for among all, and so was every fetch."""
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope, "float32", [2])
    branches = [ops.Exp(scope, x).y for _ in range(20_000)]
    begun = time.process_time()
    (grad,) = add_symbolic_gradients(scope, [ops.AddN(scope, branches)], [x])
    found = ClientSession(scope).run([*branches, grad], {x: [0.0, 0.0]})
    assert time.process_time() - begun < 20
    assert found[-1].tolist() == [20_000, 20_000]
