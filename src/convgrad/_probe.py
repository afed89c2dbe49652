"""What this machine can do at best: multiply-adds and copied bytes per second, measured once per process.

The figures are the two roofs of a roofline: no kernel is faster than both. They are measured with the threads a call
would use, in about 30 ms, and only when somebody asks (`explain`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import _jit, _prepare
from ._codegen import F32, KernelBuilder, symbol
from ._kernel import Kernel, KernelSource
from ._program import Launch, Program
from ._runtime.bound import Bound
from ._runtime.pointers import data_pointer
from ._runtime.run import run
from ._runtime.threads import get_num_threads
from ._targets import Target

_ROUNDS = 20_000
_CHAINS = 12
"""Independent chains of multiply-adds: latency 4 times throughput 2, and some to spare."""
_BLOCK = 1 << 18
"""Bytes copied by one item."""


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
    target, threads = _jit.host_target(), get_num_threads()
    key = (target, threads)
    if key not in _measured:
        near, far = target.l3_bytes // 4, 4 * target.l3_bytes
        _measured[key] = Roof(
            threads, _peak(target, threads), _copy(target, near), _copy(target, far)
        )
    return _measured[key]


def _peak(target: Target, threads: int) -> float:
    kernel = _jit.load(("probe_fma",), lambda: _emit_fma(target), target)
    sink = np.zeros(64 * 256, np.float32)
    program = _bound(kernel, (0,), (_ROUNDS,), threads)
    best = _best(lambda: run(program, data_pointer(sink), 0, 0))
    return 2.0 * _ROUNDS * _CHAINS * target.lanes(4) * threads / best / 1e9


def _copy(target: Target, nbytes: int) -> float:
    kernel = _jit.load(("probe_copy",), lambda: _emit_copy(target), target)
    blocks = max(2, nbytes // 2 // _BLOCK)
    first, second = (np.ones(blocks * _BLOCK, np.uint8) for _ in range(2))
    program = _bound(kernel, (0, 1), (), blocks)
    best = _best(lambda: run(program, data_pointer(first), data_pointer(second), 0))
    return 2.0 * blocks * _BLOCK / best


def _bound(kernel: Kernel, places: tuple[int, ...], words: tuple[int, ...], items: int) -> Bound:
    """Return a program that is one kernel over its items, one at a time."""
    program = Program((kernel.symbol,), (Launch(0, places, words, items, 1, 0),))
    return _prepare.bind_to(program, [kernel])


def _best(action: Callable[[], None], rounds: int = 5) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def _emit_fma(target: Target) -> KernelSource:
    k = KernelBuilder(symbol("probe_fma", "f32", str(_CHAINS), target), target)
    lanes = k.lanes(F32)
    sink, rounds = k.arg_pointer(0, F32), k.arg_i64(1)
    factor = k.constant(F32, lanes, 0.5)
    chains = [k.variable(k.constant(F32, lanes, float(i))) for i in range(_CHAINS)]
    with k.loop(0, rounds, carry=chains, nonempty=True):
        for chain in chains:
            chain.value = k.fma(chain.value, factor, factor)
    total = chains[0].value
    for chain in chains[1:]:
        total = total + chain.value
    sink.offset(k.begin * 64).store(total)
    return k.finish()


def _emit_copy(target: Target) -> KernelSource:
    k = KernelBuilder(symbol("probe_copy", "f32", str(_BLOCK), target), target)
    lanes = k.lanes(F32)
    source, sink = k.arg_pointer(0, F32), k.arg_pointer(1, F32)
    elements = _BLOCK // F32.size
    with k.loop(k.begin * elements, k.end * elements, 4 * lanes) as i:
        for part in range(4):
            at = i + part * lanes
            sink.offset(at).store(source.offset(at).load(lanes))
    return k.finish()
