"""Plans as data: bounds on memory and on tables, and how few kernels whole networks need, on several machines."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Hashable, Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from cases import KINDS, Case
from convgrad._apps.bench.networks import NETWORKS
from convgrad._base.errors import ArgumentError
from convgrad._compiler import jit
from convgrad._compiler.targets import Target
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS, emit
from convgrad._kernels.dense_direct.axis import AxisTable
from convgrad._kernels.dense_filter.tables import blocks
from convgrad._kernels.dense_filter.words import SPAN, TAP
from convgrad._kernels.shared.gather import gather
from convgrad._problem.convolution import Kind
from convgrad._problem.geometry import Axis, solve
from kernels import NAMES, UNIVERSAL, problem_of
from shapes import LARGE

HOST = jit.host_target()
MB = 1 << 20


def test_scratch_is_bounded(machine: Target) -> None:
    """Even large images and windows take little of it, and what would be absurd is refused."""
    for size, window, dilation in ((14, 7, 1), (56, 7, 1), (512, 3, 1), (1024, 31, 1), (64, 3, 24)):
        for data_format in ("NHWC", "NCHW"):
            case = Case(
                *(True, 1, (size, size), 96, 1, 1, (window, window), (1, 1)),
                *((dilation, dilation), "SAME", data_format),
            )
            for kind in KINDS:
                plan = planner.choose(problem_of(case, kind), machine)
                assert plan.algorithm != "reference"
                for step in plan.steps:
                    assert step.scratch_bytes <= 1 << 20, (case, kind, plan.story)
                assert plan.partial_bytes <= 8 << 20, (case, kind, plan.story)
    case = Case(True, 1, (4096, 4096), 8, 1, 1, (1500, 1500), (1, 1), (1, 1), "SAME")
    with pytest.raises(ArgumentError, match="scratch"):
        planner.choose_named(problem_of(case, "forward"), machine, UNIVERSAL[True]["forward"][0])


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "reference"])
def test_scratch_is_bounded_with_what_the_kernel_adds(name: str) -> None:
    """A thread gets what the plan says and what the kernel itself asked for while it was written."""
    total = 0
    for case in (
        Case(True, 1, (1024, 1024), 96, 1, 1, (31, 31), (1, 1), (1, 1), "SAME"),
        Case(True, 1, (4096, 4096), 1, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
        Case(True, 1, (4096, 4096), 3, 1, 1, (3, 3), (2, 2), (1, 1), "SAME"),
        Case(True, 4, (512, 512), 40, 1, 3, (5, 5), (2, 2), (1, 1), "SAME"),
        Case(True, 4, (33, 40), 64, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
        Case(False, 1, (512, 2048), 1, 512, 512, (3, 3), (1, 1), (1, 1), "SAME"),
        Case(False, 64, (14, 14), 2, 1024, 512, (7, 7), (2, 2), (1, 1), "SAME"),
        Case(False, 8, (56, 56), 32, 64, 64, (7, 7), (2, 2), (1, 1), "SAME"),
    ):
        for kind, (data_format, dtype) in itertools.product(
            KINDS, (("NHWC", "float64"), ("NCHW", "float32"), ("NHWC", "bfloat16"))
        ):
            problem = problem_of(replace(case, data_format=data_format, dtype=dtype), kind)
            if ALGORITHMS[name].why_not(problem, HOST) is not None:
                continue
            for step in planner.choose_named(problem, HOST, name).steps:
                own = emit(step.kernel, HOST).scratch_bytes
                # Beside what is asserted of plans: no kernel's own part makes a difference.
                assert own <= MB // 2, (case, kind, dtype)
                assert step.scratch_bytes + own <= 2 * MB or "depthwise" not in name, (case, kind)
                total += 1
    assert total


WIDE = (
    (False, 1, 1024, 64, (15, 15), 1),
    (False, 1, 256, 256, (41, 41), 1),
    (False, 32, 16, 64, (31, 7), 2),
    (False, 1, 2048, 32, (7, 7), 1),
    (True, 96, 1, 2, (41, 41), 8),
    (True, 512, 1, 8, (41, 3), 8),
)
"""Depthwise, groups, channels in and out of a group, window, dilation: reaching far, over many channels."""


@pytest.mark.parametrize("row", WIDE, ids=str)
@pytest.mark.parametrize("size", [(60, 60), (2048, 64)], ids=str)
def test_scratch_does_not_grow_with_the_image(
    row: Any, size: tuple[int, int], machine: Target
) -> None:
    """Blocks are cut until 8 MB hold what their windows reach, or one pixel's; 44 MB were taken before that."""
    depthwise, groups, group_in, group_out, window, dilation = row
    for data_format, dtype in (("NHWC", "half"), ("NCHW", "float32"), ("NHWC", "float64")):
        case = Case(
            *(depthwise, 2, size, groups, group_in, group_out, window, (1, 1)),
            *((dilation, dilation), "SAME", data_format, dtype),
        )
        reach = window[0] * min(size[1], dilation * (window[1] - 1) + 1)
        for kind in KINDS[:2]:
            depth = groups * (group_in if kind == "forward" else group_out)
            one_pixel = reach * depth * (8 if dtype == "float64" else 4)
            plan = planner.choose(problem_of(case, kind), machine)
            for step in plan.steps:
                assert step.scratch_bytes <= 8 * MB + MB + one_pixel, (case, kind, plan.story)
                if one_pixel < MB // 4:
                    assert step.scratch_bytes <= 8 * MB + MB, (case, kind, plan.story)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("shape", LARGE)
