"""Winograd against our own direct kernels: time, and the errors of both on three kinds of data.

Both are the public calls, one with the switch on and one with it off. Errors are relative Frobenius errors in units
of the dtype's rounding, over the part of the result `contests.expect` would check.

normal        standard normal numbers
heavy-tailed  exp(3 N) with random signs, and 3% of the pixels of the image times 10000
whole         small whole numbers: both must be exact
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base import config
from ..._base.text import aligned
from .contests import Array, Contest, Tensors, expect_from, operands_of, our_call
from .layers import DTYPES, Layer
from .machine import describe
from .measure import Here, race
from .report import geometric_mean, ms
from .runner import Progress, RunSettings

DATA = ("normal", "heavy-tailed", "whole")


def measure_all(
    layers: Sequence[Layer],
    settings: RunSettings,
    progress: Progress = lambda done, text: None,
) -> dict[str, Any]:
    """Compare on every contest the planner computes by Winograd as `settings.winograd` allows."""
    rows: list[dict[str, Any]] = []
    left = 0
    for layer in layers:
        for op in settings.ops:
            contest = Contest(layer, op, settings.dtype, settings.layout)
            progress(1, f"{layer.name} {op}")
            names = [algorithm(contest, switch) for switch in (settings.winograd, "off")]
            if names[0] == names[1]:
                left += 1
            else:
                rows.append({**_measure(contest, settings), "algorithms": names})
    return {"rows": rows, "same": left, "machine": describe({}, settings.threads)}


def is_candidate(layer: Layer) -> bool:
    """Whether Winograd could compute it at all."""
    plain = (layer.kernel_h, layer.kernel_w, layer.stride, layer.dilation) == (3, 3, 1, 1)
    return plain and layer.is_dense


def algorithm(contest: Contest, switch: str) -> str:
    """Return which algorithm computes a contest with the switch at a value."""
    import convgrad

    layer = contest.layer
    name = {"fwd": "conv2d", "dx": "conv2d_backprop_input", "dw": "conv2d_backprop_filter"}
    with config.scope(winograd=switch):
        story = convgrad.explain(
            name[contest.op],
            layer.input_shape(contest.layout),
            layer.filter_shape,
            strides=layer.stride,
            padding=layer.padding,
            data_format=contest.layout,
            dilations=layer.dilation,
            dtype=DTYPES[contest.dtype].numpy,
        )
    return story.algorithm


def _switched(call: Callable[[], Array], switch: str) -> Callable[[], Array]:
    def run() -> Array:
        with config.scope(winograd=switch):
            return call()

    return run


def _measure(contest: Contest, settings: RunSettings) -> dict[str, Any]:
    call = our_call(contest, operands_of(contest))
    calls = {"winograd": _switched(call, settings.winograd), "direct": _switched(call, "off")}
    for each in calls.values():
        each()  # compiles
    times = race([Here(calls)], rounds=settings.rounds, seconds=settings.seconds)
    errors = {}
    for kind in DATA:
        arrays = draw_operands(contest, kind)
        expected = expect_from(contest, arrays)
        call = our_call(contest, arrays)
        errors[kind] = [
            _error(
                expected.part(contest, _switched(call, switch)()), expected.values, contest.dtype
            )
            for switch in (settings.winograd, "off")
        ]
    shown = {name: found.summary()["min_ms"] for (_, name), found in times.items()}
    return {
        "problem": contest.layer.name,
        "op": contest.op,
        "ms": shown,
        "ratio": shown["direct"] / shown["winograd"],
        "effective_gflops": contest.layer.flops() / shown["winograd"] / 1e6,
        "errors": errors,
    }


def draw_operands(contest: Contest, kind: str) -> Tensors:
    """Return operands of one kind of data."""
    rng = np.random.default_rng(1)
    layer, dtype = contest.layer, DTYPES[contest.dtype].numpy
    shapes = (
        layer.input_shape(contest.layout),
        layer.filter_shape,
        layer.output_shape(contest.layout),
    )
    if kind == "whole":
        x, f, g = (rng.integers(-4, 5, shape).astype(dtype) for shape in shapes)
        return Tensors(x, f, g)
    x, f, g = (rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
    if kind == "heavy-tailed":
        # A 16-bit float with 5 bits of exponent cannot hold the outliers: milder ones there.
        power, outlier = (1.0, 16.0) if contest.dtype == "half" else (3.0, 1e4)
        x, f, g = (
            np.sign(each) * np.exp(power * rng.standard_normal(each.shape, dtype=np.float32))
            for each in (x, f, g)
        )
        for image in (x, g):
            pixels = image if contest.layout == "NHWC" else image.transpose(0, 2, 3, 1)
            pixels[rng.random(pixels.shape[:3]) < 0.03] *= outlier
    return Tensors(*(each.astype(dtype) for each in (x, f, g)))


def _error(got: Array, exact: Array, dtype: str) -> float:
    difference = got.astype(np.float64) - exact
    size = float((exact**2).sum())
    return math.sqrt(float((difference**2).sum()) / size) / DTYPES[dtype].unit if size else 0.0


def render(results: dict[str, Any]) -> str:
    """Return the table as text."""
    rows = results["rows"]
    header = ["problem", "op", "algorithm", "ms", "direct ms", "ratio", "GF/s"]
    for kind in DATA:
        header += [kind, "direct"]
    lines = [header]
    for row in rows:
        shown = [ms(row["ms"]["winograd"]), ms(row["ms"]["direct"]), f"{row['ratio']:.2f}"]
        errors = [f"{value:.2f}" for kind in DATA for value in row["errors"][kind]]
        rate = f"{row['effective_gflops']:.0f}"
        lines.append([row["problem"], row["op"], row["algorithms"][0], *shown, rate, *errors])
    parts = [aligned(lines, left=(0, 1, 2))]
    for op in dict.fromkeys(row["op"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["op"] == op]
        parts.append(f"{op}: geometric mean {geometric_mean(ratios):.2f} of {len(ratios)} rows")
    parts.append(
        "ratio = direct / Winograd; GF/s counts the plain sum's operations; errors in u, relative Frobenius norm.\n"
        f"{results['same']} cases are left out: the planner computes them the same way with the switch off."
    )
    return "\n\n".join(parts)
