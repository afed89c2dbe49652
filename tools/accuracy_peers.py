"""The child process of `accuracy.py`: one framework, the problems it is sent, one file per result.

Usage: python accuracy_peers.py torch|tensorflow|jax FOLDER < problems.json

A result is saved as float64, which holds every narrower number; a problem the framework refuses becomes a text.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from accuracy_problems import KINDS, Measurement, operands

from convgrad._bridges.peers import FRAMEWORKS, Wanted
from convgrad._problem.convolution import Kind


def ask(peer: str, problem: Measurement) -> Any:
    """Return the framework's result, in channels-last memory where the data is NHWC."""
    x, f, g = operands(problem)
    first, second = {"forward": (x, f), "input": (f, g), "filter": (x, g)}[problem.kind]
    wanted = Wanted(
        kind=dict(zip(KINDS, Kind, strict=True))[problem.kind],
        depthwise=problem.depthwise,
        layout=problem.layout,
        input_shape=problem.input_shape,
        filter_shape=problem.filter_shape,
        strides=(problem.stride, problem.stride),
        dilations=(1, 1),
        padding="SAME",
        pads=(problem.pads, problem.pads),
    )
    return FRAMEWORKS[peer].compute(wanted, first, second)


def main(peer: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    for number, values in json.load(sys.stdin):
        place = folder / f"{peer}.{number}"
        try:
            result = ask(peer, Measurement(**values)).astype(np.float64)
        except ModuleNotFoundError:
            Path(f"{place}.txt").write_text("not installed", encoding="utf-8")
        except Exception:
            Path(f"{place}.txt").write_text("refused", encoding="utf-8")
        else:
            np.save(f"{place}.npy", result)
        print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
