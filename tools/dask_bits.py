"""Bits of filter gradients on every scheduler: threads, one, two and three processes, and while workers are killed.

Usage: python tools/dask_bits.py [--images 48] [--kills 2] [--json FILE]

Partial sums are added in a tree that follows from the chunks, so all rows of a dtype must show the same digest; the
tool fails if they do not. A killed worker loses the partial sums it holds, and they are computed again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask_work
import numpy as np
from dask_work import Case
from distributed import Client, LocalCluster

import convgrad
from convgrad._base.dtypes import DTYPES
from convgrad._base.text import aligned

NAMES = ("float32", "half", "bfloat16")
CASES = (
    Case("depthwise 3x3, 16 channels", 28, 16, 16, 2, 28, depthwise=True),
    Case("dense 3x3, 16 to 16, rows cut in 4", 28, 16, 16, 2, 7),
)
WAIT = 0.03
"""Seconds each chunk takes where a worker is to be killed meanwhile."""


@dataclass(frozen=True)
class Row:
    """One way to compute a gradient."""

    case: str
    dtype: str
    where: str
    digest: str


def narrowed(block: Any, dtype: Any, wait: float) -> Any:
    """Return a chunk in another dtype, after some seconds."""
    time.sleep(wait)
    return block.astype(dtype)


def gradient(case: Case, dtype: str, count: int, wait: float = 0.0) -> da.Array:
    """Return a filter gradient that is not computed yet."""
    kind = next(row.numpy for row in DTYPES if row.name == dtype)
    empty = np.empty((0,) * 4, kind)
    x, g = (
        dask_work.lazy_images(case, count, channels, seed).map_blocks(
            narrowed, kind, wait, dtype=kind, meta=empty
        )
        for channels, seed in ((case.inputs, 1), (case.outputs, 2))
    )
    result: da.Array = dask_work.call(case, "filter gradient", count, x, g, None)
    return result


def all_gradients(count: int, wait: float = 0.0) -> list[da.Array]:
    return [gradient(case, dtype, count, wait) for case in CASES for dtype in NAMES]


def rows(where: str, found: list[Any]) -> list[Row]:
    """Return digests of what `all_gradients` came to."""
    pairs = [(case.name, dtype) for case in CASES for dtype in NAMES]
    return [
        Row(*pair, where, hashlib.sha256(each.tobytes()).hexdigest()[:16])
        for pair, each in zip(pairs, found, strict=True)
    ]


def killed(client: Client, cluster: LocalCluster, count: int, kills: int) -> list[Any]:
    """Compute all while workers are killed, each when it holds some results."""
    futures = client.compute(all_gradients(count, WAIT))
    for _ in range(kills):
        while not any(each.has_what for each in tuple(cluster.scheduler.workers.values())):
            time.sleep(0.01)
        time.sleep(5 * WAIT)
        holding = max(
            tuple(cluster.scheduler.workers.values()), key=lambda each: len(each.has_what)
        )
        if all(each.done() for each in futures):
            raise SystemExit("all was done before a worker could be killed: give more --images")
        os.kill(holding.pid, signal.SIGKILL)
        client.wait_for_workers(2)
    return list(client.gather(futures))


def computed(count: int, kills: int) -> list[Row]:
    """Compute the gradients in all ways."""
    found = []
    lazy = all_gradients(count)
    for scheduler in ("sync", "threads"):
        with convgrad.threads(1) if scheduler == "sync" else convgrad.options():
            found += rows(scheduler, dask.compute(*lazy, scheduler=scheduler))
        print(f"{scheduler}: done", file=sys.stderr, flush=True)
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,  # of workers that are killed there is much to tell
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        for workers in (1, 2, 3):
            cluster.scale(workers)
            client.wait_for_workers(workers)
            where = "1 process" if workers == 1 else f"{workers} processes"
            found += rows(where, list(client.gather(client.compute(all_gradients(count)))))
            print(f"{where}: done", file=sys.stderr, flush=True)
        where = f"3 processes, {kills} killed"
        found += rows(where, killed(client, cluster, count, kills))
        print(f"{where}: done", file=sys.stderr, flush=True)
    return found


def different(found: list[Row]) -> list[tuple[str, str]]:
    """Return the gradients whose digest is not the same everywhere."""
    digests: dict[tuple[str, str], set[str]] = {}
    for row in found:
        digests.setdefault((row.case, row.dtype), set()).add(row.digest)
    return [pair for pair, each in digests.items() if len(each) > 1]


def table(found: list[Row]) -> str:
    """Return a line for each gradient and way."""
    ordered = sorted(found, key=lambda row: (row.case, NAMES.index(row.dtype)))
    return aligned(
        [("", "dtype", "where", "digest")]
        + [(row.case, row.dtype, row.where, row.digest) for row in ordered],
        left=(0, 1, 2, 3),
    )


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=48, help="two of them a chunk (default 48)")
    parser.add_argument("--kills", type=int, default=2, help="workers to kill (default 2)")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    asked = parser.parse_args(words)
    found = computed(asked.images, asked.kills)
    print(table(found))
    if asked.json is not None:
        asked.json.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")
    wrong = different(found)
    for case, dtype in wrong:
        print(f"{case}, {dtype}: not the same bits everywhere", file=sys.stderr)
    if not wrong:
        print("\nThe same bits everywhere.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
