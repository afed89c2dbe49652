"""`call` of four kinds of convolutions, computed by convgrad, and how an object is given it.

A layer that is taken over gets an attribute `call` of its own, in its `__dict__`, which Python finds before that of its
class. Keras does the same with `build` and `quantize` of every layer. The class stays Keras's, and with it all that is
written down: Keras's files name a layer by its class, through a table of its own classes, and name the place of its
weights by `__class__.__name__`; pickles, `copy.deepcopy` and `clone_model` are made of the same. A class of ours, even
a disguised one, would have to be entered into that table, and files would need convgrad if it were not. It also could
not stand in for classes that users derive from Keras's. Nothing is lost when `call` is: what comes out of a file is a
layer of Keras.

Keras reads the signature of `call` once, when the layer is made, and asks the layer for `call` at every use: in
`__call__`, in wrappers such as TimeDistributed, and under rematerialization. The attribute is put into `__dict__`
directly, past `__setattr__`, by which Keras and its backends track what belongs to a model.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import keras

from . import backends, padding, settings
from .settings import POINTWISE, LayerSettings

_KEPT = "_convgrad_kept"
"""Where a layer keeps what it had in the place of attributes of ours."""


def convolution(layer: Any, inputs: Any) -> Any:
    """`keras.layers.Conv2D.call`."""
    kernel, how = _tensor(layer.kernel), settings.settings_of(layer)
    if not _computable(inputs, kernel, how):
        return _native(layer, inputs)
    return _finished(layer, _computer.convolve(inputs, kernel, _bias(layer), how))


def depthwise(layer: Any, inputs: Any) -> Any:
    """`keras.layers.DepthwiseConv2D.call`."""
    kernel, how = _tensor(layer.kernel), settings.settings_of(layer)
    if not _computable(inputs, kernel, how):
        return _native(layer, inputs)
    return _finished(layer, _computer.depthwise(inputs, kernel, _bias(layer), how))


def separable(layer: Any, inputs: Any) -> Any:
    """`keras.layers.SeparableConv2D.call`."""
    first, second = _tensor(layer.depthwise_kernel), _tensor(layer.pointwise_kernel)
    how = settings.settings_of(layer)
    if not _computable(inputs, first, how):
        return _native(layer, inputs)
    between = _computer.depthwise(inputs, first, None, how)
    then = LayerSettings(*POINTWISE, how.channels_last)
    return _finished(layer, _computer.convolve(between, second, _bias(layer), then))


def transposed(layer: Any, inputs: Any) -> Any:
    """`keras.layers.Conv2DTranspose.call`."""
    kernel, how = _tensor(layer.kernel), settings.settings_of(layer)
    if not _computable(inputs, kernel, how, forwards=False):
        return _native(layer, inputs)
    return _finished(layer, _computer.transpose(inputs, kernel, _bias(layer), how))


OURS: set[Callable[..., Any]] = {convolution, depthwise, separable, transposed}
"""All functions that stand for a layer's `call`; `norms` adds its own."""
_computer: Any = None
"""What convolves on the backend of this process; set by the first layer that is taken."""


def take(layer: Any, call: Callable[..., Any]) -> None:
    """Let a layer compute with one of our functions."""
    global _computer
    _computer = backends.computer("convgrad.keras.accelerate")
    own = layer.__dict__
    own["call"] = MethodType(call, layer)
    own["rematerialized_call"] = MethodType(_rematerialized, layer)
    if not _computer.COMPILES_WITH_XLA:
        own[_KEPT] = layer.supports_jit
        own["supports_jit"] = (
            False  # Keras then compiles models without XLA, and warns a user who asks for it
        )


def give_back(layer: Any) -> None:
    """Let the layer's class compute again."""
    own = layer.__dict__
    del own["call"], own["rematerialized_call"]
    if _KEPT in own:
        own["supports_jit"] = own.pop(_KEPT)


def is_taken(layer: Any) -> bool:
    return getattr(layer.__dict__.get("call"), "__func__", None) in OURS


def _rematerialized(layer: Any, call: Any, *args: Any, **kwargs: Any) -> Any:
    """`keras.layers.Layer.rematerialized_call`, given a new object for what is `layer.call`, as a class gives.

    `jax.checkpoint` remembers what it traced for as long as the function it was given lives, which with Keras holds
    variables of another tracing: found again, it would have no gradients.
    """
    if is_taken(layer) and call == layer.call:
        call = MethodType(call.__func__, layer)
    return type(layer).rematerialized_call(layer, call, *args, **kwargs)


def _native(layer: Any, inputs: Any) -> Any:
    return type(layer).call(layer, inputs)


def _computable(inputs: Any, kernel: Any, how: LayerSettings, forwards: bool = True) -> bool:
    """Tell whether a call is one of ours. Keras computes what else it accepts, and raises for what it refuses."""
    if isinstance(inputs, keras.KerasTensor) or len(inputs.shape) != 4:
        return False
    if inputs.dtype != kernel.dtype or not _computer.is_computable(inputs):
        return False
    image = how.rows_and_columns(inputs.shape)
    window = tuple(kernel.shape[:2])
    if None in image:
        return True
    if forwards:
        return how.padding == "same" or not padding.is_empty(image, window, how.dilation)
    sides = padding.crops(how.padding, window, how.strides, how.dilation, how.output_padding)
    return min(padding.transposed_size(image, window, how.strides, how.dilation, sides)) > 0


def _tensor(variable: Any) -> Any:
    """Return a variable's value in the layer's compute dtype."""
    return keras.ops.convert_to_tensor(variable)


def _bias(layer: Any) -> Any:
    return _tensor(layer.bias) if layer.use_bias else None


def _finished(layer: Any, result: Any) -> Any:
    return result if layer.activation is None else layer.activation(result)
