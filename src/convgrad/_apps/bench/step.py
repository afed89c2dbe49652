"""What the first training step of a network costs: kernels compiled and time, cold and warm.

Each network runs in fresh processes: once with an empty cache folder, once with the folder the first one filled. A
process makes every convolution call of a step twice; the second step is the steady state. Operands are made outside
the clock. `main` is the child.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import convgrad

from ..._base import children
from ..._base.text import aligned
from .contests import Contest, our_call
from .machine import describe
from .memory import filled
from .networks import training_step
from .report import ms
from .runner import Progress
from .totals import title


def measure_all(
    networks: Sequence[str],
    batch: int,
    threads: int,
    dtype: str,
    layout: str,
    progress: Progress = lambda done, text: None,
) -> dict[str, Any]:
    """Measure networks cold and warm."""
    rows: list[dict[str, Any]] = []
    for network in networks:
        with tempfile.TemporaryDirectory() as folder:
            for state in ("cold", "warm"):
                progress(1, f"{network}, {state}")
                request = json.dumps([network, batch, threads, dtype, layout])
                done = subprocess.run(
                    children.command(__name__, "main", request),
                    env={**os.environ, "CONVGRAD_CACHE_DIR": folder},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode:
                    raise RuntimeError(f"{network}, {state}: {done.stderr.strip()[-2000:]}")
                rows.append({"network": network, "state": state, **json.loads(done.stdout)})
    return {"rows": rows, "machine": describe({}, threads)}


def render(results: dict[str, Any]) -> str:
    """Return the table as text."""
    lines = [
        ["network", "cache", "calls", "kernels", "compiled", "compiling ms", "first ms", "next"]
    ]
    for row in results["rows"]:
        numbers = [str(row[key]) for key in ("calls", "kernels", "compiled")]
        times = [ms(row[key]) for key in ("compile_ms", "first_ms", "next_ms")]
        lines.append([title(row["network"]), row["state"], *numbers, *times])
    text = (
        "All convolution calls of one training step in a fresh process, then the same again (next); cold: empty\n"
        "cache folder, warm: the folder the cold process left. kernels: distinct ones, ours for threads included."
    )
    return f"{aligned(lines, left=(0, 1))}\n\n{text}"


def _child(network: str, batch: int, threads: int, dtype: str, layout: str) -> dict[str, Any]:
    from ..._compiler import jit

    calls = [Contest(layer, op, dtype, layout) for layer, op in training_step(network, batch)]
    operands = {contest.layer: filled(contest) for contest in calls}
    seconds = []
    with convgrad.threads(threads):
        for _ in range(2):
            spent = 0.0
            for contest in calls:
                call = our_call(contest, operands[contest.layer])
                start = time.perf_counter()
                call()
                spent += time.perf_counter() - start
            seconds.append(spent)
    known = jit.stats()
    return {
        "calls": len(calls),
        "kernels": known.compiled + known.from_disk + known.from_text,
        "compiled": known.compiled,
        "compile_ms": known.compile_ms,
        "first_ms": seconds[0] * 1e3,
        "next_ms": seconds[1] * 1e3,
    }


def main() -> None:
    """Be the child: measure what is asked for and print it."""
    print(json.dumps(_child(*json.loads(sys.argv[1]))))
