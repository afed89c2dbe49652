"""What kernels cost a run of tests: LLVM's share of the test processes' time, and the same of their children.

A test process sends its numbers to the one that reports. Children are told a file to leave theirs in, by the switch
that users have for it; those that are killed leave none.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from convgrad._compiler.jit import Counts, counted

LOG = "CONVGRAD_KERNEL_LOG"
_began = time.perf_counter()


def tell_children() -> Path | None:
    """Name a file for processes started from here on, test processes too; None if there is one already."""
    if os.environ.get(LOG):
        return None
    descriptor, name = tempfile.mkstemp(prefix="convgrad-kernels-", suffix=".jsonl")
    os.close(descriptor)
    os.environ[LOG] = name
    return Path(name)


def of_this_process() -> dict[str, Any]:
    """Return what a test process has to say at its end."""
    return {"process": os.getpid(), "seconds": time.perf_counter() - _began, **asdict(counted())}


def of_children(log: Path | None, tests: Iterable[int]) -> list[dict[str, Any]]:
    """Return the lines that other processes than those of the tests have left.

    A child of a test of full disks may have left a part of a line, and the next one's line behind it.
    """
    if log is None:
        return []
    lines = []
    for line in log.read_text(errors="replace").splitlines():
        with suppress(json.JSONDecodeError):
            lines.append(json.loads(line))
    return [line for line in lines if line["process"] not in set(tests)]


def together(rows: Iterable[dict[str, Any]]) -> Counts:
    """Return the sum of some processes' numbers."""
    names = [each.name for each in fields(Counts)]
    return sum((Counts(**{name: row[name] for name in names}) for row in rows), Counts())


def told(tests: list[dict[str, Any]], children: list[dict[str, Any]]) -> list[str]:
    """Return the lines a run ends with; none if it had nothing to do with kernels.

    >>> row = {"process": 1, "seconds": 50.0, **asdict(Counts(812, 3100, 20, 9.0, 12.0, 0.5, 2.0))}
    >>> for line in told([row, row], []):
    ...     print(line)
    kernels: 1,624 compiled in 24 s of LLVM (24% of the test processes' time), 18 s writing texts, 4 s loading
    kernels: 6,200 found on disk by key, 40 by text
    """
    lines = []
    mine, theirs = together(tests), together(children)
    if mine != Counts():
        share = mine.llvm_s / max(sum(row["seconds"] for row in tests), 1e-9)
        lines += [
            f"kernels: {mine.compiled:,} compiled in {mine.llvm_s:.0f} s of LLVM ({share:.0%} of the test processes' "
            f"time), {mine.writing_s:.0f} s writing texts, {mine.loading_s:.0f} s loading",
            f"kernels: {mine.from_disk:,} found on disk by key, {mine.from_text:,} by text",
        ]
    if children:
        lines.append(
            f"kernels of {len(children):,} child processes: {theirs.compiled:,} compiled in {theirs.llvm_s:.0f} s of "
            f"LLVM, {theirs.importing_s:.0f} s importing it, {theirs.from_disk:,} found by key, "
            f"{theirs.from_text:,} by text"
        )
    return lines


def slowest(reports: Iterable[Any], most: int = 20, least_s: float = 1.0) -> list[str]:
    """Return the tests that took longest, with what was set up for them; those under a second are not worth a line."""
    seconds: dict[str, float] = {}
    for report in reports:
        if getattr(report, "nodeid", None) and hasattr(report, "duration"):
            seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration
    first = sorted(seconds.items(), key=lambda pair: -pair[1])[:most]
    shown = [(name, taken) for name, taken in first if taken >= least_s]
    if not shown:
        return []
    taken_by_them, all_taken = sum(taken for _, taken in shown), sum(seconds.values())
    return [
        f"the {len(shown)} slowest of {len(seconds):,} tests: {taken_by_them:.0f} of {all_taken:.0f} s",
        *(f"{taken:7.1f} s  {name}" for name, taken in shown),
    ]
