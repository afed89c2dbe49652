"""Move a TensorFlow 1 snippet over: the original beside the new version, and proof that the results are right.

What you learn: `convgrad.compat.v1.nn` has TensorFlow 1's names, argument order and defaults, so a call stays as it is,
letter for letter. What goes is the scaffolding: no placeholder, no session, no feed; arrays go in, arrays come out.

    python examples/moving_from_tf1.py                    # no TensorFlow needed
    python examples/moving_from_tf1.py --compare          # also runs the original, where TensorFlow is installed

The proof is the documented formula as plain loops over whole numbers, so results must agree exactly. It exits with 1 if
one of convgrad's does not. TensorFlow's own results are reported, not judged: its dilated depthwise gradients are wrong
on CPUs, because the kernels ignore `dilations`.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from itertools import product

import numpy as np
from numpy.typing import NDArray

from convgrad.compat.v1 import nn

Array = NDArray[np.float32]
Results = dict[str, Array]

STRIDES, DILATIONS = [1, 1, 1, 1], [1, 2, 2, 1]


def original(x: Array, f: Array, k: Array, g: Array) -> Results:
    """The snippet as it was: a dilated depthwise layer, a strided dense one, and their gradients."""
    import tensorflow

    tf = tensorflow.compat.v1
    with tf.Graph().as_default(), tf.Session() as session:
        input = tf.placeholder(tf.float32, [None, 6, 7, 2])
        grad = tf.placeholder(tf.float32, [None, 6, 7, 4])
        y = tf.nn.depthwise_conv2d(input, f, STRIDES, "SAME", rate=[2, 2])
        dx = tf.nn.depthwise_conv2d_native_backprop_input(
            x.shape, f, grad, STRIDES, "SAME", dilations=DILATIONS)  # fmt: skip
        df = tf.nn.depthwise_conv2d_native_backprop_filter(
            input, f.shape, grad, STRIDES, "SAME", dilations=DILATIONS)  # fmt: skip
        z = tf.nn.conv2d(y, k, [1, 2, 2, 1], "SAME")
        dk = tf.nn.conv2d_backprop_filter(y, k.shape, z, [1, 2, 2, 1], "SAME")
        dy = tf.nn.conv2d_backprop_input(g.shape, k, z, [1, 2, 2, 1], "SAME")
        fetches = {"y": y, "dx": dx, "df": df, "z": z, "dk": dk, "dy": dy}
        results: Results = session.run(fetches, {input: x, grad: g})
        return results


def moved(x: Array, f: Array, k: Array, g: Array) -> Results:
    """The snippet as it is now: the same six calls."""
    y = nn.depthwise_conv2d(x, f, STRIDES, "SAME", rate=[2, 2])
    dx = nn.depthwise_conv2d_native_backprop_input(
        x.shape, f, g, STRIDES, "SAME", dilations=DILATIONS)  # fmt: skip
    df = nn.depthwise_conv2d_native_backprop_filter(
        x, f.shape, g, STRIDES, "SAME", dilations=DILATIONS)  # fmt: skip
    z = nn.conv2d(y, k, [1, 2, 2, 1], "SAME")
    dk = nn.conv2d_backprop_filter(y, k.shape, z, [1, 2, 2, 1], "SAME")
    dy = nn.conv2d_backprop_input(g.shape, k, z, [1, 2, 2, 1], "SAME")
    return {"y": y, "dx": dx, "df": df, "z": z, "dk": dk, "dy": dy}


def documented(x: Array, f: Array, k: Array, g: Array, dilation: int = 2) -> Results:
    """What TensorFlow documents, as loops: `y[p, q, out] += x[p*s + r*d - top, q*s + t*d - left, in] * f[r, t, in, m]`.

    A product that adds to a result adds to the gradients of both its factors: three sums, one loop.
    """

    def layer(
        x: Array, f: Array, g: Array | None, stride: int, d: int, depthwise: bool
    ) -> list[Array]:
        batch, rows, columns, channels = x.shape
        size, multiplier = f.shape[0], f.shape[3]
        high, wide = -(-rows // stride), -(-columns // stride)
        top, left = (
            max((out - 1) * stride + (size - 1) * d + 1 - n, 0) // 2
            for out, n in ((high, rows), (wide, columns))
        )
        outs = channels * multiplier if depthwise else multiplier
        y, dx, df = (
            np.zeros((batch, high, wide, outs), np.float32),
            np.zeros_like(x),
            np.zeros_like(f),
        )
        for n, p, q, r, t, c, m in product(
            *map(range, (batch, high, wide, size, size, channels, multiplier))
        ):
            h, w = p * stride + r * d - top, q * stride + t * d - left
            if 0 <= h < rows and 0 <= w < columns:
                out = c * multiplier + m if depthwise else m
                y[n, p, q, out] += x[n, h, w, c] * f[r, t, c, m]
                if g is not None:
                    dx[n, h, w, c] += g[n, p, q, out] * f[r, t, c, m]
                    df[r, t, c, m] += x[n, h, w, c] * g[n, p, q, out]
        return [y, dx, df]

    _, dx, df = layer(x, f, g, 1, dilation, depthwise=True)
    y = layer(x, f, None, 1, 2, depthwise=True)[0]
    z = layer(y, k, None, 2, 1, depthwise=False)[0]
    _, dy, dk = layer(y, k, z, 2, 1, depthwise=False)
    return {"y": y, "dx": dx, "df": df, "z": z, "dk": dk, "dy": dy}


MEANING = {
    "y": "depthwise_conv2d",
    "dx": "depthwise_conv2d_native_backprop_input",
    "df": "depthwise_conv2d_native_backprop_filter",
    "z": "conv2d",
    "dk": "conv2d_backprop_filter",
    "dy": "conv2d_backprop_input",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--compare", action="store_true", help="run the original too")
    given = parser.parse_args()
    if given.compare and find_spec("tensorflow") is None:
        print(
            "moving_from_tf1.py: --compare needs TensorFlow: pip install tensorflow-cpu",
            file=sys.stderr,
        )
        return 2

    random = np.random.default_rng(0)
    shapes = ((2, 6, 7, 2), (3, 3, 2, 2), (3, 3, 4, 3), (2, 6, 7, 4))
    x, f, k, g = (random.integers(-3, 4, shape).astype(np.float32) for shape in shapes)
    right, ours = documented(x, f, k, g), moved(x, f, k, g)
    undilated = documented(x, f, k, g, dilation=1)
    columns = {"convgrad": ours}
    if given.compare:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        columns["TensorFlow"] = original(x, f, k, g)

    print(
        f"{'call of tf.compat.v1.nn':<42}{'shape':<15}"
        + "   ".join(f"{c:<28}" for c in columns).rstrip()
    )
    wrong = []
    for name, call in MEANING.items():
        cells = []
        for column, results in columns.items():
            if np.array_equal(results[name], right[name]):
                cells.append("as documented")
            else:
                ignored = np.array_equal(results[name], undilated[name])
                cells.append("WRONG" + (": dilations ignored" if ignored else ""))
                if column == "convgrad":
                    wrong.append(name)
        print(
            f"{call:<42}{right[name].shape!s:<15}" + "   ".join(f"{c:<28}" for c in cells).rstrip()
        )
    print("\none filter gradient, df[:, :, 0, 0]:")
    tables = {"documented": right["df"], **{c: r["df"] for c, r in columns.items()}}
    tables["dilations ignored"] = undilated["df"]
    print("".join(f"{name:>21}" for name in tables))
    for r in range(3):
        print(
            "".join(f"{'  '.join(f'{v:4.0f}' for v in t[r, :, 0, 0]):>21}" for t in tables.values())
        )
    print("\nverdict: " + (f"WRONG, {', '.join(wrong)}" if wrong else
                           "ok, all six of convgrad's results are the documented ones, to the last bit"))  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
