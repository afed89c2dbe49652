"""`accelerate` and `restore`: a whole model of Keras at once, and a report of what was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras

from ..._base import memory as _memory
from ..._base.errors import ArgumentTypeError, shown
from ..._base.warnings import warn
from ..report import Layer, Report
from . import backends, calls, fusing, norms, refusals

_FUNCTIONS = ("train_function", "test_function", "predict_function")
"""What a model has compiled of itself, on every backend; Keras makes those anew that are None."""


class _Kind(NamedTuple):
    """A class of Keras whose objects can be taken."""

    base: type
    call: Callable[[Any, Any], Any]
    overridable: tuple[str, ...]
    """What of the class our `call` stands for, so that a derived class must not have its own."""


_KINDS = (
    _Kind(keras.layers.Conv2D, calls.convolution, ("call", "convolution_op", "kernel")),
    _Kind(keras.layers.DepthwiseConv2D, calls.depthwise, ("call",)),
    _Kind(keras.layers.SeparableConv2D, calls.separable, ("call",)),
    _Kind(keras.layers.Conv2DTranspose, calls.transposed, ("call",)),
)
_OTHER_RANKS = {
    **dict.fromkeys(
        (
            *(keras.layers.Conv1D, keras.layers.Conv1DTranspose),
            *(keras.layers.DepthwiseConv1D, keras.layers.SeparableConv1D),
        ),
        "1-D",
    ),
    **dict.fromkeys((keras.layers.Conv3D, keras.layers.Conv3DTranspose), "3-D"),
}


def accelerate(model: Any, *, fuse: bool = False, memory: bool = False) -> Report:
    """Compute a model's convolutions with convgrad, in place, and its batch norms if asked; returns a report.

    Every `Conv2D`, `DepthwiseConv2D`, `SeparableConv2D` and `Conv2DTranspose` of the model, of models inside it, of
    custom layers and of wrappers gets a `call` of ours; it need not be built. Classes, weights, optimizer, files and
    what `compile` was told stay what they are. Functions that the model has compiled of itself (`fit`, `evaluate`,
    `predict`) are made anew at their next use. `restore` undoes it. Copies, clones and models that come from files are
    not accelerated.

    Parameters
    ----------
    model : keras.Model or keras.layers.Layer
    fuse : bool
        Also compute every `BatchNormalization` in two passes over memory, together with the activation layer behind it
        where that alone uses its result in the graph of a functional or sequential model. Both layers stay where they
        are; while the model runs, the second passes on what it is given.
    memory : bool
        Also call `tune_memory`, for the whole process.

    Examples
    --------
    >>> import keras, convgrad.keras
    >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3), keras.layers.DepthwiseConv2D(3)])
    >>> report = convgrad.keras.accelerate(model)
    >>> report.taken
    ('conv2d', 'depthwise_conv2d')
    >>> model(keras.ops.ones((1, 8, 8, 3))).shape[1:] == (4, 4, 8)
    True
    """
    _check(model, "accelerate")
    computer = backends.computer("convgrad.keras.accelerate")
    layers, changed = [], False
    for name, layer, jitted in _layers(model):
        if _kind(layer) is None and _rank(layer) is None:
            continue
        reason = _why_not(layer, computer, jitted)
        if reason is None:
            calls.take(layer, _kind(layer).call)
            changed = True
        taken = reason in (None, _ALREADY)
        layers.append(Layer(name, type(layer).__name__, taken, reason or "", _what(layer)))
    if fuse:
        fused, any_new = fusing.fuse(list(_layers(model)), computer)
        layers += fused
        changed = changed or any_new
    setting = _memory.tune_memory() if memory else None
    report = Report(tuple(layers), setting, _advice(model, layers))
    if changed:
        _forget_compiled(model)
    if not report.taken:
        warn(
            "convgrad.keras.accelerate: no layer of this model was taken, so nothing will be faster; "
            "print the report to see why"
        )
    return report


def restore(model: Any) -> int:
    """Undo `accelerate`: Keras computes the model's layers again; returns how many were changed back.

    The memory setting is a matter of the process and stays; its own `undo` takes it back.
    """
    _check(model, "restore")
    every = [layer for _, layer, _ in _layers(model)]
    taken = [layer for layer in every if calls.is_taken(layer)]
    for layer in taken:
        calls.give_back(layer)
    for each in every:
        if norms.is_taken_model(each):
            norms.give_back_model(each)
    if taken:
        _forget_compiled(model)
    return len(taken)


_ALREADY = refusals.ALREADY


def _check(model: Any, function: str) -> None:
    if not isinstance(model, keras.layers.Layer):
        raise ArgumentTypeError(
            f"convgrad.keras.{function}: `model` must be a model or a layer of Keras 3, got {shown(model)}."
        )


def _layers(model: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield all layers of a model once: name, layer, and whether a model around it has `jit_compile`."""
    seen: set[int] = set()

    def walk(layer: Any, path: str, jitted: bool) -> Iterator[tuple[str, Any, bool]]:
        if id(layer) in seen:
            return
        seen.add(id(layer))
        if isinstance(layer, keras.Model):
            jitted = jitted or bool(layer.compiled and layer.jit_compile)
        yield path or layer.name, layer, jitted
        for inner in layer._layers:
            yield from walk(inner, f"{path}/{inner.name}" if path else inner.name, jitted)

    yield from walk(model, "", False)


def _kind(layer: Any) -> Any:
    return next((kind for kind in _KINDS if isinstance(layer, kind.base)), None)


def _rank(layer: Any) -> str | None:
    return next((rank for base, rank in _OTHER_RANKS.items() if isinstance(layer, base)), None)


def _why_not(layer: Any, computer: Any, jitted: bool) -> str | None:
    """Return why a layer is left alone, or None."""
    rank = _rank(layer)
    if rank is not None:
        return f"it is {rank}"
    if calls.is_taken(layer):
        return _ALREADY
    base, _, overridable = _kind(layer)
    kind = type(layer)
    for method in overridable:
        if getattr(kind, method) is not getattr(base, method):
            return f"{kind.__module__}.{kind.__qualname__} has a `{method}` of its own"
        if method in layer.__dict__:
            return f"its `{method}` was replaced"
    if layer.quantization_mode is not None:
        return f"it is quantized ({layer.quantization_mode})"
    return refusals.refusal_of(layer, computer, jitted)


def _what(layer: Any) -> str:
    if isinstance(layer, keras.layers.Conv2DTranspose):
        return "transposed"
    if isinstance(layer, keras.layers.SeparableConv2D):
        return "separable"
    if isinstance(layer, keras.layers.DepthwiseConv2D):
        return "depthwise"
    if not isinstance(layer, keras.layers.Conv2D):
        return ""
    if layer.groups > 1:
        return "grouped"
    if layer.kernel_size == (1, 1):
        return "pointwise"
    return "3x3" if layer.kernel_size == (3, 3) and layer.strides == (1, 1) else "dense"


def _advice(model: Any, layers: list[Layer]) -> tuple[str, ...]:
    formats = {
        layer.data_format
        for _, layer, _ in _layers(model)
        if _kind(layer) is not None and calls.is_taken(layer)
    }
    if formats == {"channels_first"}:
        return ("Its images are channels_first. Models with channels_last are faster.",)
    return ()


def _forget_compiled(model: Any) -> None:
    """Let a model, and models inside it, compile their functions anew; what `compile` was told stays."""
    found = False
    for layer in model._flatten_layers():
        for name in _FUNCTIONS:
            if getattr(layer, name, None) is not None:
                setattr(layer, name, None)
                found = True
    if found:
        backends.computer("convgrad.keras").forget_compiled()
