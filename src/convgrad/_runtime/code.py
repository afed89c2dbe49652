"""The compiled half of the runtime: the entry and the parallel loop, one object, loaded once per process.

What compiles it is not known here: `ensure` is handed a function that does. The code is never unloaded, because workers
live in it until the process ends, and it is kept for forked children, in which the compiler may be locked for ever.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import threading
from collections.abc import Callable, Mapping

from . import entry, parfor, parking
from .program import MOST_PLACES
from .state import STATE_BLOCK

Loader = Callable[[parfor.ParforSource], Mapping[str, int]]
"""Compiles the text and returns the addresses of its symbols; the code must never be unloaded."""

pack_call = tuple(
    struct.Struct(f"={len(entry.CALL_WORDS) + places}q").pack for places in range(MOST_PLACES + 1)
)
"""Pack the words of `cg_call`, by the number of addresses: program, threads, pool, addresses."""

_KINDS = {
    entry.RUN: ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4),
    entry.RUN_PLACES: ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2),
    entry.CALL: ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p),
    entry.RELEASE: ctypes.CFUNCTYPE(None, ctypes.c_void_p),
    parfor.WORKER: ctypes.CFUNCTYPE(None, ctypes.c_void_p),
    parfor.STOP: ctypes.CFUNCTYPE(None, ctypes.c_void_p),
    parfor.PAUSE: ctypes.CFUNCTYPE(None, ctypes.c_int64),
}


class Code:
    """The functions, callable, and their addresses. A call gives the interpreter's lock back while it runs."""

    def __init__(self, addresses: Mapping[str, int], way: parking.Parking) -> None:
        self.addresses = dict(addresses)
        self.parking = way
        self.call = _KINDS[entry.CALL](addresses[entry.CALL])
        self.release = _KINDS[entry.RELEASE](addresses[entry.RELEASE])
        self.worker = _KINDS[parfor.WORKER](addresses[parfor.WORKER])
        self.stop = _KINDS[parfor.STOP](addresses[parfor.STOP])
        self.pause = _KINDS[parfor.PAUSE](addresses[parfor.PAUSE])


_code: Code | None = None
_loading = threading.Lock()


def ensure(load: Loader) -> Code:
    """Return the code, compiled by `load` the first time; whatever that raises is raised."""
    global _code
    if _code is None:
        with _loading:
            if _code is None:
                way = parking.choose_way()
                _code = Code(load(parfor.source(platform.machine(), way)), way)
    return _code


def current() -> Code | None:
    """Return the code if it is there."""
    return _code


def entry_call() -> Callable[[bytes], int]:
    """Return `cg_call` as a function of packed words; only where a program has been bound."""
    assert _code is not None, "the entry is not loaded"
    return _code.call


def release() -> None:
    """Give the memory back that programs keep between calls."""
    if _code is not None:
        _code.release(STATE_BLOCK.address)


def after_fork_in_child() -> None:
    """Somebody may have been loading when the process forked."""
    global _loading
    _loading = threading.Lock()
