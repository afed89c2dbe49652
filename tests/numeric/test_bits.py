"""The same bits, whatever computes them: any number of threads, another process, from the compiler or from disk.

`test_kernels` draws many small problems, most of which one thread does alone; those here are all large enough to share.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convgrad
from cases import DTYPES, KINDS, Case, Data, normal, run
from convgrad import _engine
from convgrad._compiler import jit
from convgrad._engine import planner, prepare
from convgrad._kernels import ALGORITHMS
from convgrad._kernels.plan import Plan
from convgrad._runtime.run import run as run_program
from kernels import problem_of

HOST = jit.host_target()
TESTS = Path(__file__).parents[1]

LARGE = (
    Case(True, 4, (33, 40), 64, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(True, 6, (161, 150), 1, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(True, 8, (61, 61), 24, 1, 2, (5, 3), (2, 1), (1, 2), "SAME"),
    Case(False, 4, (29, 27), 1, 64, 68, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(False, 4, (28, 28), 1, 128, 128, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(False, 4, (28, 27), 32, 8, 8, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(True, 4, (120, 118), 3, 1, 1, (3, 3), (2, 2), (1, 1), "SAME"),
)
"""Each algorithm takes one of them, in one layout or the other."""


def shared(name: str, kind: str, dtype: str) -> tuple[Case, Plan] | None:
    """Return a large problem an algorithm takes and divides among threads, and how."""
    for found in LARGE:
        for data_format in ("NHWC", "NCHW"):
            case = replace(found, dtype=dtype, data_format=data_format)
            problem = problem_of(case, kind)
            if ALGORITHMS[name].why_not(problem, HOST) is None:
                plan = planner.choose_named(problem, HOST, name)
                if not plan.serial and any(step.items > step.grain for step in plan.steps):
                    return case, plan
    return None


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "reference"])
def test_any_number_of_threads_that_share_the_work(name: str, checked: Any) -> None:
    rng = np.random.default_rng([6, *name.encode()])
    tried = 0
    for turn, kind in enumerate(KINDS):
        for dtype in ("float32", ("half", "bfloat16", "float64")[turn]):
            found = shared(name, kind, dtype)
            if found is None:
                continue
            case, plan = found
            data, results = normal(case, rng), []
            for count in (1, 2, 3, 8, 5):
                result = np.full(plan.problem.result_shape, 7, plan.problem.dtype.numpy)
                with convgrad.threads(count):
                    assert planner.choose_named(plan.problem, HOST, name) == plan
                    program = prepare.bind(plan, HOST)
                    arrays = (*operands(kind, data), result)
                    run_program(program, *(each.ctypes.data for each in arrays))
                results.append(result.tobytes())
            assert len(set(results)) == 1, (case, kind)
            checked["large problems with the same bits on 1, 2, 3, 5 and 8 threads"] += 1
            tried += 1
    assert tried, f"{name} shares none of these problems"


def operands(kind: str, data: Data) -> tuple[Any, Any]:
    return {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}[
        kind
    ]


def answers(order: int = 1) -> dict[str, str]:
    """Compute the six operations, dtypes and layouts in turn, in this process; returns hashes of the bits."""
    cases = [
        replace(LARGE[(0, 3)[number % 2]], dtype=dtype, data_format=("NHWC", "NCHW")[number // 2])
        for number, dtype in enumerate(DTYPES)
    ]
    found = {}
    for case in cases[::order]:
        data = normal(case, np.random.default_rng(7))
        for kind in KINDS[::order]:
            name = f"{case.depthwise} {case.dtype} {kind}"
            found[name] = hashlib.sha256(run(case, kind, data).tobytes()).hexdigest()
    return found


PROGRAM = """
import json
from numeric.test_bits import answers
print(json.dumps(answers(-1)))
"""


def test_what_came_before_changes_no_bit() -> None:
    """Other problems, emptied memories, kernels loaded anew, results in memory that others had used."""
    first = answers()
    for round_ in range(2):
        if round_:
            _engine.memory.clear()
            jit._kernels.clear()
            planner._choose.cache_clear()
        for case in LARGE[1:3]:
            run(case, "filter", normal(case, np.random.default_rng(round_)))
        assert answers(-1) == first


@pytest.mark.long
def test_other_processes_give_the_same_bits(tmp_path: Path) -> None:
    """In another order, on other threads, with other hashes: first what was just compiled, then what was on disk."""
    mine = answers()
    assert len(set(mine.values())) == len(mine) == 12
    for seed, threads in (("1", "3"), ("2", "2")):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "src")]),
            "PYTHONHASHSEED": seed,
            "CONVGRAD_NUM_THREADS": threads,
            "CONVGRAD_CACHE_DIR": str(tmp_path),
            "CONVGRAD_DISK_CACHE": "1",
        }
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == mine
