"""What statistics in a convolution's epilogue save: a layer and its batch norm, layer by layer of a network.

Usage: python tools/epilogue.py [NETWORK ...] [--size S] [--batch N] [--rounds R] [--threads T] [--all]

Each turn walks through all layers of a network, so that an image is in the caches only as far as it is in training: a
convolution, and the forward pass of a batch norm with ReLU on its result. Three contestants take turns in random order:
`read` reads the result once more for its statistics, `again` does the same (what differs between these two is noise),
and `given` takes them from the convolution's epilogue, wherever the kernels can (`--all`) or where
`_engine.statistics_shares` says that it pays. Layers are run as the bridge to PyTorch runs them, 1x1 layers with
exchanged roles. Printed are lower quartiles of times, and medians of paired ratios with their quartiles. On one thread
it is its time on the processor that counts, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import quantiles
from typing import Any

import numpy as np

import convgrad
from convgrad import _engine
from convgrad._bridges.torch import recipes
from convgrad._compiler import jit
from convgrad._engine import planner
from convgrad._problem import networks
from convgrad._problem.convolution import Kind, Problem
from convgrad._problem.layer_text import parse
from convgrad._problem.norm import PLACES, Task
from convgrad._problem.norm.task import SAVED

NETWORKS = ("mobilenet_v2", "efficientnet_b0", "mobilenet_v3_large", "resnet50")
CONTESTANTS = ("read", "again", "given")
FLOAT32 = next(number for number, row in recipes.DTYPES.items() if row.short == "f32")


def problem_of(text: str, size: int, batch: int) -> Problem | None:
    """Return how a layer of a network at 224x224 is run at another size; None for those of single pixels."""
    layer = parse(text)
    height = -(-layer.height * size // 224)
    if layer.height == 1:
        return None
    outputs = layer.outputs or layer.channels
    groups = layer.groups if layer.outputs else layer.channels
    rows, cols = (window // 2 for window in layer.window)
    pads = ((rows, rows), (cols, cols))
    settings = recipes.Settings(layer.strides, pads, (1, 1), False, (0, 0), groups)
    image = (batch, layer.channels, height, height)
    sides = recipes.sides(image, (outputs, layer.channels // groups, *layer.window), settings)
    assert sides is not None, text
    other = sides.exchanged()
    if other is None:
        return sides.problem(Kind.FORWARD, FLOAT32, "NHWC", "")
    return other.problem(Kind.INPUT_GRADIENT, FLOAT32, "NHWC", "")


@dataclass
class Layer:
    """A layer with its memory."""

    text: str
    problem: Problem
    shares: int
    """Of statistics; 0: none are taken."""
    places: tuple[int, int, int]
    """Addresses of the operands and the result."""
    addresses: dict[str, int]
    """Of the batch norm's memory."""
    kept: tuple[Any, ...]

    @classmethod
    def of(cls, text: str, problem: Problem, shares: int, rows: int) -> Layer:
        """Make a layer's memory; `rows` is where its statistics go."""
        rng = np.random.default_rng(0)
        first, second = (rng.standard_normal(s, np.float32) for s in problem.operand_shapes)
        result, y = (np.ones(problem.result_shape, np.float32) for _ in range(2))
        channels = problem.result_shape[-1]
        memory = {
            "x": result,
            "y": y,
            "scalars": np.array([1e-5, 0.1, 0.0, 1.0]),
            **{name: np.ones(channels, np.float32) for name in ("weight", "bias")},
            **{name: np.ones(channels, np.float32) for name in ("running_mean", "running_var")},
            "saved": np.zeros((len(SAVED), channels), np.float32),
        }
        addresses = {name: each.ctypes.data for name, each in memory.items()} | {"given": rows}
        places = (first.ctypes.data, second.ctypes.data, result.ctypes.data)
        kept = (first, second, *memory.values())
        return cls(text, problem, shares, places, addresses, kept)

    def run(self, given: bool, clock: Callable[[], float]) -> float:
        """Run the layer and its batch norm; returns the seconds."""
        given = given and self.shares > 0
        problem = replace(self.problem, statistics=given)
        images, *pixels, channels = problem.result_shape
        task = Task(
            *("forward", problem.dtype, "NHWC", images, int(np.prod(pixels)), channels, "relu"),
            given=self.shares if given else 0,
        )
        addresses = [self.addresses.get(name, 0) for name in PLACES["forward"]]
        _engine.program(problem), _engine.program(task)
        start = clock()
        _engine.run(problem, *self.places, *([self.addresses["given"]] if given else []))
        _engine.run(task, *addresses)
        return clock() - start