def test_plans_of_large_problems_are_small(shape: str, data_format: str, machine: Target) -> None:
    """Planning is arithmetic, so sizes nobody could run here can be looked at; nothing may grow with them."""
    for dtype in ("float32", "bfloat16", "float64") if data_format == "NHWC" else ("float32",):
        case = replace(LARGE[shape], data_format=data_format, dtype=dtype)
        wide = 8 if dtype == "float64" else 4
        for kind in KINDS:
            problem = problem_of(case, kind)
            for name in NAMES:
                if planner.why_not(name, problem, machine) is not None:
                    continue
                plan = planner.choose_named(problem, machine, name)
                why = (name, case, kind, plan.story)
                for step in plan.steps:
                    assert step.scratch_bytes <= 2 * MB, (step.scratch_bytes, why)
                    # A filter gradient lists pixels tap by tap, for every kind of block: 961 taps make many.
                    most = 40 * MB if prod(case.window) > 256 and kind == "filter" else 2 * MB
                    assert len(step.table) <= most, (len(step.table), why)
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


def case_of(layer: Any) -> Case:
    """Return a layer of the benchmarks' networks as a case."""
    channels = (layer.groups, layer.channels // layer.groups, layer.outputs // layer.groups)
    return Case(
        *(not layer.is_dense, layer.batch, (layer.height, layer.width)),
        *(channels if layer.is_dense else (layer.channels, 1, layer.multiplier)),
        *((layer.kernel_h, layer.kernel_w), (layer.stride,) * 2, (layer.dilation,) * 2),
        layer.padding,
    )


@pytest.mark.parametrize(
    ("network", "layers", "most"), [("resnet50", 53, 40), ("mobilenet_v2", 52, 60)]
)
def test_a_training_step_needs_few_kernels(
    network: str, layers: int, most: int, machine: Target
) -> None:
    """Sizes are run-time words: a network compiles a few kernels, and another batch size compiles hardly any."""
    assert len(NETWORKS[network].layers(8)) == layers
    kernels: dict[int, set[Hashable]] = {}
    for batch in (8, 32):
        cases = [case_of(layer) for layer in NETWORKS[network].layers(batch)]
        plans = [
            planner.choose(problem_of(case, kind), machine) for case in cases for kind in KINDS
        ]
        assert all(plan.steps for plan in plans)
        assert max(step.scratch_bytes for plan in plans for step in plan.steps) <= 2 * MB
        kernels[batch] = {step.kernel for plan in plans for step in plan.steps}
    assert len(kernels[8]) <= most, sorted(map(repr, kernels[8]))
    assert len(kernels[8] | kernels[32]) <= most + 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [1, 2, 5, 40])
