"""Images larger than memory on a cluster of two processes, against one process that computes them in a plain loop.

Usage: python tools/dask_table.py [--gigabytes 16] [--limit 1.5] [--chunks 103] [--best 2] [--only WORDS] [--json FILE]

The images are made inside of tasks (`dask_work.py`) and results are added up where they are made, so nothing is read,
written or brought home. The loop has a process of its own and its default threads; the cluster has two processes of
one thread. They take turns, operation by operation, and the best of N rounds counts: ratios inside one run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask_work
from dask_work import CASES, OPERATIONS, Case
from distributed import Client, LocalCluster

from convgrad._base.text import aligned, finite

WARM = 4
"""Chunks computed before anything is timed, for each worker: kernels are compiled and loaded."""


@dataclass(frozen=True)
class Row:
    """One operation, both ways."""

    case: str
    operation: str
    gigabytes: float
    """Of images that go in."""
    loop_seconds: float
    cluster_seconds: float
    ratio: float
    """The cluster's time over the loop's."""
    peak_megabytes: float | None
    """Of the worker that had most."""
    loop_peak_megabytes: float | None
    moved_megabytes: float
    """Sent from worker to worker."""
    tasks: int
    restarts: int
    """Workers that were ended because of their memory, or died."""


def timed_loop(case: Case, operation: str, count: int) -> tuple[float, Any, int | None]:
    """Run the loop in this process, after some slabs for nothing; seconds, result and peak."""
    dask_work.loop(case, operation, min(count, WARM * case.slab))
    dask_work.forget_peak()
    seconds, result = dask_work.loop(case, operation, count)
    return seconds, result, dask_work.peak_bytes()


class Table:
    """A cluster, a process for loops, and the rows found so far."""

    def __init__(self, client: Client, loops: Executor, best: int) -> None:
        self.client, self.loops, self.best = client, loops, best

    def row(self, case: Case, operation: str, gigabytes: float) -> Row:
        count = case.count(gigabytes)
        warm = min(count, 2 * WARM * case.images)
        dask_work.graph(case, operation, warm).compute(scheduler=self.client)
        workers = set(self.client.scheduler_info(n_workers=-1)["workers"])
        self.client.run(dask_work.forget_peak)
        sent = self._sent()
        lazy = dask_work.graph(case, operation, count)
        loops, clusters = [], []
        for _ in range(self.best):
            seconds, expected, loop_peak = self.loops.submit(
                timed_loop, case, operation, count
            ).result()
            loops.append(seconds)
            begin = time.perf_counter()
            found = lazy.compute(scheduler=self.client)
            clusters.append(time.perf_counter() - begin)
            if not dask_work.agree(found, expected, dask_work.terms(case, count)):
                raise SystemExit(f"{case.name}, {operation}: {found} is not {expected}")
        peaks = self.client.run(dask_work.peak_bytes).values()
        now = set(self.client.scheduler_info(n_workers=-1)["workers"])
        operands = 2 if operation == "filter gradient" else 1
        return Row(
            case.name,
            operation,
            operands * count * case.image_bytes / 1e9,
            min(loops),
            min(clusters),
            min(clusters) / min(loops),
            None if None in peaks else max(peaks) / 1e6,
            None if loop_peak is None else loop_peak / 1e6,
            (self._sent() - sent) / self.best / 1e6,
            len(dask_work.optimized(lazy).__dask_graph__()),
            len(workers - now),
        )

    def _sent(self) -> int:
        return sum(self.client.run(dask_work.sent_bytes).values())


HEAD = ("", "operation", "GB", "loop s", "cluster s", "ratio", "peak MB", "moved MB", "tasks")


def printed(row: Row) -> tuple[str, ...]:
    return (
        row.case,
        row.operation,
        f"{row.gigabytes:.2f}",
        f"{row.loop_seconds:.2f}",
        f"{row.cluster_seconds:.2f}",
        f"{row.ratio:.2f}",
        "-" if row.peak_megabytes is None else f"{row.peak_megabytes:.0f}",
        f"{row.moved_megabytes:.1f}",
        str(row.tasks),
    )


def measure(asked: argparse.Namespace, cases: list[Case]) -> list[Row]:
    """Start what computes, and measure row by row."""
    spawn = multiprocessing.get_context("spawn")
    rows = []
    with (
        ProcessPoolExecutor(1, mp_context=spawn) as loops,
        LocalCluster(
            n_workers=asked.workers,
            threads_per_worker=1,
            memory_limit=int(asked.limit * 1e9),
            dashboard_address=":0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        table = Table(client, loops, asked.best)
        for case in cases:
            for operation in OPERATIONS:
                row = table.row(case, operation, asked.gigabytes)
                rows.append(row)
                print("  ".join(printed(row)), file=sys.stderr, flush=True)
    return rows


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=16.0, help="of images (default 16)")
    parser.add_argument(
        "--limit", type=float, default=1.5, help="GB a worker may have (default 1.5)"
    )
    parser.add_argument("--chunks", type=float, help="MB of a chunk (default 103)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--best", type=int, default=2, help="rounds, the best counts (default 2)")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    asked = parser.parse_args(words)
    cases = [case for case in CASES if asked.only in case.name]
    if not cases:
        parser.error(
            f"--only must be part of one of {[each.name for each in CASES]}, got {asked.only!r}"
        )
    if asked.chunks is not None:
        cases = [case.with_chunks(asked.chunks) for case in cases]
    rows = measure(asked, cases)
    print(aligned([HEAD, *map(printed, rows)], left=(0, 1)))
    worst = max(rows, key=lambda row: row.ratio)
    print(f"\nThe cluster took at most {worst.ratio:.2f} of the loop's time.")
    if asked.json is not None:
        asked.json.write_text(json.dumps(finite([asdict(row) for row in rows]), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
