"""The OpenMP runtime that is already in the process, as a pool to hand jobs to.

PyTorch shares its loops among OpenMP's threads, which spin for milliseconds after each operator, on the processors our
own workers need: best torch time over ours on 36 dense layers, the two taking turns on two cores, was 1.15 with our own
pool and 1.24 through `GOMP_parallel`. So where a framework keeps such threads, we use them.

GNU's libgomp, LLVM's libomp and Intel's libiomp5 all export `GOMP_parallel`. The library is looked for among those that
are loaded, and never loaded by us. A forked child has none of its parent's OpenMP threads, and libgomp would wait for
them for ever: there we use our own pool.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from .interpreter import IN_MAIN_INTERPRETER
from .state import STATE_BLOCK, address_of

FRAMEWORKS = ("torch",)
"""Modules that keep OpenMP's threads busy once they are imported."""
_NAME = re.compile(r"lib(gomp|iomp5|omp)\b[-.\w]*")


@dataclass(frozen=True)
class Runtime:
    """A loaded library."""

    path: str
    parallel: int
    """Address of `GOMP_parallel`."""
    max_threads: int
    """Address of `omp_get_max_threads`."""


_found: Runtime | None = None
_looked_at = -1
"""How many modules there were when no library was found; it is looked for again when there are others."""
_forked = False


def in_use() -> bool:
    """Tell whether some framework of this process works with OpenMP's threads."""
    return not sys.modules.keys().isdisjoint(FRAMEWORKS)


def usable() -> bool:
    """Tell whether jobs can be handed to OpenMP here; the first time it looks for the library."""
    if STATE_BLOCK["GOMP"]:
        return True
    return not _forked and len(sys.modules) != _looked_at and _attach()


def runtime() -> Runtime | None:
    """Return the library in use, for people."""
    return _found if usable() else None


def forked() -> bool:
    """Tell whether this process is a forked child, which has none of OpenMP's threads."""
    return _forked


def max_threads() -> int:
    """Return how many threads OpenMP would give the calling thread: `OMP_NUM_THREADS` and its like."""
    ask = ctypes.CFUNCTYPE(ctypes.c_int)(STATE_BLOCK["OMP_MAX"])
    return max(1, int(ask()))


def _attach() -> bool:
    global _found, _looked_at
    modules = len(sys.modules)
    for path in sorted(_loaded(), key=_rank):
        _found = _open(path)
        if _found is not None:
            STATE_BLOCK["OMP_MAX"] = _found.max_threads
            STATE_BLOCK["GOMP"] = _found.parallel
            return True
    _looked_at = modules
    return False


def _loaded() -> list[str]:
    """Return the OpenMP libraries among the files mapped into this process (Linux)."""
    if not IN_MAIN_INTERPRETER:
        return []
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError:
        return []
    paths = dict.fromkeys(line.partition("/")[2] for line in lines if "/" in line)
    return [f"/{path}" for path in paths if _NAME.fullmatch(path.rpartition("/")[2])]


def _rank(path: str) -> bool:
    """Put what a framework brought before what came from elsewhere."""
    folders = [
        f"{Path(file).parent}{os.sep}"
        for name in FRAMEWORKS
        if (file := getattr(sys.modules.get(name), "__file__", None))
    ]
    return not any(path.startswith(folder) for folder in folders)


def _open(path: str) -> Runtime | None:
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        return Runtime(
            path, address_of(library.GOMP_parallel), address_of(library.omp_get_max_threads)
        )
    except (OSError, AttributeError):  # gone since, or another library of that name
        return None


def _after_fork_in_child() -> None:
    global _forked, _found
    _forked, _found = True, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
