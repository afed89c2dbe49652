"""Random tasks of batch norm and what belongs to it, each on every row, width and cache size: one digest.

``python tests/norm_bits.py --tasks 200 [--seed S] [--layout NCHW]`` prints what differs, by task, and exits with
status 1. The tests draw fewer from the same generator. With --json one digest per task is written, to be compared with
another machine's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "src")]

import convgrad
from convgrad._base.dtypes import FLOATING, round_once
from convgrad._compiler.targets import Target
from convgrad._engine import prepare
from convgrad._kernels.norm import plan as norm_plan
from convgrad._problem.norm import ACTIVATIONS, PLACES, SCALARS, Task
from convgrad._runtime.run import run as run_program
from norms import Scalars, place_of, written
from same_bits import machines

NAMES = tuple(PLACES)
IMAGES = (1, 2, 3, 9, 33)
PIXELS = (1, 2, 15, 16, 17, 49, 64, 196, 333, 784, 3136)
CHANNELS = (1, 3, 7, 16, 17, 40, 100)
MOST_VALUES = 400_000
SCALED = Scalars(slope=0.2, unbiased=1.25)


def draw(seed: int, number: int, **fixed: Any) -> tuple[Task, dict[str, Any]]:
    """Return the task of a number and what it reads."""
    rng = np.random.default_rng([2033, seed, number])

    def one(of: Any) -> Any:
        return of[int(rng.integers(len(of)))]

    while True:
        layout = fixed.get("layout") or one(("NHWC", "NCHW"))
        task = Task(one(NAMES), one(FLOATING), layout, one(IMAGES), one(PIXELS), one(CHANNELS))
        if task.values * task.channels <= MOST_VALUES:
            break
    if task.name in ("forward", "forward_frozen", "apply", "backward", "backward_frozen"):
        task = replace(task, activation=one(ACTIVATIONS), residual=one(("", "", "before", "after")))
    if task.name.startswith("backward"):
        bent = task.residual == "before" and task.activation != "none"
        task = replace(
            task, wants_x=one((True, True, False)), wants_residual=bent and one((True, False))
        )
    around, given = one((0.0, 1.0, 1000.0)), {}
    for name in PLACES[task.name]:
        shape, dtype = place_of(task, name)
        values = rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)
        if name in ("x", "running_mean"):
            values += around
        elif name in ("running_var", "saved"):
            values = np.abs(values) + 0.1
        if name == "scalars":
            values = SCALED.array()
        row = next((each for each in FLOATING if each.numpy == dtype), None)
        given[name] = round_once(values, row) if row else values.astype(dtype)
    assert len(SCALARS) == SCALED.array().size
    return task, given


def digests(
    task: Task, given: Mapping[str, Any], where: Mapping[str, Target], threads: int = 3
) -> dict[str, str]:
    """Return the digest of all that a task writes, by machine."""
    found = {}
    for turn, (machine, target) in enumerate(where.items()):
        arrays = {name: each.copy() for name, each in given.items()}
        for name in written(task):
            arrays[name] = np.full_like(arrays[name], 77)
        # Places that a task does not have are not looked at.
        bound = prepare.bind_passes(norm_plan.plan(task, target), task.places, target)
        with convgrad.threads(1 + turn % threads):
            run_program(bound, *(arrays[name].ctypes.data for name in PLACES[task.name]))
        results = {
            *written(task),
            *(each for each in ("running_mean", "running_var") if each in arrays),
        }
        text = hashlib.sha256()
        for name in sorted(results):
            result = arrays[name]
            result[np.isnan(result)] = np.nan  # the bits of a NaN are not promised
            text.update(result.tobytes())
        found[machine] = text.hexdigest()[:16]
    return found


def main() -> int:
    """Try as many as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first task")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layout", default="")
    parser.add_argument("--json", help="a file for the digests")
    given = parser.parse_args()
    where, began, differ, kept = machines(), time.monotonic(), 0, {}
    for number in range(given.first, given.first + given.tasks):
        task, operands = draw(given.seed, number, layout=given.layout)
        found = digests(task, operands, where)
        kept[number] = sorted(set(found.values()))
        if len(kept[number]) > 1:
            differ += 1
            print(f"{number}: {task}: {found}")
    print(
        f"{given.tasks} tasks on {len(where)} machines, {differ} differ, {time.monotonic() - began:.0f} s"
    )
    if given.json:
        Path(given.json).write_text(json.dumps(kept))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
