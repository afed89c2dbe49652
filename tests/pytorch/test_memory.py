"""The C library's memory: what is set, what is said where nothing can be set, and that it is taken back."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import pytest

from convgrad import torch as ours
from convgrad._base import memory


class Library:
    """A C library that writes down what it is asked, and accepts it or not."""

    def __init__(self, accepts: int = 1) -> None:
        self.asked: list[Any] = []
        self._accepts = accepts

    def mallopt(self, name: int, value: int) -> int:
        self.asked.append((name, value))
        return self._accepts

    def malloc_trim(self, pad: int) -> int:
        self.asked.append("trim")
        return 1


def test_what_is_set_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(memory, "_glibc", lambda: library)
    setting = ours.tune_memory()
    assert setting.applied and memory.is_tuned() and "kept" in str(setting)
    trim, mapped, heaps = -1, -3, -8  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX of malloc.h
    assert dict(library.asked) == {mapped: 1 << 30, trim: 0x7FFFFFFF, heaps: 1}
    library.asked.clear()
    setting.undo()
    assert not memory.is_tuned()
    assert library.asked == [(mapped, 128 << 10), (trim, 128 << 10), (heaps, 0), "trim"]


def test_a_refusal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(accepts=0)
    monkeypatch.setattr(memory, "_glibc", lambda: library)
    setting = ours.tune_memory()
    assert not setting.applied and "refused" in setting.reason and not memory.is_tuned()
    library.asked.clear()
    setting.undo()
    assert library.asked == []


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_glibc", lambda: None)
    monkeypatch.setattr(memory.platform, "system", lambda: "Darwin")
    setting = ours.tune_memory()
    assert not setting.applied and "the C library of Darwin" in str(setting)
    setting.undo()


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_a_library_that_is_not_glibc(monkeypatch: pytest.MonkeyPatch, error: Any) -> None:
    def missing(name: object) -> Any:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert memory._glibc() is None


@pytest.mark.skipif(memory._glibc() is None, reason="this is not glibc")
def test_large_blocks_stay_with_the_process() -> None:
    """Freed memory is reused at its address, and given back after `undo`."""
    program = """
import ctypes, re
from convgrad._base import memory

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]

def touch():
    block = library.malloc(200 << 20)
    ctypes.memset(block, 1, 200 << 20)
    library.free(block)
    return resident()

first = touch()
setting = memory.tune_memory()
kept = touch()
setting.undo()
print(setting.applied, kept - first > 150, kept - resident() > 150)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True", "True"]


@pytest.mark.skipif(memory._glibc() is None, reason="this is not glibc")
def test_large_blocks_of_other_threads_stay_too() -> None:
    """glibc gives a thread of its own a heap of 64 MB, and maps what does not fit."""
    program = """
import ctypes, resource, sys, threading
from convgrad._base import memory

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
if sys.argv[1] == "tuned":
    memory.tune_memory()
faults = []

def touch():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = library.malloc(200 << 20)
    ctypes.memset(block, 1, 200 << 20)
    library.free(block)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

def work():
    touch()
    touch()

thread = threading.Thread(target=work)
thread.start()
thread.join()
print(faults[1])
"""
    faults = {
        how: int(
            subprocess.run(
                [sys.executable, "-W", "error", "-c", program, how],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for how in ("tuned", "plain")
    }
    assert faults["tuned"] < 50 < faults["plain"]  # 51,200 pages, or 100 huge ones


def test_accelerate_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(memory, "_glibc", lambda: None)
    report = ours.accelerate(torch.nn.Conv2d(1, 1, 1), memory=True)
    assert report.memory is not None and not report.memory.applied
    assert f"Memory: {report.memory}." in str(report)
    assert ours.accelerate(torch.nn.Conv2d(1, 1, 1)).memory is None
