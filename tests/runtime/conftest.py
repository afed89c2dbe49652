"""The compiled loop and the counting kernel, for tests that launch."""

from __future__ import annotations

import gc

import pytest

from convgrad import _config
from convgrad._runtime import threads as threads_module
from runtime.kernels import Counting, loader


@pytest.fixture(autouse=True, scope="module")
def few_objects():
    """Spare the collector what other tests have left: plans by the thousand, a second each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def make_counting():
    return Counting


@pytest.fixture(autouse=True)
def loaded(monkeypatch):
    """Every test starts with a loader and without a process-wide number of threads."""
    threads_module.set_loader(loader)
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