def layers_of(name: str, size: int, batch: int, everywhere: bool) -> list[Layer]:
    """Return the layers of a network; they share the memory of their statistics, as calls one after the other do."""
    found = []
    for text in networks.NETWORKS[name].texts():
        if (problem := problem_of(text, size, batch)) is None:
            continue
        wanted = replace(problem, statistics=True)
        shares = _engine.statistics_shares(wanted)
        if everywhere:
            shares = planner.choose(wanted, jit.host_target()).shares
        found.append((text, problem, shares))
    most = max(shares * 3 * problem.result_shape[-1] for _, problem, shares in found)
    rows = np.zeros(max(1, most))
    layers = [Layer.of(*each, rows.ctypes.data) for each in found]
    layers[0].kept += (rows,)
    return layers


def measure(layers: list[Layer], rounds: int, threads: int) -> dict[str, list[list[float]]]:
    """Return seconds by contestant, round and layer."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    found: dict[str, list[list[float]]] = {name: [] for name in CONTESTANTS}
    for turn in range(-1, rounds):
        for name in random.sample(CONTESTANTS, len(CONTESTANTS)):
            times = [layer.run(name == "given", clock) for layer in layers]
            if turn >= 0:
                found[name].append(times)
    return found


def ratios(times: list[float], others: list[float]) -> str:
    """Return the median of paired ratios and its quartiles."""
    pairs = [mine / theirs for mine, theirs in zip(times, others, strict=True)]
    low, middle, high = quantiles(pairs, n=4)
    return f"{middle:5.2f} ({low:4.2f}-{high:4.2f})"


def report(layers: list[Layer], times: dict[str, list[list[float]]]) -> None:
    print(f"{'layer':24} {'algorithm':17} {'shares':>6} {'read ms':>8} {'given ms':>8}", end="")
    print(f" {'given / read':>18} {'again / read':>18}")
    groups: dict[str, list[int]] = {}
    for i, layer in enumerate(layers):
        plan = planner.choose(layer.problem, jit.host_target())
        groups.setdefault(f"{layer.text} {plan.algorithm} {layer.shares}", []).append(i)
    for title, taken in (("taking statistics", True), ("not taking any", False)):
        groups[f"{title} - -"] = [i for i, each in enumerate(layers) if taken == (each.shares > 0)]
    groups["all layers - -"] = list(range(len(layers)))
    for title, numbers in groups.items():
        if not numbers:
            continue
        rows = {
            name: [sum(turn[i] for i in numbers) for turn in turns] for name, turns in times.items()
        }
        text, algorithm, shares = title.rsplit(" ", 2)
        count = f" x {len(numbers)}" if len(numbers) > 1 else ""
        print(f"{text + count:24} {algorithm:17} {shares:>6}", end="")
        quick = [quantiles(rows[name], n=4)[0] * 1e3 for name in ("read", "given")]
        print("".join(f" {each:8.3f}" for each in quick), end="")
        compared = [ratios(rows[name], rows["read"]) for name in ("given", "again")]
        print("".join(f" {each:>18}" for each in compared))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    parser.add_argument("--size", type=int, default=160)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=convgrad.get_num_threads())
    parser.add_argument("--all", action="store_true", help="wherever kernels can")
    asked = parser.parse_args()
    for name in map(networks.find, asked.networks):
        layers = layers_of(name, asked.size, asked.batch, asked.all)
        with convgrad.threads(asked.threads):
            times = measure(layers, max(2, asked.rounds), asked.threads)
        print(f"{name}, {asked.size}x{asked.size}, batch {asked.batch}, {asked.threads} threads")
        report(layers, times)
        print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
