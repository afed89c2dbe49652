"""31 calls of TensorFlow with arguments that kill it, or once did: published vulnerabilities, issues, and our own.

Each is written against TensorFlow itself and takes its module, so that one list serves before and after `install()`.
Half of them abort the process somewhere, so each is run in a process of its own: `python -m
tensorflow_bridge.malformed 3 4` makes calls 3 and 4 and prints a line of JSON for each.

The titles name the report, as `errors/test_tensorflow_crashes.py` does, which puts the same to our own functions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST = 2**31 - 1
HUGE = 1879048192


@dataclass(frozen=True)
class Call:
    """One call, and what is right: an array, or None where only an error is."""

    title: str
    run: Callable[[Any], Any]
    right: Any = None


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def _column(*numbers: float) -> Any:
    return np.array(numbers, np.float32).reshape(1, -1, 1, 1)


def raw(name: str, **arguments: Any) -> Callable[[Any], Any]:
    """Return a call of a raw op, stride 1 and SAME unless told."""
    how = {"strides": [1, 1, 1, 1], "padding": "SAME"} | arguments
    return lambda tf: getattr(tf.raw_ops, name)(**how)


def _in_a_graph(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda tf: tf.function(lambda: call(tf), autograph=False)()


_nothing = raw("Conv2D", input=zeros(0, 0, 0, 0), filter=zeros(0, 0, 0, 0))

MALFORMED = (
    Call(
        "CVE-2021-29524: filter gradient without channels",
        raw(
            "Conv2DBackpropFilter",
            input=ones(0, 0, 1, 0),
            filter_sizes=[1, 1, 1, 1],
            out_backprop=ones(0, 0, 1, 1),
            strides=[1, 66, 18, 1],
        ),
    ),
    Call(
        "CVE-2021-29525: input gradient, an empty filter",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[52, 1, 1, 5],
            filter=ones(0, 1, 5, 0),
            out_backprop=ones(52, 1, 1, 0),
        ),
        zeros(52, 1, 1, 5),
    ),
    Call(
        "CVE-2022-35996: empty input, padded output",
        raw(
            "Conv2D",
            input=ones(1, 0, 2, 1),
            filter=ones(1, 1, 1, 1),
            padding="EXPLICIT",
            explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0],
        ),
        zeros(1, 2, 4, 1),
    ),
    Call(
        "CVE-2022-35999: input gradient of an empty gradient",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[3, 1, 1, 2],
            filter=ones(1, 3, 2, 3),
            out_backprop=ones(3, 1, 0, 3),
            strides=[1, 1, 2, 1],
            padding="VALID",
        ),
        zeros(3, 1, 1, 2),
    ),
    Call("CVE-2021-29526: all sizes 0", _nothing),
    Call("CVE-2021-37675: all sizes 0, in a graph", _in_a_graph(_nothing)),
    Call(
        "CVE-2021-29540 a: filter sizes that do not divide",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 1, 1, 2),
            filter_sizes=[1, 1, 1, 1],
            out_backprop=ones(1, 1, 1, 1),
            strides=[1, 66, 49, 1],
            padding="VALID",
        ),
    ),
    Call(
        "CVE-2022-35969: 2 input sizes, a scalar gradient",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[65534, 65534],
            filter=ones(3, 3, 2, 2),
            out_backprop=np.float32(1),
        ),
    ),
    Call(
        "CVE-2021-41197: 13 huge filter sizes",
        raw(
            "DepthwiseConv2dNativeBackpropFilter",
            input=ones(1, 4, 4, 3),
            filter_sizes=[HUGE] * 13,
            out_backprop=ones(1, 4, 4, 3),
        ),
    ),
    Call(
        "CVE-2021-29538: filter gradient, all sizes 0",
        raw(
            "Conv2DBackpropFilter",
            input=zeros(0, 0, 0, 0),
            filter_sizes=[0, 0, 0, 0],
            out_backprop=zeros(0, 0, 0, 0),
        ),
    ),
    Call(
        "CVE-2021-29540 b: an empty batch, sizes that do not divide",
        raw(
            "Conv2DBackpropFilter",
            input=ones(0, 1, 1, 5),
            filter_sizes=[3, 8, 1, 1],
            out_backprop=ones(0, 1, 1, 1),
        ),
    ),
    Call(
        "IvySyn: depthwise input gradient, 13 huge sizes",
        raw(
            "DepthwiseConv2dNativeBackpropInput",
            input_sizes=[HUGE] * 13,
            filter=ones(1, 1, 3, 1),
            out_backprop=ones(1, 4, 4, 3),
        ),
    ),
    Call(
        "#104881: depthwise input gradient, 2 strides, operands of rank 1",
        raw(
            "DepthwiseConv2dNativeBackpropInput",
            input_sizes=[1, 4, 4, 3],
            filter=ones(3),
            out_backprop=ones(3),
            strides=[1, 1],
        ),
    ),
    Call(
        "#85258: depthwise filter gradient, no strides, scalars",
        lambda tf: tf.nn.depthwise_conv2d_backprop_filter(
            np.float32(1), [1], np.float32(1), [], "SAME"
        ),
    ),
    Call(
        "#58180: depthwise filter gradient, NCHW, a scalar, no sizes, 3 dilations",
        lambda tf: tf.nn.depthwise_conv2d_backprop_filter(
            np.float32(1),
            np.zeros(0, np.int32),
            ones(1, 1, 1, 1),
            [1] * 4,
            "SAME",
            "NCHW",
            [1, 1, 1],
        ),
    ),
    Call(
        "#97165: depthwise, strides of 64 bits, negative ones",
        raw(
            "DepthwiseConv2dNative",
            input=ones(1, 4, 4, 1),
            filter=ones(1, 1, 1, 1),
            strides=[1, -(2**62), 2**40, 1],
        ),
    ),
    Call(
        "#85257: filter gradient, 1 stride of 64 bits",
        lambda tf: tf.compat.v1.nn.conv2d_backprop_filter(
            ones(1, 1, 1, 1), [1] * 4, ones(1, 1, 1, 1), [4538426903074820908], "SAME"
        ),
    ),
    Call(
        "#62142: filter gradient, every rank wrong",
        raw(
            "Conv2DBackpropFilter",
            input=ones(2, 7),
            filter_sizes=[3],
            out_backprop=ones(10),
            strides=[3],
            padding="VALID",
            explicit_paddings=[2],
            dilations=[1],
        ),
    ),
    Call(
        "PR#127293: input gradient, 3 sizes",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[1, 4, 4],
            filter=ones(1, 1, 1, 1),
            out_backprop=ones(1, 4, 4, 1),
        ),
    ),
    Call(
        "own: input gradient, sizes of rank 0",
        raw(
            "Conv2DBackpropInput",
            input_sizes=np.int32(4),
            filter=ones(1, 1, 1, 1),
            out_backprop=ones(1, 4, 4, 1),
        ),
    ),
    Call(
        "own: input gradient, a negative size",
        raw(
            "Conv2DBackpropInput",
            input_sizes=[1, -4, 4, 1],
            filter=ones(1, 1, 1, 1),
            out_backprop=ones(1, 4, 4, 1),
        ),
    ),
    Call(
        "#125506: conv2d_transpose, a scalar filter, 2 sizes",
        lambda tf: tf.nn.conv2d_transpose(ones(1, 3, 3, 8), np.float32(8), (2, 2), (2, 2)),
    ),
    Call(
        "#89852: conv2d, operands of rank 3",
        raw("Conv2D", input=ones(4, 4, 1), filter=ones(1, 1, 1)),
    ),
    Call(
        "PR#126484: depthwise filter gradient, an empty batch",
        raw(
            "DepthwiseConv2dNativeBackpropFilter",
            input=ones(0, 4, 4, 3),
            filter_sizes=[3, 3, 3, 1],
            out_backprop=ones(0, 4, 4, 3),
        ),
        zeros(3, 3, 3, 1),
    ),
    Call(
        "own: two pads of 2**31 - 1, a result of 4 TB",
        raw(
            "Conv2D",
            input=ones(1, 4, 4, 1),
            filter=ones(3, 3, 1, 64),
            padding="EXPLICIT",
            explicit_paddings=[0, 0, MOST, MOST, 1, 1, 0, 0],
        ),
    ),
    Call(
        "own: depthwise filter gradient, dilation 2**31 - 1",
        raw(
            "DepthwiseConv2dNativeBackpropFilter",
            input=_column(1, 2, 3),
            filter_sizes=[3, 1, 1, 1],
            out_backprop=_column(1, 10, 100),
            dilations=[1, MOST, MOST, 1],
        ),
        np.array([0, 321, 0], np.float32).reshape(3, 1, 1, 1),
    ),
    Call(
        "own: a negative pad",
        raw(
            "Conv2D",
            input=ones(1, 4, 4, 1),
            filter=ones(1, 1, 1, 1),
            padding="EXPLICIT",
            explicit_paddings=[0, 0, -1, 1, 0, 0, 0, 0],
        ),
    ),
    Call(
        "own: stride 0",
        raw("Conv2D", input=ones(1, 4, 4, 1), filter=ones(1, 1, 1, 1), strides=[1, 0, 0, 1]),
    ),
    Call(
        "own: a negative filter size",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 4, 4, 1),
            filter_sizes=[3, -3, 1, 1],
            out_backprop=ones(1, 4, 4, 1),
        ),
    ),
    Call(
        "#60201: filter gradient, stride 0, 5 dilations",
        lambda tf: tf.compat.v1.nn.conv2d_backprop_filter(
            ones(1, 4, 4, 1), [1] * 4, ones(1, 4, 4, 1), [1, 0, 1, 1], "SAME", dilations=[1] * 5
        ),
    ),
    Call(
        "#59059: filter gradient, huge sizes",
        raw(
            "Conv2DBackpropFilter",
            input=ones(1, 4, 4, 1),
            filter_sizes=[MOST, MOST, 1, 1],
            out_backprop=ones(1, 4, 4, 1),
        ),
    ),
)


def attempt(number: int, tf: Any) -> dict[str, Any]:
    """Make one call: its kind is E, an error; V, the right value; or W, a wrong one or one where none is right."""
    call = MALFORMED[number]
    try:
        result = np.asarray(call.run(tf))
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        return {"number": number, "kind": "E", "error": type(error).__name__, "text": first}
    right = call.right is not None and np.array_equal(result, call.right)
    text = f"shape {list(result.shape)}, largest {np.abs(result).max(initial=0):.3g}"
    return {"number": number, "kind": "V" if right else "W", "error": "", "text": text}


def main() -> None:
    """Make the calls whose numbers are given, after `install()` if the first word says so."""
    words = sys.argv[1:]
    import tensorflow as tf

    if words[0] == "install":
        import convgrad.tensorflow

        convgrad.tensorflow.install()
        words = words[1:]
    for word in words:
        print(json.dumps(attempt(int(word), tf)), flush=True)


if __name__ == "__main__":
    main()
