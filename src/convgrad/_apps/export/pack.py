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
from ..._kernels.norm import plan as _norm_plan
from ..._problem.convolution import Kind, Problem
from ..._runtime.cpus import available_cpus
from ..._runtime.program import Launch, Program
from . import names, recipe
from .object_size import loaded_bytes
from .recipe import Asked, Block, Recipe

MOST_WORDS = 96
MOST_POINTERS = 6
MOST_PLACES = 24
MOST_WORKERS = 256
"""As in convgrad_pack.h."""
DTYPES = {row: row.tensorflow for row in dtypes.FLOATING}
"""TensorFlow's numbers."""
_KINDS = (Kind.FORWARD, Kind.INPUT_GRADIENT, Kind.FILTER_GRADIENT)
_LAYOUTS = ("NHWC", "NCHW")
_SIDES = ("", "input", "output")
_OTHER = len(_KINDS)
_DESCRIPTOR = 21
"""Numbers of a `cg_problem`."""
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
class PackedProgram:
    """A program of an entry."""

    program: Program
    codes: tuple[Code, ...]
    """The program's kernels, in its order of them."""
    own_scratch: tuple[int, ...]
    """Workspace that each of them asks for itself."""
    seen: tuple[int | None, ...]
    """Which of the entry's places are those of the program; None for a null pointer."""


