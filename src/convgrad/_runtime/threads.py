"""How many threads a call uses, and whose: our own pool's or OpenMP's.

The number comes from the settings, else from the processors this process may keep busy, or from OpenMP where its
threads are used. Neither changes a bit of any result.
"""

from __future__ import annotations

import operator
import os
from typing import SupportsIndex

from convgrad._base import config
from convgrad._base.errors import ArgumentError, ArgumentTypeError, shown

from . import openmp, pool
from .cpus import available_cpus
from .state import OPENMP, OWN, STATE_BLOCK

MAX_THREADS = config.MAX_THREADS

_default: int | None = None


def set_num_threads(n: SupportsIndex) -> None:
    """Set how many threads a call may use, the calling one included, for the whole process."""
    config.set_default("num_threads", _checked("set_num_threads", n))
    pool.ask_again()


def get_num_threads() -> int:
    """Return how many threads a call from here may use.

    Unless set, that is the number of processors this process may keep busy, or what OpenMP says where its threads are
    used.
    """
    chosen: int | None = config.get("num_threads")
    if kind() == OPENMP:
        return min(chosen or _team() or MAX_THREADS, openmp.max_threads())
    return chosen or _default or _find_default()


def threads(n: SupportsIndex) -> config.Scope:
    """Set how many threads calls inside the ``with`` block may use; other contexts do not see."""
    return config.scope(num_threads=_checked("threads", n))


def kind() -> int:
    """Return which pool a call from here hands its work to: `OWN` or `OPENMP`."""
    chosen = config.get("pool")
    if chosen == "own" or (chosen == "auto" and not openmp.in_use()):
        return OWN
    return OPENMP if openmp.usable() else OWN


def story() -> tuple[str, str]:
    """Return the name of the pool a call from here uses, and why that one, for people."""
    library = openmp.runtime()
    if kind() == OPENMP and library is not None:
        return "openmp", library.path
    if config.get("pool") == "own":
        return "own", "asked for"
    if openmp.forked():
        return "own", "OpenMP's threads do not survive a fork"
    if config.get("pool") == "auto" and not openmp.in_use():
        return "own", f"none of {', '.join(openmp.FRAMEWORKS)} is imported in this process"
    return "own", "no OpenMP runtime is loaded in this process"


def ready(most: int = MAX_THREADS) -> tuple[int, int]:
    """Return threads and pool of a call from here that has work for `most`, as the entry wants them.

    Our own workers are there afterwards, if they are used. 0 threads are as many as OpenMP has.
    """
    chosen: int | None = config.get("num_threads")
    if kind() == OPENMP:
        return chosen or _team(), OPENMP
    count = min(chosen or _default or _find_default(), most)
    if count > 1:
        pool.ensure(count)
    return count, OWN


def get_ready() -> None:
    """Get ready for callers that are not Python: the entry then uses what the settings say here and now."""
    STATE_BLOCK["THREADS"], STATE_BLOCK["POOL"] = ready()


def _team() -> int:
    """Return how many of OpenMP's threads to use where nobody said: 0 for all.

    OpenMP counts the processors and knows nothing of a container's share of them, beyond which all threads stall.
    """
    return 0 if "OMP_NUM_THREADS" in os.environ else _default or _find_default()


def _checked(function: str, n: SupportsIndex) -> int:
    if isinstance(n, bool):
        raise ArgumentTypeError(f"{function}: `n` must be an integer, got {shown(n)}.")
    try:
        count = int.__index__(operator.index(n))  # exactly an int
    except TypeError:
        raise ArgumentTypeError(f"{function}: `n` must be an integer, got {shown(n)}.") from None
    if not 1 <= count <= MAX_THREADS:
        raise ArgumentError(f"{function}: `n` must be from 1 to {MAX_THREADS}, got {shown(count)}.")
    return count


def _find_default() -> int:
    global _default
    _default = min(available_cpus(), MAX_THREADS)
    return _default


def _after_fork_in_child() -> None:
    global _default
    _default = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
