"""How IR becomes code: memory, then disk, then LLVM. It knows no convolution.

`load` is the only way in. A kernel is compiled once per process however many threads ask, and
once per machine as long as the disk keeps it; a process that finds its kernels on disk never
imports llvmlite. The disk is asked twice: by a key that is known before anything is written, which
changes with our sources, and by the text that was written, which a change may have left as it was.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from convgrad._base import config
from convgrad._base.errors import CompileError
from convgrad._compiler.kernel import Kernel, KernelSource, Origin
from convgrad._compiler.targets import Target

from . import cache, counts, elf, key, llvm, trouble
from .counts import Counts
from .host import target as host_target

__all__ = ["Counts", "Stats", "clear", "counted", "find_trouble", "host_target", "load", "stats"]


@dataclass(frozen=True)
class Stats:
    """What the cache holds and has done for this process."""

    kernels: int
    """Kernels loaded in this process."""
    from_disk: int
    from_text: int
    """Found on disk by their texts: their keys had changed."""
    compiled: int
    compile_ms: float
    """Spent in LLVM in total."""
    disk_entries: int
    disk_bytes: int
    disk_by_text: int
    """How many of the entries can be found by their texts."""
    folder: str | None


_kernels: dict[tuple[Any, Target, int], Kernel] = {}
_MOST = 2048
"""Kernels remembered; a program that meets more starts over, from disk. One takes about 10 KB, its code is unmapped
when the last call prepared with it is forgotten too."""
_locks: dict[tuple[Any, Target, int], threading.Lock] = {}
_locks_guard = threading.Lock()


def load(
    identity: Any,
    emit: Callable[[], KernelSource],
    target: Target,
    imports: Mapping[str, int] = MappingProxyType({}),  # it never changes
) -> Kernel:
    """Return the kernel called `identity` for `target`; `emit` writes it if nobody has it.

    Its code is given `imports`, addresses by name, which are the same for the whole life of the process.

    `identity` is hashable, and its repr is the same in every process and says all that shapes the
    code besides the target. Raises CompileError if LLVM or the system refuses.
    """
    name = (identity, target, config.get("opt_level"))
    kernel = _kernels.get(name)
    if kernel is not None:
        return kernel
    with _locks_guard:
        lock = _locks.setdefault(name, threading.Lock())
    with lock:
        kernel = _kernels.get(name)
        if kernel is None:
            try:
                kernel = _from_disk_or_llvm(identity, emit, target, imports)
            finally:
                with _locks_guard:
                    _locks.pop(name, None)
            if len(_kernels) >= _MOST:
                _kernels.clear()
            _kernels[name] = kernel
    return kernel


def stats() -> Stats:
    """Return what the cache holds and has done, as far as kernels are remembered."""
    kernels = list(_kernels.values())
    held = cache.usage()
    place = cache.folder()
    return Stats(
        kernels=len(kernels),
        from_disk=sum(kernel.origin == "disk" for kernel in kernels),
        from_text=sum(kernel.origin == "text" for kernel in kernels),
        compiled=sum(kernel.origin == "llvm" for kernel in kernels),
        compile_ms=sum(kernel.compile_ms for kernel in kernels),
        disk_entries=held.kernels,
        disk_bytes=held.bytes,
        disk_by_text=held.by_text,
        folder=None if place is None else str(place),
    )


def counted() -> Counts:
    """Return all that kernels have cost this process, remembered or not."""
    return counts.current()


def clear() -> int:
    """Forget all kernels, here and on disk; returns how many entries the disk had.

    What is prepared for a call keeps its kernels: somebody may be running them.
    """
    _kernels.clear()
    return cache.clear()


def find_trouble() -> trouble.Trouble | None:
    """Return why kernels are not kept on disk, or None if they are."""
    try:
        key.sources()
    except OSError:
        return trouble.NO_SOURCES
    return cache.find_trouble()


def _from_disk_or_llvm(
    identity: Any, emit: Callable[[], KernelSource], target: Target, imports: Mapping[str, int]
) -> Kernel:
    try:
        name = key.identity_text(identity, target)
    except OSError:  # of sources that cannot be read: no name, so no place on disk
        name = ""
    digest = key.digest(name)
    entry = cache.read(digest, name) if name else None
    if entry is not None and (kernel := _placed(entry, "disk", target, imports)):
        counts.add("from_disk")
        return kernel
    if elf.supported():
        elf.check_allowed()  # before the import: without executable memory llvmlite fails in ways of its own
    with counts.timed("writing_s"):
        source = emit()
    if not name:
        cache.lose(trouble.NO_SOURCES)
        return _compiled(source, target, imports)[0]
    written = key.text_of(source.ir, target)
    text = (key.digest(written), written)
    entry = cache.read_by_text(*text)
    if entry is not None:
        # The code is what the text says, but how much workspace goes with it is not in the text.
        entry = cache.Entry(source.symbol, source.scratch_bytes, entry.code)
    if entry is not None and (kernel := _placed(entry, "text", target, imports)):
        counts.add("from_text")
        cache.write(digest, name, entry, text, compiled=False)
        return kernel
    kernel, entry = _compiled(source, target, imports)
    cache.write(digest, name, entry, text)
    return kernel


def _placed(
    entry: cache.Entry, origin: Origin, target: Target, imports: Mapping[str, int]
) -> Kernel | None:
    """Return an entry as a kernel, or None if a new one may fare better."""
    try:
        address, code = _place(entry.code, entry.symbol, target, imports)
    except CompileError:
        if elf.supported():
            raise  # the system refuses, and will refuse a new one too
        return None
    return Kernel(entry.symbol, address, entry.scratch_bytes, 0.0, origin, code)


def _compiled(
    source: KernelSource, target: Target, imports: Mapping[str, int]
) -> tuple[Kernel, cache.Entry]:
    llvm.binding()  # not part of compiling: the import takes longer than the kernel
    start = time.perf_counter()
    code = llvm.compile_object(source.ir, target)
    compile_ms = (time.perf_counter() - start) * 1e3
    address, placed = _place(code, source.symbol, target, imports)
    kernel = Kernel(source.symbol, address, source.scratch_bytes, compile_ms, "llvm", placed)
    return kernel, cache.Entry(source.symbol, source.scratch_bytes, code)


def _place(
    code: bytes, symbol: str, target: Target, imports: Mapping[str, int]
) -> tuple[int, object]:
    """Put an object into executable memory; returns the address and what keeps it mapped."""
    with counts.timed("loading_s"):
        if elf.supported():
            try:
                placed = elf.place(code, symbol, imports)
                return placed.entry, placed
            except elf.Unsupported:
                pass
        return llvm.load(code, symbol, target, imports), None


def _before_fork() -> None:
    # A child forked while another thread is inside LLVM would find LLVM's locks taken for ever.
    # The wait is bounded: the thread that holds the lock might be waiting for the forking thread.
    _forking.held = llvm.lock.acquire(timeout=10.0)


def _after_fork_in_parent() -> None:
    if _forking.held:
        llvm.lock.release()


def _after_fork_in_child() -> None:
    global _locks_guard
    llvm.lock = threading.RLock()
    llvm.forget_jobs()  # their threads are not here
    counts.after_fork_in_child()
    _locks_guard = threading.Lock()
    _locks.clear()


class _Forking(threading.local):
    held = False


_forking = _Forking()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
