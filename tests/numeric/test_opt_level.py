"""Tests may compile kernels at LLVM's level 0, which takes a fifth of the time: they compute the very same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from cases import normal
from convgrad._base import config
from convgrad._compiler import jit
from convgrad._kernels import ALGORITHMS
from kernels import compute, random_case_for


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "reference"])
def test_the_level_changes_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_kernels", {})  # other tests may have left some
    target = jit.host_target()
    with config.scope(winograd="fast"):
        case, kinds = random_case_for(np.random.default_rng(7), name, target, dtype="float32")
        data = normal(case, np.random.default_rng(8))
        results = []
        for level in (0, 2):
            with config.scope(opt_level=level):
                before = jit.counted()
                results.append(
                    [compute(name, target, case, kind, data).tobytes() for kind in kinds]
                )
                spent = jit.counted() - before
            # Not the other level's kernels.
            assert spent.compiled + spent.from_disk + spent.from_text
    assert results[0] == results[1]
