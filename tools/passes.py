"""How fast the passes of batch norm with activation go through memory, beside what this machine can do.

Usage: python tools/passes.py [--layers 80x80x96b8:relu6,...] [--rounds N] [--warm] [--json FILE]

Each pass of a forward and a backward task in float32, NHWC, is run on its own, on the default threads: `statistics` and
`sums` only read, `apply` and `gradient` write one image. Before each run other memory is gone through, four times the
last cache, unless --warm: then what fits stays in caches, as it partly does in training. The roofs are a loop that does
nothing but read, and one that copies, over as much memory, measured between the rows. The best round counts.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from convgrad._base.dtypes import FLOAT
from convgrad._base.text import aligned
from convgrad._compiler import jit
from convgrad._engine import prepare, probe
from convgrad._kernels.norm import plan as plans
from convgrad._problem.norm import ACTIVATIONS, PLACES, SAVED, SCALARS, Task
from convgrad._runtime.run import run

LAYERS = (
    *("80x80x32b8:relu6", "80x80x96b8:relu6", "40x40x144b8:relu6", "20x20x192b8:relu6"),
    *("10x10x576b8:relu6", "5x5x960b8:relu6", "80x80x96b8:silu", "40x40x144b8:silu"),
    *("20x20x240b8:silu", "40x40x256b8:relu", "20x20x512b8:relu", "10x10x1024b8:relu"),
)
PASSES = {
    "forward": {"statistics": (1, "read"), "apply": (2, "copy")},
    "backward": {"sums": (2, "read"), "gradient": (3, "copy")},
}
"""Passes of each task, how many images they go through, and the roof that is like them."""


@dataclass(frozen=True)
class Row:
    """One pass over one layer."""

    layer: str
    megabytes: float
    """Of the image."""
    kind: str
    milliseconds: float
    gigabytes: float
    """Per second."""
    roof: float

    @property
    def share(self) -> float:
        return self.gigabytes / self.roof


def parse(text: str) -> tuple[int, int, int, str]:
    """Return images, pixels, channels and activation of a layer.

    >>> parse("80x80x96b8:relu6")
    (8, 6400, 96, 'relu6')
    """
    found = re.fullmatch(r"(\d+)x(\d+)x(\d+)b(\d+):(\w+)", text)
    if found is None or found[5] not in ACTIVATIONS or min(map(int, found.groups()[:4])) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 80x80x96b8:relu6")
    height, width, channels, images = map(int, found.groups()[:4])
    return images, height * width, channels, found[5]


def measure(text: str, rounds: int, warm: bool) -> list[Row]:
    """Return the rows of a layer."""
    images, pixels, channels, activation = parse(text)
    target = jit.host_target()
    rng = np.random.default_rng(0)
    shape = (images, pixels, channels)
    arrays = {name: rng.standard_normal(shape, np.float32) for name in ("x", "grad", "y", "dx")} | {
        name: np.ones(channels, np.float32) for name in ("weight", "bias", "dweight", "dbias")
    }
    arrays["saved"] = np.ones((len(SAVED), channels), np.float32)
    scalars = np.zeros(len(SCALARS))
    scalars[0] = 1e-3
    other = np.zeros(4 * target.l3_bytes, np.uint8)
    size = arrays["x"].nbytes
    rows = []
    for name, kinds in PASSES.items():
        task = Task(
            "forward" if name == "forward" else "backward", FLOAT, "NHWC", *shape, activation
        )
        there = {**arrays, "scalars": scalars}
        addresses = [there[each].ctypes.data if each in there else 0 for each in PLACES[name]]
        launches = plans.plan(task, target)
        run(prepare.bind_passes(launches, task.places, target), *addresses)
        # The one in the middle only ends the sums.
        for kind, step in zip(kinds, (launches.steps[0], launches.steps[-1]), strict=True):
            program = prepare.bind_passes(launches._replace(steps=(step,)), task.places, target)
            count, like = kinds[kind]
            best = _best(
                lambda program=program, addresses=addresses: run(program, *addresses),
                rounds,
                None if warm else other,
            )
            far = max(count * size, 0 if warm else 4 * target.l3_bytes)
            roof = probe.stream(like, far, rounds=rounds)
            speed = count * size / best
            rows.append(Row(text, size / 1e6, kind, best * 1e3, speed / 1e9, roof / 1e9))
    return rows


def _best(action: Callable[[], None], rounds: int, other: np.ndarray | None) -> float:
    best = float("inf")
    for _ in range(rounds):
        if other is not None:
            other += 1
        began = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - began)
    return best


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write JSON if asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", default=",".join(LAYERS), help="like 80x80x96b8:relu6,...")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--warm", action="store_true", help="leave in caches what fits")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    given = parser.parse_args(arguments)
    layers = given.layers.split(",")
    for text in layers:
        try:
            parse(text)
        except argparse.ArgumentTypeError as error:
            parser.error(str(error))
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    rows = [row for text in layers for row in measure(text, given.rounds, given.warm)]
    table = [["layer", "MB", "pass", "ms", "GB/s", "roof", "share"]]
    table += [
        [
            *(row.layer, f"{row.megabytes:.1f}", row.kind, f"{row.milliseconds:.2f}"),
            *(f"{row.gigabytes:.1f}", f"{row.roof:.1f}", f"{row.share:.0%}"),
        ]
        for row in rows
    ]
    print(aligned(table, left=(0, 2)))
    if given.json:
        given.json.write_text(json.dumps([asdict(row) | {"share": row.share} for row in rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
