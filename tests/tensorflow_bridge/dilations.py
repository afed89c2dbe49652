"""Gradients of TensorFlow's own dilated depthwise convolutions, compared with differences of its own forward values.

`python -m tensorflow_bridge.dilations [install]` prints the rows as JSON, before or after `install()`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

FUNCTIONS = ("tf.nn.depthwise_conv2d", "tf.compat.v1.nn.depthwise_conv2d_native")
WAYS = tuple(
    (padding, stride, dilations)
    for padding in ("SAME", "VALID")
    for stride, dilations in ((1, (2, 2)), (1, (1, 3)), (2, (2, 2)))
)
"""Padding, stride and dilations. `tf.nn.depthwise_conv2d` documents that a stride excludes a dilation."""
STEP = 1e-3


def settings(
    function: str, stride: int, dilations: tuple[int, int], padding: str
) -> dict[str, Any]:
    pair = function == "tf.nn.depthwise_conv2d"
    return {
        "strides": [1, stride, stride, 1],
        "padding": padding,
        "dilations": list(dilations) if pair else [1, *dilations, 1],
    }


def error(function: Any, x: Any, f: Any, how: dict[str, Any], tf: Any) -> float:
    """Return the largest error of a tape's gradients, relative to the largest number of the differences.

    A loss of squares of a bilinear function: central differences of one operand are exact up to rounding.
    """
    weights = np.random.default_rng(2).standard_normal

    def result(x: Any, f: Any) -> Any:
        return function(tf.constant(x), tf.constant(f), **how)

    g = weights(result(x, f).shape).astype(x.dtype)

    def loss(x: Any, f: Any) -> float:
        return float(np.sum(np.asarray(result(x, f)) * g))

    with tf.GradientTape() as tape:
        image, window = tf.constant(x), tf.constant(f)
        tape.watch([image, window])
        y = tf.reduce_sum(function(image, window, **how) * g)
    made = [np.asarray(each) for each in tape.gradient(y, [image, window])]
    worst = 0.0
    for at, gradient in enumerate(made):
        exact = np.empty(gradient.shape)
        for index in np.ndindex(exact.shape):
            moves = [np.zeros_like(x), np.zeros_like(f)]
            moves[at][index] = STEP
            up = loss(x + moves[0], f + moves[1])
            exact[index] = (up - loss(x - moves[0], f - moves[1])) / (2 * STEP)
        worst = max(worst, float(np.abs(gradient - exact).max() / np.abs(exact).max()))
    return worst


def rows(tf: Any, dtype: Any = np.float64) -> list[dict[str, Any]]:
    """Return one row per function and setting: its error, or why there is none."""
    rng = np.random.default_rng(1)
    x, f = (rng.standard_normal(shape).astype(dtype) for shape in ((1, 6, 7, 1), (3, 2, 1, 2)))
    found = []
    for name in FUNCTIONS:
        function = tf
        for part in name.split(".")[1:]:
            function = getattr(function, part)
        for padding, stride, dilations in WAYS:
            how = settings(name, stride, dilations, padding)
            row: dict[str, Any] = {
                "function": name,
                "padding": padding,
                "stride": stride,
                "dilations": dilations,
                "error": None,
                "why": "",
            }
            try:
                row["error"] = error(function, x, f, how, tf)
            except Exception as said:
                row["why"] = f"{type(said).__name__}: {(str(said).splitlines() or [''])[0]}"
            found.append(row)
    return found


def main() -> None:
    import tensorflow as tf

    if "install" in sys.argv[1:]:
        import convgrad.tensorflow

        convgrad.tensorflow.install()
    # Only float32 reaches oneDNN's kernels.
    print(json.dumps({"float64": rows(tf), "float32": rows(tf, np.float32)}))


if __name__ == "__main__":
    main()
