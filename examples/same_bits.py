"""Train a small network whose weights have one SHA-256, on every CPU with a fused multiply-add.

What you learn: convolutions and their gradients have the same bits everywhere (docs/sums.md), so a whole training has,
if nothing else in it leaves the order of additions, or a function's last digit, to a library:

- elementwise `+`, `-`, `*` and comparisons of float32 are rounded once on every CPU: they may stay in NumPy or PyTorch;
- sums over pixels, means, dot products and matrix products may not: NumPy adds in an order that follows the CPU's
  vectors, and BLAS in one that follows threads and caches too. Here a sum over pixels is a filter gradient of an image
  of ones, and the classifier is a convolution with a window as large as the image;
- `exp` and `log` differ between libraries and CPUs, so the loss is the squared distance from 0 and 1;
- random numbers come from an integer hash that is written here.

    python examples/same_bits.py            with NumPy's arrays
    python examples/same_bits.py --torch    the same with PyTorch's tensors, and the same weights
    python examples/same_bits.py --slow     the same without our kernels, by convgrad.reference: minutes

It takes a second, and exits with 1 if the weights are others, or if they recognise too few digits.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import convgrad

EXPECTED = "23b601760525154e563e4b5fb8b654568bb5bcf816d8256036412213b2c66a6e"
BATCH, STEPS, RATE, KEPT = 16, 160, 2.0**-5, 0.875
REQUIRED = 0.9  # of digits that were not trained on

FONT = (  # three by five dots each
    *("111101101101111", "010110010010111", "111001111100111", "111001111001111"),
    *("101101111001001", "111100111001111", "111100111101111", "111001010010010"),
    *("111101111101111", "111101111001111"),
)

LAYERS = (
    # name, filter, strides, padding
    ("stem", (3, 3, 1, 32), 1, "SAME"),
    ("middle", (3, 3, 32, 32), 1, "SAME"),
    ("depthwise", (3, 3, 32, 1), 2, "SAME"),
    ("mixing", (1, 1, 32, 48), 1, "SAME"),
    ("classifier", (4, 4, 48, 10), 1, "VALID"),
)


Functions = Callable[[str], Callable[..., Any]]  # from a name to one of the six operations


def hashed(start: int, count: int) -> Any:
    """Return 64-bit integers: SplitMix64 of a counter."""
    with np.errstate(over="ignore"):
        z = (np.arange(count, dtype=np.uint64) + np.uint64(start)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def digits(start: int, count: int) -> tuple[Any, Any]:
    """Draw images of digits, moved and with noise: all numbers are sixteenths, and exact."""
    random = hashed(start << 32, count * 66).reshape(count, 66)
    labels = (random[:, 0] % np.uint64(10)).astype(np.int64)
    images = (random[:, 2:] % np.uint64(5)).astype(np.float32).reshape(count, 8, 8, 1) / 16
    for image, label, place in zip(images, labels, random[:, 1].tolist(), strict=True):
        row, col = 1 + place % 2, 1 + place // 2 % 4
        dots = np.array([*FONT[label]], np.float32).reshape(5, 3, 1)
        image[row : row + 5, col : col + 3] += dots * np.float32(0.75)
    return images, labels


def weights() -> dict[str, Any]:
    """Return filters between -s and s, s being a power of two near 2 / sqrt(products), and biases of zero."""
    made = {}
    for number, (name, shape, *_) in enumerate(LAYERS):
        products = math.prod(shape[:2] if name == "depthwise" else shape[:3])
        whole = (hashed((number + 1) << 40, math.prod(shape)) >> np.uint64(40)).astype(np.int64)
        scale = 2.0 ** -(22 + round(math.log2(products) / 2))
        made[name] = ((whole - 2**23) * scale).astype(np.float32).reshape(shape)
        outputs = shape[2] if name == "depthwise" else shape[3]
        made[f"{name} bias"] = np.zeros(outputs, np.float32)
    return made


def predict(call: Functions, w: dict[str, Any], x: Any) -> tuple[Any, list[Any]]:
    """Return scores [n, 1, 1, digit], and what each layer was given."""
    given = []
    for name, _, strides, padding in LAYERS:
        given.append(x)
        layer = call("depthwise_conv2d" if name == "depthwise" else "conv2d")
        x = layer(x, w[name], strides, padding) + w[f"{name} bias"]
        if name != "classifier":
            x = x * (x > 0)
    return x, [*given, x]


def gradients(
    call: Functions, w: dict[str, Any], given: list[Any], grad: Any, ones: Any
) -> dict[str, Any]:
    """Return what the scores' gradient makes of each weight's."""
    found = {}
    for number, (name, shape, strides, padding) in reversed([*enumerate(LAYERS)]):
        x, y = given[number], given[number + 1]
        if name != "classifier":
            grad = grad * (y > 0)
        images, rows, cols, channels = (int(size) for size in grad.shape)
        # A sum over pixels whose order is ours: the filter gradient of an image that is 1 everywhere.
        flat = ones[: images * rows * cols].reshape(images, rows, cols, 1)
        added = call("conv2d_backprop_filter")(flat, [1, 1, 1, channels], grad, 1, "VALID")
        found[f"{name} bias"] = added.reshape(channels)
        kind = "depthwise_conv2d_backprop" if name == "depthwise" else "conv2d_backprop"
        found[name] = call(f"{kind}_filter")(x, list(shape), grad, strides, padding)
        if number:
            sizes = [int(size) for size in x.shape]
            grad = call(f"{kind}_input")(sizes, w[name], grad, strides, padding)
    return found


def train(call: Functions, convert: Any) -> tuple[dict[str, Any], float]:
    """Return the weights after some steps, and the last loss."""
    w = {name: convert(each) for name, each in weights().items()}
    moved = {name: each * 0 for name, each in w.items()}
    ones, loss = convert(np.ones(BATCH * 64, np.float32)), 0.0
    for step in range(STEPS):
        images, labels = digits(step + 1, BATCH)
        wanted = (labels[:, None] == np.arange(10)).astype(np.float32).reshape(BATCH, 1, 1, 10)
        scores, given = predict(call, w, convert(images))
        apart = scores - convert(wanted)
        # fsum is exact before it rounds: the order of its terms does not matter.
        loss = math.fsum((apart * apart).reshape(-1).tolist()) / BATCH
        found = gradients(call, w, given, apart * (2 / BATCH), ones)
        for name in w:
            moved[name] = moved[name] * KEPT + found[name]
            w[name] = w[name] - moved[name] * RATE
    return w, loss


def sha256(w: dict[str, Any]) -> str:
    """Return one digest of all weights, little-endian, by name."""
    found = hashlib.sha256()
    for name in sorted(w):
        found.update(np.ascontiguousarray(w[name], "<f4").tobytes())
    return found.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--torch", action="store_true", help="compute with PyTorch's tensors")
    parser.add_argument("--slow", action="store_true", help="compute without kernels")
    given = parser.parse_args()
    convert: Any = np.asarray
    if given.torch:
        import torch

        convert = torch.from_numpy

    def call(name: str) -> Callable[..., Any]:
        if given.slow:
            return partial(getattr(convgrad.reference, name), bits=True)
        return getattr(convgrad, name)

    w, loss = train(call, convert)
    images, labels = digits(1 << 20, 256)
    scores, _ = predict(call, w, convert(images))
    right = int((np.asarray(scores).reshape(256, 10).argmax(1) == labels).sum())
    digest = sha256(w)
    print(f"{type(w['stem']).__module__}: loss {loss:.6f}, {right} of 256 digits recognised")
    print(f"weights {digest}")
    if digest != EXPECTED:
        print(f"expected {EXPECTED}")
    return 0 if digest == EXPECTED and right >= REQUIRED * 256 else 1


if __name__ == "__main__":
    sys.exit(main())
