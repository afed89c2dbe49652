"""TensorFlow: a convolution of a network, native and ours, each in `tf.function`s of its own.

Ours is called by its own name: `install` would leave nobody to compare with in the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import tensorflow as tf

from convgrad._base.dtypes import AnyArray

from . import layer_turns
from .drafts import Convolution, Draft
from .layer_turns import Side
from .tensorflow_models import convolve, swapped


def compare(of: Draft, repeats: int) -> list[dict[str, Any]]:
    """Time each distinct convolution, native and ours in turns."""
    return layer_turns.compare(of, repeats, _sides)


def _sides(
    convolution: Convolution, image: AnyArray, taps: AnyArray, gradient: AnyArray
) -> tuple[Side, Side]:
    arrays = [tf.constant(each) for each in (image, taps, gradient)]
    bridge = import_module("convgrad.tensorflow")
    stride, groups = convolution.stride, convolution.groups

    def ours(x: Any, kernel: Any) -> Any:
        if groups == 1:
            return bridge.conv2d(x, kernel, stride, "SAME")
        return bridge.depthwise_conv2d(x, swapped(kernel), (1, stride, stride, 1), "SAME")

    return (
        _side(convolution, arrays, lambda x, kernel: convolve(x, kernel, stride, groups)),
        _side(convolution, arrays, ours),
    )


def _side(convolution: Convolution, arrays: Sequence[Any], call: Callable[[Any, Any], Any]) -> Side:
    x, kernel, gradient = arrays

    def backward(x: Any, kernel: Any, gradient: Any) -> Any:
        wanted = [x, kernel] if convolution.input_gradient else [kernel]
        with tf.GradientTape() as tape:
            tape.watch(wanted)
            output = call(x, kernel)
        # What a gradient does not need of the forward pass, the graph's optimizer leaves out.
        return tape.gradient(output, wanted, output_gradients=gradient)

    there, back = tf.function(lambda x, kernel: (call(x, kernel),)), tf.function(backward)
    return Side(lambda: there(x, kernel), lambda: back(x, kernel, gradient))
