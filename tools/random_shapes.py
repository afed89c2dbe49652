"""Layers drawn at random, to measure what no rule was fitted on.

Usage: python tools/random_shapes.py --seed S [--count 40] [--race [--peers P] [--rounds N] [--seconds S] ...]

Prints layers as `convgrad bench` takes them, so that ``convgrad bench $(python tools/random_shapes.py --seed 7)`` runs
them; ``--race`` does that at once: both layouts, all operations, minima and medians. The same seed always draws the
same layers. Half of them are dense, a quarter grouped, a quarter depthwise. Sizes are spread evenly on a logarithmic
scale; channels are multiples of 8 three times of four, and any number else. What has less than 0.1 MFlop, more than
4 GFlop or more than 256 MB of arrays is drawn again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from convgrad._apps.bench.layers import Layer  # noqa: E402
from convgrad._apps.cli.main import main as convgrad  # noqa: E402

FAMILIES = ("dense", "dense", "grouped", "depthwise")
IMAGES, CHANNELS, BATCHES = (1, 256), (1, 2048), (1, 32)
WINDOWS = (1, 1, 1, 2, 3, 3, 3, 3, 4, 5, 5, 7, 7, 9, 11)
"""Smaller ones are drawn more often, as networks have them."""
STRIDES = (1, 1, 1, 2, 2, 3)
DILATIONS = (1, 1, 1, 1, 2, 3, 4)
GROUPS = (2, 3, 4, 8, 16, 32, 64)
MULTIPLIERS = (1, 1, 1, 2, 3, 4)
FLOPS = (1e5, 4e9)
MOST_BYTES = 256 << 20


def layers(seed: int, count: int) -> list[Layer]:
    """Draw distinct layers."""
    random = Random(f"convgrad {seed}")
    found: dict[Layer, None] = {}
    while len(found) < count:
        layer = drawn(random, FAMILIES[len(found) % len(FAMILIES)])
        if layer is not None:
            found[layer] = None
    return list(found)


def drawn(random: Random, family: str) -> Layer | None:
    """Draw a layer of a family, or nothing where it is too small or too large, or is none."""
    height = _spread(random, *IMAGES)
    width = height if random.random() < 0.75 else _spread(random, *IMAGES)
    kernel_h = random.choice(WINDOWS)
    kernel_w = kernel_h if random.random() < 0.85 else random.choice(WINDOWS)
    stride = random.choice(STRIDES)
    dilation = random.choice(DILATIONS) if stride == 1 and max(kernel_h, kernel_w) > 1 else 1
    channels, outputs, groups, multiplier = _channels(random), 0, 1, 1
    if family == "depthwise":
        multiplier = random.choice(MULTIPLIERS)
    else:
        outputs = _channels(random)
    if family == "grouped":
        groups = random.choice(GROUPS)
        channels, outputs = _multiple(channels, groups), _multiple(outputs, groups)
    try:
        layer = Layer(
            _spread(random, *BATCHES),
            *(height, width, channels, kernel_h, kernel_w, stride, dilation, multiplier),
            *(outputs, groups),
            "SAME" if random.random() < 0.8 else "VALID",
        )
    except ValueError:  # the window is larger than the image
        return None
    spans = ((kernel_h - 1) * dilation + 1, (kernel_w - 1) * dilation + 1)
    if spans[0] > 2 * height or spans[1] > 2 * width:  # nearly all taps outside the image
        return None
    known = max(layer.channels, layer.out_c) <= CHANNELS[1] * max(MULTIPLIERS)
    moved = sum(layer.traffic("fwd", "float32"))
    fits = FLOPS[0] <= layer.flops() <= FLOPS[1] and moved <= MOST_BYTES
    return layer if known and fits else None


def _spread(random: Random, least: int, most: int) -> int:
    """Draw from all orders of magnitude alike."""
    return min(most, int(exp(random.uniform(log(least), log(most + 1)))))


def _channels(random: Random) -> int:
    count = _spread(random, *CHANNELS)
    return _multiple(count, 8) if random.random() < 0.75 and count >= 4 else count


def _multiple(count: int, of: int) -> int:
    """Return the multiple next to a number, at least one."""
    return max(of, round(count / of) * of)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=40, help="default %(default)s")
    parser.add_argument(
        "--race",
        action="store_true",
        help="measure them; all further arguments are those of `convgrad bench`",
    )
    asked, more = parser.parse_known_args(words)
    if asked.count < 1:
        parser.error(f"--count must be positive, got {asked.count}")
    if more and not asked.race:
        parser.error(f"{more[0]} is for --race")
    texts = [layer.text for layer in layers(asked.seed, asked.count)]
    if not asked.race:
        print("\n".join(texts))
        return 0
    how = [] if any(word.startswith("--layout") for word in more) else ["--layout", "both"]
    return int(convgrad(["bench", *texts, *how, *more]))


if __name__ == "__main__":
    sys.exit(main())
