"""The same bits on other instruction sets: random problems computed here and by kernels of a row on its emulator.

Three of four problems are convolutions of `same_bits` that are small enough for emulators, a quarter of them with a
bias, a fifth with subnormal products; the fourth is a task of `norm_bits`. A convolution is computed here by the best
plan of each numerical class; on a device by the best plan of every algorithm that takes it. Many problems are linked
into one program, which compares bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

import convgrad
import norm_bits
import same_bits
from biases import SIDES, biased
from cases import KINDS, NUMPY, Case, Data, normal
from convgrad import _kernels
from convgrad._base import dtypes
from convgrad._base.dtypes import DOUBLE, round_once
from convgrad._compiler import jit
from convgrad._compiler.jit import host
from convgrad._compiler.targets import Target, find, runnable
from convgrad._engine import planner, prepare
from convgrad._kernels.norm import plan as norm_plan
from convgrad._problem.convolution import Problem
from convgrad._problem.norm import PLACES, Task
from convgrad._problem.sums import specification, winograd
from convgrad._problem.sums.gather import sum_bytes
from convgrad._runtime.program import Program
from convgrad._runtime.run import run as run_program
from device_trials import RUNNERS, Emit, Kernels, Place, Runner, block, build, places, run
from kernels import problem_of
from norms import written as written_by

MOST_PRODUCTS = 1_000_000
"""Of one problem: an emulator does some ten million a second."""
MOST_OF_WINOGRAD = 4_000_000
MOST_VALUES = 50_000
"""Of one task of batch norm."""
MOST_BYTES = 1_500_000
"""Of the objects of one program: a board has 4 MB for code."""
NAMES = tuple(
    name
    for name in _kernels.ALGORITHMS
    if name != "reference" and not planner.switched_off(name, "auto")
)
CLASSES = {"sums": winograd.SUMS, "winograd": winograd.F2}

INSIDE, OUTSIDE, UNFUSED = "inside", "outside", "unfused"
"""The contract: numbers of this machine's best row; and numbers of its row without a fused multiply-add."""
UNFUSED_ROW = next(
    (row for row in runnable(host.architecture(), host.features()) if not row.has_fma), None
)


class Way(NamedTuple):
    """A program for a problem on a row."""

    name: str
    """The algorithm, or `batch norm`."""
    program: Program
    identities: tuple[Any, ...]
    emit: Emit
    places: list[Place]


class Known(Protocol):
    """A problem, and what it gives here."""

    number: int

    @property
    def label(self) -> str: ...

    @property
    def sum_bytes(self) -> frozenset[int]:
        """Return the bytes of the numbers that products are added in; nothing for whole numbers."""

    def ways(self, target: Target) -> Iterator[Way]:
        """Yield the programs of a row."""

    def on(self, target: Target) -> Known:
        """Return the same, computed on another row of this machine."""

    def beside_specification(self) -> tuple[bool, list[str]]:
        """Return whether it is quick to compute by the specification, and the classes that differ from it."""


@dataclass(frozen=True)
class Convolution:
    """A convolution: the operands and a bias that is added; by numerical class the result and a bias's gradient."""

    number: int
    label: str
    problem: Problem
    read: tuple[Any, ...]
    written: dict[str, tuple[Any, ...]]

    @property
    def sum_bytes(self) -> frozenset[int]:
        return frozenset(() if self.problem.dtype.is_integer else (sum_bytes(self.problem),))

    def ways(self, target: Target) -> Iterator[Way]:
        for name in NAMES:
            written = self.written.get(same_bits.numerical_class(name))
            offered = planner.candidates(self.problem, target, name)
            if written is not None and offered:
                plan = offered[0][1].plan()
                program, identities = prepare.numbered(plan), prepare.identities(plan)
                yield Way(name, program, identities, _kernels.emit, places(self.read, written))

    def on(self, target: Target) -> Convolution:
        best = _best_of_each(self.problem, target)
        written = {
            numbers: _computed(self.problem, target, name, self.read)
            for numbers, name in best.items()
        }
        return replace(self, written=written)

    def beside_specification(self) -> tuple[bool, list[str]]:
        # Where products of float64 are subnormal it adds fractions, one by one.
        slow = sum_bytes(self.problem) == 8 and is_tiny(self.number)
        quick = [
            name
            for name in self.written
            if specification.is_quick(self.problem, CLASSES[name]) and not slow
        ]
        differing = []
        for name in quick:
            bias = self.read[2] if self.problem.adds_bias else None
            found = specification.compute(self.problem, *self.read[:2], bias, CLASSES[name])
            wanted = (each for each in found if each is not None)
            pairs = zip(wanted, self.written[name], strict=True)
            if any(a.tobytes() != b.tobytes() for a, b in pairs):
                differing.append(name)
        return bool(quick), differing


