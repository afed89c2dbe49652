"""Compiles and calls kernels straight from their source, for tests of the language itself."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from convgrad._codegen import KernelBuilder
from convgrad._jit import elf, host, host_target, llvm
from convgrad._kernel import KernelSource
from convgrad._targets import VECTOR_BITS, Target, candidates

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

ROWS = candidates(host.architecture(), host.features())
TARGETS = [row.with_vector_bits(bits) for row in ROWS for bits in VECTOR_BITS]
"""All rows this machine runs, each at all widths."""
HALF_TARGETS = [*TARGETS, *[replace(t, has_half=False) for t in TARGETS if t.has_half]]
"""The same, and once more with float16 converted by integers."""


def label(target: Target) -> str:
    return target.label + ("" if target.has_half or not target.has_fma else "-inthalf")


def foreign(host: int, few: int, more: int) -> list[Any]:
    """Return parameters (target, turns, seed): this machine's own target at length, the others in a few turns.

    To compile for vectors that the machine does not have takes long, so `make test-long` has more of those.
    """
    own = host_target()
    short = [pytest.param(t, host if t == own else few, 1, id=label(t)) for t in TARGETS]
    long = [
        pytest.param(t, more, 5, id=f"{label(t)}-more", marks=pytest.mark.numeric_long)
        for t in TARGETS
        if t != own
    ]
    return [*short, *long]


def few_and_more(few: int, more: int, seed: int) -> list[Any]:
    """Return parameters (turns, seed): a few turns, and more of them, with another seed, in `make test-long`."""
    long = pytest.param(more, seed + 100, id="more", marks=pytest.mark.numeric_long)
    return [pytest.param(few, seed, id="few"), long]


def call(source: KernelSource, target: Target, *words: Any, begin: int = 0, end: int = 1) -> None:
    """Run a kernel on arrays (passed by address) and integers."""
    code = llvm.compile_object(source.ir, target)
    address = (
        elf.load(code, source.symbol) if elf.supported() else llvm.load(code, source.symbol, target)
    )
    block = np.array(
        [word.ctypes.data if isinstance(word, np.ndarray) else word for word in words], np.int64
    )
    scratch = np.zeros(source.scratch_bytes + 64, np.uint8)
    aligned = scratch.ctypes.data + -scratch.ctypes.data % 64
    SIGNATURE(address)(block.ctypes.data, begin, end, aligned)


def run(target: Target, write: Callable[[KernelBuilder], None], *words: Any) -> None:
    """Write a kernel and call it once with begin 0 and end 1."""
    k = KernelBuilder("probe", target)
    write(k)
    call(k.finish(), target, *words)
