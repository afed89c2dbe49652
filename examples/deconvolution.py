"""Sharpen a blurred photograph: `conv2d_backprop_input` as the adjoint of `conv2d`.

What you learn: blurring is a linear map A, so "which sharp image, blurred, gives this photograph?" is a least-squares
problem. Its gradient is A^T (A x - y), and A^T is what a convolution's input gradient computes. The script first checks
<A x, y> = <x, A^T y>, then goes downhill with Nesterov's acceleration, keeps brightness between 0 and 1, and stops
when the rest is as small as the noise: going on would sharpen the noise.

    pip install '.[examples,plot]'
    python examples/deconvolution.py

It writes deconvolution.png and exits with 1 if the adjoint is wrong or the image gained less than 5 dB.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import convgrad

Array = NDArray[Any]  # float32 for the image, float64 for the check of the adjoint
REQUIRED = 5.0  # dB


@cache
def photograph() -> Array:
    """Return a part of a photograph as [colours, rows, columns, 1], brightness from 0 to 1: a colour is a batch row."""
    if find_spec("sklearn") is None or find_spec("PIL") is None:
        sys.exit("deconvolution.py: the photograph is missing: pip install scikit-learn pillow")
    from sklearn.datasets import load_sample_image

    part = load_sample_image("china.jpg")[80:336, 150:470]
    return np.ascontiguousarray(part.transpose(2, 0, 1)[..., None], np.float32) / np.float32(255)


def motion(length: int) -> Array:
    """The blur of a camera that moves down to the right: a thin line, [rows, columns, 1, 1]."""
    at = np.arange(length) - length // 2
    distance = np.abs(at[:, None] * 0.9 - at[None, :] * 0.45)
    line = np.clip(1.2 - distance, 0, None) * (np.hypot(*np.meshgrid(at, at)) <= length / 2)
    return (line / line.sum()).astype(np.float32)[:, :, None, None]


def blur(x: Array, kernel: Array) -> Array:
    """A: each pixel becomes a weighted mean of its neighbours. VALID: what lies outside the picture is not invented."""
    return convgrad.conv2d(x, kernel, strides=1, padding="VALID")


def blur_adjoint(y: Array, kernel: Array) -> Array:
    """A^T: each pixel is sent back to all the pixels that it was made of."""
    size, (batch, rows, columns, _) = len(kernel), y.shape
    shape = (batch, rows + size - 1, columns + size - 1, 1)
    return convgrad.conv2d_backprop_input(shape, kernel, y, strides=1, padding="VALID")


def adjoint_error(shape: tuple[int, ...], kernel: Array, random: np.random.Generator) -> float:
    """Return |<A x, y> - <x, A^T y>| / (|A x| |y|) for random x and y in float64: rounding, or a wrong adjoint."""
    x, wide = random.standard_normal(shape), kernel.astype(np.float64)
    there = blur(x, wide)
    y = random.standard_normal(there.shape)
    difference = np.vdot(there, y) - np.vdot(x, blur_adjoint(y, wide))
    return float(abs(difference) / (np.linalg.norm(there) * np.linalg.norm(y)))


def sharpen(y: Array, kernel: Array, noise: float, steps: int) -> tuple[Array, int]:
    """Minimise |A x - y|^2 over 0 <= x <= 1 until the mean rest is `noise`; return x and the steps it took.

    The kernel's weights are positive with sum 1, so A^T A is at most 1 and a step of 1 is safe.
    """
    edge = len(kernel) // 2
    x = ahead = np.pad(y, ((0, 0), (edge, edge), (edge, edge), (0, 0)), mode="edge")
    t = 1.0
    for step in range(1, steps + 1):
        rest = blur(ahead, kernel) - y
        if float(np.sqrt(np.mean(rest * rest))) <= noise:
            return x, step - 1
        better = np.clip(ahead - blur_adjoint(rest, kernel), 0, 1)
        t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        ahead = better + np.float32((before - 1) / t) * (better - x)
        x = better
    return x, steps


def decibels(x: Array, truth: Array) -> float:
    """The peak signal-to-noise ratio: 6 dB more is half the error."""
    return float(-10 * np.log10(np.mean((x - truth) ** 2)))


def draw(
    images: dict[str, Array],
    kernel: Array,
    file: Path,
    title: str = "Deblurring with conv2d_backprop_input as the adjoint of conv2d",
) -> None:
    """Save the images side by side, the kernel as an inset of the blurred one."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(images), figsize=(13, 4.1), layout="constrained")
    figure.suptitle(title)
    for panel, (name, image) in zip(panels, images.items(), strict=True):
        panel.imshow(np.clip(image[..., 0].transpose(1, 2, 0), 0, 1))
        panel.set_title(name)
        panel.axis("off")
    inset = panels[1].inset_axes((0.02, 0.72, 0.2, 0.26))
    inset.imshow(kernel[..., 0, 0], cmap="gray")
    inset.set(xticks=[], yticks=[])
    inset.set_xlabel("blur", color="white", fontsize=8, labelpad=2)
    figure.savefig(file, dpi=100)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--length", type=int, default=15, help="of the blur, in pixels, odd (15)")
    parser.add_argument("--noise", type=float, default=0.002, help="of the photograph (0.002)")
    parser.add_argument("--steps", type=int, default=200, help="at most (200)")
    parser.add_argument("--plot", type=Path, default=Path("deconvolution.png"), metavar="FILE",
                        help="where the picture goes (deconvolution.png)")  # fmt: skip
    given = parser.parse_args()
    if given.length < 3 or given.length % 2 == 0:
        parser.error(f"--length must be odd and at least 3, not {given.length}")
    random = np.random.default_rng(0)
    sharp, kernel = photograph(), motion(given.length)

    error = adjoint_error(sharp.shape, kernel, random)
    print(f"adjoint        <Ax, y> and <x, A^T y> differ by {error:.0e} of |Ax| |y|")
    blurred = blur(sharp, kernel)
    blurred += random.standard_normal(blurred.shape, np.float32) * np.float32(given.noise)
    found, steps = sharpen(blurred, kernel, given.noise, given.steps)

    edge = (
        given.length // 2
    )  # the blurred image is smaller by this on every side: compare what both show
    inside = (slice(None), slice(edge, -edge), slice(edge, -edge))
    truth, found = sharp[inside], found[inside]
    before, after = decibels(blurred, truth), decibels(found, truth)
    print(f"photograph     {truth.shape[1]} x {truth.shape[2]} pixels in 3 colours")
    print(f"camera         {given.length} x {given.length} motion blur, noise {given.noise:g}")
    print(f"blurred        {before:.2f} dB")
    print(f"sharpened      {after:.2f} dB after {steps} steps, {after - before:+.2f} dB")
    if find_spec("matplotlib"):
        titles = ("original", f"blurred, noisy: {before:.1f} dB", f"sharpened: {after:.1f} dB")
        draw(dict(zip(titles, (truth, blurred, found), strict=True)), kernel, given.plot)
        print(f"picture        {given.plot}")
    else:
        print("picture        none: pip install matplotlib")
    right = error < 1e-12 and after - before >= REQUIRED
    print(
        f"verdict        {'ok' if right else 'NOT GOOD ENOUGH'}, {REQUIRED:g} dB and an adjoint to 1e-12 are required"
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
