"""Depthwise plans have items enough for many threads."""

from __future__ import annotations

import pytest

from cases import KINDS, Case
from convgrad._compiler.targets import Target
from convgrad._engine import planner
from kernels import problem_of

LARGE = {
    "ConvNeXt": Case(True, 8, (56, 56), 96, 1, 1, (7, 7), (1, 1), (1, 1), "SAME"),
    "RepLKNet": Case(True, 1, (56, 56), 128, 1, 1, (31, 31), (1, 1), (1, 1), "SAME"),
    "MobileNetV2": Case(True, 32, (56, 56), 144, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    "one channel": Case(True, 1, (512, 512), 1, 1, 1, (15, 15), (1, 1), (1, 1), "SAME"),
    "three channels": Case(True, 2, (96, 96), 3, 1, 8, (31, 31), (1, 1), (1, 1), "SAME"),
}


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LARGE)
def test_sixteen_threads_can_be_twelve_times_as_fast(
    name: str, kind: str, layout: str, machine: Target
) -> None:
    """18 items, as the filter gradients of some had, are two rounds: nine times."""
    found = LARGE[name]
    case = Case(**{**found.__dict__, "data_format": layout})
    plan = planner.choose(problem_of(case, kind), machine)
    step = plan.steps[0]
    claims = -(-step.items // step.grain)
    assert claims / -(-claims // 16) >= 12, plan.story
