"""In a `tf.function`: with shapes that are known, partly known, or not at all, and sizes that are tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import convgrad
from cases import KINDS, Case, Data, run
from errors.doors import DOORS, Door
from tensorflow_bridge.configurations import some
from tensorflow_bridge.running import assert_same_bits, bits, operands, tensors

CASES = some(40, seed=4)
SIZED = [door for door in DOORS if door.sizes]


def three(case: Case, x: Any, f: Any, g: Any) -> list[Any]:
    return [run(case, kind, Data(x, f, g)) for kind in KINDS]


def sized(case: Case, x: Any, f: Any, g: Any) -> list[Any]:
    """The three sums where the sizes are those of the operands, whatever they turn out to be."""
    name = "depthwise_conv2d" if case.depthwise else "conv2d"
    how = {
        "strides": case.strides,
        "dilations": case.dilations,
        "padding": case.padding,
        "data_format": case.data_format,
    }
    return [
        getattr(convgrad, name)(x, f, **how),
        getattr(convgrad, name + "_backprop_input")(tf.shape(x), f, g, **how),
        getattr(convgrad, name + "_backprop_filter")(x, tf.shape(f), g, **how),
    ]


def specs(case: Case, unknown: str) -> list[tf.TensorSpec]:
    """Return what a function is told of its operands: all, no batch, no sizes, or not even ranks."""
    shapes: list[Any] = [case.input_shape, case.filter_shape, case.output_shape]
    if unknown == "batch":
        shapes = [(None, *case.input_shape[1:]), case.filter_shape, (None, *case.output_shape[1:])]
    if unknown == "sizes":
        shapes = [(None,) * 4] * 3
    if unknown == "ranks":
        shapes = [None] * 3
    dtype = tf.constant(operands(case).x).dtype
    return [tf.TensorSpec(shape, dtype) for shape in shapes]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_known_shapes(case: Case) -> None:
    data = operands(case)
    given = tensors(data)
    function = tf.function(lambda x, f, g: three(case, x, f, g), autograph=False)
    concrete = function.get_concrete_function(given.x, given.f, given.g)
    shapes = [tuple(each.shape) for each in concrete.structured_outputs]
    assert shapes == [case.output_shape, case.input_shape, case.filter_shape]
    assert_same_bits(case, function(given.x, given.f, given.g), data)


@pytest.mark.parametrize("unknown", ["batch", "sizes", "ranks"])
@pytest.mark.parametrize("case", CASES[::3], ids=str)
def test_unknown_shapes(case: Case, unknown: str) -> None:
    """One trace computes what comes; symbolic sizes are read when it runs."""
    data = operands(case)
    given = tensors(data)
    function = tf.function(
        lambda x, f, g: sized(case, x, f, g),
        input_signature=specs(case, unknown),
        autograph=False,
    )
    assert_same_bits(case, function(given.x, given.f, given.g), data)


def test_one_trace_for_many_sizes() -> None:
    base = Case(True, 2, (6, 7), 4, 1, 2, (3, 3), (2, 2), (1, 1), "SAME")
    function = tf.function(
        lambda x, f, g: sized(base, x, f, g),
        input_signature=specs(base, "sizes"),
        autograph=False,
    )
    # Neighbours differ in one size alone: a call must not be taken for one with another.
    for size in ((6, 7), (9, 7), (9, 3), (1, 3), (1, 1), (6, 7)):
        for batch in (1, 3, 0):
            case = replace(base, size=size, batch=batch)
            data = operands(case)
            given = tensors(data)
            assert_same_bits(case, function(given.x, given.f, given.g), data)
    assert function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("case", CASES[1::4], ids=str)
def test_what_is_known_of_the_result(case: Case) -> None:
    """An unknown batch leaves the rest known, so that layers behind can be built."""
    function = tf.function(
        lambda x, f, g: run(case, "forward", Data(x, f, g)),
        input_signature=specs(case, "batch"),
        autograph=False,
    )
    made = function.get_concrete_function().structured_outputs
    assert made.shape.as_list() == [None, *case.output_shape[1:]]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
def test_every_door_with_unknown_sizes(door: Door) -> None:
    """Also with autograph, which rewrites what it can read of a function."""
    arguments = door.arguments()
    names = door.arrays

    @tf.function(input_signature=[tf.TensorSpec((None,) * 4, tf.float32)] * len(names))
    def function(*arrays: Any) -> Any:
        return door.function(**arguments | dict(zip(names, arrays, strict=True)))

    made = function(*(tf.constant(arguments[name]) for name in names))
    assert tf.is_tensor(made) and bits(made) == bits(door.function(**arguments))


@pytest.mark.parametrize("door", SIZED, ids=lambda door: door.id)
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_sizes_as_tensors(door: Door, dtype: Any) -> None:
    """Eager, as a constant of a graph, and unknown until it runs."""
    assert door.sizes is not None
    arguments = door.arguments()
    wanted = bits(door.function(**arguments))
    given = arguments | {name: tf.constant(arguments[name]) for name in door.arrays}
    sizes = tf.constant(arguments[door.sizes], dtype)
    assert bits(door.function(**given | {door.sizes: sizes})) == wanted
    inside = tf.function(
        lambda: door.function(**given | {door.sizes: tf.constant(arguments[door.sizes], dtype)}),
        autograph=False,
    )
    assert bits(inside()) == wanted
    outside = tf.function(
        lambda sizes: door.function(**given | {door.sizes: sizes}),
        input_signature=[tf.TensorSpec([None], dtype)],
        autograph=False,
    )
    assert bits(outside(sizes)) == wanted


def test_control_flow() -> None:
    """Inside `tf.while_loop` and `tf.cond`, as a step of a recurrence."""
    x, f = (
        tf.random.stateless_normal((1, 5, 5, 3), (1, 2)),
        tf.random.stateless_normal((3, 3, 3, 1), (3, 4)),
    )

    @tf.function
    def repeated(x: Any, times: Any) -> Any:
        for _ in tf.range(times):
            if tf.reduce_sum(x) > -1e30:
                x = convgrad.depthwise_conv2d(x, f, 1, "SAME")
        return x

    wanted = np.asarray(x)
    for _ in range(3):
        wanted = convgrad.depthwise_conv2d(wanted, np.asarray(f), 1, "SAME")
    assert bits(repeated(x, tf.constant(3))) == bits(wanted)


def test_a_graph_of_version_1() -> None:
    """`tf.Graph` with a session, placeholders and `tf.gradients`."""
    v1 = tf.compat.v1
    rng = np.random.default_rng(0)
    x, f = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 5, 5, 3), (3, 3, 3, 4)))
    with tf.Graph().as_default():
        image = v1.placeholder(tf.float32, [None, None, None, 3])
        window = tf.constant(f)
        y = convgrad.compat.v1.nn.conv2d(image, window, [1, 2, 2, 1], "SAME")
        gradients = tf.gradients(y, [image, window])
        with v1.Session() as session:
            made = session.run([y, *gradients], {image: x})
    g = np.ones_like(made[0])
    assert bits(made[0]) == bits(convgrad.conv2d(x, f, 2, "SAME"))
    assert bits(made[1]) == bits(convgrad.conv2d_backprop_input(x.shape, f, g, 2, "SAME"))
    assert bits(made[2]) == bits(convgrad.conv2d_backprop_filter(x, f.shape, g, 2, "SAME"))


@pytest.mark.parametrize("case", some(6, seed=21, dtype="float64"), ids=str)
def test_the_compiler_computes_it_itself(case: Case) -> None:
    """`jit_compile=True` is XLA's, which has no kernels of ours: the sums are its own, gradients included."""
    given = tensors(operands(case))

    def both(x: Any, f: Any, g: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, f])
            y = run(case, "forward", Data(x, f, g))
        return [y, *tape.gradient(y, [x, f], g)]

    made = tf.function(both, jit_compile=True, autograph=False)(given.x, given.f, given.g)
    for kind, each in zip(KINDS, made, strict=True):
        wanted = run(case, kind, given)
        np.testing.assert_allclose(each, wanted, rtol=1e-10, atol=1e-10, err_msg=f"{case} {kind}")


def test_a_window_that_is_no_point() -> None:
    """`separable_conv2d` with a filter whose size shows when it runs."""
    x, f = tf.ones((1, 4, 4, 2)), tf.ones((3, 3, 2, 1))
    for shape in (None, (None,) * 4, (1, None, None, None)):
        function = tf.function(
            lambda mixing: convgrad.separable_conv2d(x, f, mixing, 1, "SAME"),
            input_signature=[tf.TensorSpec(shape, tf.float32)],
            autograph=False,
        )
        assert function(tf.ones((1, 1, 2, 5))).shape == (1, 4, 4, 5)
        with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
            function(tf.ones((1, 2, 2, 5)))
