"""A pack as data: which problems, who computes them, with which kernels, tables and memory.

Problems are planned for the pack's target and sorted by descriptor, so that a pack is the same whatever the order they
came in. A kernel's symbol is a hash of its text, target and triple: packs of different versions can be linked into one
program, and equal kernels of two packs are one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ... import _kernels
from ..._base import config, dtypes
from ..._base.errors import ArgumentError
from ..._compiler.jit import objects, symbols
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import System, Target
from ..._engine import planner, prepare
from ..._problem import text as _problem_text
from ..._problem.convolution import Kind, Problem
from ..._runtime.cpus import available_cpus
from ..._runtime.program import Program
from . import names
from .object_size import loaded_bytes

MOST_WORDS = 96
MOST_PLACES = 6
MOST_WORKERS = 256
"""As in convgrad_pack.h."""
DTYPES = {row: row.tensorflow for row in dtypes.FLOATING}
"""TensorFlow's numbers."""
_KINDS = (Kind.FORWARD, Kind.INPUT_GRADIENT, Kind.FILTER_GRADIENT)
_LAYOUTS = ("NHWC", "NCHW")
_MOST_BYTES = {"wasm32": 2**31, "thumbv7em": 2**31}
"""Memory of one call, by architecture."""
_MOST_BYTES_WIDE = 2**54
_MOST_CELLS = 1 << 18
"""Rows or columns of an image: planning goes through them one by one."""

Advance = Callable[[int, str], None]
"""Is told how many problems were planned or kernels compiled since, and what is going on now."""


@dataclass(frozen=True)
class Code:
    """A kernel of the pack."""

    symbol: str
    object: bytes

    @cached_property
    def nbytes(self) -> int:
        """Bytes of code and constants."""
        return loaded_bytes(self.object)


