"""What this machine is: architecture, features, cache sizes; and the target row that follows.

The operating system is asked first and LLVM only where it does not tell, because a process whose
kernels are all on disk must never import llvmlite.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from pathlib import Path

from convgrad._base import config
from convgrad._base.errors import CompileError
from convgrad._base.warnings import warn
from convgrad._compiler import targets
from convgrad._compiler.targets import Target

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

# Where macOS keeps what Linux calls a flag.
_SYSCTL = {
    "avx": "hw.optional.avx1_0",
    "avx2": "hw.optional.avx2_0",
    "fma": "hw.optional.fma",
    "f16c": "hw.optional.f16c",
    "avx512f": "hw.optional.avx512f",
    "avx512bw": "hw.optional.avx512bw",
    "avx512dq": "hw.optional.avx512dq",
    "avx512vl": "hw.optional.avx512vl",
}


def architecture() -> str:
    """Return this process's architecture as triples spell it."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


@cache
def features() -> frozenset[str]:
    """Return the features of this machine, as Linux and LLVM spell them."""
    if sys.platform.startswith("linux"):
        found = cpuinfo_features(_read(_CPUINFO))
        if found:
            return found
    if sys.platform == "darwin":
        return frozenset(name for name, path in _SYSCTL.items() if _sysctl(path))
    if not any(row.needs for row in targets.TARGETS if row.architecture == architecture()):
        return frozenset()
    from . import llvm

    return llvm.host_features()


def cpuinfo_features(text: str) -> frozenset[str]:
    """Return the flags of the first CPU in the text of /proc/cpuinfo.

    >>> sorted(cpuinfo_features("processor : 0\\nflags\\t\\t: sse2 avx2\\n"))
    ['avx2', 'sse2']
    """
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


@cache
def cache_sizes() -> tuple[int | None, int | None, int | None]:
    """Return the bytes of the first three levels of data cache, None where unknown."""
    if sys.platform == "darwin":
        return (
            _sysctl("hw.l1dcachesize") or None,
            _sysctl("hw.l2cachesize") or None,
            _sysctl("hw.l3cachesize") or None,
        )
    sizes: dict[str, int] = {}
    for number in range(5):
        folder = _CACHES / f"index{number}"
        size = _read(folder / "size").strip()
        if size.endswith("K") and size[:-1].isdigit() and "Inst" not in _read(folder / "type"):
            sizes[_read(folder / "level").strip()] = int(size[:-1]) << 10
    return sizes.get("1"), sizes.get("2"), sizes.get("3")


def target() -> Target:
    """Return the row kernels are compiled for: the host's best, or what the switches say."""
    return _choose(config.get("target"), config.get("vector_bits"), config.get("cpu_caches"))


@cache
def _choose(
    wanted: str | None, vector_bits: int | None, caches: config.Caches | None = None
) -> Target:
    rows = targets.runnable(architecture(), features())
    if not rows:
        raise CompileError(f"no kernels are written for the architecture {architecture()!r}")
    row = rows[0]
    if wanted is not None:
        by_name = {candidate.name: candidate for candidate in rows}
        if wanted in by_name:
            row = by_name[wanted]
        else:
            warn(
                f"convgrad: target {wanted!r} is ignored: this machine can run {', '.join(by_name)}"
            )
    row = row.with_caches(*(cache_sizes() if caches is None else caches))
    return row if vector_bits is None else row.with_vector_bits(vector_bits)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _sysctl(name: str) -> int:
    value, size = ctypes.c_int64(0), ctypes.c_size_t(8)
    call = ctypes.CDLL(None).sysctlbyname
    if call(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)):
        return 0
    return value.value
