"""A training by `fake_trainer`, in the configurations of PyTorch, for tests that start children."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.train import configurations as rows_of
from benchmarks.train.configurations import TORCH as CONFIGURATIONS
from benchmarks.train.configurations import Place
from benchmarks.train.frameworks import TITLES, TRAININGS, Training

FRAMEWORK: Any = SimpleNamespace(
    name="fake",
    title="Fake",
    version="1.2",
    distributions=("fake-cpu",),
    is_installed=True,
    environment=lambda threads: {"OMP_NUM_THREADS": str(threads)},
)
REFERENCE = "native_cl_memory"
FAKE = Training(FRAMEWORK, "bench.fake_trainer", tuple(TITLES), CONFIGURATIONS, REFERENCE)
SHORT = ["--rounds", "2", "--steps", "2", "--threads", "1"]


def select(text: str) -> list[Place]:
    return rows_of.select(text, CONFIGURATIONS, REFERENCE)


def with_row(monkeypatch: pytest.MonkeyPatch, name: str, **how: Any) -> None:
    """Let one configuration of the fake behave badly."""
    changed = [replace(row, accelerate=how) if row.name == name else row for row in CONFIGURATIONS]
    monkeypatch.setitem(TRAININGS, "torch", replace(FAKE, configurations=tuple(changed)))
