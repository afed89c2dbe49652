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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from convgrad._apps.bench.layers import Layer  # noqa: E402
from convgrad._apps.check.draws import Alike, Each, Family, Mix, Spread, fields  # noqa: E402
from convgrad._apps.check.problems import generator  # noqa: E402
from convgrad._apps.cli.main import main as convgrad  # noqa: E402

IMAGE = Spread(1, 256)
WINDOW = (1, 1, 1, 2, 3, 3, 3, 3, 4, 5, 5, 7, 7, 9, 11)
"""Smaller ones are drawn more often, as networks have them."""
CHANNELS = Mix((0.75, Spread(1, 2048, multiple=8)), (0.25, Spread(1, 2048)))
MULTIPLIERS = (1, 1, 1, 2, 3, 4)
PLAIN: Family = {
    "batch": Spread(1, 32),
    "size": Mix((0.75, Alike(IMAGE)), (0.25, Each(IMAGE))),
    "window": Mix((0.85, Alike(WINDOW)), (0.15, Each(WINDOW))),
    "stride": (1, 1, 1, 2, 2, 3),
    "dilation": (1, 1, 1, 1, 2, 3, 4),
    "channels": CHANNELS,
    "padding": Mix((0.8, "SAME"), (0.2, "VALID")),
}
DENSE: Family = {**PLAIN, "outputs": CHANNELS}
GROUPED: Family = {**DENSE, "groups": (2, 3, 4, 8, 16, 32, 64)}
DEPTHWISE: Family = {**PLAIN, "multiplier": MULTIPLIERS}
FAMILIES = (DENSE, DENSE, GROUPED, DEPTHWISE)
"""In turn."""
FLOPS = (1e5, 4e9)
MOST_BYTES = 256 << 20


def layers(seed: int, count: int) -> list[Layer]:
    """Draw distinct layers."""
    random = generator("convgrad", seed)
    found: dict[Layer, None] = {}
    while len(found) < count:
        layer = made(**fields(random, [(1.0, FAMILIES[len(found) % len(FAMILIES)])]))
        if layer is not None:
            found[layer] = None
    return list(found)


def made(
    *,
    size: tuple[int, int],
    window: tuple[int, int],
    stride: int,
    dilation: int,
    channels: int,
    outputs: int = 0,
    groups: int = 1,
    **others: Any,
) -> Layer | None:
    """Make a layer of drawn fields, or nothing where it is too small, too large or not possible."""
    if stride > 1 or max(window) == 1:
        dilation = 1
    if groups > 1:
        channels, outputs = _multiple(channels, groups), _multiple(outputs, groups)
    try:
        layer = Layer(
            height=size[0],
            width=size[1],
            channels=channels,
            kernel_h=window[0],
            kernel_w=window[1],
            stride=stride,
            dilation=dilation,
            outputs=outputs,
            groups=groups,
            **others,
        )
    except ValueError:  # the window is larger than the image
        return None
    if any((k - 1) * dilation + 1 > 2 * n for k, n in zip(window, size, strict=True)):
        return None  # nearly all taps outside the image
    known = max(layer.channels, layer.out_c) <= 2048 * max(MULTIPLIERS)
    moved = sum(layer.traffic("fwd", "float32"))
    fits = FLOPS[0] <= layer.flops() <= FLOPS[1] and moved <= MOST_BYTES
    return layer if known and fits else None


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
