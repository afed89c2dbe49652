"""Compiles and calls kernels straight from their source, for tests of the language itself."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from convgrad._codegen import KernelBuilder
from convgrad._jit import elf, host, llvm
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
