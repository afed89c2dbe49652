"""Shared by the tests of `convgrad bench train`: a trainer without a framework in the place of PyTorch's."""

from __future__ import annotations

import pytest

from bench.fake_training import FAKE
from benchmarks.train.frameworks import TRAININGS


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRAININGS, "torch", FAKE)
