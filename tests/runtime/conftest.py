"""The compiled loop and the counting kernel, for tests that launch."""

from __future__ import annotations

import gc

import pytest

from convgrad._base import config
from convgrad._runtime import code
from convgrad._runtime import pool as pool_module
from convgrad._runtime.state import STATE_BLOCK
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
    """Every test starts with the entry and without a process-wide number of threads."""
    code.ensure(loader)
    monkeypatch.setattr(config, "_process", {})
    yield
    gc.collect()


@pytest.fixture
def fresh_pool(monkeypatch):
    """A pool of its own for the test, emptied afterwards."""
    monkeypatch.setattr(pool_module, "_pool", None)
    before = STATE_BLOCK["CONTROL"]
    STATE_BLOCK["CONTROL"] = 0
    yield
    if pool_module._pool is not None:
        pool_module._pool.stop(5)
    STATE_BLOCK["CONTROL"] = before
