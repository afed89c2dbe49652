"""Processes of their own: for what cannot be undone in one, and for environments TensorFlow reads when it is loaded.

Loading TensorFlow takes 4 to 6 seconds, so a child does a whole list of things and reports them as one JSON document.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import convgrad

TESTS = Path(__file__).parents[1]
SOURCES = Path(convgrad.__file__).parents[1]


def run(program: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program: its text, or the name of a module of this folder with words behind it."""
    what = ["-m", program] if program.startswith("tensorflow_bridge.") else ["-c", program]
    return subprocess.run(
        [sys.executable, *what, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join((str(SOURCES), str(TESTS))),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        | environment,
    )


def report(program: str, *words: str, **environment: str) -> Any:
    """Run a program that must succeed, and read the JSON of its last line."""
    done = run(program, *words, **environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def once(factory: Any, name: str, program: str, *words: str, **environment: str) -> Any:
    """Return the report of a program that one process of this test run makes for all of them."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    file = folder / f"{name}.json"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            try:
                made = {"report": report(program, *words, **environment)}
            except AssertionError as error:
                made = {"failed": str(error)}
            file.write_text(json.dumps(made), encoding="utf-8")
    found = json.loads(file.read_text(encoding="utf-8"))
    assert "report" in found, found["failed"]
    return found["report"]