def test_no_number_of_channels_makes_a_kernel_long(groups: int, kind: str) -> None:
    """Text that grows with the channels takes LLVM seconds: 1000 outputs of one channel once took a minute."""
    lines = []
    for outputs in (20, 200, 1000):
        case = Case(True, 2, (6, 5), groups, 1, outputs, (2, 3), (1, 1), (1, 1), "SAME")
        plan = planner.choose(problem_of(case, kind), HOST)
        lines.append(sum(emit(step.kernel, HOST).ir.count("\n") for step in plan.steps))
    assert max(lines) <= 3000, lines


def drawn_axes(seed: int, count: int) -> Iterator[tuple[random.Random, Axis]]:
    """Draw axes of all proportions that have outputs."""
    pick = random.Random(seed)
    for _ in range(count):
        size, window = pick.choice((1, 2, 7, 16, 70)), pick.choice((1, 2, 3, 7, 64, 70))
        stride, dilation = pick.choice((1, 2, 3, 20)), pick.choice((1, 2, 9))
        padding = pick.choice(("SAME", (0, 0), (3, 8), (70, 0)))
        axis = solve(size, window, stride, dilation, padding)
        if axis.out > 0:
            yield pick, axis


def test_axis_tables_tell_what_every_cell_reads() -> None:
    """The table looks at a few cells and infers the others; here each is asked."""
    for pick, axis in drawn_axes(6, 150):
        for kind in (Kind.FORWARD, Kind.INPUT_GRADIENT):
            cells, found = axis.out, gather(axis, kind)
            if kind is Kind.INPUT_GRADIENT:
                cells = axis.size
            table = AxisTable(found, pick.choice((1, 4, cells)))
            for cell in range(cells):
                read = {}
                for tap in range(axis.window):
                    if kind is Kind.FORWARD:
                        at, left = cell * axis.stride + tap * axis.dilation - axis.before, 0
                    else:
                        at, left = divmod(cell + axis.before - tap * axis.dilation, axis.stride)
                    if left == 0 and 0 <= at < found.source:
                        read[tap] = at
                base, entries = table.base[cell], table.entries[table.classes[cell]]
                assert {tap: base + moved for tap, moved in entries} == read, (axis, kind, cell)
                assert base == next(iter(read.values()), -1)


def test_blocks_of_a_filter_gradient_hold_what_every_tap_reads() -> None:
    """Only blocks where a tap enters or leaves the image are looked at; here every output and tap is asked."""
    for pick, axis in drawn_axes(7, 150):
        size = pick.choice((1, 4, 5, axis.out))
        cut = blocks(axis, size)
        seen = 0
        spans = [dict(zip(SPAN, row, strict=True)) for row in cut.spans.tolist()]
        for number in range(cut.count):
            # The blocks of a span are alike, each as far from the one before as its outputs are.
            span = [each for each in spans if each["first"] <= number][-1]
            beyond = (number - span["first"]) * size
            first_cell = span["x_first"] + beyond * axis.stride
            start = span["y_first"] + beyond
            block = cut.classes[span["kind"]]
            assert start == seen and block.count == min(size, axis.out - start)
            seen += block.count
            for tap, row in enumerate(block.taps.tolist()):
                at_tap = dict(zip(TAP, row, strict=True))
                places = at_tap["start"] + np.arange(at_tap["count"]) * at_tap["step"]
                cells = (first_cell + block.cells[places]).tolist()
                read = {start + at_tap["first"] + n: cell for n, cell in enumerate(cells)}
                wanted = {
                    out: at
                    for out in range(start, start + block.count)
                    if 0
                    <= (at := out * axis.stride + tap * axis.dilation - axis.before)
                    < axis.size
                }
                assert read == wanted, (axis, start, tap)
        assert seen == axis.out


def test_a_long_axis_is_planned_in_little_memory() -> None:
    """A million cells of 101 taps were a table of 1.7 GB, gone after the plan was made, and took 9 s."""
    axis = solve(1_000_000, 101, 1, 1, "SAME")
    long = gather(axis, Kind.FORWARD)
    tracemalloc.start()
    try:
        AxisTable(long, 512)
        blocks(axis, 64)
        assert tracemalloc.get_traced_memory()[1] < 150 * MB
    finally:
        tracemalloc.stop()
