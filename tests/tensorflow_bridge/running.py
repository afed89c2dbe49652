"""A case on tensors: through our functions, through TensorFlow's own, and what is compared of the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from cases import KINDS, Case, Data, normal, run
from convgrad._bridges.peers import tensorflow as peer
from frameworks import wanted

ORDER = {"forward": ("x", "f"), "input": ("f", "g"), "filter": ("x", "g")}
"""Which operands each sum has."""


def operands(case: Case, seed: int = 0) -> Data:
    return normal(case, np.random.default_rng(seed))


def tensors(data: Data) -> Data:
    """Return the operands as TensorFlow's tensors."""
    return Data(*(tf.constant(each) for each in (data.x, data.f, data.g)))


def replaced(data: Data, kind: str, pair: Sequence[Any]) -> Data:
    """Return operands with the two of one sum exchanged."""
    named = {"x": data.x, "f": data.f, "g": data.g} | dict(zip(ORDER[kind], pair, strict=True))
    return Data(named["x"], named["f"], named["g"])


def pair(data: Data, kind: str) -> tuple[Any, Any]:
    first, second = ORDER[kind]
    return getattr(data, first), getattr(data, second)


def bits(result: Any) -> tuple[Any, ...]:
    """Return shape, dtype and the bytes of a result of either kind."""
    array = np.asarray(result)
    return array.shape, array.dtype.name, array.tobytes()


def assert_same_bits(case: Case, made: Sequence[Any], data: Data) -> None:
    """The three sums of a case are tensors, with the numbers NumPy gets."""
    for kind, each in zip(KINDS, made, strict=True):
        assert tf.is_tensor(each), (case, kind, type(each))
        assert bits(each) == bits(run(case, kind, data)), (case, kind)


def native(case: Case, kind: str, one: Any, two: Any) -> Any:
    """Return TensorFlow's own raw op on two tensors."""
    how = wanted(case, kind)
    function, settings = getattr(tf.raw_ops, peer.raw_name(how)), peer.raw_settings(how)
    if kind == "forward":
        return function(input=one, filter=two, **settings)
    if kind == "input":
        return function(input_sizes=case.input_shape, filter=one, out_backprop=two, **settings)
    return function(input=one, filter_sizes=case.filter_shape, out_backprop=two, **settings)
