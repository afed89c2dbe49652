"""The compiled loop and the counting kernel, for tests that launch."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `jit`, which subprocesses import, too

import jit

from convgrad._runtime import threads as threads_module
from convgrad._runtime.launch import launch
from convgrad._runtime.pointers import pack_words


class Counting:
    """The counting kernel with its counters; `run` fails unless every item was run exactly once."""

    def __init__(self, most: int = 4096) -> None:
        self.address = jit.count_kernel()
        self.counters = np.zeros(most, np.int64)
        self.marks = np.zeros(3, np.int64)
        mark = self.marks.ctypes.data
        self.pointers = (mark, mark + 8, mark + 16)

    def run(self, items, grain=1, scratch_bytes=64, threads=None, pauses=0) -> None:
        assert items <= len(self.counters)
        self.counters[:] = 0
        self.marks[:] = 0
        args = pack_words(self.counters.ctypes.data, pauses, *self.pointers)
        launch(self.address, args, items, grain, scratch_bytes, threads)
        assert (self.counters[:items] == 1).all(), self.counters[:items]
        assert not self.counters[items:].any()
        assert self.marks[0] == 0, "two threads shared a workspace"

    @property
    def longest(self) -> int:
        return int(self.marks[1])

    @property
    def calls(self) -> int:
        return int(self.marks[2])


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def make_counting():
    return Counting


@pytest.fixture(autouse=True)
def loaded(monkeypatch):
    """Every test starts with a loader and without a process-wide number of threads."""
    from convgrad import _config

    threads_module.set_loader(jit.loader)
    monkeypatch.setattr(_config, "_process", {})
    yield
    gc.collect()


@pytest.fixture
def fresh_pool(monkeypatch):
    """A pool of its own for the test, emptied afterwards."""
    monkeypatch.setattr(threads_module, "_pool", None)
    yield
    if threads_module._pool is not None:
        threads_module._pool.stop(5)
