"""Calling a kernel: alone for a small problem, shared among threads for a large one.

The path of a call is counted in tenths of microseconds. A ctypes argument costs 0.1 us, so a shared
call passes one: a block of words with the kernel's own words behind it.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

from .parfor import JOB
from .scratch import workspace
from .threads import MAX_THREADS, get_num_threads, pool_for

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_pack_job = struct.Struct(f"={len(JOB)}q").pack
_LINE_PAIR = 128
"""Parts of a workspace are this far apart, so that no two threads write to neighbouring lines."""

_callable: dict[int, Callable[[bytes, int, int, int], None]] = {}
"""A kernel by its address. All have one signature, so an address used again needs no new entry."""
_MOST_CALLABLE = 4096


def launch(
    kernel_address: int,
    args: bytes,
    items: int,
    grain: int,
    scratch_bytes: int = 0,
    threads: int | None = None,
) -> None:
    """Run a kernel over the items ``[0, items)``, each exactly once, and return when all are done.

    `args` are the kernel's words (see `pointers.pack_words`), which it must not write to. Threads
    claim `grain` items at a time; one thread alone gets all items in one call. `scratch_bytes` is
    what one thread needs. `threads` is the most to use, the calling one included; None asks the
    settings.
    """
    if items > grain and threads != 1:
        if threads is None:
            threads = get_num_threads()
        threads = min(threads, -(-items // grain), MAX_THREADS)
        pool = pool_for(threads) if threads > 1 else None
        if pool is not None:
            stride = -(-scratch_bytes // _LINE_PAIR) * _LINE_PAIR
            # Kept in a variable until the kernel is done: it owns the memory.
            scratch = workspace(stride * threads) if stride else None
            address = scratch.address if scratch else 0
            spin = threads <= pool.cpus
            job = _pack_job(
                pool.control, kernel_address, items, grain, address, stride, threads, spin
            )
            pool.make_room()
            pool.run(job + args)
            return
    if items > 0:
        call = _callable.get(kernel_address)
        if call is None:
            if len(_callable) >= _MOST_CALLABLE:
                _callable.clear()
            call = _callable[kernel_address] = _KERNEL(kernel_address)
        scratch = workspace(scratch_bytes) if scratch_bytes else None
        call(args, 0, items, scratch.address if scratch else 0)
