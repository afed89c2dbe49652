"""Problems for CPUs this machine is not: drawn, compiled as a pack's kernels are, linked with a small runner, run.

A problem travels as one block of words and arrays (`export/runner.c` says how), with the oracle's answer in it. What
runs it is an emulator of the device, or this machine where it can.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import convgrad
from cases import DTYPES, KINDS, Case, Data, normal, random_case, whole_numbers
from convgrad import _kernels
from convgrad._apps.export import archive
from convgrad._compiler.jit import elf, llvm, objects, symbols
from convgrad._compiler.kernel import Kernel, KernelSource
from convgrad._compiler.targets import System, Target, find
from convgrad._engine import planner, prepare
from convgrad._kernels.plan import Plan
from convgrad._runtime.program import Program
from convgrad._runtime.run import run as run_program
from kernels import NAMES, expected_exactly, families, problem_of

HERE = Path(__file__).resolve().parent / "export"
LAYOUTS = ("NHWC", "NCHW")
_WITH_KERNELS = [name for name in _kernels.ALGORITHMS if name != "reference"]
MOST_PRODUCTS = 400_000
"""Of one problem: emulators are fifty times slower than machines, and a device has little memory."""
_GCC_ARM = "-mthumb -mfloat-abi=hard --specs=rdimon.specs -nostartfiles -DBARE -DARENA=8000000"


@dataclass(frozen=True)
class Runner:
    """How the programs of a row are built and run."""

    compiler: str
    options: tuple[str, ...]
    command: tuple[str, ...]
    """What the program's name is put behind; nothing if this machine runs it."""

    def missing(self) -> str | None:
        """Return which program is not installed, or None."""
        for name in (self.compiler, *self.command[:1]):
            if shutil.which(name) is None:
                return name
        return None


def _linux(triple: str, *command: str) -> Runner:
    arena = "-DARENA=64000000"
    return Runner(f"{triple}-gcc" if triple else "cc", ("-static", arena), command)


def _thumb(cpu: str, fpu: str, board: str, memory: str) -> Runner:
    linked = (f"-Wl,--defsym=more_memory={memory}", "-T", str(HERE / "thumb.ld"))
    options = (f"-mcpu={cpu}", f"-mfpu={fpu}", *_GCC_ARM.split(), *linked)
    semihosting = ("-semihosting-config", "enable=on,target=native")
    command = ("qemu-system-arm", "-nographic", *semihosting, "-M", board, "-kernel")
    return Runner("arm-none-eabi-gcc", options, command)


_RISCV = ("qemu-riscv64", "-cpu")
_WASM = Runner("wasm-ld", (), ("node", str(HERE / "runner.mjs")))
RUNNERS: dict[str, tuple[Runner, ...]] = {
    "avx2": (_linux(""),),
    "sse2": (_linux(""),),
    "neon": (_linux("aarch64-linux-gnu", "qemu-aarch64", "-cpu", "cortex-a57"),),
    "wasm": (_WASM,),
    "wasm_simd": (_WASM,),
    "cortex_m4": (_thumb("cortex-m4", "fpv4-sp-d16", "mps2-an386", "0x21000000"),),
    "cortex_m7": (_thumb("cortex-m7", "fpv5-d16", "mps2-an500", "0x60000000"),),
    "riscv64": (_linux("riscv64-linux-gnu", *_RISCV, "rv64,v=false"),),
    "riscv64v": (
        _linux("riscv64-linux-gnu", *_RISCV, "rv64,v=true,vlen=128,vext_spec=v1.0"),
        _linux("riscv64-linux-gnu", *_RISCV, "rv64,v=true,vlen=256,vext_spec=v1.0"),
    ),
}
"""By row. Code for vectors of 128 bits also runs where they are longer."""


@dataclass(frozen=True)
class Trial:
    """One plan for one problem."""

    case: Case
    kind: str
    algorithm: str
    """Who was asked for the plan, or `choice` for the planner's own."""
    plan: Plan


@dataclass(frozen=True)
class Size:
    """How much a campaign tries."""

    seed: int = 1
    each: int = 1
    """Problems of every operation, dtype and layout."""
    part: int = 1
    """Only one of so many of these sorts of problems: a number that has no divisor in common with theirs."""
    every: bool = False
    """Whether all plans are tried, not only the best of each algorithm."""


FAMILIES = families(14)


def trials(target: Target, rng: np.random.Generator, size: Size) -> Iterator[Trial]:
    """Draw problems of every operation, dtype and layout, and plan each in several ways.

    One plan is the planner's, the others are those of all algorithms that take the problem.
    """
    sorts = list(product((True, False), KINDS, DTYPES, LAYOUTS))
    for depthwise, kind, dtype, layout in sorts[size.seed % size.part :: size.part]:
        for _ in range(size.each):
            case = _drawn(rng, depthwise, dtype, layout)
            problem = problem_of(case, kind)
            seen = [planner.choose(problem, target)]
            if seen[0].steps:
                yield Trial(case, kind, "choice", seen[0])
            for name in _WITH_KERNELS:
                offered = planner.candidates(problem, target, name)
                for _, candidate in offered if size.every else offered[:1]:
                    plan = candidate.plan()
                    if plan not in seen:
                        seen.append(plan)
                        yield Trial(case, kind, name, plan)


