"""Gradients: on tapes to second order, in forward mode, in graphs, against differences and our own sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import convgrad
from cases import KINDS, Case, Data, run
from tensorflow_bridge.configurations import some
from tensorflow_bridge.running import ORDER, bits, operands, pair, replaced, tensors

TINY = [
    Case(False, 1, (3, 3), 1, 2, 1, (3, 2), (2, 1), (1, 1), "SAME", "NHWC", "float64"),
    Case(False, 1, (2, 3), 2, 1, 1, (2, 2), (1, 1), (1, 2), ((1, 0), (1, 0)), "NCHW", "float64"),
    Case(True, 1, (4, 3), 1, 1, 2, (3, 3), (1, 1), (2, 2), "SAME", "NHWC", "float64"),
    Case(True, 1, (3, 4), 2, 1, 1, (2, 3), (1, 2), (1, 1), "VALID", "NCHW", "float64"),
]
"""Small enough for whole Jacobians: dense, grouped, depthwise; dilated, of unequal strides; in both layouts."""


def call(case: Case, kind: str, data: Data) -> Any:
    return lambda one, two: run(case, kind, replaced(data, kind, (one, two)))


def close_jacobians(function: Any, arguments: list[Any], tolerance: float = 1e-6) -> None:
    theory, numbers = tf.test.compute_gradient(function, arguments, delta=1e-3)
    for mine, other in zip(theory, numbers, strict=True):
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", TINY, ids=str)
def test_first_against_differences(case: Case, kind: str) -> None:
    data = tensors(operands(case))
    close_jacobians(call(case, kind, data), list(pair(data, kind)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", TINY, ids=str)
def test_second_against_differences(case: Case, kind: str) -> None:
    data = tensors(operands(case))
    function = call(case, kind, data)

    def gradients(one: Any, two: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([one, two])
            loss = tf.reduce_sum(function(one, two) ** 2)
        return tf.concat([tf.reshape(each, [-1]) for each in tape.gradient(loss, [one, two])], 0)

    close_jacobians(gradients, list(pair(data, kind)), 1e-5)


@pytest.mark.parametrize("mode", ["eager", "graph", "unknown"])
@pytest.mark.parametrize("case", some(24, seed=6), ids=str)
def test_a_tape_holds_our_own_sums(case: Case, mode: str) -> None:
    """The gradient of a forward call is the two other sums, bit for bit; and so around."""
    data = operands(case)
    given = tensors(data)
    swapped = {"forward": "g", "input": "x", "filter": "f"}  # what arrives at each kind's result
    for kind in KINDS:

        def both(one: Any, two: Any, arrives: Any, kind: str = kind) -> Any:
            with tf.GradientTape() as tape:
                tape.watch([one, two])
                made = run(case, kind, replaced(given, kind, (one, two)))
            return tape.gradient(made, [one, two], arrives)

        if mode != "eager":
            one, two = pair(given, kind)
            shape = None if mode == "unknown" else 1
            signature = [
                tf.TensorSpec([None] * 4 if shape is None else each.shape, each.dtype)
                for each in (one, two, getattr(given, swapped[kind]))
            ]
            both = tf.function(both, autograph=False, input_signature=signature)
        made = both(*pair(given, kind), getattr(given, swapped[kind]))
        for name, gradient in zip(ORDER[kind], made, strict=True):
            wanted = {"x": "input", "f": "filter", "g": "forward"}[name]
            assert bits(gradient) == bits(run(case, wanted, data)), (case, kind, name)


def test_third_order() -> None:
    """A product of two operands has no more than second derivatives by them; a cube has."""
    x, f = tf.constant(np.arange(9.0).reshape(1, 3, 3, 1)), tf.ones((2, 2, 1, 1), tf.float64)
    with tf.GradientTape() as third:
        third.watch(f)
        with tf.GradientTape() as second:
            second.watch(f)
            with tf.GradientTape() as first:
                first.watch(f)
                loss = tf.reduce_sum(convgrad.conv2d(x, f, 1, "VALID") ** 3)
            a = tf.reduce_sum(first.gradient(loss, f))
        b = tf.reduce_sum(second.gradient(a, f))
    c = tf.reduce_sum(third.gradient(b, f))
    # Along ones the loss is t^3 sum(s^3) with s the sums of windows, so its third derivative is 6 sum(s^3).
    sums = np.array([8.0, 12.0, 20.0, 24.0])
    assert float(c) == 6 * np.sum(sums**3)


@pytest.mark.parametrize("case", TINY, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_forward_mode(case: Case, kind: str) -> None:
    """Each sum is linear in each operand: the derivative along a direction is the sum of two calls."""
    data, ways = tensors(operands(case)), tensors(operands(case, seed=5))
    (one, two), (along, beside) = pair(data, kind), pair(ways, kind)
    function = call(case, kind, data)
    with tf.autodiff.ForwardAccumulator([one, two], [along, beside]) as accumulator:
        made = function(one, two)
    wanted = function(along, two) + function(one, beside)
    np.testing.assert_allclose(accumulator.jvp(made), wanted, rtol=1e-12, atol=1e-12)


def test_forward_over_backward() -> None:
    case = TINY[2]
    data, ways = tensors(operands(case)), tensors(operands(case, seed=5))
    with tf.autodiff.ForwardAccumulator(data.f, ways.f) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(data.f)
            loss = tf.reduce_sum(run(case, "forward", data) ** 3)
        gradient = tape.gradient(loss, data.f)
    made = accumulator.jvp(gradient)

    def slope(f: Any) -> Any:
        y = run(case, "forward", Data(data.x, f, data.g))
        return run(case, "filter", Data(data.x, f, 3 * y**2))

    step = 1e-5
    wanted = (slope(data.f + step * ways.f) - slope(data.f - step * ways.f)) / (2 * step)
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)


def test_jacobians() -> None:
    """`tape.jacobian` vectorizes the backward pass; what it cannot, it loops over."""
    case = replace(TINY[0], batch=2)
    data = tensors(operands(case))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(data.f)
        y = tf.reduce_sum(run(case, "forward", data), axis=(1, 2))
    for vectorized in (False, True):
        made = tape.jacobian(y, data.f, experimental_use_pfor=vectorized)
        check_jacobian(case, data, made)


def check_jacobian(case: Case, data: Data, made: Any) -> None:
    y_shape = (case.batch, case.output_shape[-1])
    assert made.shape == (*y_shape, *data.f.shape)
    for n in range(2):
        for c in range(y_shape[1]):
            g = np.zeros(case.output_shape)
            g[n, :, :, c] = 1
            wanted = run(case, "filter", Data(np.asarray(data.x), None, g))
            np.testing.assert_allclose(made[n, c], wanted, rtol=1e-12)


def test_what_is_not_watched_is_not_computed() -> None:
    x, f = tf.ones((1, 4, 4, 1)), tf.Variable(tf.ones((3, 3, 1, 1)))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(convgrad.conv2d(x, f, 1, "SAME"))
    assert tape.gradient(y, [x, f])[0] is None
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(convgrad.conv2d(tf.stop_gradient(x), tf.stop_gradient(f), 1, "SAME"))
    assert tape.gradient(y, x) is None