@dataclass(frozen=True)
class Entry:
    """A problem of the pack."""

    problem: Problem
    name: str
    """Of its function."""
    algorithm: str
    program: Program
    codes: tuple[Code, ...]
    """The program's kernels, in its order of them."""
    own_scratch: tuple[int, ...]
    """Workspace that each of them asks for itself."""

    @cached_property
    def line(self) -> str:
        return _problem_text.write(self.problem)

    @cached_property
    def worker_bytes(self) -> int:
        """Workspace of one thread: the most that a launch asks for."""
        launches = self.program.launches
        return max(
            (each.scratch_bytes + self.own_scratch[each.kernel] for each in launches),
            default=0,
        )

    @property
    def scratch_bytes(self) -> int:
        """What the caller brings to run on one thread."""
        parts = (self.program.partial_bytes, self.program.packed_bytes, self.worker_bytes)
        return sum(-(-part // 64) * 64 for part in parts)

    @property
    def most_workers(self) -> int:
        """Threads there is work for."""
        if self.program.serial:
            return 1
        chunks = [-(-each.items // each.fewest) for each in self.program.launches]
        return max(1, min(max(chunks, default=1), MOST_WORKERS))

    @property
    def operand_bytes(self) -> tuple[int, int, int]:
        """Bytes of first, second and result. Operands that nobody reads may have any size."""
        if not self.program.launches:
            return 0, 0, self.problem.result_bytes
        return (*self.problem.operand_bytes, self.problem.result_bytes)

    @property
    def code_bytes(self) -> int:
        return sum(code.nbytes for code in self.codes)

    @property
    def table_bytes(self) -> int:
        return sum(len(table) for table in {each.table for each in self.program.launches})

    @property
    def word_bytes(self) -> int:
        return 8 * sum(len(each.words) for each in self.program.launches)


@dataclass(frozen=True)
class Refused:
    """A problem no kernel takes."""

    problem: Problem
    line: str
    reason: str


@dataclass(frozen=True)
class Pack:
    """All that is written down."""

    name: str
    target: Target
    system: System
    winograd: str
    """The switch that plans were made with."""
    entries: tuple[Entry, ...]
    refused: tuple[Refused, ...] = ()

    @cached_property
    def codes(self) -> tuple[Code, ...]:
        """The kernels, each once, by symbol."""
        found = {code.symbol: code for entry in self.entries for code in entry.codes}
        return tuple(found[symbol] for symbol in sorted(found))

    @cached_property
    def tables(self) -> dict[bytes, str]:
        """The tables and their names in C, each once, by name."""
        found = {
            launch.table
            for entry in self.entries
            for launch in entry.program.launches
            if launch.table
        }
        named = {f"{self.name}_table_{_hash(table)}": table for table in found}
        return {named[name]: name for name in sorted(named)}

    @property
    def code_bytes(self) -> int:
        return sum(code.nbytes for code in self.codes)

    @property
    def table_bytes(self) -> int:
        return sum(map(len, self.tables))

    @property
    def word_bytes(self) -> int:
        return sum(entry.word_bytes for entry in self.entries)

    @property
    def scratch_bytes(self) -> int:
        """Memory that is enough for every entry on one thread."""
        return max((entry.scratch_bytes for entry in self.entries), default=0)

    @property
    def label(self) -> str:
        return f"{self.target.label} {self.system.triple}"


def descriptor(problem: Problem) -> tuple[int, ...]:
    """Return the numbers of a problem's `cg_problem`, in their order."""
    rows, cols = problem.rows, problem.cols
    return (
        *(_KINDS.index(problem.kind), DTYPES[problem.dtype]),
        *(_LAYOUTS.index(problem.data_format), int(problem.depthwise)),
        *(problem.batch, rows.size, cols.size, problem.in_c, problem.out_c, problem.groups),
        *(rows.window, cols.window, rows.stride, cols.stride, rows.dilation, cols.dilation),
        *(rows.before, rows.after, cols.before, cols.after),
    )


def make(
    name: str,
    problems: Iterable[Problem],
    target: Target,
    system: System,
    *,
    skip_refused: bool = False,
    advance: Advance = lambda done, text: None,
) -> Pack:
    """Plan the problems, write and compile their kernels."""
    wanted, refused = _sorted(problems)
    planned: list[tuple[Problem, str, Program, list[KernelSource]]] = []
    written: dict[Any, KernelSource] = {}
    for problem in wanted:
        line = _problem_text.write(problem)
        advance(1, f"planning {line}")
        reason = _too_large(problem, target)
        plan = None if reason else planner.choose(problem, target)
        if plan is not None and not plan.steps and not problem.is_empty:
            reason = _why_not(problem, target)
        if plan is None or reason:
            refused.append(Refused(problem, line, reason or ""))
            continue
        program = prepare.numbered(plan)
        for identity in prepare.identities(plan):
            if identity not in written:
                source = _kernels.emit(identity, target)
                written[identity] = symbols.in_pack(source, target, system.triple)
        kernels = [written[identity] for identity in prepare.identities(plan)]
        reason = _no_room(program, [each.scratch_bytes for each in kernels], problem, target)
        if reason:
            refused.append(Refused(problem, line, reason))
        else:
            planned.append((problem, plan.algorithm, program, kernels))
    if refused and not skip_refused:
        first = refused[0]
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise ArgumentError(
            f"export: `problems` must be such as kernels compute; `{first.line}` is refused{more}: {first.reason}."
        )
    # Not all that were written: some may be of problems that were refused afterwards.
    sources = {each.symbol: each for *_, kernels in planned for each in kernels}
    codes = _compiled(sources, target, system, advance)
    entries = tuple(
        Entry(
            problem,
            names.function(name, problem),
            algorithm if program.launches else "zeros",
            program,
            tuple(codes[each.symbol] for each in kernels),
            tuple(each.scratch_bytes for each in kernels),
        )
        for problem, algorithm, program, kernels in planned
    )
    winograd: str = config.get("winograd")
    return Pack(name, target, system, winograd, entries, tuple(refused))


def _sorted(problems: Iterable[Problem]) -> tuple[list[Problem], list[Refused]]:
    """Return the problems in order of their descriptors, each once, and those whose dtype no kernel has."""
    found: dict[tuple[int, ...], Problem] = {}
    refused: dict[str, Refused] = {}
    for problem in problems:
        if problem.dtype in DTYPES:
            # Empty problems may differ in what no element depends on. One is kept, whatever the order.
            key = descriptor(problem)
            same = found.setdefault(key, problem)
            if same != problem:
                found[key] = min(same, problem, key=_problem_text.write)
        else:
            line = _problem_text.write(problem)
            refused[line] = Refused(problem, line, f"no kernel computes in {problem.dtype.name}")
    return [found[key] for key in sorted(found)], [refused[line] for line in sorted(refused)]


def _too_large(problem: Problem, target: Target) -> str | None:
    """Return why a problem must not even be planned, or None."""
    longest = max(problem.rows.size, problem.cols.size, problem.rows.out, problem.cols.out)
    if longest > _MOST_CELLS:
        return f"images have at most {_MOST_CELLS:,} rows and columns in a pack"
    return _does_not_fit(sum(problem.operand_bytes) + problem.result_bytes, target)


def _does_not_fit(needed: int, target: Target) -> str | None:
    most = _MOST_BYTES.get(target.architecture, _MOST_BYTES_WIDE)
    if needed < most:
        return None
    return (
        f"its arrays and scratch have {needed:,} bytes, and {target.name} has room for {most:,} "
        f"in one address space"
    )


def _why_not(problem: Problem, target: Target) -> str:
    reasons = dict.fromkeys(
        f"{name}: {reason}"
        for name, reason in planner.refusals(problem, target).items()
        if reason is not None
    )
    return f"no kernel takes it ({'; '.join(reasons)})"


def _no_room(program: Program, own: Sequence[int], problem: Problem, target: Target) -> str | None:
    """Return what convgrad_pack.h or the target's address space has no room for, or None."""
    worker = 0
    for launch in program.launches:
        count = len(launch.places) + bool(launch.table) + len(launch.words)
        if len(launch.places) > MOST_PLACES or count > MOST_WORDS:
            return (
                f"kernels must have at most {MOST_WORDS} words and {MOST_PLACES} pointers, "
                f"one has {count} and {len(launch.places)}"
            )
        worker = max(worker, launch.scratch_bytes + own[launch.kernel])
    scratch = program.partial_bytes + program.packed_bytes + worker
    total = sum(problem.operand_bytes) + problem.result_bytes + scratch
    return _does_not_fit(total + sum(len(each.table) for each in program.launches), target)


def _compiled(
    sources: dict[str, KernelSource], target: Target, system: System, advance: Advance
) -> dict[str, Code]:
    ordered = [sources[symbol] for symbol in sorted(sources)]
    advance(0, "compiling")
    compiled = objects.compile_all(
        ordered,
        target,
        system.triple,
        processes=available_cpus(),
        progress=lambda done, all, symbol: advance(1, f"compiling {done} of {all} kernels"),
    )
    return {
        source.symbol: Code(source.symbol, code)
        for source, code in zip(ordered, compiled, strict=True)
    }


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