def _drawn(rng: np.random.Generator, depthwise: bool, dtype: str, layout: str) -> Case:
    while True:
        how = {"depthwise": depthwise, "dtype": dtype, "data_format": layout}
        case = random_case(rng, FAMILIES, **how)
        if 0 not in (*case.input_shape, *case.output_shape) and case.products <= MOST_PRODUCTS:
            return case


Emit = Callable[[Any, Target], KernelSource]


class Place(NamedTuple):
    """An array of a program: what it holds before and after, one of them None if it is only written or only read."""

    before: Any
    after: Any


@dataclass
class Kernels:
    """The kernels of some plans, as they would be in a pack."""

    target: Target
    triple: str
    numbers: dict[Any, int] = field(default_factory=dict)
    """By identity."""
    sources: list[KernelSource] = field(default_factory=list)
    _here: dict[int, Kernel] = field(default_factory=dict)

    def add(self, identities: Iterable[Any], emit: Emit = _kernels.emit) -> None:
        for identity in identities:
            if identity not in self.numbers:
                self.numbers[identity] = len(self.sources)
                source = emit(identity, self.target)
                self.sources.append(symbols.in_pack(source, self.target, self.triple))

    def compiled(self) -> list[tuple[str, bytes]]:
        made = objects.compile_all(self.sources, self.target, self.triple)
        return [(each.symbol, code) for each, code in zip(self.sources, made, strict=True)]

    def here(self, identity: Any) -> Kernel:
        """Return a kernel of the row, loaded on this machine: the same text, for another CPU."""
        number = self.numbers[identity]
        if number not in self._here:
            # All of it but the register of the floating-point mode.
            source = _kernels.emit(identity, replace(self.target, mode_register="mxcsr"))
            # The best row of this machine has all that the text may ask for: fused products, conversions of halves.
            code = llvm.compile_object(source.ir, find("avx2"))
            address = elf.load(code, source.symbol)
            self._here[number] = Kernel(source.symbol, address, source.scratch_bytes, 0.0, "llvm")
        return self._here[number]

    def table(self) -> str:
        """Return C that lists them."""
        names = [each.symbol for each in self.sources]
        declared = "".join(
            f"extern void {name}(const void *, int64_t, int64_t, void *);\n" for name in names
        )
        listed = ", ".join(names)
        return (
            "#include <stdint.h>\n"
            "typedef void (*kernel_type)(const void *, int64_t, int64_t, void *);\n"
            f"{declared}extern const kernel_type kernels[];\nconst kernel_type kernels[] = {{{listed}}};\n"
        )


def helpers(members: Sequence[tuple[str, bytes]], system: System, folder: Path) -> set[str]:
    """Return the names that objects do not define themselves."""
    path = folder / "helpers.a"
    path.write_bytes(archive.archive(members, system.archive_style))
    done = subprocess.run(["llvm-nm", "-u", path], capture_output=True, text=True, check=True)
    words = (line.split() for line in done.stdout.splitlines())
    return {line[-1] for line in words if line and not line[-1].endswith(":")}


def operands(trial: Trial, data: Data) -> tuple[Any, Any]:
    both = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    return both[trial.kind]


def computed_here(trial: Trial, data: Data, kernels: Kernels) -> Any:
    """Return what the kernels of a row compute on this machine, bit for bit what the device should."""
    loaded = [kernels.here(identity) for identity in prepare.identities(trial.plan)]
    program = prepare.bind_to(prepare.numbered(trial.plan), loaded)
    result = np.empty(trial.plan.problem.result_shape, trial.plan.problem.dtype.numpy)
    first, second = operands(trial, data)
    with convgrad.threads(1):
        run_program(program, first.ctypes.data, second.ctypes.data, result.ctypes.data)
    return result


def places(read: Sequence[Any], written: Sequence[Any]) -> list[Place]:
    """Return the places of a convolution: operands, result, and a bias that is added or its gradient."""
    found = [*(Place(each, None) for each in read[:2]), Place(None, written[0])]
    found += [Place(each, None) for each in read[2:]]
    return [*found, *(Place(None, each) for each in written[1:])]


