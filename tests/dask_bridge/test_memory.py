"""A task holds no more chunks than docs/dask.md says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import convgrad

STATED = {
    "images": 2,
    "rows, copied": 3,
    "rows, not copied": 2,
    "filter gradient, images": 2,
    "filter gradient, rows": 3,
    "filter gradient, rows that differ": 4,
    "filter gradient, half": 2 + 4,
}
SLACK = 0.6
"""Chunks of 8 MiB: strips, bands, workspaces of kernels, and pages that the C library keeps."""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="reads memory as Linux tells it"
)
@pytest.mark.long
def test_a_task_holds_the_chunks_that_are_stated() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("held.py"))],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(convgrad.__file__).parents[1]),
            "CONVGRAD_POOL_BYTES": "0",  # results are new memory,
            "MALLOC_MMAP_THRESHOLD_": "1000000",  # and memory that is freed goes back
        },
    )
    assert done.returncode == 0, done.stderr
    held = json.loads(done.stdout)
    assert held.keys() == STATED.keys()
    assert {
        name: round(held[name], 2) for name in STATED if held[name] > STATED[name] + SLACK
    } == {}
    assert all(count > 1.5 for count in held.values()), held  # or nothing was measured
