"""Results on eager tensors: the bits NumPy gets, near the oracle, and TensorFlow's own where those are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings

import convgrad
from cases import KINDS, Case, run
from tensorflow_bridge.configurations import CONFIGURATIONS, taken_by_tensorflow
from tensorflow_bridge.problems import cases, theirs
from tensorflow_bridge.running import (
    assert_same_bits,
    bits,
    native,
    operands,
    pair,
    replaced,
    tensors,
)
from tolerance import assert_close

drawn = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_the_list_is_long_and_holds_every_kind() -> None:
    assert len(set(CONFIGURATIONS)) >= 200
    assert all(each.legal for each in CONFIGURATIONS)
    kinds = {
        (each.depthwise, each.groups > 1, each.data_format, each.dtype) for each in CONFIGURATIONS
    }
    assert len(kinds) >= 2 * 4 + 4 * 4
    assert sum(map(taken_by_tensorflow, CONFIGURATIONS)) >= 30
    assert sum(0 in each.output_shape for each in CONFIGURATIONS) >= 7


@pytest.mark.parametrize("case", CONFIGURATIONS, ids=str)
def test_the_bits_of_numpy(case: Case) -> None:
    """For every configuration, and through one of the doors in turn; results are aligned as TensorFlow needs them."""
    data = operands(case)
    given = tensors(data)
    door = ("friendly", "v1", "raw")[sum(map(ord, str(case))) % 3]
    made = [run(case, kind, given, door) for kind in KINDS]
    assert_same_bits(case, made, data)
    for each in made:
        assert np.asarray(each).ctypes.data % 64 == 0 or 0 in each.shape
        assert bits(tf.identity(each) * 1) == bits(each)  # the next operation takes it


@drawn
@given(cases())
def test_near_the_oracle(case: Case) -> None:
    data = operands(case)
    given = tensors(data)
    for kind in KINDS:
        assert_close(case, kind, data, np.asarray(run(case, kind, given)))


@drawn
@given(theirs())
def test_as_tensorflow_in_float64(case: Case) -> None:
    given = tensors(operands(case))
    for kind in KINDS:
        mine, others = run(case, kind, given), native(case, kind, *pair(given, kind))
        np.testing.assert_allclose(mine, others, rtol=1e-11, atol=1e-11, err_msg=f"{case} {kind}")


@drawn
@given(theirs())
def test_gradients_as_tensorflow_in_float64(case: Case) -> None:
    """The tape of each of the three sums: two gradients of ours beside TensorFlow's two."""
    given = tensors(operands(case))
    for kind in KINDS:
        one, two = pair(given, kind)

        def both(call: Any, one: Any = one, two: Any = two) -> Any:
            with tf.GradientTape() as tape:
                tape.watch([one, two])
                loss = tf.reduce_sum(tf.sin(call(one, two)))
            return tape.gradient(loss, [one, two])

        ours = both(lambda a, b, kind=kind: run(case, kind, replaced(given, kind, (a, b))))
        others = both(lambda a, b, kind=kind: native(case, kind, a, b))
        for mine, other in zip(ours, others, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9, err_msg=f"{case} {kind}")


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_integers(layout: str) -> None:
    """int32 wraps around, as in TensorFlow; there is no gradient to record."""
    case = Case(False, 2, (5, 6), 2, 2, 3, (3, 2), (2, 1), (1, 2), "SAME", layout, "int32")
    rng = np.random.default_rng(3)
    x, f = (
        rng.integers(-(2**31), 2**31, shape).astype(np.int32)
        for shape in (case.input_shape, case.filter_shape)
    )
    how = {"strides": (2, 1), "padding": "SAME", "data_format": layout, "dilations": (1, 2)}
    made = convgrad.conv2d(tf.constant(x), tf.constant(f), **how)
    assert made.dtype == tf.int32 and bits(made) == bits(convgrad.conv2d(x, f, **how))


def test_nan_and_infinity_go_through() -> None:
    x = tf.constant([[1.0, np.nan, 3.0, 4.0, np.inf]], tf.float32)[:, :, None, None]
    y = convgrad.conv2d(x, tf.ones((1, 1, 1, 1)), 1, "VALID")
    assert bits(y) == bits(x)
