"""Check the gradients of a layer of your own against finite differences, and see how a wrong one is found.

What you learn: a gradient needs no trust. Move one number by h either way and watch the loss: that slope needs the
forward pass alone, and its error is h**2 times something. So make h ten times smaller: where the gradient is right, the
disagreement falls a hundredfold; where it is wrong, it stays. Float64, or rounding hides it all.

    python examples/gradient_check.py                     # a right layer
    python examples/gradient_check.py --break             # one with a mistake: found, exit status 1
    python examples/gradient_check.py --break padding     # other mistakes: see --help

Put your own layer into `forward` and `backward`; the rest of the file need not change.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

import convgrad

Array = NDArray[np.float64]
Arrays = dict[str, Array]

STRIDE, DILATION = (2, 1), (1, 2)
MISTAKES = {
    "dilation": "the filter gradient forgets the dilation, as TensorFlow's CPU kernels do",
    "padding": "the input gradient puts the odd cell of SAME padding at the top, not at the bottom",
    "slope": "the slope of the activation is taken at its result, not at its argument",
    "bias": "the bias gradient is a mean where it must be a sum",
}


def example(random: np.random.Generator) -> Arrays:
    """All the layer's gradient is wanted for: its input and its parameters. Odd, unequal sizes find more mistakes."""
    shapes = {"x": (2, 8, 6, 3), "depthwise": (3, 3, 3, 2), "pointwise": (1, 1, 6, 4), "bias": (4,)}
    return {name: random.standard_normal(shape) for name, shape in shapes.items()}


def forward(a: Arrays) -> Array:
    """The layer: depthwise convolution with stride and dilation, pointwise convolution, bias, swish. Edit it."""
    middle = convgrad.depthwise_conv2d(a["x"], a["depthwise"], STRIDE, "SAME", dilations=DILATION)
    before = convgrad.conv2d(middle, a["pointwise"], 1, "VALID") + a["bias"]
    return swish(before)


def backward(a: Arrays, g: Array, mistake: str | None) -> Arrays:
    """The layer's gradients, given that of its result. Edit it with `forward`."""
    middle = convgrad.depthwise_conv2d(a["x"], a["depthwise"], STRIDE, "SAME", dilations=DILATION)
    before = convgrad.conv2d(middle, a["pointwise"], 1, "VALID") + a["bias"]

    g = g * swish_slope(swish(before) if mistake == "slope" else before)
    bias = g.mean((0, 1, 2)) if mistake == "bias" else g.sum((0, 1, 2))
    pointwise = convgrad.conv2d_backprop_filter(middle, a["pointwise"].shape, g, 1, "VALID")
    g = convgrad.conv2d_backprop_input(middle.shape, a["pointwise"], g, 1, "VALID")

    dilation = 1 if mistake == "dilation" else DILATION
    depthwise = convgrad.depthwise_conv2d_backprop_filter(
        a["x"], a["depthwise"].shape, g, STRIDE, "SAME", dilations=dilation
    )
    padding = ((1, 0), (2, 2)) if mistake == "padding" else "SAME"  # here SAME is ((0, 1), (2, 2))
    x = convgrad.depthwise_conv2d_backprop_input(
        a["x"].shape, a["depthwise"], g, STRIDE, padding, dilations=DILATION
    )
    return {"bias": bias, "pointwise": pointwise, "depthwise": depthwise, "x": x}


def swish(v: Array) -> Array:
    return v / (1 + np.exp(-v))


def swish_slope(v: Array) -> Array:
    share = 1 / (1 + np.exp(-v))
    return share + v * share * (1 - share)


def slopes(a: Arrays, name: str, weights: Array, step: float) -> Array:
    """Central differences of the loss `sum(weights * forward)`, one number of `a[name]` at a time."""
    result = np.empty_like(a[name])
    for index in np.ndindex(result.shape):
        losses = []
        for sign in (1, -1):
            moved = a[name].copy()
            moved[index] += sign * step
            losses.append(float(np.sum(weights * forward({**a, name: moved}))))
        result[index] = (losses[0] - losses[1]) / (2 * step)
    return result


def check(mistake: str | None, seed: int) -> list[str]:
    """Print how far each gradient is from the slopes as the step shrinks; return the names of the wrong ones."""
    random = np.random.default_rng(seed)
    a = example(random)
    weights = random.standard_normal(
        forward(a).shape
    )  # the gradient of the loss with respect to the result
    gradients = backward(a, weights, mistake)
    steps, wrong = (1e-2, 1e-3, 1e-4), []
    print(
        f"{'gradient':<12}{'numbers':>8}"
        + "".join(f"    h = {h:.0e}" for h in steps)
        + "   verdict"
    )
    for name, gradient in gradients.items():
        measured = [slopes(a, name, weights, step) for step in steps]
        size = np.abs(measured[-1]).max()
        errors = [float(np.abs(gradient - slope).max() / size) for slope in measured]
        right = errors[-1] < 1e-6  # 1e-4 squared, with room for the third derivative
        print(f"{name:<12}{gradient.size:>8}" + "".join(f"{e:14.1e}" for e in errors)
              + f"   {'ok' if right else 'WRONG'}")  # fmt: skip
        if not right:
            wrong.append(name)
            at = np.unravel_index(np.abs(gradient - measured[-1]).argmax(), gradient.shape)
            where = ", ".join(str(int(i)) for i in at)
            print(
                f"{'':<12}worst at [{where}]: {gradient[at]:.6f}, but the loss says {measured[-1][at]:.6f}"
            )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0],
        epilog="mistakes: " + "; ".join(f"{name}: {what}" for name, what in MISTAKES.items()),
    )
    parser.add_argument("--break", dest="mistake", nargs="?", const="dilation", choices=MISTAKES,
                        help="make a mistake in `backward` (dilation unless named)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the data (0)")
    given = parser.parse_args()
    if given.mistake:
        print(f"a mistake is built in: {MISTAKES[given.mistake]}\n")
    print("largest disagreement between `backward` and central differences of `forward`,")
    print("as a share of the largest slope; h is how far each number was moved\n")
    wrong = check(given.mistake, given.seed)
    if wrong:
        print(
            "\nHow to read it: the gradients stand in the order in which `backward` computes them. One that is"
        )
        print(
            "wrong alone has the mistake in its own call; if all from some point on are wrong, it is just before."
        )
        print(f"verdict: WRONG, {', '.join(wrong)}")
        return 1
    print(
        "\nverdict: ok, each error falls a hundredfold where h falls tenfold: `backward` is right"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
