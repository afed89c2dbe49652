"""Objects for other systems come from a child process, whose death is an error that names the kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from convgrad._base.errors import CompileError
from convgrad._compiler.jit import llvm, objects, symbols
from convgrad._compiler.kernel import KernelSource
from convgrad._compiler.targets import ALL, find

AVX2 = find("avx2")
LINUX = AVX2.triple
GOOD = KernelSource("good", "define void @good(ptr %a) {\n store i64 7, ptr %a\n ret void\n}\n")
FIRST_BYTES = {
    "elf": b"\x7fELF",
    "wasm": b"\0asm",
    "macho": b"\xcf\xfa\xed\xfe",
}


def test_every_row_and_system_gives_objects_of_its_format():
    for row in ALL:
        for system in row.systems:
            code = llvm.compile_for(GOOD.ir, objects.machine(row, system.triple))
            if system.object_format == "coff":
                machine = {"x86_64": 0x8664, "aarch64": 0xAA64}[row.architecture]
                assert int.from_bytes(code[:2], "little") == machine
            else:
                assert code.startswith(FIRST_BYTES[system.object_format]), (row.name, system.name)
            assert (system.symbol_prefix + "good").encode() in code


def test_progress_and_order():
    other = KernelSource("other", GOOD.ir.replace("@good", "@other"))
    told = []
    made = objects.compile_all(
        [GOOD, other, GOOD], AVX2, LINUX, progress=lambda *said: told.append(said)
    )
    assert told == [(1, 3, "good"), (2, 3, "other"), (3, 3, "good")]
    assert made[0] == made[2] and b"other" in made[1] and b"good" not in made[1]
    assert objects.compile_all([], AVX2, LINUX) == []


def _many(count):
    return [KernelSource(f"k{i}", GOOD.ir.replace("@good", f"@k{i}"), 0) for i in range(count)]


def test_several_processes_give_the_same_in_the_same_order():
    sources, told = _many(13), []
    found = objects.compile_all(
        sources, AVX2, LINUX, processes=3, progress=lambda *step: told.append(step)
    )
    assert found == objects.compile_all(sources, AVX2, LINUX)
    assert told == [(i + 1, 13, f"k{i}") for i in range(13)]


def test_an_interruption_ends_all_processes(monkeypatch):
    children = []

    class Watched(objects._Compiler):
        def __init__(self, wanted):
            super().__init__(wanted)
            children.append(self._process)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(objects, "_Compiler", Watched)
    with pytest.raises(KeyboardInterrupt):
        objects.compile_all(_many(16), AVX2, LINUX, processes=3, progress=interrupt)
    assert len(children) == 3 and all(each.returncode is not None for each in children)


def test_a_triple_of_another_row_is_refused():
    with pytest.raises(
        ValueError, match="the target avx2 has no triple 'riscv64-unknown-none-elf'"
    ):
        objects.compile_all([GOOD], AVX2, "riscv64-unknown-none-elf")


def test_what_llvm_refuses_names_the_kernel_and_the_row():
    bad = KernelSource("bad", "define nonsense")
    with pytest.raises(
        CompileError,
        match=r"the kernel bad for avx2 \(x86_64-unknown-linux-gnu\) was not compiled: LLVM refused",
    ):
        objects.compile_all([GOOD, bad], AVX2, LINUX)


def test_llvm_ending_its_process_is_an_error():
    """Where LLVM cannot go on it aborts, and says why on the way."""
    fatal = KernelSource("fatal", 'define void @fatal() gc "unknown" {\n ret void\n}\n')
    with pytest.raises(
        CompileError,
        match=r"LLVM's process (died|ended) \(.*\) at the kernel fatal for avx2 \(.*\): .*unsupported GC",
    ):
        objects.compile_all([GOOD, fatal], AVX2, LINUX)


class Child:
    """Plays tricks on the child when it is asked for the second kernel."""

    def __init__(self, monkeypatch, trick):
        self.asked = 0
        ask = objects._Compiler._ask

        def tricked(compiler, ir):
            self.asked += 1
            if self.asked == 2:
                trick(compiler._process.pid)
            return ask(compiler, ir)

        monkeypatch.setattr(objects._Compiler, "_ask", tricked)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGKILL])
def test_a_died_child_names_kernel_target_and_signal(monkeypatch, number):
    def kill(pid):
        os.kill(pid, number)
        time.sleep(0.2)

    Child(monkeypatch, kill)
    with pytest.raises(
        CompileError,
        match=rf"died \(signal {number.value}, {number.name}\) at the kernel good for avx2 \({LINUX}\)",
    ):
        objects.compile_all([GOOD, GOOD], AVX2, LINUX)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_child_that_hangs_is_ended(monkeypatch):
    Child(monkeypatch, lambda pid: os.kill(pid, signal.SIGSTOP))
    began = time.monotonic()
    with pytest.raises(CompileError, match="took longer than 5 s at the kernel good for avx2"):
        objects.compile_all([GOOD, GOOD], AVX2, LINUX, seconds=5)
    assert time.monotonic() - began < 60
    assert not [each for each in threading.enumerate() if isinstance(each, threading.Timer)]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_without_memory_there_is_an_error(monkeypatch):
    import resource

    def starve(pid):
        size = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
        resource.prlimit(pid, resource.RLIMIT_AS, (size + (1 << 20),) * 2)

    Child(monkeypatch, starve)
    with pytest.raises(
        CompileError, match=r"the kernel good for avx2 .* no memory to compile a kernel"
    ):
        objects.compile_all([GOOD, GOOD], AVX2, LINUX)


def test_a_process_that_cannot_start_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(CompileError, match="no process could be started to compile kernels"):
        objects.compile_all([GOOD], AVX2, LINUX)


def test_a_target_llvm_lacks_is_refused_with_those_it_has(monkeypatch):
    lacking = llvm.Machine("avr-unknown-none", "", "")
    monkeypatch.setattr(llvm, "_llvm_target", _without("wasm32", llvm._llvm_target))
    answer = objects._answer(GOOD.ir, replace(lacking, triple="wasm32-unknown-unknown"))
    assert answer == (
        "this LLVM cannot compile for wasm32-unknown-unknown; it can for "
        "avx512, avx2, sse2, neon, cortex_m4, cortex_m7, riscv64, riscv64v"
    )


def _without(architecture, look_up):
    def found(triple):
        if triple.startswith(architecture):
            raise CompileError("No available targets are compatible with the triple")
        return look_up(triple)

    return found


def test_modules_of_the_working_folder_are_not_imported(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert objects.compile_all([GOOD], AVX2, LINUX)


def test_objects_for_this_system_hold_the_code_the_jit_runs():
    """The same instructions: what a pack computes here is what the JIT computes, bit for bit."""
    target = find("sse2")
    for_jit = llvm.compile_for(GOOD.ir, llvm.Machine(target.triple, target.cpu, target.features))
    (for_pack,) = objects.compile_all([GOOD], target, target.triple)
    assert for_jit == for_pack


def test_symbols_are_a_hash_of_all_but_the_name():
    one = symbols.in_pack(GOOD, AVX2, LINUX)
    same = KernelSource("another", GOOD.ir.replace("@good", "@another"), GOOD.scratch_bytes)
    assert symbols.in_pack(same, AVX2, LINUX) == one
    assert symbols.in_pack(one, AVX2, LINUX) == one
    assert f"define void @{one.symbol}(" in one.ir and "@good" not in one.ir
    others = [
        symbols.in_pack(KernelSource("good", GOOD.ir.replace("7", "8")), AVX2, LINUX),
        symbols.in_pack(GOOD, find("sse2"), LINUX),
        symbols.in_pack(GOOD, replace(AVX2, features="+avx2"), LINUX),
        symbols.in_pack(GOOD, AVX2, AVX2.system_called("windows").triple),
    ]
    assert len({one.symbol, *(each.symbol for each in others)}) == 5


def test_a_symbol_that_starts_another_name_is_left_alone():
    source = KernelSource(
        "f", "define void @f() {\n call void @f.x()\n call void @fx()\n ret void\n}"
    )
    made = symbols.in_pack(source, AVX2, LINUX)
    assert "@f.x()" in made.ir and "@fx()" in made.ir and f"@{made.symbol}()" in made.ir


def test_symbols_do_not_depend_on_the_process():
    program = (
        "from convgrad._compiler.jit import symbols; from convgrad._compiler.kernel import KernelSource;"
        "from convgrad._compiler.targets import find; row = find('avx2');"
        "print(symbols.in_pack(KernelSource('f', 'define void @f() { ret void }'), row, row.triple).symbol)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(seen) == 1
