"""What this machine can do at best: multiply-adds and moved bytes per second, with the threads a call would use.

These are the two roofs of a roofline: no kernel is faster than both. `explain` asks for a quick answer (`roof`), which
is measured once per process. The benchmarks measure longer and at many footprints, with the same kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._compiler import jit
from .._compiler.codegen import F32, F64, Element, KernelBuilder, symbol
from .._compiler.kernel import Kernel, KernelSource
from .._compiler.targets import Target
from .._runtime.bound import Bound
from .._runtime.pointers import data_pointer
from .._runtime.program import Launch, Program
from .._runtime.run import run
from .._runtime.threads import get_num_threads
from . import prepare

STREAMS = ("copy", "read", "fill")
_CHAINS = 12
"""Independent chains of multiply-adds: latency 4 times throughput 2, and some to spare. With the two constants they
take 14 of 16 registers."""
_PARTS = 4
"""Vectors moved by one step of a loop."""
_LINE = 64
"""Bytes: the distance between two threads' results."""


@dataclass(frozen=True)
class Roof:
    """Speeds of this machine with a number of threads."""

    threads: int
    gflops: float
    """Float32 multiply-adds, two operations each, in 10**9 per second."""
    near_bytes: float
    """Bytes per second read and written where everything is in cache."""
    far_bytes: float
    """The same from and to memory."""

    def seconds(self, flops: int, nbytes: int, cache_bytes: int, itemsize: int) -> float:
        """Return the least time for some work: the higher of the two roofs."""
        peak = self.gflops * 1e9 * (0.5 if itemsize == 8 else 1.0)
        return max(
            flops / peak, nbytes / (self.near_bytes if nbytes < cache_bytes else self.far_bytes)
        )


_measured: dict[tuple[Target, int], Roof] = {}


def roof() -> Roof:
    """Measure, or remember."""
    target, threads = jit.host_target(), get_num_threads()
    key = (target, threads)
    if key not in _measured:
        near, far = (stream("copy", size) for size in (target.l3_bytes // 4, 4 * target.l3_bytes))
        _measured[key] = Roof(threads, peak() / 1e9, near, far)
    return _measured[key]


def peak(double: bool = False, steps: int = 20_000, rounds: int = 5) -> float:
    """Return float32 or float64 operations per second in registers; a multiply-add counts as two."""
    of = F64 if double else F32
    target, threads = jit.host_target(), get_num_threads()
    kernel = jit.load(("probe_peak", of.short), lambda: _emit_peak(target, of), target)
    sink = np.zeros(threads * _LINE, np.uint8)
    program = _bound(kernel, ("sink",), (steps,), threads)
    best = _best(lambda: run(program, data_pointer(sink)), rounds)
    return 2.0 * steps * _CHAINS * target.lanes(of.size) * threads / best


def stream(name: str, footprint: int, seconds: float = 0.0, rounds: int = 5) -> float:
    """Return bytes per second when all threads together go over `footprint` bytes again and again.

    `copy` reads one half and writes the other, `read` reads all, `fill` writes all. Each round goes over it once, or as
    often as takes about `seconds`.
    """
    target, threads = jit.host_target(), get_num_threads()
    kernel = jit.load(("probe_stream", name), lambda: _emit_stream(target, name), target)
    arrays = 2 if name == "copy" else 1
    step = _PARTS * target.vector_bits // 8
    size = max(1, footprint // threads // arrays // step) * step
    first, second = (_aligned(threads * size) for _ in range(2))
    passes = max(1, int(seconds * 30e9 / (size * arrays)))
    program = _bound(kernel, ("first", "second"), (size // F32.size, passes), threads)
    best = _best(lambda: run(program, data_pointer(first), data_pointer(second)), rounds)
    return float(threads * arrays * size * passes / best)


def _aligned(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return memory that begins with a cache line and whose pages are there."""
    block = np.ones(size + _LINE, np.uint8)
    start = -data_pointer(block) % _LINE
    return block[start : start + size]


def _bound(kernel: Kernel, names: tuple[str, ...], words: tuple[int, ...], items: int) -> Bound:
    """Return a program that is one kernel over its items, one at a time."""
    program = Program(
        (kernel.symbol,), names, (Launch(0, (*range(len(names)),), words, items, 1, 0),)
    )
    return prepare.bind_to(program, [kernel])


def _best(action: Callable[[], None], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def _emit_peak(target: Target, of: Element) -> KernelSource:
    """Words: where the sums go, and how many steps. An item is one thread's work."""
    k = KernelBuilder(symbol("probe_peak", of.short, str(_CHAINS), target), target)
    lanes = k.lanes(of)
    sink, steps = k.arg_pointer(0, of), k.arg_i64(1)
    factor = k.constant(of, lanes, 0.5)
    with k.loop(k.begin, k.end) as item:
        chains = [k.variable(k.constant(of, lanes, float(i))) for i in range(_CHAINS)]
        with k.loop(0, steps, carry=chains, nonempty=True):
            for chain in chains:
                chain.value = k.fma(chain.value, factor, factor)
        total = chains[0].value
        for chain in chains[1:]:
            total = total + chain.value
        sink.offset(item * (_LINE // of.size)).store(total)
    return k.finish()


def _emit_stream(target: Target, name: str) -> KernelSource:
    """Words: where to, where from, elements per item, passes. An item is one thread's part of the memory."""
    k = KernelBuilder(symbol(f"probe_{name}", "f32", str(_PARTS), target), target)
    lanes = k.lanes(F32)
    sink, source = k.arg_pointer(0, F32), k.arg_pointer(1, F32)
    size, passes = k.arg_i64(2), k.arg_i64(3)
    zeros = k.zeros(F32, lanes)
    with k.loop(k.begin, k.end) as item, k.loop(0, passes, nonempty=True):
        sums = [k.variable(zeros) for _ in range(_PARTS)]
        start = item * size
        carry = sums if name == "read" else ()
        with k.loop(start, start + size, _PARTS * lanes, carry=carry, nonempty=True) as i:
            places = [i + part * lanes for part in range(_PARTS)]
            if name == "fill":
                for at in places:
                    sink.offset(at).store(zeros)
            elif name == "copy":
                for at in places:
                    sink.offset(at).store(source.offset(at).load(lanes))
            else:
                for total, at in zip(sums, places, strict=True):
                    total.value = total.value + source.offset(at).load(lanes)
        if name == "read":  # so that nothing is read in vain
            for part, total in enumerate(sums):
                sink.offset(start + part * lanes).store(total.value)
    return k.finish()
