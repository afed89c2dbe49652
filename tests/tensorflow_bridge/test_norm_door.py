"""`convgrad.batch_norm_act` and its gradients on tensors of TensorFlow, eagerly and in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import norm_doors
from convgrad._base.dtypes import DOUBLE
from convgrad.errors import ArgumentError
from norm_doors import BACKWARD, FORWARD, Case


def back(tensor: Any) -> Any:
    return tensor.numpy()


@norm_doors.every_case
def test_values(case: Case) -> None:
    norm_doors.check_case(case, tf.constant, back, tf.Tensor)


def test_mixed_with_arrays_of_numpy() -> None:
    norm_doors.check_mixed(tf.constant, back, tf.Tensor)
    case = Case(residual="after")
    given = case.arrays()
    want = FORWARD(**given, **case.settings)
    got = FORWARD(**{**given, "scale": tf.Variable(given["scale"])}, **case.settings)
    norm_doors.compare(case, want, got, back, tf.Tensor)


def test_mistakes() -> None:
    norm_doors.check_mistakes(tf.constant)


def test_mistakes_in_a_graph() -> None:
    """Refused while it is built."""

    def check() -> None:
        norm_doors.check_mistakes(tf.constant)

    tf.function(check, autograph=False)()


def tensors(case: Case) -> dict[str, Any]:
    return {name: tf.constant(each) for name, each in case.arrays().items()}


@pytest.mark.parametrize(
    ("case", "shapes"),
    [
        *((case, "known") for case in norm_doors.CASES[::2]),
        *((case, "unknown") for case in norm_doors.CASES[1::2]),
    ],
    ids=str,
)
def test_gradients_in_a_graph(case: Case, shapes: str) -> None:
    """What a tape finds in a `tf.function` is what `batch_norm_act_grad` returns."""
    given, grad = tensors(case), tf.constant(case.out_backprop())
    names = [name for name in given if name not in ("mean", "variance")]

    def taped(grad: Any, **every: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(every)
            result = FORWARD(**every, **case.settings)
        return result, tape.gradient(result.y, [every[name] for name in names], grad)

    signature: dict[str, Any] = {}
    if shapes == "unknown":
        signature = {
            name: tf.TensorSpec([None] * each.shape.rank, each.dtype)
            for name, each in given.items()
        }
    function = tf.function(taped, autograph=False)
    if signature:
        function = function.get_concrete_function(tf.TensorSpec(None, grad.dtype), **signature)
    result, found = function(grad, **given)
    want = FORWARD(**case.arrays(), **case.settings)
    norm_doors.compare(
        case, want, want._replace(**dict(zip(want._fields, result, strict=True))), back, tf.Tensor
    )
    gradients = BACKWARD(**norm_doors.gradient_arguments(case, want), **case.settings)
    absent = dict.fromkeys(name for name in gradients._fields if name not in names)
    got = gradients._replace(**dict(zip(names, found, strict=True)))
    norm_doors.compare(
        *(case, gradients._replace(**absent), got._replace(**absent)), back, tf.Tensor
    )


@pytest.mark.parametrize("case", norm_doors.CASES[::5], ids=str)
def test_the_gradient_function_in_a_graph(case: Case) -> None:
    want = FORWARD(**case.arrays(), **case.settings)
    arguments = norm_doors.gradient_arguments(case, want)
    given = {name: tf.constant(each) for name, each in arguments.items() if each is not None}
    missing = dict.fromkeys(name for name in ("scale", "offset") if name not in given)
    function = tf.function(
        lambda **every: tuple(
            each for each in BACKWARD(**every, **missing, **case.settings) if each is not None
        ),
        autograph=False,
    )
    want_back = BACKWARD(**arguments, **case.settings)
    made = iter(function(**given))
    got = want_back._make(None if each is None else next(made) for each in want_back)
    norm_doors.compare(case, want_back, got, back, tf.Tensor)


WIDE = [
    Case((2, 2, 3, 3), DOUBLE, training, residual, "silu")
    for training in (True, False)
    for residual in ("", "before", "after")
]


@pytest.mark.parametrize("case", WIDE, ids=str)
def test_derivatives_of_gradients(case: Case) -> None:
    """Statistics of a batch move with it, also where the gradient function is differentiated."""
    given, grad = tensors(case), tf.constant(case.out_backprop())
    names = tuple(given)

    def backward(grad: Any, *every: Any) -> Any:
        told = dict(zip(names, every, strict=True))
        if case.is_training:
            found = FORWARD(**told, **case.settings)
            told |= {"mean": found.mean, "variance": found.variance}
        gradients = BACKWARD(grad, **told, **case.settings)
        return sum(tf.reduce_sum(tf.sin(each)) for each in gradients if each is not None)

    theory, practice = tf.test.compute_gradient(backward, [grad, *given.values()], delta=1e-4)
    for one, other in zip(theory, practice, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_an_unknown_activation_in_a_graph() -> None:
    with pytest.raises(ArgumentError, match="batch_norm_act: `activation` must be one of 'none'"):
        tf.function(lambda x: FORWARD(x, activation="swoosh").y, autograph=False)(
            tf.ones((1, 2, 2, 1))
        )
