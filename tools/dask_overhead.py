"""What a task of Dask costs, and from which size of chunks on that is little: small chunks, then larger ones.

Usage: python tools/dask_overhead.py [--sides 8,16,...] [--seconds 0.4] [--best 5] [--json FILE]

Each chunk is one image of 32 channels. The same forward passes (3x3, depthwise and dense) are computed in a plain loop
with the default threads, by Dask's threads, and by a cluster of two processes of one thread; they take turns and the
best round counts. Overhead is the time beyond the loop's. Chunks of a few KB show a task's: they cost nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask_work
from dask_work import Case
from distributed import Client, LocalCluster

from convgrad._base.text import aligned, finite

SIDES = (8, 16, 32, 64, 128, 256, 512, 1024)
FEWEST, MOST = 8, 512
"""Chunks of one round."""
SMALL = 0.05
"""The share of a loop's time that counts as little."""


@dataclass(frozen=True)
class Row:
    """One size of chunks."""

    case: str
    chunk_bytes: int
    chunks: int
    tasks: int
    """That Dask runs, after it has fused what it can."""
    loop: float
    """Microseconds per chunk, as the next two."""
    threads: float
    cluster: float

    def overhead(self, scheduler: str) -> float:
        """Return the share of time that is added to the loop's."""
        taken: float = getattr(self, scheduler)
        return taken / self.loop - 1


def cases(side: int) -> tuple[Case, ...]:
    return (
        Case("depthwise", side, 32, 32, 1, side, depthwise=True),
        Case("dense", side, 32, 32, 1, side),
    )


def measured(case: Case, client: Client, seconds: float, best: int) -> Row:
    """Time one size: as many chunks as the loop computes in so many seconds."""
    dask_work.loop(case, "forward", 4)
    spent, _ = dask_work.loop(case, "forward", FEWEST)
    count = int(min(MOST, max(FEWEST, FEWEST * seconds / spent)))
    lazy = dask_work.graph(case, "forward", count)
    ways: dict[str, Callable[[], Any]] = {
        "loop": lambda: dask_work.loop(case, "forward", count),
        "threads": lambda: lazy.compute(scheduler="threads"),
        "cluster": lambda: lazy.compute(scheduler=client),
    }
    times: dict[str, float] = {}
    for turn in range(best + 1):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            if turn:  # the first is to warm up
                times[name] = min(times.get(name, float("inf")), time.perf_counter() - begin)
    fused = dask_work.optimized(lazy)
    micros = {name: found / count * 1e6 for name, found in times.items()}
    return Row(case.name, case.chunk_bytes, count, len(fused.__dask_graph__()), **micros)


def from_where(rows: list[Row], scheduler: str) -> int | None:
    """Return the bytes of chunks from which on the overhead is little, for all larger ones tried."""
    found = None
    for row in sorted(rows, key=lambda row: row.chunk_bytes, reverse=True):
        if row.overhead(scheduler) > SMALL:
            break
        found = row.chunk_bytes
    return found


def per_task(row: Row, scheduler: str) -> float:
    """Return the microseconds that each task adds."""
    taken: float = getattr(row, scheduler)
    return (taken - row.loop) * row.chunks / row.tasks


HEAD = ("", "chunk", "chunks", "tasks", "loop us", "threads us", "cluster us", "threads", "cluster")


def printed(row: Row) -> tuple[str, ...]:
    size = f"{row.chunk_bytes / 1e6:.2f} MB" if row.chunk_bytes >= 1e5 else f"{row.chunk_bytes} B"
    times = (f"{each:.0f}" for each in (row.loop, row.threads, row.cluster))
    shares = (f"{row.overhead(each):+.0%}" for each in ("threads", "cluster"))
    return (row.case, size, str(row.chunks), str(row.tasks), *times, *shares)


def verdicts(rows: list[Row]) -> list[str]:
    """Return what the table comes to, in sentences."""
    said = []
    for name in dict.fromkeys(row.case for row in rows):
        ours = [row for row in rows if row.case == name]
        least = min(ours, key=lambda row: row.chunk_bytes)
        for scheduler in ("threads", "cluster"):
            size = from_where(ours, scheduler)
            where = "never here" if size is None else f"from chunks of {size / 1e6:.2f} MB on"
            said.append(
                f"{name}, {scheduler}: {per_task(least, scheduler):.0f} us per task; "
                f"overhead below {SMALL:.0%} {where}"
            )
    return said


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sides", default=",".join(map(str, SIDES)), help="of images, in pixels")
    parser.add_argument(
        "--seconds", type=float, default=0.4, help="of a round in the loop (default 0.4)"
    )
    parser.add_argument("--best", type=int, default=5, help="rounds, the best counts (default 5)")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    asked = parser.parse_args(words)
    try:
        sides = [int(each) for each in asked.sides.split(",")]
    except ValueError:
        parser.error(f"--sides must be whole numbers with commas between, got {asked.sides!r}")
    rows = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        for side in sides:
            for case in cases(side):
                rows.append(measured(case, client, asked.seconds, asked.best))
                print("  ".join(printed(rows[-1])), file=sys.stderr, flush=True)
    rows.sort(key=lambda row: (row.case, row.chunk_bytes))
    print(aligned([HEAD, *map(printed, rows)]))
    print("\n" + "\n".join(verdicts(rows)))
    if asked.json is not None:
        asked.json.write_text(json.dumps(finite([asdict(row) for row in rows]), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
