"""What this computer can do, measured in the same run: peak arithmetic, memory speed by footprint, cost of a fault.

The measurement runs in a process of its own (``python -m convgrad._bench.machine 2 float32``) because BLAS takes its
number of threads from the environment. The loops are a few lines of LLVM IR, one Python thread per core calling
into them: NumPy's own loops stop short of what a kernel can reach.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from .._jit.llvm import binding
from .._version import __version__
from .problems import Problem

FOOTPRINTS = tuple(int(mb * 2**20) for mb in (0.25, 0.5, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128))
STREAMS = ("copy", "read", "fill")
ACCUMULATORS = 12  # with one multiplier and one addend, 14 of 16 registers


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

    def roofline(self, problem: Problem, op: str, dtype: str) -> float:
        """Return the seconds below which neither the arithmetic nor the traffic of `op` can go here.

        A written byte is paired with a read one at copy speed; what is left over moves at read or fill speed.
        """
        read, written = problem.traffic(op, dtype)
        total, paired = read + written, min(read, written)
        seconds = 2 * paired / self.bandwidth("copy", total)
        rest = "read" if read > written else "fill"
        seconds += (max(read, written) - paired) / self.bandwidth(rest, total)
        return max(problem.flops() / self.peak, seconds)


def probe(threads: int, dtype: str) -> Machine:
    """Measure this computer with so many threads."""
    from .worker import ROOT, child_environment

    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    command = [sys.executable, "-m", "convgrad._bench.machine", str(threads), dtype]
    environment = child_environment(dict.fromkeys(names, str(threads)))
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"measuring the machine failed:\n{done.stderr}")
    found = json.loads(done.stdout)
    streams = {name: tuple(values) for name, values in found.pop("streams").items()}
    return Machine(found.pop("peak"), streams, found.pop("fault_seconds"), found)


def _measure(threads: int, dtype: str) -> dict[str, Any]:
    double = dtype == "float64"
    jit = _compile(double)
    loop_peak = _loop_peak(jit, threads, double)
    blas_peak = _blas_peak(double)
    streams = {
        name: _never_rising([_stream(jit, name, size, threads) for size in FOOTPRINTS])
        for name in STREAMS
    }
    return {
        "peak": max(loop_peak, blas_peak),
        "peak_fma_loop": loop_peak,
        "peak_blas": blas_peak,
        "streams": streams,
        "fault_seconds": _fault_cost(),
    }


def _never_rising(speeds: list[float]) -> list[float]:
    """A smaller footprint is at least as fast as a larger one; if it measured slower, that was noise."""
    return [max(speeds[at:]) for at in range(len(speeds))]


def _fast_lanes(double: bool) -> int:
    wide = binding().get_host_cpu_features().get("avx512f", False)
    return (16 if wide else 8) // (2 if double else 1)


def _compile(double: bool) -> Any:
    llvm = binding()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3
    )
    module = llvm.parse_assembly(_fma_text(double) + "".join(map(_stream_text, STREAMS)))
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    return engine


def _fma_text(double: bool) -> str:
    """``a[i] = a[i] * 0.5 + 1`` on independent vectors; the sum is stored so that nothing is dead."""
    name, kind = ("f64", "double") if double else ("f32", "float")
    lanes = _fast_lanes(double)
    vector = f"<{lanes} x {kind}>"
    half, one = (f"<{', '.join([f'{kind} {value}'] * lanes)}>" for value in ("0.5", "1.0"))
    each = range(ACCUMULATORS)
    phis = "\n".join(
        f"  %a{i} = phi {vector} [zeroinitializer, %entry], [%b{i}, %loop]" for i in each
    )
    call = f"call {vector} @llvm.fma.v{lanes}{name}"
    steps = "\n".join(
        f"  %b{i} = {call}({vector} %a{i}, {vector} {half}, {vector} {one})" for i in each
    )
    sums = "\n".join(
        f"  %s{i} = fadd {vector} %{f's{i - 1}' if i > 1 else 'b0'}, %b{i}" for i in each[1:]
    )
    return f"""
