"""Compiles and calls kernels straight from their source, for tests of the language itself."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from convgrad._compiler.codegen import KernelBuilder
from convgrad._compiler.jit import elf, host, host_target, llvm
from convgrad._compiler.kernel import KernelSource
from convgrad._compiler.targets import VECTOR_BITS, Target, runnable

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

ROWS = runnable(host.architecture(), host.features())
TARGETS = [row.with_vector_bits(bits) for row in ROWS for bits in VECTOR_BITS]
"""All rows this machine runs, each at all widths."""
HALF_TARGETS = [*TARGETS, *[replace(t, has_half=False) for t in TARGETS if t.has_half]]
"""The same, and once more with float16 converted by integers."""


def label(target: Target) -> str:
    return target.label + ("" if target.has_half or not target.has_fma else "-inthalf")


def others() -> list[Target]:
    """Return the targets of this machine that are not its own; a target's caches do not count."""
    return [t for t in TARGETS if t.label != host_target().label]


def another(turn: int) -> list[Target]:
    """Return one of the other targets, if there are any; turns go through all of them."""
    found = others()
    return [found[turn % len(found)]] if found else []


def foreign(names: Sequence[str], host: int, few: int, more: int) -> list[Any]:
    """Return parameters (name, target, turns, seed): this machine's own target, and another in fewer turns.

    To compile for vectors that the machine does not have takes long, so `make test-long` has more turns of every name
    on every target. Names take the other in rotation: together they are on all targets in any run.
    """
    found = []
    for number, name in enumerate(names):
        for target in (own := host_target(), *another(number)):
            turns = host if target is own else few
            found.append(pytest.param(name, target, turns, 1, id=f"{label(target)}-{name}"))
        for target in TARGETS:
            marked = {"id": f"{label(target)}-more-{name}", "marks": pytest.mark.long}
            found.append(pytest.param(name, target, more, 5, **marked))
    return found


def some_targets(turn: int) -> list[Any]:
    """Return parameters: this machine's own target and another; `make test-long` has the rest."""
    chosen = another(turn)
    return [
        pytest.param(host_target(), id=label(host_target())),
        *(
            pytest.param(t, id=label(t), marks=[] if t in chosen else [pytest.mark.long])
            for t in others()
        ),
    ]


def seeds(few: int, all_of_them: int) -> list[Any]:
    """Return the first seeds for every run, and the others for `make test-long`."""
    long = range(few, all_of_them)
    return [*range(few), *(pytest.param(n, marks=pytest.mark.long) for n in long)]


def few_and_more(few: int, more: int, seed: int) -> list[Any]:
    """Return parameters (turns, seed): a few turns, and more of them, with another seed, in `make test-long`."""
    long = pytest.param(more, seed + 100, id="more", marks=pytest.mark.long)
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
