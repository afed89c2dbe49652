"""What this computer can do, measured in the same run: peak arithmetic, memory speed by footprint, cost of a fault.

The measurement runs in a process of its own (`main`) because BLAS takes its number of
threads from the environment. Peak and memory speed are those of `_engine.probe`: NumPy's own loops stop
short of what a kernel can reach.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ..._base import children
from ..._base.version import __version__
from ..._engine import probe as _probe
from .layers import Layer

FOOTPRINTS = tuple(int(mb * 2**20) for mb in (0.25, 0.5, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128))


@dataclass(frozen=True)
class Machine:
    """Peak in flops per second, streams in bytes per second at each of `FOOTPRINTS`."""

    peak: float
    streams: Mapping[str, tuple[float, ...]]
    fault_seconds: float
    """What one first-touch page fault costs."""
    details: dict[str, Any]

    def bandwidth(self, stream: str, footprint: float) -> float:
        """Return bytes per second, interpolated between the measured footprints on a logarithmic axis."""
        at = [math.log(size) for size in FOOTPRINTS]
        return float(np.interp(math.log(max(footprint, 1)), at, self.streams[stream]))

    def best_of(self, other: Machine) -> Machine:
        """Merge two measurements of the same computer: noise only ever slows down."""
        streams = {
            name: tuple(map(max, speeds, other.streams[name]))
            for name, speeds in self.streams.items()
        }
        faster = max(self, other, key=lambda machine: machine.peak)
        fault = min(self.fault_seconds, other.fault_seconds)
        return Machine(faster.peak, streams, fault, faster.details)

    def roofline(self, layer: Layer, op: str, dtype: str) -> float:
        """Return the seconds below which neither the arithmetic nor the traffic of `op` can go here.

        A written byte is paired with a read one at copy speed; what is left over moves at read or fill speed.
        """
        moved = _streams(layer, op, dtype)
        total = sum(moved.values())
        seconds = sum(part / self.bandwidth(stream, total) for stream, part in moved.items())
        return max(layer.flops() / self.peak, seconds)


def _streams(layer: Layer, op: str, dtype: str) -> dict[str, int]:
    """Return the bytes of each stream an operation moves."""
    read, written = layer.traffic(op, dtype)
    paired = min(read, written)
    return {"copy": 2 * paired, "read" if read > written else "fill": max(read, written) - paired}


def footprints(turns: Iterable[tuple[Layer, str]], dtype: str) -> dict[str, list[int]]:
    """Return which of `FOOTPRINTS` the rooflines of some layers need, by stream.

    Those are the two around each, and what every report states: the smallest and the largest copy. Measuring all
    of them takes 6 s, most of it for the largest of each stream; those of one layer take a third of that.
    """
    wanted: dict[str, set[int]] = {name: set() for name in _probe.STREAMS}
    wanted["copy"] |= {0, 1, len(FOOTPRINTS) - 1}  # the second keeps noise out of the first
    for layer, op in turns:
        moved = _streams(layer, op, dtype)
        above = bisect_left(FOOTPRINTS, sum(moved.values()))
        for stream in moved:
            wanted[stream] |= {max(0, above - 1), min(above, len(FOOTPRINTS) - 1)}
    return {name: sorted(places) for name, places in wanted.items()}


def probe(threads: int, dtype: str, wanted: Mapping[str, Sequence[int]]) -> Machine:
    """Measure this computer with so many threads, at the wanted places of `FOOTPRINTS`."""
    names = (
        "CONVGRAD_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    )
    request = json.dumps([dtype, {name: list(at) for name, at in wanted.items()}])
    command = children.command(__name__, "main", request)
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring the machine failed:\n{done.stderr}")
    found = json.loads(done.stdout)
    streams = {name: tuple(values) for name, values in found.pop("streams").items()}
    return Machine(found.pop("peak"), streams, found.pop("fault_seconds"), found)


def _measure(dtype: str, wanted: dict[str, list[int]]) -> dict[str, Any]:
    double = dtype == "float64"
    loop_peak = _probe.peak(double, steps=500_000, rounds=24)
    blas_peak = _blas_peak(double)
    streams = {
        name: _between(
            places,
            [_probe.stream(name, FOOTPRINTS[at], seconds=0.005, rounds=10) for at in places],
        )
        for name, places in wanted.items()
    }
    return {
        "peak": max(loop_peak, blas_peak),
        "peak_fma_loop": loop_peak,
        "peak_blas": blas_peak,
        "streams": streams,
        "fault_seconds": _fault_cost(),
    }


def _between(places: list[int], speeds: list[float]) -> list[float]:
    """Return a speed for each of `FOOTPRINTS`: measured, or on the line between the measured ones."""
    if not places:
        return [math.nan] * len(FOOTPRINTS)
    at = [math.log(size) for size in FOOTPRINTS]
    known = _never_rising(speeds)
    return [float(each) for each in np.interp(at, [at[place] for place in places], known)]


def _never_rising(speeds: list[float]) -> list[float]:
    """A smaller footprint is at least as fast as a larger one; if it measured slower, that was noise."""
    return [max(speeds[at:]) for at in range(len(speeds))]


def _blas_peak(double: bool) -> float:
    size = 1536
    a = np.ones((size, size), np.float64 if double else np.float32)
    out = a @ a
    best = math.inf
    for _ in range(6):
        start = time.perf_counter()
        np.matmul(a, a, out=out)
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def _fault_cost() -> float:
    """Touch fresh pages and divide; private memory, because a shared mapping costs more."""
    import mmap

    size, page = 32 * 2**20, mmap.PAGESIZE
    best = math.inf
    for _ in range(3):
        flags = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if os.name == "posix" else {}
        block = mmap.mmap(-1, size, **flags)
        view = np.frombuffer(block, np.uint8)
        start = time.perf_counter()
        view[::page] = 1
        best = min(best, time.perf_counter() - start)
    return best / (size / page)


def describe(versions: dict[str, str], threads: int) -> dict[str, Any]:
    """Say what the numbers were measured on."""
    installed = {"convgrad": __version__, "numpy": np.__version__, **versions}
    installed["python"] = platform.python_version()
    with contextlib.suppress(PackageNotFoundError):
        installed["llvmlite"] = version("llvmlite")
    cpu = _cpuinfo()
    wanted = (
        "avx2",
        "fma",
        "f16c",
        "avx512f",
        "avx512_bf16",
        "avx512_fp16",
        "amx_tile",
        "asimd",
        "sve",
        "bf16",
    )
    return {
        "cpu": cpu.get("model name") or platform.processor() or platform.machine(),
        "features": [
            name for name in wanted if name in cpu.get("flags", cpu.get("Features", "")).split()
        ],
        "cpus": os.cpu_count(),
        "threads": threads,
        "system": f"{platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}".strip(
            ", "
        ),
        "huge_pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "versions": installed,
    }


def _cpuinfo() -> dict[str, str]:
    lines = (line.split(":", 1) for line in _read("/proc/cpuinfo").splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in lines}


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def main() -> None:
    """Be the child: measure what is asked for and print it."""
    print(json.dumps(_measure(*json.loads(sys.argv[1]))))
