"""Our two pools where PyTorch takes turns: the same layers, our own threads against OpenMP's.

Usage: python tools/turns.py [--list dense|depthwise|small|all] [--seconds S]

In one process, PyTorch in both memory formats and convgrad with either pool call the same operation in turn, each
twice; the second call is timed. After each of its operators PyTorch's threads spin for a while on the processors our
own workers need, and that is what this shows. Printed per row: the best PyTorch time over ours, minima (medians).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from math import exp, log
from statistics import median
from typing import Any

import convgrad
from convgrad._apps.bench.contests import Contest, operands_of, our_call
from convgrad._apps.bench.layers import OPS, Layer, parse
from convgrad._apps.bench.peers import request_of
from convgrad._apps.bench.tables import find_layers
from convgrad._bridges.peers import FRAMEWORKS

SMALL = ("8x8x8k3b1", "8x8x8k3o8b1", "7x7x32k1o32b1")
POOLS = ("own", "openmp")


def layers(name: str) -> list[Layer]:
    """Return the layers of a list: the quick ones of the benchmarks, or those that take microseconds."""
    if name == "small":
        return [parse(text) for text in SMALL]
    return find_layers(name, quick=True)


def contestants(contest: Contest) -> dict[str, Callable[[], Any]]:
    """Return what takes turns: PyTorch twice, ours twice."""
    arrays = operands_of(contest)
    first, second = {
        "fwd": (arrays.x, arrays.f),
        "dx": (arrays.f, arrays.g),
        "dw": (arrays.x, arrays.g),
    }[contest.op]
    torch = FRAMEWORKS["torch"]
    found: dict[str, Callable[[], Any]] = {}
    for last in (True, False):
        name = "channels_last" if last else "contiguous"
        found[name] = torch.prepare(request_of(contest), first, second, channels_last=last).call
    call = our_call(contest, arrays)
    for pool in POOLS:
        found[pool] = _within(pool, call)
    return found


def _within(pool: str, call: Callable[[], Any]) -> Callable[[], Any]:
    scope = convgrad.options(pool=pool)

    def inside() -> Any:
        with scope:
            call()
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin

    return inside


def timed(name: str, call: Callable[[], Any]) -> float:
    """Call twice and return the seconds of the second call."""
    if name in POOLS:
        return float(call())
    call()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def measure(contest: Contest, seconds: float) -> dict[str, list[float]]:
    """Let all take turns for about so long, at least five rounds."""
    calls = contestants(contest)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for name, call in calls.items():
        timed(name, call)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["own"]) < 5:
        for name, call in calls.items():
            times[name].append(timed(name, call))
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", choices=("dense", "depthwise", "small", "all"), default="all")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row (default 1)")
    asked = parser.parse_args()
    if not FRAMEWORKS["torch"].is_installed:
        print("tools/turns.py needs PyTorch: pip install torch", file=sys.stderr)
        return 2
    FRAMEWORKS["torch"].limit_threads(convgrad.get_num_threads())
    names = ("small", "depthwise", "dense") if asked.list == "all" else (asked.list,)
    for name in names:
        ratios: dict[str, list[tuple[float, float]]] = {pool: [] for pool in POOLS}
        print(f"{name}: best PyTorch time / ours, minima (medians)")
        print(f"{'layer':28} {'op':4} {'PyTorch us':>20} {'own pool':>14} {'OpenMP':>14}")
        for layer in layers(name):
            for op in OPS:
                times = measure(Contest(layer, op), asked.seconds)
                peers = [times[each] for each in times if each not in POOLS]
                best = min(map(min, peers)), min(map(median, peers))
                cells = []
                for pool in POOLS:
                    pair = best[0] / min(times[pool]), best[1] / median(times[pool])
                    ratios[pool].append(pair)
                    cells.append(f"{pair[0]:6.2f} ({pair[1]:5.2f})")
                spent = f"{best[0] * 1e6:9.1f} ({best[1] * 1e6:8.1f})"
                print(
                    f"{layer.name:28} {op:4} {spent:>20} {cells[0]:>14} {cells[1]:>14}", flush=True
                )
        means = [
            f"{_mean([low for low, _ in pairs]):6.2f} ({_mean([mid for _, mid in pairs]):5.2f})"
            for pairs in ratios.values()
        ]
        print(f"{'geometric mean':54} {means[0]:>14} {means[1]:>14}\n", flush=True)
    return 0


def _mean(values: list[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


if __name__ == "__main__":
    sys.exit(main())
