"""Plans as data: bounds on memory and on tables, and how few kernels whole networks need."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from math import prod

import pytest

from cases import KINDS, Case
from convgrad import _jit, _planner
from convgrad._errors import ArgumentError
from kernels import NAMES, UNIVERSAL, problem_of
from shapes import LARGE

HOST = _jit.host_target()
MB = 1 << 20


def test_scratch_is_bounded() -> None:
    """Even large images and windows take little of it, and what would be absurd is refused."""
    for size, window, dilation in ((14, 7, 1), (56, 7, 1), (512, 3, 1), (1024, 31, 1), (64, 3, 24)):
        for data_format in ("NHWC", "NCHW"):
            case = Case(
                *(True, 1, (size, size), 96, 1, 1, (window, window), (1, 1)),
                *((dilation, dilation), "SAME", data_format),
            )
            for kind in KINDS:
                plan = _planner.choose(problem_of(case, kind), HOST)
                assert plan.algorithm != "reference"
                assert plan.steps[0].scratch_bytes <= 1 << 20, (case, kind, plan.story)
                assert plan.partial_bytes <= 8 << 20, (case, kind, plan.story)
    case = Case(True, 1, (4096, 4096), 8, 1, 1, (1500, 1500), (1, 1), (1, 1), "SAME")
    with pytest.raises(ArgumentError, match="scratch"):
        _planner.choose_named(problem_of(case, "forward"), HOST, UNIVERSAL[True]["forward"])


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("shape", LARGE)
def test_plans_of_large_problems_are_small(shape: str, data_format: str) -> None:
    """Planning is arithmetic, so sizes nobody could run here can be looked at; nothing may grow with them."""
    for dtype in ("float32", "bfloat16", "float64"):
        case = replace(LARGE[shape], data_format=data_format, dtype=dtype)
        wide = 8 if dtype == "float64" else 4
        for kind in KINDS:
            problem = problem_of(case, kind)
            for name in NAMES:
                if _planner.refusals(problem, HOST)[name] is not None:
                    continue
                plan = _planner.choose_named(problem, HOST, name)
                why = (name, case, kind, plan.story)
                for step in plan.steps:
                    assert step.scratch_bytes <= 2 * MB, (step.scratch_bytes, why)
                    assert len(step.table) <= 2 * MB, (len(step.table), why)
                    assert len(step.table) % 8 == 0
                    assert step.items >= 1
                    assert all(-(2**63) <= word < 2**63 for word in step.words)
                filter_bytes = wide * prod(case.filter_shape)
                # Sums of a filter gradient are at least one filter.
                assert plan.partial_bytes <= max(16 * MB, 2 * filter_bytes), (
                    plan.partial_bytes,
                    why,
                )
                assert plan.packed_bytes <= 4 * filter_bytes + MB, (plan.packed_bytes, why)


def layer(batch: int, size: int, window: int, stride: int, *channels: int) -> Case:
    """Channels are (in, out), or (channels,) for a depthwise layer."""
    depthwise = len(channels) == 1
    groups = (channels[0], 1, 1) if depthwise else (1, *channels)
    return Case(
        *(depthwise, batch, (size, size), *groups),
        *((window, window), (stride, stride), (1, 1), "SAME"),
    )


def resnet50(batch: int) -> list[Case]:
    layers = [layer(batch, 224, 7, 2, 3, 64)]
    before, size = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            layers += [
                layer(batch, size, 1, 1, before, width),
                layer(batch, size, 3, stride, width, width),
                layer(batch, size // stride, 1, 1, width, 4 * width),
            ]
            if not block:
                layers.append(layer(batch, size, 1, stride, before, 4 * width))
            before, size = 4 * width, size // stride
    return layers


def mobilenet_v2(batch: int) -> list[Case]:
    layers = [layer(batch, 224, 3, 2, 3, 32)]
    before, size = 32, 112
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for widen, width, blocks, first in (*rows, (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride, inside = (1 if block else first), widen * before
            if widen > 1:
                layers.append(layer(batch, size, 1, 1, before, inside))
            layers.append(layer(batch, size, 3, stride, inside))
            size //= stride
            layers.append(layer(batch, size, 1, 1, inside, width))
            before = width
    return [*layers, layer(batch, size, 1, 1, before, 1280)]


@pytest.mark.parametrize(
    ("network", "layers", "most"), [("resnet50", 53, 40), ("mobilenet_v2", 52, 60)]
)
def test_a_training_step_needs_few_kernels(network: str, layers: int, most: int) -> None:
    """Sizes are run-time words: a network compiles a few kernels, and another batch size compiles hardly any."""
    build = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2}[network]
    assert len(build(8)) == layers
    kernels: dict[int, set[Hashable]] = {}
    for batch in (8, 32):
        plans = [
            _planner.choose(problem_of(case, kind), HOST) for case in build(batch) for kind in KINDS
        ]
        assert all(plan.steps for plan in plans)
        kernels[batch] = {step.kernel for plan in plans for step in plan.steps}
    assert len(kernels[8]) <= most, sorted(map(repr, kernels[8]))
    assert len(kernels[8] | kernels[32]) <= most + 10
