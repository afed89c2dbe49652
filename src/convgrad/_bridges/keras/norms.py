"""`call` of batch norms, of activations behind them, and of models in whose graphs the two are found (`graphs`)."""

from __future__ import annotations

from types import MethodType
from typing import Any

import keras

from . import backends, calls, graphs
from .activations import AppliedActivation

_NONE = AppliedActivation("none")


def normalization(layer: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
    """`keras.layers.BatchNormalization.call`, with the activation behind it where there is one."""
    computer = backends.computer("convgrad.keras.accelerate")
    if mask is not None or not _computable(layer, inputs, computer):
        return type(layer).call(layer, inputs, training=training, mask=mask)
    pair = graphs.pair_of(layer)
    if pair is not None and not calls.is_taken(pair.activation):
        pair = None
    learns = training and layer.trainable
    moving = [
        keras.ops.convert_to_tensor(each) for each in (layer.moving_mean, layer.moving_variance)
    ]
    made = computer.batch_norm(
        inputs,
        keras.ops.convert_to_tensor(layer.gamma) if layer.scale else None,
        keras.ops.convert_to_tensor(layer.beta) if layer.center else None,
        None if learns else moving,
        layer.epsilon,
        _NONE if pair is None else pair.computes,
        data_format(layer.axis),
    )
    if made is None:
        return type(layer).call(layer, inputs, training=training, mask=mask)
    if pair is not None:
        graphs.note_computed(pair.activation)
    result, *statistics = made
    if learns:
        for variable, old, new in zip(
            (layer.moving_mean, layer.moving_variance), moving, statistics, strict=True
        ):
            old = keras.ops.cast(old, new.dtype)
            variable.assign(old * layer.momentum + new * (1.0 - layer.momentum))
    return result


def activation(layer: Any, inputs: Any) -> Any:
    """`call` of an activation layer: nothing is left to do where the batch norm before it has done it."""
    return inputs if graphs.is_computed(layer) else type(layer).call(layer, inputs)


calls.OURS.update((normalization, activation))


def data_format(axis: int) -> str | None:
    """Return the layout of images whose channels are along an axis, None if it is another one."""
    return {-1: "NHWC", 3: "NHWC", 1: "NCHW", -3: "NCHW"}.get(axis)


def _computable(layer: Any, inputs: Any, computer: Any) -> bool:
    if isinstance(inputs, keras.KerasTensor) or len(inputs.shape) != 4:
        return False
    return keras.backend.standardize_dtype(inputs.dtype) == layer.compute_dtype and bool(
        computer.is_computable(inputs)
    )


class _Run:
    """`call` of a model: it tells its layers that it runs."""

    def __init__(self, pairs: dict[int, graphs.Pair]) -> None:
        self.pairs = pairs

    def __call__(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        # A list of layers can have changed since; a graph cannot.
        pairs = (
            graphs.find_pairs(model).pairs if isinstance(model, keras.Sequential) else self.pairs
        )
        with graphs.running(pairs):
            return type(model).call(model, *args, **kwargs)


def take_model(model: Any, found: graphs.Found) -> None:
    """Let a model with a graph tell its layers when it runs."""
    model.__dict__["call"] = MethodType(_Run(found.pairs), model)


def is_taken_model(model: Any) -> bool:
    return isinstance(getattr(model.__dict__.get("call"), "__func__", None), _Run)


def give_back_model(model: Any) -> None:
    """Let the model's class run it again."""
    del model.__dict__["call"]