@dataclass(frozen=True)
class Entry:
    """A problem of the pack: a convolution, batch norm, or a block of both."""

    recipe: Recipe
    name: str
    """Of its function."""
    algorithm: str
    parts: tuple[PackedProgram, ...]

    @property
    def line(self) -> str:
        return self.recipe.line

    @property
    def problem(self) -> Problem | None:
        """The convolution that this is; None for anything more."""
        return self.recipe.problem

    @cached_property
    def codes(self) -> tuple[Code, ...]:
        """The kernels, each once."""
        return tuple(dict.fromkeys(code for part in self.parts for code in part.codes))

    @cached_property
    def launches(self) -> tuple[tuple[PackedProgram, Launch], ...]:
        return tuple((part, launch) for part in self.parts for launch in part.program.launches)

    @property
    def partial_bytes(self) -> int:
        """Of any part: they run one after the other."""
        return max(part.program.partial_bytes for part in self.parts)

    @property
    def packed_bytes(self) -> int:
        return max(part.program.packed_bytes for part in self.parts)

    @property
    def temporary_bytes(self) -> int:
        """Bytes of places that lie in the scratch, each on a boundary."""
        places = self.recipe.places
        return sum(_up(place.nbytes) for place in places if place.role == "temporary")

    @cached_property
    def worker_bytes(self) -> int:
        """Workspace of one thread: the most that a launch asks for."""
        return max(
            (each.scratch_bytes + part.own_scratch[each.kernel] for part, each in self.launches),
            default=0,
        )

    @property
    def shared_bytes(self) -> int:
        """Scratch that all threads share."""
        return sum(map(_up, (self.partial_bytes, self.packed_bytes, self.temporary_bytes)))

    @property
    def scratch_bytes(self) -> int:
        """What the caller brings to run on one thread."""
        return self.shared_bytes + _up(self.worker_bytes)

    @property
    def most_workers(self) -> int:
        """Threads there is work for."""
        chunks = [
            -(-each.items // each.fewest) for part, each in self.launches if not part.program.serial
        ]
        return max(1, min(max(chunks, default=1), MOST_WORKERS))

    @property
    def operand_bytes(self) -> tuple[int, ...]:
        """Bytes of the places that the caller brings. Operands that nobody reads may have any size."""
        return tuple(place.nbytes for place in self.recipe.callers)

    @property
    def code_bytes(self) -> int:
        return sum(code.nbytes for code in self.codes)

    @property
    def table_bytes(self) -> int:
        return sum(len(table) for table in {each.table for _, each in self.launches})

    @property
    def word_bytes(self) -> int:
        return 8 * sum(len(each.words) for _, each in self.launches)


def _up(nbytes: int) -> int:
    return -(-nbytes // 64) * 64


@dataclass(frozen=True)
class Refused:
    """A problem no kernel takes."""

    problem: Asked
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
            launch.table for entry in self.entries for _, launch in entry.launches if launch.table
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


def descriptor(asked: Asked) -> tuple[int, ...]:
    """Return the numbers of a `cg_problem`, in their order; only the kind for what is more than a convolution."""
    if not isinstance(asked, Problem):
        return (_OTHER, *(0 for _ in range(_DESCRIPTOR - 1)))
    rows, cols = asked.rows, asked.cols
    return (
        *(_KINDS.index(asked.kind), DTYPES[asked.dtype]),
        *(_LAYOUTS.index(asked.data_format), int(asked.depthwise)),
        *(asked.batch, rows.size, cols.size, asked.in_c, asked.out_c, asked.groups),
        *(rows.window, cols.window, rows.stride, cols.stride, rows.dilation, cols.dilation),
        *(rows.before, rows.after, cols.before, cols.after, _SIDES.index(asked.bias)),
    )


class _Refusal(Exception):
    """Why something is not exported."""


@dataclass(frozen=True)
class _Planned:
    """An entry before its kernels are compiled."""

    recipe: Recipe
    algorithm: str
    parts: tuple[tuple[Program, tuple[KernelSource, ...]], ...]


def make_pack(
    name: str,
    problems: Iterable[Asked],
    target: Target,
    system: System,
    *,
    skip_refused: bool = False,
    advance: Advance = lambda done, text: None,
) -> Pack:
    """Plan the problems, write and compile their kernels."""
    wanted, refused = _sorted(problems)
    planned: list[_Planned] = []
    written: dict[Any, KernelSource] = {}
    for asked in wanted:
        line = recipe.write(asked)
        advance(1, f"planning {line}")
        try:
            planned.append(_plan(recipe.recipe_of(asked), target, system, written))
        except _Refusal as reason:
            refused.append(Refused(asked, line, str(reason)))
    if refused and not skip_refused:
        first = refused[0]
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise ArgumentError(
            f"export: `problems` must be such as kernels compute; `{first.line}` is refused{more}: {first.reason}."
        )
    # Not all that were written: some may be of problems that were refused afterwards.
    sources = {
        each.symbol: each for plan in planned for _, kernels in plan.parts for each in kernels
    }
    codes = _compiled(sources, target, system, advance)
    entries = tuple(_entry(name, plan, codes) for plan in planned)
    winograd: str = config.get("winograd")
    return Pack(name, target, system, winograd, entries, tuple(refused))


def _entry(name: str, plan: _Planned, codes: dict[str, Code]) -> Entry:
    numbers = {place.name: at for at, place in enumerate(plan.recipe.places)}
    parts = [
        PackedProgram(
            program,
            tuple(codes[each.symbol] for each in kernels),
            tuple(each.scratch_bytes for each in kernels),
            tuple(None if each is None else numbers[each] for each in part.seen),
        )
        for part, (program, kernels) in zip(plan.recipe.parts, plan.parts, strict=True)
    ]
    return Entry(plan.recipe, _function(name, plan.recipe.asked), plan.algorithm, tuple(parts))


def _function(name: str, asked: Asked) -> str:
    if isinstance(asked, Problem):
        return names.function(name, asked)
    if isinstance(asked, Block):
        return f"{names.function(name, asked.problem)}_{names.passes(asked.norm, sizes=False)}"
    return f"{name}_{names.passes(asked)}"


def _plan(
    what: Recipe, target: Target, system: System, written: dict[Any, KernelSource]
) -> _Planned:
    """Plan the parts and write their kernels; raises _Refusal."""
    reason = _too_large(what, target)
    if reason:
        raise _Refusal(reason)
    found, algorithms = [], []
    for part in what.parts:
        if isinstance(part.asked, Problem):
            program, identities, algorithm = _plan_convolution(part.asked, target)
            emit = _kernels.emit
        else:
            program, identities = prepare.numbered_passes(part.asked.task, target)
            algorithm, emit = "batch_norm", _norm_plan.emit
        for identity in identities:
            if identity not in written:
                written[identity] = symbols.in_pack(emit(identity, target), target, system.triple)
        kernels = tuple(written[identity] for identity in identities)
        reason = _no_room(program, [each.scratch_bytes for each in kernels], what.asked, target)
        if reason:
            raise _Refusal(reason)
        found.append((program, kernels))
        algorithms.append(algorithm)
    return _Planned(what, "+".join(algorithms), tuple(found))


def _plan_convolution(problem: Problem, target: Target) -> tuple[Program, tuple[Any, ...], str]:
    plan = planner.choose(problem, target)
    if not plan.steps and not problem.is_empty:
        raise _Refusal(_why_not(problem, target))
    if problem.is_empty and problem.adds_bias and problem.result_bytes:
        raise _Refusal("its result is nothing but the bias")
    algorithm = plan.algorithm if plan.steps else "zeros"
    return prepare.numbered(plan), prepare.identities(plan), algorithm


def _sorted(problems: Iterable[Asked]) -> tuple[list[Asked], list[Refused]]:
    """Return the problems in order of their descriptors and lines, each once, and those whose dtype no kernel has."""
    found: dict[tuple[Any, ...], Asked] = {}
    refused: dict[str, Refused] = {}
    for problem in problems:
        dtype = recipe.dtype_of(problem)
        if dtype in DTYPES:
            # Empty problems may differ in what no element depends on. One is kept, whatever the order.
            key: tuple[Any, ...] = descriptor(problem)
            if not isinstance(problem, Problem):
                key = (*key, recipe.write(problem))
            same = found.setdefault(key, problem)
            if same != problem:
                found[key] = min(same, problem, key=recipe.write)
        else:
            line = recipe.write(problem)
            refused[line] = Refused(problem, line, f"no kernel computes in {dtype.name}")
    return [found[key] for key in sorted(found)], [refused[line] for line in sorted(refused)]


def _too_large(what: Recipe, target: Target) -> str | None:
    """Return why something must not even be planned, or None."""
    problems = [part.asked for part in what.parts if isinstance(part.asked, Problem)]
    for each in problems:
        if max(each.rows.size, each.cols.size, each.rows.out, each.cols.out) > _MOST_CELLS:
            return f"images have at most {_MOST_CELLS:,} rows and columns in a pack"
    # Not only those of the recipe: an operand that nobody reads is still as large as it says.
    sizes = [sum(each.operand_bytes) + each.result_bytes for each in problems]
    return _does_not_fit(max(*sizes, sum(each.nbytes for each in what.places), 0), target)


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


def _no_room(program: Program, own: Sequence[int], asked: Asked, target: Target) -> str | None:
    """Return what convgrad_pack.h or the target's address space has no room for, or None."""
    worker = 0
    for launch in program.launches:
        count = len(launch.places) + bool(launch.table) + len(launch.words)
        if len(launch.places) > MOST_POINTERS or count > MOST_WORDS:
            return (
                f"kernels must have at most {MOST_WORDS} words and {MOST_POINTERS} pointers, "
                f"one has {count} and {len(launch.places)}"
            )
        worker = max(worker, launch.scratch_bytes + own[launch.kernel])
    arrays = sum(place.nbytes for place in recipe.recipe_of(asked).places)
    total = arrays + program.partial_bytes + program.packed_bytes + worker
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