def block(
    program: Program, identities: Sequence[Any], arrays: Sequence[Place], kernels: Kernels
) -> bytes:
    """Return a problem as the runner reads it: a program, the identities of its kernels, and its places."""
    words = sum(6 + len(each.places) + len(each.words) for each in program.launches)
    made = bytearray(8 * (5 + 3 * len(arrays) + words))

    def put(content: bytes, shift: int) -> int:
        made.extend(bytes(-len(made) % 64 + shift))
        at = len(made)
        made.extend(content)
        return at

    def offset(array: Any) -> int:
        # No better aligned than an element is.
        return 0 if array is None else put(array.tobytes(), array.itemsize)

    head = [0, len(program.launches), program.partial_bytes, program.packed_bytes]
    numbers = [*head, len(arrays)]
    for before, after in arrays:
        size = before.nbytes if after is None else after.nbytes
        numbers += [size, offset(before), offset(after)]
    for launch in program.launches:
        number = kernels.numbers[identities[launch.kernel]]
        scratch = launch.scratch_bytes + kernels.sources[number].scratch_bytes
        table = put(launch.table, 0) if launch.table else 0
        counts = [len(launch.places), len(launch.words)]
        numbers += [number, launch.items, scratch, table, *counts, *launch.places, *launch.words]
    made.extend(bytes(-len(made) % 64))
    numbers[0] = len(made)
    struct.pack_into(f"<{len(numbers)}q", made, 0, *numbers)
    return bytes(made)


def block_of(plan: Plan, read: Sequence[Any], written: Sequence[Any], kernels: Kernels) -> bytes:
    """Return the block of a plan for a convolution."""
    program, identities = prepare.numbered(plan), prepare.identities(plan)
    return block(program, identities, places(read, written), kernels)


def build(
    kernels: Kernels, members: Sequence[tuple[str, bytes]], runner: Runner, folder: Path
) -> Path:
    """Link the runner with kernels; returns the program."""
    library, table, program = folder / "libkernels.a", folder / "table.c", folder / "program"
    library.write_bytes(
        archive.archive(members, kernels.target.system_of(kernels.triple).archive_style)
    )
    table.write_text(kernels.table())
    source = str(HERE / "runner.c")
    if runner is _WASM:
        made = [folder / "runner.o", folder / "table.o"]
        for text, code in zip((source, table), made, strict=True):
            _call("clang", "--target=wasm32", "-O2", "-nostdlib", "-c", text, "-o", code)
        exports = [f"--export={name}" for name in ("run_block", "wrong_at", "__heap_base")]
        _call("wasm-ld", "--no-entry", *exports, *made, library, "-o", program)
    else:
        options = ["-O2", "-DWITH_FILES", *runner.options]
        # Batch norm takes the root of a double, which the M4 has no instruction for.
        _call(runner.compiler, *options, source, table, library, "-lm", "-o", program)
    return program


def run(program: Path, blocks: Sequence[bytes], runner: Runner, folder: Path) -> list[str]:
    """Return what became of each block: `right`, or in words what was wrong."""
    path = folder / "blocks.bin"
    path.write_bytes(b"".join(blocks))
    command = [*runner.command, str(program)]
    if "-kernel" not in command:
        command.append(str(path))
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=900, check=False
    )
    lines = done.stdout.splitlines()
    found = []
    for line in lines:
        words = line.split(" ", 1)
        if words[0] == str(len(found)):
            answer, _, at = words[1].rpartition(" ")
            meaning = {
                "0": "right",
                "1": f"wrong at byte {at}",
                "2": "wrote beyond",
                "3": "too large",
                "4": "left another floating-point mode",
            }
            found.append(meaning.get(answer, answer))
    if len(found) < len(blocks):
        last = " ".join([*lines[-1:], done.stderr[-300:]])
        found += [f"ended before (status {done.returncode}): {last}"] * (len(blocks) - len(found))
    return found


def campaign(target: Target, size: Size, folder: Path, system: str | None = None) -> dict[str, Any]:
    """Compile and run problems of one row, or only compile them for a system; returns what was counted and failed."""
    rng = np.random.default_rng([size.seed, 77])
    kernels = Kernels(target, target.system_called(system).triple)
    drawn_trials = list(trials(target, rng, size))
    for trial in drawn_trials:
        kernels.add(prepare.identities(trial.plan))
    members = kernels.compiled()
    found: dict[str, Any] = {
        "trials": len(drawn_trials),
        "kernels": len(members),
        "bytes": sum(len(code) for _, code in members),
        "helpers": sorted(helpers(members, target.system_called(system), folder)),
        "runs": 0,
        "failures": [],
    }
    runners = RUNNERS.get(target.name, ()) if system is None else ()
    if not runners:
        return found
    blocks, names = [], []
    for trial in drawn_trials:
        name = f"{trial.algorithm} {trial.kind} {trial.case}"
        if trial.algorithm in ("choice", *NAMES):  # those one has to ask for are not exact
            whole = whole_numbers(trial.case, rng)
            expected = expected_exactly(trial.case, trial.kind, whole)
            blocks.append(block_of(trial.plan, operands(trial, whole), [expected], kernels))
            names.append(f"{name}, whole numbers")
        rough = normal(trial.case, rng)
        here = computed_here(trial, rough, kernels)
        blocks.append(block_of(trial.plan, operands(trial, rough), [here], kernels))
        names.append(f"{name}, random numbers")
    for runner in runners:
        program = build(kernels, members, runner, folder)
        for name, answer in zip(names, run(program, blocks, runner, folder), strict=True):
            found["runs"] += 1
            if answer != "right":
                found["failures"].append(f"{answer}: {name}")
    return found


def _call(*command: str | os.PathLike[str]) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stderr[-3000:]}"
