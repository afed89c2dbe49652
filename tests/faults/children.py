"""Programs in processes of their own: faults are not for the process that runs the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCES = TESTS.parent / "src"

PREAMBLE = f"""
import sys
sys.path[:0] = [{str(TESTS / "faults")!r}, {str(TESTS)!r}, {str(SOURCES)!r}]
"""
IMPORTS = """
import os, signal, threading, time
import numpy as np
import convgrad
from work import *
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts with it ignored
"""


def start(
    program: str,
    cache: Path | None,
    *options: str,
    environment: dict[str, str | None] | None = None,
    before: Callable[[], None] | None = None,
    imports: str = IMPORTS,
) -> subprocess.Popen[str]:
    """Start a program; `cache` None turns the disk off, `before` runs in the child before Python does."""
    variables: dict[str, str | None] = {**os.environ}
    variables["CONVGRAD_DISK_CACHE"] = "0" if cache is None else "1"
    variables["CONVGRAD_CACHE_DIR"] = None if cache is None else str(cache)
    variables |= environment or {}
    return subprocess.Popen(
        [sys.executable, *options, "-c", PREAMBLE + imports + textwrap.dedent(program)],
        env={name: value for name, value in variables.items() if value is not None},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,
    )


def finish(process: subprocess.Popen[str], seconds: float = 60) -> tuple[str, str]:
    """Wait for a program, which must end by itself with status 0; returns what it wrote."""
    try:
        out, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        raise AssertionError(f"the program hangs\n{out}\n{errors}") from None
    code = process.returncode
    said = signal.Signals(-code).name if code < 0 else str(code)
    assert code == 0, f"the program ended with {said}\n{out}\n{errors}"
    return out, errors


def run(program: str, cache: Path | None, *options: str, **keywords: object) -> str:
    """Run a program that must end well and say nothing on stderr."""
    seconds = keywords.pop("seconds", 60)
    out, errors = finish(start(program, cache, *options, **keywords), seconds)  # type: ignore[arg-type]
    assert errors == "", errors
    return out
