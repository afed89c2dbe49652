"""How many threads a kernel may use inside a task, so that tasks and kernels do not fight for processors.

A worker of Dask runs as many tasks at a time as it has threads, which is its share of the machine. A task alone in its
worker has the whole share, two have half of it each. Bits do not depend on it.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..._base import config
from ..._runtime.threads import get_num_threads

_lock = threading.Lock()
_running = 0
"""Tasks of ours that compute in this process."""


@contextmanager
def limited() -> Iterator[int]:
    """Compute with this task's share of the threads; gives their number."""
    global _running
    most = min(get_num_threads(), of_process())
    with _lock:
        _running += 1
        share = max(1, most // _running)
    try:
        with config.scope(num_threads=share):
            yield share
    finally:
        with _lock:
            _running -= 1


def of_process() -> int:
    """Return how many processors this process has for tasks: a worker's threads, or 1 in a pool of processes."""
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        try:
            return int(distributed.get_worker().state.nthreads)
        except ValueError:  # no worker, or a thread that is not a task's
            pass
    if multiprocessing.parent_process() is not None:
        return 1
    return config.MAX_THREADS
