"""The main job, checked: the filter gradient of a MobileNet layer, and a dilated one by finite differences.

Run it with `make demo`, or `python examples/demo.py` where convgrad is installed. It needs about a second and 300 MB.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import convgrad

FLOAT32_UNIT = 2.0**-24
"""The rounding unit u of float32: rounding a number once changes it by at most u times its size."""


def mobilenet_layer() -> bool:
    """Compute the filter gradient of MobileNet's first depthwise layer and compare it with the oracle."""
    batch, height, width, channels = 8, 112, 112, 32
    random = np.random.default_rng(0)
    x = random.standard_normal((batch, height, width, channels), dtype=np.float32)
    g = random.standard_normal((batch, height, width, channels), dtype=np.float32)
    filter_sizes = [3, 3, channels, 1]

    started = time.perf_counter()
    df = convgrad.depthwise_conv2d_backprop_filter(x, filter_sizes, g, strides=1, padding="SAME")
    first = time.perf_counter() - started
    again = min(
        timed(lambda: convgrad.depthwise_conv2d_backprop_filter(x, filter_sizes, g, 1, "SAME"))
        for _ in range(20)
    )

    exact = convgrad.reference.depthwise_conv2d_backprop_filter(x, filter_sizes, g, 1, "SAME")
    # A sum is judged by the size of its terms too: |x| and |g| through the same operation.
    size = convgrad.reference.depthwise_conv2d_backprop_filter(
        np.abs(x), filter_sizes, np.abs(g), 1, "SAME"
    )
    overall = np.linalg.norm(df - exact) / np.linalg.norm(exact) / FLOAT32_UNIT
    of_terms = np.max(np.abs(df - exact) / size) / FLOAT32_UNIT
    right = bool(of_terms <= 1.0)  # no worse than rounding the sum of |x*g| once

    print("1. Filter gradient of MobileNet's first depthwise layer")
    print(f"   input, out_backprop   {x.shape}, float32, {x.nbytes / 1e6:.1f} MB each")
    print(f"   result                {df.shape}, {df.dtype}")
    print(
        "   formula               df[r,s,c,m] = sum over n,p,q of x[n,p+r-1,q+s-1,c] * g[n,p,q,c*M+m]"
    )
    print(f"   terms per number      {batch * height * width}")
    print(
        f"   time                  {1000 * again:.2f} ms; first call {1000 * first:.0f} ms, compiling included"
    )
    print(
        f"   error                 {overall:.1f} u overall, at most {of_terms:.4f} u of a sum of |x*g|, against float64"
    )
    print("                         (u = 2**-24: rounding the exact value to float32 may cost 1 u)")
    print(f"   verdict               {verdict(right)}")
    return right


def timed(run: Callable[[], object]) -> float:
    """Return the seconds one call takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def dilated_gradient() -> bool:
    """Compare a dilated filter gradient with finite differences of the forward pass, which cannot be argued with."""
    random = np.random.default_rng(1)
    x = random.standard_normal((1, 9, 9, 1))
    f = random.standard_normal((3, 3, 1, 1))
    g = random.standard_normal((1, 9, 9, 1))

    def gradient(dilation: int) -> np.ndarray:
        df = convgrad.depthwise_conv2d_backprop_filter(
            x, f.shape, g, strides=1, padding="SAME", dilations=dilation
        )
        return df[:, :, 0, 0]

    def loss(filter: np.ndarray) -> float:
        y = convgrad.depthwise_conv2d(x, filter, strides=1, padding="SAME", dilations=2)
        return float(np.sum(y * g))

    numeric = np.empty((3, 3))
    for r, s in np.ndindex(3, 3):
        step = np.zeros_like(f)
        step[r, s] = 1e-4
        numeric[r, s] = (loss(f + step) - loss(f - step)) / 2e-4
    right = bool(np.allclose(gradient(2), numeric, rtol=1e-7, atol=1e-7))

    print(
        "2. The same gradient with dilations=[1, 2, 2, 1], where TensorFlow 2.21 is silently wrong"
    )
    table = (
        ("finite differences", numeric),
        ("convgrad", gradient(2)),
        ("with dilation 1", gradient(1)),
    )
    print("   " + "".join(f"{name:>27}  " for name, _ in table).rstrip())
    for r in range(3):
        cells = ("".join(f"{number:9.3f}" for number in values[r]) for _, values in table)
        print("   " + "".join(f"{line:>27}  " for line in cells).rstrip())
    print(
        "   TensorFlow's CPU kernels ignore `dilations` here, in every dtype: they return the third table."
    )
    print(f"   verdict               {verdict(right)} (convgrad against the finite differences)")
    return right


def verdict(right: bool) -> str:
    return "ok" if right else "WRONG"


def main() -> int:
    print(f"convgrad {convgrad.__version__}, NumPy {np.__version__}\n")
    results = [mobilenet_layer()]
    print()
    results.append(dilated_gradient())
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
