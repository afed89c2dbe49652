"""The ELF loader does what LLVM's does, and refuses what it does not know."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from calling import ROWS, SIGNATURE
from convgrad._base.errors import CompileError
from convgrad._compiler.codegen import F32, KernelBuilder
from convgrad._compiler.jit import elf, llvm

pytestmark = pytest.mark.skipif(not elf.supported(), reason="objects here are not ELF")
TARGET = ROWS[0]


@pytest.fixture(scope="module")
def code():
    """A kernel with vector constants and a jump table."""
    k = KernelBuilder("probe", TARGET)
    for case in k.cases(k.arg_i64(1), range(9)):
        lanes = k.mask([bool(case >> bit & 1) for bit in range(4)])
        chosen = k.select(lanes, k.constant(F32, 4, 1.25 + case), k.constant(F32, 4, -7.5))
        k.arg_pointer(0, F32).store(chosen)
    return llvm.compile_object(k.finish().ir, TARGET)


def _answers(address):
    out = np.zeros((10, 4), np.float32)
    for case in range(10):
        words = np.array([out[case].ctypes.data, case], np.int64)
        SIGNATURE(address)(words.ctypes.data, 0, 1, 0)
    return out


def test_same_answers_as_llvm(code):
    ours = _answers(elf.load(code, "probe"))
    np.testing.assert_array_equal(ours, _answers(llvm.load(code, "probe", TARGET)))
    assert ours[3].tolist() == [4.25, 4.25, -7.5, -7.5] and not ours[9].any()


def test_memory_is_never_writable_and_executable(code):
    address = elf.load(code, "probe")
    with open("/proc/self/maps") as maps:  # noqa: PTH123 - a file that has no path semantics
        for line in maps:
            low, _, high = line.split()[0].partition("-")
            if int(low, 16) <= address < int(high, 16):
                assert line.split()[1] == "r-xp"
                return
    raise AssertionError("the kernel is not mapped")


def test_nothing_is_ever_asked_to_be_both(code, monkeypatch):
    """Afterwards is too late to look: what is filled while it can be run can be changed while it is run."""
    asked = []

    class Watching:
        munmap = staticmethod(elf._library().munmap)

        @staticmethod
        def mmap(*arguments):
            asked.append(arguments[2])
            return real.mmap(*arguments)

        @staticmethod
        def mprotect(*arguments):
            asked.append(arguments[2])
            return real.mprotect(*arguments)

    real = elf._library()
    monkeypatch.setattr(elf, "_library", Watching)
    elf.check_allowed()
    elf.load(code, "probe")
    both = mmap.PROT_WRITE | mmap.PROT_EXEC
    assert len(asked) == 4 and not [each for each in asked if each & both == both]
    assert sum(bool(each & mmap.PROT_EXEC) for each in asked) == 2


def test_no_mapping_of_a_process_is_both(tmp_path):
    """After kernels and the parallel loop were loaded and used; llvmlite's callbacks have a page of ctypes' own."""
    program = """
import sys
import numpy as np, convgrad
def both():
    lines = open("/proc/self/maps").read().splitlines()
    return {line.split()[0] for line in lines if {"w", "x"} <= set(line.split()[1])}
if sys.argv[1] == "cold":
    import llvmlite.binding
before = both()
x, f = np.ones((2, 64, 64, 32), np.float32), np.ones((3, 3, 32, 32), np.float32)
with convgrad.threads(2):
    convgrad.conv2d(x, f, 1, "SAME")
    convgrad.depthwise_conv2d(x, f[..., :1], 1, "SAME")
