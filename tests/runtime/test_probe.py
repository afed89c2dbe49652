"""The roofs of this machine: every kernel that measures them runs, and a quick answer is remembered."""

from __future__ import annotations

import math

import pytest

from convgrad._engine import probe
from convgrad._runtime.threads import threads


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", probe.STREAMS)
def test_streams(name: str, count: int) -> None:
    with threads(count):
        for footprint in (1, 1 << 16):
            assert 0 < probe.stream(name, footprint, seconds=1e-5, rounds=1) < math.inf


@pytest.mark.parametrize("double", [False, True])
def test_peak(double: bool) -> None:
    assert 1e6 < probe.peak(double, steps=1000, rounds=1) < 1e15


def test_a_roof_is_measured_once_for_a_number_of_threads() -> None:
    with threads(1):
        first = probe.roof()
        assert probe.roof() is first and first.threads == 1
    with threads(2):
        assert probe.roof().threads == 2
