"""Batch norm with activation in TensorFlow's own operations: for XLA, and for derivatives of derivatives.

They compute what the oracle says, in the dtype of the statistics. Sizes are those of the tensors, whatever the call
has. A backward call is given what its forward call was (`Normalisation.rows`), and computes the statistics anew from
that: then TensorFlow's derivatives of it are whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ..._base.dtypes import accumulator
from ..._problem import activations
from ..._problem.norm.normalisation import IMAGES, Normalisation


def _where(mask: Any, one: Any, other: Any) -> Any:
    """Choose; in graphs TensorFlow takes a number for an integer, whatever stands beside it."""
    kinds = [each.dtype for each in (one, other) if tf.is_tensor(each)]
    given = [tf.convert_to_tensor(each, kinds[0]) if kinds else each for each in (one, other)]
    return tf.where(mask, *given)


_OPERATIONS = activations.Operations(
    *(_where, tf.math.exp, tf.math.expm1, tf.math.tanh, tf.math.sigmoid, tf.math.softplus),
    tf.math.erf,
)


def activated(activation: str, u: Any, slope: float) -> Any:
    """Return an activation's value."""
    return activations.activated(_OPERATIONS, activation, u, slope)


def compute(call: Normalisation, operands: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a call, by the names of their places."""
    wide = accumulator(call.task.dtype).numpy.name
    given = {place: tf.cast(each, wide) for place, each in operands.items() if each is not None}
    made = (_forward if call.task.name.startswith("forward") else _backward)(call, given)
    return {
        place: tf.cast(made[place], call.dtype(place).numpy.name)
        if place in IMAGES
        else made[place]
        for place in call.results
    }


def saved(call: Normalisation, given: Mapping[str, Any]) -> Any:
    """Return what a forward pass leaves for the backward one, from its statistics."""
    mean, variance, inverse, scale = _statistics(call, given)
    return tf.stack([mean, variance, inverse, scale, given.get("bias", 0) - mean * scale])


def argument(call: Normalisation, given: Mapping[str, Any]) -> Any:
    """Return what the activation is applied to, in the dtype of images; the residual is one before it."""
    wide = accumulator(call.task.dtype).numpy.name
    casted = {place: tf.cast(each, wide) for place, each in given.items()}
    return tf.cast(_argument(call, casted, "residual"), given["x"].dtype)


def _axes(call: Normalisation) -> list[int]:
    return [0, 1, 2] if call.task.data_format == "NHWC" else [0, 2, 3]


def _spread(call: Normalisation, row: Any) -> Any:
    """Return a row of channels so that it meets images."""
    return row if call.task.data_format == "NHWC" else row[:, None, None]


def _statistics(call: Normalisation, given: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return mean, variance, one by the deviation, and what images are multiplied by."""
    if "running_mean" in given:
        mean, variance = given["running_mean"], given["running_var"]
    else:
        # Not tf.nn.moments, which stops gradients at the mean: its second derivatives are wrong.
        mean = tf.reduce_mean(given["x"], _axes(call))
        variance = tf.reduce_mean((given["x"] - _spread(call, mean)) ** 2, _axes(call))
    inverse = tf.math.rsqrt(variance + call.epsilon)
    return mean, variance, inverse, inverse * given["weight"] if "weight" in given else inverse


def _argument(call: Normalisation, given: Mapping[str, Any], residual: str) -> Any:
    """Return what the activation is applied to."""
    mean, _, _, scale = _statistics(call, given)
    u = (given["x"] - _spread(call, mean)) * _spread(call, scale)
    if "bias" in given:
        u += _spread(call, given["bias"])
    return u + given[residual] if residual in given else u


def _forward(call: Normalisation, given: Mapping[str, Any]) -> dict[str, Any]:
    task = call.task
    u = _argument(call, given, "residual" if task.residual == "before" else "")
    y = activated(task.activation, u, call.slope)
    y = y + given["residual"] if task.residual == "after" else y
    return {"y": y, "saved": saved(call, given)}


def _backward(call: Normalisation, given: Mapping[str, Any]) -> dict[str, Any]:
    task, x = call.task, given["x"]
    mean, _, inverse, scale = _statistics(call, given)
    # The derivative of what is told from its result is the same there: at y as at u.
    u = given["beside"] if task.beside == "y" else _argument(call, given, "beside")
    with tf.GradientTape() as tape:
        tape.watch(u)
        y = activated(task.activation, u, call.slope)
    inner = tape.gradient(y, u, given["grad"])
    away = (x - _spread(call, mean)) * _spread(call, inverse)
    dbias = tf.reduce_sum(inner, _axes(call))
    dweight = tf.reduce_sum(inner * away, _axes(call))
    dx = inner
    if task.name == "backward":
        values = tf.cast(tf.size(x) // tf.size(mean), x.dtype)
        dx = inner - (_spread(call, dbias) + away * _spread(call, dweight)) / values
    return {
        "dx": dx * _spread(call, scale),
        "dresidual": inner,
        "dweight": dweight,
        "dbias": dbias,
    }