assert convgrad._compiler.jit.stats().kernels > 2
assert sys.argv[1] == "cold" or not before and "llvmlite" not in sys.modules
print(both() - before)
"""
    for state in ("cold", "warm"):
        done = subprocess.run(
            [sys.executable, "-c", program, state],
            env={**os.environ, "CONVGRAD_CACHE_DIR": str(tmp_path), "CONVGRAD_DISK_CACHE": "1"},
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.stderr) == ("set()\n", "")


def test_refused_executable_memory_is_a_compile_error(code, monkeypatch):
    class Refusing:
        mmap = staticmethod(elf._library().mmap)
        munmap = staticmethod(elf._library().munmap)

        @staticmethod
        def mprotect(*_):
            ctypes.set_errno(13)
            return -1

    monkeypatch.setattr(elf, "_library", Refusing)
    with pytest.raises(CompileError, match="refuses executable memory"):
        elf.load(code, "probe")


def test_no_memory_is_a_compile_error(code, monkeypatch):
    class Empty:
        @staticmethod
        def mmap(*_):
            ctypes.set_errno(12)
            return ctypes.c_void_p(-1).value

    monkeypatch.setattr(elf, "_library", Empty)
    with pytest.raises(CompileError, match="no memory"):
        elf.load(code, "probe")


def test_unknown_relocations_are_refused(code):
    image = elf._Image(code)
    section = next(s for s in image._sections if s.kind == 4 and s.info in image._places)
    broken = bytearray(code)
    info = struct.unpack_from("<Q", code, section.offset + 8)[0]
    struct.pack_into("<Q", broken, section.offset + 8, info & ~0xFFFFFFFF | 250)
    with pytest.raises(elf.Unsupported, match="relocation 250"):
        elf.load(bytes(broken), "probe")


def test_calls_are_refused():
    ir = "declare void @puts(ptr)\ndefine void @f(ptr %a) {\n call void @puts(ptr %a)\n ret void\n}"
    with pytest.raises(elf.Unsupported, match="external symbol 'puts'"):
        elf.load(llvm.compile_object(ir, TARGET), "f")


def test_other_files_are_refused(code):
    for broken in (b"", b"MZ" + code[2:], code[:100], code[:18] + b"\x07\x00" + code[20:]):
        with pytest.raises(elf.Unsupported):
            elf.load(broken, "probe")
    with pytest.raises(elf.Unsupported, match="no function other"):
        elf.load(code, "other")


def _arm(kind, value, here, word=0):
    memory = bytearray(struct.pack("<II", word, 0))
    elf._relocate_arm(memory, 0, kind, value, here)
    return struct.unpack_from("<I" if kind != 257 else "<Q", memory)[0]


def test_arm_relocations_match_the_manual():
    # adrp x0: pages forward and back; immlo is bits 30:29, immhi 23:5.
    assert _arm(275, 0x5123, 0x1456, 0x90000000) == 0x90000020
    assert _arm(275, 0x0FFF, 0x1000, 0x90000000) == 0xF0FFFFE0
    assert _arm(277, 0x1ABC, 0, 0x91000000) == 0x91000000 | 0xABC << 10
    assert _arm(299, 0x1AB0, 0, 0x3DC00000) == 0x3DC00000 | 0xAB << 10
    assert _arm(283, 0x1000, 0x2000, 0x94000000) == 0x94000000 | (-0x400 & 0x3FFFFFF)
    assert _arm(257, 1 << 40, 0) == 1 << 40
    for kind, value, here in ((275, 1 << 33, 0), (283, 1 << 28, 0), (299, 8, 0), (999, 0, 0)):
        with pytest.raises(elf.Unsupported):
            _arm(kind, value, here)


def test_code_outlives_the_interpreter(tmp_path, code):
    """A daemon thread may be inside a kernel while Python shuts down."""
    (tmp_path / "code").write_bytes(code)
    program = f"""
import atexit, ctypes
from pathlib import Path
from convgrad._compiler.jit import elf
address = elf.load(Path({str(tmp_path / "code")!r}).read_bytes(), "probe")
libc = ctypes.CDLL(None)
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
# Registered with the C library, so it runs after the interpreter is gone; case 9 stores nothing.
words = libc.malloc
words.restype = ctypes.c_void_p
block = words(16)
ctypes.memset(block, 9, 16)
libc.__cxa_atexit(ctypes.c_void_p(address), ctypes.c_void_p(block), None)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
