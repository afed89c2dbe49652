"""A layer run forwards and backwards on whichever backend Keras has, and who computed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

import convgrad.keras
from convgrad import _engine
from convgrad._problem.convolution import Kind, Problem

BACKEND = keras.backend.backend()
Arrays = list[np.ndarray]


def numbers(shape: Any, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(dtype)


def array(tensor: Any) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(tensor))


def filled(layer: Any, seed: int = 1) -> Any:
    """Give a built layer other numbers than zeros for its biases."""
    layer.set_weights(
        [0.3 * numbers(each.shape, seed + at) for at, each in enumerate(layer.get_weights())]
    )
    return layer


def both_ways(layer: Any, x: np.ndarray, g: np.ndarray, compiled: bool = False) -> Arrays:
    """Return a layer's result and the gradients of `sum(result * g)`: of the image, then of its weights."""
    return {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow}[BACKEND](layer, x, g, compiled)


def _torch(layer: Any, x: np.ndarray, g: np.ndarray, compiled: bool) -> Arrays:
    import torch

    image = torch.from_numpy(x).requires_grad_()
    result = (torch.compile(layer, backend="aot_eager") if compiled else layer)(image)
    leaves = [image, *(each.value for each in layer.trainable_variables)]
    found = torch.autograd.grad((result * torch.from_numpy(g)).sum(), leaves)
    return [array(each) for each in (result, *found)]


def _jax(layer: Any, x: np.ndarray, g: np.ndarray, compiled: bool) -> Arrays:
    import jax

    def run(image: Any, trainable: Any) -> Any:
        fixed = [each.value for each in layer.non_trainable_variables]
        return layer.stateless_call(trainable, fixed, image)[0]

    def all_of_it(image: Any, trainable: Any, weight: Any) -> Any:
        result, back = jax.vjp(run, image, trainable)
        by_image, by_weights = back(weight)
        return [result, by_image, *by_weights]

    todo = jax.jit(all_of_it) if compiled else all_of_it
    values = [each.value for each in layer.trainable_variables]
    return [array(each) for each in todo(jax.numpy.asarray(x), values, jax.numpy.asarray(g))]


def _tensorflow(layer: Any, x: np.ndarray, g: np.ndarray, compiled: bool) -> Arrays:
    import tensorflow as tf

    def all_of_it(image: Any, weight: Any) -> Any:
        leaves = [image, *(each.value for each in layer.trainable_variables)]
        with tf.GradientTape() as tape:
            tape.watch(image)
            result = layer(image)
            total = tf.reduce_sum(result * weight)
        return [result, *tape.gradient(total, leaves)]

    if compiled:  # sizes that only the run knows, but for the channels
        at = 3 if layer.data_format == "channels_last" else 1
        signature = [
            tf.TensorSpec([n if axis == at else None for axis, n in enumerate(each.shape)], x.dtype)
            for each in (x, g)
        ]
        all_of_it = tf.function(all_of_it, input_signature=signature)
    return [array(each) for each in all_of_it(tf.constant(x), tf.constant(g))]


def known() -> set[Problem]:
    """Return the problems this process has prepared programs for: every bridge asks the engine for them once."""
    keys = [key[0] for key in list(_engine.memory) if isinstance(key, tuple)]
    return {each for each in keys if isinstance(each, Problem)}


@contextmanager
def computed(*kinds: Kind) -> Iterator[None]:
    """Check that a block asks for problems of all these kinds that nothing was known of; for none if none is named.

    So a test has sizes of its own: what another one has asked for is not seen here.
    """
    before = known()
    yield
    found = Counter(each.kind for each in known() - before)
    assert found.keys() >= set(kinds) if kinds else not found, found


ALL = tuple(Kind)


def taken(layer: Any) -> Any:
    """Accelerate all convolutions of a layer or model, and return it."""
    report = convgrad.keras.accelerate(layer)
    assert report.taken and not report.left, str(report)
    return layer