@dataclass(frozen=True)
class Normalisation:
    """A task of batch norm, what it reads, and its places, in order."""

    number: int
    task: Task
    given: dict[str, Any]
    places: list[Place]

    @property
    def label(self) -> str:
        return f"{self.number}: {self.task}"

    @property
    def sum_bytes(self) -> frozenset[int]:
        own = 8 if self.task.dtype is DOUBLE else 4
        # Statistics of parts of a batch, and running ones, are merged in float64.
        return frozenset((own, 8) if self.task.name == "forward" else (own,))

    def ways(self, target: Target) -> Iterator[Way]:
        program, identities = prepare.numbered_passes(self.task, target)
        yield Way("batch norm", program, identities, norm_plan.emit, self.places)

    def on(self, target: Target) -> Normalisation:
        return replace(self, places=_passed(self.task, target, self.given))

    def beside_specification(self) -> tuple[bool, list[str]]:
        return False, []


def is_tiny(number: int) -> bool:
    """Tell whether the products of a problem are subnormal."""
    return number % 5 == 2


def known(seed: int) -> Iterator[Known]:
    """Draw problems without end and compute them here."""
    target = jit.host_target()
    for number in count():
        found = (
            _normalisation(seed, number, target)
            if number % 4 == 1
            else _convolution(seed, number, target)
        )
        if found is not None:
            yield found


