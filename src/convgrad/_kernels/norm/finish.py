"""Between the two passes forwards: shares become statistics, and these what the second pass multiplies and adds.

Also the running statistics, and all of it for running ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import F64, Int, KernelBuilder, Mask, Pointer, Vector, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.norm.task import SAVED, SCALARS
from . import statistics, walk

WORDS = (
    *("at_weight", "at_bias", "at_running_mean", "at_running_var", "at_saved", "at_scalars"),
    *("channels", "shares"),
)
BLOCK = 64
"""Channels of an item."""


@dataclass(frozen=True)
class FinishKernel:
    """Ends statistics; items are blocks of channels."""

    parameter: str
    """Dtype of parameters and statistics."""
    source: str
    """Where statistics come from: "shares" of the pass before, or "running" ones."""


def emit(kernel: FinishKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    name = symbol("norm_finish", kernel.parameter, kernel.source, target, kernel)
    k = KernelBuilder(name, target)
    frame = walk.Frame(k, WORDS, False, kernel.parameter)
    scalars = frame.place("scalars", "f64")
    lanes = k.lanes(F64)
    scalar = {name: scalars.offset(i).load().broadcast(lanes) for i, name in enumerate(SCALARS)}
    channels = frame.word["channels"]
    weights, biases = frame.image("weight"), frame.image("bias")
    running = [frame.image(name) for name in ("running_mean", "running_var")]
    saved = frame.image("saved")
    rows = dict(zip(SAVED, (frame.row(saved, i) for i in range(len(SAVED))), strict=True))
    one = k.constant(F64, lanes, 1)
    with k.loop(k.begin, k.end) as item:
        stop = k.min((item + 1) * BLOCK, channels)
        with k.loop(item * BLOCK, stop, lanes, nonempty=True) as channel:
            mask = k.first_lanes(lanes, stop - channel)

            def read(row: Pointer, inside: Mask, channel: Int = channel) -> Vector:
                return walk.wide(row.offset(channel).load(lanes, mask=inside))

            def write(row: Pointer, value: Vector, inside: Mask, channel: Int = channel) -> Vector:
                stored = walk.rounded(value, kernel.parameter)
                row.offset(channel).store(stored, mask=inside)
                return walk.wide(stored)

            # What is not there has no lanes: nothing is read or written.
            there = {
                name: k.first_lanes(lanes, k.select(frame.present(name), stop - channel, k.i64(0)))
                for name in ("weight", "bias", "running_mean", "running_var")
            }
            if kernel.source == "running":
                mean, variance = (read(row, mask) for row in running)
            else:
                mean, variance = _merged(frame, channel, mask)
                keep, take = one - scalar["momentum"], scalar["momentum"]
                for name, row, new in zip(
                    ("running_mean", "running_var"),
                    running,
                    (mean, variance * scalar["unbiased"]),
                    strict=True,
                ):
                    old = read(row, there[name])
                    write(row, k.fma(old, keep, new * take), there[name])
            inverse = one / k.sqrt(variance + scalar["epsilon"])
            given = read(weights, there["weight"])
            weight = k.select(frame.present("weight"), given, one)
            scale = write(rows["scale"], weight * inverse, mask)
            shift = read(biases, there["bias"]) - mean * scale
            for name, value in (
                *(("mean", mean), ("variance", variance), ("inverse", inverse), ("shift", shift)),
            ):
                write(rows[name], value, mask)
    return k.finish()


def _merged(frame: walk.Frame, channel: Int, mask: Mask) -> tuple[Vector, Vector]:
    """Return mean and variance of all shares, added up in their order."""
    k, channels = frame.k, frame.word["channels"]
    lanes = k.lanes(F64)
    shares = k.arg_pointer(1, F64)
    zero = k.zeros(F64, lanes)
    mean, squares, before = k.variable(zero), k.variable(zero), k.variable(zero)
    pitch = channels * len(statistics.ROWS)
    with k.loop(0, frame.word["shares"], carry=[mean, squares, before]) as share:
        row = shares.offset(share * pitch).offset(channel)
        each = [frame.row(row, i).load(lanes, mask=mask) for i in range(len(statistics.ROWS))]
        count = before.value + each[2]
        weight = k.select(count.compare("ogt", "", 0.0), each[2] / count, zero)
        apart = each[0] - mean.value
        squares.value = squares.value + k.fma(apart * apart, before.value * weight, each[1])
        mean.value = k.fma(apart, weight, mean.value)
        before.value = count
    return mean.value, squares.value / before.value
