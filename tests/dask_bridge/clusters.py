"""Clusters for tests, arrays that exist in their workers only, and what is asked of workers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import psutil

import convgrad
from convgrad import _engine
from convgrad._base import config
from convgrad._base.dtypes import DTYPES
from convgrad._compiler import jit
from convgrad._runtime.threads import get_num_threads
from dask_bridge import made_chunks

TESTS = Path(__file__).resolve().parents[1]
SOURCES = Path(convgrad.__file__).resolve().parents[1]

DENSE = (24, 14, 14, 8), (3, 3, 8, 16)
"""Shapes of images and filter that most tests use."""


def images(
    shape: tuple[int, ...],
    chunks: Any,
    dtype: str = "float32",
    seed: int = 0,
    wait: float = 0.0,
) -> da.Array:
    """Return random images of which only the shape exists so far; each chunk takes `wait` seconds."""
    sizes, kind = da.core.normalize_chunks(chunks, shape), row(dtype)
    empty = np.empty((0,) * len(shape), kind)
    return da.map_blocks(made_chunks.chunk, kind, seed, wait, chunks=sizes, dtype=kind, meta=empty)


def row(dtype: str) -> Any:
    """Return NumPy's dtype of that name, of ours."""
    return next(each.numpy for each in DTYPES if each.name == dtype)


def filter_gradient(
    dtype: str = "float32",
    chunks: Any = (4, 5, -1, -1),
    wait: float = 0.0,
    shapes: Any = DENSE,
    seed: int = 1,
) -> da.Array:
    """Return a filter's gradient of which nothing is computed yet; 18 partial sums."""
    of_image, of_filter = shapes
    x = images(of_image, chunks, dtype, seed, wait)
    g = images((*of_image[:3], of_filter[3]), chunks, dtype, seed + 100)
    result: da.Array = convgrad.conv2d_backprop_filter(x, of_filter, g, 1, "SAME")
    return result


def until(true: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Wait for something to be true, and return it; a test fails where it never is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.005)
    raise AssertionError(f"not true within {seconds} seconds: {true}")


def worker_holding(scheduler: Any, name: str, least: int) -> Any:
    """Return the worker that holds most results whose key has a name, once it holds `least`; else None."""

    def held(worker: Any) -> int:
        return sum(name in str(task.key) for task in tuple(worker.has_what))

    most = max(tuple(scheduler.workers.values()), key=held, default=None)
    return most if most is not None and held(most) >= least else None


@contextmanager
def memory_watched(pids: Sequence[int]) -> Iterator[list[int]]:
    """Look at the memory of processes every 20 ms; gives a list to which the largest of each moment is added."""
    seen: list[int] = []
    over = threading.Event()
    processes = [psutil.Process(each) for each in pids]

    def look() -> None:
        while not over.wait(0.02):
            seen.append(max(each.memory_info().rss for each in processes))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


_ballast: list[Any] = []


def take_memory(share: float, limit: int) -> None:
    """Fill this process with numbers until it has a share of its limit."""
    wanted = int(share * limit) - psutil.Process().memory_info().rss
    _ballast.append(np.ones(max(wanted, 0), np.uint8))


def drop_memory() -> None:
    _ballast.clear()


def keep_kernels_in(folder: str | None) -> None:
    """Have this process's kernels in a folder, and forget those it has; None is the usual one."""
    config.set_default("cache_dir", folder)
    jit._kernels.clear()
    _engine.memory.clear()


def counted() -> tuple[int, int]:
    """Return how many kernels a process has compiled, and how many it found on disk."""
    stats = jit.stats()
    return stats.compiled, stats.from_disk + stats.from_text


_seen: list[int] = []


def watch_threads(pause: float = 0.0) -> None:
    """Write down from now on how many threads each call of kernels in this process may use; they take longer, too."""
    original = _engine.run

    def run(*words: Any) -> None:
        _seen.append(get_num_threads())
        time.sleep(pause)
        original(*words)

    _engine.run = run


def seen_threads() -> list[int]:
    return list(_seen)


LACKING = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "convgrad":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusing())
"""
"""A preload for Dask's commands: the process cannot import convgrad."""

OLDER = """
import convgrad._base.version
convgrad._base.version.__version__ = "0.0.1"
"""


@contextmanager
def command(verb: str, *words: str, preload: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run `dask scheduler` or `dask worker` in a process of its own until the block ends."""
    chosen = [] if preload is None else ["--preload", str(preload)]
    paths = os.pathsep.join([str(SOURCES), str(TESTS)])
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{verb}",
            "--dashboard-address",
            ":0",
            *chosen,
            *words,
        ],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def worker(*address: str, name: str, preload: Path | None = None) -> Any:
    """Run a worker of one thread without a nanny; tasks are sent to it by its name."""
    words = ("--no-nanny", "--nthreads", "1", "--name", name, "--memory-limit", "1GiB")
    return command("worker", *address, *words, preload=preload)
