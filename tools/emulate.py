"""Run the AArch64 kernels under an emulator: exact numbers, guarded memory, our loader, the parallel loop.

Usage: python tools/emulate.py [--problems N] [--seed S] [--no-language]

Needs qemu-aarch64 and a cross compiler (exit status 2 without them): apt-get install qemu-user gcc-aarch64-linux-gnu

1. Problems: of every algorithm, operation, dtype and layout, N random ones on whole numbers, compared bit by bit with
   the oracle. What runs is the package's own `Program`, launch by launch. Each problem runs twice: with kernels placed
   by the cross linker and with kernels placed by `jit.elf`. Items come in shuffled calls, operands and words are
   read-only, code is not writable, and every array lies against memory that is not there.
2. The parallel loop: threads of the emulated system run random jobs; every item must be counted once. Both ways to
   sleep that systems on AArch64 have are run. The host's memory order is stronger than ARM's, and so is the emulator's:
   this proves the code and its calls to the system, not the barriers.
3. The language: tests/codegen, whose kernels are then written for NEON at all widths.

The emulated CPU is a Cortex-A57, an ARMv8.0 without any extension, so an instruction beyond the baseline is a failure.
No x86-64 row is emulated: QEMU's TCG has no AVX-512 (7.2 says so itself: `qemu-x86_64 -cpu Skylake-Server`), and every
other row runs on a host with AVX2.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import random
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
for folder in ("src", "tests"):
    sys.path.insert(0, str(ROOT / folder))

import numpy as np  # noqa: E402

import calling  # noqa: E402
from cases import DTYPES, KINDS, NUMPY, Case, random_case, whole_numbers  # noqa: E402
from convgrad import _kernels  # noqa: E402
from convgrad._apps.check.draws import ONE, Alike, Each, Value, varied  # noqa: E402
from convgrad._compiler import targets as _targets  # noqa: E402
from convgrad._compiler.jit import elf, functions, llvm  # noqa: E402
from convgrad._compiler.kernel import Kernel, KernelSource  # noqa: E402
from convgrad._compiler.targets import Target  # noqa: E402
from convgrad._engine import planner, prepare  # noqa: E402
from convgrad._kernels.plan import Plan  # noqa: E402
from convgrad._runtime import parfor, parking  # noqa: E402
from convgrad._runtime.pointers import pack_words  # noqa: E402
from convgrad._runtime.program import MEMORY, Launch  # noqa: E402
from kernels import NAMES, expected_exactly, families, problem_of  # noqa: E402

EMULATOR, COMPILER, CPU = "qemu-aarch64", "aarch64-linux-gnu-gcc", "cortex-a57"
PACKAGES = "apt-get install qemu-user gcc-aarch64-linux-gnu"
TRIPLE = "aarch64-unknown-linux-gnu"
ROW = _targets.find("neon")
WIDTHS = (128, 128, 256, 128, 512)
"""Widths of successive problems: mostly the row's own; the others are what a switch can ask for."""
MOST_PRODUCTS = 4_000_000
"""Of one problem: the emulator is about fifty times slower than a real machine."""
DRAWS = 300
"""Cases drawn before an algorithm counts as refusing a kind of problem."""
PATIENCE = 60
"""Seconds without an answer that count as a hang."""

PAGE = mmap.PAGESIZE
BASE = 0x50_0000_0000
"""Where the arena lies in the emulated memory: clear of QEMU's own first choice, 0x40_0000_0000."""
CODE_BYTES = DATA_BYTES = 1 << 30
READ, WRITE, EXECUTE = mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC


class Failure(Exception):
    """The emulated program faulted, hung or died."""


