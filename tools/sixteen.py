"""What 16 bits cost: half and bfloat16 beside our float32 on the same layers, in turns in one process.

Usage: python tools/sixteen.py [--list dense|depthwise|all] [--full] [--layout NHWC|NCHW|both] [--seconds S]
                               [--above R] [LAYER ...]

Printed per row: microseconds of float32, the least that were seen, and the least of the other two over it.
`--above 1.1` prints the rows behind that only; the last line of a
layout has geometric means, the highest ratio and how many rows are above 1.1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from math import exp, log
from typing import Any

import convgrad
from convgrad._apps.bench.contests import Contest, operands_of, our_call
from convgrad._apps.bench.layers import LAYOUTS, OPS, Layer, parse
from convgrad._apps.bench.tables import find_layers

DTYPES = ("float32", "half", "bfloat16")
GOAL = 1.1


def calls_of(layer: Layer, op: str, layout: str) -> dict[str, Callable[[], Any]]:
    """Return our call of one operation by dtype."""
    contests = {dtype: Contest(layer, op, dtype, layout) for dtype in DTYPES}
    return {dtype: our_call(each, operands_of(each)) for dtype, each in contests.items()}


def measure(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Let all take turns for about so long, at least five rounds; returns the least seconds of each."""
    least = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    rounds, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end or rounds < 5:
        rounds += 1
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            least[name] = min(least[name], time.perf_counter() - begin)
    return least


def report(layers: list[Layer], layout: str, seconds: float, above: float) -> None:
    """Print the rows of one layout and their summary."""
    ratios: dict[str, list[float]] = {dtype: [] for dtype in DTYPES[1:]}
    print(f"{layout:32} {'op':4} {'float32 us':>11} {'half':>7} {'bfloat16':>9}")
    for layer in layers:
        for op in OPS:
            least = measure(calls_of(layer, op, layout), seconds)
            row = {dtype: least[dtype] / least["float32"] for dtype in ratios}
            for dtype, ratio in row.items():
                ratios[dtype].append(ratio)
            if max(row.values()) >= above:
                micro = least["float32"] * 1e6
                text = f"{layer.name:32} {op:4} {micro:11.1f} {row['half']:7.2f} {row['bfloat16']:9.2f}"
                print(text, flush=True)
    for dtype, row in ratios.items():
        mean = exp(sum(map(log, row)) / len(row))
        behind = sum(ratio > GOAL for ratio in row)
        print(
            f"{dtype}: mean {mean:.2f}, highest {max(row):.2f}, above {GOAL}: {behind} of {len(row)}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("layers", nargs="*", metavar="LAYER", help="instead of a list")
    parser.add_argument("--list", choices=("dense", "depthwise", "all"), default="all")
    parser.add_argument("--full", action="store_true", help="the whole lists, not the quick ones")
    parser.add_argument("--layout", choices=(*LAYOUTS, "both"), default="both")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each row (default 0.3)")
    parser.add_argument(
        "--above", type=float, default=0.0, help="print rows from this ratio on only"
    )
    asked = parser.parse_args()
    layers = [parse(text) for text in asked.layers] or find_layers(asked.list, quick=not asked.full)
    print(f"{convgrad.get_num_threads()} threads")
    for layout in LAYOUTS if asked.layout == "both" else (asked.layout,):
        report(layers, layout, asked.seconds, asked.above)
    return 0


if __name__ == "__main__":
    sys.exit(main())