declare {vector} @llvm.fma.v{lanes}{name}({vector}, {vector}, {vector})
define void @fma(ptr %out, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{phis}
{steps}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
{sums}
  store {vector} %s{ACCUMULATORS - 1}, ptr %out, align 4
  ret void
}}
"""


def _stream_text(name: str) -> str:
    """Go over `size` bytes `passes` times, 256 at a step; `read` adds up what it loads."""
    vector, parts = "<16 x float>", range(4)
    loads = "\n".join(
        f"  %f{i} = getelementptr i8, ptr %from, i64 %p{i}\n  %v{i} = load {vector}, ptr %f{i}, align 64"
        for i in parts
    )
    values = [f"%v{i}" for i in parts] if name == "copy" else ["zeroinitializer"] * 4
    stores = "\n".join(
        f"  %t{i} = getelementptr i8, ptr %to, i64 %p{i}\n  store {vector} {values[i]}, ptr %t{i}, align 64"
        for i in parts
    )
    adds = "\n".join(f"  %w{i} = fadd {vector} %u{i}, %v{i}" for i in parts)
    phis = "\n".join(
        f"  %u{i} = phi {vector} [zeroinitializer, %pass], [%w{i}, %loop]" for i in parts
    )
    sums = "\n".join(f"  store {vector} %w{i}, ptr %to, align 64" for i in parts)
    offsets = "\n".join(f"  %p{i} = add i64 %at, {64 * i}" for i in parts)
    body = {"copy": loads + "\n" + stores, "read": loads + "\n" + adds, "fill": stores}[name]
    return f"""
define void @{name}(ptr %to, ptr %from, i64 %size, i64 %passes) {{
entry:
  br label %pass
pass:
  %n = phi i64 [0, %entry], [%again, %end]
  br label %loop
loop:
  %at = phi i64 [0, %pass], [%next, %loop]
{phis if name == "read" else ""}
{offsets}
{body}
  %next = add i64 %at, 256
  %more = icmp ult i64 %next, %size
  br i1 %more, label %loop, label %end
end:
{sums if name == "read" else ""}
  %again = add i64 %n, 1
  %unfinished = icmp ult i64 %again, %passes
  br i1 %unfinished, label %pass, label %done
done:
  ret void
}}
"""


def _in_threads(jobs: Sequence[Callable[[], object]]) -> float:
    """Run jobs at the same time, each in its own thread, and return the seconds from first start to last end.

    The threads read the clock themselves: with every core busy, the caller may wake up late.
    """
    gate = threading.Barrier(len(jobs))
    spans: list[tuple[float, float]] = []

    def run(job: Callable[[], object]) -> None:
        gate.wait()
        start = time.perf_counter()
        job()
        spans.append((start, time.perf_counter()))

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(end for _, end in spans) - min(start for start, _ in spans)


def _loop_peak(jit: Any, threads: int, double: bool) -> float:
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(
        jit.get_function_address("fma")
    )
    outputs = [np.zeros(64) for _ in range(threads)]
    flops_per_step = 2 * ACCUMULATORS * _fast_lanes(double)
    count, best = 500_000, 0.0
    for _ in range(24):
        jobs = [partial(function, out.ctypes.data, count) for out in outputs]
        best = max(best, threads * count * flops_per_step / _in_threads(jobs))
    return best


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


def _stream(jit: Any, name: str, footprint: int, threads: int) -> float:
    """Return bytes moved per second when all threads together touch `footprint` bytes again and again."""
    kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function = ctypes.CFUNCTYPE(None, *kinds)(jit.get_function_address(name))
    arrays = 2 if name == "copy" else 1
    size = footprint // threads // arrays // 256 * 256
    blocks = [_aligned(size) for _ in range(threads * 2)]
    passes = max(1, int(0.005 * 30e9 / (size * arrays)))
    best = 0.0
    for _ in range(10):
        jobs: list[Callable[[], object]] = []
        for to, source in zip(blocks[::2], blocks[1::2], strict=True):
            first = source if name == "fill" else to
            jobs.append(partial(function, first.ctypes.data, source.ctypes.data, size, passes))
        best = max(best, threads * arrays * size * passes / _in_threads(jobs))
    return best


def _aligned(size: int) -> Any:
    block = np.zeros(size + 64, np.uint8)
    block[:] = 1
    start = -block.ctypes.data % 64
    return block[start : start + size]


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


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]), sys.argv[2])))