class Arena:
    """A sparse file both sides map: code that stays, then data that is thrown away after each problem.

    The emulated side sees only what was mapped for it.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "arena"
        with self.path.open("wb") as file:
            file.truncate(CODE_BYTES + DATA_BYTES)
        with self.path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.bytes = np.frombuffer(self.memory, np.uint8)
        self._start = self.bytes.ctypes.data
        self.code_end = 0
        self.data_end = CODE_BYTES

    def take_code(self, size: int, gap: int) -> int:
        """Return the address of fresh pages, after a gap of some more."""
        at = self.code_end + gap * PAGE
        self.code_end = at + -(-size // PAGE) * PAGE
        if self.code_end > CODE_BYTES:
            raise Failure("the arena is too small for so many kernels")
        return BASE + at

    def take_data(self, size: int, at_end: bool, alignment: int = 1) -> tuple[int, int, int]:
        """Return address, first page and bytes of pages; they have at least a page of nothing on both sides."""
        room = max(1, -(-size // PAGE)) * PAGE
        first = self.data_end + PAGE
        self.data_end = first + room + PAGE
        if self.data_end > CODE_BYTES + DATA_BYTES:
            raise Failure("the arena is too small for this problem")
        shift = (room - size) // alignment * alignment if at_end else 0
        return BASE + first + shift, BASE + first, room

    def view(self, address: int, size: int) -> Any:
        """Return bytes of the arena as an array."""
        return self.bytes[address - BASE : address - BASE + size]

    def holds(self, array: Any) -> bool:
        """Whether an array lies in the arena."""
        return 0 <= int(array.ctypes.data) - self._start < self.bytes.size

    def address(self, array: Any) -> int:
        """Return where the emulated side sees an array of the arena."""
        return int(array.ctypes.data) - self._start + BASE


class Machine:
    """The emulated program, its memory and its kernels."""

    def __init__(self, folder: Path, kernels: list[tuple[str, bytes]], seed: int) -> None:
        """Link the driver with `kernels`, pairs of a symbol and an object, and start it."""
        self.arena = Arena(folder)
        self.random = random.Random(seed)
        self._program = _build(folder, kernels)
        self._symbols = {symbol: number for number, (symbol, _) in enumerate(kernels)}
        self._loaded: dict[bytes, int] = {}
        self.relocations: Counter[int] = Counter()
        """Kinds our loader met, by ELF's number."""
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [EMULATOR, "-cpu", CPU, str(self._program), str(self.arena.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, *words: int) -> int:
        """Send a command and return the answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(pack_words(*words, *[0] * (8 - len(words))))
        except BrokenPipeError:
            self._restart()
            raise Failure("the emulator died") from None
        if not select.select([self._process.stdout], [], [], PATIENCE)[0]:
            self._restart()
            raise Failure(f"no answer for {PATIENCE} s")
        answer = self._process.stdout.read(8)
        if answer is None or len(answer) < 8:
            status = self._process.wait()
            self._restart()
            raise Failure(f"the emulator died with status {status}")
        return int(struct.unpack("=q", answer)[0])

    def _restart(self) -> None:
        """Start afresh, without any code or data mapped."""
        self.close()
        self._loaded.clear()
        self._start()

    def map(self, page: int, size: int, protection: int) -> None:
        if self.ask(1, page, size, protection, page - BASE):
            raise Failure("the emulated system refused a mapping")

    def place(self, values: Any, at_end: bool, protection: int) -> Any:
        """Return a copy of an array between two holes in memory."""
        address, page, room = self.arena.take_data(values.nbytes, at_end, values.itemsize)
        result = self.arena.view(address, values.nbytes).view(values.dtype).reshape(values.shape)
        result[...] = values
        self.map(page, room, protection)
        return result

    def forget_data(self) -> None:
        used = self.arena.data_end - CODE_BYTES
        if used:
            self.ask(2, BASE + CODE_BYTES, used)
        self.arena.data_end = CODE_BYTES

    def linked(self, symbol: str) -> int:
        """Return where the linker put a kernel."""
        return self.ask(3, self._symbols[symbol])

    def loaded(self, code: bytes, symbol: str) -> int:
        """Return where `jit.elf` put a kernel: it is told addresses of the arena, and fills them."""
        found = self._loaded.get(code)
        if found is None:
            with ExitStack() as stack:
                stack.enter_context(
                    mock.patch.multiple(elf, _reserve=self._reserve, _seal=self._seal)
                )
                stack.enter_context(mock.patch.dict(elf._RELOCATIONS, {183: self._relocate}))
                found = self._loaded[code] = elf.load(code, symbol)
        return found

    def _relocate(self, memory: bytearray, at: int, kind: int, value: int, here: int) -> None:
        self.relocations[kind] += 1
        elf._relocate_arm(memory, at, kind, value, here)

    def _reserve(self, size: int) -> int:
        return self.arena.take_code(size, self.random.randrange(4))

    def _seal(self, address: int, content: bytes) -> None:
        self.arena.view(address, len(content))[:] = np.frombuffer(content, np.uint8)
        self.map(address, len(content), READ | EXECUTE)

    def call(self, kernel: int, args: bytes, begin: int, end: int, scratch: int) -> None:
        """Call a kernel; its words are in memory it cannot write to."""
        words = self.place(np.frombuffer(args, np.int64), self.random.random() < 0.5, READ)
        signal = self.ask(4, kernel, self.arena.address(words), begin, end, scratch)
        if signal:
            raise Failure(f"a kernel ended with signal {-signal}")

    def launch(self, one: Launch, kernel: Kernel, places: Mapping[int, int]) -> None:
        """Do what the entry does, in a few calls in any order; rubbish is in the workspace of each."""
        pointers = [places[place] for place in one.places]
        if one.table:
            table = self.place(np.frombuffer(one.table, np.int64), True, READ)
            pointers.append(self.arena.address(table))
        args = pack_words(*pointers, *one.words)
        marks = range(one.grain, one.items, one.grain)
        cuts = sorted(self.random.sample(marks, min(len(marks), self.random.randrange(6))))
        pieces = list(zip([0, *cuts], [*cuts, one.items], strict=True))
        self.random.shuffle(pieces)
        scratch, workspace = 0, np.zeros(0, np.uint8)
        if scratch_bytes := one.scratch_bytes + kernel.scratch_bytes:
            scratch, page, room = self.arena.take_data(scratch_bytes, True, 64)
            self.map(page, room, READ | WRITE)
            workspace = self.arena.view(scratch, scratch_bytes)
        for begin, end in pieces:
            workspace[:] = 255  # a NaN in every dtype
            self.call(kernel.address, args, begin, end, scratch)

    def rubbish(self, nbytes: int) -> int:
        """Return the address of memory that is full of NaN."""
        memory = self.place(np.full(nbytes, 255, np.uint8), True, READ | WRITE)
        return self.arena.address(memory)


def _build(folder: Path, kernels: list[tuple[str, bytes]]) -> Path:
    """Link the driver and the kernels."""
    objects = []
    for number, (_, code) in enumerate(kernels):
        path = folder / f"kernel{number}.o"
        path.write_bytes(code)
        objects.append(str(path))
    table = folder / "table.c"
    names = [symbol for symbol, _ in kernels]
    table.write_text(
        "".join(f"extern char {name}[];\n" for name in names)
        + f"void *const cg_linked[] = {{{', '.join([*names, '0'])}}};\n"
    )
    constants = {
        **{f"CONTROL_{name}": index for name, index in parking.CONTROL.items()},
        "CONTROL_WORDS": parking.CONTROL_WORDS,
        **{f"JOB_{name}": index for index, name in enumerate(parfor.JOB)},
        "JOB_WORDS": len(parfor.JOB),
        "PATIENCE": PATIENCE,
        "FUTEX_NUMBER": parking._FUTEX_NUMBERS["aarch64"],
    }
    program = folder / "driver"
    macros = [f"-D{name}={value}" for name, value in constants.items()]
    sources = [str(ROOT / "tools" / "emulate_driver.c"), str(table)]
    command = [COMPILER, "-static", "-pthread", "-O1", "-Wall", "-Wextra", *macros, *sources]
    subprocess.run([*command, *objects, "-o", str(program)], check=True)
    return program


# ---- problems ----


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    algorithm: str
    operation: str
    dtype: str
    layout: str


@dataclass
class Tally:
    problems: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Chosen:
    """A problem to run."""

    row: Row
    case: Case
    kind: str
    target: Target
    plan: Plan


def draw(seed: int, count: int) -> Iterator[Chosen]:
    """Choose problems; none where an algorithm refuses all that was drawn."""
    rows = [
        (name, depthwise, kind, dtype, layout)
        for name in NAMES
        for depthwise in (True, False)
        for kind in KINDS
        for dtype in (DTYPES if depthwise or kind == "filter" else NUMPY)
        for layout in ("NHWC", "NCHW")
    ]
    for name, depthwise, kind, dtype, layout in rows:
        label = f"{'depthwise' if depthwise else 'dense'} {kind}"
        row = Row(name, label, dtype, layout)
        rng = np.random.default_rng([seed, *repr(row).encode()])
        for turn in range(count):
            target = ROW.with_vector_bits(WIDTHS[turn % len(WIDTHS)])
            for attempt in range(DRAWS):
                large = depthwise and turn % 8 == 7 and attempt < 20
                case = _random_case(rng, large, depthwise, dtype, layout)
                if 0 in (*case.input_shape, *case.output_shape) or case.products > MOST_PRODUCTS:
                    continue
                problem = problem_of(case, kind)
                if _kernels.ALGORITHMS[name].why_not(problem, target) is None:
                    plan = planner.choose_named(problem, target, name)
                    yield Chosen(row, case, kind, target, plan)
                    break
            else:
                break


FAMILIES = families(24, depthwise=0.5)
FAMILIES = (  # and depthwise in all but name
    *FAMILIES,
    (0.05, FAMILIES[-2][1] | {"groups": (2, 4, 16, 24, 72), "group_in": 1, "group_out": (1, 1, 2)}),
)
LARGE = [
    (
        1.0,
        FAMILIES[0][1]
        | {
            "batch": 1,
            "size": Each(range(50, 70)),
            "group_out": 1,
            "window": Value((3, 3)),
            "strides": Alike((1, 2)),
            "dilations": ONE,
            "padding": "SAME",
        },
    )
]


def _random_case(
    rng: np.random.Generator, large: bool, depthwise: bool, dtype: str, layout: str
) -> Case:
    """Draw narrow and wide, few and many channels; a large one has more than a megabyte of images."""
    how = {"depthwise": depthwise, "dtype": dtype, "data_format": layout}
    if large:
        wide = 2 if NUMPY[dtype].itemsize == 2 else 1
        return random_case(rng, varied(LARGE, groups=(64 * wide, 80 * wide, 96 * wide)), **how)
    return random_case(rng, FAMILIES, **how)


class Kernels:
    """Every kernel that problems need, compiled once."""

    def __init__(self) -> None:
        self.compiled: dict[tuple[Any, Target], tuple[KernelSource, bytes]] = {}

    def add(self, identity: Any, target: Target) -> None:
        if (identity, target) not in self.compiled:
            source = _kernels.emit(identity, target)
            code = llvm.compile_object(source.ir, target, triple=TRIPLE)
            self.compiled[identity, target] = source, code

    def by_symbol(self) -> list[tuple[str, bytes]]:
        return list({source.symbol: code for source, code in self.compiled.values()}.items())


def compute(machine: Machine, kernels: Kernels, way: str, chosen: Chosen, data: Any) -> Any:
    """Run the program of a problem, launch by launch, with the emulator in place of this machine."""
    loaded = []
    for identity in prepare.identities(chosen.plan):
        source, code = kernels.compiled[identity, chosen.target]
        linked = way == "linker"
        address = machine.linked(source.symbol) if linked else machine.loaded(code, source.symbol)
        loaded.append(Kernel(source.symbol, address, source.scratch_bytes, 0.0, "llvm"))
    at_end = machine.random.random() < 0.5
    data = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    first, second = (machine.place(each, at_end, READ) for each in data[chosen.kind])
    problem = chosen.plan.problem
    result = machine.place(
        np.full(problem.result_shape, 77, problem.dtype.numpy), at_end, READ | WRITE
    )
    program = prepare.numbered(chosen.plan)
    places = dict(enumerate(machine.arena.address(each) for each in (first, second, result)))
    places[MEMORY["partial"]] = machine.rubbish(program.partial_bytes)
    places[MEMORY["packed"]] = machine.rubbish(program.packed_bytes)
    for one in program.launches:
        machine.launch(one, loaded[one.kernel], places)
    return result.copy()


def check(machine: Machine, kernels: Kernels, chosen: Chosen, seed: int, tally: Tally) -> None:
    """Run a problem both ways and compare."""
    tally.problems += 1
    data = whole_numbers(chosen.case, np.random.default_rng(seed))
    expected = expected_exactly(chosen.case, chosen.kind, data)
    for way in ("linker", "loader"):
        try:
            got = compute(machine, kernels, way, chosen, data)
        except (Failure, elf.Unsupported) as error:
            tally.failures.append(f"{way}: {error}: {chosen.target.label} {chosen.case}")
            continue
        finally:
            machine.forget_data()
        # Not by bytes: the sign of a zero does not matter.
        wrong = got.astype(np.float64) != expected.astype(np.float64)
        if wrong.any():
            where = tuple(int(n) for n in np.argwhere(wrong)[0])
            tally.failures.append(
                f"{way}: {int(wrong.sum())} of {wrong.size} numbers differ, first at {where}: {got[where]} and not "
                f"{expected[where]}: {chosen.target.label} {chosen.case}"
            )


# ---- the loader ----

RELOCATIONS = (257, 260, 261, 275, 277, 278, 282, 283, 284, 285, 286, 299)
"""All that `jit.elf` knows for AArch64."""

_PROBE = """
@byte = internal constant [3 x i8] [i8 1, i8 2, i8 17], align 1
@short = internal constant i16 1717, align 2
@int = internal constant i32 171717, align 4
@long = internal constant i64 17171717171717, align 8
@wide = internal constant <2 x i64> <i64 1717, i64 -17>, align 16
@pointers = internal constant [2 x ptr] [ptr @long, ptr @far], align 8
@distance = internal constant i64 sub (i64 ptrtoint (ptr @far to i64), i64 ptrtoint (ptr @distance to i64))
@near = internal constant i32 trunc (i64 sub (i64 ptrtoint (ptr @far to i64), i64 ptrtoint (ptr @near to i64)) to i32)

define hidden i64 @far(i64 %x) noinline section ".text.far" {
  %y = add i64 %x, 17
  ret i64 %y
}
define hidden void @last(ptr %out) noinline section ".text.last" {
  store i64 17, ptr %out
  ret void
}
define void @PROBE(ptr %args, i64 %begin, i64 %end, ptr %scratch) {
  %out = load ptr, ptr %args
  %byte_at = getelementptr i8, ptr @byte, i64 2
  %byte = load volatile i8, ptr %byte_at
  %short = load volatile i16, ptr @short
  %int = load volatile i32, ptr @int
  %long = load volatile i64, ptr @long
  %wide = load volatile <2 x i64>, ptr @wide
  %by_pointer = load volatile ptr, ptr @pointers
  %pointed = load i64, ptr %by_pointer
  %second = getelementptr ptr, ptr @pointers, i64 1
  %function = load volatile ptr, ptr %second
  %indirect = call i64 %function(i64 1700)
  %direct = call i64 @far(i64 170000)
  %distance = load volatile i64, ptr @distance
  %distant = getelementptr i8, ptr @distance, i64 %distance
  %by_distance = call i64 %distant(i64 17000)
  %near32 = load volatile i32, ptr @near
  %near = sext i32 %near32 to i64
  %far_at = getelementptr i8, ptr @near, i64 %near
  %by_near = call i64 %far_at(i64 0)
  %byte64 = zext i8 %byte to i64
  %short64 = zext i16 %short to i64
  %int64 = zext i32 %int to i64
  %high = extractelement <2 x i64> %wide, i64 1
STORES
  %place = getelementptr i64, ptr %out, i64 10
  tail call void @last(ptr %place)
  ret void
}
"""
_PROBED = {
    "byte64": 17,
    "short64": 1717,
    "int64": 171717,
    "long": 17171717171717,
    "high": -17,
    "pointed": 17171717171717,
    "indirect": 1717,
    "direct": 170017,
    "by_distance": 17017,
    "by_near": 17,
}


def probe_loader(machine: Machine, copies: int = 64) -> list[str]:
    """Run a module with every relocation our loader knows, at many addresses; returns what went wrong."""
    failures = []
    stores = "".join(
        f"  %at{i} = getelementptr i64, ptr %out, i64 {i}\n  store i64 %{name}, ptr %at{i}\n"
        for i, name in enumerate(_PROBED)
    )
    expected = [*_PROBED.values(), 17]
    for number in range(copies):
        # Moves the constants, in steps shorter than the code, over four pages: some are just behind a boundary.
        more = f"@more = hidden constant [{257 * number} x i8] zeroinitializer\n"
        text = more + _PROBE.replace("STORES", stores).replace("PROBE", f"probe{number}")
        code = llvm.compile_object(text, ROW, triple=TRIPLE)
        try:
            out = machine.place(np.zeros(len(expected), np.int64), True, READ | WRITE)
            args = pack_words(machine.arena.address(out))
            machine.call(machine.loaded(code, f"probe{number}"), args, 0, 1, 0)
            if out.tolist() != expected:
                failures.append(f"loader: {out.tolist()} and not {expected}")
        except (Failure, elf.Unsupported) as error:
            failures.append(f"loader: {error}")
        machine.forget_data()
    unseen = [kind for kind in RELOCATIONS if not machine.relocations[kind]]
    if unseen:
        failures.append(f"loader: no relocation of the kinds {unseen} was met")
    return failures


# ---- the parallel loop ----


def stress_loop(machine: Machine, way: parking.Parking, jobs: int) -> list[str]:
    """Run random jobs on several numbers of workers and callers; returns what went wrong."""
    source = functions.address_table(parfor.source("aarch64", way))
    code = llvm.compile_object(source.ir, ROW, triple=TRIPLE)
    failures = []
    for workers, callers in ((1, 1), (3, 1), (7, 1), (3, 3)):
        setting = f"{way.value}, {workers} workers, {callers} callers"
        begin = time.monotonic()
        try:
            table = machine.loaded(code, source.symbol)
            words = machine.place(np.zeros(len(parfor.SYMBOLS), np.int64), True, READ | WRITE)
            machine.ask(4, table, machine.arena.address(words), 0, 1, 0)
            at = dict(zip(parfor.SYMBOLS, words.tolist(), strict=True))
            pthread = way is parking.Parking.PTHREAD
            entries = (at[parfor.RUN], at[parfor.WORKER], at[parfor.STOP])
            faults = machine.ask(5, *entries, jobs, workers, callers, pthread)
            shared, sleeps = machine.ask(6), machine.ask(7)
            if faults:
                failures.append(f"{setting}: {faults} mistakes")
            if not shared:
                failures.append(f"{setting}: the workers never helped")
            if not sleeps:
                failures.append(f"{setting}: nobody slept and was woken")
            spent = time.monotonic() - begin
            print(
                f"  {setting}: {jobs * callers} jobs, workers ran {shared} chunks with a workspace, "
                f"{sleeps} sleeps, {faults} mistakes, {spent:.1f} s"
            )
        except Failure as error:
            failures.append(f"{setting}: {error}")
            break
        machine.forget_data()
    return failures


# ---- the language ----


@contextmanager
def emulated_language(machine: Machine) -> Iterator[None]:
    """Make `calling`, by which all tests of the language call kernels, call the emulator."""

    def call(
        source: KernelSource, target: Target, *words: Any, begin: int = 0, end: int = 1
    ) -> None:
        code = llvm.compile_object(source.ir, target, triple=TRIPLE)
        copies: dict[int, tuple[Any, int]] = {}

        def passed(word: Any) -> int:
            if not isinstance(word, np.ndarray):
                return int(word)
            owner = word
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            at = int(owner.ctypes.data)
            if at not in copies:
                # At the same place in a page, so that an array beside a forbidden page still is.
                shift = at % PAGE
                _, page, room = machine.arena.take_data(shift + owner.nbytes, False)
                original = np.asarray((ctypes.c_uint8 * owner.nbytes).from_address(at))
                machine.arena.view(page + shift, owner.nbytes)[:] = original
                machine.map(page, room, READ | WRITE)
                copies[at] = original, page + shift
            return copies[at][1] + int(word.ctypes.data) - at

        try:
            args = pack_words(*[passed(word) for word in words])
            scratch = 0
            if source.scratch_bytes:
                scratch, page, room = machine.arena.take_data(source.scratch_bytes, True, 64)
                machine.map(page, room, READ | WRITE)
            machine.call(machine.loaded(code, source.symbol), args, begin, end, scratch)
            for original, address in copies.values():
                original[:] = machine.arena.view(address, original.size)
        finally:
            machine.forget_data()

    rows = (ROW,)
    targets = [ROW.with_vector_bits(bits) for bits in _targets.VECTOR_BITS]
    halves = [*targets, *[replace(target, has_half=False) for target in targets]]
    with mock.patch.multiple(calling, ROWS=rows, TARGETS=targets, HALF_TARGETS=halves, call=call):
        yield


def run_language(machine: Machine) -> int:
    """Run tests/codegen for NEON; returns pytest's exit status."""
    import pytest

    with emulated_language(machine):
        tests = ROOT / "tests" / "codegen"
        options = ["--quiet", "--rootdir", str(ROOT), "-p", "no:cacheprovider"]
        ignored = ["--ignore", str(tests / "test_emulation.py")]  # tests of this file
        return int(pytest.main([*options, *ignored, str(tests)]))


# ---- the command ----


def missing() -> list[str]:
    """Return which programs are not installed."""
    return [name for name in (EMULATOR, COMPILER) if shutil.which(name) is None]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=8, help="per line of the table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--jobs", type=int, default=20_000, help="of each caller of the parallel loop"
    )
    parser.add_argument("--no-language", action="store_true", help="leave out tests/codegen")
    chosen = parser.parse_args(arguments)
    if missing():
        print(f"tools/emulate.py needs {' and '.join(missing())}: {PACKAGES}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="convgrad-emulate-") as folder:
        return _main(Path(folder), chosen)


def _main(folder: Path, options: argparse.Namespace) -> int:
    begin = time.monotonic()
    problems = list(draw(options.seed, options.problems))
    kernels = Kernels()
    for problem in problems:
        for step in problem.plan.steps:
            kernels.add(step.kernel, problem.target)
    print(
        f"{len(problems)} problems, {len(kernels.compiled)} kernels compiled "
        f"in {time.monotonic() - begin:.1f} s, CPU {CPU}"
    )
    machine = Machine(folder, kernels.by_symbol(), options.seed)
    try:
        tallies: dict[Row, Tally] = {}
        begin = time.monotonic()
        for number, problem in enumerate(problems):
            tally = tallies.setdefault(problem.row, Tally())
            check(machine, kernels, problem, options.seed + number, tally)
        failures = _print_table(tallies)
        print(f"each by the linker and by our loader, {time.monotonic() - begin:.1f} s")
        print(f"relocations in them: {_counts(machine.relocations)}")
        failures += probe_loader(machine)
        print(f"relocations with the probe: {_counts(machine.relocations)}")
        print("parallel loop:")
        for way in (parking.Parking.FUTEX, parking.Parking.PTHREAD):
            failures += stress_loop(machine, way, options.jobs)
        if not options.no_language:
            print("language:", flush=True)
            status = run_language(machine)
            if status:
                failures.append(f"tests/codegen: pytest ended with status {status}")
    finally:
        machine.close()
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(failures)} failures" if failures else "all passed")
    return 1 if failures else 0


def _counts(relocations: Counter[int]) -> str:
    return ", ".join(f"{kind} x {number}" for kind, number in sorted(relocations.items()))


def _print_table(tallies: dict[Row, Tally]) -> list[str]:
    print(
        f"{'algorithm':20} {'operation':18} {'dtype':9} {'layout':6} {'problems':>8} {'failures':>8}"
    )
    failures = []
    for row, tally in tallies.items():
        print(
            f"{row.algorithm:20} {row.operation:18} {row.dtype:9} {row.layout:6} "
            f"{tally.problems:8} {len(tally.failures):8}"
        )
        failures += [f"{row.algorithm} {row.operation}, {each}" for each in tally.failures]
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
