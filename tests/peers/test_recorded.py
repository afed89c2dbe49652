"""The oracle against what three frameworks have answered before; `test_frameworks` asks them again where they are."""

from __future__ import annotations

from typing import Any

import pytest

from cases import KINDS, run
from peers.recorded import CASES, digest, read, whole

CASES_READ, ANSWERS = read()


def test_the_record_covers_the_matrix() -> None:
    assert set(ANSWERS) == {"PyTorch", "JAX", "TensorFlow"}
    assert len(CASES_READ) == len(set(CASES_READ)) == CASES
    assert all(len(each["hashes"]) == CASES * len(KINDS) for each in ANSWERS.values())
    assert {(each.depthwise, each.data_format) for each in CASES_READ} == {
        (depthwise, layout) for depthwise in (True, False) for layout in ("NHWC", "NCHW")
    }
    assert {each.padding if isinstance(each.padding, str) else "" for each in CASES_READ} == {
        *("SAME", "VALID", "")
    }
    assert any(min(each.strides) > 1 < min(each.dilations) for each in CASES_READ)
    assert any(not each.depthwise and each.groups > 1 for each in CASES_READ)
    # Hashes that tell answers apart: no two cases have one by accident.
    assert len(set(ANSWERS["JAX"]["hashes"])) > 0.9 * CASES * len(KINDS)


@pytest.mark.parametrize("framework", ["PyTorch", "JAX", "TensorFlow"])
def test_the_oracle_agrees(framework: str, checked: Any) -> None:
    answers = iter(ANSWERS[framework]["hashes"])
    for case in CASES_READ:
        data = whole(case)
        for kind in KINDS:
            ours = run(case, kind, data, "reference", exact=True)
            assert digest(ours) == next(answers), (case, kind)
            checked["answers of PyTorch, JAX and TensorFlow, on record"] += 1