def _convolution(seed: int, number: int, target: Target) -> Convolution | None:
    rng = np.random.default_rng([seed, number])
    kind, fixed, most = KINDS[number % len(KINDS)], {}, MOST_PRODUCTS
    if number % 12 in (0, 10):  # forward passes and input gradients
        fixed, most = _large_enough_for_winograd(rng), MOST_OF_WINOGRAD
    case = same_bits.draw(seed, number, **fixed)
    if case.products > most:
        return None
    problem, label = problem_of(case, kind), f"{number}: {kind} of {case}"
    if number % 4 == 3:
        side = SIDES[kind][number // 12 % len(SIDES[kind])]
        problem, label = biased(case, kind, side), f"{label} with a bias of the {side}"
    data = normal(case, rng)
    if is_tiny(number):
        data = _tiny(case, data)
    read = same_bits.operands(kind, data)
    if problem.adds_bias:
        bias = round_once(rng.standard_normal(problem.bias_c), problem.dtype)
        read = (*read, np.ascontiguousarray(bias.astype(problem.dtype.numpy)))
    best = _best_of_each(problem, target)
    written = {numbers: _computed(problem, target, name, read) for numbers, name in best.items()}
    return Convolution(number, label, problem, read, written) if written else None


def _large_enough_for_winograd(rng: np.random.Generator) -> dict[str, Any]:
    """Draw what a problem needs for the class, which is seldom found among small ones."""
    one = {"strides": (1, 1), "dilations": (1, 1), "padding": "SAME", "groups": 1}
    return one | {
        "depthwise": False,
        "window": (3, 3),
        "size": tuple(rng.integers(8, 12, 2).tolist()),
        "batch": int(rng.integers(1, 3)),
        "group_in": int(rng.choice((32, 40, 64, 100))),
        "group_out": int(rng.choice((32, 33, 48))),
        "dtype": str(rng.choice(("float32", "float32", "half", "bfloat16"))),
    }


def _tiny(case: Case, data: Data) -> Data:
    """Scale operands so that their products lie among subnormal numbers of the result's dtype, or close above."""
    exponent = {"half": -10, "float64": -520}.get(case.dtype, -66)
    scaled = (each.astype(np.float64) * 2.0**exponent for each in (data.x, data.f, data.g))
    dtype = dtypes.find(NUMPY[case.dtype])
    assert dtype is not None
    return Data(*(round_once(each, dtype).astype(dtype.numpy) for each in scaled))


def _best_of_each(problem: Problem, target: Target) -> dict[str, str]:
    """Return the best algorithm of each numerical class."""
    found: dict[str, tuple[float, str]] = {}
    for name in NAMES:
        for rank, _ in planner.candidates(problem, target, name)[:1]:
            numbers = same_bits.numerical_class(name)
            found[numbers] = min(found.get(numbers, (rank, name)), (rank, name))
    return {numbers: name for numbers, (_, name) in found.items()}


def _computed(problem: Problem, target: Target, name: str, read: Sequence[Any]) -> tuple[Any, ...]:
    """Return what an algorithm writes on this machine."""
    written = [np.full(problem.result_shape, 77, problem.dtype.numpy)]
    if problem.bias and not problem.adds_bias:
        written.append(np.full(problem.bias_c, 77, problem.dtype.numpy))
    program = prepare.bind(planner.choose_named(problem, target, name), target)
    with convgrad.threads(1):
        arrays = [*read[:2], written[0], *read[2:], *written[1:]]
        run_program(program, *(each.ctypes.data for each in arrays))
    return tuple(written)


def _normalisation(seed: int, number: int, target: Target) -> Normalisation | None:
    task, given = norm_bits.draw(seed, number)
    if task.values * task.channels > MOST_VALUES:
        return None
    found = Normalisation(number, task, given, _passed(task, target, given))
    written = (after.astype(float) for _, after in found.places if after is not None)
    # The bits of a NaN are not promised.
    return None if any(np.isnan(each).any() for each in written) else found


def _passed(task: Task, target: Target, given: dict[str, Any]) -> list[Place]:
    """Compute a task of batch norm on this machine; returns its places, in order."""
    names, arrays = PLACES[task.name], {name: each.copy() for name, each in given.items()}
    bound = prepare.bind_passes(norm_plan.plan(task, target), task.places, target)
    with convgrad.threads(1):
        run_program(bound, *(arrays[name].ctypes.data for name in names))
    running = {"running_mean", "running_var"}
    found = []
    for name in names:
        if name in written_by(task):
            found.append(Place(None, arrays[name]))
        else:
            found.append(Place(given[name], arrays[name] if name in running else None))
    return found


@dataclass
class Found:
    """What was compared on one row."""

    problems: set[int] = field(default_factory=set)
    """Numbers of problems inside the contract."""
    outside: set[int] = field(default_factory=set)
    """Of those whose products and sums are not rounded together on this row."""
    outside_differ: set[int] = field(default_factory=set)
    unfused: set[int] = field(default_factory=set)
    """Of those outside, what never fuses, compared with this machine's row without a fused multiply-add."""
    unfused_differ: set[int] = field(default_factory=set)
    plans: Counter[str] = field(default_factory=Counter)
    """Programs inside the contract, by algorithm."""
    differ: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    """Which, in words."""
    differing_unfused: list[str] = field(default_factory=list)
    too_large: int = 0
    """Programs whose arrays do not fit on a board."""

    def add(self, one: Known, name: str, answers: Sequence[str], beside: str) -> None:
        """Count one program; `answers` has one for every emulator, `beside` is whose numbers it was compared with."""
        if "too large" in answers:
            self.too_large += 1
            return
        wrong = any(each != "right" for each in answers)
        if beside != INSIDE:
            (self.outside if beside == OUTSIDE else self.unfused).add(one.number)
            if wrong:
                found = self.outside_differ if beside == OUTSIDE else self.unfused_differ
                found.add(one.number)
                if beside == UNFUSED:
                    self.differing_unfused.append(f"{name}, {'; '.join(answers)}: {one.label}")
            return
        self.problems.add(one.number)
        self.plans[name] += 1
        if wrong:
            self.differ[name] += 1
            self.differing.append(f"{name}, {'; '.join(answers)}: {one.label}")


@dataclass
class Device:
    """A row, and what runs its kernels."""

    target: Target
    runners: tuple[Runner, ...]
    found: Found = field(default_factory=Found)

    @property
    def label(self) -> str:
        return self.target.name

    def told(self) -> Iterator[str]:
        """Yield lines about what was found: totals, then algorithms."""
        found = self.found
        if found.problems:
            machines = f", on {len(self.runners)} machines each" if len(self.runners) > 1 else ""
            yield (
                f"{self.label}: {len(found.problems)} problems, {found.plans.total()} programs{machines}, "
                f"{found.differ.total()} differ"
            )
        for name, plans in sorted(found.plans.items()):
            yield f"  {name:20} {plans:5} programs, {found.differ[name]} differ"
        if found.outside:
            agree = len(found.outside) - len(found.outside_differ)
            yield f"{self.label}: {agree} of {len(found.outside)} problems outside the contract agree"
        if found.unfused and UNFUSED_ROW is not None:
            total = len(found.unfused)
            agree = total - len(found.unfused_differ)
            yield f"{self.label}: {agree} of {total} agree with {UNFUSED_ROW.name} on this machine"
        if found.too_large:
            yield f"{self.label}: {found.too_large} programs do not fit on the board"

    def compare(self, problems: Sequence[Known], folder: Path) -> None:
        """Compute problems by all their programs, linked into one if it is not too large."""
        kernels, tried, blocks = Kernels(self.target, self.target.triple), [], []
        for each, beside in self._compared(problems):
            for way in each.ways(self.target):
                kernels.add(way.identities, way.emit)
                tried.append((each, way.name, beside))
                blocks.append(block(way.program, way.identities, way.places, kernels))
        members = kernels.compiled()
        if sum(len(code) for _, code in members) > MOST_BYTES and len(problems) > 1:
            half = len(problems) // 2
            self.compare(problems[:half], folder)
            self.compare(problems[half:], folder)
            return
        answers = [
            run(build(kernels, members, runner, folder), blocks, runner, folder)
            for runner in self.runners
        ]
        for (one, name, beside), of_one in zip(tried, zip(*answers, strict=True), strict=True):
            self.found.add(one, name, of_one, beside)

    def _compared(self, problems: Iterable[Known]) -> Iterator[tuple[Known, str]]:
        """Yield whose numbers each problem's are compared with."""
        for one in problems:
            fused = [self.target.fuses(size) for size in one.sum_bytes]
            if all(fused):
                yield one, INSIDE
                continue
            yield one, OUTSIDE
            if UNFUSED_ROW is not None and not any(fused):
                yield one.on(UNFUSED_ROW), UNFUSED


def devices(names: Iterable[str]) -> list[Device]:
    """Return rows with an emulator."""
    return [Device(find(name), RUNNERS[name]) for name in names]


def campaign(
    chosen: Sequence[Device], problems: int, folder: Path, seed: int = 1, at_once: int = 20
) -> Iterator[list[Known]]:
    """Compute problems here and on devices, some at once, and yield them when they are done."""
    drawn = islice(known(seed), problems)
    while some := list(islice(drawn, at_once)):
        for device in chosen:
            device.compare(some, folder)
        yield some
